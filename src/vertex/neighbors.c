/* Compressed rows of one direction of a graph, made by counting: two stable passes, by one end and then by the other,
 * leave each row sorted. See vertex.h. */
#include "vertex/vertex.h"

static bool make_room(int64_t n, int64_t m, bool weighted, pli_neighbors *h) {
    *h = (pli_neighbors){ .n = n };
    h->start = pli_calloc((size_t)n + 2, sizeof *h->start);
    h->near = pli_array((size_t)m, sizeof *h->near);
    if (weighted) h->weight = pli_array((size_t)m, sizeof *h->weight);
    if (h->start != NULL && h->near != NULL && (!weighted || h->weight != NULL)) return true;
    pli_neighbors_free(h);
    return false;
}

/* Counts in start[v + 2] became where each row begins, in start[v + 1]; filling moves that to its end. */
static void add_up(pli_neighbors *h) {
    for (int64_t v = 0; v < h->n; v++) h->start[v + 2] += h->start[v + 1];
}

bool pli_neighbors_transpose(const pli_neighbors *of, int64_t n, pli_neighbors *out) {
    const int64_t m = of->start[of->n];
    if (!make_room(n, m, of->weight != NULL, out)) return false;
    for (int64_t k = 0; k < m; k++) out->start[of->near[k] + 2]++;
    add_up(out);
    for (int64_t v = 0; v < of->n; v++)
        for (int64_t k = of->start[v]; k < of->start[v + 1]; k++) {
            const int64_t to = out->start[of->near[k] + 1]++;
            out->near[to] = (uint32_t)v;
            if (out->weight != NULL) out->weight[to] = of->weight[k];
        }
    return true;
}

bool pli_neighbors_make(int64_t n, int64_t m, const uint32_t *from, const uint32_t *to, const float *weight,
                        pli_neighbors *out) {
    pli_neighbors by_from;
    if (!make_room(n, m, weight != NULL, &by_from)) return false;
    for (int64_t k = 0; k < m; k++) by_from.start[from[k] + 2]++;
    add_up(&by_from);
    for (int64_t k = 0; k < m; k++) {
        const int64_t at = by_from.start[from[k] + 1]++;
        by_from.near[at] = to[k];
        if (weight != NULL) by_from.weight[at] = weight[k];
    }
    const bool made = pli_neighbors_transpose(&by_from, n, out);
    pli_neighbors_free(&by_from);
    return made;
}

bool pli_neighbors_join(const pli_neighbors *a, const pli_neighbors *b, pli_neighbors *out) {
    const bool weighted = a->weight != NULL;
    int64_t    k = 0;
    if (!make_room(a->n, a->start[a->n] + b->start[b->n], weighted, out)) return false;
    for (int64_t v = 0; v < a->n; v++) {
        int64_t i = a->start[v], j = b->start[v];
        while (i < a->start[v + 1] || j < b->start[v + 1]) {
            const bool first = j == b->start[v + 1] || (i < a->start[v + 1] && a->near[i] <= b->near[j]);
            out->near[k] = first ? a->near[i] : b->near[j];
            if (weighted) out->weight[k] = first ? a->weight[i] : b->weight[j];
            k++;
            if (first) i++;
            else j++;
        }
        out->start[v + 1] = k;
    }
    return true;
}

void pli_neighbors_free(pli_neighbors *of) {
    if (!of->lent) {
        pli_free(of->start);
        pli_free(of->near);
        pli_free(of->weight);
    }
    *of = (pli_neighbors){ 0 };
}
