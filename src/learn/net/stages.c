/* A net in stages: which ranks have what, their groups and sessions. See stages.h. */
#include "learn/net/stages_state.h"

#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/pipeline.h"
#include "learn/net/outlive.h"

/* The rank of a stage of a replica, which may be a spare one. */
static int32_t rank_at(const pli_stages *s, int32_t stage, int32_t replica) {
    return replica < s->replicas ? stage * s->replicas + replica
                                 : (s->ranks * s->replicas) + stage * s->spares + replica - s->replicas;
}

static void find_own(pli_stages *s, int32_t rank) {
    const int32_t all = s->replicas + s->spares;
    for (int32_t i = 0; i < s->ranks * all; i++)
        if (rank_at(s, i / all, i % all) == rank) {
            s->stage = i / all;
            s->replica = i % all;
        }
}

/* Of a micro-batch. */
static int64_t rows_of(const pli_stages *s) {
    const int64_t rows = s->run->batch / s->replicas / s->most;
    return rows > 1 ? rows : 1;
}

/* --- planned ------------------------------------------------------------------------------------------------------ */

static plait_status no_memory(const pli_run *run) {
    return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the stages of a net");
}

static plait_status make_arrays(pli_stages *s) {
    const size_t most = (size_t)s->most;
    const size_t params = (size_t)pli_stages_net(s)->n_params;
    s->place = pli_array((size_t)plait_graph_nodes(pli_stages_net(s)->graph), sizeof *s->place);
    s->rows = pli_calloc(most, sizeof *s->rows);
    s->feed = pli_array(most * (size_t)pli_stages_feeds(s), sizeof *s->feed);
    s->fetch = pli_array(most * (params + 1), sizeof *s->fetch);
    s->batch = pli_array(most, sizeof *s->batch);
    s->sums = pli_array(most, sizeof *s->sums);
    s->outline = pli_calloc(PLI_OUTLINE_HEAD + (size_t)pli_stages_lengths(s) * most, sizeof *s->outline);
    return s->place != NULL && s->rows != NULL && s->feed != NULL && s->fetch != NULL && s->batch != NULL &&
                   s->sums != NULL && s->outline != NULL
               ? PLAIT_OK
               : no_memory(s->run);
}

static void find_stages(pli_stages *s) {
    const pli_net     *net = pli_stages_net(s);
    const plait_graph *g = net->graph;
    for (int64_t k = 0; k < g->n_nodes; k++)
        for (int32_t p = 0; p < net->n_params; p++)
            if (g->node[k].value == net->param[p].value) s->stage_of[p] = s->place[k] % s->ranks;
}

/* By layers; a net in columns knows its places. */
static plait_status find_places(pli_stages *s) {
    const pli_net *net = pli_stages_net(s);
    if (net->columns == 1 && s->ranks > 1 && pli_placed_by(s->run, net)) {
        PLI_TRY(pli_placed_place(s->run, net, s->ranks, s->chunks, rows_of(s), s->place, &s->pipeline));
        s->judge = s->place[net->graph->value[net->sums].node] % s->ranks;
        return PLAIT_OK;
    }
    if (net->columns == 1)
        return pli_layers_place(net, s->ranks * s->chunks, rows_of(s), NULL, s->place, s->run->err);
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
    s->replicas = pli_run_holders(run);
    s->spares = run->opts->spares / ranks;
    find_own(s, plait_comm_rank(run->comm));
    s->chunks = ranks > 1 && strcmp(pli_run_pipeline(run), pli_pipelines[PLI_INTERLEAVED]) == 0 ? PLI_STAGE_CHUNKS : 1;
    s->pipeline = pli_run_pipeline(run);
    s->judge = pli_stages_net(s)->columns > 1 ? 0 : ranks - 1;
    plait_status status = make_arrays(s);
    if (status >= 0) status = find_places(s);
    if (status < 0) {
        pli_stages_destroy(&s);
        return status;
    }
    find_stages(s);
    *stages_out = s;
    return pli_outlive_check(run, s->stage_of, pli_stages_net(s)->n_params);
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
    pli_free(s->scores);
    pli_free(s);
    *stages = NULL;
}

bool pli_stages_have(const pli_stages *s, int32_t p) { return s == NULL || s->stage_of[p] == s->stage; }

int32_t pli_stages_of(const pli_stages *s, int32_t p) { return s->stage_of[p]; }
int32_t pli_stages_at(const pli_stages *s, int32_t part) { return part % s->ranks; }

int32_t pli_stages_rank_of(const pli_stages *s, int32_t p) {
    const int32_t stage = s->stage_of[p], all = s->replicas + s->spares;
    int32_t       r = 0;
    while (r < all && pli_comm_is_absent(s->run->comm, rank_at(s, stage, r))) r++;
    return rank_at(s, stage, r < all ? r : 0);
}
int32_t pli_stages_stage(const pli_stages *s) { return s->stage; }
bool    pli_stages_judges(const pli_stages *s) { return s != NULL && s->judges; }
int32_t pli_stages_replica(const pli_stages *s) { return s->replica; }

plait_status pli_stages_suit(const pli_run *run, const double *speed, pli_text *text, double *gain_out) {
    const pli_stages *s = pli_net_fit_of(run)->stages;
    if (s->chunks > 1 || pli_stages_net(s)->columns > 1)
        return pli_fail(run->err, PLAIT_EREFUSED, "only a net with one run of layers a stage is cut anew");
    return pli_placed_suit(run, pli_stages_net(s), s->ranks, rows_of(s), s->place, speed, text, gain_out);
}

plait_status pli_stages_anew(const pli_run *run, const double *seconds, int32_t *place_out, pli_text *text,
                             double *gain_out) {
    const pli_stages *s = pli_net_fit_of(run)->stages;
    return pli_placed_anew(run, pli_stages_net(s), s->ranks, s->chunks, rows_of(s), s->place, seconds, place_out, text,
                           gain_out);
}

plait_status pli_stages_shares(const pli_run *run, const double *seconds, pli_net **pieces_out, pli_text *text,
                               double *gain_out) {
    const pli_stages *s = pli_net_fit_of(run)->stages;
    return pli_placed_shares(run, pli_stages_net(s), rows_of(s), s->place, seconds, pieces_out, text, gain_out);
}

plait_group *pli_stages_group(const pli_stages *s) { return s == NULL ? NULL : s->members; }

/* --- met ---------------------------------------------------------------------------------------------------------- */

/* The group of a stage's ranks, or of a replica's; *group_out is set on its members. */
static plait_status make_group(const pli_stages *s, bool of_stage, int32_t number, plait_group **group_out) {
    const char  *what = of_stage ? "stage" : "replica";
    const int32_t n = of_stage ? s->replicas + s->spares : s->ranks;
    char         name[32];
    int32_t     *rank = pli_array((size_t)n, sizeof *rank);
    plait_group *group = NULL;
    if (rank == NULL) return no_memory(s->run);
    for (int32_t i = 0; i < n; i++) rank[i] = of_stage ? rank_at(s, number, i) : rank_at(s, i, number);
    snprintf(name, sizeof name, "%s %d", what, number);
    const plait_status status = plait_group_create(s->run->comm, name, n, rank, &group);
    if (status >= 0 && plait_group_rank(group) >= 0) *group_out = group;
    pli_free(rank);
    return status;
}

/* All workers make all groups, in the same order. */
plait_status pli_stages_meet(pli_stages *s) {
    if (s == NULL || s->ranks == 1) return PLAIT_OK;
    for (int32_t k = 0; k < s->ranks; k++) PLI_TRY(make_group(s, true, k, &s->members));
    for (int32_t r = 0; r < s->replicas + s->spares; r++) PLI_TRY(make_group(s, false, r, &s->peers));
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
    if (s == NULL || s->ranks == 1) return PLAIT_OK;
    return pli_outlive_begin(s->run, s->peers);
}

static void trace(void *user, pli_piece piece, int32_t micro_batch, bool ends) {
    pli_stage_tracer *t = user;
    plait_comm       *comm = t->stages->run->comm;
    if (t->stages->judges) return;
    if (ends) pli_comm_span_end(comm, PLI_SPAN_PIECE, t->name[piece], micro_batch, t->begun_ns[piece]);
    else t->begun_ns[piece] = pli_comm_span_begin(comm);
}

static void watch(pli_stages *s, int32_t chunk, int32_t part) {
    pli_stage_tracer *t = &s->tracer[chunk];
    if (pli_comm_spans(s->run->comm) == NULL) return;
    t->stages = s;
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
    cut.n_places = plait_graph_nodes(pli_stages_net(s)->graph);
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

void pli_stages_take_places(pli_stages *s, const int32_t *place) {
    memcpy(s->place, place, (size_t)plait_graph_nodes(pli_stages_net(s)->graph) * sizeof *place);
    find_stages(s);
    s->judge = s->ranks - 1; /* the loss comes last */
}

int64_t pli_stages_rows(const pli_stages *s) { return s == NULL ? 0 : s->trained; }

void pli_stages_close_sessions(pli_stages *s) {
    for (int32_t c = 0; c < s->chunks; c++) plait_session_destroy(&s->session[c]);
}

void pli_stages_close(pli_stages *s) {
    if (s == NULL) return;
    if (s->peers != NULL) pli_outlive_end(s->run);
    pli_stages_close_sessions(s);
    plait_comm_channel_destroy(&s->channel);
}

/* --- gathered ----------------------------------------------------------------------------------------------------- */

/* If the root has died, what comes is another's, who may not have the parameter: so nobody's own values are replaced by
 * it, and all take a living root's. sent: room for a parameter. */
static plait_status gather_param(const pli_stages *s, int32_t p, float *values, float *sent) {
    const pli_net_param *param = &pli_stages_net(s)->param[p];
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
    const pli_net *net = pli_stages_net(s);
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
