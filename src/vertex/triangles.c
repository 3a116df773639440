/* Triangles of the simple graph, and with them clustering coefficients.
 *
 * Vertices are ranked by degree, and each edge is kept in the row of its lower end only (ranked.c). So every triangle
 * u < v < w is found once, at u, and rows are short, however many edges a hub has. For each u its row is marked in a
 * bitmap; each v of the row then looks which of its own row are marked. Since hubs have the highest ranks, what is
 * looked at most lies close together in the bitmap.
 *
 * Workers of one process share the graph, and the work by runs of rows, dealt in turn. A triangle's edges may lie with
 * three workers, and the cut decides nothing. Each pushes its counts once; sums of whole numbers are exact in
 * any order, so the result is the same under every consistency. Where each process has a part of the graph alone, rows
 * go through a table (triangles_parts.c).
 *
 * Limit: the sum over edges (u, v) of the length of v's row, a bit of the bitmap for each. Papers: Chiba and Nishizeki,
 * "Arboricity and Subgraph Listing Algorithms", SIAM J. Comput. 1985; Latapy, "Main-memory triangle computations for
 * very large (sparse (power-law)) graphs", Theoretical Computer Science 2008 (new-vertex-listing). */
#include "vertex/triangles.h"

#include "vertex/ranked.h"

enum { PIECE = 64 };

typedef struct counting {
    const plait_edges *edges;
    const pli_ranked  *ranked;
    pli_pool          *pool;
    int32_t            workers, rank;
    int64_t          **count;  /* [threads][n] by ranks */
    uint64_t         **mark;   /* [threads][words] */
    bool              *failed; /* [threads] */
    uint64_t          *key;    /* [n] vertices in triangles of the share that is counted, and */
    int64_t           *value;  /* [n] in how many                                               */
} counting;

/* --- counts ------------------------------------------------------------------------------------------------------- */

static bool has_scratch(counting *c, int32_t thread) {
    if (c->count[thread] == NULL) c->count[thread] = pli_calloc((size_t)c->edges->n, sizeof **c->count);
    if (c->mark[thread] == NULL) c->mark[thread] = pli_calloc(pli_bit_words(c->edges->n), sizeof **c->mark);
    c->failed[thread] = c->count[thread] == NULL || c->mark[thread] == NULL;
    return !c->failed[thread];
}

static void count_at(const pli_neighbors *up, int64_t u, uint64_t *mark, int64_t *count) {
    const int64_t begin = up->start[u], end = up->start[u + 1];
    if (end - begin < 2) return;
    for (int64_t k = begin; k < end; k++) pli_bit_set(mark, up->near[k]);
    int64_t all = 0;
    for (int64_t k = begin; k < end; k++) {
        const uint32_t v = up->near[k];
        int64_t        here = 0;
        for (int64_t j = up->start[v], last = up->start[v + 1]; j < last; j++) {
            const uint32_t w = up->near[j];
            const int64_t  hit = (int64_t)(mark[w / 64] >> (w % 64) & 1);
            here += hit;
            count[w] += hit;
        }
        count[v] += here;
        all += here;
    }
    count[u] += all;
    for (int64_t k = begin; k < end; k++) mark[up->near[k] / 64] = 0;
}

/* The worker's i-th run of rows: runs are dealt to the workers in turn. */
static void count_piece(void *user, int64_t i, int32_t thread) {
    counting     *c = user;
    const int64_t n = c->edges->n, first = (i * c->workers + c->rank) * PIECE,
                  last = first + PIECE < n ? first + PIECE : n;
    if (!has_scratch(c, thread)) return;
    for (int64_t u = first; u < last; u++) count_at(&c->ranked->up, u, c->mark[thread], c->count[thread]);
}

/* Counts of all threads, by vertices: those that are not 0. */
static int64_t collect(const counting *c, int32_t threads, uint64_t *key, int64_t *value) {
    int64_t n = 0;
    for (int64_t v = 0; v < c->edges->n; v++) {
        int64_t sum = 0;
        for (int32_t t = 0; t < threads; t++) sum += c->count[t] != NULL ? c->count[t][c->ranked->rank_of[v]] : 0;
        if (sum == 0) continue;
        key[n] = (uint64_t)v;
        value[n++] = sum;
    }
    return n;
}

static plait_status no_memory(const counting *c, const pli_direct *d) {
    return pli_fail(d->err, PLAIT_ENOMEM, "%s: no memory for %lld edges", d->name, (long long)c->edges->m);
}

static plait_status make_room(counting *c, const pli_direct *d) {
    const size_t threads = (size_t)pli_pool_threads(c->pool);
    const size_t n = (size_t)c->edges->n;
    if ((c->ranked = pli_edges_ranked(c->edges, c->pool)) == NULL) return no_memory(c, d);
    c->key = pli_array(n, sizeof *c->key);
    c->value = pli_array(n, sizeof *c->value);
    c->count = pli_calloc(threads, sizeof *c->count);
    c->mark = pli_calloc(threads, sizeof *c->mark);
    c->failed = pli_calloc(threads, sizeof *c->failed);
    const bool made = c->key != NULL && c->value != NULL && c->count != NULL && c->mark != NULL && c->failed != NULL;
    return made ? PLAIT_OK : no_memory(c, d);
}

/* Counts a worker's share of the triangles, and pushes it. */
static plait_status count_share(counting *c, pli_direct *d, int32_t worker) {
    const int32_t threads = pli_pool_threads(c->pool);
    const int64_t pieces = (c->edges->n + PIECE - 1) / PIECE, own = (pieces - worker + c->workers - 1) / c->workers;
    c->rank = worker;
    for (int32_t t = 0; t < threads; t++)
        if (c->count[t] != NULL) memset(c->count[t], 0, (size_t)c->edges->n * sizeof **c->count);
    pli_pool_for(c->pool, own, count_piece, c);
    for (int32_t t = 0; t < threads; t++)
        if (c->failed[t]) return no_memory(c, d);
    const int64_t n = collect(c, threads, c->key, c->value);
    return n > 0 ? plait_table_inc(d->value, n, c->key, c->value, 0) : PLAIT_OK;
}

/* All that there is happens in one clock. With replicas the living count the shares of workers that die in it. */
static plait_status count_all(counting *c, pli_direct *d) {
    plait_status status;
    PLI_TRY(make_room(c, d));
    PLI_TRY(count_share(c, d, d->rank));
    while ((status = pli_direct_clock(d)) == PLAIT_STAND_IN)
        for (int32_t w = 0; w < d->workers; w++)
            if (plait_job_inherits(d->job, w, 0)) PLI_TRY(count_share(c, d, w));
    return status;
}

static void free_counting(counting *c, int32_t threads) {
    for (int32_t t = 0; t < threads; t++) {
        if (c->count != NULL) pli_free(c->count[t]);
        if (c->mark != NULL) pli_free(c->mark[t]);
    }
    pli_free(c->count);
    pli_free(c->mark);
    pli_free(c->failed);
    pli_free(c->key);
    pli_free(c->value);
}

static plait_status run(const char *name, plait_job *job, const pli_vertex_choice *choice, const plait_vertex_cut *cut,
                        int64_t supersteps, void *values_out, plait_vertex_report *report_out) {
    const pli_direct_opts opts = { .name = name, .combine = "add", .type = PLAIT_I64, .own = true,
                                   .survives = true };
    pli_direct            d;
    plait_status          status = pli_direct_begin(&d, job, choice, cut, supersteps, &opts);
    counting c = { .edges = choice->edges, .pool = d.pool, .workers = d.workers, .rank = d.rank };
    if (status == PLAIT_OK) status = choice->edges->again != NULL ? pli_triangles_by_parts(&d) : count_all(&c, &d);
    free_counting(&c, pli_pool_threads(d.pool));
    d.report.supersteps = 1;
    d.report.still = status == PLAIT_OK;
    return pli_direct_end(&d, status, values_out, report_out);
}

plait_status pli_run_triangles(plait_job *job, const pli_vertex_choice *choice, const plait_vertex_cut *cut,
                               int64_t supersteps, void *values_out, plait_vertex_report *report_out) {
    return run("triangles", job, choice, cut, supersteps, values_out, report_out);
}

/* --- clustering coefficients -------------------------------------------------------------------------------------- */

/* Of the simple graph, which is there, or its degrees are. */
static int64_t neighbors_of(const plait_edges *edges, const pli_neighbors *simple, int64_t v) {
    return edges->degree != NULL ? edges->degree[v] : simple->start[v + 1] - simple->start[v];
}

/* NULL where each process has a part alone, and all degrees. */
static const pli_neighbors *simple_of(const plait_edges *edges) {
    return edges->degree != NULL ? NULL : pli_edges_simple(edges, NULL);
}

/* The share of the pairs of a vertex's neighbors that is joined (Watts and Strogatz, Nature 1998); 0 below two
 * neighbors. */
plait_status pli_run_clustering(plait_job *job, const pli_vertex_choice *choice, const plait_vertex_cut *cut,
                                int64_t supersteps, void *values_out, plait_vertex_report *report_out) {
    PLI_TRY(run("clustering", job, choice, cut, supersteps, values_out, report_out));
    const plait_edges   *edges = choice->edges;
    const pli_neighbors *simple = simple_of(edges);
    int64_t             *value = values_out;
    for (int64_t v = 0; value != NULL && v < edges->n; v++) {
        const double d = (double)neighbors_of(edges, simple, v),
                     share = d > 1 ? 2 * (double)value[v] / (d * (d - 1)) : 0;
        memcpy(&value[v], &share, sizeof share);
    }
    return PLAIT_OK;
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

int32_t pli_figures_triangles(const pli_vertex_choice *choice, const int64_t *value, pli_figure *figure) {
    const plait_edges *edges = choice->edges;
    int64_t sum = 0;
    for (int64_t v = 0; v < edges->n; v++) sum += value[v];
    figure[0] = (pli_figure){ .name = "triangles", .whole = sum / 3 };
    return 1;
}

/* Triangles again, from the shares; all closed pairs over all pairs (transitivity), and the shares' mean. */
int32_t pli_figures_clustering(const pli_vertex_choice *choice, const int64_t *value, pli_figure *figure) {
    const plait_edges *edges = choice->edges;
    const pli_neighbors *simple = simple_of(edges);
    double               closed = 0, pairs = 0, mean = 0;
    for (int64_t v = 0; (simple != NULL || edges->degree != NULL) && v < edges->n; v++) {
        double       share;
        const double d = (double)neighbors_of(edges, simple, v), here = d * (d - 1) / 2;
        memcpy(&share, &value[v], sizeof share);
        closed += share * here;
        pairs += here;
        mean += share / (double)edges->n;
    }
    figure[0] = (pli_figure){ .name = "triangles", .whole = (int64_t)(closed / 3 + 0.5) };
    figure[1] = (pli_figure){ .name = "transitivity", .real = pairs > 0 ? closed / pairs : 0, .is_real = true };
    figure[2] = (pli_figure){ .name = "average_clustering", .real = mean, .is_real = true };
    return 3;
}
