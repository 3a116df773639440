/* Tests that a net in stages goes on when a rank dies (learn/net/outlive.h): the ranks of the dead one's replica die
 * with it, and each clock still has all its rows once, so under bsp with exact sums the model has the bits of the run
 * in which nobody died. Spare replicas take the place of dead ones, and a second replica may die when all shards have
 * two copies again. Checkpoints outlive all of that, and a run goes on from them in any layout.
 *
 * Some of these runs are judged by the audit of their event log alone: each stage's group by itself, and that a
 * replica's ranks end the same clocks and stand in for the same dead. PLAIT_JUDGE=audit does nothing else: the test
 * then ends with 4 when the audit refutes a log, and says the seed. */
#include "learn/survive_dir.h"
#include "watch/audit/audit.h"

static const kind kinds_in_stages[] = {
    { "net in stages", "mlp", "bsp", "adam", NULL, true, false, false, NULL, NULL },
    { "net in stages, validated", "mlp", "bsp", "adagrad", "0.2", true, false, false, NULL, NULL },
    { "net in stages, sums not exact", "mlp", "bsp", "sgd", NULL, false, false, false, NULL, NULL },
    { "net in stages, ssp", "mlp", "ssp:2", "sgd", NULL, false, false, false, NULL, NULL },
    { "net in stages, async", "mlp", "async", "sgd", NULL, false, false, false, NULL, NULL },
};
enum { STAGED = sizeof kinds_in_stages / sizeof kinds_in_stages[0] };
enum { DEATHS = 40, DEATHS_FULL = 1000, KEPT = 20, KEPT_FULL = 300, LATE = 4, LATE_FULL = 100,
       AUDITED = 12, AUDITED_FULL = 200 };

static story story_in_stages(const kind *k, plait_data *const data[SETS], const int *stop, int32_t replicas,
                             int32_t cut) {
    story s = story_of(k, data, stop);
    s.opts.layers = "8,6";
    s.opts.curve = 0;
    s.opts.cut = cut;
    s.opts.micro_batches = cut;
    s.workers = replicas * (cut > 1 ? cut : 1);
    return s;
}

/* Draws the layout: 2 or 3 replicas of 2 or 3 stages, and up to 2 spare ones. */
static story draw_layout(const kind *k, plait_data *const data[SETS], const int *stop, pli_random *r) {
    const int32_t cut = 2 + (int32_t)pli_random_below(r, 2);
    const bool    spared = strcmp(k->consistency, "async") != 0;
    const int32_t spares = spared ? (int32_t)pli_random_below(r, cut == 2 ? 3 : 2) : 0;
    const int32_t replicas = 2 + (int32_t)pli_random_below(r, cut == 2 ? 2 : 1);
    story         s = story_in_stages(k, data, stop, replicas, cut);
    s.opts.spares = spares * cut;
    s.workers += s.opts.spares;
    return s;
}

/* Where there is a third replica another one dies, some clocks after the first: as soon as a clock has begun and ended
 * without the dead one, all shards have two copies again. */
static void draw_second_replica(story *s, pli_random *r) {
    const int32_t replicas = s->workers / s->opts.cut, first = replica_of(s, s->victim);
    const int32_t killer = replica_of(s, s->killer);
    int32_t       second = first;
    if (replicas < 3 || killer == first) return;
    for (; second == first || second == killer; second = replica_of(s, s->second))
        s->second = (int32_t)pli_random_below(r, (uint64_t)s->workers);
    s->second_clocks = 3 + (int64_t)pli_random_below(r, 4);
}

static void name_story(const story *s, const kind *k, uint64_t seed, char what[200]) {
    snprintf(what, 200, "seed %llu (%s): %d ranks in %d stages (%d spare): rank %d at call %lld of rank %d, then rank "
             "%d after %lld clocks", (unsigned long long)seed, k->name, (int)s->workers, (int)s->opts.cut,
             (int)s->opts.spares, (int)s->victim, (long long)s->at, (int)s->killer, (int)s->second,
             (long long)s->second_clocks);
    if (getenv("PLAIT_TRACE") != NULL) print_message("%s\n", what);
}

static void test_replicas_of_a_net_in_stages_may_die(void **unused) {
    (void)unused;
    static const int stop = 0;
    plait_data      *data[SETS];
    make_data(data);
    int64_t     runs = runs_of(DEATHS, DEATHS_FULL), died = 0, twice = 0;
    story      *whole = pli_calloc(STAGED, sizeof *whole);
    plait_error err = { 0 };
    for (size_t k = 0; k < STAGED; k++) {
        whole[k] = story_in_stages(&kinds_in_stages[k], data, &stop, 2, 2);
        if (run(&whole[k], &err) < 0) fail_msg("%s: %s", kinds_in_stages[k].name, err.text);
    }
    for (int64_t i = 0; i < runs; i++) {
        const uint64_t seed = seed_of(i);
        pli_random     r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 11, 0);
        const size_t   k = pli_random_below(&r, STAGED);
        story          s = draw_layout(&kinds_in_stages[k], data, &stop, &r);
        char           what[200];
        draw_death(&s, &r, &whole[k]);
        draw_second_replica(&s, &r);
        name_story(&s, &kinds_in_stages[k], seed, what);
        err = (plait_error){ 0 };
        if (run(&s, &err) < 0) fail_msg("%s: %s", what, err.text);
        check(&s, &kinds_in_stages[k], &whole[k], what);
        died += atomic_load(&s.told) > 0;
        twice += s.second_clocks > 0 && s.clocks >= s.second_clocks;
    }
    if (only_seed() == NULL && (died * 2 < runs || twice * 12 < runs))
        fail_msg("%lld of %lld deaths were told, %lld times a second one came", (long long)died, (long long)runs,
                 (long long)twice);
    pli_free(whole);
    free_data(data);
}

/* One rank of a replica hears of a death before it hears that its clock is safe, and asks the others of its replica to
 * stand in with it, in vain; another replica has ended that clock. clocks: of the run in which nobody dies. */
static void draw_late_in_stages(story *s, pli_random *r, int64_t clocks) {
    const int32_t dead = (int32_t)pli_random_below(r, HOLDERS), turn = (int32_t)pli_random_below(r, 2);
    s->victim = dead + HOLDERS * (int32_t)pli_random_below(r, 2);
    s->killer = (dead + 1 + turn) % HOLDERS + HOLDERS * (int32_t)pli_random_below(r, 2);
    s->late = (dead + 2 - turn) % HOLDERS + HOLDERS * (int32_t)pli_random_below(r, 2);
    s->late_clock = 1 + (int64_t)pli_random_below(r, (uint64_t)clocks);
}

static void test_a_death_is_heard_before_the_clock_is_safe(void **unused) {
    (void)unused;
    static const int stop = 0;
    plait_data      *data[SETS];
    plait_error      err = { 0 };
    const uint64_t   each = getenv("PLAIT_TEST_FULL") != NULL ? LATE_FULL : LATE;
    make_data(data);
    for (size_t k = 0; k < STAGED; k++) {
        const kind *which = &kinds_in_stages[k];
        const story begun = story_in_stages(which, data, &stop, HOLDERS, 2);
        story       whole = begun;
        if (strcmp(which->consistency, "bsp") != 0) continue; /* else nobody stands in */
        if (run(&whole, &err) < 0) fail_msg("%s: %s", which->name, err.text);
        for (uint64_t seed = 1; seed <= each; seed++) {
            pli_random r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 14, k);
            story      s = begun;
            draw_late_in_stages(&s, &r, whole.ended_clocks[0]);
            if (run(&s, &err) < 0 || !atomic_load(&s.stood))
                fail_msg("seed %llu (%s): rank %d dies behind clock %lld of rank %d, for rank %d in it: %s",
                         (unsigned long long)seed, which->name, (int)s.victim, (long long)s.late_clock, (int)s.killer,
                         (int)s.late, err.code < 0 ? err.text : "nobody stood in");
            check(&s, which, &whole, which->name);
        }
    }
    free_data(data);
}

/* --- the audit ---------------------------------------------------------------------------------------------------- */

/* Runs it with an event log, of which the audit judges. A run that ended badly is given up where the audit is the only
 * judge. */
static pli_audit_verdict verdict_on(story *s, const char *what, bool blind) {
    char              path[48] = "/tmp/plait-survive-XXXXXX";
    const char *const paths[] = { path };
    plait_error       err = { 0 };
    pli_logfile      *file = NULL;
    pli_audit        *audit = NULL;
    if (blind) s->opts.lost = NULL; /* it has a view of who may be lost */
    assert_int_equal(close(mkstemp(path)), 0);
    assert_int_equal(plait_events_create(path, &s->events, &err), PLAIT_OK);
    const plait_status status = run(s, &err);
    if (status < 0 && !blind) fail_msg("%s: %s", what, err.text);
    assert_int_equal(plait_events_close(&s->events, &err), PLAIT_OK);
    assert_int_equal(pli_logfile_open(paths, 1, &file, &err), PLAIT_OK);
    if (pli_audit_run(file, NULL, &audit, &err) < 0) fail_msg("%s: %s", what, err.text);
    assert_int_equal(unlink(path), 0);
    const pli_audit_verdict    verdict = pli_audit_result(audit);
    const pli_audit_violation *first = pli_audit_first(audit);
    if (verdict == PLI_AUDIT_REFUTED) fprintf(stderr, "%s: %s: %s\n", what, first->rule, first->text);
    pli_audit_free(&audit);
    pli_logfile_close(&file);
    return verdict;
}

/* By turns a death that is heard late, and one at any moment. */
static void test_the_audit_proves_runs_with_deaths(void **unused) {
    static const int stop = 0;
    const kind      *k = &kinds_in_stages[0];
    plait_data      *data[SETS];
    plait_error      err = { 0 };
    const bool       blind = getenv("PLAIT_JUDGE") != NULL;
    (void)unused;
    make_data(data);
    story three = story_in_stages(k, data, &stop, HOLDERS, 2);
    if (run(&three, &err) < 0) fail_msg("%s", err.text);
    const int64_t runs = runs_of(AUDITED, AUDITED_FULL);
    for (int64_t i = 0; i < runs; i++) {
        const uint64_t seed = seed_of(i);
        pli_random     r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 15, 0);
        story          s = seed % 2 == 0 ? draw_layout(k, data, &stop, &r)
                                         : story_in_stages(k, data, &stop, HOLDERS, 2);
        char           what[200];
        if (seed % 2 == 0) draw_death(&s, &r, &three);
        else draw_late_in_stages(&s, &r, three.ended_clocks[0]);
        snprintf(what, sizeof what, "rank %d dies; PLAIT_SEED=%llu", (int)s.victim, (unsigned long long)seed);
        const pli_audit_verdict verdict = verdict_on(&s, what, blind);
        if (blind && verdict == PLI_AUDIT_REFUTED) exit(4);
        if (!blind && verdict != PLI_AUDIT_PROVEN) fail_msg("%s: verdict %d", what, (int)verdict);
    }
    free_data(data);
}

/* --- checkpoints -------------------------------------------------------------------------------------------------- */

/* Resumes in another layout, cut or whole, with two copies or one, and perhaps another death. */
static void go_on(const kind *k, plait_data *const data[SETS], const int *stop, pli_random *r, const story *whole,
                  const char *what) {
    plait_error err = { 0 };
    char        more[320];
    const bool  copies = pli_random_below(r, 2) == 0;
    story       s = copies ? draw_layout(k, data, stop, r)
                           : story_in_stages(k, data, stop, k->exact ? 1 + (int32_t)pli_random_below(r, 3) : 2,
                                             1 + (int32_t)pli_random_below(r, 3));
    resume_there(&s, r);
    s.opts.replicas = copies ? 2 : 1;
    if (s.opts.cut < 2) s.opts.cut = 0;
    if (s.opts.cut < 2) s.opts.micro_batches = 2; /* a block has at most two rows a clock, which round apart */
    if (copies && pli_random_below(r, 2) == 0) draw_death_resumed(&s, r, whole);
    snprintf(more, sizeof more, "%s; then %d copies, %d ranks in %d stages (%d spare): rank %d at call %lld of rank %d",
             what, (int)s.opts.replicas, (int)s.workers, (int)s.opts.cut, (int)s.opts.spares, (int)s.victim,
             (long long)s.at, (int)s.killer);
    if (getenv("PLAIT_TRACE") != NULL) print_message("%s\n", more);
    if (run(&s, &err) < 0) fail_msg("%s: %s", more, err.text);
    if (!copies) hand_over(&s, whole);
    check(&s, k, whole, more);
}

static void test_checkpoints_of_stages_outlive_any_rank(void **unused) {
    (void)unused;
    static const int stop = 0;
    plait_data      *data[SETS];
    make_data(data);
    int64_t     runs = runs_of(KEPT, KEPT_FULL), resumed = 0, died = 0;
    story      *whole = pli_calloc(STAGED, sizeof *whole);
    plait_error err = { 0 };
    make_directory();
    for (int64_t i = 0; i < runs; i++) {
        const uint64_t seed = seed_of(i);
        pli_random     r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 13, 0);
        const size_t   k = pli_random_below(&r, STAGED);
        char           what[200];
        for (int nobody = 1; nobody >= 0; nobody--) { /* each kind once without a death */
            story s = nobody ? story_in_stages(&kinds_in_stages[k], data, &stop, 2, 2)
                             : draw_layout(&kinds_in_stages[k], data, &stop, &r);
            if (nobody && whole[k].workers > 0) continue;
            keep_often(&s, &r, nobody);
            if (!nobody) draw_death(&s, &r, &whole[k]);
            if (!nobody) draw_second_replica(&s, &r);
            name_story(&s, &kinds_in_stages[k], seed, what);
            if (run(&s, &err) < 0) fail_msg("%s: %s", what, err.text);
            if (nobody) whole[k] = s;
            check(&s, &kinds_in_stages[k], &whole[k], what);
            died += atomic_load(&s.told) > 0;
            const bool there = choose_checkpoint(&r, atomic_load(&s.checkpoints), what);
            if (there) go_on(&kinds_in_stages[k], data, &stop, &r, &whole[k], what);
            resumed += there;
            remove_checkpoints();
        }
    }
    assert_int_equal(rmdir(dir), 0);
    judge_resumed(runs, died, resumed);
    pli_free(whole);
    free_data(data);
}

int main(void) {
    const struct CMUnitTest audited[] = { cmocka_unit_test(test_the_audit_proves_runs_with_deaths) };
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_replicas_of_a_net_in_stages_may_die),
                                        cmocka_unit_test(test_a_death_is_heard_before_the_clock_is_safe),
                                        cmocka_unit_test(test_the_audit_proves_runs_with_deaths),
                                        cmocka_unit_test(test_checkpoints_of_stages_outlive_any_rank) };
    if (getenv("PLAIT_JUDGE") != NULL) return cmocka_run_group_tests(audited, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
