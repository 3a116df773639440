/* Tests that checkpoints outlive any rank of a run with two replicas: a run that is resumed from one, by any number of
 * workers, with two replicas or one, and with another death, ends with the bits of the run in which nobody died. So do
 * those of a program's own job. */
#include "learn/survive_dir.h"

enum { KEPT = 30, KEPT_FULL = 400, SAVED_AT = 3, SAVES = 20, SAVES_FULL = 300 };

/* --- with checkpoints --------------------------------------------------------------------------------------------- */

/* Resumes from what is there, with any number of workers and replicas, and perhaps another death. */
static void go_on(const kind *k, plait_data *const data[SETS], const int *stop, pli_random *r, const story *whole,
                  const char *what) {
    plait_error err = { 0 };
    story       s = story_of(k, data, stop);
    char        more[320];
    resume_there(&s, r);
    s.opts.curve = 0;
    s.opts.replicas = 1 + (int32_t)pli_random_below(r, 2);
    s.workers = k->exact ? 2 + (int32_t)pli_random_below(r, 3) : 3;
    if (is_summed(k) && k->exact && pli_random_below(r, 2) == 0) s.opts.topology = "allreduce";
    if (s.opts.replicas == 2) take_spares(&s, (int32_t)pli_random_below(r, 2));
    if (s.opts.replicas == 2 && pli_random_below(r, 2) == 0) draw_death_resumed(&s, r, whole);
    snprintf(more, sizeof more, "%s; then %d replicas of %s by %d (%d spare): rank %d at call %lld of rank %d", what,
             (int)s.opts.replicas, s.opts.topology, (int)s.workers, (int)s.opts.spares, (int)s.victim, (long long)s.at,
             (int)s.killer);
    if (getenv("PLAIT_TRACE") != NULL) print_message("%s\n", more);
    if (run(&s, &err) < 0) fail_msg("%s: %s", more, err.text);
    if (s.opts.replicas == 1) hand_over(&s, whole);
    check(&s, k, whole, more);
}

static void test_checkpoints_outlive_any_rank(void **unused) {
    (void)unused;
    static const int stop = 0;
    plait_data      *data[SETS];
    make_data(data);
    int64_t     runs = runs_of(KEPT, KEPT_FULL), resumed = 0, died = 0;
    story      *whole = pli_calloc(KINDS, sizeof *whole);
    plait_error err = { 0 };
    make_directory();
    for (int64_t i = 0; i < runs; i++) {
        const uint64_t seed = seed_of(i);
        pli_random     r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 8, 0);
        size_t         k = pli_random_below(&r, KINDS);
        char           what[220];
        for (int nobody = 1; nobody >= 0; nobody--) { /* each kind once without a death */
            story s = story_of(&kinds[k], data, &stop);
            if (nobody && whole[k].workers > 0) continue;
            keep_often(&s, &r, nobody);
            s.servers = !nobody && pli_random_below(&r, 3) == 0 ? 2 : 0;
            if (!nobody && s.servers == 0 && is_summed(&kinds[k]) && kinds[k].exact && pli_random_below(&r, 2) == 0)
                s.opts.topology = "allreduce";
            if (!nobody) take_spares(&s, (int32_t)pli_random_below(&r, 3));
            const bool lead = pli_random_below(&r, 4) == 0;
            if (!nobody && !lead) draw_death(&s, &r, &whole[k]);
            if (!nobody && lead) s.at_commit = (int64_t)pli_random_below(&r, (uint64_t)whole[k].commits);
            s.committed = pli_random_below(&r, 2) == 0;
            if (!nobody && pli_random_below(&r, 4) == 0)
                s.tears_at = (int64_t)pli_random_below(&r, (uint64_t)atomic_load(&whole[k].looked));
            if (!nobody && !lead && seed % 4 == 0 && strcmp(kinds[k].consistency, "bsp") == 0)
                draw_late(&s, &r, &whole[k]);
            snprintf(what, sizeof what,
                     "seed %llu (%s, %s): rank %d of %d (%d spare) + %d at call %lld of rank %d, or %s commit %lld; "
                     "torn at %lld; late %lld",
                     (unsigned long long)seed, kinds[k].name, s.opts.topology, (int)s.victim, (int)s.workers,
                     (int)s.opts.spares,
                     (int)s.servers, (long long)s.at, (int)s.killer, s.committed ? "behind" : "before",
                     (long long)s.at_commit, (long long)s.tears_at, (long long)s.late_clock);
            if (getenv("PLAIT_TRACE") != NULL) print_message("%s\n", what);
            if (run(&s, &err) < 0) fail_msg("%s: %s", what, err.text);
            if (nobody) whole[k] = s;
            check(&s, &kinds[k], &whole[k], what);
            died += atomic_load(&s.told) > 0;
            const bool there = choose_checkpoint(&r, atomic_load(&s.checkpoints), what);
            if (there) go_on(&kinds[k], data, &stop, &r, &whole[k], what);
            resumed += there;
            remove_checkpoints();
        }
    }
    assert_int_equal(rmdir(dir), 0);
    judge_resumed(runs, died, resumed);
    pli_free(whole);
    free_data(data);
}

/* --- a clock has rows of few blocks ------------------------------------------------------------------------------- */

static const kind few_rows = { "topics by very small batches", "lda", "bsp", NULL, NULL, true, false, false, NULL,
                               NULL };

/* Trains topics of which a clock has ten rows, so that an heir has rows of most blocks only many clocks after a death.
 * at: the call at which rank 1 dies; -1: it does not. */
static void train_few_rows(plait_data *const data[SETS], int32_t replicas, int64_t at, const char *resume, story *s,
                           const char *what) {
    static const int stop = 0;
    plait_error      err = { 0 };
    *s = story_of(&few_rows, data, &stop);
    s->opts.batch = 10;
    s->opts.curve = 0;
    s->opts.replicas = replicas;
    s->opts.resume = resume;
    s->opts.checkpoint = resume == NULL ? dir : NULL;
    s->opts.checkpoint_keep = 1000;
    s->opts.checkpoint_clocks = 35;
    s->victim = 1;
    s->at = at;
    if (run(s, &err) < 0) fail_msg("%s: %s", what, err.text);
}

/* Resumes from each checkpoint with another number of replicas; with two, rank 1 dies at the given call. */
static void resume_from_each(plait_data *const data[SETS], int32_t replicas, int64_t at, const story *whole,
                             const char *what) {
    pli_checkpoint_list list = { 0 };
    plait_error         err = { 0 };
    char                more[120];
    if (pli_checkpoint_list_read(dir, &list, &err) < 0) fail_msg("%s: %s", what, err.text);
    assert_true(list.n > 3);
    for (int64_t i = list.n - 1; i >= 0; i--) {
        story s;
        snprintf(more, sizeof more, "%s, %d replicas go on from %s", what, (int)replicas, list.entry[i].folder);
        train_few_rows(data, replicas, at, dir, &s, more);
        assert_true((atomic_load(&s.told) > 0) == (at >= 0));
        if (replicas == 1) s.kept_clocks = whole->kept_clocks;
        if (replicas == 1) memcpy(s.kept_hash, whole->kept_hash, sizeof s.kept_hash);
        check(&s, &few_rows, whole, more);
        assert_int_equal(pli_checkpoint_discard(dir, list.entry[i].folder, &err), PLAIT_OK);
    }
    pli_checkpoint_list_free(&list);
    remove_checkpoints();
}

static void test_topics_go_on_with_another_number_of_replicas(void **unused) {
    (void)unused;
    plait_data *data[SETS];
    make_data(data);
    story      *whole = pli_calloc(1, sizeof *whole), *s = pli_calloc(1, sizeof *s);
    make_directory();
    train_few_rows(data, 2, -1, NULL, whole, "nobody dies");
    remove_checkpoints();
    for (int64_t tenth = 3; tenth < 10; tenth += 4) {
        char what[60];
        snprintf(what, sizeof what, "a death after %lld tenths", (long long)tenth);
        train_few_rows(data, 2, whole->calls[0] * tenth / 10, NULL, s, what);
        assert_true(atomic_load(&s->told) > 0);
        check(s, &few_rows, whole, what);
        resume_from_each(data, 1, -1, whole, what);
    }
    for (int64_t at = 5; at < 40; at += 20) {
        train_few_rows(data, 1, -1, NULL, s, "one replica");
        resume_from_each(data, 2, at, whole, "one replica");
    }
    pli_free(whole);
    pli_free(s);
    assert_int_equal(rmdir(dir), 0);
    free_data(data);
}

/* --- a program's own job ------------------------------------------------------------------------------------------ */

/* Adds what a worker adds in a clock: for each item that it holds, or (inherited) has inherited in the clock that is
 * ending. */
static plait_status add_items(plait_job *job, plait_table *const table[2], bool inherited) {
    const int32_t me = plait_comm_rank(plait_job_comm(job)), workers = plait_comm_workers(plait_job_comm(job));
    for (int32_t i = 0; i < ITEMS; i++) {
        const float delta[2] = { (float)i, 1 };
        const int   mine = inherited ? plait_job_inherits(job, i % workers, (uint64_t)i)
                                     : plait_job_holder(job, i % workers, (uint64_t)i) == me;
        if (!mine) continue;
        PLI_TRY(plait_table_inc_range(table[0], 3 * i, 1, delta, 1));
        PLI_TRY(plait_table_inc(table[1], 1, &(uint64_t){ (uint64_t)i * 1000003 }, delta, 0));
    }
    return PLAIT_OK;
}

static plait_status one_clock(plait_job *job, plait_table *const table[2]) {
    PLI_TRY(add_items(job, table, false));
    plait_status status;
    while ((status = plait_job_clock(job)) == PLAIT_STAND_IN) PLI_TRY(add_items(job, table, true));
    return status;
}

static plait_status load_again(plait_job *job, plait_table *const table[2], plait_checkpoint *c) {
    PLI_TRY(one_clock(job, table));
    PLI_TRY(plait_checkpoint_load(c, table[0], NULL));
    return plait_checkpoint_load(c, table[1], NULL);
}

/* Runs three clocks and saves a checkpoint; or restores it, runs one clock more, and reads the tables. */
static plait_status save_or_restore(plait_job *job, story *s) {
    plait_table          *table[2];
    plait_checkpoint     *c = NULL;
    plait_table_opts      t;
    plait_checkpoint_opts to;
    float                 row[2], *held = s->held[plait_comm_rank(plait_job_comm(job))];
    plait_table_opts_init(&t);
    t.name = "dense";
    t.rows = TABLE_ROWS;
    t.cols = 2;
    t.rule.name = "momentum";
    PLI_TRY(plait_table_create(job, &t, &table[0]));
    t.name = "sparse";
    t.rows = 0;
    t.rule.name = NULL;
    PLI_TRY(plait_table_create(job, &t, &table[1]));
    for (int clock = 0; !s->restores && clock < SAVED_AT; clock++) PLI_TRY(one_clock(job, table));
    plait_checkpoint_opts_init(&to);
    to.dir = dir;
    if (!s->restores) return plait_checkpoint_save(job, table, 2, &to);
    PLI_TRY(plait_checkpoint_open(dir, NULL, &c, pli_comm_error(plait_job_comm(job))));
    plait_status status = plait_checkpoint_restore(c, table[0], NULL);
    if (status >= 0) status = plait_checkpoint_restore(c, table[1], NULL);
    if (status >= 0 && s->loads) status = load_again(job, table, c);
    plait_checkpoint_close(&c);
    if (status >= 0) status = one_clock(job, table);
    PLI_TRY(status);
    PLI_TRY(plait_table_get_range(table[0], 0, TABLE_ROWS, held));
    for (uint64_t i = 0; i < ITEMS; i++) {
        PLI_TRY(plait_table_get(table[1], 1, &(uint64_t){ i * 1000003 }, row));
        if (row[0] != (SAVED_AT + 1) * (float)i || row[1] != SAVED_AT + 1)
            return pli_fail(pli_comm_error(plait_job_comm(job)), PLAIT_EMISMATCH, "item %d has %g and %g", (int)i,
                            (double)row[0], (double)row[1]);
    }
    return PLAIT_OK;
}

static plait_status own_job(plait_comm *comm, void *user) {
    story         *s = user;
    plait_job_opts o;
    plait_job     *job = NULL;
    plait_job_opts_init(&o);
    o.topology = "ps";
    o.replicas = 2;
    o.first_clock = s->restores ? SAVED_AT : 0;
    atomic_store_explicit(&s->comm[plait_comm_rank(comm)], comm, memory_order_release);
    PLI_TRY(plait_job_create(comm, &o, &job));
    plait_status status = plait_comm_rank(comm) < s->workers ? save_or_restore(job, s) : PLAIT_OK;
    if (status >= 0) status = plait_job_destroy(&job);
    s->ended[plait_comm_rank(comm)] = status >= 0;
    if (status < 0) pli_job_abandon(&job);
    return status;
}

/* Saves, restores, and copies to held what the lowest worker that has ended well has read. */
static void save_and_restore(story *s, float held[TABLE_ROWS * 2], const char *what) {
    plait_error err = { 0 };
    for (int restores = 0; restores < 2; restores++) {
        s->restores = restores != 0;
        memset(s->ended, 0, sizeof s->ended);
        for (int32_t w = 0; w < RANKS_MAX; w++) atomic_store(&s->comm[w], NULL);
        for (int32_t w = 0; w < RANKS_MAX; w++) atomic_store(&s->calls[w], 0);
        atomic_store(&s->begun, false);
        if (run_body(s, own_job, &err) < 0) fail_msg("%s, %s: %s", what, s->restores ? "restored" : "saved", err.text);
    }
    int32_t w = 0;
    while (w < s->workers && !s->ended[w]) w++;
    assert_true(w < s->workers);
    memcpy(held, s->held[w], sizeof s->held[w]);
    remove_checkpoints();
}

static void test_a_programs_own_checkpoints_outlive_any_rank(void **unused) {
    (void)unused;
    int64_t     runs = runs_of(SAVES, SAVES_FULL);
    float       want[TABLE_ROWS * 2], held[TABLE_ROWS * 2];
    make_directory();
    story *whole = pli_calloc(1, sizeof *whole), *s = pli_calloc(1, sizeof *s);
    *whole = (story){ .at = -1, .at_commit = -1, .tears_at = -1, .workers = 3 };
    save_and_restore(whole, want, "nobody dies");
    for (int64_t i = 0; i < runs; i++) {
        const uint64_t seed = seed_of(i);
        pli_random     r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 9, 0);
        char           what[200];
        *s = (story){ .at = -1, .at_commit = -1, .tears_at = -1, .workers = 3 };
        s->servers = pli_random_below(&r, 3) == 0 ? 2 : 0;
        s->loads = seed % 2 == 0;
        if (pli_random_below(&r, 4) == 0) s->tears_at = (int64_t)pli_random_below(&r, 12);
        if (pli_random_below(&r, 4) > 0)
            draw_death(s, &r, whole);
        else
            s->at_commit = 0;
        s->committed = pli_random_below(&r, 2) == 0;
        snprintf(what, sizeof what, "seed %llu: rank %d of %d + %d at call %lld of rank %d, or %s commit %lld",
                 (unsigned long long)seed, (int)s->victim, (int)s->workers, (int)s->servers, (long long)s->at,
                 (int)s->killer, s->committed ? "behind" : "before", (long long)s->at_commit);
        if (getenv("PLAIT_TRACE") != NULL) print_message("%s\n", what);
        save_and_restore(s, held, what);
        if (memcmp(held, want, sizeof want) != 0) fail_msg("%s: other rows", what);
    }
    pli_free(whole);
    pli_free(s);
    assert_int_equal(rmdir(dir), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_checkpoints_outlive_any_rank),
                                        cmocka_unit_test(test_topics_go_on_with_another_number_of_replicas),
                                        cmocka_unit_test(test_a_programs_own_checkpoints_outlive_any_rank) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
