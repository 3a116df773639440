/* What one worker has of a cut graph, by local numbers: see vertex.h. */
#include "vertex/reader.h"

/* Notes in local [vertices] those that the part owns or reads by the cut `range`. */
static void see_whole_rows(const plait_vertex_cut *cut, int32_t p, uint32_t *local, int64_t *edges) {
    const pli_neighbors *h = &cut->rows;
    const int64_t        first = h->start[cut->first[p]], last = h->start[cut->first[p + 1]];
    for (int64_t k = first; k < last; k++) local[h->near[k]] = 1;
    *edges = last - first;
}

static void see_shared_rows(const plait_vertex_cut *cut, int32_t p, uint32_t *local, int64_t *edges) {
    const pli_neighbors *h = &cut->rows;
    for (int64_t v = 0; v < h->n; v++)
        for (int64_t k = h->start[v]; k < h->start[v + 1]; k++)
            if (cut->part[k] == p) local[v] = local[h->near[k]] = 1, ++*edges;
}

/* Numbers the vertices that the part has edges of, or owns. local [vertices] gets their numbers + 1, or 0. */
static bool number(const plait_vertex_cut *cut, uint32_t *local, int64_t first, pli_part *part) {
    part->key = pli_array((size_t)part->n, sizeof *part->key);
    if (part->key == NULL) return false;
    uint32_t next = 0;
    for (int64_t v = 0; v < cut->rows.n; v++) {
        if (v == first) part->own = next;
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
            if (cut->part != NULL && cut->part[k] != p) continue;
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

/* The process has read this part as it has loaded the graph. */
static void lend_mine(const plait_vertex_cut *cut, pli_part *part) {
    *part = *cut->mine;
    part->lent = part->rows.lent = true;
    part->start = NULL;
}

/* A part that reads most vertices reads all: ranges of a table are read without keys, and often without a copy. Then
 * vertices keep their numbers, and the part's rows are those of the cut; all others are empty, unless nobody looks at
 * them: the workers of a process then share one array of starts. */
static bool lend_rows(const plait_vertex_cut *cut, int64_t first, int64_t last, bool own, pli_part *part) {
    const pli_neighbors *h = &cut->rows;
    const int64_t        begin = h->start[first];
    part->n = h->n;
    part->own = first;
    if (own) {
        part->rows = *h;
        part->rows.lent = true;
        return true;
    }
    part->start = pli_array((size_t)h->n + 1, sizeof *part->start);
    if (part->start == NULL) return false;
    for (int64_t v = 0; v <= first; v++) part->start[v] = 0;
    for (int64_t v = first + 1; v <= last; v++) part->start[v] = h->start[v] - begin;
    for (int64_t v = last + 1; v <= h->n; v++) part->start[v] = h->start[last] - begin;
    part->rows = (pli_neighbors){ .n = h->n, .start = part->start, .near = h->near + begin, .lent = true,
                                  .weight = h->weight != NULL ? h->weight + begin : NULL };
    return true;
}

/* One of several parts. */
static bool take_rows(const plait_vertex_cut *cut, int32_t p, bool own, pli_part *part) {
    const int64_t first = cut->first[p], last = cut->first[p + 1];
    int64_t       edges = 0;
    part->owned = last - first;
    part->n = cut->reads[p];
    if (cut->part == NULL && part->n > cut->rows.n / 2) return lend_rows(cut, first, last, own, part);
    uint32_t *local = pli_calloc((size_t)cut->rows.n, sizeof *local);
    if (local == NULL) return false;
    for (int64_t v = first; v < last; v++) local[v] = 1;
    if (cut->part == NULL) see_whole_rows(cut, p, local, &edges);
    else see_shared_rows(cut, p, local, &edges);
    const bool made = number(cut, local, first, part) && copy_rows(cut, p, local, edges, part);
    pli_free(local);
    return made;
}

/* The way back of the simple graph is itself. */
static bool lend_back(const plait_vertex_cut *cut, pli_part *part) {
    const pli_neighbors *out = cut->near == PLI_NEAR_SIMPLE ? &cut->rows : pli_edges_out(cut->edges);
    if (out == NULL) return false;
    part->back = *out;
    part->back.lent = true;
    return true;
}

static plait_status make(const plait_vertex_cut *cut, int32_t p, bool back, bool own, pli_part *part,
                         plait_error *err) {
    const bool parts = cut->edges->again != NULL, all = !parts && cut->parts == 1;
    bool       made = true;
    *part = (pli_part){ .whole = !cut->splits };
    if (cut->mine != NULL && p == cut->mine_is) lend_mine(cut, part);
    else if (parts) PLI_TRY(pli_ingress_part(cut, p, part, err));
    else if (all) lend_all(cut, part);
    else made = take_rows(cut, p, own, part);
    if (made && back && all && (cut->near == PLAIT_NEAR_IN || cut->near == PLI_NEAR_SIMPLE))
        made = lend_back(cut, part);
    else if (made && back) made = pli_neighbors_transpose(&part->rows, part->n, &part->back);
    if (made) return PLAIT_OK;
    pli_part_free(part);
    return pli_fail(err, PLAIT_ENOMEM, "no memory for part %d of the graph's %d", (int)p, (int)cut->parts);
}

plait_status pli_part_make(const plait_vertex_cut *cut, int32_t p, bool back, pli_part *part, plait_error *err) {
    return make(cut, p, back, false, part, err);
}

plait_status pli_part_make_own(const plait_vertex_cut *cut, int32_t p, pli_part *part, plait_error *err) {
    return make(cut, p, false, true, part, err);
}

void pli_part_free(pli_part *part) {
    if (!part->lent) pli_free(part->key);
    pli_free(part->start);
    pli_neighbors_free(&part->rows);
    pli_neighbors_free(&part->back);
    *part = (pli_part){ 0 };
}
