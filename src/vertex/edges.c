/* A graph in memory: vertices are numbered by their ids, edges lie in the row of the vertex that they come to. See
 * plait/vertex.h; building.h has the order in which it is built. */
#include "base/hash.h"
#include "base/sized.h"
#include "vertex/building.h"
#include "vertex/reader.h"

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

static void see_head(pli_building *b, const pli_edge_list *l) {
    b->begun = true;
    b->both = l->undirected || (b->opts->undirected && !l->both_ways);
}

plait_status pli_building_fits(const pli_building *b, int64_t given, plait_error *err) {
    const double vertices = (double)given, edges = (double)b->m, of_edge = b->weighted ? 8 : 4;
    const double need = 28 * vertices + of_edge * edges / b->parts, has = (double)pli_memory_bytes();
    if (need <= has) return PLAIT_OK;
    return pli_fail(err, PLAIT_ENOMEM, "a graph of %.0f vertices and %.0f edges%s needs about %.1f GB, and %.1f GB are "
                    "free", vertices, edges, b->parts > 1 ? ", of which each process has a part," : "", need / 1e9,
                    has / 1e9);
}

plait_status pli_building_no_memory(int64_t edges, plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld edges", (long long)edges);
}

static plait_status begin_count(pli_building *b, const pli_edge_list *l, plait_error *err) {
    see_head(b, l);
    if (l->vertices < 0) return PLAIT_OK;
    b->m = pli_edge_list_all(l);
    PLI_TRY(pli_building_fits(b, l->vertices, err));
    b->m = 0;
    return pli_census_give(&b->edges->names, l->vertices) ? PLAIT_OK
                                                          : pli_building_no_memory(pli_edge_list_all(l), err);
}

plait_status pli_building_count(void *user, const pli_edge_list *l, plait_error *err) {
    pli_building *b = user;
    pli_census   *names = &b->edges->names;
    if (!b->begun) PLI_TRY(begin_count(b, l, err));
    b->weighted = l->weight != NULL;
    b->listed += l->n;
    b->promised = l->promised;
    b->vertices = l->vertices;
    for (int64_t k = 0; k < l->n; k++) {
        const bool     loop = l->from[k] == l->to[k];
        const uint32_t go = !(loop && b->opts->drop_loops), back = go && b->both && !loop;
        b->edges->loops += loop;
        b->m += go + back;
        if (!pli_census_add(names, l->from[k], back, go) || !pli_census_add(names, l->to[k], go, back))
            return pli_building_no_memory(pli_edge_list_all(l), err);
    }
    return pli_building_is_few(b, err);
}

plait_status pli_building_is_few(const pli_building *b, plait_error *err) {
    if (b->m <= (int64_t)UINT32_MAX - 1) return PLAIT_OK;
    return pli_fail(err, PLAIT_ESHAPE, "%lld edges, both ways: a graph has at most 2^32 - 2", (long long)b->m);
}

plait_status pli_building_number(pli_building *b, plait_error *err) {
    plait_edges *e = b->edges;
    e->n = pli_census_count(&e->names);
    e->m = b->m;
    e->weighted = b->weighted;
    if (e->n > (int64_t)UINT32_MAX - 1)
        return pli_fail(err, PLAIT_ESHAPE, "%lld vertices: a graph has at most 2^32 - 2", (long long)e->n);
    return pli_building_fits(b, e->n, err);
}

/* Numbers the ids, and makes room for rows. */
static plait_status make_room(pli_building *b, plait_error *err) {
    plait_edges *e = b->edges;
    PLI_TRY(pli_building_number(b, err));
    e->id = pli_array((size_t)e->n, sizeof *e->id);
    e->out = pli_array((size_t)e->n, sizeof *e->out);
    if (e->id == NULL || e->out == NULL || !pli_neighbors_room(e->n, b->m, b->weighted, &e->in) ||
        !pli_census_number(&e->names, e->n, e->in.start + 2, e->out))
        return pli_building_no_memory(b->m, err);
    pli_census_ids(&e->names, e->id);
    pli_neighbors_begin(&e->in);
    return PLAIT_OK;
}

bool pli_building_place(pli_neighbors *rows, int64_t row, int64_t near, const float *weight) {
    if (rows->start[row + 1] >= rows->start[rows->n + 1]) return false;
    const int64_t at = rows->start[row + 1]++;
    rows->near[at] = (uint32_t)near;
    if (rows->weight != NULL) rows->weight[at] = *weight;
    return true;
}

static bool place(void *user, int64_t from, int64_t to, const float *weight) {
    return pli_building_place(&((pli_building *)user)->edges->in, to, from, weight);
}

plait_status pli_building_each(pli_building *b, const pli_edge_list *l, pli_edge_fn *fn, void *user,
                               plait_error *err) {
    const plait_edges *e = b->edges;
    bool               same = (l->weight != NULL) == e->weighted || l->n == 0;
    for (int64_t k = 0; same && k < l->n; k++) {
        const int64_t from = pli_census_find(&e->names, l->from[k]), to = pli_census_find(&e->names, l->to[k]);
        const float  *weight = l->weight != NULL ? &l->weight[k] : NULL;
        const bool    loop = from == to, both = b->both && !loop;
        if (from < 0 || to < 0) same = false;
        else if (!(loop && b->opts->drop_loops)) {
            b->m += 1 + both;
            pli_building_sum(b, from, to, weight);
            if (both) pli_building_sum(b, to, from, weight);
            same = fn(user, from, to, weight) && (!both || fn(user, to, from, weight));
        }
    }
    return same ? PLAIT_OK : pli_edges_changed(err);
}

static plait_status fill(void *user, const pli_edge_list *l, plait_error *err) {
    return pli_building_each(user, l, place, user, err);
}

plait_status pli_building_filled(pli_building *b, plait_error *err) {
    plait_edges *e = b->edges;
    if (b->m != e->m) return pli_edges_changed(err);
    const int64_t numbers[] = { e->n, e->m, b->opts->drop_doubles != 0 };
    e->hash = pli_hash_bytes(numbers, sizeof numbers, b->sum);
    e->hash = pli_hash_bytes(e->names.bit, (size_t)e->names.words * sizeof *e->names.bit, e->hash);
    e->hash = pli_hash_bytes(e->names.far, (size_t)e->names.others * sizeof *e->names.far, e->hash);
    return PLAIT_OK;
}

static plait_status build(pli_building *b, const origin *of, plait_error *err) {
    plait_edges *e = b->edges;
    PLI_TRY(each(of, pli_building_count, b, err));
    PLI_TRY(make_room(b, err));
    b->m = 0;
    PLI_TRY(each(of, fill, b, err));
    PLI_TRY(pli_building_filled(b, err));
    pli_census_free(&e->names);
    if (!pli_neighbors_sort(&e->in, NULL)) return pli_building_no_memory(e->m, err);
    const pli_row_losses losses = { .of_near = e->out, .by = UINT32_MAX }; /* -1: so many leave their vertex no more */
    e->doubles = pli_neighbors_doubles(&e->in, b->opts->drop_doubles, &losses);
    e->m = e->in.start[e->n];
    return PLAIT_OK;
}

plait_status pli_edges_take_opts(const plait_edges_opts *opts, plait_edges_opts *all, plait_error *err) {
    plait_edges_opts_init(all);
    if (opts == NULL) return PLAIT_OK;
    return pli_sized_take(all, sizeof *all, PLI_SIZED_END(plait_edges_opts, drop_doubles), opts, "plait_edges_opts",
                          err);
}

/* --- the calls ---------------------------------------------------------------------------------------------------- */

plait_status pli_building_begin(pli_building *b, uint64_t ids, const plait_edges_opts *opts, int32_t parts,
                                plait_error *err) {
    *b = (pli_building){ .edges = pli_calloc(1, sizeof *b->edges), .opts = opts, .parts = parts };
    if (b->edges == NULL || !pli_edges_ways_make(b->edges)) {
        pli_free(b->edges);
        b->edges = NULL;
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a graph");
    }
    pli_census_begin(&b->edges->names, SMALL + ids);
    return PLAIT_OK;
}

static plait_status make_edges(const origin *of, uint64_t ids, const plait_edges_opts *o, plait_edges **out,
                               plait_error *err) {
    pli_building b;
    PLI_TRY(pli_building_begin(&b, ids, o, 1, err));
    const plait_status status = build(&b, of, err);
    if (status < 0) plait_edges_destroy(&b.edges);
    else *out = b.edges;
    return status;
}

plait_status plait_edges_read(const char *path, const plait_edges_opts *opts, plait_edges **edges_out,
                              plait_error *error_out) {
    plait_edges_opts o;
    pli_edge_file    file;
    PLI_TRY(PLI_GIVEN(error_out, path));
    PLI_TRY(PLI_GIVEN(error_out, edges_out));
    PLI_TRY(pli_edges_take_opts(opts, &o, error_out));
    PLI_TRY(pli_edge_file_open(path, o.format, &file, error_out));
    const plait_status status = make_edges(&(origin){ &file, NULL }, file.bytes / 16, &o, edges_out, error_out);
    pli_edge_file_close(&file);
    return status;
}

plait_status plait_edges_from_memory(int64_t n, const uint64_t *from, const uint64_t *to, const float *weight,
                                     const plait_edges_opts *opts, plait_edges **edges_out, plait_error *error_out) {
    plait_edges_opts o;
    PLI_TRY(PLI_GIVEN_OF(error_out, n, from));
    PLI_TRY(PLI_GIVEN_OF(error_out, n, to));
    PLI_TRY(PLI_GIVEN(error_out, edges_out));
    PLI_TRY(pli_edges_take_opts(opts, &o, error_out));
    if (n < 1 || n > (int64_t)UINT32_MAX - 1)
        return pli_fail(error_out, PLAIT_EINVAL, "plait_edges_from_memory: %lld edges: expected 1 to 2^32 - 2",
                        (long long)n);
    for (int64_t k = 0; weight != NULL && k < n; k++)
        if (weight[k] - weight[k] != 0)
            return pli_fail(error_out, PLAIT_EINVAL, "plait_edges_from_memory: weight %lld is not finite",
                            (long long)k);
    /* Borrowed for reading: nothing below writes to a list. */
    const pli_edge_list list = { .n = n, .from = (uint64_t *)from, .to = (uint64_t *)to, .weight = (float *)weight,
                                 .vertices = -1, .promised = -1 };
    return make_edges(&(origin){ NULL, &list }, 2 * (uint64_t)n, &o, edges_out, error_out);
}

void plait_edges_destroy(plait_edges **edges) {
    if (edges == NULL || *edges == NULL) return;
    pli_free((*edges)->id);
    pli_free((*edges)->out);
    pli_census_free(&(*edges)->names);
    pli_neighbors_free(&(*edges)->in);
    pli_edges_ways_free(*edges);
    pli_free((*edges)->degree);
    pli_ingress_free(&(*edges)->again);
    pli_free(*edges);
    *edges = NULL;
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

int64_t plait_edges_vertices(const plait_edges *edges) { return edges != NULL ? edges->n : 0; }
int64_t plait_edges_count(const plait_edges *edges) { return edges != NULL ? edges->m : 0; }
int64_t plait_edges_loops(const plait_edges *edges) { return edges != NULL ? edges->loops : 0; }
int64_t plait_edges_doubles(const plait_edges *edges) { return edges != NULL ? edges->doubles : 0; }
int     plait_edges_weighted(const plait_edges *edges) { return edges != NULL && edges->weighted; }

int64_t plait_edges_find(const plait_edges *edges, uint64_t id) {
    if (edges != NULL && edges->id == NULL) return pli_census_find(&edges->names, id);
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
    return edges != NULL && vertex >= 0 && vertex < edges->n ? pli_edges_id(edges, vertex) : 0;
}

bool pli_edges_below(const plait_edges *edges, pli_edge *edge_out) {
    const pli_neighbors *in = &edges->in;
    *edge_out = edges->below;
    for (int64_t v = 0; in->weight != NULL && v < in->n; v++)
        for (int64_t k = in->start[v]; k < in->start[v + 1]; k++) {
            *edge_out = (pli_edge){ in->near[k], v, in->weight[k] };
            if (in->weight[k] < 0) return true;
        }
    return edges->below.weight < 0;
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
