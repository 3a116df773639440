/* tensor/lanes.h - registers of floats, by what the file that includes it is compiled for: `lane` holds LANES of them,
 * FMA(a, b, c) = a b + c is rounded once. Only for files of kernels. */
#ifndef PLI_TENSOR_LANES_H
#define PLI_TENSOR_LANES_H

#if defined(__AVX512F__)
#include <immintrin.h>
typedef __m512 lane;
#define LOAD   _mm512_loadu_ps
#define STORE  _mm512_storeu_ps
#define SPREAD _mm512_set1_ps
#define FMA    _mm512_fmadd_ps
enum { LANES = 16 };
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
typedef __m256 lane;
#define LOAD   _mm256_loadu_ps
#define STORE  _mm256_storeu_ps
#define SPREAD _mm256_set1_ps
#define FMA    _mm256_fmadd_ps
enum { LANES = 8 };
#else
#include <math.h>
typedef float lane;
#define LOAD(x)     (*(x))
#define STORE(x, y) (*(x) = (y))
#define SPREAD(x)   ((float)(x))
#define FMA         fmaf
enum { LANES = 1 };
#endif

#define INLINE static inline __attribute__((always_inline))

#endif
