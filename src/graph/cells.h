/* graph/cells.h - the elementwise part of a recurrent step, one row of n units at a time, in float.
 *
 * sigmoid and tanh use an e^x in float (Cephes' polynomial of degree 6; relative error below 2e-7). Their absolute
 * error stays below 2e-7, at a fraction of the cost of the double versions in tensor/; the relative error of a gate
 * near 0 does not matter. The same text is compiled for each processor, without contraction, so the bits are the same
 * on all.
 */
#ifndef PLI_GRAPH_CELLS_H
#define PLI_GRAPH_CELLS_H

#include <stdint.h>

typedef struct pli_cells {
    /* LSTM: z [4 n] + s [4 n] are the arguments of the gates i, f, g, o [4 n]; c = f c0 + i g; h = o tanh c. */
    void (*lstm)(int64_t n, const float *z, const float *s, const float *c0, float *gates, float *c, float *h);
    /* Derivative of lstm: takes dh [n] and dc [n] of h and c, fills dz [4 n]; dc becomes the derivative by c0. */
    void (*lstm_back)(int64_t n, const float *gates, const float *c0, const float *c, const float *dh, float *dc,
                      float *dz);
    /* GRU: z [3 n] and s [3 n] are the input and recurrent parts of the arguments of r, u, g, b [n] is added to s_g.
     * Fills gates [4 n]: r, u, g and m = s_g + b; g = tanh(z_g + r m); h = (1 - u) g + u h0. */
    void (*gru)(int64_t n, const float *z, const float *s, const float *b, const float *h0, float *gates, float *h);
    /* Derivative of gru: takes dh [n] of h, fills dz [3 n] and ds [3 n]; dh becomes the derivative by h0, without the
     * part that goes through s. */
    void (*gru_back)(int64_t n, const float *gates, const float *h0, float *dh, float *dz, float *ds);
} pli_cells;

/** The best for this processor; static. */
const pli_cells *pli_cells_get(void);
const pli_cells *pli_cells_avx2(void);
const pli_cells *pli_cells_avx512(void);

#endif
