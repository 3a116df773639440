/* What is handed over when workers come and go. See turnover.h. */
#include "learn/solve/turnover.h"

#include <stdio.h>
#include <string.h>

#include "comm/cluster.h"
#include "learn/keep/keep.h"
#include "learn/solve/scale_plan.h"
#include "learn/solve/settled.h"
#include "table/table.h"

/* --- the plan ----------------------------------------------------------------------------------------------------- */

/* How many workers are in at least. */
static int32_t least_of(const pli_run *run) { return plait_comm_workers(run->comm) - run->opts->slots; }

static int64_t clocks_an_epoch(const pli_loop *loop) { return loop->clocks > 0 ? loop->clocks : loop->run->clocks; }

static int64_t clocks_of(const pli_loop *loop) {
    return loop->doors ? INT64_MAX : clocks_an_epoch(loop) * loop->run->epochs;
}

/* Does the file of a simulated cluster say who is in, and not the plan? */
static bool is_told(const pli_run *run) {
    const pli_cluster *cluster = pli_comm_cluster(run->comm);
    return cluster != NULL && pli_script_has_turns(cluster);
}

bool pli_turnover_leaves(const pli_loop *loop) {
    const pli_run *run = loop->run;
    const int64_t  next = run->clocks_done + 1;
    if (run->opts->slots == 0 || next >= clocks_of(loop)) return false;
    return is_told(run)
               ? !plait_job_wanted(run->job)
               : plait_comm_rank(run->comm) >= pli_scale_at(run->opts->scale, least_of(run), next);
}

/* In simulated time a worker waits for the end of the run, unless the cluster's file has it come earlier. */
static int64_t next_in(const pli_loop *loop) {
    const pli_run *run = loop->run;
    const int64_t  all = clocks_of(loop);
    return is_told(run) ? all : pli_scale_next(run->opts->scale, least_of(run), plait_comm_rank(run->comm),
                                               run->clocks_done + 1, all);
}

plait_status pli_turnover_come(pli_loop *loop, int64_t *epoch_out, int64_t *first_out) {
    pli_run           *run = loop->run;
    const plait_status status = plait_job_join(run->job, next_in(loop));
    if (status != PLAIT_OK) return status;
    const int64_t last = plait_job_clock_now(run->job) - 1;
    *epoch_out = last / clocks_an_epoch(loop);
    *first_out = last % clocks_an_epoch(loop);
    run->epochs_done = *epoch_out;
    run->clocks_done = last;
    loop->away = loop->fetched = false;
    loop->comes = true;
    return PLAIT_OK;
}

/* --- who leaves --------------------------------------------------------------------------------------------------- */

enum { TAG_LEFT = -1000003 };

void pli_turnover_before(pli_loop *loop) {
    const pli_run *run = loop->run;
    for (int32_t w = 0; loop->was_in != NULL && w < plait_comm_workers(run->comm); w++)
        loop->was_in[w] = !pli_job_is_away(run->job, w) && !pli_comm_is_absent(run->comm, w);
}

/* The lowest worker that was in and has stayed; -1: nobody. (Who is absent is the same on all from one collective to
 * the next, and there is none within a clock.) */
static int32_t taker_of(const pli_loop *loop) {
    const pli_run *run = loop->run;
    for (int32_t w = 0; w < plait_comm_workers(run->comm); w++)
        if (loop->was_in[w] && !pli_job_is_away(run->job, w)) return w;
    return -1;
}

/* What a leaver gives. */
typedef struct parcel {
    pli_total losses;
    double    sent[]; /* see pli_curve_give */
} parcel;

static plait_status new_parcel(const pli_run *run, parcel **parcel_out, size_t *bytes_out) {
    *bytes_out = sizeof(parcel) + (size_t)pli_curve_marks(run) * sizeof(double);
    *parcel_out = pli_calloc(1, *bytes_out);
    return *parcel_out != NULL
               ? PLAIT_OK
               : pli_fail(run->err, PLAIT_ENOMEM, "no memory for what a worker that leaves hands over");
}

/* EPEER: the one that stays has died, and what it would have got is lost with it. */
plait_status pli_turnover_give(pli_loop *loop) {
    pli_run      *run = loop->run;
    const int32_t taker = taker_of(loop);
    size_t        bytes;
    parcel       *p;
    PLI_TRY(new_parcel(run, &p, &bytes));
    p->losses = run->progressive;
    run->progressive = (pli_total){ 0 };
    pli_curve_give(run, p->sent);
    const plait_status status = taker < 0 ? PLAIT_OK : pli_comm_send(run->comm, taker, TAG_LEFT, p, bytes);
    pli_free(p);
    return status == PLAIT_EPEER ? PLAIT_OK : status;
}

/* EPEER: the worker has died since, and what it gave is lost as if it had died before. */
static plait_status take_from(pli_loop *loop, int32_t worker) {
    pli_run *run = loop->run;
    size_t   bytes, came = 0;
    parcel  *p;
    PLI_TRY(new_parcel(run, &p, &bytes));
    plait_status status = pli_comm_recv(run->comm, worker, TAG_LEFT, p, bytes, &came, NULL);
    if (status >= 0 && came == bytes) {
        pli_total_merge(&run->progressive, &p->losses);
        pli_curve_get(run, p->sent);
    }
    pli_free(p);
    return status == PLAIT_EPEER ? PLAIT_OK : status;
}

static plait_status take_from_all(pli_loop *loop) {
    const pli_run *run = loop->run;
    const bool     takes = taker_of(loop) == plait_comm_rank(run->comm);
    for (int32_t w = 0; takes && w < plait_comm_workers(run->comm); w++)
        if (loop->was_in[w] && pli_job_is_away(run->job, w)) PLI_TRY(take_from(loop, w));
    return PLAIT_OK;
}

/* --- who comes ---------------------------------------------------------------------------------------------------- */

/* What each brings. */
typedef struct known {
    uint64_t      was_in; /* 1: before the clock */
    int64_t       epochs_done, clocks_done, best_epoch;
    uint64_t      calls; /* of server functions that update tables */
    double        best_loss, validation_loss, validation_accuracy;
    pli_keep_note keep;
} known;

/* An array in the bytes that are handed over; its data follow, and zeros up to the next eighth byte. */
typedef struct array {
    char     name[PLI_CHECKPOINT_NAME], type[8];
    int64_t  rows, cols;
    uint64_t bytes;
} array;

static int64_t width_of(const pli_kept *kept) { return strcmp(kept->type, "F32") == 0 ? 4 : 8; }

static uint64_t bytes_of(const pli_kept *kept) {
    return (uint64_t)(kept->rows * (kept->cols > 0 ? kept->cols : 1) * width_of(kept));
}

/* Has the array, whose shape others have said, so many bytes? */
static bool fits(const pli_kept *kept, uint64_t bytes) {
    int64_t values, all;
    return !__builtin_mul_overflow(kept->rows, kept->cols > 0 ? kept->cols : 1, &values) &&
           !__builtin_mul_overflow(values, width_of(kept), &all) && (uint64_t)all == bytes;
}

/* What the solver keeps beside its tables, or else the learner. Returns how many arrays. */
static int64_t kept_of(const pli_run *run, pli_kept kept[PLI_KEPT]) {
    const pli_learner_more *more = run->learner->more;
    const pli_solver_keeps *solver = &run->solver_keeps;
    if (solver->kept != NULL) return solver->take != NULL ? solver->kept(solver->state, kept) : 0;
    return more != NULL && more->kept != NULL ? more->kept(run, kept) : 0;
}

/* Lays out what a newcomer needs: how many arrays, and these. */
static plait_status lay_out(const pli_run *run, pli_text *out) {
    const char    zeros[8] = { 0 };
    pli_kept      kept[PLI_KEPT];
    const int64_t n = kept_of(run, kept);
    pli_text_add_bytes(out, &n, sizeof n);
    for (int64_t i = 0; i < n; i++) {
        array head = { .rows = kept[i].rows, .cols = kept[i].cols, .bytes = bytes_of(&kept[i]) };
        snprintf(head.name, sizeof head.name, "%s", kept[i].name);
        snprintf(head.type, sizeof head.type, "%s", kept[i].type);
        pli_text_add_bytes(out, &head, sizeof head);
        if (kept[i].data != NULL) pli_text_add_bytes(out, kept[i].data, (size_t)head.bytes);
        else out->failed = true;
        pli_text_add_bytes(out, zeros, (size_t)(pli_pad8(head.bytes) - head.bytes));
    }
    return out->failed ? pli_fail(run->err, PLAIT_ENOMEM, "no memory for what a worker that joins is told") : PLAIT_OK;
}

/* The next array of what was laid out in left bytes. false: it is not whole. */
static bool read_array(const unsigned char **from, size_t *left, array *head, pli_kept *kept) {
    if (*left < sizeof *head) return false;
    memcpy(head, *from, sizeof *head);
    *from += sizeof *head;
    *left -= sizeof *head;
    if (memchr(head->name, '\0', sizeof head->name) == NULL || memchr(head->type, '\0', sizeof head->type) == NULL)
        return false;
    *kept = (pli_kept){ head->name, head->type, head->rows, head->cols, *from };
    if (head->bytes > *left || pli_pad8(head->bytes) > *left || head->rows < 0 || head->cols < 0) return false;
    if (!fits(kept, head->bytes)) return false;
    *from += pli_pad8(head->bytes);
    *left -= (size_t)pli_pad8(head->bytes);
    return true;
}

/* The next number of what was laid out. false: there is none. */
static bool read_number(const unsigned char **from, size_t *left, int64_t *out) {
    if (*left < sizeof *out) return false;
    memcpy(out, *from, sizeof *out);
    *from += sizeof *out;
    *left -= sizeof *out;
    return true;
}

static plait_status malformed(const pli_run *run) {
    return pli_fail(run->err, PLAIT_EFORMAT, "what a worker that joins is told is malformed");
}

/* Puts the arrays back as if they came from a checkpoint. */
static plait_status restore(pli_run *run) {
    const pli_learner_more *more = run->learner->more;
    const pli_solver_keeps *solver = &run->solver_keeps;
    if (solver->kept != NULL) return solver->take != NULL ? solver->take(solver->state) : PLAIT_OK;
    return more != NULL && more->restore != NULL ? more->restore(run) : PLAIT_OK;
}

static plait_status put_back(pli_run *run, const unsigned char *from, size_t left) {
    array    head[PLI_KEPT];
    pli_kept kept[PLI_KEPT];
    int64_t  n = -1;
    bool sound = read_number(&from, &left, &n) && n >= 0 && n <= PLI_KEPT;
    for (int64_t i = 0; sound && i < n; i++) sound = read_array(&from, &left, &head[i], &kept[i]);
    if (!sound) return malformed(run);
    if (n == 0) return PLAIT_OK;
    run->handed = kept;
    run->n_handed = (int32_t)n;
    const plait_status status = restore(run);
    run->handed = NULL;
    run->n_handed = 0;
    return status;
}

/* The lowest of those who were in before; -1: they have all died. */
static int32_t find_knower(const pli_run *run, const known *all) {
    for (int32_t w = 0; w < plait_comm_workers(run->comm); w++)
        if (!pli_comm_is_absent(run->comm, w) && all[w].was_in != 0) return w;
    return -1;
}

/* Hands the arrays to those who have come, if the knower lives: *done_out. */
static plait_status hand_arrays(pli_run *run, bool came, int32_t knower, bool *done_out) {
    const int32_t workers = plait_comm_workers(run->comm), me = plait_comm_rank(run->comm);
    pli_text      mine = { 0 };
    size_t       *sizes = pli_calloc((size_t)workers, sizeof *sizes);
    void         *all = NULL;
    plait_status  status = PLAIT_OK;
    if (sizes == NULL) status = pli_fail(run->err, PLAIT_ENOMEM, "no memory for a list of workers");
    if (status >= 0 && me == knower) status = lay_out(run, &mine);
    if (status >= 0) status = plait_comm_allgatherv(run->comm, mine.data, mine.length, sizes, &all);
    *done_out = status >= 0 && sizes[knower] > 0;
    size_t at = 0;
    for (int32_t w = 0; status >= 0 && w < knower; w++) at += sizes[w];
    if (*done_out && came) status = put_back(run, (const unsigned char *)all + at, sizes[knower]);
    plait_comm_free(all);
    pli_free(sizes);
    pli_text_free(&mine);
    return status;
}

/* All say what they know. *knower_out: whom newcomers follow; -1: everybody has just come. */
static plait_status meet(pli_run *run, bool came, known *all, int32_t *knower_out) {
    known mine;
    memset(&mine, 0, sizeof mine);
    mine.was_in = !came;
    mine.epochs_done = run->epochs_done;
    mine.clocks_done = run->clocks_done;
    mine.calls = pli_job_calls(run->job);
    mine.best_epoch = run->best_epoch;
    mine.best_loss = run->best_loss;
    mine.validation_loss = run->validation_loss;
    mine.validation_accuracy = run->validation_accuracy;
    pli_keep_tell(run, &mine.keep);
    PLI_TRY(plait_comm_allgather(run->comm, &mine, sizeof mine, all));
    *knower_out = find_knower(run, all);
    return PLAIT_OK;
}

static void take(pli_run *run, const known *from) {
    run->epochs_done = from->epochs_done;
    run->clocks_done = from->clocks_done;
    pli_job_take_calls(run->job, from->calls);
    run->best_epoch = from->best_epoch;
    run->best_loss = from->best_loss;
    run->validation_loss = from->validation_loss;
    run->validation_accuracy = from->validation_accuracy;
    pli_keep_take(run, &from->keep);
}

static bool some_came(const pli_run *run, const known *all) {
    for (int32_t w = 0; w < plait_comm_workers(run->comm); w++)
        if (!pli_comm_is_absent(run->comm, w) && all[w].was_in == 0) return true;
    return false;
}

static plait_status hand_over(pli_run *run, bool came, known *all) {
    int32_t knower = -1;
    bool    done = false;
    while (!done) { /* again if the one who knows has died meanwhile */
        PLI_TRY(meet(run, came, all, &knower));
        if (knower < 0)
            return pli_fail(run->err, PLAIT_EPEER, "all workers that were in the run have died as others joined it");
        if (!some_came(run, all)) break;
        PLI_TRY(hand_arrays(run, came, knower, &done));
    }
    if (came) take(run, &all[knower]);
    if (came) pli_curve_skip(run);
    return pli_keep_part(run);
}

plait_status pli_turnover_after(pli_loop *loop, bool came) {
    pli_run *run = loop->run;
    if (run->opts->slots == 0 || !pli_job_roster_changed(run->job)) return PLAIT_OK;
    if (!came) PLI_TRY(take_from_all(loop));
    known *all = pli_calloc((size_t)plait_comm_workers(run->comm), sizeof *all);
    if (all == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a list of workers");
    plait_status status = hand_over(run, came, all);
    pli_free(all);
    if (status >= 0 && loop->balance.copies.book != NULL)
        status = pli_balance_copies_anew(&loop->balance, run->clocks_done);
    if (status >= 0) status = pli_settled_anew(run);
    if (status >= 0 && loop->steps->turned != NULL) status = loop->steps->turned(run, came);
    return status;
}

/* --- a learner's own loop ----------------------------------------------------------------------------------------- */

plait_status pli_turnover_wait(pli_loop *loop) {
    int64_t            epoch, first;
    const plait_status status = pli_turnover_come(loop, &epoch, &first);
    if (status != PLAIT_OK) return status;
    loop->comes = false;
    loop->run->clocks_done++;
    return pli_turnover_after(loop, true);
}

plait_status pli_turnover_clock(pli_loop *loop, plait_status (*stand_in)(pli_run *run), bool *came_out) {
    pli_run     *run = loop->run;
    plait_status status;
    *came_out = false;
    pli_turnover_before(loop);
    loop->away = pli_turnover_leaves(loop);
    if (loop->away) pli_keep_leave(run);
    while ((status = (loop->away ? plait_job_leave : plait_job_clock)(run->job)) == PLAIT_STAND_IN)
        PLI_TRY(stand_in(run));
    PLI_TRY(status);
    if (loop->away) PLI_TRY(pli_turnover_give(loop));
    run->clocks_done++;
    *came_out = loop->away;
    PLI_TRY(status = loop->away ? pli_turnover_wait(loop) : pli_turnover_after(loop, false));
    pli_run_tell_lost(run);
    return status;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

plait_status pli_turnover_begin(pli_loop *loop) {
    pli_run *run = loop->run;
    if (run->opts->slots == 0) return PLAIT_OK;
    loop->was_in = pli_calloc((size_t)plait_comm_workers(run->comm), sizeof *loop->was_in);
    if (loop->was_in == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a list of workers");
    if (loop->away && loop->steps->left != NULL) loop->steps->left(run);
    if (loop->away) return PLAIT_OK;
    PLI_TRY(plait_comm_barrier(run->comm));
    return pli_job_away(run->job) > 0 && loop->steps->turned != NULL ? loop->steps->turned(run, false) : PLAIT_OK;
}

void pli_turnover_end(pli_loop *loop) {
    pli_free(loop->was_in);
    loop->was_in = NULL;
}
