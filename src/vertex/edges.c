/* A graph in memory: vertices are numbered by their ids, edges lie in the row of the vertex that they come to. See
 * plait/vertex.h. */
#include "base/hash.h"
#include "base/sized.h"
#include "base/sort.h"
#include "data/edges/edges.h"
#include "vertex/vertex.h"

void (plait_edges_opts_init)(plait_edges_opts *opts) {
    if (opts != NULL) *opts = (plait_edges_opts){ .size = sizeof *opts };
}

void plait_edges_opts_init_sized(plait_edges_opts *opts, size_t size) {
    plait_edges_opts all;
    (plait_edges_opts_init)(&all);
    pli_sized_give(opts, size, &all, sizeof all);
}

/* --- numbers for ids ---------------------------------------------------------------------------------------------- */

/* Ids are mostly small: then their numbers stand in a table by id. Else they are sorted, and looked up. */
typedef struct numbering {
    uint64_t *id;     /* [n] increasing                    */
    uint32_t *number; /* [most + 1] by id; NULL: look it up */
    int64_t   n;
    uint64_t  most;
} numbering;

static bool number_small(const pli_edge_list *l, numbering *by) {
    by->number = pli_calloc((size_t)by->most + 1, sizeof *by->number);
    if (by->number == NULL) return false;
    for (int64_t k = 0; k < l->n; k++) by->number[l->from[k]] = by->number[l->to[k]] = 1;
    for (uint64_t id = 0; id <= by->most; id++) by->n += by->number[id];
    by->id = pli_array((size_t)by->n, sizeof *by->id);
    if (by->id == NULL) return false;
    int64_t n = 0;
    for (uint64_t id = 0; id <= by->most; id++)
        if (by->number[id] != 0) {
            by->id[n] = id;
            by->number[id] = (uint32_t)n++;
        }
    return true;
}

static bool number_any(const pli_edge_list *l, numbering *by) {
    by->id = pli_array(2 * (size_t)l->n, sizeof *by->id);
    if (by->id == NULL) return false;
    memcpy(by->id, l->from, (size_t)l->n * sizeof *by->id);
    memcpy(by->id + l->n, l->to, (size_t)l->n * sizeof *by->id);
    if (!pli_sort_u64(2 * l->n, by->id, NULL)) return false;
    by->n = pli_unique_u64(2 * l->n, by->id);
    return true;
}

static bool number_given(int64_t n, numbering *by) {
    by->n = n;
    by->id = pli_array((size_t)n, sizeof *by->id);
    for (int64_t v = 0; by->id != NULL && v < n; v++) by->id[v] = (uint64_t)v + 1;
    return by->id != NULL;
}

static int64_t find(const uint64_t *ids, int64_t n, uint64_t id) {
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (ids[middle] < id) low = middle + 1;
        else high = middle;
    }
    return low < n && ids[low] == id ? low : -1;
}

static bool make_numbers(const pli_edge_list *l, numbering *by) {
    for (int64_t k = 0; k < l->n; k++) {
        by->most = l->from[k] > by->most ? l->from[k] : by->most;
        by->most = l->to[k] > by->most ? l->to[k] : by->most;
    }
    if (l->vertices >= 0) return number_given(l->vertices, by);
    return by->most < 8 * (uint64_t)l->n + 1024 ? number_small(l, by) : number_any(l, by);
}

static uint32_t number_of(const numbering *by, const pli_edge_list *l, uint64_t id) {
    if (l->vertices >= 0) return (uint32_t)(id - 1);
    return by->number != NULL ? by->number[id] : (uint32_t)find(by->id, by->n, id);
}

/* --- edges -------------------------------------------------------------------------------------------------------- */

/* The pairs of numbers [n]: without loops where they are dropped, with the way back where edges go both ways. */
typedef struct pairs {
    int64_t   n;
    uint32_t *from, *to;
    float    *weight;
} pairs;

static plait_status make_pairs(plait_edges *e, const pli_edge_list *l, const plait_edges_opts *o,
                               const numbering *by, pairs *p, plait_error *err) {
    const bool    both = l->undirected || (o->undirected && !l->both_ways);
    const int64_t most = both ? 2 * l->n : l->n;
    if (most > (int64_t)UINT32_MAX - 1)
        return pli_fail(err, PLAIT_ESHAPE, "%lld edges, both ways: a graph has at most 2^32 - 2", (long long)most);
    p->from = pli_array((size_t)most, sizeof *p->from);
    p->to = pli_array((size_t)most, sizeof *p->to);
    if (l->weight != NULL) p->weight = pli_array((size_t)most, sizeof *p->weight);
    if (p->from == NULL || p->to == NULL || (l->weight != NULL && p->weight == NULL))
        return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld edges", (long long)most);
    for (int64_t k = 0; k < l->n; k++) {
        const uint32_t from = number_of(by, l, l->from[k]), to = number_of(by, l, l->to[k]);
        e->loops += from == to;
        if (from == to && o->drop_loops) continue;
        for (int back = 0; back <= (both && from != to); back++) {
            p->from[p->n] = back ? to : from;
            p->to[p->n] = back ? from : to;
            if (p->weight != NULL) p->weight[p->n] = l->weight[k];
            p->n++;
        }
    }
    return PLAIT_OK;
}

/* Counts edges that equal the one before them in their row, and drops them if that is asked for. */
static void see_doubles(plait_edges *e, bool drop) {
    pli_neighbors *in = &e->in;
    int64_t        to = 0, begin = 0;
    for (int64_t v = 0; v < in->n; v++) {
        const int64_t end = in->start[v + 1], row = to;
        for (int64_t k = begin; k < end; k++) {
            const bool again = k > begin && in->near[k] == in->near[k - 1];
            e->doubles += again;
            if (again && drop) continue;
            in->near[to] = in->near[k];
            if (in->weight != NULL) in->weight[to] = in->weight[k];
            to++;
        }
        begin = end;
        in->start[v] = row;
    }
    in->start[in->n] = to;
}

static plait_status finish(plait_edges *e, plait_error *err) {
    e->m = e->in.start[e->n];
    e->out = pli_calloc((size_t)e->n, sizeof *e->out);
    if (e->out == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld degrees", (long long)e->n);
    for (int64_t k = 0; k < e->m; k++) e->out[e->in.near[k]]++;
    e->hash = pli_hash_bytes(e->id, (size_t)e->n * sizeof *e->id, (uint64_t)e->n);
    e->hash = pli_hash_bytes(e->in.near, (size_t)e->m * sizeof *e->in.near, e->hash);
    if (e->in.weight != NULL) e->hash = pli_hash_bytes(e->in.weight, (size_t)e->m * sizeof *e->in.weight, e->hash);
    return PLAIT_OK;
}

/* A file may promise more vertices than there is memory for. */
static plait_status check_memory(const pli_edge_list *l, plait_error *err) {
    const double vertices = l->vertices >= 0 ? (double)l->vertices : 0, edges = (double)l->n;
    const double need = 28 * vertices + 20 * edges, has = (double)pli_memory_bytes();
    if (need <= has) return PLAIT_OK;
    return pli_fail(err, PLAIT_ENOMEM, "a graph of %.0f vertices and %.0f edges needs about %.1f GB, and %.1f GB are "
                    "free", vertices, edges, need / 1e9, has / 1e9);
}

static plait_status make(plait_edges *e, const pli_edge_list *l, const plait_edges_opts *o, plait_error *err) {
    numbering    by = { 0 };
    pairs        p = { 0 };
    plait_status status = check_memory(l, err);
    if (status == PLAIT_OK && !make_numbers(l, &by))
        status = pli_fail(err, PLAIT_ENOMEM, "no memory for the ids of %lld edges", (long long)l->n);
    e->id = by.id;
    e->n = by.n;
    if (status == PLAIT_OK && by.n > (int64_t)UINT32_MAX - 1)
        status = pli_fail(err, PLAIT_ESHAPE, "%lld vertices: a graph has at most 2^32 - 2", (long long)by.n);
    if (status == PLAIT_OK) status = make_pairs(e, l, o, &by, &p, err);
    pli_free(by.number);
    if (status == PLAIT_OK && !pli_neighbors_make(e->n, p.n, p.from, p.to, p.weight, &e->in))
        status = pli_fail(err, PLAIT_ENOMEM, "no memory for %lld edges", (long long)p.n);
    pli_free(p.from);
    pli_free(p.to);
    pli_free(p.weight);
    if (status < 0) return status;
    see_doubles(e, o->drop_doubles);
    return finish(e, err);
}

static plait_status take_opts(const plait_edges_opts *opts, plait_edges_opts *all, plait_error *err) {
    plait_edges_opts_init(all);
    if (opts == NULL) return PLAIT_OK;
    return pli_sized_take(all, sizeof *all, PLI_SIZED_END(plait_edges_opts, drop_doubles), opts, "plait_edges_opts",
                          err);
}

/* --- the calls ---------------------------------------------------------------------------------------------------- */

static plait_status make_edges(const pli_edge_list *l, const plait_edges_opts *o, plait_edges **out,
                               plait_error *err) {
    plait_edges *e = pli_calloc(1, sizeof *e);
    if (e == NULL || !pli_edges_ways_make(e)) {
        pli_free(e);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a graph");
    }
    const plait_status status = make(e, l, o, err);
    if (status < 0) plait_edges_destroy(&e);
    else *out = e;
    return status;
}

plait_status plait_edges_read(const char *path, const plait_edges_opts *opts, plait_edges **edges_out,
                              plait_error *error_out) {
    plait_edges_opts o;
    pli_edge_list    list;
    PLI_TRY(PLI_GIVEN(error_out, path));
    PLI_TRY(PLI_GIVEN(error_out, edges_out));
    PLI_TRY(take_opts(opts, &o, error_out));
    PLI_TRY(pli_edge_list_read(path, o.format, &list, error_out));
    const plait_status status = make_edges(&list, &o, edges_out, error_out);
    pli_edge_list_free(&list);
    return status;
}

plait_status plait_edges_from_memory(int64_t n, const uint64_t *from, const uint64_t *to, const float *weight,
                                     const plait_edges_opts *opts, plait_edges **edges_out, plait_error *error_out) {
    plait_edges_opts o;
    PLI_TRY(PLI_GIVEN_OF(error_out, n, from));
    PLI_TRY(PLI_GIVEN_OF(error_out, n, to));
    PLI_TRY(PLI_GIVEN(error_out, edges_out));
    PLI_TRY(take_opts(opts, &o, error_out));
    if (n < 1 || n > (int64_t)UINT32_MAX - 1)
        return pli_fail(error_out, PLAIT_EINVAL, "plait_edges_from_memory: %lld edges: expected 1 to 2^32 - 2",
                        (long long)n);
    for (int64_t k = 0; weight != NULL && k < n; k++)
        if (weight[k] - weight[k] != 0)
            return pli_fail(error_out, PLAIT_EINVAL, "plait_edges_from_memory: weight %lld is not finite",
                            (long long)k);
    /* Borrowed for reading: nothing below writes to a list. */
    const pli_edge_list list = { .n = n, .from = (uint64_t *)from, .to = (uint64_t *)to, .weight = (float *)weight,
                                 .vertices = -1 };
    return make_edges(&list, &o, edges_out, error_out);
}

void plait_edges_destroy(plait_edges **edges) {
    if (edges == NULL || *edges == NULL) return;
    pli_free((*edges)->id);
    pli_free((*edges)->out);
    pli_neighbors_free(&(*edges)->in);
    pli_edges_ways_free(*edges);
    pli_free(*edges);
    *edges = NULL;
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

int64_t plait_edges_vertices(const plait_edges *edges) { return edges != NULL ? edges->n : 0; }
int64_t plait_edges_count(const plait_edges *edges) { return edges != NULL ? edges->m : 0; }
int64_t plait_edges_loops(const plait_edges *edges) { return edges != NULL ? edges->loops : 0; }
int64_t plait_edges_doubles(const plait_edges *edges) { return edges != NULL ? edges->doubles : 0; }
int     plait_edges_weighted(const plait_edges *edges) { return edges != NULL && edges->in.weight != NULL; }

int64_t plait_edges_find(const plait_edges *edges, uint64_t id) {
    return edges != NULL ? find(edges->id, edges->n, id) : -1;
}

uint64_t plait_edges_id(const plait_edges *edges, int64_t vertex) {
    return edges != NULL && vertex >= 0 && vertex < edges->n ? edges->id[vertex] : 0;
}

bool pli_edges_near(const plait_edges *edges, plait_near near, pli_neighbors *out) {
    *out = edges->in;
    out->lent = true;
    if (near == PLAIT_NEAR_IN) return true;
    const pli_neighbors *view = near == PLI_NEAR_SIMPLE ? pli_edges_simple(edges, NULL) : pli_edges_out(edges);
    if (view == NULL) return false;
    if (near == PLAIT_NEAR_BOTH) return pli_neighbors_join(&edges->in, view, out);
    *out = *view;
    out->lent = true;
    return true;
}
