/* Label propagation: in each superstep every vertex takes the label that most of its neighbors have, of several the
 * least; in the beginning it is its own number. Neighbors along edges of both directions count, one that is joined both
 * ways twice. All take their labels at once, so the result depends on the number of supersteps alone; since two groups
 * may exchange labels for ever, it ends after 10 if --supersteps does not say otherwise. That is the definition of
 * LDBC's Graphalytics (Iosup et al., VLDB 2016, "community detection by label propagation"), after Raghavan, Albert and
 * Kumara, "Near linear time algorithm to detect community structures in large-scale networks", Physical Review E 2007.
 *
 * Labels of a row are counted in a table by hash; the count of one row is forgotten by its number. A row must be whole:
 * a cut of vertices is refused. Limit: for each edge 4 bytes, a label at random and a place of the table. */
#include "base/hash.h"
#include "vertex/direct.h"

enum { PIECE = 1024, DEFAULT_STEPS = 10 };

typedef struct counter { /* places [mask + 1], of which a row uses twice as many as it has entries, or more */
    int64_t *label, *row, *count;
    size_t   mask;
} counter;

typedef struct labelling {
    pli_direct *d;
    counter    *counter; /* [threads] */
    int64_t    *next;    /* [n of part] */
} labelling;

static bool make_counter(counter *c, size_t entries) {
    size_t room = 16;
    while (room < 2 * entries) room *= 2;
    c->mask = room - 1;
    c->label = pli_array(room, sizeof *c->label);
    c->row = pli_array(room, sizeof *c->row);
    c->count = pli_array(room, sizeof *c->count);
    if (c->label == NULL || c->row == NULL || c->count == NULL) return false;
    for (size_t i = 0; i < room; i++) c->row[i] = -1;
    return true;
}

static int64_t most_frequent(const labelling *l, counter *c, int64_t v) {
    const pli_neighbors *rows = &l->d->part.rows;
    int64_t              best = l->d->values[v], most = 0;
    size_t               mask = 15; /* small rows use few places, which stay in the cache */
    while (mask + 1 < 2 * (size_t)(rows->start[v + 1] - rows->start[v])) mask = 2 * mask + 1;
    for (int64_t k = rows->start[v]; k < rows->start[v + 1]; k++) {
        const int64_t label = l->d->values[rows->near[k]];
        size_t        at = (size_t)pli_hash_u64((uint64_t)label) & mask;
        while (c->row[at] == v && c->label[at] != label) at = (at + 1) & mask;
        if (c->row[at] != v) {
            c->row[at] = v;
            c->label[at] = label;
            c->count[at] = 0;
        }
        const int64_t n = ++c->count[at];
        if (n > most || (n == most && label < best)) most = n, best = label;
    }
    return best;
}

/* A row may be counted again in the next superstep: then places of it must not look filled. */
static void forget(counter *c) {
    for (size_t i = 0; i <= c->mask; i++) c->row[i] = -1;
}

static void label_piece(void *user, int64_t i, int32_t thread) {
    labelling     *l = user;
    const pli_part *part = &l->d->part;
    const int64_t   first = part->own + i * PIECE, end = part->own + part->owned,
                  last = first + PIECE < end ? first + PIECE : end;
    for (int64_t v = first; v < last; v++) l->next[v] = most_frequent(l, &l->counter[thread], v);
}

static plait_status spread(labelling *l) {
    pli_direct     *d = l->d;
    const pli_part *part = &d->part;
    const int32_t   threads = pli_pool_threads(d->pool);
    if (d->limit == 0) d->limit = DEFAULT_STEPS;
    while (!d->report.still && pli_direct_may_go_on(d)) {
        PLI_TRY(pli_direct_read(d));
        for (int32_t t = 0; t < threads; t++) forget(&l->counter[t]);
        pli_pool_for(d->pool, (part->owned + PIECE - 1) / PIECE, label_piece, l);
        d->hits = 0;
        for (int64_t v = part->own; v < part->own + part->owned; v++) {
            if (l->next[v] == d->values[v]) continue;
            d->hit[d->hits] = (uint64_t)v;
            d->better[d->hits++] = l->next[v] - d->values[v];
        }
        int64_t news = d->hits;
        PLI_TRY(pli_direct_clock(d));
        PLI_TRY(pli_direct_sum(d, &news));
        d->report.still = news == 0;
    }
    return PLAIT_OK;
}

static bool make_room(labelling *l) {
    pli_direct    *d = l->d;
    const int32_t  threads = pli_pool_threads(d->pool);
    int64_t        most = 0;
    for (int64_t v = 0; v < d->part.n; v++) {
        const int64_t n = d->part.rows.start[v + 1] - d->part.rows.start[v];
        most = n > most ? n : most;
    }
    l->next = pli_array((size_t)d->part.n, sizeof *l->next);
    l->counter = pli_calloc((size_t)threads, sizeof *l->counter);
    bool made = l->next != NULL && l->counter != NULL;
    for (int32_t t = 0; made && t < threads; t++) made = make_counter(&l->counter[t], (size_t)most);
    return made;
}

static int64_t own_number(const pli_direct *d, int64_t vertex) {
    (void)d;
    return vertex;
}

plait_status pli_run_labels(plait_job *job, const pli_vertex_choice *choice, const plait_vertex_cut *cut,
                            int64_t supersteps, void *values_out, plait_vertex_report *report_out) {
    const pli_direct_opts opts = { .name = "labels", .combine = "add", .type = PLAIT_I64, .whole = true, .rows = true,
                                   .first = own_number };
    pli_direct            d;
    labelling             l = { .d = &d };
    plait_status          status = pli_direct_begin(&d, job, choice, cut, supersteps, &opts);
    if (status == PLAIT_OK && !make_room(&l)) status = pli_fail(d.err, PLAIT_ENOMEM, "labels: no memory for counts");
    if (status == PLAIT_OK) status = spread(&l);
    for (int32_t t = 0; l.counter != NULL && t < pli_pool_threads(d.pool); t++) {
        pli_free(l.counter[t].label);
        pli_free(l.counter[t].row);
        pli_free(l.counter[t].count);
    }
    pli_free(l.counter);
    pli_free(l.next);
    return pli_direct_end(&d, status, values_out, report_out);
}

/* How many labels there are. */
int32_t pli_figures_labels(const pli_vertex_choice *choice, const int64_t *value, pli_figure *figure) {
    const plait_edges *edges = choice->edges;
    uint64_t *seen = pli_calloc(pli_bit_words(edges->n), sizeof *seen);
    int64_t   n = 0;
    if (seen == NULL) return 0;
    for (int64_t v = 0; v < edges->n; v++) {
        n += !pli_bit_is(seen, (size_t)value[v]);
        pli_bit_set(seen, (size_t)value[v]);
    }
    pli_free(seen);
    figure[0] = (pli_figure){ .name = "communities", .whole = n };
    return 1;
}
