/* Judges scheduled steps by their keys. See schedule.h. */
#include "watch/audit/schedule.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "watch/audit/promise.h"

/* A key that a turn touches. */
typedef struct touch {
    uint64_t key;
    int64_t  variable, clock, step;
    int32_t  space, rank;
    bool     writes, together; /* together: all workers update the step's variables side by side */
} touch;

/* A variable in a turn. */
typedef struct member {
    int64_t variable, step, clock;
    int32_t rank;
    bool    together;
} member;

typedef struct turn {
    int64_t step, clock;
    int32_t rank;
    bool    together;
    int64_t n;
} turn;

typedef struct judge {
    pli_schedule_proof *proof;
    plait_error        *err;
    touch  *touch;
    member *member;
    turn   *turn;
    int64_t touches, members, turns, touches_capacity, members_capacity, turns_capacity;
    /* of the stream at hand */
    int64_t steps, clocks;
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
                                        .rank = event->rank, .together = event->row != 0 };
    return true;
}

static plait_status read_turn(judge *j, const pli_event *event) {
    const int64_t step = (int64_t)event->seq;
    int64_t       variables = 0;
    if (step < j->steps)
        refute(j, "steps", event->rank, event->clock, "rank %d took step %lld in clock %lld, after step %lld",
               event->rank, (long long)step, (long long)event->clock, (long long)j->steps - 1);
    if (event->clock < j->clocks)
        refute(j, "steps", event->rank, event->clock, "rank %d took step %lld in clock %lld, which it had ended or in "
                                                      "which it had taken a step", event->rank, (long long)step,
               (long long)event->clock);
    j->steps = step + 1;
    j->clocks = event->clock + 1;
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
                                          .together = event->row != 0 };
    }
    j->turn[j->turns++] = (turn){ .step = step, .clock = event->clock, .rank = event->rank, .n = variables,
                                  .together = event->row != 0 };
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

static plait_status read_stream(judge *j, int32_t stream, const pli_logfile *file, const char *as, bool *known) {
    pli_log_cursor  *cursor = NULL;
    const pli_event *event;
    plait_status     status = PLAIT_OK;
    plait_error      err = { 0 };
    PLI_TRY(pli_log_cursor_open(file, stream, &cursor, j->err));
    j->steps = j->clocks = 0;
    while (status == PLAIT_OK && (event = pli_log_cursor_next(cursor, &err)) != NULL) {
        if (event->group != NULL) continue; /* schedules are of all workers */
        if (event->kind == PLI_EVENT_JOB) j->proof->workers = event->info.job->workers;
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
    const int   order = by_number(a->step, b->step);
    return order != 0 ? order : by_number(a->rank, b->rank);
}

static int by_variable(const void *x, const void *y) {
    const member *a = x, *b = y;
    int           order = by_number(a->step, b->step);
    if (order == 0) order = by_number(a->variable, b->variable);
    return order != 0 ? order : by_number(a->rank, b->rank);
}

static int by_key(const void *x, const void *y) {
    const touch *a = x, *b = y;
    int          order = by_number(a->space, b->space);
    if (order == 0 && a->key != b->key) order = a->key < b->key ? -1 : 1;
    if (order == 0) order = by_number(a->clock, b->clock);
    if (order == 0) order = by_number(a->rank, b->rank);
    return order != 0 ? order : by_number(a->variable, b->variable);
}

/* Every worker is in each step once, in the same clock, with as many variables if all take the same. */
static void judge_turns(judge *j) {
    if (j->turns > 0) qsort(j->turn, (size_t)j->turns, sizeof *j->turn, by_step);
    for (int64_t i = 0, end; i < j->turns; i = end) {
        const turn *first = &j->turn[i];
        for (end = i; end < j->turns && j->turn[end].step == first->step; end++) {
            const turn *t = &j->turn[end];
            if (t->clock != first->clock)
                refute(j, "steps", t->rank, t->clock, "rank %d took step %lld in clock %lld, rank %d in clock %lld",
                       t->rank, (long long)t->step, (long long)t->clock, first->rank, (long long)first->clock);
            if (t->together != first->together || (t->together && t->n != first->n))
                refute(j, "same", t->rank, t->clock, "in step %lld rank %d took %lld variables, rank %d took %lld; all "
                                                     "should take the same", (long long)t->step, t->rank,
                       (long long)t->n, first->rank, (long long)first->n);
        }
        if (end - i < j->proof->workers)
            refute(j, "steps", first->rank, first->clock, "only %lld of %d workers took step %lld (rank %d did)",
                   (long long)(end - i), j->proof->workers, (long long)first->step, first->rank);
        j->proof->steps++;
    }
}

/* A variable has one owner in a step; or each worker has it once. */
static void judge_members(judge *j) {
    if (j->members > 0) qsort(j->member, (size_t)j->members, sizeof *j->member, by_variable);
    for (int64_t i = 0, end; i < j->members; i = end) {
        const member *first = &j->member[i];
        for (end = i + 1; end < j->members; end++) {
            const member *m = &j->member[end], *before = m - 1;
            if (m->step != first->step || m->variable != first->variable) break;
            if (!m->together || m->rank == before->rank)
                refute(j, "owner", m->rank, m->clock, "variable %lld is twice in step %lld: in clock %lld of rank %d, "
                                                      "and in clock %lld of rank %d", (long long)m->variable,
                       (long long)m->step, (long long)before->clock, before->rank, (long long)m->clock, m->rank);
        }
        if (first->together && end - i < j->proof->workers)
            refute(j, "same", first->rank, first->clock, "in step %lld only %lld of %d workers have variable %lld "
                                                         "(rank %d has)", (long long)first->step, (long long)(end - i),
                   j->proof->workers, (long long)first->variable, first->rank);
    }
}

/* May a and b, of the same key, have missed each other? Within a step that all take alike they are meant to touch the
 * same variables, so there only two variables of one worker are a conflict. */
static bool is_conflict(const judge *j, const touch *a, const touch *b) {
    if (!a->writes && !b->writes) return false;
    if (a->together && b->together && a->step == b->step) return a->rank == b->rank && a->variable != b->variable;
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
    for (int32_t i = 0; i < pli_logfile_streams(file); i++)
        if (!pli_logfile_is_server(file, i)) PLI_TRY(read_stream(j, i, file, as, &known));
    p->turns = j->turns;
    p->variables = j->members;
    p->keys = j->touches;
    judge_turns(j);
    judge_members(j);
    judge_touches(j);
    if (p->verdict == PLI_AUDIT_REFUTED && strcmp(p->first.rule, "steps") != 0) return PLAIT_OK;
    if (j->turns == 0) p->verdict = PLI_AUDIT_EMPTY;
    else if (pli_logfile_cut(file) != NULL) p->verdict = PLI_AUDIT_CUT;
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
    if (status == PLAIT_OK) *proof_out = proof;
    return status;
}

/* --- telling ------------------------------------------------------------------------------------------------------ */

void pli_schedule_text(const pli_schedule_proof *p, pli_text *text) {
    pli_text_add(text, "%lld step%s of %d worker%s: %lld variable%s, %lld key%s\n", (long long)p->steps,
                 pli_plural(p->steps), p->workers, pli_plural(p->workers), (long long)p->variables,
                 pli_plural(p->variables), (long long)p->keys, pli_plural(p->keys));
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
