/* Runs the micro-batches of a cut graph, in the order of a schedule (pipeline.h).
 *
 * Each micro-batch under way is a run of its own, in an instance of its own, which goes on by steps: forward up to the
 * first node of the backward pass, later from there to the end. So a micro-batch keeps its values between the two, and
 * a finished one gives its memory to the next. When a step cannot go on, the thread waits at the channel: its schedule
 * has nothing else for it to do. */
#include "graph/batches.h"

#include <string.h>

#include "graph/gather.h"
#include "graph/pipeline.h"

typedef struct flight {
    pli_plan     *plan;
    pli_instance *x; /* NULL: not under way */
} flight;

typedef struct batches {
    plait_session *const *session; /* [n_sessions] of the rank's parts */
    int32_t               n_sessions, n;
    plait_batch          *batch;   /* [n] */
    const pli_plan_key   *key;     /* [n] */
    flight               *flight;  /* [n_sessions, n] */
    int64_t              *number;  /* [n_sessions] of the first micro-batch's run */
    int32_t               entered; /* sessions whose variables are ready */
    pli_pipeline          schedule;
} batches;

/* --- one micro-batch in one part ------------------------------------------------------------------------------- */

static void land(batches *b, int32_t part, int32_t m, bool well) {
    plait_session *s = b->session[part];
    flight        *f = &b->flight[(int64_t)part * b->n + m];
    if (f->x == NULL) return;
    if (well) pli_session_hand_out(f->plan, f->x, b->batch[m].fetches);
    pli_plan_release(s, f->plan, f->x);
    pli_session_give(s, f->plan, f->x, well && m == b->n - 1);
    *f = (flight){ 0 };
}

/* Asks the store for the variables, once. */
static plait_status enter(batches *b, int32_t part, const pli_plan *plan, plait_error *err) {
    plait_session *s = b->session[part];
    if (part < b->entered) return PLAIT_OK;
    if (s->memory != NULL)
        PLI_TRY(pli_memory_enter(s->memory, plan->n_expect + plan->n_push, plan->expect, plan->incs, err));
    b->entered++;
    if (s->store.expect == NULL || plan->n_expect == 0) return PLAIT_OK;
    return s->store.expect(s->store.user, (int32_t)plan->n_expect, plan->expect, err);
}

static plait_status take_off(batches *b, int32_t part, int32_t m, plait_error *err) {
    plait_session *s = b->session[part];
    flight        *f = &b->flight[(int64_t)part * b->n + m];
    PLI_TRY(pli_session_take(s, &b->key[m], &f->plan, &f->x, err));
    PLI_TRY(pli_session_check_memory(f->plan, &b->key[m], err));
    PLI_TRY(enter(b, part, f->plan, err));
    pli_plan_begin(f->plan, f->x, &b->key[m], b->number[part] + m);
    return PLAIT_OK;
}

static void tell(const plait_session *s, pli_piece piece, int32_t m, bool ends) {
    if (s->piece != NULL) s->piece(s->piece_user, piece, m, ends);
}

static plait_status fly(batches *b, int32_t part, int32_t m, bool backward, plait_error *err) {
    plait_session       *s = b->session[part];
    const plait_channel *c = &s->channel;
    const flight        *f = &b->flight[(int64_t)part * b->n + m];
    const int64_t        until = backward ? f->plan->n_nodes : f->plan->turn;
    for (;;) {
        bool       waits, sends;
        plait_edge edge;
        PLI_TRY(pli_plan_step(s, f->plan, f->x, until, &waits, &sends, &edge, err));
        if (!waits) return PLAIT_OK;
        tell(s, PLI_PIECE_BUBBLE, m, false);
        PLI_TRY(c->wait(c->user, &edge, sends, err));
        tell(s, PLI_PIECE_BUBBLE, m, true);
    }
}

static plait_status do_piece(batches *b, pli_pipeline_work work, plait_error *err) {
    const int32_t        part = b->n_sessions == 1 ? 0 : work.part / b->schedule.ranks;
    const flight        *f = &b->flight[(int64_t)part * b->n + work.micro_batch];
    const plait_session *s = b->session[part];
    const pli_piece      piece = work.backward ? PLI_PIECE_BACKWARD : PLI_PIECE_FORWARD;
    tell(s, piece, work.micro_batch, false);
    if (!work.backward) PLI_TRY(take_off(b, part, work.micro_batch, err));
    if (f->x == NULL) return PLAIT_OK; /* there is no backward pass: it landed after the forward one */
    PLI_TRY(fly(b, part, work.micro_batch, work.backward, err));
    tell(s, piece, work.micro_batch, true);
    /* A single one has lent its deltas to the store, and lands after the store's end. */
    if (b->n > 1 && (work.backward || f->plan->turn == f->plan->n_nodes)) land(b, part, work.micro_batch, true);
    return PLAIT_OK;
}

/* --- all of them ----------------------------------------------------------------------------------------------- */

static plait_status run_all(batches *b, plait_error *err) {
    pli_pipeline_work work;
    while (pli_pipeline_next(&b->schedule, &work)) {
        PLI_TRY(do_piece(b, work, err));
        pli_pipeline_done(&b->schedule);
    }
    return PLAIT_OK;
}

/* Ends the run with the stores: only now do incs count. */
static plait_status leave(batches *b, plait_status status, plait_error *err) {
    for (int32_t part = 0; part < b->n_sessions; part++) {
        plait_session *s = b->session[part];
        if (part < b->entered) {
            const plait_status ended = s->store.end(s->store.user, status, status == PLAIT_OK ? err : NULL);
            if (s->memory != NULL) pli_memory_leave(s->memory);
            if (status == PLAIT_OK) status = ended;
        }
        for (int32_t m = 0; m < b->n; m++) land(b, part, m, status == PLAIT_OK);
        pli_gather_destroy(&s->gather);
    }
    return status;
}

static plait_status run(batches *b, plait_error *err) {
    plait_error  own;
    plait_status status = PLAIT_OK;
    if (err == NULL) err = &own;
    b->flight = pli_array((size_t)b->n_sessions * (size_t)b->n, sizeof *b->flight);
    b->number = pli_array((size_t)b->n_sessions, sizeof *b->number);
    if (b->flight == NULL || b->number == NULL) status = pli_fail(err, PLAIT_ENOMEM, "no memory for micro-batches");
    if (status == PLAIT_OK) memset(b->flight, 0, (size_t)b->n_sessions * (size_t)b->n * sizeof *b->flight);
    for (int32_t part = 0; status == PLAIT_OK && part < b->n_sessions; part++) {
        plait_session *s = b->session[part];
        b->number[part] = (int64_t)atomic_fetch_add_explicit(&s->runs, (uint64_t)b->n, memory_order_relaxed);
        if (b->n > 1) status = pli_gather_create(b->n, &s->gather, err);
    }
    if (status == PLAIT_OK) status = run_all(b, err);
    if (b->flight != NULL && b->number != NULL) status = leave(b, status, err);
    pli_free(b->flight);
    pli_free(b->number);
    return status;
}

plait_status pli_batches_run_one(plait_session *session, const pli_plan_key *key, plait_fetch *fetches,
                                 plait_error *err) {
    plait_batch batch = { .fetches = fetches, .n_fetches = key->n_fetches };
    batches     b = { .session = &session, .n_sessions = 1, .n = 1, .batch = &batch, .key = key };
    PLI_TRY(pli_pipeline_init(&b.schedule, pli_pipelines[PLI_GPIPE], session->cut.parts, 1, 1, session->cut.own, err));
    return run(&b, err);
}

/* --- for programs ---------------------------------------------------------------------------------------------- */

/* The parts of the sessions, and of the schedule, must be the same. */
static plait_status check_sessions(plait_session *const *sessions, int32_t n, plait_error *err) {
    for (int32_t k = 0; k < n; k++) {
        const plait_session *s = sessions[k];
        PLI_TRY(PLI_GIVEN(err, s));
        if (s->plan_opts.cut == NULL)
            return pli_fail(err, PLAIT_EINVAL, "plait_session_run_batches: session %d has no cut", k);
        const int32_t ranks = s->cut.parts / n;
        if (s->cut.parts % n != 0 || s->graph != sessions[0]->graph || s->cut.parts != sessions[0]->cut.parts ||
            (n > 1 && s->cut.own != sessions[0]->cut.own + k * ranks))
            return pli_fail(err, PLAIT_EINVAL,
                            "plait_session_run_batches: session %d has part %d of %d, but the %d sessions of a "
                            "rank are to have every %d-th part of one graph, in order",
                            k, s->cut.own, s->cut.parts, n, ranks);
    }
    return PLAIT_OK;
}

static plait_status make_keys(const plait_session *session, const plait_batch *batch, int32_t n, pli_plan_key *key,
                              plait_error *err) {
    for (int32_t m = 0; m < n; m++) {
        const plait_batch *x = &batch[m];
        key[m] = (pli_plan_key){
            .feeds = x->feeds, .fetches = x->fetches, .n_feeds = x->n_feeds, .n_fetches = x->n_fetches
        };
        PLI_TRY(PLI_GIVEN_OF(err, x->n_feeds, x->feeds));
        PLI_TRY(PLI_GIVEN_OF(err, x->n_fetches, x->fetches));
        PLI_TRY(pli_session_check_key(session, &key[m], err));
        bool same = x->n_feeds == batch->n_feeds && x->n_fetches == batch->n_fetches;
        for (int32_t i = 0; same && i < x->n_feeds; i++) same = x->feeds[i].value == batch->feeds[i].value;
        for (int32_t i = 0; same && i < x->n_fetches; i++) same = x->fetches[i].value == batch->fetches[i].value;
        if (!same)
            return pli_fail(err, PLAIT_EINVAL,
                            "plait_session_run_batches: micro-batch %d feeds or fetches other values than the first",
                            m);
    }
    return PLAIT_OK;
}

plait_status plait_session_run_batches(plait_session *const *sessions, int32_t n_sessions, const char *schedule,
                                       plait_batch *batch, int32_t n, plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, sessions));
    PLI_TRY(PLI_GIVEN(error_out, schedule));
    PLI_TRY(PLI_GIVEN(error_out, batch));
    if (n_sessions < 1 || n < 1)
        return pli_fail(error_out, PLAIT_EINVAL, "plait_session_run_batches: %d sessions and %d micro-batches",
                        n_sessions, n);
    PLI_TRY(check_sessions(sessions, n_sessions, error_out));
    const plait_cut *cut = &sessions[0]->cut;
    const int32_t    ranks = cut->parts / n_sessions;
    batches          b = { .session = sessions, .n_sessions = n_sessions, .n = n, .batch = batch };
    PLI_TRY(pli_pipeline_init(&b.schedule, schedule, ranks, n_sessions, n, cut->own % ranks, error_out));
    pli_plan_key *key = pli_array((size_t)n, sizeof *key);
    if (key == NULL) return pli_fail(error_out, PLAIT_ENOMEM, "no memory for micro-batches");
    plait_status status = make_keys(sessions[0], batch, n, key, error_out);
    b.key = key;
    if (status == PLAIT_OK) status = run(&b, error_out);
    pli_free(key);
    return status;
}
