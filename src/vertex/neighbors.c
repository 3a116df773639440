/* Compressed rows of one direction of a graph, made in place by counting: how long each row is, where it begins, and
 * then each entry to the end of what its row has so far. A transpose of rows in order is sorted by that. See vertex.h.
 */
#include "base/sort.h"
#include "vertex/vertex.h"

bool pli_neighbors_room(int64_t n, int64_t m, bool weighted, pli_neighbors *h) {
    *h = (pli_neighbors){ .n = n };
    h->start = pli_calloc((size_t)n + 2, sizeof *h->start);
    h->near = pli_array((size_t)m, sizeof *h->near);
    if (weighted) h->weight = pli_array((size_t)m, sizeof *h->weight);
    if (h->start != NULL && h->near != NULL && (!weighted || h->weight != NULL)) return true;
    pli_neighbors_free(h);
    return false;
}

void pli_neighbors_begin(pli_neighbors *h) {
    for (int64_t v = 0; v < h->n; v++) h->start[v + 2] += h->start[v + 1];
}

bool pli_neighbors_transpose(const pli_neighbors *of, int64_t n, pli_neighbors *out) {
    const int64_t m = of->start[of->n];
    if (!pli_neighbors_room(n, m, of->weight != NULL, out)) return false;
    for (int64_t k = 0; k < m; k++) out->start[of->near[k] + 2]++;
    pli_neighbors_begin(out);
    for (int64_t v = 0; v < of->n; v++)
        for (int64_t k = of->start[v]; k < of->start[v + 1]; k++) {
            const int64_t to = out->start[of->near[k] + 1]++;
            out->near[to] = (uint32_t)v;
            if (out->weight != NULL) out->weight[to] = of->weight[k];
        }
    return true;
}

bool pli_neighbors_sort(pli_neighbors *h, const uint16_t *piece) {
    const int bits = piece != NULL ? 16 : 0;
    int64_t most = 0;
    for (int64_t v = 0; v < h->n; v++)
        if (h->start[v + 1] - h->start[v] > most) most = h->start[v + 1] - h->start[v];
    uint64_t *row = pli_array((size_t)most, sizeof *row);
    bool      sorted = row != NULL;
    for (int64_t v = 0; sorted && v < h->n; v++) {
        const int64_t first = h->start[v], n = h->start[v + 1] - first;
        for (int64_t i = 0; i < n; i++)
            row[i] = (uint64_t)h->near[first + i] << bits | (piece != NULL ? piece[first + i] : 0);
        sorted = pli_sort_u64(n, row, h->weight != NULL ? (uint32_t *)(void *)(h->weight + first) : NULL);
        for (int64_t i = 0; sorted && i < n; i++) h->near[first + i] = (uint32_t)(row[i] >> bits);
    }
    pli_free(row);
    return sorted;
}

int64_t pli_neighbors_doubles(pli_neighbors *h, bool drop, const pli_row_losses *losses) {
    int64_t to = 0, begin = 0, doubles = 0;
    for (int64_t v = 0; v < h->n; v++) {
        const int64_t end = h->start[v + 1], row = to;
        for (int64_t k = begin; k < end; k++) {
            const bool again = k > begin && h->near[k] == h->near[k - 1];
            doubles += again;
            if (again && drop) {
                if (losses->of_row != NULL) losses->of_row[v] += losses->by;
                if (losses->of_near != NULL) losses->of_near[h->near[k]] += losses->by;
                continue;
            }
            h->near[to] = h->near[k];
            if (h->weight != NULL) h->weight[to] = h->weight[k];
            to++;
        }
        begin = end;
        if (row != h->start[v]) h->start[v] = row;
    }
    if (to != h->start[h->n]) h->start[h->n] = to;
    return doubles;
}

bool pli_neighbors_join(const pli_neighbors *a, const pli_neighbors *b, pli_neighbors *out) {
    const bool weighted = a->weight != NULL;
    int64_t    k = 0;
    if (!pli_neighbors_room(a->n, a->start[a->n] + b->start[b->n], weighted, out)) return false;
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
