/* graph/pooling.h - what the pooling ops share: windows over the planes of images [n, channels, height, width]. */
#ifndef PLI_GRAPH_POOLING_H
#define PLI_GRAPH_POOLING_H

#include "graph/kernel.h"

enum { PLI_POOLING_WINDOW, PLI_POOLING_STRIDE, PLI_POOLING_PADDING, PLI_POOLING_ATTRS };

/** window [2], stride [2] (left out: the window's), padding [top, left, bottom, right] = 0, less than the window. */
extern const plait_attr_spec pli_pooling_attrs[PLI_POOLING_ATTRS];

typedef struct pli_pooling {
    int64_t planes, in[2], out[2], window[2], stride[2], before[2];
} pli_pooling;

/** Infers the shape of y from that of x; ESHAPE with the reason. Lengths may be PLAIT_ANY. */
plait_status pli_pooling_infer(const plait_call *call, const plait_tensor *x, plait_shape *y_out);
pli_pooling     pli_pooling_of(const plait_attr *attrs, const plait_shape *x);

/** The part of output (i, j)'s window that lies in the plane: rows from[0] .. end[0] - 1, columns likewise. */
static inline void pli_pooling_window(const pli_pooling *p, int64_t i, int64_t j, int64_t from[2], int64_t end[2]) {
    const int64_t at[2] = { i, j };
    for (int a = 0; a < 2; a++) {
        from[a] = at[a] * p->stride[a] - p->before[a];
        end[a] = from[a] + p->window[a] < p->in[a] ? from[a] + p->window[a] : p->in[a];
        if (from[a] < 0) from[a] = 0;
    }
}

/** The number of planes of an item. */
static inline int64_t pli_pooling_each(const pli_pooling *p) {
    const int64_t plane = p->in[0] * p->in[1];
    return plane > 0 && plane < PLI_ITEM_ELEMENTS ? PLI_ITEM_ELEMENTS / plane : 1;
}
static inline int64_t pli_pooling_items(const pli_pooling *p) {
    return (p->planes + pli_pooling_each(p) - 1) / pli_pooling_each(p);
}
static inline int64_t pli_pooling_piece(const pli_pooling *p, int64_t item, int64_t *first_out) {
    const int64_t each = pli_pooling_each(p);
    *first_out = item * each;
    return p->planes - *first_out < each ? p->planes - *first_out : each;
}

#endif
