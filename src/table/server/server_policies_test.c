/* The server by itself under its tables' policies: turns, fresh rows, who is asked again, backup workers, steps by
 * staleness, pushes that are dropped. */
#include "table/server_by_hand.h"

static pli_msg *keys_message(fixture *f, int32_t src, int64_t clock, uint64_t key) {
    pli_msg       *msg = message(f, src, PLI_PULL, clock, sizeof(pli_wire_pull) + 8);
    pli_wire_pull *pull = pli_msg_body(msg);
    *pull = (pli_wire_pull){ .flags = PLI_PULL_KEYS, .first = -1, .n = 1 };
    memcpy(pull + 1, &key, 8);
    return msg;
}

static void test_fresh_rows_go_to_those_who_read_them(void **state) {
    (void)state;
    fixture f;
    open_server(&f, "essp:1");
    assert_int_equal(deliver(&f, pull_message(&f, 0, 0, 0, 3, 1)), 1);
    assert_int_equal(deliver(&f, clock_message(&f, 0, 0, 0, ROWS, 1)), 0); /* the slowest worker has not moved */
    assert_int_equal(deliver(&f, keys_message(&f, 1, 0, 7)), 1);
    assert_int_equal(deliver(&f, keys_message(&f, 1, 0, 5)), 1);
    assert_int_equal(deliver(&f, clock_message(&f, 1, 0, 0, ROWS, 2)), 2);
    const pli_msg *whole = sent(&f, 0, PLI_FRESH), *rows = sent(&f, 1, PLI_FRESH_KEYS);
    assert_true(whole != NULL && rows != NULL && whole->head.clock == 1 && rows->head.clock == 1 &&
                whole->head.arg32 == 0);
    assert_ptr_equal(whole->body, f.server.table[0]->shard.store.slab); /* the slab itself was sent, not a copy */
    assert_int_equal(whole->head.arg64, f.seq[0]); /* all that worker 0 has sent is in it */
    assert_int_equal(rows->head.body_bytes, 2 * 12);
    const uint64_t *keys = pli_msg_body(rows);
    assert_true(keys[0] == 7 && keys[1] == 5 && ((const float *)(keys + 2))[1] == 3);
    deliver(&f, message(&f, 1, PLI_LEAVE, 1, 0));
    assert_int_equal(deliver(&f, clock_message(&f, 0, 1, 0, ROWS, 1)), 1); /* the worker that leaves is told nothing */
    assert_non_null(sent(&f, 0, PLI_FRESH));
    close_server(&f);
}

static void test_turns_and_what_takes_none(void **state) {
    (void)state;
    fixture f;
    open_server(&f, "sequential");
    assert_int_equal(deliver(&f, pull_message(&f, 1, 0, 0, 3, 1)), 0); /* worker 0 comes first */
    assert_int_equal(deliver(&f, pull_message(&f, 0, 0, 0, 3, 1)), 1);
    pli_msg *met = pull_message(&f, 1, 0, 0, 3, 1);
    ((pli_wire_pull *)pli_msg_body(met))->flags = PLI_PULL_MET; /* the worker has passed a barrier */
    assert_int_equal(deliver(&f, met), 1);
    assert_int_equal(deliver(&f, clock_message(&f, 0, 0, 0, ROWS, 1)), 1);
    assert_true(f.out.first->head.dst == 1 && *(const float *)pli_msg_body(f.out.first) == 1);
    assert_int_equal(deliver(&f, pull_message(&f, 0, 1, 0, 3, 1)), 0); /* it waits for worker 1 again */
    assert_int_equal(deliver(&f, clock_message(&f, 1, 0, 0, ROWS, 1)), 1);
    assert_true(f.out.first->head.dst == 0 && *(const float *)pli_msg_body(f.out.first) == 2);
    close_server(&f);
}

/* A program's own policy, by parameter: "first" ends a clock when one worker has, "even" drops pushes of odd norm. */
static plait_status odd_parse(void *state, const char *parameters, const plait_setting *setting, plait_error *err) {
    (void)setting, (void)err;
    *(int *)state = strcmp(parameters, "first") == 0;
    return PLAIT_OK;
}

static plait_apply odd_applies(const void *state) { return (void)state, PLAIT_APPLY_AT_CLOCK; }
static plait_read  odd_on_get(void *state, const plait_view *view) { return (void)state, (void)view, PLAIT_FETCH; }
static plait_read  odd_on_pull(void *state, const plait_view *view) { return (void)state, (void)view, PLAIT_SERVE; }
static plait_push  odd_on_push(void *state, const plait_view *view) {
    return *(int *)state || (int)view->norm % 2 == 0 ? PLAIT_TAKE : PLAIT_DROP;
}
static int64_t odd_complete(const void *state, const plait_view *view) {
    int64_t most = 0;
    for (int32_t w = 0; w < view->workers; w++) most = view->clocks[w] > most ? view->clocks[w] : most;
    return *(const int *)state ? most : view->slowest;
}

static const plait_consistency odd = {
    .name = "odd", .parameters = ":WHAT", .summary = "a test's", .state_bytes = sizeof(int), .reads_norms = 1,
    .parse = odd_parse, .applies = odd_applies, .worker.on_get = odd_on_get,
    .server = { .on_pull = odd_on_pull, .on_push = odd_on_push, .complete = odd_complete },
};

static void open_odd_server(fixture *f, const char *consistency, const pli_event_sink *sink) {
    plait_table_opts opts;
    pli_layout       own = layout;
    plait_table_opts_init(&opts);
    own.policies = &odd;
    own.n_policies = 1;
    open_server_with(f, &own, &opts, consistency);
    f->server.sink = sink;
}

/* Two policies like ssp:0 count how often they are asked. One says that it waits for the slowest, the other does
 * not. */
static plait_status counting_parse(void *state, const char *parameters, const plait_setting *setting,
                                   plait_error *err) {
    (void)state, (void)parameters, (void)setting, (void)err;
    return PLAIT_OK;
}
static plait_read counting_on_pull(void *state, const plait_view *view) {
    ++*(int64_t *)state;
    return view->slowest >= view->clock ? PLAIT_SERVE : PLAIT_WAIT;
}
static const plait_consistency counting[] = {
    { .name = "steady", .parameters = "", .summary = "a test's", .state_bytes = sizeof(int64_t), .waits_for_slowest = 1,
      .parse = counting_parse, .worker.on_get = odd_on_get, .server.on_pull = counting_on_pull },
    { .name = "wary", .parameters = "", .summary = "a test's", .state_bytes = sizeof(int64_t), .parse = counting_parse,
      .worker.on_get = odd_on_get, .server.on_pull = counting_on_pull },
};

/* How often the policy is asked while the workers, one after the other, end CLOCKS clocks and pull in the next one. */
static int64_t count_questions(const char *consistency, int64_t clocks) {
    fixture          f;
    plait_table_opts opts;
    pli_layout       crowd = layout;
    plait_table_opts_init(&opts);
    crowd.workers = CROWD;
    crowd.policies = counting;
    crowd.n_policies = 2;
    open_server_with(&f, &crowd, &opts, consistency);
    for (int64_t clock = 0; clock < clocks; clock++)
        for (int32_t w = 0; w < CROWD; w++) {
            bool last = w + 1 == CROWD;
            /* all that wait are served */
            assert_int_equal(deliver(&f, clock_message(&f, w, clock, 0, ROWS, 1)), last ? CROWD - 1 : 0);
            assert_int_equal(deliver(&f, pull_message(&f, w, clock + 1, 0, 3, 1)), last ? 1 : 0);
        }
    int64_t questions = *(const int64_t *)f.server.table[0]->policy.state;
    close_server(&f);
    return questions;
}

static void test_who_waits_is_asked_for_when_it_may_help(void **state) {
    (void)state;
    assert_int_equal(count_questions("steady", 4), 4 * (2 * CROWD - 1)); /* when pulls come, and when all have come */
    assert_true(count_questions("wary", 4) > 4 * CROWD * CROWD / 2);     /* after every change */
}

static void test_the_slowest_is_known(void **state) {
    (void)state;
    fixture          f;
    plait_table_opts opts;
    pli_layout       few = layout;
    plait_table_opts_init(&opts);
    few.workers = 3;
    open_server_with(&f, &few, &opts, "async");
    const int32_t who[] = { 0, 0, 1, 2, 1, 2, 2, 1 };
    const int64_t slowest[] = { 0, 0, 0, 1, 1, 2, 2, 2 };
    int64_t       clock[3] = { 0 };
    for (size_t i = 0; i < sizeof who / sizeof *who; i++) {
        deliver(&f, clock_message(&f, who[i], clock[who[i]]++, 0, ROWS, 1));
        assert_int_equal(f.server.slowest, slowest[i]);
    }
    deliver(&f, message(&f, 0, PLI_LEAVE, 2, 0)); /* worker 0 is alone in the slowest clock */
    assert_int_equal(f.server.slowest, 3);
    deliver(&f, message(&f, 1, PLI_LEAVE, 3, 0));
    assert_int_equal(f.server.slowest, 3);
    deliver(&f, clock_message(&f, 2, 3, 0, ROWS, 1));
    assert_int_equal(f.server.slowest, 4);
    deliver(&f, message(&f, 2, PLI_LEAVE, 4, 0));
    assert_true(f.server.slowest == PLAIT_LEFT);
    close_server(&f);
}

static void test_backup_workers(void **state) {
    (void)state;
    fixture          f;
    plait_table_opts opts;
    pli_layout       spare = layout;
    plait_table_opts_init(&opts);
    spare.workers = 3;
    spare.backup = 1;
    open_server_with(&f, &spare, &opts, "bsp");
    deliver(&f, clock_message(&f, 0, 0, 0, ROWS, 1));
    assert_int_equal(f.server.applied, 0); /* two of the three workers are needed */
    deliver(&f, clock_message(&f, 2, 0, 0, ROWS, 2));
    assert_true(f.server.applied == 1 && served(&f, 1) == 3);
    deliver(&f, clock_message(&f, 1, 0, 0, ROWS, 8)); /* late */
    assert_true(served(&f, 1) == 3 && f.server.dropped == 1);
    deliver(&f, clock_message(&f, 1, 1, 0, ROWS, 16)); /* in time */
    deliver(&f, clock_message(&f, 0, 1, 0, ROWS, 32));
    assert_true(f.server.applied == 2 && served(&f, 2) == 51);
    deliver(&f, message(&f, 2, PLI_LEAVE, 1, 0)); /* a worker that has left is the one that is not waited for */
    deliver(&f, clock_message(&f, 0, 2, 0, ROWS, 64));
    assert_int_equal(f.server.applied, 2);
    deliver(&f, clock_message(&f, 1, 2, 0, ROWS, 128));
    assert_true(f.server.applied == 3 && served(&f, 3) == 243);
    deliver(&f, message(&f, 1, PLI_LEAVE, 3, 0)); /* the last worker waits only for itself */
    deliver(&f, clock_message(&f, 0, 3, 0, ROWS, 256));
    assert_true(f.server.applied == 4 && served(&f, 4) == 499);
    deliver(&f, message(&f, 0, PLI_BARRIER, 4, 0));
    deliver(&f, message(&f, 1, PLI_BARRIER, 3, 0));
    deliver(&f, message(&f, 2, PLI_BARRIER, 1, 0));
    const pli_msg *answer = sent(&f, 1, PLI_REPLY);
    assert_true(answer != NULL && answer->head.body_bytes == 8 && *(const int64_t *)pli_msg_body(answer) == 1);
    close_server(&f);
}

static void test_steps_by_staleness(void **state) {
    (void)state;
    fixture          f;
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.rule.name = "sgd";
    opts.rule.learning_rate = 1;
    opts.rule.staleness_aware = 1;
    open_server_with(&f, &layout, &opts, "async");
    assert_true(served(&f, 0) == 0); /* worker 0 fetches */
    deliver(&f, clock_message(&f, 1, 0, 0, ROWS, 1));
    deliver(&f, clock_message(&f, 0, 0, 0, ROWS, 1)); /* one push of the other worker: as in lockstep, not stale */
    assert_true(served(&f, 1) == -2);
    for (int64_t clock = 1; clock < 6; clock++) deliver(&f, clock_message(&f, 1, clock, 0, ROWS, clock < 5 ? 0 : 0.5f));
    /* worker 1 has never fetched, and one of worker 0's pushes was applied since: not stale; its own pushes do not
     * count */
    deliver(&f, clock_message(&f, 0, 1, 0, ROWS, 3)); /* the other worker has pushed five times since the fetch: 1 + 5 /
                                                       * 2 */
    assert_true(served(&f, 2) == -3.5f);
    close_server(&f);
}

static void test_pushes_are_dropped(void **state) {
    (void)state;
    fixture              f;
    heard                h = { 0 };
    const pli_event_sink sink = { .raise = hear, .user = &h };
    open_odd_server(&f, "odd:first", &sink); /* clocks end with the first worker; late pushes are dropped */
    deliver(&f, clock_message(&f, 0, 0, 0, ROWS, 1));
    assert_true(served(&f, 1) == 1 && f.server.applied == 1);
    deliver(&f, clock_message(&f, 1, 0, 0, ROWS, 8));
    assert_true(served(&f, 1) == 1 && f.server.dropped == 1 && h.n[PLI_EVENT_DROP] == 1 && h.last.peer == 1);
    deliver(&f, clock_message(&f, 1, 1, 0, ROWS, 16));
    assert_true(served(&f, 1) == 17 && f.server.applied == 2);
    close_server(&f);
    open_odd_server(&f, "odd:even", NULL); /* pushes that the policy drops are missing when the clock ends */
    deliver(&f, clock_message(&f, 0, 0, 0, ROWS, 3));
    pli_msg *shared = clock_message(&f, 1, 0, 0, ROWS, 4), *other = pli_msg_copy(shared);
    deliver(&f, shared);
    assert_true(served(&f, 1) == 4 && f.server.dropped == 1);
    pli_msg_free(&other);
    close_server(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fresh_rows_go_to_those_who_read_them),
        cmocka_unit_test(test_turns_and_what_takes_none),
        cmocka_unit_test(test_pushes_are_dropped),
        cmocka_unit_test(test_who_waits_is_asked_for_when_it_may_help),
        cmocka_unit_test(test_the_slowest_is_known),
        cmocka_unit_test(test_backup_workers),
        cmocka_unit_test(test_steps_by_staleness),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
