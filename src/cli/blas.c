/* See blas.h. */
#include "cli/blas.h"

/* OpenBLAS's own names; NULL if it is another BLAS. The second also runs before each fork. */
extern void openblas_set_num_threads(int threads) __attribute__((weak));
extern int  blas_thread_shutdown_(void) __attribute__((weak));

void pli_blas_rest(void) {
    if (&openblas_set_num_threads == (void *)0 || &blas_thread_shutdown_ == (void *)0) return;
    openblas_set_num_threads(1);
    blas_thread_shutdown_();
}
