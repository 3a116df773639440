/* The lock machines under the direct driver: thousands of schedules by seed, on networks that reorder, lose and double
 * messages, too. Two programs that only locks make right:
 *
 *     swap    a vertex exchanges its value with a neighbor's. Right under full: the values stay a permutation
 *     color   a vertex takes the least color that no neighbor has. Right under full and edge: neighbors never clash
 *
 * A judge beside them knows nothing of the machine: it sees which scopes are held at once, which version of each value
 * an update has read, and what was written as that version. It proves the machine's schedules, refutes those of the
 * weaker scopes, and refutes each planted mistake. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "direct/direct.h"
#include "vertex/locks/locks.h"

enum { RANKS = 4, VERTICES = 12, NEAR = 3, UPDATES = 12, DEEP = 3, VERSIONS = 400, EVENTS = 200000 };

typedef enum scope_kind { SCOPE_VERTEX, SCOPE_EDGE, SCOPE_FULL } scope_kind;
typedef enum program_kind { SWAP, COLOR } program_kind;

typedef struct world {
    direct         *d;
    pli_locks       locks[RANKS];
    int64_t         first[RANKS + 1], began[RANKS + 1]; /* owners: now; before the ranks have begun anew */
    program_kind    program;
    scope_kind      scope;
    int             near[VERTICES][VERTICES]; /* who is a neighbor: both ways */
    int             done[RANKS];
    uint8_t         absent[RANKS]; /* since the ranks have begun anew */
    pli_lock_scope *in_hand[RANKS][DEEP]; /* granted, not executed */
    int64_t         told[RANKS], heard[RANKS]; /* notices */
    /* the judge's */
    int64_t     truth[VERTICES];            /* colors, as they stand */
    int         readers[VERTICES], writers[VERTICES];
    int64_t     wrote[VERTICES][VERSIONS];  /* the value that was written as this version */
    bool        known[VERTICES][VERSIONS];
    const char *wrong;
} world;

static void draw_graph(world *w, uint64_t seed) {
    pli_random random = pli_random_at(seed, PLI_RANDOM_DATA, 1, 0);
    memset(w->near, 0, sizeof w->near);
    for (int v = 0; v < VERTICES; v++)
        for (int k = 0; k < NEAR; k++) {
            const int u = (int)pli_random_below(&random, VERTICES);
            if (u != v) w->near[v][u] = w->near[u][v] = 1;
        }
    w->first[0] = 0;
    for (int r = 1; r < RANKS; r++) { /* some ranks may own nothing */
        const int64_t by = (int64_t)pli_random_below(&random, 2 * VERTICES / RANKS + 1);
        w->first[r] = w->first[r - 1] + by < VERTICES ? w->first[r - 1] + by : VERTICES;
    }
    w->first[RANKS] = VERTICES;
}

/* --- the judge ---------------------------------------------------------------------------------------------------- */

static void wrong(world *w, const char *what) {
    if (w->wrong == NULL) w->wrong = what;
}

static int64_t value_of(const pli_lock_scope *s, uint32_t i) {
    int64_t value;
    memcpy(&value, s->value + 8 * i, 8);
    return value;
}

/* A scope was granted: who holds it beside others, and did it read what was written? */
static void judge_grant(world *w, const pli_lock_scope *s) {
    for (uint32_t i = 0; i < s->n; i++) {
        const uint64_t v = s->entry[i].vertex;
        if (s->entry[i].mode == PLI_LOCK_NONE) continue;
        if (w->writers[v] > 0 || (s->entry[i].mode == PLI_LOCK_WRITE && w->readers[v] > 0))
            wrong(w, "two hold a lock that one may have");
        if (s->entry[i].version >= VERSIONS || !w->known[v][s->entry[i].version])
            wrong(w, "a version that nobody has written");
        else if (w->wrote[v][s->entry[i].version] != value_of(s, i))
            wrong(w, "a value that is not its version's");
        if (s->entry[i].mode == PLI_LOCK_WRITE) w->writers[v]++;
        else w->readers[v]++;
    }
}

/* It is about to be given back. */
static void judge_release(world *w, const pli_lock_scope *s) {
    for (uint32_t i = 0; i < s->n; i++) {
        const uint64_t v = s->entry[i].vertex;
        if (s->entry[i].mode == PLI_LOCK_WRITE) w->writers[v]--;
        if (s->entry[i].mode == PLI_LOCK_READ) w->readers[v]--;
        if (!s->entry[i].wrote) continue;
        const uint64_t version = s->entry[i].version + 1;
        if (version >= VERSIONS || w->known[v][version]) {
            wrong(w, "a version that is written twice");
        } else {
            w->known[v][version] = true;
            w->wrote[v][version] = value_of(s, i);
        }
    }
}

static void judge_end(world *w) {
    int seen[VERTICES] = { 0 };
    for (int r = 0; r < RANKS; r++) {
        int64_t heard = 0, told = 0;
        if (w->absent[r]) continue;
        for (int q = 0; q < RANKS; q++) heard += w->heard[q], told += w->told[q];
        if (heard != told || w->done[r] < UPDATES || w->locks[r].held > 0) wrong(w, "rest before all was done");
        for (int64_t v = w->first[r]; v < w->first[r + 1]; v++) {
            int64_t value;
            memcpy(&value, pli_locks_value(&w->locks[r], v), 8);
            if (w->program == SWAP && (value < 0 || value >= VERTICES || seen[value]++ > 0))
                wrong(w, "the values are no permutation any more");
        }
    }
}

/* --- the programs ------------------------------------------------------------------------------------------------- */

static uint32_t place_of(const pli_lock_scope *s, uint64_t vertex) {
    uint32_t i = 0;
    while (s->entry[i].vertex != vertex) i++;
    return i;
}

static void set(pli_lock_scope *s, uint32_t i, int64_t value) {
    memcpy(s->value + 8 * i, &value, 8);
    s->entry[i].wrote = 1;
}

static void swap(world *w, pli_lock_scope *s) {
    const uint32_t me = place_of(s, s->tag);
    if (s->n < 2) return;
    const uint32_t other = (me + 1 + (uint32_t)direct_pick(w->d, s->n - 1)) % s->n;
    const int64_t  mine = value_of(s, me), theirs = value_of(s, other);
    set(s, me, theirs);
    set(s, other, mine);
}

static void color(world *w, pli_lock_scope *s) {
    const uint32_t me = place_of(s, s->tag);
    int64_t        least = 1 + (int64_t)direct_pick(w->d, 3); /* 0: not colored */
    for (bool taken = true; taken;) {
        taken = false;
        for (uint32_t i = 0; i < s->n; i++) taken = taken || (i != me && value_of(s, i) == least);
        least += taken;
    }
    set(s, me, least);
    w->truth[s->tag] = least;
    for (int u = 0; u < VERTICES; u++)
        if (w->near[s->tag][u] && w->truth[u] == least) wrong(w, "neighbors have the same color");
}

/* --- ranks -------------------------------------------------------------------------------------------------------- */

static void ask(world *w, int r, int64_t v) {
    pli_lock_entry entry[VERTICES];
    int64_t        n = 0;
    uint64_t       now;
    for (int u = 0; u < VERTICES; u++) {
        if (u != v && !w->near[v][u]) continue;
        const uint32_t mode = u == v || w->scope == SCOPE_FULL ? PLI_LOCK_WRITE
                              : w->scope == SCOPE_EDGE        ? PLI_LOCK_READ
                                                              : PLI_LOCK_NONE;
        entry[n++] = (pli_lock_entry){ .vertex = (uint64_t)u, .mode = mode };
    }
    pli_out *out = direct_enter(w->d, r, PLI_PORT_LOCKS, &now);
    assert_true(pli_locks_ask(&w->locks[r], now, (uint64_t)v, n, entry, out));
    direct_leave(w->d, r, PLI_PORT_LOCKS);
}

static void execute(world *w, int r, pli_lock_scope *s) {
    uint64_t        now;
    const uint64_t  v = s->tag;
    pli_lock_notice notice = { .vertex = v, .change = 1 };
    if (w->program == SWAP) swap(w, s);
    else color(w, s);
    judge_release(w, s);
    int64_t value = value_of(s, place_of(s, v));
    notice.was = notice.value = &value;
    pli_out  *out = direct_enter(w->d, r, PLI_PORT_LOCKS, &now);
    assert_true(pli_locks_release(&w->locks[r], now, s, out));
    int to = (int)direct_pick(w->d, RANKS);
    if (w->absent[to]) to = r;
    w->told[r]++;
    assert_true(pli_locks_notify(&w->locks[r], now, to, &notice, out));
    direct_leave(w->d, r, PLI_PORT_LOCKS);
    w->done[r]++;
}

/* Takes what was granted, and works on it later: the judge sees it at once. */
static void take_granted(world *w, int r) {
    for (int k = 0; k < DEEP; k++) {
        if (w->in_hand[r][k] != NULL || w->locks[r].granted == NULL) continue;
        w->in_hand[r][k] = pli_locks_next(&w->locks[r]);
        judge_grant(w, w->in_hand[r][k]);
    }
}

/* One thing that a rank's own thread might do now. false: it has nothing to do. */
static bool act(world *w, int r) {
    pli_locks *l = &w->locks[r];
    if (w->absent[r]) return false;
    uint64_t   now;
    const int64_t owned = w->first[r + 1] - w->first[r];
    const int k = (int)direct_pick(w->d, DEEP);
    if (w->in_hand[r][k] != NULL) {
        pli_lock_scope *s = w->in_hand[r][k];
        w->in_hand[r][k] = NULL;
        execute(w, r, s);
        return true;
    }
    pli_lock_notice notice;
    if (pli_locks_noticed(l, &notice)) {
        w->heard[r]++;
        pli_msg_free(&notice.msg);
        return true;
    }
    if (owned == 0) w->done[r] = UPDATES;
    if (owned > 0 && l->asked < UPDATES && l->held < DEEP) {
        ask(w, r, w->first[r] + (int64_t)direct_pick(w->d, (uint64_t)owned));
        return true;
    }
    if (l->passive || l->held > 0) return false;
    pli_out *out = direct_enter(w->d, r, PLI_PORT_LOCKS, &now);
    pli_locks_rest(l, now, out);
    direct_leave(w->d, r, PLI_PORT_LOCKS);
    return true;
}

static bool all_quiet(const world *w) {
    for (int r = 0; r < RANKS; r++)
        if (!w->locks[r].quiet && !w->absent[r]) return false;
    return true;
}

static void first_values(world *w) {
    memset(w->known, 0, sizeof w->known);
    for (int v = 0; v < VERTICES; v++) w->known[v][0] = true, w->wrote[v][0] = w->program == SWAP ? v : 0;
    for (int r = 0; r < RANKS; r++)
        for (int64_t v = w->first[r]; w->program == SWAP && !w->absent[r] && v < w->first[r + 1]; v++)
            memcpy(pli_locks_value(&w->locks[r], v), &v, 8);
}

static void drop_in_hand(world *w, int r) {
    for (int k = 0; k < DEEP; k++) {
        if (w->in_hand[r][k] == NULL) continue;
        pli_msg_free(&w->in_hand[r][k]->msg);
        pli_free(w->in_hand[r][k]);
        w->in_hand[r][k] = NULL;
    }
}

/* A rank is taken for dead: the others begin anew with its vertices, while messages are under way. It may live: what it
 * still says is of the older era. */
static void begin_anew(world *w) {
    const int gone = (int)direct_pick(w->d, RANKS);
    uint64_t  now;
    w->absent[gone] = 1;
    for (int r = 0, part = 0; r <= RANKS; r++) {
        w->first[r] = VERTICES * part / (RANKS - 1);
        if (r < RANKS && r != gone) part++;
    }
    for (int r = 0; r < RANKS; r++) {
        drop_in_hand(w, r);
        w->done[r] = 0;
        w->told[r] = w->heard[r] = 0;
        if (r == gone) continue;
        direct_enter(w->d, r, PLI_PORT_LOCKS, &now);
        assert_true(pli_locks_begin_anew(&w->locks[r], w->first, w->absent));
        direct_leave(w->d, r, PLI_PORT_LOCKS);
    }
    memset(w->truth, 0, sizeof w->truth);
    memset(w->readers, 0, sizeof w->readers);
    memset(w->writers, 0, sizeof w->writers);
    first_values(w);
}

static void free_world(world *w) {
    for (int r = 0; r < RANKS; r++) {
        drop_in_hand(w, r);
        pli_locks_destroy(&w->locks[r]);
    }
    direct_free(&w->d);
}

/* One schedule: what went wrong, or NULL. */
static const char *schedule(uint64_t seed, program_kind program, scope_kind scope, pli_lock_mistake planted) {
    static world      w;
    const int64_t     anew = seed % 3 == 1 ? (int64_t)(seed * 37 % 150) : -1; /* in this step they begin anew */
    const direct_opts lossy = { .reorder = 0.3, .drop = 0.1, .twice = 0.1 }, plain = { .delay = 0.3 };
    const bool        loses = seed % 4 == 3;
    memset(&w, 0, sizeof w);
    pli_lock_planted = (int32_t)planted;
    w.program = program;
    w.scope = scope;
    w.d = direct_new(seed, RANKS, loses ? &lossy : &plain);
    draw_graph(&w, seed);
    memcpy(w.began, w.first, sizeof w.began);
    for (int r = 0; r < RANKS; r++) {
        assert_true(pli_locks_init(&w.locks[r], r, RANKS, w.began, 8, loses ? 50000 : 0));
        direct_add(w.d, r, PLI_PORT_LOCKS, &pli_locks_ops, &w.locks[r]);
    }
    first_values(&w);
    for (int64_t step = 0, idle = 0; !all_quiet(&w) && w.wrong == NULL; step++) {
        if (step == anew) begin_anew(&w);
        bool moved = act(&w, (int)direct_pick(w.d, RANKS));
        if (direct_pick(w.d, 2) == 0) moved = direct_step(w.d) || moved;
        for (int r = 0; r < RANKS; r++)
            if (!w.absent[r]) take_granted(&w, r);
        idle = moved ? 0 : idle + 1;
        if (idle > 200 || step > EVENTS) wrong(&w, "they wait for ever");
        for (int r = 0; r < RANKS; r++)
            if (direct_error(w.d, r)->code < 0) wrong(&w, "a machine has failed");
    }
    if (w.wrong == NULL) judge_end(&w);
    const char *what = w.wrong;
    free_world(&w);
    return what;
}

/* --- tests -------------------------------------------------------------------------------------------------------- */

static int64_t many(int64_t few, int64_t full) { return getenv("PLAIT_TEST_FULL") != NULL ? full : few; }

static void prove(program_kind p, scope_kind s, int64_t schedules) {
    for (int64_t seed = 0; seed < schedules; seed++) {
        const char *what = schedule((uint64_t)seed, p, s, PLI_MISTAKE_NONE);
        if (what != NULL) fail_msg("program %d under scope %d, seed %lld: %s", (int)p, (int)s, (long long)seed, what);
    }
}

/* The same judge refutes a part of the schedules, for the reason that is expected in at least one. */
static void refute(program_kind p, scope_kind s, pli_lock_mistake planted, int64_t schedules, const char *expected) {
    int64_t found = 0;
    bool    reason = false;
    for (int64_t seed = 0; seed < schedules; seed++) {
        const char *what = schedule((uint64_t)seed, p, s, planted);
        found += what != NULL;
        reason = reason || (what != NULL && strcmp(what, expected) == 0);
    }
    if (found == 0 || !reason)
        fail_msg("program %d under scope %d, mistake %d: %lld of %lld refuted, none since '%s'", (int)p, (int)s,
                 (int)planted, (long long)found, (long long)schedules, expected);
}

static void test_full_and_edge_are_right(void **state) {
    const int64_t n = many(200, 2000);
    (void)state;
    prove(SWAP, SCOPE_FULL, n);
    prove(COLOR, SCOPE_FULL, n);
    prove(COLOR, SCOPE_EDGE, n);
}

static void test_weaker_scopes_are_wrong(void **state) {
    const int64_t n = many(100, 2000);
    (void)state;
    refute(SWAP, SCOPE_EDGE, PLI_MISTAKE_NONE, n, "a version that is written twice");
    refute(SWAP, SCOPE_VERTEX, PLI_MISTAKE_NONE, n, "a version that is written twice");
    refute(COLOR, SCOPE_VERTEX, PLI_MISTAKE_NONE, n, "neighbors have the same color");
}

static void test_nobody_waits_for_ever(void **state) {
    const int64_t n = many(300, 10000);
    (void)state;
    for (int64_t seed = 100000; seed < 100000 + n; seed++) {
        const char *what = schedule((uint64_t)seed, seed % 2 ? SWAP : COLOR, SCOPE_FULL, PLI_MISTAKE_NONE);
        if (what != NULL) fail_msg("seed %lld: %s", (long long)seed, what);
    }
}

static void test_planted_mistakes_are_found(void **state) {
    static const struct {
        pli_lock_mistake mistake;
        scope_kind       scope;
        const char      *expected;
    } planted[] = {
        { PLI_MISTAKE_READS_WRITTEN, SCOPE_EDGE, "two hold a lock that one may have" },
        { PLI_MISTAKE_WRITES_READ, SCOPE_EDGE, "two hold a lock that one may have" },
        { PLI_MISTAKE_TWO_WRITERS, SCOPE_FULL, "two hold a lock that one may have" },
        { PLI_MISTAKE_SKIPS_LAST, SCOPE_FULL, "two hold a lock that one may have" },
        { PLI_MISTAKE_READS_EARLY, SCOPE_FULL, "a version that is written twice" },
        { PLI_MISTAKE_WAKES_EARLY, SCOPE_FULL, "a version that is written twice" },
        { PLI_MISTAKE_LOSES_WRITE, SCOPE_FULL, "a value that is not its version's" },
        { PLI_MISTAKE_BACKWARDS, SCOPE_FULL, "they wait for ever" },
        { PLI_MISTAKE_FREES_TWICE, SCOPE_EDGE, "two hold a lock that one may have" },
        { PLI_MISTAKE_FORGETS_WAITING, SCOPE_FULL, "they wait for ever" },
        { PLI_MISTAKE_RESTS_EARLY, SCOPE_FULL, "rest before all was done" },
        { PLI_MISTAKE_TAKES_OLD, SCOPE_FULL, "a machine has failed" },
    };
    (void)state;
    assert_int_equal(sizeof planted / sizeof *planted, PLI_MISTAKES - 1);
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++)
        refute(planted[i].scope == SCOPE_FULL ? SWAP : COLOR, planted[i].scope, planted[i].mistake, many(150, 2000),
               planted[i].expected);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_and_edge_are_right),
        cmocka_unit_test(test_weaker_scopes_are_wrong),
        cmocka_unit_test(test_nobody_waits_for_ever),
        cmocka_unit_test(test_planted_mistakes_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
