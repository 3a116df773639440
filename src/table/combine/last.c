/* combine last - a row holds what was pushed to it last: the push of the latest clock, and of two of one clock that of
 * the worker with the higher number. A push replaces the whole row. Before anything has come it holds 0.
 *
 * With replicas others stand in for a worker that dies in a clock. What they push in its stead has its number then, not
 * theirs; of several that died in one clock, the highest number. From the next clock on heirs push what they hold under
 * their own.
 *
 * What is combined here comes in that order already: a worker's own incs as it makes them, a clock's pushes by worker,
 * clock after clock. If pushes are applied as they come, the store keeps a stamp for each row and skips a push that
 * comes behind a later one (pli_store_replace). Rows that a push does not name stay as they are, so updates always go
 * by key. */
#include "table/combine/combine.h"

static void copy_4(int64_t n, const void *x, void *y) { memcpy(y, x, (size_t)n * 4); }
static void copy_8(int64_t n, const void *x, void *y) { memcpy(y, x, (size_t)n * 8); }

const pli_combine pli_last_combine = {
    .name = "last",
    .summary = "what was pushed in the latest clock; of one clock by the highest worker",
    .reduce = PLAIT_SUM, /* unused: no collective reduces its rows, they go as lists */
    .replaces = true,
    .of = { [PLAIT_F32] = { .width = 4, .fold = copy_4 },
            [PLAIT_F64] = { .width = 8, .fold = copy_8 },
            [PLAIT_I64] = { .width = 8, .fold = copy_8 } },
};
