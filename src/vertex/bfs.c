/* Breadth-first search that optimises its direction: level after level, the frontier is a bitmap.
 *
 *     push   each vertex of the frontier marks those in its row of edges out: right while the frontier is small
 *     pull   each vertex that is not reached yet looks for *one* neighbor in the frontier, and stops at the first: on a
 *            graph of small diameter two levels have nearly all edges, and most of them are never looked at
 *
 * Each level is a clock. That needs whole clocks: where a read may miss updates (ssp, async), a first visit may be by a
 * longer way, and the run is the folding program's instead, which corrects distances. How a level travels:
 *
 *     each worker reads all      as bits, in the table `bfs.found`, to which a worker adds those of its own vertices: a
 *                                bit is added once, so nothing is ever carried. That is 1 bit a vertex and level. A
 *                                vertex's distance is the clock in which its bit has come: a worker that is asked for
 *                                distances notes it, and no table has 8 bytes for each
 *     a worker reads a part      a worker pushes the distances of the vertices that it found, by key, and reads those
 *                                of its part
 *
 * Limits: a level that pushes reads 4 bytes an edge of the frontier and a random bit; one that pulls reads the rows of
 * what is not reached until the first hit. Paper: Beamer, Asanovic and Patterson, "Direction-Optimizing Breadth-First
 * Search", SC 2012; ALPHA and BETA are theirs. */
#include <stdatomic.h>

#include "vertex/direct.h"

enum { ALPHA = 14, BETA = 24, WORDS = 64, PIECE = 64 }; /* WORDS of a bitmap and a PIECE of a frontier are a task */

typedef struct searching {
    pli_direct       *d;
    uint64_t         *reached, *front;
    _Atomic uint64_t *next;   /* threads mark bits of it, relaxed: what they find is read behind the pool's join */
    uint32_t         *list;   /* [fronts] the frontier's local numbers, for a level that pushes */
    int64_t           fronts, front_edges, edges_left;
    int64_t           first, last; /* of rows that the worker pulls for, and pushes to */
    bool              shares;      /* these are the worker's own, on each worker, and `back` is the graph's */
    size_t            words;
    plait_table      *found;   /* bits of all levels; NULL: nobody else is there */
    int64_t          *distance; /* by_bits: [n] where the worker notes distances; NULL: nobody asks */
} searching;

/* Edges out: the graph's own, of which those to the worker's rows lie together, or the other direction of its part. */
static bool find_back(searching *s) {
    pli_direct *d = s->d;
    pli_part   *part = &d->part;
    s->first = 0;
    s->last = part->n;
    if (part->key != NULL || d->cut->near != PLAIT_NEAR_IN || d->edges->again != NULL)
        return pli_neighbors_transpose(&part->rows, part->n, &part->back);
    const pli_neighbors *out = pli_edges_out(d->edges);
    if (out == NULL) return false;
    part->back = *out;
    part->back.lent = true;
    s->first = part->own;
    s->last = part->own + part->owned;
    return true;
}

static bool make_room(searching *s) {
    s->words = pli_bit_words(s->d->part.n);
    s->reached = pli_calloc(s->words, sizeof *s->reached);
    s->front = pli_calloc(s->words, sizeof *s->front);
    s->next = pli_calloc(s->words, sizeof *s->next);
    s->list = pli_array((size_t)s->d->part.n, sizeof *s->list);
    return s->reached != NULL && s->front != NULL && s->next != NULL && s->list != NULL && find_back(s);
}

/* --- a level ------------------------------------------------------------------------------------------------------ */

/* The first entry of a row, which increases, that is `least` or more. */
static int64_t find_entry(const pli_neighbors *h, int64_t v, int64_t least) {
    int64_t low = h->start[v], high = h->start[v + 1];
    while (least > 0 && low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (h->near[middle] < least) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void push_piece(void *user, int64_t i, int32_t thread) {
    searching           *s = user;
    const pli_neighbors *back = &s->d->part.back;
    const int64_t        last = (i + 1) * PIECE < s->fronts ? (i + 1) * PIECE : s->fronts;
    (void)thread;
    for (int64_t f = i * PIECE; f < last; f++)
        for (int64_t k = find_entry(back, s->list[f], s->first), end = back->start[s->list[f] + 1];
             k < end && back->near[k] < s->last; k++) {
            const size_t   u = back->near[k];
            const uint64_t bit = UINT64_C(1) << (u % 64);
            if ((s->reached[u / 64] & bit) != 0) continue;
            if ((atomic_load_explicit(&s->next[u / 64], memory_order_relaxed) & bit) != 0) continue;
            atomic_fetch_or_explicit(&s->next[u / 64], bit, memory_order_relaxed);
        }
}

/* Those of a word's bits that are of rows for which the worker pulls. */
static uint64_t mine(const searching *s, size_t w, uint64_t bits) {
    const int64_t begin = (int64_t)w * 64;
    if (begin + 64 <= s->first || begin >= s->last) return 0;
    if (begin < s->first) bits &= UINT64_MAX << (s->first - begin);
    if (begin + 64 > s->last) bits &= UINT64_MAX >> (begin + 64 - s->last);
    return bits;
}

/* A task has whole words of its own, so bits need no other thread's care. */
static void pull_words(void *user, int64_t i, int32_t thread) {
    searching           *s = user;
    const pli_neighbors *rows = &s->d->part.rows;
    const size_t         first = (size_t)s->first / 64 + (size_t)i * WORDS, all = pli_bit_words(s->last);
    (void)thread;
    for (size_t w = first; w < first + WORDS && w < all; w++) {
        uint64_t found = 0, left = mine(s, w, ~s->reached[w]);
        for (; left != 0; left &= left - 1) {
            const size_t v = w * 64 + (size_t)__builtin_ctzll(left);
            for (int64_t k = rows->start[v], end = rows->start[v + 1]; k < end; k++)
                if (pli_bit_is(s->front, rows->near[k])) {
                    found |= left & -left;
                    break;
                }
        }
        atomic_store_explicit(&s->next[w], found, memory_order_relaxed);
    }
}

/* Makes hits of what was found; in the first level of the source as well. Returns how many were found. */
static int64_t list_hits(searching *s, int64_t level) {
    pli_direct *d = s->d;
    int64_t     found = 0;
    d->hits = 0;
    for (size_t w = 0; w < s->words; w++) {
        const uint64_t next = s->next[w];
        for (uint64_t bits = level == 1 ? next | s->front[w] : next; bits != 0; bits &= bits - 1) {
            const bool is_new = (next & bits & -bits) != 0;
            d->hit[d->hits] = w * 64 + (uint64_t)__builtin_ctzll(bits);
            d->better[d->hits++] = is_new ? level : 0;
            found += is_new;
        }
    }
    return found;
}

/* Pushes the bits of what was found. */
static plait_status push_bits(searching *s) {
    pli_direct    *d = s->d;
    const int64_t  own = d->part.own, end = own + d->part.owned;
    const size_t   first = (size_t)own / 64;
    const int64_t  words = end > own ? (end + 63) / 64 - own / 64 : 0;
    for (int64_t i = 0; i < words; i++) d->hit[i] = s->next[first + (size_t)i];
    return s->found == NULL || words == 0 ? PLAIT_OK
                                          : plait_table_inc_range(s->found, (int64_t)first, words, d->hit, 0);
}

/* --- the next frontier: what this worker found, or what all did --------------------------------------------------- */

static plait_status read_distances(searching *s, int64_t level) {
    pli_direct *d = s->d;
    PLI_TRY(pli_direct_read(d));
    for (int64_t v = 0; v < d->part.n;) {
        const int64_t last = v + 64 < d->part.n ? v + 64 : d->part.n;
        uint64_t      bits = 0;
        for (int64_t begin = v; v < last; v++) bits |= (uint64_t)(d->values[v] == level) << (v - begin);
        s->next[(last - 1) / 64] = bits; /* no task runs here */
    }
    return PLAIT_OK;
}

static plait_status read_bits(searching *s) {
    const void *found;
    PLI_TRY(plait_table_read(s->found, 0, (int64_t)s->words, &found));
    for (size_t w = 0; w < s->words; w++) s->next[w] = ((const uint64_t *)found)[w] & ~s->reached[w];
    return PLAIT_OK;
}

static void note_distances(searching *s, int64_t level) {
    for (size_t w = 0; w < s->words && s->distance != NULL; w++)
        for (uint64_t bits = s->next[w]; bits != 0; bits &= bits - 1)
            s->distance[(int64_t)(w * 64) + __builtin_ctzll(bits)] = level;
}

/* Where workers share the graph's edges out, each counts those of its own vertices in the frontier, and they add up. */
static plait_status take_front(searching *s) {
    const pli_neighbors *back = &s->d->part.back;
    int64_t              sum[2] = { 0 }; /* vertices, edges */
    for (size_t w = 0; w < s->words; w++) {
        const uint64_t next = s->next[w];
        s->front[w] = next;
        s->reached[w] |= next;
        for (uint64_t bits = s->shares ? mine(s, w, next) : next; bits != 0; bits &= bits - 1) {
            const size_t v = w * 64 + (size_t)__builtin_ctzll(bits);
            sum[0]++;
            sum[1] += back->start[v + 1] - back->start[v];
        }
        if (next != 0) s->next[w] = 0;
    }
    if (s->shares) PLI_TRY(plait_comm_allreduce(s->d->comm, sum, 2, PLAIT_I64, PLAIT_SUM));
    s->fronts = sum[0];
    s->front_edges = sum[1];
    s->edges_left -= s->front_edges;
    return PLAIT_OK;
}

static void list_front(searching *s) {
    int64_t n = 0;
    for (size_t w = 0; w < s->words; w++)
        for (uint64_t bits = s->front[w]; bits != 0; bits &= bits - 1)
            s->list[n++] = (uint32_t)(w * 64 + (size_t)__builtin_ctzll(bits));
}

static void find_next(searching *s, bool *pulls) {
    pli_direct *d = s->d;
    if (*pulls) *pulls = s->fronts >= d->part.n / BETA;
    else *pulls = s->front_edges > s->edges_left / ALPHA;
    if (*pulls) {
        pli_pool_for(d->pool, ((int64_t)pli_bit_words(s->last) - s->first / 64 + WORDS - 1) / WORDS, pull_words, s);
        d->report.pulled++;
    } else {
        list_front(s);
        pli_pool_for(d->pool, (s->fronts + PIECE - 1) / PIECE, push_piece, s);
        d->report.pushed++;
    }
}

/* A level's end: all push what they found, and read the next frontier. */
static plait_status end_level(searching *s, int64_t level) {
    pli_direct *d = s->d;
    int64_t     found = 0;
    if (s->d->by_bits) PLI_TRY(push_bits(s));
    else found = list_hits(s, level);
    PLI_TRY(pli_direct_clock(d));
    if (s->found != NULL) PLI_TRY(read_bits(s));
    else if (!s->d->by_bits) PLI_TRY(read_distances(s, level));
    if (s->d->by_bits) note_distances(s, level);
    PLI_TRY(take_front(s));
    if (s->d->by_bits) found = s->fronts;
    else PLI_TRY(pli_direct_sum(d, &found));
    d->report.still = found == 0;
    return PLAIT_OK;
}

/* One worker's are all; a clock of its own. */
static plait_status push_distances(searching *s) {
    PLI_TRY(pli_direct_push_own(s->d));
    return plait_job_clock(s->d->job);
}

static plait_status search(searching *s) {
    pli_direct *d = s->d;
    bool        pulls = false;
    for (int64_t v = d->part.key == NULL ? d->choice->source : 0; v < d->part.n; v++) {
        if (pli_part_vertex(&d->part, v) != d->choice->source) continue;
        s->next[v / 64] = UINT64_C(1) << (v % 64);
        break;
    }
    if (s->d->by_bits && s->found == NULL) s->distance = d->better;
    for (int64_t v = 0; s->distance != NULL && v < d->part.n; v++)
        s->distance[v] = v == d->choice->source ? 0 : INT64_MAX;
    s->edges_left = d->part.back.start[d->part.n];
    PLI_TRY(take_front(s));
    for (int64_t level = 1; pli_direct_may_go_on(d) && !d->report.still; level++) {
        find_next(s, &pulls);
        PLI_TRY(end_level(s, level));
    }
    return s->distance != NULL && s->found == NULL ? push_distances(s) : PLAIT_OK;
}

static plait_status make_tables(searching *s) {
    pli_direct      *d = s->d;
    plait_table_opts t;
    if (!d->by_bits || d->workers == 1) return PLAIT_OK;
    s->shares = d->cut->near == PLAIT_NEAR_IN && d->edges->again == NULL; /* as find_back has it */
    plait_table_opts_init(&t);
    t.name = "bfs.found";
    t.type = PLAIT_I64;
    t.combine = "add";
    t.rows = (int64_t)s->words;
    return plait_table_create(d->job, &t, &s->found);
}

plait_status pli_run_bfs(plait_job *job, const pli_vertex_choice *choice, const plait_vertex_cut *cut,
                         int64_t supersteps, void *values_out, plait_vertex_report *report_out) {
    const pli_direct_opts opts = { .name = "bfs", .combine = "min", .type = PLAIT_I64, .whole = true,
                                   .own = true, .bits = INT32_MAX };
    pli_direct            d;
    searching             s = { .d = &d };
    if (!pli_direct_reads_all(job)) return pli_run_made("bfs", job, choice, cut, supersteps, values_out, report_out);
    plait_status status = pli_direct_begin(&d, job, choice, cut, supersteps, &opts);
    if (status == PLAIT_OK && !make_room(&s)) status = pli_fail(d.err, PLAIT_ENOMEM, "bfs: no memory for a frontier");
    if (status == PLAIT_OK) status = make_tables(&s);
    if (s.found != NULL) s.distance = values_out;
    if (status == PLAIT_OK) status = search(&s);
    if (status == PLAIT_OK && s.found != NULL) status = plait_job_barrier(job); /* others may still read */
    if (status == PLAIT_OK && s.found != NULL) status = plait_table_drop(&s.found);
    pli_free(s.reached);
    pli_free(s.front);
    pli_free((void *)s.next);
    pli_free(s.list);
    return pli_direct_end(&d, status, values_out, report_out);
}

/* How many vertices were reached, and the longest of the shortest ways. */
int32_t pli_figures_bfs(const pli_vertex_choice *choice, const int64_t *value, pli_figure *figure) {
    const plait_edges *edges = choice->edges;
    int64_t n = 0, most = 0;
    for (int64_t v = 0; v < edges->n; v++) {
        if (value[v] == INT64_MAX) continue;
        n++;
        most = value[v] > most ? value[v] : most;
    }
    figure[0] = (pli_figure){ .name = "reached", .whole = n };
    figure[1] = (pli_figure){ .name = "depth", .whole = most };
    return 2;
}
