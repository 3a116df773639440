/* Cuts by METIS: vertices are dealt to parts so that few edges join two of them, and each edge lies with the part of
 * the vertex that gathers along it. METIS sees the simple graph. A vertex weighs as much as it has edges to gather
 * along, plus one, so that parts have about equally many edges (within METIS' 3 % for each level of its cut).
 *
 * It is worth its time, minutes for 10 million edges, on graphs of places, meshes, pages: what has neighborhoods. A
 * graph of a power law has none, and hdrf replicates less there in seconds. See base/cutter.h for the module. */
#include "base/cutter.h"
#include "base/module.h"
#include "vertex/vertex.h"

enum { SEED = 1 };

typedef struct lists {
    int32_t *first, *to, *edge, *weight, *part;
    float   *share;
} lists;

static bool make_lists(const plait_vertex_cut *cut, const pli_neighbors *simple, lists *l) {
    const size_t n = (size_t)simple->n, m = (size_t)simple->start[simple->n], parts = (size_t)cut->parts;
    l->first = pli_array(n + 1, sizeof *l->first);
    l->to = pli_array(m + 1, sizeof *l->to);
    l->edge = pli_array(m + 1, sizeof *l->edge);
    l->weight = pli_array(n, sizeof *l->weight);
    l->part = pli_array(n, sizeof *l->part);
    l->share = pli_array(parts, sizeof *l->share);
    if (l->first == NULL || l->to == NULL || l->edge == NULL || l->weight == NULL || l->part == NULL ||
        l->share == NULL)
        return false;
    for (size_t v = 0; v <= n; v++) l->first[v] = (int32_t)simple->start[v];
    for (size_t v = 0; v < n; v++) l->weight[v] = (int32_t)(cut->rows.start[v + 1] - cut->rows.start[v]) + 1;
    for (size_t k = 0; k < m; k++) {
        l->to[k] = (int32_t)simple->near[k];
        l->edge[k] = 1;
    }
    for (size_t p = 0; p < parts; p++) l->share[p] = 1 / (float)parts;
    return true;
}

static void free_lists(lists *l) {
    void *const memory[] = { l->first, l->to, l->edge, l->weight, l->part, l->share };
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) pli_free(memory[i]);
}

static plait_status deal(plait_vertex_cut *cut, const pli_neighbors *simple, const pli_cutter *cutter,
                         plait_error *err) {
    const pli_neighbors *rows = &cut->rows;
    lists                l = { 0 };
    const bool           made = make_lists(cut, simple, &l);
    const pli_cut_graph  g = { .n = (int32_t)simple->n, .constraints = 1, .first = l.first, .to = l.to,
                               .edge = l.edge, .weight = l.weight };
    const bool           dealt = made && cutter->cut(&g, cut->parts, l.share, SEED, l.part);
    for (int64_t v = 0; dealt && v < rows->n; v++)
        for (int64_t k = rows->start[v]; k < rows->start[v + 1]; k++) cut->part[k] = (uint16_t)l.part[v];
    free_lists(&l);
    return dealt ? PLAIT_OK
                 : pli_fail(err, PLAIT_ENOMEM, "no memory to cut %lld vertices by METIS", (long long)rows->n);
}

plait_status pli_cut_metis(plait_vertex_cut *cut, plait_error *err) {
    const pli_neighbors *simple = pli_edges_simple(cut->edges, NULL);
    const int64_t        edges = cut->rows.start[cut->rows.n];
    void                *handle = NULL;
    const void          *given = NULL;
    if (simple == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a cut of %lld edges", (long long)edges);
    if (simple->start[simple->n] > INT32_MAX || edges + simple->n > INT32_MAX)
        return pli_fail(err, PLAIT_ESHAPE, "METIS numbers edges by 31 bits, and the graph has %lld both ways; nearest "
                        "is the cut 'hdrf'", (long long)simple->start[simple->n]);
    PLI_TRY(pli_module_load("metis", PLI_CUTTER_ABI, &handle, &given, err));
    const plait_status status = deal(cut, simple, given, err);
    pli_module_close(&handle);
    return status;
}
