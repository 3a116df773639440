/* table/combine/combine.h - how that which several workers push to a row becomes one value.
 *
 * A combine is one file and a line in combines.c, found by name. It says for each type of values what x, which comes
 * later, makes of y, which is there, and what a row holds before anything has come. Whatever adds up updates (pending,
 * shards, replicas, collectives) asks the table's combine for what it does, and never for its name.
 *
 * The operations are one real function a type. x and y do not overlap. Where an operation is not given, the general
 * one below does the same row by row. */
#ifndef PLI_TABLE_COMBINE_COMBINE_H
#define PLI_TABLE_COMBINE_COMBINE_H

#include <stdbool.h>
#include <string.h>

#include <plait/comm.h>

#include "base/base.h"

enum { PLI_COMBINE_NAME = 8 };

typedef struct pli_merge { /* of one type */
    int64_t width;         /* bytes of a value                              */
    void (*fold)(int64_t n, const void *x, void *y); /* y [n] becomes y combined with x */
    /* NULL: by fold. Rows of cols values, in the order of i; at[i] < 0: passed over. */
    void (*scatter)(int64_t n, int64_t cols, const int64_t *at, const void *x, void *y); /* y[at[i], :] with x[i, :] */
    void (*gather)(int64_t n, int64_t cols, const int64_t *at, const void *x, void *y);  /* y[i, :] with x[at[i], :] */
    void (*clear)(int64_t n, void *y); /* y [n]: nothing has come yet. NULL: zeros */
} pli_merge;

typedef struct pli_combine {
    const char  *name, *summary;
    plait_reduce reduce;  /* what a collective does to the same end                                        */
    bool         adds;    /* values are sums: they can be scaled, averaged, bounded by norms, summed exactly */
    bool         repeats; /* what comes twice, or late, counts once: x with x is x, in any order           */
    bool         replaces; /* the latest push of a row counts: the order matters, and updates go by key     */
    pli_merge    of[PLAIT_U8]; /* by type: PLAIT_F32, PLAIT_F64, PLAIT_I64 */
} pli_combine;

#define PLI_COMBINE_DEFAULT "add" /* of a table that names none */

/** All combines, NULL-terminated. */
const pli_combine *const *pli_combines(void);
/** By name; NULL: the default. Errors: ENAME, with the nearest. */
plait_status pli_combine_find(const char *name, const pli_combine **combine_out, plait_error *err);

extern const pli_combine pli_add_combine, pli_min_combine, pli_max_combine, pli_last_combine;

/** Does the combine of that name replace rows? NULL: the default's. false where the name is unknown. */
bool pli_combine_replaces(const char *name);

void pli_merge_scatter(const pli_merge *merge, int64_t n, int64_t cols, const int64_t *at, const void *x, void *y);
void pli_merge_gather(const pli_merge *merge, int64_t n, int64_t cols, const int64_t *at, const void *x, void *y);

static inline void pli_merge_clear(const pli_merge *merge, int64_t n, void *y) {
    if (merge->clear != NULL) merge->clear(n, y);
    else memset(y, 0, (size_t)(n * merge->width));
}

#endif
