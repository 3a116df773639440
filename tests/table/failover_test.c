/* Two replicas of a server's shards, step by step: what the stand-in answers again, what it has of a snapshot, what is
 * refused before it is there, who may die. The schedules of replicas_test.c draw such moments. Here each is made, over
 * a network that keeps the order and loses what a test wants lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "table/client/client.h"
#include "table/copies/hosted.h"
#include "table/state/snap.h"

enum { WORKERS = 2, FIRST = WORKERS, THIRD = FIRST, HOME, OTHER, RANKS, ROWS = 20 };

typedef struct fixture {
    pli_layout        layout;
    pli_client        client[WORKERS];
    pli_client_table *table[WORKERS];
    pli_server        server[RANKS]; /* of the ranks from FIRST on                                            */
    pli_hosted       backups[RANKS];
    pli_spec          spec; /* its one shard lies on HOME, the other replica on OTHER, the next on THIRD */
    bool              dead[RANKS], over[RANKS]; /* over: its job is, in good order; its machines are no more */
    uint16_t          lost;      /* messages of this kind to rank 0 are; 0: none */
    int32_t           pulls;     /* how many were sent                           */
    bool              log_lost;  /* so is what goes into logs                    */
    bool              unconfirmed; /* so are confirmations of logs                 */
    uint32_t          epoch;
    plait_error       failed;
    pli_msg          *bag, **bag_last; /* in the order of sending */
} fixture;

/* --- the network -------------------------------------------------------------------------------------------------- */

static void take_out(fixture *f, int32_t rank, pli_out *out) {
    for (pli_msg *msg = out->first, *next; msg != NULL; msg = next) {
        next = msg->next;
        msg->next = NULL;
        msg->head.src = rank;
        msg->head.epoch = f->epoch;
        msg->head.incarnation = 1;
        *f->bag_last = msg;
        f->bag_last = &msg->next;
    }
    if (out->error.code < 0 && f->failed.code >= 0) f->failed = out->error;
    pli_out_init(out);
}

static void hand_on(fixture *f, pli_msg *msg) {
    const int32_t to = msg->head.dst;
    pli_out       out;
    pli_out_init(&out);
    f->pulls += msg->head.kind == PLI_PULL;
    if (f->over[to] && msg->head.seq > 0) {
        const pli_machine_ops *was = msg->head.port == PLI_PORT_CLIENT ? &pli_client_ops : &pli_server_ops;
        pli_msg               *answer = was->late(msg);
        answer->head.dst = msg->head.src;
        pli_out_send(&out, answer);
    }
    if (f->over[to] || f->dead[to] || (to == 0 && msg->head.kind == f->lost) ||
        (f->log_lost && (msg->head.flags & PLI_FLAG_LOG)) || (f->unconfirmed && msg->head.kind == PLI_LOGGED))
        pli_msg_free(&msg);
    else if (msg->head.port == PLI_PORT_CLIENT && to < WORKERS)
        pli_client_ops.on_message(&f->client[to], 1, msg, &out);
    else if (msg->head.port == PLI_PORT_CLIENT) fail_msg("rank %d is no worker", to);
    else if (msg->head.port == PLI_PORT_REPLICA)
        pli_hosted_ops.on_message(&f->backups[to], 1, msg, &out);
    else
        pli_server_ops.on_message(&f->server[to], 1, msg, &out);
    take_out(f, to, &out);
}

/* Delivers messages until nothing is under way. */
static void run(fixture *f) {
    while (f->bag != NULL) {
        pli_msg *msg = f->bag;
        f->bag = msg->next;
        if (f->bag == NULL) f->bag_last = &f->bag;
        msg->next = NULL;
        hand_on(f, msg);
    }
}

static void tell(fixture *f, pli_member_kind kind, int32_t rank) {
    const pli_member_event event = { .kind = kind, .rank = rank, .epoch = ++f->epoch, .why = { .text = "killed" } };
    for (int32_t to = 0; to < RANKS; to++) {
        pli_out out;
        pli_out_init(&out);
        if (to == rank || f->dead[to]) continue;
        if (to < WORKERS) pli_client_ops.on_member(&f->client[to], 1, &event, &out);
        if (to >= FIRST) pli_server_ops.on_member(&f->server[to], 1, &event, &out);
        if (to >= FIRST) pli_hosted_ops.on_member(&f->backups[to], 1, &event, &out);
        take_out(f, to, &out);
    }
    run(f);
}

static void kill_rank(fixture *f, int32_t rank) {
    f->dead[rank] = true;
    tell(f, PLI_MEMBER_DIED, rank);
}

/* --- workers' calls ----------------------------------------------------------------------------------------------- */

static void ask(fixture *f, int32_t k, pli_kind kind, size_t bytes, const void *body, pli_ticket *ticket) {
    pli_out  out;
    pli_msg *msg = pli_msg_new(bytes);
    if (bytes > 0) memcpy(pli_msg_body(msg), body, bytes);
    msg->head.clock = f->client[k].clock;
    pli_out_init(&out);
    pli_ticket_open(&f->client[k], ticket);
    assert_int_equal(pli_client_send(&f->client[k], 1, HOME - FIRST, kind, msg, ticket, &out, NULL), PLAIT_OK);
    take_out(f, k, &out);
    run(f);
}

/* Returns the answer's bytes, which forget frees. */
static const void *answer(const pli_ticket *ticket, size_t bytes) {
    assert_true(pli_ticket_done(ticket) && ticket->failure.code == 0 && ticket->replies != NULL);
    assert_int_equal(ticket->replies->head.body_bytes, bytes);
    return pli_msg_body(ticket->replies);
}

static void forget(fixture *f, int32_t k, pli_ticket *ticket) {
    pli_ticket_unlink(&f->client[k], ticket);
    pli_ticket_free(ticket);
}

static void create(fixture *f, pli_spec *spec, pli_ticket *ticket) {
    pli_wire_create wire = { .job_hash = 7, .spec_hash = (uint64_t)spec->id + 1 };
    pli_spec_encode(spec, &wire.spec);
    ask(f, 0, PLI_CREATE, sizeof wire, &wire, ticket);
}

static float pull(fixture *f, int32_t k, int64_t row) {
    const pli_wire_pull wire = { .first = row, .n = 1 };
    pli_ticket          ticket;
    float               value;
    ask(f, k, PLI_PULL, sizeof wire, &wire, &ticket);
    memcpy(&value, answer(&ticket, sizeof value), sizeof value);
    forget(f, k, &ticket);
    return value;
}

static void end_clock_of(fixture *f, int32_t k, float delta) {
    static const uint64_t row = 3;
    pli_out               out;
    pli_out_init(&out);
    if (delta != 0)
        assert_int_equal(pli_pending_add(&f->table[k]->pending, 1, &row, &delta, 0, NULL), PLAIT_OK);
    assert_int_equal(pli_client_build_push(&f->client[k], NULL, PLI_CLOCK, NULL), PLAIT_OK);
    assert_int_equal(pli_client_send_push(&f->client[k], 1, PLI_CLOCK, &out, NULL), PLAIT_OK);
    take_out(f, k, &out);
}

/* Worker 0 adds, and both workers end a clock. */
static void add_a_clock(fixture *f, float delta) {
    for (int32_t k = 0; k < WORKERS; k++) end_clock_of(f, k, k == 0 ? delta : 0);
    run(f);
    for (int32_t k = 0; k < WORKERS; k++) {
        assert_true(pli_client_is_safe(&f->client[k]));
        pli_client_end_clock(&f->client[k]);
    }
}

static int by_key; /* of the tables that are made */

static pli_spec make_spec(const fixture *f, int32_t id, const char *consistency) {
    plait_table_opts opts;
    pli_spec         spec;
    plait_table_opts_init(&opts);
    opts.name = "w";
    opts.rows = ROWS;
    opts.keyed = by_key;
    assert_int_equal(pli_spec_make(id, &opts, "ps", consistency, 1, NULL, &spec, NULL), PLAIT_OK);
    spec.placement = pli_placement_make(ROWS, 4, 0, f->layout.servers, f->layout.first_server);
    return spec;
}

static void open_all(fixture *f, const char *consistency) {
    pli_ticket ticket;
    memset(f, 0, sizeof *f);
    f->bag_last = &f->bag;
    f->epoch = 1;
    f->layout = (pli_layout){ .workers = WORKERS, .servers = RANKS - FIRST, .first_server = FIRST, .job_hash = 7,
                              .replicas = 2 };
    f->spec = make_spec(f, 0, consistency);
    assert_int_equal(f->spec.placement.shards, 1);
    assert_int_equal(pli_placement_rank(&f->spec.placement, 0), HOME);
    for (int32_t r = FIRST; r < RANKS; r++) {
        assert_int_equal(pli_server_open(&f->server[r], &f->layout, r, 1, 1, NULL), PLAIT_OK);
        assert_int_equal(pli_hosted_open(&f->backups[r], &f->layout, r, 1, 1, NULL, NULL), PLAIT_OK);
    }
    for (int32_t k = 0; k < WORKERS; k++) {
        assert_int_equal(pli_client_open(&f->client[k], &f->layout, k, 1, 1, NULL), PLAIT_OK);
        assert_int_equal(pli_client_table_open(&f->spec, &f->layout, &f->table[k], NULL), PLAIT_OK);
        assert_int_equal(pli_client_add_table(&f->client[k], f->table[k], NULL), PLAIT_OK);
    }
    create(f, &f->spec, &ticket);
    (void)answer(&ticket, 0);
    forget(f, 0, &ticket);
}

static void close_all(fixture *f) {
    assert_string_equal(f->failed.text, "");
    pli_msg_free_list(&f->bag);
    for (int32_t k = 0; k < WORKERS; k++) {
        pli_client_table_close(&f->table[k]);
        pli_client_close(&f->client[k]);
    }
    for (int32_t r = FIRST; r < RANKS; r++) {
        pli_server_close(&f->server[r]);
        pli_hosted_close(&f->backups[r]);
    }
}

/* Returns the replica of HOME's shards on another rank. */
static pli_server *home_at(fixture *f, int32_t rank) { return f->backups[rank].replica[HOME - FIRST]; }

/* --- what the stand-in answers ------------------------------------------------------------------------------------ */

static const pli_wire_state rows_of_values = { .table = 0, .array = PLI_STATE_VALUES, .first = 0, .n = ROWS };
static const uint64_t       first_snapshot = 1;

static void begin_snapshot(fixture *f) {
    pli_ticket ticket;
    ask(f, 0, PLI_SNAP, sizeof first_snapshot, &first_snapshot, &ticket);
    const pli_wire_snap *snap = answer(&ticket, sizeof *snap);
    assert_int_equal(snap->rows, ROWS);
    forget(f, 0, &ticket);
}

/* The answers of the replica that serves are lost, and then it dies: the stand-in answers. later: the log already
 * holds more than the request. */
static void ask_of_both(pli_kind kind, size_t bytes, const void *body, size_t answer_bytes, const char *consistency,
                        bool later) {
    fixture    f;
    pli_ticket ticket;
    open_all(&f, consistency);
    if (kind == PLI_PIECE) begin_snapshot(&f);
    f.lost = PLI_REPLY;
    ask(&f, 0, kind, bytes, body, &ticket);
    assert_false(pli_ticket_done(&ticket));
    f.lost = 0;
    if (later) add_a_clock(&f, 4);
    kill_rank(&f, HOME);
    (void)answer(&ticket, answer_bytes);
    assert_null(ticket.replies->next);
    forget(&f, 0, &ticket);
    add_a_clock(&f, 1);
    assert_true(pull(&f, 0, 3) == (kind == PLI_RESTORE ? 3 : 1) + (later ? 4 : 0));
    close_all(&f);
}

static void test_requests_are_answered_again(void **state) {
    (void)state;
    struct { pli_wire_state at; float values[ROWS]; } rows = { .at = rows_of_values };
    const pli_wire_pull some = { .first = 3, .n = 1 };
    for (int i = 0; i < ROWS; i++) rows.values[i] = 2;
    for (int i = 0; i < 4; i++) {
        const char *consistency = i % 2 == 0 ? "bsp" : "ssp:1";
        const bool  later = i >= 2;
        ask_of_both(PLI_SNAP, sizeof first_snapshot, &first_snapshot, sizeof(pli_wire_snap), consistency, later);
        ask_of_both(PLI_PIECE, sizeof rows_of_values, &rows_of_values, ROWS * sizeof(float), consistency, later);
        ask_of_both(PLI_PULL, sizeof some, &some, sizeof(float), consistency, later);
        ask_of_both(PLI_RESTORE, sizeof rows, &rows, 0, consistency, later);
    }
}

/* The replica that serves answers the beginning of a snapshot before its log is confirmed, but not that rows are put
 * back. Then it dies. */
static void test_what_was_answered_and_is_not_logged_is_said_again(void **state) {
    (void)state;
    struct { pli_wire_state at; float values[ROWS]; } rows = { .at = rows_of_values };
    fixture                                           f;
    pli_ticket                                        ticket;
    for (int i = 0; i < ROWS; i++) rows.values[i] = 2;
    open_all(&f, "bsp");
    f.log_lost = true;
    ask(&f, 0, PLI_RESTORE, sizeof rows, &rows, &ticket);
    begin_snapshot(&f);
    f.log_lost = false;
    assert_false(pli_ticket_done(&ticket));
    kill_rank(&f, HOME);
    (void)answer(&ticket, 0);
    forget(&f, 0, &ticket);
    assert_true(pull(&f, 0, 3) == 2);
    ask(&f, 0, PLI_PIECE, sizeof rows_of_values, &rows_of_values, &ticket);
    const float *values = answer(&ticket, ROWS * sizeof *values);
    assert_true(values[3] == 2);
    forget(&f, 0, &ticket);
    close_all(&f);
}

/* Changes behind a snapshot do not change its pieces, at the stand-in neither. */
static void test_a_snapshot_outlives_a_copy(void **state) {
    (void)state;
    static const char *const consistency[] = { "bsp", "async" };
    for (int i = 0; i < 2; i++) {
        fixture    f;
        pli_ticket ticket;
        open_all(&f, consistency[i]);
        add_a_clock(&f, 4);
        assert_true(pull(&f, 0, 3) == 4);
        pli_replicas_reach(&f.server[HOME], INT64_MAX, &(pli_out){ 0 }); /* as at the barrier before a snapshot */
        pli_replicas_reach(home_at(&f, OTHER), INT64_MAX, &(pli_out){ 0 });
        begin_snapshot(&f);
        add_a_clock(&f, 8);
        assert_true(pull(&f, 0, 3) == 12);
        kill_rank(&f, HOME);
        ask(&f, 0, PLI_PIECE, sizeof rows_of_values, &rows_of_values, &ticket);
        const float *values = answer(&ticket, ROWS * sizeof *values);
        assert_true(values[3] == 4 && values[4] == 0);
        forget(&f, 0, &ticket);
        add_a_clock(&f, 16);
        assert_true(pull(&f, 1, 3) == 28);
        close_all(&f);
    }
}

static const pli_snap *snap_of(const fixture *f, int32_t rank, int place) {
    const pli_server *server = place == 0 ? &f->server[rank] : f->backups[rank].replica[HOME - FIRST];
    return server->table[0]->snap;
}

static void say_taken(fixture *f) {
    const pli_wire_taken all = { .number = first_snapshot };
    pli_out              out;
    pli_msg             *msg = pli_msg_new(sizeof all);
    memcpy(pli_msg_body(msg), &all, sizeof all);
    pli_out_init(&out);
    assert_int_equal(pli_client_send(&f->client[0], 1, HOME - FIRST, PLI_SNAP, msg, NULL, &out, NULL), PLAIT_OK);
    take_out(f, 0, &out);
    run(f);
}

/* When all pieces have been taken, neither replica keeps anything aside. A worker that is late may ask what the
 * snapshot was, the stand-in too. That makes nothing safer that the worker has said before: the clock that is under
 * way counts once. */
static void test_a_snapshot_that_was_taken_is_kept_nowhere(void **state) {
    (void)state;
    static const char *const consistency[] = { "bsp", "async" };
    for (int i = 0; i < 2; i++) {
        const uint64_t next = first_snapshot + 1;
        fixture        f;
        pli_ticket     ticket;
        open_all(&f, consistency[i]);
        begin_snapshot(&f);
        ask(&f, 0, PLI_PIECE, sizeof rows_of_values, &rows_of_values, &ticket);
        (void)answer(&ticket, ROWS * sizeof(float));
        forget(&f, 0, &ticket);
        assert_true(snap_of(&f, HOME, 0)->left == 0 && snap_of(&f, OTHER, 1)->left > 0);
        end_clock_of(&f, 0, 4);
        run(&f);
        say_taken(&f);
        assert_int_equal(snap_of(&f, OTHER, 1)->left, 0);
        begin_snapshot(&f);
        kill_rank(&f, HOME);
        end_clock_of(&f, 1, 0);
        run(&f);
        for (int32_t k = 0; k < WORKERS; k++) {
            assert_true(pli_client_is_safe(&f.client[k]));
            pli_client_end_clock(&f.client[k]);
        }
        begin_snapshot(&f);
        ask(&f, 1, PLI_SNAP, sizeof next, &next, &ticket);
        (void)answer(&ticket, sizeof(pli_wire_snap));
        forget(&f, 1, &ticket);
        say_taken(&f); /* of one that is over */
        assert_true(snap_of(&f, OTHER, 1)->left > 0);
        assert_true(pull(&f, 0, 3) == 4);
        close_all(&f);
    }
}

/* --- who may be lost ---------------------------------------------------------------------------------------------- */

static void say_bye(fixture *f) {
    pli_ticket ticket[WORKERS];
    for (int32_t k = 0; k < WORKERS; k++) ask(f, k, PLI_BYE, 0, NULL, &ticket[k]);
    for (int32_t k = 0; k < WORKERS; k++) {
        (void)answer(&ticket[k], 0);
        forget(f, k, &ticket[k]);
    }
}

static void test_a_server_without_shards_is_lost(void **state) {
    (void)state;
    fixture f;
    open_all(&f, "bsp");
    add_a_clock(&f, 1);
    f.log_lost = true; /* no new replica is made of what THIRD and OTHER had */
    kill_rank(&f, OTHER);
    f.log_lost = false;
    kill_rank(&f, THIRD); /* both replicas of OTHER's are gone, that had no shards */
    assert_true(pull(&f, 1, 3) == 1);
    add_a_clock(&f, 2);
    assert_true(pull(&f, 1, 3) == 3);
    say_bye(&f);
    close_all(&f);
}

/* After each death but the last, a new replica is made. */
static void test_one_after_the_other_may_die(void **state) {
    (void)state;
    static const char *const consistency[] = { "bsp", "async" };
    for (int i = 0; i < 2; i++) {
        fixture f;
        open_all(&f, consistency[i]);
        add_a_clock(&f, 1);
        kill_rank(&f, HOME);
        assert_true(home_at(&f, OTHER)->replicas->serves && home_at(&f, THIRD)->replicas->whole);
        add_a_clock(&f, 2);
        assert_true(pull(&f, 1, 3) == 3);
        add_a_clock(&f, 4);
        kill_rank(&f, OTHER);
        assert_true(home_at(&f, THIRD)->replicas->serves);
        assert_true(pull(&f, 1, 3) == 7);
        add_a_clock(&f, 8);
        assert_true(pull(&f, 0, 3) == 15);
        say_bye(&f);
        close_all(&f);
    }
}

/* A new replica lacks snapshots that were begun before it was made, and says so. */
static void test_a_new_copy_has_no_older_snapshot(void **state) {
    (void)state;
    fixture    f;
    pli_ticket ticket;
    open_all(&f, "async");
    add_a_clock(&f, 1);
    begin_snapshot(&f);
    kill_rank(&f, HOME);
    add_a_clock(&f, 2);
    kill_rank(&f, OTHER);
    ask(&f, 0, PLI_SNAP, sizeof first_snapshot, &first_snapshot, &ticket);
    assert_true(pli_ticket_done(&ticket) && ticket.failure.code == PLAIT_EPEER);
    forget(&f, 0, &ticket);
    ask(&f, 0, PLI_PIECE, sizeof rows_of_values, &rows_of_values, &ticket);
    assert_true(pli_ticket_done(&ticket) && ticket.failure.code == PLAIT_EPEER);
    assert_non_null(strstr(ticket.failure.text, "died"));
    forget(&f, 0, &ticket);
    close_all(&f);
}

/* Updates that were under way when the other replica died are safe only when the new one has them. */
static void test_nothing_is_safe_before_the_new_copy_is_whole(void **state) {
    (void)state;
    fixture f;
    open_all(&f, "bsp");
    add_a_clock(&f, 1);
    f.log_lost = true;
    for (int32_t k = 0; k < WORKERS; k++) end_clock_of(&f, k, k == 0 ? 2 : 0);
    run(&f);
    kill_rank(&f, OTHER);
    assert_true(!pli_client_is_safe(&f.client[0]) && !pli_client_is_safe(&f.client[1]));
    f.log_lost = false;
    kill_rank(&f, THIRD); /* THIRD was to have the new replica: there is none any more */
    assert_true(pli_client_is_safe(&f.client[0]) && pli_client_is_safe(&f.client[1]));
    for (int32_t k = 0; k < WORKERS; k++) pli_client_end_clock(&f.client[k]);
    assert_true(pull(&f, 1, 3) == 3);
    close_all(&f);
}

static void test_the_last_copy_is_missed(void **state) {
    (void)state;
    fixture f;
    open_all(&f, "bsp");
    f.log_lost = true;
    kill_rank(&f, OTHER);
    f.log_lost = false;
    kill_rank(&f, HOME); /* while THIRD was to get a replica */
    pli_ticket          ticket;
    const pli_wire_pull wire = { .first = 3, .n = 1 };
    ask(&f, 0, PLI_PULL, sizeof wire, &wire, &ticket);
    assert_non_null(strstr(f.failed.text, "which held the last replica of shards"));
    forget(&f, 0, &ticket);
    f.failed = (plait_error){ 0 };
    close_all(&f);
}

/* A rank that only serves dies between its answers to the workers' good-byes. The replica that is left knows that all
 * have said good-bye. */
static void test_a_good_bye_is_answered_by_who_is_left(void **state) {
    (void)state;
    fixture    f;
    pli_ticket ticket[WORKERS];
    open_all(&f, "bsp");
    add_a_clock(&f, 1);
    ask(&f, 1, PLI_BYE, 0, NULL, &ticket[1]);
    f.lost = PLI_REPLY; /* to worker 0 */
    ask(&f, 0, PLI_BYE, 0, NULL, &ticket[0]);
    f.lost = 0;
    (void)answer(&ticket[1], 0);
    forget(&f, 1, &ticket[1]);
    assert_false(pli_ticket_done(&ticket[0]));
    kill_rank(&f, HOME);
    (void)answer(&ticket[0], 0);
    forget(&f, 0, &ticket[0]);
    close_all(&f);
}

/* The same while a replica is being made on a rank that then ends in good order. */
static void test_a_good_bye_while_a_copy_is_made(void **state) {
    (void)state;
    fixture    f;
    pli_ticket ticket[WORKERS];
    open_all(&f, "bsp");
    add_a_clock(&f, 1);
    f.log_lost = true;
    kill_rank(&f, HOME);
    for (int32_t k = 0; k < WORKERS; k++) ask(&f, k, PLI_BYE, 0, NULL, &ticket[k]);
    assert_false(pli_ticket_done(&ticket[0]) || pli_ticket_done(&ticket[1]));
    tell(&f, PLI_MEMBER_LEFT, THIRD);
    for (int32_t k = 0; k < WORKERS; k++) {
        (void)answer(&ticket[k], 0);
        forget(&f, k, &ticket[k]);
    }
    close_all(&f);
}

/* Both workers have ended clock 0, with 1 for row 3. Worker 1 has died, and its server has prepared the clock. */
static void die_in_a_prepared_clock(fixture *f) {
    open_all(f, "bsp");
    for (int32_t k = 0; k < WORKERS; k++) end_clock_of(f, k, 1);
    run(f);
    f->dead[1] = true;
    tell(f, PLI_MEMBER_DIED, 1);
    assert_true(pli_client_must_stand_in(&f->client[0])); /* as one to whom SAFE came a moment later */
}

/* Worker 0 stands in for worker 1, with 1 for each of these rows. */
static void stand_in(fixture *f, int64_t n, const uint64_t *rows) {
    static const float ones[] = { 1, 1 };
    pli_out            out;
    pli_client_begin_standing_in(&f->client[0], NULL);
    pli_out_init(&out);
    if (n > 0) assert_int_equal(pli_pending_add(&f->table[0]->pending, n, rows, ones, 0, NULL), PLAIT_OK);
    assert_int_equal(pli_client_build_push(&f->client[0], NULL, PLI_PUSH, NULL), PLAIT_OK);
    assert_int_equal(pli_client_send_view(&f->client[0], 1, &out, NULL), PLAIT_OK);
    take_out(f, 0, &out);
    run(f);
}

/* Workers stood in for a dead one in a clock that is over. The log says so only with the next SUM, so the replica that
 * serves from then on is told once more. */
static void test_who_stood_in_says_so_to_the_next(void **state) {
    (void)state;
    fixture    f;
    pli_ticket ticket;
    die_in_a_prepared_clock(&f);
    stand_in(&f, 1, (uint64_t[]){ 3 }); /* another server lacks the dead one's part */
    assert_true(pli_client_is_safe(&f.client[0]));
    pli_client_end_clock(&f.client[0]);
    ask(&f, 0, PLI_SNAP, sizeof first_snapshot, &first_snapshot, &ticket); /* is in the log behind it */
    forget(&f, 0, &ticket);
    kill_rank(&f, HOME);
    end_clock_of(&f, 0, 2);
    run(&f);
    assert_true(pli_client_is_safe(&f.client[0]));
    pli_client_end_clock(&f.client[0]);
    assert_true(pull(&f, 0, 3) == 4);
    close_all(&f);
}

/* This shard counts what the dead worker had pushed to row 3; others may count what stands in for it. Both must be the
 * same. */
static void test_who_stands_in_pushes_the_same_rows(void **state) {
    (void)state;
    const struct {
        int64_t  n;
        uint64_t rows[2];
        bool     same;
    } tries[] = { { 1, { 3 }, true }, { 0, { 0 }, false }, { 1, { 4 }, false }, { 2, { 3, 4 }, false },
                  { 2, { 2, 3 }, false } };
    for (size_t t = 0; t < 2 * sizeof tries / sizeof *tries; t++) {
        const size_t i = t / 2;
        fixture      f;
        by_key = t % 2;
        die_in_a_prepared_clock(&f);
        stand_in(&f, tries[i].n, tries[i].rows);
        /* Ranges are not compared: a range spans rows that no item touched. */
        const bool passes = tries[i].same || !by_key;
        assert_int_equal(f.failed.code, passes ? PLAIT_OK : PLAIT_EMISMATCH);
        if (!passes) assert_non_null(strstr(f.failed.text, "table w, clock 0: the workers that stood in for rank 1"));
        f.failed = (plait_error){ 0 };
        close_all(&f);
    }
    by_key = 0;
}

/* A worker that has left repeats what it had redone in a clock that was prepared long ago. */
static void test_who_has_left_repeats_what_counts_no_more(void **state) {
    (void)state;
    fixture        f;
    die_in_a_prepared_clock(&f);
    stand_in(&f, 1, (uint64_t[]){ 3 });
    pli_client_end_clock(&f.client[0]);
    tell(&f, PLI_MEMBER_LEFT, 0);
    kill_rank(&f, HOME);
    assert_string_equal(f.failed.text, "");
    assert_true(home_at(&f, OTHER)->replicas->serves && pull(&f, 0, 3) == 2);
    close_all(&f);
}

/* --- the end of a job --------------------------------------------------------------------------------------------- */

/* The replica sends again what nobody has acknowledged. What is still left to be sent again after that? */
static bool still_sends(fixture *f, int32_t rank, int place, uint64_t now_ns) {
    pli_out out;
    pli_out_init(&out);
    pli_server_ops.on_wakeup(place == 0 ? &f->server[rank] : home_at(f, rank), now_ns, &out);
    assert_true(out.keeps == (out.first != NULL));
    take_out(f, rank, &out);
    run(f);
    pli_out_init(&out);
    pli_server_ops.on_wakeup(place == 0 ? &f->server[rank] : home_at(f, rank), now_ns, &out);
    return out.keeps;
}

static void wake_client(fixture *f, int32_t k, uint64_t now_ns) {
    pli_out out;
    pli_out_init(&out);
    pli_client_ops.on_wakeup(&f->client[k], now_ns, &out);
    take_out(f, k, &out);
    run(f);
}

/* The end of a clock is logged. Before it is confirmed, the job is over at the other replica, which tells the worker
 * nothing any more. The worker sends the end again, and who serves tells it. */
static void test_an_entry_that_comes_after_the_end_is_confirmed(void **state) {
    (void)state;
    fixture f;
    open_all(&f, "async");
    f.server[HOME].replicas->tx.resend_after_ns = 10;
    f.client[0].layout.resend_after_ns = f.client[0].link[HOME - FIRST].tx.resend_after_ns = 10;
    f.log_lost = true;
    end_clock_of(&f, 0, 1);
    run(&f);
    assert_false(pli_client_is_safe(&f.client[0]));
    f.log_lost = false;
    f.over[OTHER] = true;
    assert_false(still_sends(&f, HOME, 0, 1000));
    wake_client(&f, 0, 1000);
    assert_true(pli_client_is_safe(&f.client[0]));
    close_all(&f);
}

/* A worker's job is over, but the stand-in has not heard that the worker got its answer. */
static void test_an_answer_that_comes_after_the_end_is_acknowledged_to_the_stand_in(void **state) {
    (void)state;
    fixture    f;
    pli_ticket ticket[WORKERS];
    open_all(&f, "async");
    home_at(&f, OTHER)->layout.resend_after_ns = 10;
    kill_rank(&f, HOME);
    f.lost = PLI_REPLY;
    for (int32_t k = 0; k < WORKERS; k++) ask(&f, k, PLI_BYE, 0, NULL, &ticket[k]);
    for (int32_t k = 0; k < WORKERS; k++) {
        forget(&f, k, &ticket[k]);
        f.over[k] = true;
    }
    assert_false(still_sends(&f, OTHER, 1, 1000));
    close_all(&f);
}

/* --- what is refused ---------------------------------------------------------------------------------------------- */

/* A table that applies its updates otherwise than the other tables goes into the log. One without exact sums is
 * refused, and does not. */
static void test_a_refused_table_is_not_there(void **state) {
    (void)state;
    static const char *const consistency[][2] = { { "bsp", "async" }, { "ssp:1", "bsp" } };
    for (int i = 0; i < 2; i++) {
        fixture    f;
        pli_ticket ticket;
        open_all(&f, consistency[i][0]);
        pli_spec other = make_spec(&f, 1, consistency[i][1]), wrong = make_spec(&f, 2, "async");
        wrong.exact = true;
        create(&f, &other, &ticket);
        assert_true(pli_ticket_done(&ticket) && ticket.failure.code == 0);
        forget(&f, 0, &ticket);
        create(&f, &wrong, &ticket);
        assert_true(pli_ticket_done(&ticket) && ticket.failure.code == PLAIT_EFORMAT);
        assert_non_null(strstr(ticket.failure.text, "exact sums"));
        forget(&f, 0, &ticket);
        assert_true(f.server[HOME].tables == 2 && home_at(&f, OTHER)->tables == 2);
        add_a_clock(&f, 1);
        kill_rank(&f, HOME);
        add_a_clock(&f, 2);
        assert_true(pull(&f, 0, 3) == 3);
        close_all(&f);
    }
}

/* Two ranks die before the log has a push: the worker that pushed, and the replica that serves. By then nobody has
 * read the push. What the log has by then may have been read. */
static void test_nobody_reads_what_a_death_may_take_back(void **state) {
    static const char *const consistency[] = { "async", "ssp:1", "essp:1" };
    const pli_wire_pull      some = { .first = 3, .n = 1 };
    (void)state;
    for (int i = 0; i < 6; i++) {
        fixture    f;
        pli_ticket ticket;
        float      value;
        open_all(&f, consistency[i / 2]);
        f.log_lost = i % 2 == 0;
        end_clock_of(&f, 1, 4);
        run(&f);
        ask(&f, 0, PLI_PULL, sizeof some, &some, &ticket);
        assert_int_equal(pli_ticket_done(&ticket), !f.log_lost);
        f.dead[1] = f.dead[HOME] = true;
        f.log_lost = false;
        tell(&f, PLI_MEMBER_DIED, 1);
        tell(&f, PLI_MEMBER_DIED, HOME);
        memcpy(&value, answer(&ticket, sizeof value), sizeof value);
        forget(&f, 0, &ticket);
        assert_true(value == (i % 2 == 0 ? 0 : 4));
        assert_true(pull(&f, 0, 3) == value);
        close_all(&f);
    }
}

/* A worker need not wait until who serves has heard that the other replica has its clock. Then who serves dies. */
static void test_the_other_replica_tells_what_is_safe(void **state) {
    static const char *const consistency[] = { "bsp", "ssp:1", "async" };
    (void)state;
    for (int i = 0; i < 3; i++) {
        fixture f;
        open_all(&f, consistency[i]);
        f.unconfirmed = true;
        add_a_clock(&f, 4);
        f.unconfirmed = false;
        kill_rank(&f, HOME);
        add_a_clock(&f, 1);
        assert_true(pull(&f, 0, 3) == 5);
        close_all(&f);
    }
}

/* What the other replica has told one worker is lost with it, confirmed or not: who serves tells it. */
static void test_what_the_other_replica_told_is_told_again(void **state) {
    static const char *const consistency[] = { "bsp", "ssp:1" };
    (void)state;
    for (int i = 0; i < 4; i++) {
        fixture f;
        open_all(&f, consistency[i / 2]);
        f.unconfirmed = i % 2 == 0;
        f.lost = PLI_SAFE;
        for (int32_t k = 0; k < WORKERS; k++) end_clock_of(&f, k, 4);
        run(&f);
        assert_true(!pli_client_is_safe(&f.client[0]) && pli_client_is_safe(&f.client[1]));
        f.unconfirmed = false;
        f.lost = 0;
        kill_rank(&f, OTHER);
        for (int32_t k = 0; k < WORKERS; k++) {
            assert_true(pli_client_is_safe(&f.client[k]));
            pli_client_end_clock(&f.client[k]);
        }
        kill_rank(&f, HOME);
        assert_true(pull(&f, 0, 3) == 8);
        close_all(&f);
    }
}

/* Reads all rows, and returns row 3 of it. */
static float read_all(fixture *f, int32_t k) {
    float       values[ROWS];
    pli_ask     get;
    pli_out     out;
    plait_error why = { 0 };
    pli_out_init(&out);
    assert_int_equal(pli_ask_range(&f->client[k], 1, f->table[k], 0, ROWS, values, &get, &out, &why), PLAIT_OK);
    take_out(f, k, &out);
    run(f);
    assert_true(pli_ticket_done(&get.ticket));
    pli_ticket_unlink(&f->client[k], &get.ticket);
    assert_int_equal(pli_ask_finish(&f->client[k], &get, &why), PLAIT_OK);
    pli_ask_abandon(&get);
    return values[3];
}

/* Who has read a small table as a whole gets its next values with the word that the clock is safe, once it is; and not
 * those of a clock that has not ended. */
static void test_values_come_with_the_end_of_a_clock(void **state) {
    (void)state;
    fixture f;
    open_all(&f, "bsp");
    for (int32_t k = 0; k < WORKERS; k++) assert_true(read_all(&f, k) == 0);
    assert_int_equal(f.pulls, WORKERS);
    add_a_clock(&f, 4);
    for (int32_t k = 0; k < WORKERS; k++) assert_true(read_all(&f, k) == 4);
    add_a_clock(&f, 0);
    for (int32_t k = 0; k < WORKERS; k++) assert_true(read_all(&f, k) == 4);
    assert_int_equal(f.pulls, WORKERS); /* of the first clock */
    add_a_clock(&f, 1);
    add_a_clock(&f, 1); /* nobody has read the one before */
    assert_true(read_all(&f, 0) == 6);
    assert_int_equal(f.pulls, WORKERS + 1);
    for (int32_t k = 0; k < WORKERS; k++) end_clock_of(&f, k, 1);
    run(&f);
    assert_true(f.table[0]->shard[0].fresh[0] != NULL && f.table[1]->shard[0].fresh[0] == NULL);
    assert_true(pull(&f, 0, 3) == 6); /* as one who stands in */
    for (int32_t k = 0; k < WORKERS; k++) pli_client_end_clock(&f.client[k]);
    assert_true(read_all(&f, 0) == 8);
    close_all(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_reads_what_a_death_may_take_back),
        cmocka_unit_test(test_requests_are_answered_again),
        cmocka_unit_test(test_what_was_answered_and_is_not_logged_is_said_again),
        cmocka_unit_test(test_a_snapshot_outlives_a_copy),
        cmocka_unit_test(test_a_snapshot_that_was_taken_is_kept_nowhere),
        cmocka_unit_test(test_a_server_without_shards_is_lost),
        cmocka_unit_test(test_one_after_the_other_may_die),
        cmocka_unit_test(test_a_new_copy_has_no_older_snapshot),
        cmocka_unit_test(test_nothing_is_safe_before_the_new_copy_is_whole),
        cmocka_unit_test(test_the_last_copy_is_missed),
        cmocka_unit_test(test_a_good_bye_is_answered_by_who_is_left),
        cmocka_unit_test(test_a_good_bye_while_a_copy_is_made),
        cmocka_unit_test(test_who_stood_in_says_so_to_the_next),
        cmocka_unit_test(test_who_stands_in_pushes_the_same_rows),
        cmocka_unit_test(test_who_has_left_repeats_what_counts_no_more),
        cmocka_unit_test(test_an_entry_that_comes_after_the_end_is_confirmed),
        cmocka_unit_test(test_an_answer_that_comes_after_the_end_is_acknowledged_to_the_stand_in),
        cmocka_unit_test(test_a_refused_table_is_not_there),
        cmocka_unit_test(test_the_other_replica_tells_what_is_safe),
        cmocka_unit_test(test_what_the_other_replica_told_is_told_again),
        cmocka_unit_test(test_values_come_with_the_end_of_a_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
