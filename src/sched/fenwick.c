/* A Fenwick tree (Fenwick, "A New Data Structure for Cumulative Frequency Tables", 1994) to draw variables with a
 * chance in proportion to their weights: a change and a draw cost O(log n). */
#include "sched/sched.h"

#include <string.h>

static void make_nodes(pli_fenwick *f) {
    memset(f->node, 0, (size_t)(f->n + 1) * sizeof *f->node);
    for (int64_t i = 1; i <= f->n; i++) {
        f->node[i] += f->weight[i - 1];
        const int64_t above = i + (i & -i);
        if (above <= f->n) f->node[above] += f->node[i];
    }
    f->since = 0;
}

bool pli_fenwick_init(pli_fenwick *f, int64_t n, double weight) {
    *f = (pli_fenwick){ .n = n };
    f->weight = pli_array((size_t)n, sizeof *f->weight);
    f->node = pli_array((size_t)n + 1, sizeof *f->node);
    if (f->weight == NULL || f->node == NULL) return false;
    for (int64_t i = 0; i < n; i++) f->weight[i] = weight;
    make_nodes(f);
    return true;
}

void pli_fenwick_destroy(pli_fenwick *f) {
    pli_free(f->weight);
    pli_free(f->node);
    *f = (pli_fenwick){ 0 };
}

void pli_fenwick_set(pli_fenwick *f, int64_t i, double weight) {
    const double more = weight - f->weight[i];
    f->weight[i] = weight;
    if (++f->since > f->n + 1024) {
        make_nodes(f);
        return;
    }
    for (int64_t at = i + 1; at <= f->n; at += at & -at) f->node[at] += more;
}

static double total(const pli_fenwick *f) {
    double sum = 0;
    for (int64_t at = f->n; at > 0; at -= at & -at) sum += f->node[at];
    return sum;
}

/* The nearest variable at or behind i, then before it, whose weight is not 0: rounding may lead to one that is. */
static int64_t nearest(const pli_fenwick *f, int64_t i) {
    for (int64_t at = i; at < f->n; at++)
        if (f->weight[at] > 0) return at;
    for (int64_t at = i < f->n ? i : f->n; at-- > 0;)
        if (f->weight[at] > 0) return at;
    return -1;
}

int64_t pli_fenwick_find(const pli_fenwick *f, double share) {
    double  point = share * total(f);
    int64_t at = 0, half = 1;
    while (half <= f->n / 2) half *= 2;
    for (; half > 0; half /= 2)
        if (at + half <= f->n && f->node[at + half] <= point) {
            at += half;
            point -= f->node[at];
        }
    return nearest(f, at);
}
