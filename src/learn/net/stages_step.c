/* A clock of a net in stages, and its judging. See stages.h.
 *
 * The ranks of a replica make the same runs of their sessions, with the same shapes. Only stage 0 knows the rows, so it
 * broadcasts an outline of each run to the replica: how many micro-batches, and the lengths of each. Under --reduce
 * exact every block of rows is a run of its own, as on one rank. A micro-batch without rows, which interleaved needs
 * where rows are few, has a row of weight 0. */
#include "learn/net/stages_state.h"

#include <string.h>

#include "learn/net/table_store.h"

/* An outline: a head, then the lengths of each micro-batch. */
enum { LEFT /* runs of the clock that follow */, MICRO_BATCHES, EXAMPLES };
enum { ROWS, ENTRIES, UNIQUE, CANDIDATES /* of each part, if there are such */ };

static int64_t *lengths_of(const pli_stages *s, int32_t m) {
    return s->outline + PLI_OUTLINE_HEAD + pli_stages_lengths(s) * m;
}

static plait_status no_memory(const pli_run *run) {
    return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the rows of a net in stages");
}

/* --- the rows of a run, on stage 0 -------------------------------------------------------------------------------- */

/* Where the rows of a run go on: row `at` of part 0. */
typedef struct rows_left {
    const pli_part  *part;
    int64_t          at;
    const pli_scale *scale; /* NULL: rows are in the data's units */
} rows_left;

/* Puts the next n rows in micro-batch m. Returns how many labels they have; -1: no memory. */
static int64_t take_rows(pli_stages *s, int32_t m, int64_t n, rows_left *left) {
    pli_net_rows *to = &s->rows[m];
    int64_t       labels = 0, done = 0;
    if (!pli_net_rows_reserve(pli_stages_net(s), to, n)) return -1;
    while (done < n) {
        const int64_t there = left->part->rows - left->at, more = n - done < there ? n - done : there;
        const int64_t own = more > 0 ? pli_net_take_rows(s->run, left->scale, left->part, left->at, more, to, done) : 0;
        if (own < 0) return own;
        labels += own;
        done += more;
        left->at += more;
        if (left->at == left->part->rows) *left = (rows_left){ left->part + 1, 0, left->scale };
    }
    return labels;
}

/* Puts a row that does not count in micro-batch m. */
static bool take_blank(pli_stages *s, int32_t m, const pli_part *part, const pli_scale *scale) {
    const pli_net *net = pli_stages_net(s);
    while (part->rows == 0) part++;
    if (!pli_net_rows_reserve(net, &s->rows[m], 1) || pli_net_take_rows(s->run, scale, part, 0, 1, &s->rows[m], 0) < 0)
        return false;
    for (int64_t i = 0; i < net->row_labels; i++) s->rows[m].weight[i] = 0;
    return true;
}

/* Lays out n rows, n > 0, in so many micro-batches; interleaved has others, without rows. */
static plait_status lay_out_in(pli_stages *s, const pli_part *part, int64_t n, int64_t spread, const pli_scale *scale) {
    const int64_t count = s->chunks > 1 ? s->most : spread;
    rows_left     left = { part, 0, scale };
    s->outline[MICRO_BATCHES] = count;
    s->outline[EXAMPLES] = 0;
    for (int32_t m = 0; m < count; m++) {
        const int64_t rows = m < spread ? n * (m + 1) / spread - n * m / spread : 0;
        const int64_t labels = take_rows(s, m, rows, &left);
        int64_t      *lengths = lengths_of(s, m);
        plait_feed   *feed = &s->feed[pli_stages_feeds(s) * m];
        if (labels < 0 || (rows == 0 && !take_blank(s, m, part, scale))) return no_memory(s->run);
        s->outline[EXAMPLES] += labels;
        lengths[ROWS] = rows > 0 ? rows : 1;
        s->rows[m].candidates.draws = pli_net_fit_of(s->run)->draws;
        if (pli_net_feed_rows(pli_stages_net(s), &s->rows[m], lengths[ROWS], feed) < 0) return no_memory(s->run);
        lengths[ENTRIES] = s->rows[m].entries;
        lengths[UNIQUE] = s->rows[m].unique;
        for (int64_t p = CANDIDATES; p < pli_stages_lengths(s); p++)
            lengths[p] = s->rows[m].candidates.of_part[p - CANDIDATES];
    }
    return PLAIT_OK;
}

static plait_status lay_out(pli_stages *s, const pli_part *part, int64_t n, const pli_scale *scale) {
    return lay_out_in(s, part, n, s->chunks > 1 || n > s->most ? s->most : n, scale);
}

/* --- a run -------------------------------------------------------------------------------------------------------- */

static plait_status tell_outline(const pli_stages *s) {
    const size_t bytes = (size_t)(PLI_OUTLINE_HEAD + pli_stages_lengths(s) * s->most) * sizeof *s->outline;
    return s->ranks == 1 ? PLAIT_OK : plait_group_broadcast(s->peers, s->outline, bytes, 0);
}

/* Feeds and fetches of micro-batch m. Other stages than the first feed shapes alone. values: the variables', which are
 * judged; NULL: it is trained on. scores: to be fetched instead; or NULL. */
static void make_batch(pli_stages *s, int32_t m, const plait_feed *values, const plait_fetch *scores) {
    const pli_net *net = pli_stages_net(s);
    int64_t       *lengths = lengths_of(s, m);
    plait_feed    *feed = &s->feed[pli_stages_feeds(s) * m];
    plait_fetch   *fetch = &s->fetch[(net->n_params + 1) * (int64_t)m];
    const pli_net_rows shape = { .entries = lengths[ENTRIES], .unique = lengths[UNIQUE],
                                 .candidates = { .of_part = lengths + CANDIDATES } };
    const plait_value sums = values != NULL && net->judged >= 0 ? net->judged : net->sums;
    int32_t fed = s->stage == 0 ? pli_net_feeds(net) : pli_net_feeds_of(net, &shape, lengths[ROWS], feed), n = 0;
    for (int32_t p = 0; p < net->n_params; p++)
        if (values != NULL) feed[fed++] = values[p];
        else fetch[n++] = (plait_fetch){ .value = net->param[p].inc };
    s->sums[m] = (pli_sums){ 0 };
    fetch[n] = (plait_fetch){ .value = sums, .tensor = { .data = &s->sums[m] }, .bytes = sizeof s->sums[m] };
    if (scores != NULL) fetch[n] = *scores;
    n++;
    s->batch[m] = (plait_batch){ .feeds = feed, .fetches = fetch, .n_feeds = fed, .n_fetches = n };
}

/* The outline is there: runs its micro-batches. sums_out: of the replica's rows, on all of its ranks. */
static plait_status run_batches(pli_stages *s, const plait_feed *values, pli_sums *sums_out) {
    const int32_t count = (int32_t)s->outline[MICRO_BATCHES];
    *sums_out = (pli_sums){ 0 };
    for (int32_t m = 0; m < count; m++) make_batch(s, m, values, NULL);
    PLI_TRY(plait_session_run_batches(s->session, s->chunks, s->pipeline, s->batch, count, s->run->err));
    for (int32_t m = 0; m < count; m++) pli_sums_add(sums_out, &s->sums[m]);
    return s->ranks == 1 ? PLAIT_OK : plait_group_broadcast(s->peers, sums_out, sizeof *sums_out, s->judge);
}

static plait_status run_outline(pli_stages *s, plait_table_store *store, pli_sums *sums_out) {
    plait_table_store_examples(store, s->outline[EXAMPLES]);
    pli_table_store_flushes(store, s->outline[LEFT] == 0);
    for (int32_t m = 0; m < s->outline[MICRO_BATCHES]; m++) s->trained += lengths_of(s, m)[ROWS];
    return run_batches(s, NULL, sums_out);
}

/* One rank counts the sums. All look at them, so that all end with the reason if the loss is not finite. */
static plait_status count(const pli_stages *s, const pli_sums *sums, pli_sums *sums_out) {
    const pli_run *run = s->run;
    PLI_TRY(pli_fit_finite(run, sums->loss, run->clocks_done));
    if (s->stage != 0) return PLAIT_OK;
    if (run->exact) pli_total_add(&run->loop->total, sums);
    else pli_sums_add(sums_out, sums);
    return PLAIT_OK;
}

static plait_status run_rows(pli_stages *s, plait_table_store *store, const pli_part *part, int64_t rows, int64_t left,
                             pli_sums *sums_out) {
    pli_sums sums;
    PLI_TRY(lay_out(s, part, rows, &pli_net_fit_of(s->run)->fit.scale));
    s->outline[LEFT] = left;
    PLI_TRY(tell_outline(s));
    PLI_TRY(run_outline(s, store, &sums));
    return count(s, &sums, sums_out);
}

/* --- a clock ------------------------------------------------------------------------------------------------------ */

/* Without rows the replica reads, to keep in step with the others. */
static plait_status rest(plait_table_store *store) { return pli_table_store_read(store, false); }

static plait_status lead(pli_stages *s, plait_table_store *store, const pli_batch *batch, pli_sums *sums_out) {
    int64_t runs = 0;
    if (batch->rows == 0) {
        s->outline[LEFT] = s->outline[MICRO_BATCHES] = 0;
        PLI_TRY(tell_outline(s));
        return rest(store);
    }
    if (!s->run->exact) return run_rows(s, store, batch->part, batch->rows, 0, sums_out);
    for (int32_t p = 0; p < batch->parts; p++) runs += batch->part[p].rows > 0;
    for (int32_t p = 0; p < batch->parts; p++)
        if (batch->part[p].rows > 0)
            PLI_TRY(run_rows(s, store, &batch->part[p], batch->part[p].rows, --runs, sums_out));
    return PLAIT_OK;
}

static plait_status follow(pli_stages *s, plait_table_store *store, pli_sums *sums_out) {
    pli_sums sums;
    do {
        PLI_TRY(tell_outline(s));
        if (s->outline[MICRO_BATCHES] == 0) return rest(store);
        PLI_TRY(run_outline(s, store, &sums));
        PLI_TRY(count(s, &sums, sums_out));
    } while (s->outline[LEFT] > 0);
    return PLAIT_OK;
}

plait_status pli_stages_step(pli_stages *s, plait_table_store *store, const pli_batch *batch, pli_sums *sums_out) {
    *sums_out = (pli_sums){ 0 };
    return s->stage == 0 ? lead(s, store, batch, sums_out) : follow(s, store, sums_out);
}

/* --- judged ------------------------------------------------------------------------------------------------------- */

/* spread: in so many micro-batches; 0: as in training. */
static plait_status begin_judging(pli_stages *s, const pli_part *part, int64_t spread, bool *more_out) {
    if (s->stage == 0) s->outline[LEFT] = s->outline[MICRO_BATCHES] = 0;
    if (part != NULL && spread > 0) PLI_TRY(lay_out_in(s, part, part->rows, spread, NULL));
    else if (part != NULL) PLI_TRY(lay_out(s, part, part->rows, NULL));
    PLI_TRY(tell_outline(s));
    *more_out = s->outline[MICRO_BATCHES] > 0;
    return PLAIT_OK;
}

plait_status pli_stages_judge(pli_stages *s, const plait_feed *values, const pli_part *part, bool *more_out,
                              pli_sums *sums_out) {
    *sums_out = (pli_sums){ 0 };
    PLI_TRY(begin_judging(s, part, 0, more_out));
    s->judges = true;
    const plait_status status = *more_out ? run_batches(s, values, sums_out) : PLAIT_OK;
    s->judges = false;
    return status;
}

/* All rows are in the first micro-batch, so that they are multiplied as in a whole net. */
plait_status pli_stages_score(pli_stages *s, const plait_feed *values, const pli_part *part, bool *more_out) {
    const pli_net *net = pli_stages_net(s);
    const int64_t  each = net->row_labels * net->goal->columns; /* scores of a row */
    int64_t        rows = 0, at = 0;
    PLI_TRY(begin_judging(s, part, 1, more_out));
    const int32_t count = (int32_t)s->outline[MICRO_BATCHES];
    if (!*more_out) return PLAIT_OK;
    for (int32_t m = 0; m < count; m++) rows += lengths_of(s, m)[ROWS];
    if (!pli_grow((void **)&s->scores, &s->scores_capacity, rows * each, sizeof *s->scores)) return no_memory(s->run);
    for (int32_t m = 0; m < count; at += lengths_of(s, m)[ROWS] * each, m++)
        make_batch(s, m, values, &(plait_fetch){ .value = net->scores, .tensor = { .data = s->scores + at },
                                                 .bytes = (size_t)(lengths_of(s, m)[ROWS] * each) * sizeof(float) });
    s->judges = true;
    const plait_status status =
        plait_session_run_batches(s->session, s->chunks, s->pipeline, s->batch, count, s->run->err);
    s->judges = false;
    if (status < 0) return status;
    return plait_group_broadcast(s->peers, s->scores, (size_t)(lengths_of(s, 0)[ROWS] * each) * sizeof *s->scores,
                                 s->judge);
}

pli_scored pli_stages_scored(const pli_stages *s) { return (pli_scored){ s->scores, s->rows[0].label }; }
