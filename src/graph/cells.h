/* graph/cells.h - the elementwise part of a recurrent step, one row of n units at a time, in float.
 *
 * sigmoid and tanh are made of an e^x in float (Cephes' polynomial of degree 6; relative error below 2e-7), so that
 * their absolute error stays below 2e-7, at a fraction of the cost of the double ones in tensor/: gates are
 * squashed, and their relative error near 0 does not matter. The same text is compiled for each processor, without
 * contraction, so the bits are the same on all. */
#ifndef PLI_GRAPH_CELLS_H
#define PLI_GRAPH_CELLS_H

#include <stdint.h>

typedef struct pli_cells {
    /* LSTM: z [4 n] + s [4 n] before the gates i, f, g, o -> gates [4 n]; c = f c0 + i g; h = o tanh c. */
    void (*lstm)(int64_t n, const float *z, const float *s, const float *c0, float *gates, float *c, float *h);
    /* Its derivative: dh [n] and dc [n] of h and c; dz [4 n]; dc becomes that of c0. */
    void (*lstm_back)(int64_t n, const float *gates, const float *c0, const float *c, const float *dh, float *dc,
                      float *dz);
    /* GRU: z [3 n] before the gates r, u, g, s [3 n] their recurrent parts, b [n] added to the last of these ->
     * gates [4 n]: r, u, g and m = s_g + b; h = (1 - u) g + u h0, g = tanh(z_g + r m). */
    void (*gru)(int64_t n, const float *z, const float *s, const float *b, const float *h0, float *gates, float *h);
    /* Its derivative: dh [n] of h; dz [3 n] and ds [3 n]; dh becomes the part of that of h0 that does not go through
     * s. */
    void (*gru_back)(int64_t n, const float *gates, const float *h0, float *dh, float *dz, float *ds);
} pli_cells;

/** The best for this processor; static. */
const pli_cells *pli_cells_get(void);
const pli_cells *pli_cells_avx2(void);
const pli_cells *pli_cells_avx512(void);

#endif
