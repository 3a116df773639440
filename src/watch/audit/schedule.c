/* Judges scheduled steps by their keys. See schedule.h. */
#include "watch/audit/schedule.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "watch/audit/promise.h"
#include "watch/audit/schedule_dead.h"

/* A key that a turn touches. */
typedef struct touch {
    uint64_t key;
    int64_t  variable, clock, step;
    int32_t  space, rank;
    bool     writes, together; /* together: all workers update the step's variables side by side */
    bool     stands;           /* in a turn in the stead of dead workers */
} touch;

/* A variable in a turn. */
typedef struct member {
    int64_t variable, step, clock;
    int32_t rank;
    bool    together, stands;
} member;

typedef struct turn {
    int64_t step, clock;
    int32_t rank;
    bool    together, stands, away; /* away: it has missed the step */
    int64_t n, planned; /* planned: of all workers; 0: not told */
} turn;

typedef struct judge {
    pli_schedule_proof *proof;
    plait_error        *err;
    touch  *touch;
    member *member;
    turn   *turn;
    int64_t touches, members, turns, touches_capacity, members_capacity, turns_capacity;
    pli_schedule_dead dead;
    int64_t *left; /* [workers] the job ended while the worker was away: 1 + the clock behind its last turn; else 0 */
    /* of the stream at hand */
    int64_t steps, clocks, ended, turned; /* turned: behind the last turn */
} judge;

static void refute(judge *j, const char *rule, int32_t rank, int64_t clock, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
static void refute(judge *j, const char *rule, int32_t rank, int64_t clock, const char *fmt, ...) {
    pli_schedule_proof *p = j->proof;
    va_list             ap;
    if (p->verdict == PLI_AUDIT_REFUTED && p->first.clock <= clock) return;
    p->verdict = PLI_AUDIT_REFUTED;
    p->first = (pli_audit_violation){ .rule = rule, .rank = rank, .clock = clock };
    va_start(ap, fmt);
    vsnprintf(p->first.text, sizeof p->first.text, fmt, ap);
    va_end(ap);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static plait_status no_memory(judge *j) { return pli_fail(j->err, PLAIT_ENOMEM, "no memory to judge the schedule"); }

static bool add_member(judge *j, const pli_event *event, int64_t variable) {
    if (!pli_grow((void **)&j->member, &j->members_capacity, j->members + 1, sizeof *j->member)) return false;
    j->member[j->members++] = (member){ .variable = variable, .step = (int64_t)event->seq, .clock = event->clock,
                                        .rank = event->rank, .together = (event->row & 1) != 0,
                                        .stands = (event->row & 2) != 0 };
    return true;
}

static plait_status read_turn(judge *j, const pli_event *event) {
    const int64_t step = (int64_t)event->seq;
    int64_t       variables = 0;
    const bool    away = event->row == 3; /* it has missed the step, and says so when it is in again */
    const bool    together = event->row == 1, stands = event->row == 2;
    const bool    again = away || (stands && step == j->steps - 1 && event->clock == j->clocks - 1 &&
                                event->clock >= j->ended);
    if (step < j->steps && !again)
        refute(j, "steps", event->rank, event->clock, "rank %d took step %lld in clock %lld, after step %lld",
               event->rank, (long long)step, (long long)event->clock, (long long)j->steps - 1);
    if (event->clock < j->clocks && !again)
        refute(j, "steps", event->rank, event->clock, "rank %d took step %lld in clock %lld, which it had ended or in "
                                                      "which it had taken a step", event->rank, (long long)step,
               (long long)event->clock);
    if (step >= j->steps) j->steps = step + 1;
    if (event->clock >= j->clocks) j->clocks = event->clock + 1;
    j->turned = event->clock + 1;
    if (!pli_grow((void **)&j->touch, &j->touches_capacity, j->touches + event->n, sizeof *j->touch) ||
        !pli_grow((void **)&j->turn, &j->turns_capacity, j->turns + 1, sizeof *j->turn))
        return no_memory(j);
    for (int64_t i = 0; i < event->n; i++) {
        const pli_event_touch *t = &event->info.touch[i];
        if (i == 0 || t->variable != t[-1].variable) {
            if (!add_member(j, event, t->variable)) return no_memory(j);
            variables++;
        }
        if (t->space < 0) continue;
        j->touch[j->touches++] = (touch){ .key = t->key, .variable = t->variable, .clock = event->clock, .step = step,
                                          .space = t->space, .rank = event->rank, .writes = t->writes,
                                          .together = together, .stands = stands };
    }
    j->turn[j->turns++] = (turn){ .step = step, .clock = event->clock, .rank = event->rank, .n = variables,
                                  .together = together, .stands = stands, .away = away, .planned = event->rows };
    return PLAIT_OK;
}

/* The weakest promise of the tables: how many clocks apart turns may have missed each other. */
static plait_status weigh_table(judge *j, const char *consistency, bool first) {
    pli_schedule_proof *p = j->proof;
    pli_promise         promise;
    PLI_TRY(pli_promise_read(consistency, &promise, j->err));
    const int64_t apart = promise.turns ? 0 : promise.bound;
    const bool    weaker = !p->unbounded && (apart < 0 || apart > p->apart);
    if (!weaker && !first) return PLAIT_OK;
    p->unbounded = apart < 0;
    p->apart = apart < 0 ? 0 : apart;
    snprintf(p->consistency, sizeof p->consistency, "%s", consistency);
    return PLAIT_OK;
}

/* The worker takes no further turn. */
static plait_status note_left(judge *j, int32_t rank) {
    const int32_t workers = j->proof->workers;
    if (j->left == NULL && (j->left = pli_calloc((size_t)workers, sizeof *j->left)) == NULL) return no_memory(j);
    if (rank >= 0 && rank < workers) j->left[rank] = 1 + j->turned;
    return PLAIT_OK;
}

static plait_status read_stream(judge *j, int32_t stream, const pli_logfile *file, const char *as, bool *known) {
    pli_log_cursor  *cursor = NULL;
    const pli_event *event;
    plait_status     status = PLAIT_OK;
    plait_error      err = { 0 };
    PLI_TRY(pli_log_cursor_open(file, stream, &cursor, j->err));
    j->steps = j->clocks = j->ended = j->turned = 0;
    while (status == PLAIT_OK && (event = pli_log_cursor_next(cursor, &err)) != NULL) {
        if (event->group != NULL) continue; /* schedules are of all workers */
        if (event->kind == PLI_EVENT_JOB) j->proof->workers = event->info.job->workers;
        if (event->kind == PLI_EVENT_CLOCK) j->ended = event->clock + 1;
        if (event->kind == PLI_EVENT_LEAVE) status = note_left(j, event->rank);
        if (event->kind == PLI_EVENT_TABLE && as == NULL) {
            status = weigh_table(j, event->info.table->consistency, !*known);
            *known = true;
        }
        if (event->kind == PLI_EVENT_TURN) status = read_turn(j, event);
        if (event->kind == PLI_EVENT_CLOCK && event->clock + 1 > j->clocks) j->clocks = event->clock + 1;
    }
    pli_log_cursor_close(&cursor);
    if (status == PLAIT_OK && err.code < 0) return pli_fail(j->err, err.code, "%s", err.text);
    return status;
}

/* --- judging ------------------------------------------------------------------------------------------------------ */

static int by_number(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int by_step(const void *x, const void *y) {
    const turn *a = x, *b = y;
    int         order = by_number(a->step, b->step);
    if (order == 0) order = by_number(a->rank, b->rank);
    return order != 0 ? order : by_number(a->stands, b->stands);
}

static int by_variable(const void *x, const void *y) {
    const member *a = x, *b = y;
    int           order = by_number(a->step, b->step);
    if (order == 0) order = by_number(a->variable, b->variable);
    if (order == 0) order = by_number(a->rank, b->rank);
    return order != 0 ? order : by_number(a->stands, b->stands);
}

static int by_key(const void *x, const void *y) {
    const touch *a = x, *b = y;
    int          order = by_number(a->space, b->space);
    if (order == 0 && a->key != b->key) order = a->key < b->key ? -1 : 1;
    if (order == 0) order = by_number(a->clock, b->clock);
    if (order == 0) order = by_number(a->rank, b->rank);
    return order != 0 ? order : by_number(a->variable, b->variable);
}

/* How many were away from this clock on until the job ended. */
static int32_t left_by(const judge *j, int64_t clock) {
    int32_t n = 0;
    for (int32_t w = 0; j->left != NULL && w < j->proof->workers; w++)
        n += j->left[w] > 0 && clock >= j->left[w] - 1 && !pli_schedule_died_in(&j->dead, w, clock);
    return n;
}

/* Every worker that lives is in each step once, in the same clock, with as many variables if all take the same, save
 * who was away. */
static void judge_turns(judge *j) {
    if (j->turns > 0) qsort(j->turn, (size_t)j->turns, sizeof *j->turn, by_step);
    for (int64_t i = 0, end; i < j->turns; i = end) {
        const turn *first = &j->turn[i];
        int64_t     living = 0;
        for (end = i; end < j->turns && j->turn[end].step == first->step; end++) {
            const turn *t = &j->turn[end];
            living += (end == i || t->rank != t[-1].rank) && !pli_schedule_died_in(&j->dead, t->rank, t->clock);
            if (t->clock != first->clock)
                refute(j, "steps", t->rank, t->clock, "rank %d took step %lld in clock %lld, rank %d in clock %lld",
                       t->rank, (long long)t->step, (long long)t->clock, first->rank, (long long)first->clock);
            if (first->away && !t->away) first = t;
            if (!t->away && (t->together != first->together || (t->together && t->n != first->n)))
                refute(j, "same", t->rank, t->clock, "in step %lld rank %d took %lld variables, rank %d took %lld; all "
                                                     "should take the same", (long long)t->step, t->rank,
                       (long long)t->n, first->rank, (long long)first->n);
        }
        const int32_t gone = pli_schedule_dead_by(&j->dead, first->clock) + left_by(j, first->clock);
        if (living < j->proof->workers - gone)
            refute(j, "steps", first->rank, first->clock, "only %lld of %d workers took step %lld (rank %d did)",
                   (long long)living, j->proof->workers - gone, (long long)first->step, first->rank);
        j->proof->steps++;
    }
}

/* A worker's turn that does not count, since the worker died in it. */
static bool is_dead(const judge *j, const member *m) { return pli_schedule_died_in(&j->dead, m->rank, m->clock); }

/* Of the members [n] of a step that are the same variable, may b have it beside a? In the stead of the dead. */
static bool is_replaced(const judge *j, const member *a, const member *b) {
    return (is_dead(j, a) && b->stands) || (is_dead(j, b) && a->stands);
}

/* Has anybody the variable whose turn counts? */
static bool is_kept(const judge *j, const member *m, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!is_dead(j, &m[i]) || pli_schedule_counted(&j->dead, m[i].rank, m[i].clock)) return true;
    return false;
}

/* How many say that they were away in the step? The turns are in order. */
static int32_t away_in(const judge *j, int64_t step) {
    int64_t low = 0, high = j->turns;
    int32_t n = 0;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (j->turn[middle].step < step) low = middle + 1;
        else high = middle;
    }
    for (; low < j->turns && j->turn[low].step == step; low++) n += j->turn[low].away;
    return n;
}

/* Have all workers that live, and were in, the variable in the step? */
static void judge_same(judge *j, const member *m, int64_t n) {
    const int32_t workers = j->proof->workers - pli_schedule_dead_by(&j->dead, m->clock) - left_by(j, m->clock) -
                            away_in(j, m->step);
    int64_t       living = 0;
    for (int64_t i = 0; i < n; i++) living += !is_dead(j, &m[i]);
    if (living < workers)
        refute(j, "same", m->rank, m->clock, "in step %lld only %lld of %d workers have variable %lld (rank %d has)",
               (long long)m->step, (long long)living, workers, (long long)m->variable, m->rank);
}

static void judge_variable(judge *j, const member *m, int64_t n) {
    for (int64_t i = 1; i < n; i++)
        for (int64_t k = m->together ? i - 1 : 0; k < i; k++)
            if ((!m[i].together || m[i].rank == m[k].rank) && !is_replaced(j, &m[k], &m[i]))
                refute(j, "owner", m[i].rank, m[i].clock,
                       "variable %lld is twice in step %lld: in clock %lld of rank %d, and in clock %lld of rank %d",
                       (long long)m->variable, (long long)m->step, (long long)m[k].clock, m[k].rank,
                       (long long)m[i].clock, m[i].rank);
    if (m->together) judge_same(j, m, n);
    if (!is_kept(j, m, n))
        refute(j, "lost", m->rank, m->clock, "variable %lld of step %lld was rank %d's, which died in clock %lld: "
                                             "nobody took it over", (long long)m->variable, (long long)m->step, m->rank,
               (long long)m->clock);
}

/* Have all variables of the step's plan an owner? found: so many have. at: of the turns; goes on to the next step. */
static void judge_plan(judge *j, int64_t step, int64_t found, int64_t *at) {
    for (; *at < j->turns && j->turn[*at].step <= step; (*at)++) {
        const turn *t = &j->turn[*at];
        if (t->planned > 0 && t->step == step && t->planned > found)
            refute(j, "lost", t->rank, t->clock, "step %lld has %lld variables, of which only %lld were taken",
                   (long long)step, (long long)t->planned, (long long)found);
        if (t->planned > 0 && t->step < step)
            refute(j, "lost", t->rank, t->clock, "step %lld has %lld variables, of which none was taken",
                   (long long)t->step, (long long)t->planned);
    }
}

/* A variable has one owner in a step, or each worker has it once; and none is without. After judge_turns. */
static void judge_members(judge *j) {
    int64_t at = 0, found = 0;
    if (j->members > 0) qsort(j->member, (size_t)j->members, sizeof *j->member, by_variable);
    for (int64_t i = 0, end; i < j->members; i = end) {
        const member *first = &j->member[i];
        for (end = i + 1; end < j->members && j->member[end].step == first->step &&
                          j->member[end].variable == first->variable;)
            end++;
        judge_variable(j, first, end - i);
        found++;
        if (end < j->members && j->member[end].step == first->step) continue;
        judge_plan(j, first->step, found, &at);
        found = 0;
    }
    judge_plan(j, INT64_MAX, 0, &at);
}

/* May a and b, of the same key, have missed each other? Within a step that all take alike they are meant to touch the
 * same variables, so there only two variables of one worker are a conflict. */
static bool is_conflict(const judge *j, const touch *a, const touch *b) {
    if (!a->writes && !b->writes) return false;
    if (a->together && b->together && a->step == b->step) return a->rank == b->rank && a->variable != b->variable;
    const bool replaced = a->clock == b->clock &&
                          ((b->stands && pli_schedule_died_in(&j->dead, a->rank, a->clock)) ||
                           (a->stands && pli_schedule_died_in(&j->dead, b->rank, b->clock)));
    if (replaced) return false;
    const int64_t apart = a->clock < b->clock ? b->clock - a->clock : a->clock - b->clock;
    return a->rank != b->rank && apart <= j->proof->apart;
}

static void judge_touches(judge *j) {
    if (j->touches > 0) qsort(j->touch, (size_t)j->touches, sizeof *j->touch, by_key);
    for (int64_t i = 0, end; i < j->touches; i = end) {
        bool found = false;
        for (end = i; end < j->touches && j->touch[end].space == j->touch[i].space &&
                      j->touch[end].key == j->touch[i].key;)
            end++;
        for (int64_t b = i; b < end && !found; b++) {
            const touch *y = &j->touch[b];
            for (int64_t a = b - 1; a >= i && !found && y->clock - j->touch[a].clock <= j->proof->apart; a--) {
                const touch *x = &j->touch[a];
                found = is_conflict(j, x, y);
                if (found)
                    refute(j, "conflict", y->rank, y->clock,
                           "key %llu of space %d is touched by variable %lld (rank %d, step %lld, clock %lld, %s) and "
                           "by variable %lld (rank %d, step %lld, clock %lld, %s), which may have missed each other",
                           (unsigned long long)y->key, y->space, (long long)x->variable, x->rank, (long long)x->step,
                           (long long)x->clock, x->writes ? "written" : "read", (long long)y->variable, y->rank,
                           (long long)y->step, (long long)y->clock, y->writes ? "written" : "read");
            }
        }
    }
}

static plait_status prove(judge *j, const pli_logfile *file, const char *as) {
    pli_schedule_proof *p = j->proof;
    bool                known = as != NULL;
    if (as != NULL) {
        pli_promise promise;
        PLI_TRY(pli_promise_read(as, &promise, j->err));
        if (!promise.known) return pli_promise_unknown(as, j->err);
        PLI_TRY(weigh_table(j, as, true));
    }
    PLI_TRY(pli_schedule_dead_read(&j->dead, file, j->err));
    for (int32_t i = 0; i < pli_logfile_streams(file); i++)
        if (!pli_logfile_is_server(file, i)) PLI_TRY(read_stream(j, i, file, as, &known));
    p->dead = pli_schedule_dead_by(&j->dead, INT64_MAX);
    p->turns = j->turns;
    p->variables = j->members;
    p->keys = j->touches;
    judge_turns(j);
    judge_members(j);
    judge_touches(j);
    /* what a log lacks may be in what was cut off */
    const bool lacks = p->verdict == PLI_AUDIT_REFUTED &&
                       (strcmp(p->first.rule, "steps") == 0 || strcmp(p->first.rule, "lost") == 0);
    if (p->verdict == PLI_AUDIT_REFUTED && !lacks) return PLAIT_OK;
    if (j->turns == 0) p->verdict = PLI_AUDIT_EMPTY;
    else if (pli_schedule_lacks(&j->dead, file)) p->verdict = PLI_AUDIT_CUT;
    return PLAIT_OK;
}

plait_status pli_schedule_prove(const pli_logfile *file, const char *as, pli_schedule_proof *proof_out,
                                plait_error *err) {
    pli_schedule_proof proof = { .verdict = PLI_AUDIT_PROVEN };
    judge              j = { .proof = &proof, .err = err };
    plait_status       status = prove(&j, file, as);
    pli_free(j.touch);
    pli_free(j.member);
    pli_free(j.turn);
    pli_free(j.left);
    pli_schedule_dead_free(&j.dead);
    if (status == PLAIT_OK) *proof_out = proof;
    return status;
}

/* --- telling ------------------------------------------------------------------------------------------------------ */

void pli_schedule_text(const pli_schedule_proof *p, pli_text *text) {
    pli_text_add(text, "%lld step%s of %d worker%s: %lld variable%s, %lld key%s\n", (long long)p->steps,
                 pli_plural(p->steps), p->workers, pli_plural(p->workers), (long long)p->variables,
                 pli_plural(p->variables), (long long)p->keys, pli_plural(p->keys));
    if (p->dead > 0) pli_text_add(text, "%d worker%s died\n", p->dead, pli_plural(p->dead));
    if (p->unbounded)
        pli_text_add(text, "%s bounds nothing: only turns of the same clock are judged\n", p->consistency);
    else if (p->turns > 0)
        pli_text_add(text, "under %s, turns %s may have missed each other\n", p->consistency,
                     p->apart == 0 ? "of the same clock" : "of near clocks");
    if (p->apart > 0) pli_text_add(text, "near: at most %lld clock%s apart\n", (long long)p->apart,
                                    pli_plural(p->apart));
    if (p->verdict == PLI_AUDIT_PROVEN) pli_text_add(text, "proven: no two of them conflicted\n");
    if (p->verdict == PLI_AUDIT_REFUTED) pli_text_add(text, "refuted (%s): %s\n", p->first.rule, p->first.text);
}

void pli_schedule_json(const pli_schedule_proof *p, pli_text *text) {
    static const char *const verdicts[] = { [PLI_AUDIT_PROVEN] = "proven", [PLI_AUDIT_REFUTED] = "refuted",
                                            [PLI_AUDIT_CUT] = "cut", [PLI_AUDIT_EMPTY] = "empty" };
    const bool refuted = p->verdict == PLI_AUDIT_REFUTED;
    pli_json_begin(text);
    pli_json_text(text, "verdict", verdicts[p->verdict]);
    pli_json_text(text, "consistency", p->consistency);
    pli_json_i64(text, "workers", p->workers);
    pli_json_i64(text, "dead", p->dead);
    pli_json_i64(text, "steps", p->steps);
    pli_json_i64(text, "variables", p->variables);
    pli_json_i64(text, "keys", p->keys);
    pli_json_i64(text, "apart", p->apart);
    pli_json_bool(text, "unbounded", p->unbounded);
    pli_json_text(text, "rule", refuted ? p->first.rule : NULL);
    pli_json_text(text, "first", refuted ? p->first.text : NULL);
    pli_json_end(text);
    pli_text_add(text, "\n");
}
