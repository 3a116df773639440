/* The bare server: what it refuses by name, what it drops, whom it names when asked who holds a worker up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "table/client/client.h"
#include "table/server/server.h"

enum { RANK = 2, ROWS = 20, CROWD = 64 };

static const pli_layout layout = { .workers = 2, .servers = 1, .first_server = RANK, .job_hash = 77 };

typedef struct fixture {
    pli_server server;
    pli_spec   spec;
    uint64_t   seq[CROWD];
    pli_out    out;
} fixture;

static pli_msg *message(fixture *f, int32_t src, pli_kind kind, int64_t clock, size_t bytes) {
    pli_msg *msg = pli_msg_new(bytes);
    if (bytes > 0) memset(pli_msg_body(msg), 0, bytes);
    msg->head.kind = (uint16_t)kind;
    msg->head.src = src;
    msg->head.clock = clock;
    msg->head.incarnation = 1;
    msg->head.arg32 = 5;
    msg->head.seq = ++f->seq[src];
    return msg;
}

/* Delivers and returns how many messages came back. */
static int deliver(fixture *f, pli_msg *msg) {
    int n = 0;
    pli_out_drop(&f->out);
    pli_out_init(&f->out);
    pli_server_ops.on_message(&f->server, 1, msg, &f->out);
    for (const pli_msg *at = f->out.first; at != NULL; at = at->next) n++;
    return n;
}

/* Has the server sent a message of the kind to the rank? */
static const pli_msg *sent(const fixture *f, int32_t to, pli_kind kind) {
    for (const pli_msg *at = f->out.first; at != NULL; at = at->next)
        if (at->head.dst == to && at->head.kind == kind) return at;
    return NULL;
}

static pli_msg *create_message(fixture *f, uint64_t job_hash, uint64_t spec_hash) {
    pli_msg         *msg = message(f, 0, PLI_CREATE, 0, sizeof(pli_wire_create));
    pli_wire_create *create = pli_msg_body(msg);
    create->job_hash = job_hash;
    create->spec_hash = spec_hash;
    pli_spec_encode(&f->spec, &create->spec);
    return msg;
}

static void open_server_with(fixture *f, const pli_layout *with, plait_table_opts *opts, const char *consistency) {
    memset(f, 0, sizeof *f);
    pli_out_init(&f->out);
    opts->name = "w";
    opts->rows = ROWS;
    assert_int_equal(pli_spec_make(0, opts, "ps", consistency, 1, NULL, &f->spec, NULL), PLAIT_OK);
    f->spec.placement = pli_placement_make(ROWS, 4, false, 1, RANK);
    assert_int_equal(pli_server_open(&f->server, with, RANK, 0, 1, NULL), PLAIT_OK);
    assert_int_equal(deliver(f, create_message(f, 77, 1)), 1);
    assert_int_equal(f->out.first->head.flags & PLI_FLAG_FAILED, 0);
}

static void open_server(fixture *f, const char *consistency) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    open_server_with(f, &layout, &opts, consistency);
}

static void close_server(fixture *f) {
    pli_out_drop(&f->out);
    pli_server_close(&f->server);
}

static void expect_failure(const fixture *f, plait_status code, const char *text) {
    const pli_wire_failure *failure = pli_msg_body(f->out.first);
    assert_true(f->out.first->head.flags & PLI_FLAG_FAILED);
    assert_int_equal(failure->code, code);
    assert_non_null(strstr(failure->text, text));
}

static void test_creation_is_idempotent_and_compared(void **state) {
    (void)state;
    fixture f;
    open_server(&f, "bsp");
    assert_int_equal(deliver(&f, create_message(&f, 77, 1)), 1);
    assert_int_equal(f.out.first->head.flags & PLI_FLAG_FAILED, 0);
    assert_int_equal(deliver(&f, create_message(&f, 77, 2)), 1);
    expect_failure(&f, PLAIT_EMISMATCH, "table w");
    assert_int_equal(deliver(&f, create_message(&f, 78, 1)), 1);
    expect_failure(&f, PLAIT_EMISMATCH, "rank 0");
    close_server(&f);
}

static pli_msg *pull_message(fixture *f, int32_t src, int64_t clock, uint32_t table, int64_t first, int64_t n) {
    pli_msg *msg = message(f, src, PLI_PULL, clock, sizeof(pli_wire_pull));
    *(pli_wire_pull *)pli_msg_body(msg) = (pli_wire_pull){ .table = table, .first = first, .n = n };
    return msg;
}

static void test_pulls_outside_fail_by_name(void **state) {
    (void)state;
    fixture f;
    open_server(&f, "bsp");
    assert_int_equal(deliver(&f, pull_message(&f, 0, 0, 0, 0, ROWS)), 1);
    assert_int_equal(f.out.first->head.body_bytes, ROWS * 4);
    assert_int_equal(deliver(&f, pull_message(&f, 0, 0, 0, 1, ROWS)), 1);
    expect_failure(&f, PLAIT_EFORMAT, "table w");
    assert_int_equal(deliver(&f, pull_message(&f, 0, 0, 9, 0, 1)), 1);
    expect_failure(&f, PLAIT_EFORMAT, "table number 9");
    assert_int_equal(deliver(&f, pull_message(&f, 0, 0, 0, -1, INT64_MAX)), 1);
    expect_failure(&f, PLAIT_EFORMAT, "outside");
    close_server(&f);
}

static pli_msg *clock_message(fixture *f, int32_t src, int64_t clock, int64_t first, int64_t n, float value) {
    pli_msg       *msg = message(f, src, PLI_CLOCK, clock, sizeof(pli_wire_part) + (size_t)ROWS * 4);
    pli_wire_part *part = pli_msg_body(msg);
    float         *values = (float *)(part + 1);
    msg->head.arg32 = 1;
    *part = (pli_wire_part){ .first = first, .n = n, .values_at = sizeof *part };
    for (int i = 0; i < ROWS; i++) values[i] = value;
    return msg;
}

static void test_malformed_pushes_fail_the_job(void **state) {
    (void)state;
    static const struct { int64_t first, n; uint32_t table, flags; uint64_t at; int64_t examples; } bad[] = {
        { 1, ROWS, 0, 0, 48, 0 }, { -1, 1, 0, 0, 48, 0 }, { 0, -1, 0, 0, 48, 0 },  { 0, INT64_MAX, 0, 0, 48, 0 },
        { 0, 1, 3, 0, 48, 0 },    { 0, 1, 0, 1, 48, 0 },  { 0, ROWS, 0, 0, 56, 0 }, { 0, 1, 0, 0, UINT64_MAX - 7, 0 },
        { 0, 1, 0, 0, 44, 0 },    { 0, 1, 0, 0, 48, -1 }, { 0, 1, 0, 0, 48, INT64_MAX },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fixture f;
        open_server(&f, "bsp");
        pli_msg       *msg = clock_message(&f, 0, 0, bad[i].first, bad[i].n, 1);
        pli_wire_part *part = pli_msg_body(msg);
        part->table = bad[i].table;
        part->flags = bad[i].flags;
        part->values_at = bad[i].at;
        part->examples = bad[i].examples;
        deliver(&f, msg);
        assert_int_equal(f.out.error.code, PLAIT_EFORMAT);
        assert_int_equal(f.server.clocks[0], 0);
        close_server(&f);
    }
    fixture f;
    open_server(&f, "bsp");
    deliver(&f, clock_message(&f, 0, 1, 0, 1, 1)); /* clock 0 is due */
    assert_int_equal(f.out.error.code, PLAIT_EFORMAT);
    close_server(&f);
}

static float served(fixture *f, int64_t clock) {
    assert_int_equal(deliver(f, pull_message(f, 0, clock, 0, 3, 1)), 1);
    return *(const float *)pli_msg_body(f->out.first);
}

static void test_doubles_and_the_dead_are_dropped(void **state) {
    (void)state;
    fixture f;
    open_server(&f, "async");
    pli_msg *msg = clock_message(&f, 0, 0, 0, ROWS, 1), *again = pli_msg_copy(msg);
    assert_int_equal(deliver(&f, msg), 0);
    assert_int_equal(deliver(&f, again), 1); /* acknowledged again, not applied */
    assert_int_equal(f.out.first->head.kind, PLI_ACK);
    assert_true(served(&f, 1) == 1);
    pli_msg *late = clock_message(&f, 1, 0, 0, ROWS, 8);
    pli_member_event death = { .kind = PLI_MEMBER_DIED, .rank = 1, .epoch = 1 };
    pli_server_ops.on_member(&f.server, 1, &death, &f.out);
    assert_int_equal(deliver(&f, late), 0);
    assert_true(served(&f, 1) == 1 && f.server.clocks[1] == INT64_MAX && f.server.peer[1].gone);
    pli_msg *stranger = message(&f, 0, PLI_CLOCK, 0, 0);
    stranger->head.src = 9;
    assert_int_equal(deliver(&f, stranger), 0);
    close_server(&f);
}

typedef struct heard {
    int       n[PLI_EVENT_KINDS];
    pli_event last;
} heard;

static void hear(void *user, const pli_event *event) {
    heard *h = user;
    h->n[event->kind]++;
    h->last = *event;
}

/* Each update is told once: as it comes where it is applied at once, in the order of workers where a clock ends. */
static void test_events_tell_each_update_once(void **state) {
    (void)state;
    for (int at_once = 0; at_once < 2; at_once++) {
        fixture              f;
        heard                h = { 0 };
        const pli_event_sink sink = { .raise = hear, .user = &h };
        open_server(&f, at_once ? "async" : "bsp");
        f.server.sink = &sink;
        pli_msg *msg = clock_message(&f, 1, 0, 4, 3, 1), *again = pli_msg_copy(msg);
        deliver(&f, msg);
        deliver(&f, again);
        assert_int_equal(h.n[PLI_EVENT_TICK], 1);
        assert_int_equal(h.n[PLI_EVENT_APPLY], at_once);
        deliver(&f, clock_message(&f, 0, 0, 2, 5, 1));
        assert_int_equal(h.n[PLI_EVENT_TICK], 2);
        assert_int_equal(h.n[PLI_EVENT_APPLY], 2);
        if (!at_once) {
            assert_int_equal(h.last.kind, PLI_EVENT_APPLY);
            assert_true(h.last.peer == 1 && h.last.rank == RANK && h.last.version == 2);
            assert_true(h.last.clock == 0 && h.last.seq == 1 && h.last.table == 0 && h.last.shard == 0);
        }
        close_server(&f);
    }
}

static void test_values_handed_out_are_never_written(void **state) {
    (void)state;
    fixture f;
    open_server(&f, "async");
    assert_int_equal(deliver(&f, pull_message(&f, 0, 0, 0, 0, ROWS)), 1);
    pli_slab *slab = pli_slab_ref(f.out.first->body);
    assert_ptr_equal(slab, f.server.table[0]->shard.store.slab); /* no copy */
    deliver(&f, clock_message(&f, 0, 0, 0, ROWS, 1));
    assert_true(((const float *)slab->memory)[3] == 0 && served(&f, 1) == 1);
    pli_slab_unref(&slab);
    pli_out_drop(&f.out);
    pli_out_init(&f.out);
    slab = f.server.table[0]->shard.store.slab;
    deliver(&f, clock_message(&f, 0, 1, 0, ROWS, 1));
    assert_ptr_equal(slab, f.server.table[0]->shard.store.slab); /* nobody holds it: in place */
    close_server(&f);
}

static int32_t asked_why(fixture *f, int32_t src, int64_t *clock_out) {
    int32_t  holder;
    pli_msg *why = message(f, src, PLI_WHY, 0, 0);
    why->head.seq = 0;
    f->seq[src]--;
    if (deliver(f, why) == 0) return -1;
    assert_int_equal(f->out.first->head.kind, PLI_HELD);
    memcpy(&holder, pli_msg_body(f->out.first), sizeof holder);
    *clock_out = f->out.first->head.clock;
    return holder;
}

static void test_who_holds_up(void **state) {
    (void)state;
    fixture f;
    int64_t clock = -1;
    open_server(&f, "bsp");
    assert_int_equal(asked_why(&f, 0, &clock), -1); /* nothing waits */
    deliver(&f, clock_message(&f, 0, 0, 0, ROWS, 1));
    assert_int_equal(deliver(&f, pull_message(&f, 0, 1, 0, 0, 1)), 0);
    assert_int_equal(asked_why(&f, 0, &clock), 1);
    assert_int_equal(clock, 0);
    assert_int_equal(deliver(&f, clock_message(&f, 1, 0, 0, ROWS, 1)), 1); /* served now */
    assert_int_equal(deliver(&f, message(&f, 1, PLI_BARRIER, 1, 0)), 0);
    assert_int_equal(asked_why(&f, 1, &clock), 0);
    assert_int_equal(clock, 1);
    assert_int_equal(deliver(&f, message(&f, 0, PLI_BARRIER, 1, 0)), 2);
    assert_int_equal(deliver(&f, message(&f, 0, PLI_BYE, 1, 0)), 0);
    assert_false(f.server.all_gone);
    assert_int_equal(deliver(&f, message(&f, 1, PLI_BYE, 1, 0)), 2);
    assert_true(f.server.all_gone);
    close_server(&f);
}

static pli_msg *push_message(fixture *f, int32_t src, int64_t clock, int64_t first, int64_t n, float value) {
    pli_msg *msg = clock_message(f, src, clock, first, n, value);
    msg->head.kind = PLI_PUSH;
    return msg;
}

static float value_at(fixture *f, int64_t row, int64_t clock) {
    assert_int_equal(deliver(f, pull_message(f, 0, clock, 0, row, 1)), 1);
    assert_int_equal(f->out.first->head.flags & PLI_FLAG_FAILED, 0);
    return *(const float *)pli_msg_body(f->out.first);
}

static pli_msg *empty_clock(fixture *f, int32_t src, int64_t clock) {
    pli_msg *msg = message(f, src, PLI_CLOCK, clock, 0);
    msg->head.arg32 = 0;
    return msg;
}

/* What comes before its clock ends waits for it, however many messages it is; of another clock it ends the job; and
 * what a leaver has not ended is dropped. */
static void test_pushes_that_come_early(void **state) {
    (void)state;
    fixture f;
    open_server(&f, "bsp");
    assert_int_equal(deliver(&f, push_message(&f, 0, 0, 0, 5, 1)), 0);
    assert_int_equal(deliver(&f, push_message(&f, 1, 0, 0, ROWS, 2)), 0);
    assert_true(value_at(&f, 3, 0) == 0);
    (void)deliver(&f, empty_clock(&f, 0, 0));
    assert_int_equal(deliver(&f, push_message(&f, 0, 1, 0, ROWS, 4)), 0);
    assert_true(value_at(&f, 3, 0) == 0);
    (void)deliver(&f, empty_clock(&f, 1, 0));
    assert_true(value_at(&f, 3, 1) == 3 && value_at(&f, 7, 1) == 2);
    assert_int_equal(deliver(&f, push_message(&f, 1, 1, 0, ROWS, 16)), 0);
    (void)deliver(&f, message(&f, 1, PLI_LEAVE, 0, 0));
    (void)deliver(&f, empty_clock(&f, 0, 1));
    assert_true(value_at(&f, 3, 2) == 7); /* not the leaver's 16 */
    (void)deliver(&f, push_message(&f, 0, 3, 0, ROWS, 32));
    assert_int_equal(f.out.error.code, PLAIT_EFORMAT);
    assert_non_null(strstr(f.out.error.text, "rank 0 pushed in clock 3, it is in clock 2"));
    close_server(&f);
}

/* Of two parts of one clock one would be lost. */
static void test_a_second_part_is_refused(void **state) {
    (void)state;
    fixture f;
    open_server(&f, "bsp");
    (void)deliver(&f, empty_clock(&f, 1, 0));
    assert_int_equal(deliver(&f, push_message(&f, 1, 1, 0, ROWS, 2)), 0);
    assert_int_equal(deliver(&f, push_message(&f, 0, 0, 0, ROWS, 1)), 0);
    (void)deliver(&f, empty_clock(&f, 0, 0));
    assert_int_equal(deliver(&f, push_message(&f, 0, 1, 0, ROWS, 4)), 0); /* of another clock, and another worker */
    assert_int_equal(f.out.error.code, PLAIT_OK);
    (void)deliver(&f, clock_message(&f, 1, 1, 0, 5, 8));
    assert_int_equal(f.out.error.code, PLAIT_EFORMAT);
    assert_non_null(strstr(f.out.error.text, "table w: worker 1 pushes a second part of clock 1"));
    close_server(&f);
    open_server(&f, "bsp");
    pli_msg *twice = message(&f, 0, PLI_PUSH, 0, 2 * sizeof(pli_wire_part) + 4);
    for (int i = 0; i < 2; i++)
        ((pli_wire_part *)pli_msg_body(twice))[i] = (pli_wire_part){ .n = 1, .values_at = 2 * sizeof(pli_wire_part) };
    memset((pli_wire_part *)pli_msg_body(twice) + 2, 0, 4);
    twice->head.arg32 = 2;
    (void)deliver(&f, twice);
    assert_int_equal(f.out.error.code, PLAIT_EFORMAT);
    assert_non_null(strstr(f.out.error.text, "a second part of clock 0"));
    close_server(&f);
}

static void test_who_leaves_lets_others_go_on(void **state) {
    (void)state;
    fixture f;
    open_server(&f, "bsp");
    deliver(&f, clock_message(&f, 0, 0, 0, ROWS, 1));
    assert_int_equal(deliver(&f, pull_message(&f, 0, 1, 0, 3, 1)), 0);
    assert_int_equal(deliver(&f, message(&f, 1, PLI_LEAVE, 0, 0)), 1); /* served now */
    assert_true(*(const float *)pli_msg_body(f.out.first) == 1);
    deliver(&f, clock_message(&f, 0, 1, 0, ROWS, 1));
    assert_true(served(&f, 2) == 2);
    close_server(&f);
}

/* All have left, the slower one last: what the faster one has ended is applied all the same. */
static void test_when_all_have_left_all_is_applied(void **state) {
    (void)state;
    fixture f;
    open_server(&f, "bsp");
    for (int64_t clock = 0; clock < 3; clock++) deliver(&f, clock_message(&f, 0, clock, 0, ROWS, 1));
    deliver(&f, clock_message(&f, 1, 0, 0, ROWS, 10));
    deliver(&f, message(&f, 0, PLI_LEAVE, 3, 0));
    assert_int_equal(deliver(&f, pull_message(&f, 0, 3, 0, 3, 1)), 0);
    assert_int_equal(deliver(&f, message(&f, 1, PLI_LEAVE, 1, 0)), 1);
    assert_true(*(const float *)pli_msg_body(f.out.first) == 13 && f.out.first->head.clock == 3);
    close_server(&f);
}

/* The server of a second job hears of a ticket of the first: what follows in the stream comes all the same. */
static void test_a_question_of_the_last_job_harms_no_stream(void **state) {
    (void)state;
    fixture    f;
    pli_client old;
    pli_ticket ticket;
    pli_out    out;
    assert_int_equal(pli_client_open(&old, &layout, 0, 0, 1, NULL), PLAIT_OK);
    old.link[0].used = true;
    pli_out_init(&out);
    pli_ticket_open(&old, &ticket);
    assert_int_equal(pli_client_send_all(&old, 1, PLI_BYE, &ticket, &out, NULL), PLAIT_OK);
    pli_ticket_wonder(&old, 1, &ticket, &out);
    pli_out_drop(&out);
    pli_out_init(&out);
    pli_client_ops.on_wakeup(&old, UINT64_C(2000000000), &out);
    pli_msg *why = out.first;
    assert_int_equal(why->head.kind, PLI_WHY);
    open_server(&f, "bsp");
    assert_int_equal(deliver(&f, why), 0);
    for (int64_t clock = 0; clock < 3; clock++) deliver(&f, clock_message(&f, 0, clock, 0, ROWS, 1));
    assert_int_equal(f.server.clocks[0], 3);
    close_server(&f);
    pli_client_close(&old);
}

/* --- what policies may do ----------------------------------------------------------------------------------------- */

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
    assert_int_equal(deliver(&f, clock_message(&f, 0, 0, 0, ROWS, 1)), 0); /* the slowest has not moved */
    assert_int_equal(deliver(&f, keys_message(&f, 1, 0, 7)), 1);
    assert_int_equal(deliver(&f, keys_message(&f, 1, 0, 5)), 1);
    assert_int_equal(deliver(&f, clock_message(&f, 1, 0, 0, ROWS, 2)), 2);
    const pli_msg *whole = sent(&f, 0, PLI_FRESH), *rows = sent(&f, 1, PLI_FRESH_KEYS);
    assert_true(whole != NULL && rows != NULL && whole->head.clock == 1 && rows->head.clock == 1 &&
                whole->head.arg32 == 0);
    assert_ptr_equal(whole->body, f.server.table[0]->shard.store.slab); /* no copy */
    assert_int_equal(whole->head.arg64, f.seq[0]); /* all that worker 0 has sent is in it */
    assert_int_equal(rows->head.body_bytes, 2 * 12);
    const uint64_t *keys = pli_msg_body(rows);
    assert_true(keys[0] == 7 && keys[1] == 5 && ((const float *)(keys + 2))[1] == 3);
    deliver(&f, message(&f, 1, PLI_LEAVE, 1, 0));
    assert_int_equal(deliver(&f, clock_message(&f, 0, 1, 0, ROWS, 1)), 1); /* the leaver is not told */
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
    ((pli_wire_pull *)pli_msg_body(met))->flags = PLI_PULL_MET; /* has passed a barrier */
    assert_int_equal(deliver(&f, met), 1);
    assert_int_equal(deliver(&f, clock_message(&f, 0, 0, 0, ROWS, 1)), 1);
    assert_true(f.out.first->head.dst == 1 && *(const float *)pli_msg_body(f.out.first) == 1);
    assert_int_equal(deliver(&f, pull_message(&f, 0, 1, 0, 3, 1)), 0); /* and then waits for worker 1 */
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

/* Two policies like ssp:0 that count how often they are asked: one says that it waits for the slowest, one does not. */
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

/* How often the policy is asked while the workers, one after the other, end CLOCKS clocks and pull in the next. */
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
            /* all that wait */
            assert_int_equal(deliver(&f, clock_message(&f, w, clock, 0, ROWS, 1)), last ? CROWD - 1 : 0);
            assert_int_equal(deliver(&f, pull_message(&f, w, clock + 1, 0, 3, 1)), last ? 1 : 0);
        }
    int64_t questions = *(const int64_t *)f.server.table[0]->policy.state;
    close_server(&f);
    return questions;
}

static void test_who_waits_is_asked_for_when_it_may_help(void **state) {
    (void)state;
    assert_int_equal(count_questions("steady", 4), 4 * (2 * CROWD - 1)); /* when they come, and when all have */
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
    deliver(&f, message(&f, 0, PLI_LEAVE, 2, 0)); /* alone in the slowest clock */
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
    assert_int_equal(f.server.applied, 0); /* two of three are needed */
    deliver(&f, clock_message(&f, 2, 0, 0, ROWS, 2));
    assert_true(f.server.applied == 1 && served(&f, 1) == 3);
    deliver(&f, clock_message(&f, 1, 0, 0, ROWS, 8)); /* late */
    assert_true(served(&f, 1) == 3 && f.server.dropped == 1);
    deliver(&f, clock_message(&f, 1, 1, 0, ROWS, 16)); /* in time */
    deliver(&f, clock_message(&f, 0, 1, 0, ROWS, 32));
    assert_true(f.server.applied == 2 && served(&f, 2) == 51);
    deliver(&f, message(&f, 2, PLI_LEAVE, 1, 0)); /* who has left is the one that is not waited for */
    deliver(&f, clock_message(&f, 0, 2, 0, ROWS, 64));
    assert_int_equal(f.server.applied, 2);
    deliver(&f, clock_message(&f, 1, 2, 0, ROWS, 128));
    assert_true(f.server.applied == 3 && served(&f, 3) == 243);
    deliver(&f, message(&f, 1, PLI_LEAVE, 3, 0)); /* the last one waits for himself only */
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
    deliver(&f, clock_message(&f, 0, 0, 0, ROWS, 1)); /* one push of the other: as in lockstep, not stale */
    assert_true(served(&f, 1) == -2);
    for (int64_t clock = 1; clock < 6; clock++) deliver(&f, clock_message(&f, 1, clock, 0, ROWS, clock < 5 ? 0 : 0.5f));
    /* worker 1 has fetched never, and of worker 0's pushes one was applied since: not stale; nor is its own history */
    deliver(&f, clock_message(&f, 0, 1, 0, ROWS, 3)); /* five pushes of the other since the fetch: 1 + 5 / 2 */
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
    open_odd_server(&f, "odd:even", NULL); /* what the policy drops is not there when the clock ends */
    deliver(&f, clock_message(&f, 0, 0, 0, ROWS, 3));
    pli_msg *shared = clock_message(&f, 1, 0, 0, ROWS, 4), *other = pli_msg_copy(shared);
    deliver(&f, shared);
    assert_true(served(&f, 1) == 4 && f.server.dropped == 1);
    pli_msg_free(&other);
    close_server(&f);
}

static pli_msg *lease_message(fixture *f, int32_t src, int64_t clock, int64_t blocks, int64_t n) {
    pli_msg        *msg = message(f, src, PLI_LEASE, clock, sizeof(pli_wire_lease) + (size_t)n * sizeof(pli_lease));
    pli_wire_lease *ask = pli_msg_body(msg);
    pli_lease      *lease = (pli_lease *)(ask + 1);
    *ask = (pli_wire_lease){ .terms = { .blocks = blocks, .clocks = 10 }, .pace = { 1, 1 }, .n = n };
    for (int64_t i = 0; i < n; i++) lease[i] = (pli_lease){ .block = src * 3 + i, .rows = 5 };
    return msg;
}

/* A worker brings its blocks and hears of them, whatever others do; what does not add up is refused. */
static void test_leases(void **state) {
    (void)state;
    fixture f;
    open_server(&f, "bsp");
    assert_int_equal(deliver(&f, lease_message(&f, 0, 0, 6, 3)), 1);
    assert_int_equal(f.out.first->head.body_bytes, 3 * sizeof(pli_lease));
    assert_int_equal(((const pli_lease *)pli_msg_body(f.out.first))[2].block, 2);
    assert_int_equal(deliver(&f, lease_message(&f, 1, 0, 7, 3)), 1);
    expect_failure(&f, PLAIT_EMISMATCH, "other data");
    assert_int_equal(deliver(&f, lease_message(&f, 1, 0, 6, 3)), 1);
    assert_int_equal(f.out.first->head.body_bytes, 3 * sizeof(pli_lease));
    assert_int_equal(deliver(&f, lease_message(&f, 1, 5, 6, 0)), 1);
    expect_failure(&f, PLAIT_EFORMAT, "clock 8 was due");
    pli_msg *msg = lease_message(&f, 1, 8, 6, 1);
    ((pli_wire_lease *)pli_msg_body(msg))->n = 2;
    assert_int_equal(deliver(&f, msg), 1);
    expect_failure(&f, PLAIT_EFORMAT, "malformed");
    assert_int_equal(deliver(&f, lease_message(&f, 1, 8, INT64_MAX, 0)), 1);
    expect_failure(&f, PLAIT_EFORMAT, "malformed");
    assert_int_equal(deliver(&f, message(&f, 1, PLI_LEASE, 8, 8)), 1);
    expect_failure(&f, PLAIT_EFORMAT, "malformed");
    close_server(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leases),
        cmocka_unit_test(test_creation_is_idempotent_and_compared),
        cmocka_unit_test(test_pulls_outside_fail_by_name),
        cmocka_unit_test(test_malformed_pushes_fail_the_job),
        cmocka_unit_test(test_doubles_and_the_dead_are_dropped),
        cmocka_unit_test(test_values_handed_out_are_never_written),
        cmocka_unit_test(test_who_holds_up),
        cmocka_unit_test(test_pushes_that_come_early),
        cmocka_unit_test(test_a_second_part_is_refused),
        cmocka_unit_test(test_who_leaves_lets_others_go_on),
        cmocka_unit_test(test_when_all_have_left_all_is_applied),
        cmocka_unit_test(test_a_question_of_the_last_job_harms_no_stream),
        cmocka_unit_test(test_events_tell_each_update_once),
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
