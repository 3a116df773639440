/* A clock of a net in stages. See stages.h.
 *
 * The ranks of a replica make the same runs of their sessions, with the same shapes. Only stage 0 knows the rows, so it
 * broadcasts an outline of each run to the replica: how many micro-batches, and the lengths of each. Under --reduce
 * exact every block of rows is a run of its own, as on one rank. A micro-batch without rows, which interleaved needs
 * where rows are few, has a row of weight 0. */
#include "learn/net/stages.h"

#include <stdio.h>
#include <string.h>

#include <plait/comm_channel.h>

#include "graph/graph.h"
#include "graph/pipeline.h"
#include "graph/session.h"
#include "learn/net/outlive.h"
#include "learn/net/table_store.h"

enum { CHUNKS = 2 /* parts of a rank under interleaved */, HEAD = 3, LENGTHS = 3 };
/* An outline: HEAD numbers, then LENGTHS of each micro-batch. */
enum { LEFT /* runs of the clock that follow */, MICRO_BATCHES, EXAMPLES };
enum { ROWS, ENTRIES, UNIQUE };

/* Traces the pieces of a part. */
typedef struct tracer {
    const pli_run *run;
    char           name[PLI_PIECES][40];
    uint64_t       begun_ns[PLI_PIECES];
} tracer;

struct pli_stages {
    pli_run            *run;
    int32_t             ranks, chunks, replicas, stage, replica;
    int32_t             most; /* micro-batches of a run, at most */
    int32_t            *place; /* [nodes of the graph] a part each; part p lies in stage p % ranks */
    const char         *pipeline; /* in which order micro-batches go */
    int32_t             judge;    /* the stage that has the loss */
    int32_t             stage_of[PLI_NET_PARAMS];
    plait_group        *members, *peers; /* of the stage; of the replica */
    plait_comm_channel *channel;
    plait_session      *session[CHUNKS];
    tracer              tracer[CHUNKS];
    /* of a run; [most] */
    pli_net_rows *rows;
    plait_feed   *feed; /* [most, feeds_of] */
    plait_fetch  *fetch; /* [most, n_params + 1] */
    plait_batch  *batch;
    pli_sums     *sums;
    int64_t      *outline; /* [HEAD + LENGTHS most] */
};

static const pli_net *net_of(const pli_stages *s) { return pli_net_trained(s->run); }
/* Feeds of a micro-batch: of its rows; of variables, too, where it is judged. */
static int64_t feeds_of(const pli_stages *s) { return PLI_NET_FEEDS + 2 + net_of(s)->n_params; }
static int64_t *lengths_of(const pli_stages *s, int32_t m) { return s->outline + HEAD + LENGTHS * (int64_t)m; }

/* --- planned ------------------------------------------------------------------------------------------------------ */

static plait_status no_memory(const pli_run *run) {
    return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the stages of a net");
}

static plait_status make_arrays(pli_stages *s) {
    const size_t most = (size_t)s->most;
    const size_t params = (size_t)net_of(s)->n_params;
    s->place = pli_array((size_t)plait_graph_nodes(net_of(s)->graph), sizeof *s->place);
    s->rows = pli_calloc(most, sizeof *s->rows);
    s->feed = pli_array(most * (size_t)feeds_of(s), sizeof *s->feed);
    s->fetch = pli_array(most * (params + 1), sizeof *s->fetch);
    s->batch = pli_array(most, sizeof *s->batch);
    s->sums = pli_array(most, sizeof *s->sums);
    s->outline = pli_calloc(HEAD + LENGTHS * most, sizeof *s->outline);
    return s->place != NULL && s->rows != NULL && s->feed != NULL && s->fetch != NULL && s->batch != NULL &&
                   s->sums != NULL && s->outline != NULL
               ? PLAIT_OK
               : no_memory(s->run);
}

static void find_stages(pli_stages *s) {
    const pli_net     *net = net_of(s);
    const plait_graph *g = net->graph;
    for (int64_t k = 0; k < g->n_nodes; k++)
        for (int32_t p = 0; p < net->n_params; p++)
            if (g->node[k].value == net->param[p].value) s->stage_of[p] = s->place[k] % s->ranks;
}

/* By layers; a net in columns knows its places. */
static plait_status find_places(pli_stages *s) {
    const pli_net *net = net_of(s);
    const int64_t  rows = s->run->batch / s->replicas / s->most;
    if (net->columns == 1 && s->ranks > 1 && pli_placed_by(s->run, net)) {
        PLI_TRY(pli_placed_place(s->run, net, s->ranks, s->chunks, rows > 1 ? rows : 1, s->place, &s->pipeline));
        s->judge = s->place[net->graph->value[net->sums].node] % s->ranks;
        return PLAIT_OK;
    }
    if (net->columns == 1)
        return pli_layers_place(net, s->ranks * s->chunks, rows > 1 ? rows : 1, NULL, s->place, s->run->err);
    for (int64_t k = 0; k < plait_graph_nodes(net->graph); k++) s->place[k] = k < net->n_place ? net->place[k] : -1;
    return PLAIT_OK;
}

plait_status pli_stages_plan(pli_run *run, pli_stages **stages_out) {
    const plait_train_opts *o = run->opts;
    const int32_t           ranks = pli_run_stages(run), most = o->micro_batches > 1 ? o->micro_batches : 1;
    if (ranks == 1 && most == 1) return PLAIT_OK;
    pli_stages *s = pli_calloc(1, sizeof *s);
    if (s == NULL) return no_memory(run);
    s->run = run;
    s->ranks = ranks;
    s->most = most;
    s->replicas = plait_comm_workers(run->comm) / ranks;
    s->stage = plait_comm_rank(run->comm) / s->replicas;
    s->replica = plait_comm_rank(run->comm) % s->replicas;
    s->chunks = ranks > 1 && strcmp(pli_run_pipeline(run), pli_pipelines[PLI_INTERLEAVED]) == 0 ? CHUNKS : 1;
    s->pipeline = pli_run_pipeline(run);
    s->judge = net_of(s)->columns > 1 ? 0 : ranks - 1;
    plait_status status = make_arrays(s);
    if (status >= 0) status = find_places(s);
    if (status < 0) {
        pli_stages_destroy(&s);
        return status;
    }
    find_stages(s);
    *stages_out = s;
    return pli_outlive_check(run, s->stage_of, net_of(s)->n_params);
}

void pli_stages_destroy(pli_stages **stages) {
    pli_stages *s = *stages;
    if (s == NULL) return;
    pli_stages_close(s);
    for (int32_t m = 0; s->rows != NULL && m < s->most; m++) pli_net_rows_free(&s->rows[m]);
    pli_free(s->place);
    pli_free(s->rows);
    pli_free(s->feed);
    pli_free(s->fetch);
    pli_free(s->batch);
    pli_free(s->sums);
    pli_free(s->outline);
    pli_free(s);
    *stages = NULL;
}

bool pli_stages_have(const pli_stages *s, int32_t p) { return s == NULL || s->stage_of[p] == s->stage; }

int32_t pli_stages_rank_of(const pli_stages *s, int32_t p) {
    const int32_t first = s->stage_of[p] * s->replicas;
    int32_t       rank = first;
    while (rank < first + s->replicas && pli_comm_is_absent(s->run->comm, rank)) rank++;
    return rank < first + s->replicas ? rank : first;
}
int32_t pli_stages_replica(const pli_stages *s) { return s->replica; }

plait_status pli_stages_suit(const pli_run *run, const double *speed, pli_text *text, double *gain_out) {
    const pli_stages *s = pli_net_fit_of(run)->stages;
    const int64_t     rows = run->batch / s->replicas / s->most;
    if (s->chunks > 1 || net_of(s)->columns > 1)
        return pli_fail(run->err, PLAIT_EREFUSED, "only a net with one run of layers a stage is cut anew");
    return pli_placed_suit(run, net_of(s), s->ranks, rows > 1 ? rows : 1, s->place, speed, text, gain_out);
}

plait_group *pli_stages_group(const pli_stages *s) { return s == NULL ? NULL : s->members; }

/* --- met ---------------------------------------------------------------------------------------------------------- */

/* A group of `n` ranks from `first` on, `step` apart; *group_out is set on its members. */
static plait_status make_group(const pli_stages *s, const char *what, int32_t number, int32_t first, int32_t n,
                               int32_t step, plait_group **group_out) {
    char         name[32];
    int32_t     *rank = pli_array((size_t)n, sizeof *rank);
    plait_group *group = NULL;
    if (rank == NULL) return no_memory(s->run);
    for (int32_t i = 0; i < n; i++) rank[i] = first + i * step;
    snprintf(name, sizeof name, "%s %d", what, number);
    const plait_status status = plait_group_create(s->run->comm, name, n, rank, &group);
    if (status >= 0 && plait_group_rank(group) >= 0) *group_out = group;
    pli_free(rank);
    return status;
}

/* All workers make all groups, in the same order. */
plait_status pli_stages_meet(pli_stages *s) {
    if (s == NULL || s->ranks == 1) return PLAIT_OK;
    for (int32_t k = 0; k < s->ranks; k++)
        PLI_TRY(make_group(s, "stage", k, k * s->replicas, s->replicas, 1, &s->members));
    for (int32_t r = 0; r < s->replicas; r++)
        PLI_TRY(make_group(s, "replica", r, r, s->ranks, s->replicas, &s->peers));
    int32_t *rank = pli_array((size_t)s->ranks, sizeof *rank);
    if (rank == NULL) return no_memory(s->run);
    for (int32_t k = 0; k < s->ranks; k++) rank[k] = plait_group_member(s->peers, k);
    /* An edge may skip all parts, as the labels do: its producer must not wait for a reader that waits for it. */
    const plait_status status =
        plait_comm_channel_create(s->run->comm, s->ranks, rank, s->ranks * s->chunks + 1, &s->channel);
    pli_free(rank);
    return status;
}

plait_status pli_stages_outlive(pli_stages *s) {
    if (s == NULL || s->ranks == 1 || s->run->opts->replicas < 2) return PLAIT_OK;
    return pli_outlive_begin(s->run, s->peers);
}

static void trace(void *user, pli_piece piece, int32_t micro_batch, bool ends) {
    tracer *t = user;
    if (ends)
        pli_comm_span_end(t->run->comm, PLI_SPAN_PIECE, t->name[piece], micro_batch, t->begun_ns[piece]);
    else
        t->begun_ns[piece] = pli_comm_span_begin(t->run->comm);
}

static void watch(pli_stages *s, int32_t chunk, int32_t part) {
    tracer *t = &s->tracer[chunk];
    if (pli_comm_spans(s->run->comm) == NULL) return;
    t->run = s->run;
    snprintf(t->name[PLI_PIECE_FORWARD], sizeof t->name[0], "forward in part %d", part);
    snprintf(t->name[PLI_PIECE_BACKWARD], sizeof t->name[0], "backward in part %d", part);
    snprintf(t->name[PLI_PIECE_BUBBLE], sizeof t->name[0], "bubble in part %d", part);
    pli_session_watch(s->session[chunk], trace, t);
}

plait_status pli_stages_open(pli_stages *s, const plait_session_opts *opts) {
    plait_session_opts own = *opts;
    plait_cut          cut;
    plait_cut_init(&cut);
    cut.parts = s->ranks * s->chunks;
    cut.replica = s->replica;
    cut.place = s->place;
    cut.n_places = plait_graph_nodes(net_of(s)->graph);
    cut.channel = plait_comm_channel_calls(s->channel);
    own.cut = &cut;
    for (int32_t c = 0; c < s->chunks; c++) {
        cut.own = c * s->ranks + s->stage;
        PLI_TRY(pli_net_session_create(s->run, &own, &s->session[c]));
        watch(s, c, cut.own);
    }
    return PLAIT_OK;
}

void pli_stages_draw_from(pli_stages *s, uint64_t number) {
    for (int32_t c = 0; c < s->chunks; c++) pli_session_draw_from(s->session[c], number);
}

uint64_t pli_stages_waited_ns(const pli_stages *s) {
    return s == NULL || s->channel == NULL ? 0 : pli_comm_channel_waited_ns(s->channel);
}

void pli_stages_close(pli_stages *s) {
    if (s == NULL) return;
    if (s->peers != NULL && s->run->opts->replicas > 1) pli_outlive_end(s->run);
    for (int32_t c = 0; c < s->chunks; c++) plait_session_destroy(&s->session[c]);
    plait_comm_channel_destroy(&s->channel);
}

/* --- the rows of a run, on stage 0 -------------------------------------------------------------------------------- */

/* Where the rows of a run go on: row `at` of part 0. */
typedef struct rows_left {
    const pli_part *part;
    int64_t         at;
} rows_left;

/* Puts the next n rows in micro-batch m. Returns how many labels they have; -1: no memory. */
static int64_t take_rows(pli_stages *s, int32_t m, int64_t n, rows_left *left) {
    pli_net_rows *to = &s->rows[m];
    int64_t       labels = 0, done = 0;
    if (!pli_net_rows_reserve(net_of(s), to, n)) return -1;
    while (done < n) {
        const int64_t there = left->part->rows - left->at, more = n - done < there ? n - done : there;
        const int64_t own = more > 0 ? pli_net_take_rows(s->run, left->part, left->at, more, to, done) : 0;
        if (own < 0) return own;
        labels += own;
        done += more;
        left->at += more;
        if (left->at == left->part->rows) *left = (rows_left){ left->part + 1, 0 };
    }
    return labels;
}

/* Puts a row that does not count in micro-batch m. */
static bool take_blank(pli_stages *s, int32_t m, const pli_part *part) {
    const pli_net *net = net_of(s);
    while (part->rows == 0) part++;
    if (!pli_net_rows_reserve(net, &s->rows[m], 1) || pli_net_take_rows(s->run, part, 0, 1, &s->rows[m], 0) < 0)
        return false;
    for (int64_t i = 0; i < net->row_labels; i++) s->rows[m].weight[i] = 0;
    return true;
}

/* Lays out n rows, n > 0, in micro-batches. */
static plait_status lay_out(pli_stages *s, const pli_part *part, int64_t n) {
    const int64_t most = s->most, count = s->chunks > 1 || n > most ? most : n;
    rows_left     left = { part, 0 };
    s->outline[MICRO_BATCHES] = count;
    s->outline[EXAMPLES] = 0;
    for (int32_t m = 0; m < count; m++) {
        const int64_t rows = n * (m + 1) / count - n * m / count, labels = take_rows(s, m, rows, &left);
        int64_t      *lengths = lengths_of(s, m);
        plait_feed   *feed = &s->feed[feeds_of(s) * m];
        if (labels < 0 || (rows == 0 && !take_blank(s, m, part))) return no_memory(s->run);
        s->outline[EXAMPLES] += labels;
        lengths[ROWS] = rows > 0 ? rows : 1;
        if (pli_net_feed_rows(net_of(s), &s->rows[m], lengths[ROWS], feed) < 0) return no_memory(s->run);
        lengths[ENTRIES] = s->rows[m].entries;
        lengths[UNIQUE] = s->rows[m].unique;
    }
    return PLAIT_OK;
}

/* --- a run -------------------------------------------------------------------------------------------------------- */

static plait_status tell_outline(const pli_stages *s) {
    const size_t bytes = (HEAD + LENGTHS * (size_t)s->most) * sizeof *s->outline;
    return s->ranks == 1 ? PLAIT_OK : plait_group_broadcast(s->peers, s->outline, bytes, 0);
}

/* Feeds and fetches of micro-batch m. Other stages than the first feed shapes alone. values: the variables', which are
 * judged; NULL: it is trained on. */
static void make_batch(pli_stages *s, int32_t m, const plait_feed *values) {
    const pli_net *net = net_of(s);
    const int64_t *lengths = lengths_of(s, m);
    plait_feed    *feed = &s->feed[feeds_of(s) * m];
    plait_fetch   *fetch = &s->fetch[(net->n_params + 1) * (int64_t)m];
    const pli_net_rows shape = { .entries = lengths[ENTRIES], .unique = lengths[UNIQUE] };
    int32_t fed = s->stage == 0 ? pli_net_feeds(net) : pli_net_feeds_of(net, &shape, lengths[ROWS], feed), n = 0;
    for (int32_t p = 0; p < net->n_params; p++)
        if (values != NULL) feed[fed++] = values[p];
        else fetch[n++] = (plait_fetch){ .value = net->param[p].inc };
    s->sums[m] = (pli_sums){ 0 };
    fetch[n++] = (plait_fetch){ .value = net->sums, .tensor = { .data = &s->sums[m] }, .bytes = sizeof s->sums[m] };
    s->batch[m] = (plait_batch){ .feeds = feed, .fetches = fetch, .n_feeds = fed, .n_fetches = n };
}

/* The outline is there: runs its micro-batches. sums_out: of the replica's rows, on all of its ranks. */
static plait_status run_batches(pli_stages *s, const plait_feed *values, pli_sums *sums_out) {
    const int32_t count = (int32_t)s->outline[MICRO_BATCHES];
    *sums_out = (pli_sums){ 0 };
    for (int32_t m = 0; m < count; m++) make_batch(s, m, values);
    PLI_TRY(plait_session_run_batches(s->session, s->chunks, s->pipeline, s->batch, count, s->run->err));
    for (int32_t m = 0; m < count; m++) pli_sums_add(sums_out, &s->sums[m]);
    return s->ranks == 1 ? PLAIT_OK : plait_group_broadcast(s->peers, sums_out, sizeof *sums_out, s->judge);
}

static plait_status run_outline(pli_stages *s, plait_table_store *store, pli_sums *sums_out) {
    plait_table_store_examples(store, s->outline[EXAMPLES]);
    pli_table_store_flushes(store, s->outline[LEFT] == 0);
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
    PLI_TRY(lay_out(s, part, rows));
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

plait_status pli_stages_judge(pli_stages *s, const plait_feed *values, const pli_part *part, bool *more_out,
                              pli_sums *sums_out) {
    *sums_out = (pli_sums){ 0 };
    if (s->stage == 0) s->outline[LEFT] = s->outline[MICRO_BATCHES] = 0;
    if (part != NULL) PLI_TRY(lay_out(s, part, part->rows));
    PLI_TRY(tell_outline(s));
    *more_out = s->outline[MICRO_BATCHES] > 0;
    return *more_out ? run_batches(s, values, sums_out) : PLAIT_OK;
}

/* If the root has died, what comes is another's, who may not have the parameter: so nobody's own values are replaced by
 * it, and all take a living root's. sent: room for a parameter. */
static plait_status gather_param(const pli_stages *s, int32_t p, float *values, float *sent) {
    const pli_net_param *param = &net_of(s)->param[p];
    const size_t         bytes = (size_t)(param->rows * param->cols) * sizeof *values;
    int32_t              absent = pli_comm_absent(s->run->comm);
    do {
        if (pli_stages_have(s, p)) memcpy(sent, values + param->at, bytes);
        PLI_TRY(plait_comm_broadcast(s->run->comm, sent, bytes, pli_stages_rank_of(s, p)));
    } while (pli_run_again(s->run, &absent));
    memcpy(values + param->at, sent, bytes);
    return PLAIT_OK;
}

plait_status pli_stages_gather(const pli_stages *s, float *values) {
    if (s == NULL || s->ranks == 1) return PLAIT_OK;
    const pli_net *net = net_of(s);
    int64_t        most = 1;
    for (int32_t p = 0; p < net->n_params; p++) {
        const int64_t n = net->param[p].rows * net->param[p].cols;
        if (n > most) most = n;
    }
    float       *sent = pli_array((size_t)most, sizeof *sent);
    plait_status status = sent != NULL ? PLAIT_OK : no_memory(s->run);
    for (int32_t p = 0; status == PLAIT_OK && p < net->n_params; p++) status = gather_param(s, p, values, sent);
    pli_free(sent);
    return status;
}
