/* A graph in memory: vertices are numbered by their ids, edges lie in the row of the vertex that they come to. See
 * plait/vertex.h. */
#include "base/hash.h"
#include "base/sized.h"
#include "data/edges/edges.h"
#include "vertex/census.h"
#include "vertex/vertex.h"

enum { SMALL = 1024 /* ids below have a place in a table by id, in any graph */ };

void (plait_edges_opts_init)(plait_edges_opts *opts) {
    if (opts != NULL) *opts = (plait_edges_opts){ .size = sizeof *opts };
}

void plait_edges_opts_init_sized(plait_edges_opts *opts, size_t size) {
    plait_edges_opts all;
    (plait_edges_opts_init)(&all);
    pli_sized_give(opts, size, &all, sizeof all);
}

/* --- two passes over the edges ------------------------------------------------------------------------------------ */

/* Where the edges come from: a file, through which each pass goes anew, or a list. */
typedef struct origin {
    const pli_edge_file *file;
    const pli_edge_list *list;
} origin;

static plait_status each(const origin *of, pli_edges_take_fn *take, void *user, plait_error *err) {
    return of->file != NULL ? pli_edge_file_pass(of->file, take, user, err) : take(user, of->list, err);
}

typedef struct building {
    plait_edges            *edges;
    const plait_edges_opts *opts;
    pli_census              census;
    bool                    begun, both, weighted; /* both: edges go both ways */
    int64_t                 m;
} building;

/* The first pass counts how many edges come to each vertex and leave it; then each row has its place, and the second
 * pass fills rows. So nothing is there but the graph itself and its vertices' ids. */
static void see_head(building *b, const pli_edge_list *l) {
    b->begun = true;
    b->both = l->undirected || (b->opts->undirected && !l->both_ways);
}

/* A file may promise more vertices than there is memory for. */
static plait_status check_memory(const building *b, int64_t given, plait_error *err) {
    const double vertices = (double)given, edges = (double)b->m, of_edge = b->weighted ? 8 : 4;
    const double need = 28 * vertices + of_edge * edges, has = (double)pli_memory_bytes();
    if (need <= has) return PLAIT_OK;
    return pli_fail(err, PLAIT_ENOMEM, "a graph of %.0f vertices and %.0f edges needs about %.1f GB, and %.1f GB are "
                    "free", vertices, edges, need / 1e9, has / 1e9);
}

static plait_status no_memory(int64_t edges, plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld edges", (long long)edges);
}

static plait_status begin_count(building *b, const pli_edge_list *l, plait_error *err) {
    see_head(b, l);
    if (l->vertices < 0) return PLAIT_OK;
    b->m = pli_edge_list_all(l);
    PLI_TRY(check_memory(b, l->vertices, err));
    b->m = 0;
    return pli_census_give(&b->census, l->vertices) ? PLAIT_OK : no_memory(pli_edge_list_all(l), err);
}

static plait_status count(void *user, const pli_edge_list *l, plait_error *err) {
    building *b = user;
    if (!b->begun) PLI_TRY(begin_count(b, l, err));
    b->weighted = l->weight != NULL;
    for (int64_t k = 0; k < l->n; k++) {
        const bool     loop = l->from[k] == l->to[k];
        const uint32_t go = !(loop && b->opts->drop_loops), back = go && b->both && !loop;
        b->edges->loops += loop;
        b->m += go + back;
        if (!pli_census_add(&b->census, l->from[k], back, go) || !pli_census_add(&b->census, l->to[k], go, back))
            return no_memory(pli_edge_list_all(l), err);
    }
    if (b->m <= (int64_t)UINT32_MAX - 1) return PLAIT_OK;
    return pli_fail(err, PLAIT_ESHAPE, "%lld edges, both ways: a graph has at most 2^32 - 2", (long long)b->m);
}

/* Numbers the ids, and makes room for rows. */
static plait_status make_room(building *b, plait_error *err) {
    plait_edges *e = b->edges;
    e->n = pli_census_count(&b->census);
    if (e->n > (int64_t)UINT32_MAX - 1)
        return pli_fail(err, PLAIT_ESHAPE, "%lld vertices: a graph has at most 2^32 - 2", (long long)e->n);
    PLI_TRY(check_memory(b, e->n, err));
    e->id = pli_array((size_t)e->n, sizeof *e->id);
    e->out = pli_array((size_t)e->n, sizeof *e->out);
    if (e->id == NULL || e->out == NULL || !pli_neighbors_room(e->n, b->m, b->weighted, &e->in) ||
        !pli_census_number(&b->census, e->n, e->id, e->in.start + 2, e->out))
        return no_memory(b->m, err);
    pli_neighbors_begin(&e->in);
    b->m = 0;
    return PLAIT_OK;
}

/* A file that is written to meanwhile may have others. */
static bool place(building *b, int64_t from, int64_t to, const float *weight) {
    pli_neighbors *in = &b->edges->in;
    if (from < 0 || to < 0 || in->start[to + 1] >= in->start[in->n + 1]) return false;
    const int64_t at = in->start[to + 1]++;
    in->near[at] = (uint32_t)from;
    if (in->weight != NULL) in->weight[at] = *weight;
    b->m++;
    return true;
}

static plait_status fill(void *user, const pli_edge_list *l, plait_error *err) {
    building *b = user;
    bool      placed = l->weight != NULL || b->edges->in.weight == NULL;
    for (int64_t k = 0; placed && k < l->n; k++) {
        const int64_t from = pli_census_find(&b->census, l->from[k]), to = pli_census_find(&b->census, l->to[k]);
        const float  *weight = l->weight != NULL ? &l->weight[k] : NULL;
        if (from == to && b->opts->drop_loops && from >= 0) continue;
        placed = place(b, from, to, weight) && (!b->both || from == to || place(b, to, from, weight));
    }
    return placed ? PLAIT_OK : pli_fail(err, PLAIT_EFORMAT, "the graph's file was written to while it was read");
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
            if (again && drop) {
                e->out[in->near[k]]--;
                continue;
            }
            in->near[to] = in->near[k];
            if (in->weight != NULL) in->weight[to] = in->weight[k];
            to++;
        }
        begin = end;
        in->start[v] = row;
    }
    in->start[in->n] = to;
}

static void finish(plait_edges *e) {
    e->m = e->in.start[e->n];
    e->hash = pli_hash_bytes(e->id, (size_t)e->n * sizeof *e->id, (uint64_t)e->n);
    e->hash = pli_hash_bytes(e->in.near, (size_t)e->m * sizeof *e->in.near, e->hash);
    if (e->in.weight != NULL) e->hash = pli_hash_bytes(e->in.weight, (size_t)e->m * sizeof *e->in.weight, e->hash);
}

static plait_status build(building *b, const origin *of, plait_error *err) {
    PLI_TRY(each(of, count, b, err));
    PLI_TRY(make_room(b, err));
    const int64_t all = b->edges->in.start[b->edges->n + 1];
    PLI_TRY(each(of, fill, b, err));
    if (b->m != all) return pli_fail(err, PLAIT_EFORMAT, "the graph's file was written to while it was read");
    pli_census_free(&b->census);
    if (!pli_neighbors_sort(&b->edges->in)) return no_memory(all, err);
    see_doubles(b->edges, b->opts->drop_doubles);
    finish(b->edges);
    return PLAIT_OK;
}

static plait_status take_opts(const plait_edges_opts *opts, plait_edges_opts *all, plait_error *err) {
    plait_edges_opts_init(all);
    if (opts == NULL) return PLAIT_OK;
    return pli_sized_take(all, sizeof *all, PLI_SIZED_END(plait_edges_opts, drop_doubles), opts, "plait_edges_opts",
                          err);
}

/* --- the calls ---------------------------------------------------------------------------------------------------- */

static plait_status make_edges(const origin *of, uint64_t limit, const plait_edges_opts *o, plait_edges **out,
                               plait_error *err) {
    plait_edges *e = pli_calloc(1, sizeof *e);
    if (e == NULL || !pli_edges_ways_make(e)) {
        pli_free(e);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a graph");
    }
    building b = { .edges = e, .opts = o };
    pli_census_begin(&b.census, limit);
    const plait_status status = build(&b, of, err);
    pli_census_free(&b.census);
    if (status < 0) plait_edges_destroy(&e);
    else *out = e;
    return status;
}

plait_status plait_edges_read(const char *path, const plait_edges_opts *opts, plait_edges **edges_out,
                              plait_error *error_out) {
    plait_edges_opts o;
    pli_edge_file    file;
    PLI_TRY(PLI_GIVEN(error_out, path));
    PLI_TRY(PLI_GIVEN(error_out, edges_out));
    PLI_TRY(take_opts(opts, &o, error_out));
    PLI_TRY(pli_edge_file_open(path, o.format, &file, error_out));
    const plait_status status =
        make_edges(&(origin){ &file, NULL }, SMALL + file.bytes / 16, &o, edges_out, error_out);
    pli_edge_file_close(&file);
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
    return make_edges(&(origin){ NULL, &list }, SMALL + 2 * (uint64_t)n, &o, edges_out, error_out);
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
    int64_t low = 0, high = edges != NULL ? edges->n : 0;
    const int64_t n = high;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (edges->id[middle] < id) low = middle + 1;
        else high = middle;
    }
    return low < n && edges->id[low] == id ? low : -1;
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
