/* What one worker has of a cut graph, by local numbers: see vertex.h. */
#include "vertex/vertex.h"

/* Has the part this edge, whose row it owns if nobody else has edges of that? */
static inline bool has(const plait_vertex_cut *cut, int32_t p, int64_t k) {
    return cut->part == NULL || cut->part[k] == p;
}

/* A part that reads most vertices reads all: ranges of a table are read without keys, and often without a copy. */
static void number_all(int64_t n, uint32_t *local, pli_part *part) {
    part->n = n;
    for (int64_t v = 0; v < n; v++) local[v] = (uint32_t)v + 1;
}

/* Numbers the vertices that the part has edges of, or owns. local [vertices] gets their numbers + 1, or 0. */
static bool number(const plait_vertex_cut *cut, int32_t p, uint32_t *local, int64_t *edges, pli_part *part) {
    const pli_neighbors *h = &cut->rows;
    for (int64_t v = cut->first[p]; v < cut->first[p + 1]; v++) local[v] = 1;
    const int64_t first = cut->part != NULL ? 0 : cut->first[p], last = cut->part != NULL ? h->n : cut->first[p + 1];
    for (int64_t v = first; v < last; v++)
        for (int64_t k = h->start[v]; k < h->start[v + 1]; k++)
            if (has(cut, p, k)) local[v] = local[h->near[k]] = 1, ++*edges;
    for (int64_t v = 0; v < h->n; v++) part->n += local[v];
    part->owned = cut->first[p + 1] - cut->first[p];
    if (cut->part == NULL && part->n > h->n / 2) {
        number_all(h->n, local, part);
        part->own = cut->first[p];
        return true;
    }
    part->key = pli_array((size_t)part->n, sizeof *part->key);
    if (part->key == NULL) return false;
    uint32_t next = 0;
    for (int64_t v = 0; v < h->n; v++) {
        if (v == cut->first[p]) part->own = next;
        if (local[v] == 0) continue;
        part->key[next++] = (uint64_t)v;
        local[v] = next;
    }
    return true;
}

static bool copy_rows(const plait_vertex_cut *cut, int32_t p, const uint32_t *local, int64_t edges, pli_part *part) {
    const pli_neighbors *h = &cut->rows;
    pli_neighbors       *r = &part->rows;
    int64_t              to = 0;
    r->n = part->n;
    r->start = pli_calloc((size_t)part->n + 1, sizeof *r->start);
    r->near = pli_array((size_t)edges, sizeof *r->near);
    if (h->weight != NULL) r->weight = pli_array((size_t)edges, sizeof *r->weight);
    if (r->start == NULL || r->near == NULL || (h->weight != NULL && r->weight == NULL)) return false;
    for (int64_t i = 0; i < part->n; i++) {
        const int64_t v = pli_part_vertex(part, i);
        const bool    here = cut->part != NULL || (v >= cut->first[p] && v < cut->first[p + 1]);
        for (int64_t k = h->start[v]; here && k < h->start[v + 1]; k++) {
            if (!has(cut, p, k)) continue;
            r->near[to] = local[h->near[k]] - 1;
            if (r->weight != NULL) r->weight[to] = h->weight[k];
            to++;
        }
        r->start[i + 1] = to;
    }
    return true;
}

/* The only part has all, by the numbers that it has. */
static void lend_all(const plait_vertex_cut *cut, pli_part *part) {
    part->n = part->owned = cut->rows.n;
    part->rows = cut->rows;
    part->rows.lent = true;
}

/* The way back of the simple graph is itself. */
static bool lend_back(const plait_vertex_cut *cut, pli_part *part) {
    const pli_neighbors *out = cut->near == PLI_NEAR_SIMPLE ? &cut->rows : pli_edges_out(cut->edges);
    if (out == NULL) return false;
    part->back = *out;
    part->back.lent = true;
    return true;
}

plait_status pli_part_make(const plait_vertex_cut *cut, int32_t p, bool back, pli_part *part, plait_error *err) {
    int64_t edges = 0;
    bool    made = true;
    *part = (pli_part){ .whole = cut->part == NULL };
    if (cut->parts == 1) {
        lend_all(cut, part);
    } else {
        uint32_t *local = pli_calloc((size_t)cut->rows.n, sizeof *local);
        made = local != NULL && number(cut, p, local, &edges, part) && copy_rows(cut, p, local, edges, part);
        pli_free(local);
    }
    if (made && back && cut->parts == 1 && (cut->near == PLAIT_NEAR_IN || cut->near == PLI_NEAR_SIMPLE))
        made = lend_back(cut, part);
    else if (made && back) made = pli_neighbors_transpose(&part->rows, part->n, &part->back);
    if (made) return PLAIT_OK;
    pli_part_free(part);
    return pli_fail(err, PLAIT_ENOMEM, "no memory for part %d of the graph's %d", (int)p, (int)cut->parts);
}

void pli_part_free(pli_part *part) {
    pli_free(part->key);
    pli_neighbors_free(&part->rows);
    pli_neighbors_free(&part->back);
    *part = (pli_part){ 0 };
}
