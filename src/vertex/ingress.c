/* The part of a graph that a process works on, read without the rest of it. See ingress.h. */
#include "vertex/ingress.h"

#include "comm/comm.h"
#include "vertex/bits.h"
#include "vertex/building.h"

/* How many edges come to each vertex and leave it. */
typedef struct degrees {
    int64_t        *in;
    const uint32_t *out;
    plait_near      near;
} degrees;

typedef struct ingress {
    pli_building      b;
    plait_vertex_cut *cut;
    pli_cut_hash      hash; /* of a vertex cut */
    int32_t           me;
    bool              counts;  /* the pass counts entries, and places none */
    degrees           all;
    pli_neighbors     in, out; /* the part's rows by all vertices' numbers; start NULL: it has none that way */
    int64_t           joined;  /* vertices that have an edge, in any part */
} ingress;

bool pli_ingress_takes(plait_near near, const char *method, const plait_edges_opts *opts) {
    pli_cut_hash hash;
    return near <= PLI_NEAR_SIMPLE && !opts->drop_doubles &&
           (method == NULL || pli_is(method, "range") || pli_cut_hash_find(method, 1, &hash));
}

/* --- passes ------------------------------------------------------------------------------------------------------- */

static bool is_mine(const ingress *g, int64_t row, int64_t near) {
    if (g->cut->splits) return pli_cut_hash_part(&g->hash, row, near) == g->me;
    return row >= g->cut->first[g->me] && row < g->cut->first[g->me + 1];
}

static bool take(const ingress *g, pli_neighbors *rows, int64_t row, int64_t near, const float *weight) {
    if (rows->start == NULL || !is_mine(g, row, near)) return true;
    if (!g->counts) return pli_building_place(rows, row, near, weight);
    rows->start[row + 2]++;
    return true;
}

/* Of edges below 0 that which comes first in the rows of edges in, as in a whole graph. */
static void see_weight(plait_edges *e, int64_t from, int64_t to, const float *weight) {
    pli_edge *least = &e->below;
    if (weight == NULL || !(*weight < 0)) return;
    if (least->weight < 0 && (least->to < to || (least->to == to && least->from <= from))) return;
    *least = (pli_edge){ from, to, *weight };
}

static bool take_edge(void *user, int64_t from, int64_t to, const float *weight) {
    ingress *g = user;
    see_weight(g->b.edges, from, to, weight);
    return take(g, &g->in, to, from, weight) && take(g, &g->out, from, to, weight);
}

static plait_status take_edges(void *user, const pli_edge_list *l, plait_error *err) {
    ingress *g = user;
    return pli_building_each(&g->b, l, take_edge, g, err);
}

static plait_status pass(ingress *g, const pli_edge_file *file, bool counts, plait_error *err) {
    g->counts = counts;
    g->b.m = 0;
    g->b.sum = 0;
    PLI_TRY(pli_edge_file_pass(file, take_edges, g, err));
    return pli_building_filled(&g->b, err);
}

/* --- where the cut goes ------------------------------------------------------------------------------------------- */

static int64_t degree_of(const void *of, int64_t v) {
    const degrees *d = of;
    return (d->near != PLAIT_NEAR_OUT ? d->in[v] : 0) + (d->near != PLAIT_NEAR_IN ? d->out[v] : 0);
}

/* Room for the starts of rows. Those before the part's first row are never written to, and take no memory. */
static bool begin_rows(const ingress *g, pli_neighbors *rows) {
    rows->n = g->b.edges->n;
    rows->start = pli_calloc((size_t)rows->n + 2, sizeof *rows->start);
    return rows->start != NULL;
}

/* Room for the part's rows. Over the cut `range` it is known how long each is. */
static bool make_starts(ingress *g) {
    const degrees *d = &g->all;
    if ((d->near != PLAIT_NEAR_OUT && !begin_rows(g, &g->in)) || (d->near != PLAIT_NEAR_IN && !begin_rows(g, &g->out)))
        return false;
    for (int64_t v = g->cut->first[g->me]; !g->cut->splits && v < g->cut->first[g->me + 1]; v++) {
        if (g->in.start != NULL) g->in.start[v + 2] = d->in[v];
        if (g->out.start != NULL) g->out.start[v + 2] = d->out[v];
    }
    return true;
}

static bool number(ingress *g) {
    plait_edges *e = g->b.edges;
    degrees     *d = &g->all;
    e->out = pli_array((size_t)e->n, sizeof *e->out);
    d->in = pli_array((size_t)e->n, sizeof *d->in);
    if (e->out == NULL || d->in == NULL || !pli_census_number(&e->names, e->n, d->in, e->out)) return false;
    d->out = e->out;
    for (int64_t v = 0; v < e->n; v++) g->joined += d->in[v] + e->out[v] > 0;
    const int64_t edges = g->cut->near >= PLAIT_NEAR_BOTH ? 2 * e->m : e->m;
    pli_cut_range(e->n, edges, g->cut->parts, degree_of, d, g->cut->first);
    return true;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static bool make_rows(const ingress *g, pli_neighbors *rows) {
    const int64_t first = g->cut->splits ? 0 : g->cut->first[g->me];
    if (rows->start == NULL) return true;
    for (int64_t v = first; v < rows->n; v++) rows->start[v + 2] += rows->start[v + 1];
    const size_t m = (size_t)rows->start[rows->n + 1];
    rows->near = pli_array(m, sizeof *rows->near);
    if (g->b.weighted) rows->weight = pli_array(m, sizeof *rows->weight);
    return rows->near != NULL && (!g->b.weighted || rows->weight != NULL);
}

static void free_rows(ingress *g) {
    pli_neighbors_free(&g->in);
    pli_neighbors_free(&g->out);
}

/* The part's entries, by the cut as it is. */
static plait_status read_rows(ingress *g, const pli_edge_file *file, plait_error *err) {
    free_rows(g);
    if (!make_starts(g)) return pli_building_no_memory(g->b.m, err);
    if (g->cut->splits) PLI_TRY(pass(g, file, true, err));
    if (!make_rows(g, &g->in) || !make_rows(g, &g->out)) return pli_building_no_memory(g->b.m, err);
    PLI_TRY(pass(g, file, false, err));
    if ((g->in.start != NULL && !pli_neighbors_sort(&g->in)) || (g->out.start != NULL && !pli_neighbors_sort(&g->out)))
        return pli_building_no_memory(g->b.m, err);
    return PLAIT_OK;
}

/* --- the simple graph --------------------------------------------------------------------------------------------- */

static int64_t simple_degree_of(const void *of, int64_t v) { return ((const uint32_t *)of)[v]; }

/* How long the rows of the simple graph are, and where the cut goes by that. *moved_out: elsewhere than before. */
static plait_status cut_anew(ingress *g, plait_comm *comm, const pli_neighbors *rows, bool *moved_out) {
    plait_vertex_cut *cut = g->cut;
    const int64_t     n = rows->n;
    const size_t      parts = (size_t)cut->parts;
    int64_t          *length = pli_array((size_t)n, sizeof *length), all = 0;
    int64_t          *was = pli_array(parts + 1, sizeof *was);
    plait_status      status = PLAIT_OK;
    cut->degree = pli_array((size_t)n, sizeof *cut->degree);
    if (length == NULL || was == NULL || cut->degree == NULL)
        status = pli_building_no_memory(g->b.m, pli_comm_error(comm));
    for (int64_t v = 0; status == PLAIT_OK && v < n; v++) length[v] = rows->start[v + 1] - rows->start[v];
    if (status == PLAIT_OK) status = plait_comm_allreduce(comm, length, n, PLAIT_I64, PLAIT_SUM);
    if (status == PLAIT_OK) {
        g->joined = 0;
        for (int64_t v = 0; v < n; v++) {
            cut->degree[v] = (uint32_t)length[v];
            g->joined += length[v] > 0;
            all += length[v];
        }
        memcpy(was, cut->first, (parts + 1) * sizeof *was);
        pli_cut_range(n, all, cut->parts, simple_degree_of, cut->degree, cut->first);
        *moved_out = memcmp(was, cut->first, (parts + 1) * sizeof *was) != 0;
    }
    pli_free(length);
    pli_free(was);
    return status;
}

/* Which edges are doubles is seen in rows alone. So the rows are read by both degrees, which count doubles, and over
 * the cut `range` once more, if it goes elsewhere without them. */
static plait_status read_simple(ingress *g, plait_comm *comm, const pli_edge_file *file, pli_neighbors *rows) {
    plait_error *err = pli_comm_error(comm);
    bool         moved = false;
    PLI_TRY(read_rows(g, file, err));
    if (!pli_neighbors_simple(&g->in, &g->out, NULL, rows)) return pli_building_no_memory(g->b.m, err);
    PLI_TRY(cut_anew(g, comm, rows, &moved));
    if (!moved || g->cut->splits) return PLAIT_OK;
    pli_neighbors_free(rows);
    PLI_TRY(read_rows(g, file, err));
    return pli_neighbors_simple(&g->in, &g->out, NULL, rows) ? PLAIT_OK : pli_building_no_memory(g->b.m, err);
}

/* All edges between two vertices, the same way, lie in one row of one part. */
static int64_t count_doubles(const pli_neighbors *h) {
    int64_t n = 0;
    for (int64_t v = 0; v < h->n; v++)
        for (int64_t k = h->start[v] + 1; k < h->start[v + 1]; k++) n += h->near[k] == h->near[k - 1];
    return n;
}

/* --- the part ----------------------------------------------------------------------------------------------------- */

/* The vertices that the part has, as bits, and how many are before each word of them. */
typedef struct present {
    uint64_t *bit;
    uint32_t *before;
    size_t    words;
} present;

static int64_t count(const present *p) { return pli_bits_count(p->bit, p->words, p->before); }

static uint32_t rank_of(const present *p, int64_t v) { return (uint32_t)pli_bits_rank(p->bit, p->before, (size_t)v); }

/* Gives the part's vertices numbers of its own, in place. */
static bool renumber(const present *p, pli_part *part, int64_t first) {
    pli_neighbors *h = &part->rows;
    int64_t       *start = pli_array((size_t)part->n + 1, sizeof *start);
    part->key = pli_array((size_t)part->n, sizeof *part->key);
    if (start == NULL || part->key == NULL) {
        pli_free(start);
        return false;
    }
    (void)pli_bits_list(p->bit, p->words, part->key);
    start[0] = 0;
    for (int64_t i = 0; i < part->n; i++) start[i + 1] = h->start[part->key[i] + 1];
    for (int64_t k = 0; k < start[part->n]; k++) h->near[k] = rank_of(p, h->near[k]);
    pli_free(h->start);
    h->start = start;
    h->n = part->n;
    part->own = rank_of(p, first);
    return true;
}

/* Takes the rows. A part that reads most vertices has all, as pli_part_make's. copies: vertices with edges here. */
static bool make_part(plait_vertex_cut *cut, int32_t me, const pli_neighbors *rows, int64_t *copies_out) {
    const int64_t first = cut->first[me], last = cut->first[me + 1];
    pli_part     *part = cut->mine = pli_calloc(1, sizeof *part);
    present       p = { .words = (size_t)rows->n / 64 + 1 };
    if (part == NULL) return false;
    *part = (pli_part){ .owned = last - first, .whole = !cut->splits, .rows = *rows };
    p.bit = pli_calloc(p.words, sizeof *p.bit);
    p.before = pli_array(p.words, sizeof *p.before);
    bool made = p.bit != NULL && p.before != NULL;
    for (int64_t v = 0; made && v < rows->n; v++) {
        if (rows->start[v] < rows->start[v + 1]) pli_bit_set(p.bit, (size_t)v);
        for (int64_t k = rows->start[v]; k < rows->start[v + 1]; k++) pli_bit_set(p.bit, rows->near[k]);
    }
    if (made) *copies_out = count(&p);
    for (int64_t v = first; made && v < last; v++) pli_bit_set(p.bit, (size_t)v);
    if (made) part->n = count(&p);
    if (made && (cut->splits || part->n <= rows->n / 2)) made = renumber(&p, part, first);
    else if (made) part->n = rows->n, part->own = first;
    pli_free(p.bit);
    pli_free(p.before);
    return made;
}

/* What all parts come to, and of the cut what others ask it. */
static plait_status sum_up(ingress *g, plait_comm *comm, int64_t edges, int64_t copies, int64_t doubles) {
    plait_vertex_cut *cut = g->cut;
    const size_t      parts = (size_t)cut->parts;
    int64_t          *sum = pli_calloc(parts + 2, sizeof *sum), most = 0, all = 0;
    if (sum == NULL) return pli_building_no_memory(g->b.m, pli_comm_error(comm));
    sum[g->me] = edges;
    sum[parts] = copies;
    sum[parts + 1] = doubles;
    const plait_status status = plait_comm_allreduce(comm, sum, (int64_t)parts + 2, PLAIT_I64, PLAIT_SUM);
    for (size_t p = 0; p < parts; p++) {
        most = sum[p] > most ? sum[p] : most;
        all += sum[p];
    }
    cut->replication = g->joined > 0 ? (double)sum[parts] / (double)g->joined : 1;
    cut->imbalance = all > 0 ? (double)most * cut->parts / (double)all : 1;
    g->b.edges->doubles = sum[parts + 1];
    pli_free(sum);
    return status;
}

/* The rows that the cut is of. */
static plait_status read_near(ingress *g, plait_comm *comm, const pli_edge_file *file, pli_neighbors *rows) {
    plait_error *err = pli_comm_error(comm);
    if (g->cut->near == PLI_NEAR_SIMPLE) return read_simple(g, comm, file, rows);
    PLI_TRY(read_rows(g, file, err));
    if (g->cut->near == PLAIT_NEAR_BOTH)
        return pli_neighbors_join(&g->in, &g->out, rows) ? PLAIT_OK : pli_building_no_memory(g->b.m, err);
    *rows = g->in.start != NULL ? g->in : g->out;
    rows->lent = true;
    return PLAIT_OK;
}

static plait_status read_part(ingress *g, plait_comm *comm, const pli_edge_file *file) {
    plait_error  *err = pli_comm_error(comm);
    pli_neighbors rows = { 0 };
    int64_t       copies = 0;
    g->all.near = g->cut->near;
    PLI_TRY(pli_edge_file_pass(file, pli_building_count, &g->b, err));
    PLI_TRY(pli_building_number(&g->b, err));
    if (!number(g)) return pli_building_no_memory(g->b.m, err);
    const plait_status status = read_near(g, comm, file, &rows);
    if (status < 0) {
        pli_neighbors_free(&rows);
        return status;
    }
    pli_census_slim(&g->b.edges->names);
    pli_free(g->all.in);
    g->all.in = NULL;
    const int64_t doubles = count_doubles(g->in.start != NULL ? &g->in : &g->out), edges = rows.start[rows.n];
    if (rows.lent) g->in = g->out = (pli_neighbors){ 0 };
    free_rows(g);
    rows.lent = false;
    g->cut->rows.n = rows.n;
    if (!make_part(g->cut, g->me, &rows, &copies)) {
        if (g->cut->mine == NULL) pli_neighbors_free(&rows);
        return pli_building_no_memory(g->b.m, err);
    }
    return sum_up(g, comm, edges, copies, doubles);
}

/* --- the call ----------------------------------------------------------------------------------------------------- */

static plait_status begin(ingress *g, plait_comm *comm, uint64_t ids, const plait_edges_opts *o, plait_near near,
                          const char *method) {
    plait_error  *err = pli_comm_error(comm);
    const int32_t parts = plait_comm_workers(comm);
    *g = (ingress){ .me = plait_comm_rank(comm), .cut = pli_calloc(1, sizeof *g->cut) };
    if (g->cut == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a cut");
    g->cut->first = pli_calloc((size_t)parts + 1, sizeof *g->cut->first);
    g->cut->near = near;
    g->cut->parts = parts;
    g->cut->mine_is = g->me;
    const bool hashed = pli_cut_hash_find(method, parts, &g->hash);
    g->cut->splits = hashed && parts > 1;
    g->cut->method = hashed ? g->hash.grid ? "grid" : "random" : "range";
    if (g->cut->first == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a cut");
    PLI_TRY(pli_building_begin(&g->b, ids, o, parts, err));
    g->cut->edges = g->b.edges;
    return PLAIT_OK;
}

plait_status pli_ingress_read(plait_comm *comm, const char *path, const plait_edges_opts *opts, plait_near near,
                              const char *method, plait_edges **edges_out, plait_vertex_cut **cut_out) {
    plait_error     *err = pli_comm_error(comm);
    plait_edges_opts o;
    pli_edge_file    file;
    ingress          g;
    PLI_TRY(pli_edges_take_opts(opts, &o, err));
    if (!pli_ingress_takes(near, method, &o))
        return pli_fail(err, PLAIT_EREFUSED, "the cut '%s' needs the whole graph in each process", method);
    PLI_TRY(pli_edge_file_open(path, o.format, &file, err));
    plait_status status = begin(&g, comm, file.bytes / 16, &o, near, method);
    if (status == PLAIT_OK) status = read_part(&g, comm, &file);
    pli_edge_file_close(&file);
    free_rows(&g);
    pli_free(g.all.in);
    if (status == PLAIT_OK) {
        *edges_out = g.b.edges;
        *cut_out = g.cut;
        return PLAIT_OK;
    }
    plait_vertex_cut_destroy(&g.cut);
    plait_edges_destroy(&g.b.edges);
    return status;
}
