/* Placements to begin with that METIS cuts: units are vertices, weighted by their time (and, if memory is bounded, by
 * their bytes), and edges by the time that their values take between two ranks. METIS balances the weights and keeps
 * the cut edges light; it knows nothing of the order of nodes, so the cut is judged and refined like the others. */
#include <math.h>

#include "base/module.h"
#include "base/cutter.h"
#include "graph/place/place.h"

/* Sums of weights stay below 2^31, however they are rounded. */
#define WEIGHT_SUM 5e8

typedef struct unit_graph {
    pli_cut_graph cut;
    int32_t      *first, *to, *edge, *weight, *mark;
    double       *ns; /* of an edge */
    float        *share;
    int32_t      *part; /* [units] METIS' */
} unit_graph;

static void free_graph(unit_graph *g) {
    pli_free(g->first);
    pli_free(g->to);
    pli_free(g->edge);
    pli_free(g->weight);
    pli_free(g->mark);
    pli_free(g->ns);
    pli_free(g->share);
    pli_free(g->part);
}

static bool make_graph(const pli_placing *l, unit_graph *g) {
    const size_t n = (size_t)l->units + 1, readers = 2 * ((size_t)l->first[l->values] + 1);
    g->cut = (pli_cut_graph){ .n = l->units, .constraints = l->opts->memory_bytes != NULL ? 2 : 1 };
    g->first = pli_calloc(n + 1, sizeof *g->first);
    g->to = pli_array(readers, sizeof *g->to);
    g->edge = pli_array(readers, sizeof *g->edge);
    g->ns = pli_array(readers, sizeof *g->ns);
    g->weight = pli_array(2 * n, sizeof *g->weight);
    g->mark = pli_array(n, sizeof *g->mark);
    g->part = pli_array(n, sizeof *g->part);
    g->share = pli_array(2 * (size_t)l->opts->ranks, sizeof *g->share);
    return g->first != NULL && g->to != NULL && g->edge != NULL && g->ns != NULL && g->weight != NULL &&
           g->mark != NULL && g->part != NULL && g->share != NULL;
}

/* The time that a value takes to another rank, over the link between the first two. */
static double way_ns(const pli_placing *l, int32_t v) {
    const plait_place_opts *o = l->opts;
    const int32_t           other = o->ranks > 1 ? 1 : 0;
    return (l->bytes[v] / pli_place_bandwidth(o, 0, other) + pli_place_latency(o, 0, other)) * 1e9 + 2 * o->message_ns;
}

/* Lists each edge between two units at both ends: counts first, then fills. */
static void list_edges(const pli_placing *l, unit_graph *g) {
    for (int round = 0; round < 2; round++) {
        for (int32_t k = 0; k < l->nodes; k++)
            for (int32_t v = l->out[k]; v < l->out[k] + l->outs[k]; v++)
                for (int32_t i = l->first[v]; i < l->first[v + 1]; i++) {
                    const int32_t ends[] = { l->unit[k], l->unit[l->reader[i]] };
                    for (int e = 0; e < 2 && ends[0] != ends[1]; e++) {
                        if (round == 0) {
                            g->first[ends[e] + 1]++;
                            continue;
                        }
                        g->to[g->first[ends[e]]] = ends[1 - e];
                        g->ns[g->first[ends[e]]++] = way_ns(l, v);
                    }
                }
        if (round == 0)
            for (int32_t u = 0; u < l->units; u++) g->first[u + 1] += g->first[u];
    }
    for (int32_t u = l->units; u > 0; u--) g->first[u] = g->first[u - 1];
    g->first[0] = 0;
}

/* Makes one of the edges between the same two units. */
static void merge_edges(const pli_placing *l, unit_graph *g) {
    int32_t at = 0, begin = 0;
    for (int32_t u = 0; u < l->units; u++) g->mark[u] = -1;
    for (int32_t u = 0; u < l->units; u++) {
        const int32_t end = g->first[u + 1], own = at;
        for (int32_t i = begin; i < end; i++) {
            const int32_t to = g->to[i];
            if (g->mark[to] >= own) {
                g->ns[g->mark[to]] += g->ns[i];
                continue;
            }
            g->mark[to] = at;
            g->to[at] = to;
            g->ns[at++] = g->ns[i];
        }
        begin = end;
        g->first[u + 1] = at;
    }
}

static void weigh(const pli_placing *l, unit_graph *g) {
    const int32_t n = g->cut.constraints, edges = g->first[l->units];
    double        ns = 1, bytes = 1, ways = 1;
    for (int32_t u = 0; u < l->units; u++) {
        ns += l->load_ns[u];
        bytes += l->held[u];
    }
    for (int32_t i = 0; i < edges; i++) ways += g->ns[i];
    for (int32_t u = 0; u < l->units; u++) {
        g->weight[u * n] = (int32_t)(l->load_ns[u] / ns * WEIGHT_SUM) + 1;
        if (n > 1) g->weight[u * n + 1] = (int32_t)(l->held[u] / bytes * WEIGHT_SUM) + 1;
    }
    for (int32_t i = 0; i < edges; i++) g->edge[i] = (int32_t)(g->ns[i] / ways * WEIGHT_SUM) + 1;
    g->cut.first = g->first;
    g->cut.to = g->to;
    g->cut.edge = g->edge;
    g->cut.weight = g->weight;
}

/* A rank's share of the time is that of its speed, and of the bytes that of its memory. */
static void share_out(const pli_placing *l, unit_graph *g, const int32_t *order, int32_t parts) {
    const int32_t n = g->cut.constraints;
    double        speed = 0, memory = 0, held = 1;
    for (int32_t u = 0; u < l->units; u++) held += l->held[u];
    for (int32_t i = 0; i < parts; i++) {
        speed += pli_place_speed(l->opts, order[i]);
        if (n > 1) memory += fmin(held, (double)l->opts->memory_bytes[order[i]]);
    }
    for (int32_t i = 0; i < parts; i++) {
        g->share[i * n] = (float)(pli_place_speed(l->opts, order[i]) / speed);
        if (n > 1) g->share[i * n + 1] = (float)(fmin(held, (double)l->opts->memory_bytes[order[i]]) / memory);
    }
}

plait_status pli_start_metis(const pli_placing *l, const int32_t *order, int32_t parts, int32_t *part,
                             plait_error *err) {
    void             *handle = NULL;
    const void       *given = NULL;
    unit_graph        g = { .first = NULL };
    PLI_TRY(pli_module_load("metis", PLI_CUTTER_ABI, &handle, &given, err));
    const pli_cutter *cutter = given;
    bool              room = make_graph(l, &g);
    if (room) {
        list_edges(l, &g);
        merge_edges(l, &g);
        weigh(l, &g);
        share_out(l, &g, order, parts);
        room = cutter->cut(&g.cut, parts, g.share, (uint32_t)l->opts->seed, g.part);
    }
    for (int32_t u = 0; room && u < l->units; u++) {
        part[u] = order[g.part[u]];
        for (int32_t r = 0; r < l->opts->ranks && !pli_place_allows(l, u, part[u]); r++) part[u] = r;
    }
    free_graph(&g);
    pli_module_close(&handle);
    return room ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory to cut %d units by METIS", l->units);
}
