/* learn/linear/newton_rows.h - what a worker remembers of its rows; for newton_rows.c and newton_bound.c. */
#ifndef PLI_LEARN_LINEAR_NEWTON_ROWS_H
#define PLI_LEARN_LINEAR_NEWTON_ROWS_H

#include "learn/linear/newton.h"

enum { PLI_NEWTON_GROUPS = 4, PLI_NEWTON_CHUNK = 128 };

/* Rows are added up in fixed groups of blocks. */
typedef struct pli_newton_group {
    pli_quadratic model; /* of its rows: r is the gradient */
    double       *bias, *slope; /* [columns] */
    double       *x, *y; /* [CHUNK, rows] rows as training sees them; the same times a curvature */
    double       *curve; /* [CHUNK, columns, columns] */
    double        farthest;
    pli_sums      sums;
} pli_newton_group;

struct pli_newton_rows {
    pli_run     *run;
    pli_linear   linear; /* the loss is that of the last pass */
    int64_t      rows;    /* own rows */
    int64_t     *begin;   /* [parts] the number of each part's first row */
    double      *score;   /* [rows, columns] at the point at hand */
    double      *to;      /* [rows, columns] at the point that a move aims at */
    double      *raw, *bias; /* weights [features, columns] and intercepts [columns] in the data's units */
    bool         curved;  /* models have a curvature */
    pli_newton_group group[PLI_NEWTON_GROUPS];
    const pli_batch *batch; /* of the pass at hand */
};

/** The row i of a part. */
static inline int64_t pli_newton_row(const pli_part *part, int64_t i) {
    return part->order != NULL ? (int64_t)part->order[i] : part->first + i;
}
/** The parts of group g: from this one to the first of group g + 1. */
static inline int32_t pli_newton_first(const pli_newton_rows *n, int64_t g) {
    return (int32_t)((int64_t)n->batch->parts * g / PLI_NEWTON_GROUPS);
}

/** Computes the scores n->to of own rows at a point [rows, columns], and each group's farthest. */
void pli_newton_score(pli_newton_rows *n, const pli_batch *batch, const double *point);
/** Adds a row times its slope [k] to the group's sums. */
void pli_newton_add_slope(pli_newton_group *g, const pli_block *block, int64_t r, int64_t k, const double *slope);
/** Adds up the groups' sums over the number of rows: h [blocks] unless NULL, slope [rows, columns]. */
void pli_newton_add_groups(pli_newton_rows *n, double *h, double *slope, pli_sums *sums_out);

#endif
