/* Online learning in the table's own memory: under async over local, where workers learn side by side without locks,
 * and for one worker, since nobody else could see the values between two clocks.
 *
 * One worker learns its rows one after another, so the result does not depend on its threads; of a stream the other
 * threads parse the next clock's rows meanwhile. */
#include "learn/linear/online.h"

#include <pthread.h>
#include <string.h>

#include "table/table.h"

enum { PIECES = 16 }; /* of a clock's rows, for the threads to parse */

static pli_online *online_of(const pli_run *run) { return pli_linear_fit_of(run)->online; }

/* --- which memory ------------------------------------------------------------------------------------------------- */

bool pli_online_is_alone(const pli_run *run) {
    const plait_train_opts *o = run->opts;
    return plait_comm_workers(run->comm) == 1 && plait_comm_servers(run->comm) == 0 &&
           pli_pair_is_unlocked(pli_topology_find(run->topology), "async", NULL) && o->n_tables == 0 &&
           pli_comm_events(run->comm) == NULL && o->checkpoint == NULL && o->resume == NULL;
}

bool pli_online_fits_in_place(const pli_run *run) {
    if (pli_linear_fit_of(run)->form != PLI_KEYED) return false;
    return pli_pair_is_unlocked(pli_topology_find(run->topology), run->consistency, NULL) || pli_online_is_alone(run);
}

plait_status pli_online_make_table(pli_run *run, const plait_table_opts *opts, plait_table **table_out) {
    pli_online      *o = online_of(run);
    plait_table_opts t = *opts;
    if (!pli_online_fits_in_place(run)) return pli_run_make_table(run, opts, table_out);
    /* A worker alone keeps to the files' order under async as well. On loaded rows its threads would learn faster side
     * by side, but in a file that is sorted by label each would see other labels. */
    o->unlocked = pli_run_holders(run) > 1 &&
                  pli_pair_is_unlocked(pli_topology_find(run->topology), run->consistency, NULL);
    o->rule.shared = o->unlocked;
    t.topology = run->topology;
    t.consistency = o->unlocked ? run->consistency : "async";
    t.filter = "";
    PLI_TRY(plait_table_create(run->job, &t, table_out));
    PLI_TRY(pli_run_add_table(run, *table_out));
    o->in_place = pli_table_place(*table_out, &o->memory, &o->stride) && o->stride == o->cols * (int64_t)sizeof(float);
    return o->in_place ? PLAIT_OK
                       : pli_fail(run->err, PLAIT_EINVAL, "table %s: its memory is not shared", opts->name);
}

/* --- a row -------------------------------------------------------------------------------------------------------- */

static float *values_of(const pli_online *o, uint64_t key) {
    return (float *)(void *)(o->memory + (int64_t)key * o->stride);
}

static plait_status take(const pli_run *run, pli_online_thread *h, const pli_part *part, int64_t i,
                         pli_online_row *row) {
    const pli_linear_fit *l = pli_linear_fit_of(run);
    const pli_block      *block = part->block;
    const int64_t         number = part->order != NULL ? (int64_t)part->order[i] : part->first + i;
    const int64_t         from = block->row_start[number];
    PLI_TRY(pli_online_take(run, h, block, number, row));
    const int64_t entries = row->n - row->intercept;
    const bool    centred = l->fit.scale.centre != NULL;
    for (int64_t e = 0; e < entries; e++) {
        const uint64_t key = centred ? (uint64_t)e : block->col != NULL ? block->col[from + e] : block->key[from + e];
        if (key >= (uint64_t)l->linear.features)
            return pli_fail(&h->error, PLAIT_EFORMAT, PLI_INDEX_TOO_HIGH, (long long)(block->first_row + number + 1));
        row->at[e] = values_of(l->online, key);
        __builtin_prefetch(row->at[e], 1);
    }
    if (row->intercept) row->at[entries] = values_of(l->online, (uint64_t)l->linear.features);
    return PLAIT_OK;
}

static plait_status learn_part(pli_run *run, pli_online_thread *h, const pli_part *part) {
    const pli_online *o = online_of(run);
    if (part->rows == 0) return PLAIT_OK;
    PLI_TRY(take(run, h, part, 0, &h->row[0]));
    for (int64_t i = 0; i < part->rows; i++) {
        if (i + 1 < part->rows) PLI_TRY(take(run, h, part, i + 1, &h->row[(i + 1) & 1]));
        if (pli_online_learn(&o->rule, &h->row[i & 1], &h->totals, &h->sums, &h->scratch) < 0)
            return pli_fail(&h->error, PLAIT_ENOMEM, "no memory for a row");
    }
    return o->reviews ? PLAIT_OK : pli_online_keep(run, h, part);
}

/* --- totals ------------------------------------------------------------------------------------------------------- */

static void read_totals(const pli_online *o, pli_online_totals *totals) {
    float was[3];
    for (int i = 0; i < 3; i++) __atomic_load(values_of(o, o->total_key) + i, &was[i], __ATOMIC_RELAXED);
    *totals = (pli_online_totals){ .weight = (double)was[0], .norm = (double)was[1], .rows = (double)was[2] };
}

/* --- threads side by side ----------------------------------------------------------------------------------------- */

typedef struct in_place {
    pli_run        *run;
    const pli_part *part;  /* of loaded data; of one worker's stream those of this clock */
    int64_t         clock;
    /* one worker */
    bool            learnt; /* by the caller's thread, which alone looks */
    bool            more;   /* there is a next clock to parse */
    pthread_mutex_t lock;   /* of what follows */
    bool            cut;
    int32_t         next_piece, bad_piece;
    plait_error     error;  /* of bad_piece, the first that could not be parsed */
} in_place;

/* A thread adds the totals of its rows behind each part. */
static void part_side_by_side(void *user, int64_t i, int32_t thread) {
    const in_place    *pass = user;
    pli_run           *run = pass->run;
    pli_online        *o = online_of(run);
    pli_online_thread *h = &o->thread[thread];
    pli_part           part = { 0 };
    plait_status       status = h->error.code;
    if (status == PLAIT_OK && pass->part != NULL) part = pass->part[i];
    else if (status == PLAIT_OK)
        status = pli_stream_part(run->loop->batches, pass->clock, (int32_t)i, thread, &part, &h->error);
    pli_online_totals before;
    read_totals(o, &before);
    h->totals = before;
    if (status == PLAIT_OK) status = learn_part(run, h, &part);
    if (o->rule.judges) return;
    memset(h->grown, 0, (size_t)o->cols * sizeof *h->grown);
    h->grown[0] = (float)(h->totals.weight - before.weight);
    h->grown[1] = (float)(h->totals.norm - before.norm);
    h->grown[2] = (float)(h->totals.rows - before.rows);
    if (status == PLAIT_OK) status = plait_table_inc(pli_linear_fit_of(run)->w, 1, &o->total_key, h->grown, 0);
    if (status < 0 && h->error.code == PLAIT_OK) h->error = *plait_comm_error(run->comm);
}

/* --- one worker --------------------------------------------------------------------------------------------------- */

/* Notes that a piece could not be parsed. Pieces are begun in their order, so the first bad one does not depend on who
 * is faster. */
static void note_bad(in_place *pass, int32_t piece, const plait_error *error) {
    if (pass->error.code == PLAIT_OK || piece < pass->bad_piece) {
        pass->error = *error;
        pass->bad_piece = piece;
    }
}

/* The next piece of the next clock to parse, which the first caller cuts; -1: there is none. */
static int32_t next_piece(in_place *pass) {
    pli_online   *o = online_of(pass->run);
    const int64_t next = pass->clock + 1;
    int32_t       piece = -1;
    plait_error   error;
    if (!pass->more) return -1;
    pthread_mutex_lock(&pass->lock);
    if (!pass->cut && pli_stream_cut(pass->run->loop->batches, next, PIECES, &o->pieces[next & 1], &error) < 0)
        note_bad(pass, 0, &error);
    pass->cut = true;
    if (pass->error.code == PLAIT_OK && pass->next_piece < o->pieces[next & 1]) piece = pass->next_piece++;
    pthread_mutex_unlock(&pass->lock);
    return piece;
}

/* The caller's thread learns this clock's rows, so the values stay in its core's cache; the others, and it too when
 * it is done, parse the pieces of the next clock one by one. */
static void lane(void *user, int64_t i, int32_t thread) {
    in_place          *pass = user;
    pli_run           *run = pass->run;
    pli_online        *o = online_of(run);
    pli_online_thread *learner = pli_online_alone(o);
    const int64_t      next = pass->clock + 1;
    (void)i;
    if (thread == 0 && !pass->learnt) {
        pass->learnt = true;
        for (int64_t p = 0; p < o->ordered && learner->error.code == PLAIT_OK; p++)
            learn_part(run, learner, &pass->part[o->order[p]]);
    }
    for (int32_t p = next_piece(pass); p >= 0; p = next_piece(pass)) {
        plait_error error;
        if (pli_stream_piece(run->loop->batches, next, p, p * 2 + (int32_t)(next & 1), &o->part[next & 1][p],
                             &error) >= 0)
            continue;
        pthread_mutex_lock(&pass->lock);
        note_bad(pass, p, &error);
        pthread_mutex_unlock(&pass->lock);
    }
}

static plait_status error_of(pli_run *run) {
    const pli_online *o = online_of(run);
    for (int32_t t = 0; t <= o->threads; t++) {
        if (o->thread[t].error.code == PLAIT_OK) continue;
        *run->err = o->thread[t].error;
        return run->err->code;
    }
    return PLAIT_OK;
}

/* Lets `threads` threads learn this clock's rows and parse those of the next. */
static plait_status share_out(pli_run *run, in_place *pass, int32_t threads) {
    pthread_mutex_init(&pass->lock, NULL);
    pli_pool_for(run->pool, threads, lane, pass);
    if (!pass->learnt) lane(pass, 0, 0); /* others were quicker to take all lanes */
    pthread_mutex_destroy(&pass->lock);
    PLI_TRY(error_of(run));
    if (pass->error.code == PLAIT_OK) return PLAIT_OK;
    *run->err = pass->error;
    return run->err->code;
}

/* Parses the first clock's rows of a stream. */
static plait_status begin_stream(pli_run *run, int64_t clock) {
    pli_online   *o = online_of(run);
    const int32_t most = pli_dataset_own_blocks(run->data) + PIECES;
    for (int i = 0; i < 2 && o->part[i] == NULL; i++) {
        o->part[i] = pli_calloc((size_t)most, sizeof *o->part[i]);
        if (o->part[i] == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a batch");
    }
    PLI_TRY(pli_stream_slots(run->loop->batches, 2 * most, run->err));
    in_place none = { .run = run, .clock = clock - 1, .more = true };
    o->ordered = 0;
    return share_out(run, &none, o->threads);
}

/* The next rows of a live pipe. */
static plait_status wait_for_rows(pli_run *run, int64_t clock) {
    const bool waits = pli_stream_waits(run->loop->batches, 0);
    if (waits) pli_run_awaits(run, run->opts->data);
    plait_status status = begin_stream(run, clock);
    if (waits) pli_run_awaits(run, NULL);
    return status;
}

/* The next clock's rows are parsed meanwhile; but not those of a live pipe, which may be long in coming. */
static plait_status learn_alone(pli_run *run, const pli_batch *batch, int64_t clock, pli_sums *sums_out) {
    pli_online        *o = online_of(run);
    pli_online_thread *h = pli_online_alone(o);
    const bool         more = batch == NULL && clock + 1 < run->clocks && !run->live;
    if (batch == NULL && run->live) PLI_TRY(wait_for_rows(run, clock));
    else if (batch == NULL && o->part[0] == NULL) PLI_TRY(begin_stream(run, clock));
    if (run->live) PLI_TRY(pli_online_grow(run));
    in_place pass = { .run = run, .part = batch != NULL ? batch->part : o->part[clock & 1], .clock = clock,
                      .more = more };
    PLI_TRY(pli_online_find_order(run, batch != NULL ? batch->parts : o->pieces[clock & 1], pass.part));
    h->sums = (pli_sums){ 0 };
    PLI_TRY(share_out(run, &pass, more ? o->threads : 1));
    float *to = values_of(o, o->total_key);
    to[0] = (float)h->totals.weight;
    to[1] = (float)h->totals.norm;
    to[2] = (float)h->totals.rows;
    *sums_out = h->sums;
    return PLAIT_OK;
}

/* --- a clock ------------------------------------------------------------------------------------------------------ */

static plait_status learn_side_by_side(pli_run *run, const pli_batch *batch, int64_t clock, pli_sums *sums_out) {
    pli_online *o = online_of(run);
    in_place    pass = { .run = run, .part = batch != NULL ? batch->part : NULL, .clock = clock };
    pli_pool_for(run->pool, batch != NULL ? batch->parts : pli_dataset_own_blocks(run->data), part_side_by_side, &pass);
    for (int32_t t = 0; t < o->threads; t++) {
        pli_sums_add(sums_out, &o->thread[t].sums);
        o->thread[t].sums = (pli_sums){ 0 };
    }
    return error_of(run);
}

plait_status pli_online_again_in_place(pli_run *run, const pli_batch *batch, pli_sums *sums_out) {
    pli_online *o = online_of(run);
    for (int32_t t = 0; t < o->threads; t++) o->thread[t].sums = (pli_sums){ 0 };
    return learn_side_by_side(run, batch, 0, sums_out);
}

plait_status pli_online_step_in_place(pli_run *run, const pli_batch *batch, int64_t clock, pli_sums *sums_out) {
    uint64_t at = pli_comm_span_begin(run->comm);
    pli_loop_work_begin(run);
    plait_status status = online_of(run)->unlocked ? learn_side_by_side(run, batch, clock, sums_out)
                                                   : learn_alone(run, batch, clock, sums_out);
    pli_loop_work_end(run);
    if (batch != NULL) pli_run_charge(run, batch, pli_linear_fit_of(run)->linear.goal.columns, 0);
    pli_run_step(run, "compute", &at);
    return status;
}
