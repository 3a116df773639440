/* Core numbers of the simple graph: the largest k such that a vertex belongs to a subgraph in which each has k
 * neighbors.
 *
 * Vertices with k neighbors left or fewer are peeled off, k being as small as possible, and take an edge from each of
 * their neighbors; what falls to k then goes, too. The order within one k does not matter. So a worker peels its part
 * down to k by itself, and only then pushes what its neighbors have lost: the table adds. An edge lies with one worker,
 * which takes it away once, when it hears that its end has gone. When nobody has anything to peel, k becomes the least
 * number of neighbors that anybody has left. One worker needs one superstep.
 *
 * Papers: Matula and Beck, "Smallest-last ordering and clustering and graph coloring algorithms", J. ACM 1983;
 * Batagelj and Zaversnik, "An O(m) Algorithm for Cores Decomposition of Networks", 2003. */
#include "vertex/direct.h"

typedef struct peeling {
    pli_direct *d;
    int64_t    *left;  /* [n of part] neighbors that are not peeled yet      */
    int64_t    *lost;  /* [n of part] less than what was pushed              */
    int64_t    *core;  /* [n of part] -1: there yet                          */
    uint32_t   *alive; /* [alives] local numbers                             */
    uint32_t   *queue; /* [n of part] to peel now                            */
    int64_t     alives, queued;
} peeling;

static bool make_room(peeling *p) {
    const size_t n = (size_t)p->d->part.n;
    p->left = pli_array(n, sizeof *p->left);
    p->lost = pli_calloc(n, sizeof *p->lost);
    p->core = pli_array(n, sizeof *p->core);
    p->alive = pli_array(n, sizeof *p->alive);
    p->queue = pli_array(n, sizeof *p->queue);
    if (p->left == NULL || p->lost == NULL || p->core == NULL || p->alive == NULL || p->queue == NULL) return false;
    for (size_t v = 0; v < n; v++) {
        p->core[v] = -1;
        p->alive[p->alives++] = (uint32_t)v;
    }
    return true;
}

static void peel(peeling *p, uint32_t v, int64_t k) {
    p->core[v] = k;
    p->queue[p->queued++] = v;
}

/* Peels all that have k left or fewer, and what that makes so. Returns the least that any other has left. */
static int64_t peel_to(peeling *p, int64_t k) {
    const pli_neighbors *back = &p->d->part.back;
    int64_t              kept = 0, least = INT64_MAX;
    p->queued = 0;
    for (int64_t i = 0; i < p->alives; i++)
        if (p->core[p->alive[i]] < 0 && p->left[p->alive[i]] <= k) peel(p, p->alive[i], k);
    for (int64_t i = 0; i < p->queued; i++)
        for (int64_t e = back->start[p->queue[i]]; e < back->start[p->queue[i] + 1]; e++) {
            const uint32_t u = back->near[e];
            if (p->core[u] >= 0) continue;
            p->lost[u]--;
            if (--p->left[u] <= k) peel(p, u, k);
        }
    for (int64_t i = 0; i < p->alives; i++) {
        const uint32_t v = p->alive[i];
        if (p->core[v] >= 0) continue;
        p->alive[kept++] = v;
        if (p->left[v] < least) least = p->left[v];
    }
    p->alives = kept;
    return least;
}

/* Makes hits of what was lost. */
static void list_lost(peeling *p) {
    pli_direct *d = p->d;
    d->hits = 0;
    for (int64_t v = 0; v < d->part.n; v++) {
        if (p->lost[v] == 0) continue;
        d->hit[d->hits] = (uint64_t)v;
        d->better[d->hits++] = p->lost[v];
        p->lost[v] = 0;
    }
}

static plait_status read_left(peeling *p) {
    PLI_TRY(pli_direct_read(p->d));
    memcpy(p->left, p->d->values, (size_t)p->d->part.n * sizeof *p->left);
    return PLAIT_OK;
}

/* What is left of a vertex becomes its core number: by its owner. */
static plait_status put_cores(peeling *p) {
    pli_direct     *d = p->d;
    const pli_part *part = &d->part;
    PLI_TRY(read_left(p));
    d->hits = 0;
    for (int64_t v = part->own; v < part->own + part->owned; v++) {
        if (p->core[v] == p->left[v]) continue;
        d->hit[d->hits] = (uint64_t)v;
        d->better[d->hits++] = p->core[v] - p->left[v];
    }
    return pli_direct_clock(d);
}

/* The least of all workers' numbers. */
static plait_status least_of_all(pli_direct *d, int64_t *least) {
    return d->workers > 1 ? plait_comm_allreduce(d->comm, least, 1, PLAIT_I64, PLAIT_MIN) : PLAIT_OK;
}

static plait_status peel_all(peeling *p) {
    pli_direct *d = p->d;
    int64_t     k = 0, least = 0;
    PLI_TRY(read_left(p));
    while (least < INT64_MAX && pli_direct_may_go_on(d)) {
        k = least > k ? least : k;
        least = peel_to(p, k);
        if (d->workers == 1) continue; /* the table still has what all began with */
        list_lost(p);
        PLI_TRY(pli_direct_clock(d));
        PLI_TRY(read_left(p));
        least = INT64_MAX;
        for (int64_t i = 0; i < p->alives; i++)
            if (p->left[p->alive[i]] < least) least = p->left[p->alive[i]];
        PLI_TRY(least_of_all(d, &least));
    }
    d->report.still = least == INT64_MAX;
    for (int64_t i = 0; i < p->alives; i++) p->core[p->alive[i]] = k; /* ended by its limit: at least k */
    return put_cores(p);
}

static int64_t first_degree(const pli_direct *d, int64_t vertex) {
    return pli_cut_degree(d->cut, vertex);
}

plait_status pli_run_kcore(plait_job *job, const pli_vertex_choice *choice, const plait_vertex_cut *cut,
                           int64_t supersteps, void *values_out, plait_vertex_report *report_out) {
    const pli_direct_opts opts = { .name = "kcore", .combine = "add", .type = PLAIT_I64, .back = true, .whole = true,
                                   .first = first_degree };
    pli_direct            d;
    peeling               p = { .d = &d };
    plait_status          status = pli_direct_begin(&d, job, choice, cut, supersteps, &opts);
    if (status == PLAIT_OK && !make_room(&p)) status = pli_fail(d.err, PLAIT_ENOMEM, "kcore: no memory for cores");
    if (status == PLAIT_OK) status = peel_all(&p);
    void *const memory[] = { p.left, p.lost, p.core, p.alive, p.queue };
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) pli_free(memory[i]);
    return pli_direct_end(&d, status, values_out, report_out);
}

int32_t pli_figures_kcore(const pli_vertex_choice *choice, const int64_t *value, pli_figure *figure) {
    const plait_edges *edges = choice->edges;
    int64_t most = 0;
    for (int64_t v = 0; v < edges->n; v++) most = value[v] > most ? value[v] : most;
    figure[0] = (pli_figure){ .name = "largest_core", .whole = most };
    return 1;
}
