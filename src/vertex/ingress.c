/* The part of a graph that a process works on, read without the rest of it. See ingress.h. */
#include "vertex/ingress.h"

#include "comm/comm.h"
#include "vertex/reader.h"

/* How many edges come to each vertex and leave it. */
typedef struct degrees {
    int64_t        *in;
    const uint32_t *out;
    plait_near      near;
} degrees;

typedef struct ingress {
    plait_comm       *comm;
    plait_error      *err;
    pli_building      b;
    pli_ingress      *of; /* the graph has it then */
    plait_vertex_cut *cut;
    pli_edge_file     file;
    int32_t           me;
    degrees           all;
    pli_reader        reader;
    int64_t           joined; /* vertices that have an edge, in any part */
} ingress;

bool pli_ingress_takes(plait_near near, const char *method) {
    pli_cut_hash hash;
    return near <= PLI_NEAR_SIMPLE && (method == NULL || pli_is(method, "range") || pli_is(method, "metis") ||
                                       pli_cut_hash_find(method, 1, &hash));
}

static plait_status no_memory(const ingress *g) { return pli_building_no_memory(g->of->m, g->err); }

/* The lowest worker's failure is everybody's: that of the earliest piece. Who could not go on because of another has
 * none of its own. */
static plait_status agree(ingress *g, plait_status status) {
    int64_t     first = status < 0 && status != PLAIT_EPEER ? g->me : INT32_MAX;
    plait_error why = *g->err;
    PLI_TRY(plait_comm_allreduce(g->comm, &first, 1, PLAIT_I64, PLAIT_MIN));
    if (first == INT32_MAX) return status;
    PLI_TRY(plait_comm_broadcast(g->comm, &why, sizeof why, (int32_t)first));
    *g->err = why;
    return why.code;
}

/* --- METIS' cut --------------------------------------------------------------------------------------------------- */

/* The whole graph is there for this alone. */
static plait_status cut_whole(ingress *g, uint16_t *label) {
    plait_edges      *edges = NULL;
    plait_vertex_cut *cut = NULL;
    plait_status      status = plait_edges_read(g->of->path, &g->of->opts, &edges, g->err);
    if (status == PLAIT_OK) status = pli_cut_create(edges, g->of->near, "metis", g->cut->parts, &cut, g->err);
    for (int64_t v = 0; status == PLAIT_OK && v < cut->rows.n; v++) {
        const int64_t k = cut->rows.start[v];
        label[v] = k < cut->rows.start[v + 1] && cut->part != NULL ? cut->part[k] : 0;
    }
    plait_vertex_cut_destroy(&cut);
    plait_edges_destroy(&edges);
    return status;
}

static plait_status cut_by_metis(ingress *g) {
    const size_t n = (size_t)g->b.edges->n;
    const int32_t lead = pli_comm_lead(g->comm);
    plait_status  status = PLAIT_OK;
    g->of->label = pli_array(n, sizeof *g->of->label);
    if (g->of->label == NULL) status = no_memory(g);
    if (status == PLAIT_OK && lead == g->me) status = cut_whole(g, g->of->label);
    PLI_TRY(agree(g, status));
    return plait_comm_broadcast(g->comm, g->of->label, n * sizeof *g->of->label, lead);
}

/* --- where the cut goes ------------------------------------------------------------------------------------------- */

static int64_t degree_of(const void *of, int64_t v) {
    const degrees *d = of;
    return (d->near != PLAIT_NEAR_OUT ? d->in[v] : 0) + (d->near != PLAIT_NEAR_IN ? d->out[v] : 0);
}

static int64_t simple_degree_of(const void *of, int64_t v) { return ((const uint32_t *)of)[v]; }

static void cut_range(ingress *g, int64_t edges) {
    const int64_t all = g->of->near >= PLAIT_NEAR_BOTH ? 2 * edges : edges;
    pli_cut_range(g->b.edges->n, all, g->cut->parts, degree_of, &g->all, g->cut->first);
}

static plait_status number(ingress *g) {
    plait_edges *e = g->b.edges;
    degrees     *d = &g->all;
    d->near = g->of->near;
    e->out = pli_array((size_t)e->n, sizeof *e->out);
    d->in = pli_array((size_t)e->n, sizeof *d->in);
    if (e->out == NULL || d->in == NULL || !pli_census_number(&e->names, e->n, d->in, e->out)) return no_memory(g);
    d->out = e->out;
    for (int64_t v = 0; v < e->n; v++) g->joined += d->in[v] + e->out[v] > 0;
    cut_range(g, e->m);
    return PLAIT_OK;
}

/* Of edges that come to each vertex, or leave it, so many were doubles: over all parts. */
static plait_status sum_lost(const ingress *g, const uint32_t *lost, int64_t *sum) {
    for (int64_t v = 0; v < g->b.edges->n; v++) sum[v] = lost[v];
    return plait_comm_allreduce(g->comm, sum, g->b.edges->n, PLAIT_I64, PLAIT_SUM);
}

static plait_status lose(ingress *g, int64_t *sum) {
    plait_edges *e = g->b.edges;
    PLI_TRY(sum_lost(g, g->reader.lost_in, sum));
    for (int64_t v = 0; v < e->n; v++) {
        g->all.in[v] -= sum[v];
        e->m -= sum[v];
    }
    PLI_TRY(sum_lost(g, g->reader.lost_out, sum));
    for (int64_t v = 0; v < e->n; v++) e->out[v] -= (uint32_t)sum[v];
    cut_range(g, e->m);
    return PLAIT_OK;
}

/* Doubles have been dropped: so vertices have fewer edges. */
static plait_status lose_doubles(ingress *g) {
    int64_t     *sum = pli_array((size_t)g->b.edges->n, sizeof *sum);
    plait_status status = agree(g, sum != NULL ? PLAIT_OK : no_memory(g));
    if (status == PLAIT_OK) status = lose(g, sum);
    pli_free(sum);
    return status;
}

/* How long the rows of the simple graph are, and where the cut goes by that. */
static plait_status cut_simple(ingress *g) {
    plait_edges  *e = g->b.edges;
    const int64_t n = e->n, *start = g->reader.rows.start;
    int64_t      *length = pli_array((size_t)n, sizeof *length), all = 0;
    e->degree = pli_array((size_t)n, sizeof *e->degree);
    plait_status status = agree(g, length != NULL && e->degree != NULL ? PLAIT_OK : no_memory(g));
    for (int64_t v = 0; status == PLAIT_OK && v < n; v++) length[v] = start[v + 1] - start[v];
    if (status == PLAIT_OK) status = plait_comm_allreduce(g->comm, length, n, PLAIT_I64, PLAIT_SUM);
    g->joined = 0;
    for (int64_t v = 0; status == PLAIT_OK && v < n; v++) {
        e->degree[v] = (uint32_t)length[v];
        g->joined += length[v] > 0;
        all += length[v];
    }
    if (status == PLAIT_OK) pli_cut_range(n, all, g->cut->parts, simple_degree_of, e->degree, g->cut->first);
    pli_free(length);
    return status;
}

/* --- the part ----------------------------------------------------------------------------------------------------- */

static bool note_lost(pli_reader *r, int64_t n) {
    r->lost_in = pli_calloc((size_t)n, sizeof *r->lost_in);
    r->lost_out = pli_calloc((size_t)n, sizeof *r->lost_out);
    return r->lost_in != NULL && r->lost_out != NULL;
}

static void forget_lost(pli_reader *r) {
    pli_free(r->lost_in);
    pli_free(r->lost_out);
    r->lost_in = r->lost_out = NULL;
}

/* Cuts anew by what rows have shown. Over the cut `range` those of which another part has become then go there. */
static plait_status cut_anew(ingress *g, bool drops) {
    const size_t  bytes = ((size_t)g->cut->parts + 1) * sizeof *g->cut->first;
    const bool    simple = g->of->near == PLI_NEAR_SIMPLE;
    int64_t *const was = pli_array((size_t)g->cut->parts + 1, sizeof *was);
    bool          moved = false;
    plait_status  status = agree(g, was != NULL ? PLAIT_OK : no_memory(g));
    if (status == PLAIT_OK) memcpy(was, g->cut->first, bytes);
    if (status == PLAIT_OK && drops) status = lose_doubles(g);
    forget_lost(&g->reader);
    if (status == PLAIT_OK && simple) status = cut_simple(g);
    if (status == PLAIT_OK) moved = !g->cut->splits && memcmp(was, g->cut->first, bytes) != 0;
    pli_free(was);
    if (status < 0 || !moved) return status;
    if (simple) status = pli_reader_move(&g->reader, g->comm, simple_degree_of, g->b.edges->degree, g->err);
    else status = pli_reader_move(&g->reader, g->comm, degree_of, &g->all, g->err);
    return agree(g, status);
}

/* The first pass by numbers has seen what all workers compare, and all later passes. */
static plait_status sign(ingress *g) {
    g->of->sum = g->b.sum = g->reader.b.sum;
    g->of->summed = true;
    return pli_building_filled(&g->b, g->err);
}

static plait_status read_rows(ingress *g) {
    const bool  drops = g->of->opts.drop_doubles != 0;
    pli_reader *r = &g->reader;
    pli_reader_begin(r, g->b.edges, g->cut->first, g->me);
    r->degree = g->all.in;
    r->leave = g->all.out;
    r->spread.comm = g->cut->parts > 1 ? g->comm : NULL;
    PLI_TRY(agree(g, !drops || note_lost(r, g->b.edges->n) ? PLAIT_OK : no_memory(g)));
    plait_status status = pli_reader_rows(r, &g->file, g->err);
    if (status == PLAIT_OK) status = sign(g);
    PLI_TRY(agree(g, status));
    return drops || g->of->near == PLI_NEAR_SIMPLE ? cut_anew(g, drops) : PLAIT_OK;
}

/* Of the parts' edges with a weight below 0 that which is first in the rows of edges in. */
static plait_status find_below(ingress *g) {
    const int32_t workers = g->cut->parts;
    pli_edge     *each = pli_array((size_t)workers, sizeof *each), *least = &g->b.edges->below;
    plait_status  status = agree(g, each != NULL ? PLAIT_OK : no_memory(g));
    if (status == PLAIT_OK) status = plait_comm_allgather(g->comm, &g->reader.below, sizeof *each, each);
    for (int32_t w = 0; status == PLAIT_OK && w < workers; w++)
        if (each[w].weight < 0 && (!(least->weight < 0) || each[w].to < least->to ||
                                   (each[w].to == least->to && each[w].from < least->from)))
            *least = each[w];
    pli_free(each);
    return status;
}

/* What all parts come to, and of the cut what others ask it. */
static plait_status sum_up(ingress *g, int64_t edges, int64_t copies) {
    plait_vertex_cut *cut = g->cut;
    const size_t      parts = (size_t)cut->parts;
    int64_t          *sum = pli_calloc(parts + 2, sizeof *sum), most = 0, all = 0;
    plait_status      status = agree(g, sum != NULL ? PLAIT_OK : no_memory(g));
    if (status == PLAIT_OK) {
        sum[g->me] = edges;
        sum[parts] = copies;
        sum[parts + 1] = g->reader.doubles;
        status = plait_comm_allreduce(g->comm, sum, (int64_t)parts + 2, PLAIT_I64, PLAIT_SUM);
    }
    for (size_t p = 0; status == PLAIT_OK && p < parts; p++) {
        most = sum[p] > most ? sum[p] : most;
        all += sum[p];
    }
    if (status == PLAIT_OK) {
        cut->replication = g->joined > 0 ? (double)sum[parts] / (double)g->joined : 1;
        cut->imbalance = all > 0 ? (double)most * cut->parts / (double)all : 1;
        g->b.edges->doubles = sum[parts + 1];
    }
    pli_free(sum);
    return status;
}

static plait_status pass_over(void *user, const pli_edge_list *l, plait_error *err) {
    (void)user;
    (void)l;
    (void)err;
    return PLAIT_OK;
}

/* Pieces are not what the file's head promises: who goes through all of it finds out why. */
static plait_status tell_why(const ingress *g) {
    PLI_TRY(pli_edge_file_pass(&g->file, pass_over, NULL, g->err));
    return pli_edges_changed(g->err);
}

/* What the pieces come to. */
static plait_status add_pieces(ingress *g) {
    pli_building *b = &g->b;
    int64_t       sum[] = { b->m, b->edges->loops, b->weighted, b->listed };
    PLI_TRY(plait_comm_allreduce(g->comm, sum, 4, PLAIT_I64, PLAIT_SUM));
    PLI_TRY(plait_comm_allreduce(g->comm, &b->promised, 1, PLAIT_I64, PLAIT_MAX));
    b->m = sum[0];
    b->edges->loops = sum[1];
    b->weighted = sum[2] > 0; /* one without edges has seen no weight */
    if (b->promised >= 0 && sum[3] != b->promised) return tell_why(g);
    if (sum[3] == 0 && b->vertices < 1) return pli_edges_none(g->of->path, g->err);
    PLI_TRY(pli_building_is_few(b, g->err));
    return pli_census_merge(g->comm, &b->edges->names);
}

/* Pieces of different files would make a graph that nobody has. */
static plait_status is_same_file(ingress *g) {
    const int64_t mark = (int64_t)(pli_edge_file_mark(&g->file) >> 1);
    int64_t       both[2] = { mark, -mark };
    PLI_TRY(plait_comm_allreduce(g->comm, both, 2, PLAIT_I64, PLAIT_MAX));
    if (both[0] == -both[1]) return PLAIT_OK;
    return pli_fail(g->err, PLAIT_EMISMATCH, "%s: it is not the same file for all processes", g->of->path);
}

static plait_status count_pieces(ingress *g) {
    const plait_status status =
        pli_edge_file_piece(&g->file, g->me, g->cut->parts, pli_building_count, &g->b, g->err);
    PLI_TRY(agree(g, status));
    return add_pieces(g);
}

static plait_status count_all(ingress *g) {
    if (g->cut->parts > 1) PLI_TRY(count_pieces(g));
    else PLI_TRY(pli_edge_file_pass(&g->file, pli_building_count, &g->b, g->err));
    PLI_TRY(pli_building_number(&g->b, g->err));
    g->of->m = g->b.m;
    g->of->both = g->b.both;
    g->of->weighted = g->b.weighted;
    return number(g);
}

static plait_status read_part(ingress *g) {
    int64_t copies = 0;
    if (g->cut->parts > 1) PLI_TRY(is_same_file(g));
    PLI_TRY(agree(g, count_all(g)));
    if (pli_is(g->cut->method, "metis") && g->cut->parts > 1) PLI_TRY(cut_by_metis(g));
    PLI_TRY(read_rows(g));
    pli_census_slim(&g->b.edges->names);
    pli_free(g->all.in);
    g->all.in = NULL;
    g->cut->rows.n = g->b.edges->n;
    const int64_t edges = g->reader.rows.start[g->reader.rows.n];
    PLI_TRY(find_below(g));
    g->cut->mine = pli_calloc(1, sizeof *g->cut->mine);
    const bool made = g->cut->mine != NULL && pli_reader_part(&g->reader, g->cut->mine, &copies);
    PLI_TRY(agree(g, made ? PLAIT_OK : no_memory(g)));
    return sum_up(g, edges, copies);
}

/* --- the call ----------------------------------------------------------------------------------------------------- */

static plait_status begin(ingress *g, const char *path, const plait_edges_opts *o, plait_near near,
                          const char *method) {
    const int32_t parts = plait_comm_workers(g->comm);
    g->of = pli_calloc(1, sizeof *g->of);
    g->cut = pli_calloc(1, sizeof *g->cut);
    if (g->of == NULL || g->cut == NULL) return pli_fail(g->err, PLAIT_ENOMEM, "no memory for a cut");
    *g->of = (pli_ingress){ .path = path, .opts = *o, .near = near };
    const bool hashed = pli_cut_hash_find(method, parts, &g->of->hash), metis = pli_is(method, "metis");
    g->of->hashed = hashed && parts > 1;
    g->cut->first = pli_calloc((size_t)parts + 1, sizeof *g->cut->first);
    g->cut->near = near;
    g->cut->parts = parts;
    g->cut->mine_is = g->me;
    g->cut->splits = (hashed || metis) && parts > 1;
    g->cut->method = hashed ? g->of->hash.grid ? "grid" : "random" : metis ? "metis" : "range";
    if (g->cut->first == NULL) return pli_fail(g->err, PLAIT_ENOMEM, "no memory for a cut");
    PLI_TRY(pli_edge_file_open(path, o->format, &g->file, g->err));
    PLI_TRY(pli_building_begin(&g->b, g->file.bytes / 16, &g->of->opts, parts, g->err));
    g->b.edges->again = g->of;
    g->cut->edges = g->b.edges;
    return PLAIT_OK;
}

plait_status pli_ingress_read(plait_comm *comm, const char *path, const plait_edges_opts *opts, plait_near near,
                              const char *method, plait_edges **edges_out, plait_vertex_cut **cut_out) {
    ingress g = { .comm = comm, .err = pli_comm_error(comm), .me = plait_comm_rank(comm) };
    plait_edges_opts o;
    PLI_TRY(pli_edges_take_opts(opts, &o, g.err));
    if (!pli_ingress_takes(near, method))
        return pli_fail(g.err, PLAIT_EREFUSED, "the cut '%s' needs the whole graph in each process", method);
    plait_status status = agree(&g, begin(&g, path, &o, near, method));
    if (status == PLAIT_OK) status = read_part(&g);
    pli_edge_file_close(&g.file);
    forget_lost(&g.reader);
    pli_reader_end(&g.reader);
    pli_free(g.all.in);
    if (status == PLAIT_OK) {
        *edges_out = g.b.edges;
        *cut_out = g.cut;
        return PLAIT_OK;
    }
    plait_vertex_cut_destroy(&g.cut);
    if (g.b.edges == NULL) pli_ingress_free(&g.of); /* else the graph has it */
    plait_edges_destroy(&g.b.edges);
    return status;
}
