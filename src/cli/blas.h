/* blas.h - ends the threads that BLAS starts by itself.
 *
 * Plait cuts large products into slices for its own threads, and calls BLAS from one thread only. But OpenBLAS starts a
 * thread a core when the program is loaded, and each of them offers its core some ten thousand times before it sleeps:
 * some 25 ms of a core, which is more than a small run takes. The library leaves these threads alone, because the
 * program around it may want them. */
#ifndef PLI_CLI_BLAS_H
#define PLI_CLI_BLAS_H

/** To be called first, before any other thread uses BLAS. Another BLAS than OpenBLAS is left as it is. */
void pli_blas_rest(void);

#endif
