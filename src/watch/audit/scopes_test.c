/* Logs of locks, made by hand: a right one is proven, and a mistake in one place is refuted by the rule that it breaks,
 * with the vertex and the two workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "watch/audit/scopes.h"

/* Two ranks, vertices 0 and 1 (ids 100 and 101), of which rank 0 owns 0 and rank 1 owns 1. Under edge rank 0 updates
 * vertex 0 and reads vertex 1; then rank 1 updates vertex 1, and reads what rank 0 has written. */
enum { R = 2, E = PLI_EVENT_LOCK };

typedef struct step {
    int32_t  rank, kind; /* kind of event; 0: the end */
    uint64_t vertex, version;
    int32_t  origin;
    uint32_t number, at, mode, wrote, digest, fresh; /* USE: of vertex; the other one has version `at`, digest `mode` */
} step;

static const step right[] = {
    { 0, PLI_EVENT_LOCK, 0, 0, 0, 0, 0, 2, 0, 0, 0 },   { 1, PLI_EVENT_LOCK, 1, 0, 0, 0, 1, 1, 0, 0, 0 },
    { 0, PLI_EVENT_USE, 0, 0, 0, 0, 0, 7, 1, 5, 6 },    { 0, PLI_EVENT_UNLOCK, 0, 1, 0, 0, 0, 2, 1, 0, 0 },
    { 1, PLI_EVENT_UNLOCK, 1, 0, 0, 0, 0, 1, 0, 0, 0 }, { 0, PLI_EVENT_LOCK, 0, 1, 1, 3, 0, 1, 0, 0, 0 },
    { 1, PLI_EVENT_LOCK, 1, 0, 1, 3, 1, 2, 0, 0, 0 },   { 1, PLI_EVENT_USE, 1, 0, 0, 3, 1, 6, 1, 7, 9 },
    { 0, PLI_EVENT_UNLOCK, 0, 1, 1, 3, 0, 1, 0, 0, 0 }, { 1, PLI_EVENT_UNLOCK, 1, 1, 1, 3, 0, 2, 1, 0, 0 },
    { 0, PLI_EVENT_REST, 0, 1, 0, 0, 0, 0, 0, 0, 0 },   { 1, PLI_EVENT_REST, 0, 1, 0, 0, 0, 0, 0, 0, 0 },
};
enum { STEPS = sizeof right / sizeof *right };

/* Step `at` becomes `is`, of kind 0: it is left out; or (moves > 0) it comes so many steps later. */
typedef struct mistake {
    const char *what, *rule; /* rule NULL: it is right */
    int         at, moves;
    step        is;
    uint64_t    id;
    int32_t     rank, other;
} mistake;

static const mistake mistakes[] = {
    { "right", NULL, -1, 0, { 0 }, 0, 0, 0 },
    { "no lock is taken", "lock", 1, 0, { 0 }, 101, 0, 1 },
    { "a lock to read, where it writes", "lock", 0, 0, { 0, E, 0, 0, 0, 0, 0, 1, 0, 0, 0 }, 100, 0, 0 },
    { "a reader beside a writer", "beside", 3, 2, { 0 }, 100, 1, 0 },
    { "the own lock comes back before the update", "early", 2, 1, { 0 }, 100, 0, 0 },
    { "from the highest vertex down", "order", 0, 0, { 0, E, 0, 0, 0, 0, 2, 2, 0, 0, 0 }, 101, 0, 1 },
    { "a lock comes back to nobody", "back", 4, 0, { 1, PLI_EVENT_UNLOCK, 1, 0, 0, 8, 0, 1, 0, 0, 0 }, 101, 0, 1 },
    { "a lock never comes back", "back", 8, 0, { 0 }, 100, 1, 0 },
    { "an older version is given", "version", 5, 0, { 0, E, 0, 0, 1, 3, 0, 1, 0, 0, 0 }, 100, 0, 1 },
    { "an older version is read", "stale", 7, 0, { 1, PLI_EVENT_USE, 1, 0, 0, 3, 0, 5, 1, 7, 9 }, 100, 1, 0 },
    { "an older value is read", "value", 7, 0, { 1, PLI_EVENT_USE, 1, 0, 0, 3, 1, 5, 1, 7, 9 }, 100, 1, 0 },
    { "a first value is another", "value", 7, 0, { 1, PLI_EVENT_USE, 1, 0, 0, 3, 1, 6, 1, 8, 9 }, 101, 1, 0 },
    { "a new value does not come back", "lost", 9, 0, { 1, PLI_EVENT_UNLOCK, 1, 0, 1, 3, 0, 2, 0, 0, 0 }, 101, 1, 1 },
    { "a new value that nobody made", "lost", 7, 0, { 1, PLI_EVENT_USE, 1, 0, 0, 3, 1, 6, 0, 7, 7 }, 101, 1, 1 },
    { "two owners", "lock", 5, 0, { 1, E, 0, 1, 1, 3, 0, 1, 0, 0, 0 }, 100, 1, 0 },
};

static uint64_t now_of(void *user) { return *(uint64_t *)user; }

static void raise_step(const pli_event_sink *sink, uint64_t *now_ns, const step *s) {
    const pli_event_lock lock = { .vertex = s->vertex, .version = s->version, .origin = s->origin, .number = s->number,
                                  .at = s->at, .mode = s->mode, .wrote = s->wrote != 0 };
    const uint64_t       other = 1 - s->vertex;
    const pli_event_use  use[2] = {
        { .vertex = s->vertex, .id = 100 + s->vertex, .version = s->version, .digest = s->digest, .fresh = s->fresh,
           .wrote = s->wrote != 0 },
        { .vertex = other, .id = 100 + other, .version = s->at, .digest = s->mode, .fresh = s->mode },
    };
    pli_event event = { .kind = (pli_event_kind)s->kind, .rank = s->rank };
    if (s->kind == 0) return;
    *now_ns += 1000;
    if (s->kind == PLI_EVENT_USE) {
        event.seq = s->number;
        event.row = s->vertex;
        event.n = 2;
        event.info.use = use;
    } else if (s->kind == PLI_EVENT_REST) {
        event.seq = s->version;
    } else {
        event.info.lock = &lock;
    }
    sink->raise(sink->user, &event);
}

static void name_log(char path[64]) { snprintf(path, 64, "scopes_test.%d.events", (int)getpid()); }

static void write_log(const mistake *m, int steps) {
    char                   path[64];
    pli_eventlog          *log = NULL;
    plait_error            err;
    uint64_t               now_ns = 1000;
    const pli_event_scopes scopes = { .program = "pagerank", .scope = 1, .round = 0 };
    name_log(path);
    assert_int_equal(pli_eventlog_open(path, R, "0123456789abcdef", now_of, &now_ns, &log, &err), PLAIT_OK);
    const pli_event_sink *sink = pli_eventlog_sink(log);
    for (int32_t r = 0; r < R; r++)
        sink->raise(sink->user, &(pli_event){ .kind = PLI_EVENT_SCOPES, .rank = r, .info.scopes = &scopes });
    for (int i = 0; i < steps; i++) {
        if (i != m->at) raise_step(sink, &now_ns, &right[i]);
        else if (m->moves == 0) raise_step(sink, &now_ns, &m->is);
        if (m->moves > 0 && i == m->at + m->moves) raise_step(sink, &now_ns, &right[m->at]);
    }
    assert_int_equal(pli_eventlog_close(&log, &err), PLAIT_OK);
}

static void prove(const mistake *m, const char *as, int steps, pli_scopes_proof *proof) {
    char         path[64];
    const char  *one = path;
    pli_logfile *file = NULL;
    plait_error  err;
    write_log(m, steps);
    name_log(path);
    if (pli_logfile_open(&one, 1, &file, &err) < 0 || pli_scopes_prove(file, as, proof, &err) < 0)
        fail_msg("%s: %s", m->what, err.text);
    pli_logfile_close(&file);
    unlink(path);
}

static void test_mistakes_are_refuted_by_name(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        const mistake   *m = &mistakes[i];
        pli_scopes_proof proof;
        prove(m, NULL, STEPS, &proof);
        if (proof.verdict != (m->rule == NULL ? PLI_AUDIT_PROVEN : PLI_AUDIT_REFUTED))
            fail_msg("%s: verdict %d (%s)", m->what, (int)proof.verdict, proof.first.text);
        if (m->rule == NULL) continue;
        if (strcmp(proof.first.rule, m->rule) != 0 || proof.first.row != m->id || proof.first.rank != m->rank ||
            proof.other != m->other)
            fail_msg("%s: rule %s, vertex %llu, ranks %d and %d: %s", m->what, proof.first.rule,
                     (unsigned long long)proof.first.row, proof.first.rank, proof.other, proof.first.text);
    }
}

static void test_another_scope_promises_otherwise(void **state) {
    const mistake    none = mistakes[0];
    pli_scopes_proof proof;
    (void)state;
    prove(&none, "vertex", STEPS, &proof);
    assert_int_equal(proof.verdict, PLI_AUDIT_PROVEN);
    assert_int_equal(proof.updates, 2);
    assert_int_equal(proof.reads, 4);
    assert_int_equal(proof.writes, 2);
    prove(&none, "full", STEPS, &proof);
    assert_int_equal(proof.verdict, PLI_AUDIT_REFUTED);
    assert_string_equal(proof.first.rule, "lock");
    assert_string_equal(proof.first.text, "rank 0 updated vertex 100 and read vertex 101 with a read lock, where a "
                                          "write lock is promised: rank 1 changes it next");
}

/* A log that ends before all are at rest proves nothing. */
static void test_a_log_may_end_too_early(void **state) {
    const mistake    none = mistakes[0];
    pli_scopes_proof proof;
    (void)state;
    for (int steps = 0; steps < STEPS; steps++) {
        prove(&none, NULL, steps, &proof);
        assert_int_equal(proof.verdict, PLI_AUDIT_CUT);
    }
}

/* A killed process leaves a file without its end, in which one side of a lock may be missing: the verdict is never
 * that somebody did wrong. */
static void test_a_file_may_be_cut_anywhere(void **state) {
    char         path[64];
    const char  *one = path;
    struct stat  is;
    plait_error  err;
    (void)state;
    name_log(path);
    write_log(&mistakes[0], STEPS);
    assert_int_equal(stat(path, &is), 0);
    for (off_t size = is.st_size - 1; size >= 32; size--) {
        pli_logfile     *file = NULL;
        pli_scopes_proof proof;
        assert_int_equal(truncate(path, size), 0);
        assert_int_equal(pli_logfile_open(&one, 1, &file, &err), PLAIT_OK);
        assert_int_equal(pli_scopes_prove(file, NULL, &proof, &err), PLAIT_OK);
        assert_int_equal(proof.verdict, proof.locks > 0 ? PLI_AUDIT_CUT : PLI_AUDIT_EMPTY);
        pli_logfile_close(&file);
    }
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mistakes_are_refuted_by_name),
        cmocka_unit_test(test_another_scope_promises_otherwise),
        cmocka_unit_test(test_a_log_may_end_too_early),
        cmocka_unit_test(test_a_file_may_be_cut_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
