/* Cuts that look at one edge after the other, and at what the parts hold so far.
 *
 * A part's score for edge (u, v) is  C_rep + balance,  C_rep = g(u) + g(v), where g of an end that the part holds
 * already is 1 for oblivious, and for hdrf 2 - degree(end) / (degree(u) + degree(v)): the end with few edges should
 * stay together, and the one with many be replicated. balance = lambda (most - load) / (1 + most - least), which
 * decides between equals, and for hdrf (lambda 1.1) a little more.
 *
 * Edges come in an order that jumps through the rows. Row by row each edge would have an end in common with the one
 * before, and all of them would end in one part.
 *
 * Papers: Gonzalez et al., "PowerGraph", OSDI 2012, section 5.1; Petroni et al., "HDRF: Stream-Based Partitioning for
 * Power-Law Graphs", CIKM 2015, algorithm 1. Degrees are those seen so far, as there. */
#include "vertex/vertex.h"

typedef struct stream {
    plait_vertex_cut *cut;
    size_t            words;
    uint64_t         *holds; /* [n][words] a bit for each part that holds the vertex */
    uint32_t         *degree;
    int64_t          *load, most, least; /* [parts] */
    bool              by_degree;
} stream;

static bool has(const stream *s, int64_t v, int32_t p) {
    return (s->holds[(size_t)v * s->words + (size_t)p / 64] >> (p % 64) & 1) != 0;
}

static double score(const stream *s, int64_t u, int64_t v, int32_t p) {
    const double lambda = s->by_degree ? 1.1 : 1;
    const double all = (double)s->degree[u] + s->degree[v];
    double       sum = lambda * (double)(s->most - s->load[p]) / (1.0 + (double)(s->most - s->least));
    if (has(s, u, p)) sum += s->by_degree ? 2 - s->degree[u] / all : 1;
    if (has(s, v, p)) sum += s->by_degree ? 2 - s->degree[v] / all : 1;
    return sum;
}

static void take(stream *s, int64_t u, int64_t v, int64_t k) {
    int32_t best = 0;
    double  most = -1;
    s->degree[u]++;
    s->degree[v]++;
    for (int32_t p = 0; p < s->cut->parts; p++) {
        const double is = score(s, u, v, p);
        if (is > most) most = is, best = p;
    }
    s->cut->part[k] = (uint16_t)best;
    s->holds[(size_t)u * s->words + (size_t)best / 64] |= UINT64_C(1) << (best % 64);
    s->holds[(size_t)v * s->words + (size_t)best / 64] |= UINT64_C(1) << (best % 64);
    const int64_t was = s->load[best]++;
    if (was == s->most) s->most++;
    if (was != s->least) return;
    s->least = s->load[0];
    for (int32_t p = 1; p < s->cut->parts; p++) s->least = s->load[p] < s->least ? s->load[p] : s->least;
}

/* A step through 0 .. m - 1 that meets each once: near the golden section of m, and with no common divisor. */
static int64_t stride_of(int64_t m) {
    for (int64_t step = (int64_t)(0.618 * (double)m) | 1;; step++) {
        int64_t a = m, b = step;
        while (b != 0) {
            const int64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1) return step;
    }
}

static void take_all(stream *s, uint32_t *target) {
    const pli_neighbors *h = &s->cut->rows;
    const int64_t        m = h->start[h->n], step = stride_of(m);
    for (int64_t v = 0; v < h->n; v++)
        for (int64_t k = h->start[v]; k < h->start[v + 1]; k++) target[k] = (uint32_t)v;
    for (int64_t i = 0, k = 0; i < m; i++, k = (k + step) % m) take(s, h->near[k], target[k], k);
}

plait_status pli_cut_stream(plait_vertex_cut *cut, bool by_degree, plait_error *err) {
    const pli_neighbors *h = &cut->rows;
    stream               s = { .cut = cut, .words = ((size_t)cut->parts + 63) / 64, .by_degree = by_degree };
    plait_status         status = PLAIT_OK;
    s.holds = pli_calloc((size_t)h->n * s.words, sizeof *s.holds);
    s.degree = pli_calloc((size_t)h->n, sizeof *s.degree);
    s.load = pli_calloc((size_t)cut->parts, sizeof *s.load);
    uint32_t *target = pli_array((size_t)h->start[h->n], sizeof *target); /* of each edge */
    if (target == NULL || s.holds == NULL || s.degree == NULL || s.load == NULL)
        status = pli_fail(err, PLAIT_ENOMEM, "no memory for a cut in %d parts", (int)cut->parts);
    if (status == PLAIT_OK) take_all(&s, target);
    pli_free(target);
    pli_free(s.holds);
    pli_free(s.degree);
    pli_free(s.load);
    return status;
}
