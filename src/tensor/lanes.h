/* tensor/lanes.h - registers of floats and doubles for the processor that the including file is compiled for: `lane`
 * holds LANES floats, `wide_lane` WIDE_LANES doubles; FMA(a, b, c) = a b + c is rounded once. Only for files of
 * kernels. */
#ifndef PLI_TENSOR_LANES_H
#define PLI_TENSOR_LANES_H

#if defined(__AVX512F__)
#include <immintrin.h>
typedef __m512 lane;
#define LOAD   _mm512_loadu_ps
#define STORE  _mm512_storeu_ps
#define SPREAD _mm512_set1_ps
#define FMA    _mm512_fmadd_ps
typedef __m512d wide_lane;
#define WIDE_LOAD   _mm512_loadu_pd
#define WIDE_STORE  _mm512_storeu_pd
#define WIDE_SPREAD _mm512_set1_pd
#define WIDE_FMA    _mm512_fmadd_pd
enum { LANES = 16, WIDE_LANES = 8 };
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
typedef __m256 lane;
#define LOAD   _mm256_loadu_ps
#define STORE  _mm256_storeu_ps
#define SPREAD _mm256_set1_ps
#define FMA    _mm256_fmadd_ps
typedef __m256d wide_lane;
#define WIDE_LOAD   _mm256_loadu_pd
#define WIDE_STORE  _mm256_storeu_pd
#define WIDE_SPREAD _mm256_set1_pd
#define WIDE_FMA    _mm256_fmadd_pd
enum { LANES = 8, WIDE_LANES = 4 };
#else
#include <math.h>
typedef float lane;
#define LOAD(x)     (*(x))
#define STORE(x, y) (*(x) = (y))
#define SPREAD(x)   ((float)(x))
#define FMA         fmaf
typedef double wide_lane;
#define WIDE_LOAD(x)     (*(x))
#define WIDE_STORE(x, y) (*(x) = (y))
#define WIDE_SPREAD(x)   ((double)(x))
#define WIDE_FMA         fma
enum { LANES = 1, WIDE_LANES = 1 };
#endif

#define INLINE static inline __attribute__((always_inline))

#endif
