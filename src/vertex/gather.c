/* Kernels of vertex programs: what arrives at a vertex along its edges. One function for each way to combine, what an
 * edge does, and type, so that the inner loop has no branch; its limit is the rate of random 8-byte reads of what is
 * told. See vertex.h. */
#include <math.h>

#include "vertex/vertex.h"

#define ADD(a, b) ((a) + (b))
#define MIN(a, b) ((b) < (a) ? (b) : (a))
#define MAX(a, b) ((b) > (a) ? (b) : (a))
#define VALUE(type, told, weight) (told)
#define TIMES(type, told, weight) ((told) * (type)(weight))
#define PLUS(type, told, weight)  ((told) + (type)(weight))

/* Whole numbers wrap around, as in tables: sums and products go by unsigned arithmetic. Plus keeps "nothing" as it is:
 * a distance to a vertex that is not reached stays INT64_MAX. */
static inline int64_t i64_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
#define ADD_I64(a, b)                 i64_add(a, b)
#define TIMES_I64(type, told, weight) ((int64_t)((uint64_t)(told) * (uint64_t)llrintf(weight)))
#define PLUS_I64(type, told, weight) \
    ((told) == INT64_MAX || (told) == INT64_MIN ? (told) : i64_add(told, (int64_t)llrintf(weight)))

typedef void rows_fn(const pli_neighbors *rows, const void *told, int64_t first, int64_t last, void *sum, double begin);

#define KERNEL(name, type, combine, along)                                                                         \
    static void name(const pli_neighbors *r, const void *told_, int64_t first, int64_t last, void *sum_,           \
                     double begin) {                                                                               \
        const type *told = told_;                                                                                  \
        type       *sum = sum_;                                                                                    \
        const type  none = begin == 0 ? 0 : begin > 0 ? TOP_##type : LOW_##type;                                   \
        for (int64_t v = first; v < last; v++) {                                                                   \
            type s = none;                                                                                         \
            if (r->weight == NULL) {                                                                               \
                for (int64_t k = r->start[v]; k < r->start[v + 1]; k++)                                            \
                    s = combine(s, along(type, told[r->near[k]], 1.0f));                                           \
            } else {                                                                                               \
                for (int64_t k = r->start[v]; k < r->start[v + 1]; k++)                                            \
                    s = combine(s, along(type, told[r->near[k]], r->weight[k]));                                   \
            }                                                                                                      \
            sum[v] = s;                                                                                            \
        }                                                                                                          \
    }

#define TOP_double  ((double)INFINITY)
#define LOW_double  (-(double)INFINITY)
#define TOP_int64_t INT64_MAX
#define LOW_int64_t INT64_MIN

/* Ranks and the like: sums of many rows without weights, whose limit is how many reads of what is told are under way at
 * once. A short row ends before the processor has seen enough of the next; asking ahead crosses rows. */
enum { AHEAD = 24 };

static void f64_add_value(const pli_neighbors *r, const void *told_, int64_t first, int64_t last, void *sum_,
                          double begin) {
    const double  *told = told_;
    double        *sum = sum_;
    const int64_t  all = r->start[last];
    (void)begin;
    for (int64_t v = first; v < last; v++) {
        const int64_t end = r->start[v + 1], safe = end + AHEAD <= all ? end : r->start[v];
        double        s = 0;
        int64_t       k = r->start[v];
        for (; k < safe; k++) {
            __builtin_prefetch(&told[r->near[k + AHEAD]]);
            s += told[r->near[k]];
        }
        for (; k < end; k++) s += told[r->near[k]];
        sum[v] = s;
    }
}

KERNEL(f64_add_times, double, ADD, TIMES)
KERNEL(f64_add_plus, double, ADD, PLUS)
KERNEL(f64_min_value, double, MIN, VALUE)
KERNEL(f64_min_times, double, MIN, TIMES)
KERNEL(f64_min_plus, double, MIN, PLUS)
KERNEL(f64_max_value, double, MAX, VALUE)
KERNEL(f64_max_times, double, MAX, TIMES)
KERNEL(f64_max_plus, double, MAX, PLUS)
KERNEL(i64_add_value, int64_t, ADD_I64, VALUE)
KERNEL(i64_add_times, int64_t, ADD_I64, TIMES_I64)
KERNEL(i64_add_plus, int64_t, ADD_I64, PLUS_I64)
KERNEL(i64_min_value, int64_t, MIN, VALUE)
KERNEL(i64_min_times, int64_t, MIN, TIMES_I64)
KERNEL(i64_min_plus, int64_t, MIN, PLUS_I64)
KERNEL(i64_max_value, int64_t, MAX, VALUE)
KERNEL(i64_max_times, int64_t, MAX, TIMES_I64)
KERNEL(i64_max_plus, int64_t, MAX, PLUS_I64)

static rows_fn *const kernels[2][3][3] = {
    { { f64_add_value, f64_add_times, f64_add_plus },
      { f64_min_value, f64_min_times, f64_min_plus },
      { f64_max_value, f64_max_times, f64_max_plus } },
    { { i64_add_value, i64_add_times, i64_add_plus },
      { i64_min_value, i64_min_times, i64_min_plus },
      { i64_max_value, i64_max_times, i64_max_plus } },
};

static double sign_of(pli_fold fold) { return fold == PLI_FOLD_ADD ? 0 : fold == PLI_FOLD_MIN ? 1 : -1; }

void pli_gather_rows(const pli_gather *g, const pli_neighbors *rows, const void *told, int64_t first, int64_t last,
                     void *sum) {
    kernels[g->whole_numbers][g->fold][g->along](rows, told, first, last, sum, sign_of(g->fold));
}

void pli_gather_begin(const pli_gather *g, void *value) {
    const double sign = sign_of(g->fold);
    if (g->whole_numbers) *(int64_t *)value = sign == 0 ? 0 : sign > 0 ? INT64_MAX : INT64_MIN;
    else *(double *)value = sign == 0 ? 0 : sign * (double)INFINITY;
}

bool pli_gather_is_better(const pli_gather *g, const void *a, const void *than) {
    if (g->whole_numbers) {
        const int64_t x = *(const int64_t *)a, y = *(const int64_t *)than;
        return g->fold == PLI_FOLD_MIN ? x < y : x > y;
    }
    const double x = *(const double *)a, y = *(const double *)than;
    return g->fold == PLI_FOLD_MIN ? x < y : x > y;
}

/* One vertex tells those in its row: a row of its own for each, so that the kernels above serve. */
void pli_gather_push(const pli_gather *g, const pli_neighbors *back, int64_t v, const void *told, const void *was,
                     void *best, uint64_t *hit, int64_t *hits) {
    int64_t  one[2] = { 0, 1 };
    uint32_t zero = 0;
    for (int64_t k = back->start[v]; k < back->start[v + 1]; k++) {
        pli_neighbors edge = { .n = 1, .start = one, .near = &zero,
                               .weight = back->weight != NULL ? &back->weight[k] : NULL };
        int64_t       came;
        pli_gather_rows(g, &edge, (const char *)told + 8 * v, 0, 1, &came);
        void *at = (char *)best + 8 * (size_t)back->near[k];
        if (!pli_gather_is_better(g, &came, at)) continue;
        if (memcmp(at, (const char *)was + 8 * (size_t)back->near[k], 8) == 0) hit[(*hits)++] = back->near[k];
        memcpy(at, &came, 8);
    }
}
