/* table/combine/combine.h - how the values that several workers push to a row become one.
 *
 * A combine is one file and a line in combines.c, and is found by name. For each type of values it says how a later
 * value x changes the value y that is there, and what a row holds before anything has come. All code that combines
 * updates (pending, shards, replicas, collectives) asks the table's combine what it does, never what its name is.
 *
 * The operations are one real function a type. x and y do not overlap. If an operation is NULL, the general one below
 * does the same row by row. */
#ifndef PLI_TABLE_COMBINE_COMBINE_H
#define PLI_TABLE_COMBINE_COMBINE_H

#include <stdbool.h>
#include <string.h>

#include <plait/comm.h>

#include "base/base.h"

enum { PLI_COMBINE_NAME = 8 };

typedef struct pli_merge { /* for one type of values */
    int64_t width;         /* bytes of a value                              */
    void (*fold)(int64_t n, const void *x, void *y); /* y [n] becomes y combined with x */
    /* NULL: row by row with fold. Combines rows of cols values in the order of i; a row with at[i] < 0 is skipped. */
    void (*scatter)(int64_t n, int64_t cols, const int64_t *at, const void *x, void *y); /* y[at[i], :] with x[i, :] */
    void (*gather)(int64_t n, int64_t cols, const int64_t *at, const void *x, void *y);  /* y[i, :] with x[at[i], :] */
    void (*clear)(int64_t n, void *y); /* y [n] becomes what a row begins with. NULL: zeros */
} pli_merge;

typedef struct pli_combine {
    const char  *name, *summary;
    plait_reduce reduce;  /* the collective's operation with the same result                               */
    bool         adds;    /* values are sums: they can be scaled, averaged, bounded by norms, summed exactly */
    bool         repeats; /* idempotent: a value that comes twice or late counts once, in any order        */
    bool         replaces; /* the latest push of a row wins: the order matters, and updates go by key       */
    pli_merge    of[PLAIT_U8]; /* by type: PLAIT_F32, PLAIT_F64, PLAIT_I64 */
} pli_combine;

#define PLI_COMBINE_DEFAULT "add" /* the combine of a table that names none */

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
