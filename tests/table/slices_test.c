/* A new replica is made slice by slice while everything goes on that may change rows: pushes and ends of clocks, rows
 * put back, tables zeroed, snapshots begun, at any moment between the slices; the new replica may die on the way, and
 * another begins. In the end it has, of each table, the rows, keys, rule's state and penalties of the one that made it,
 * bit by bit, in the same order. What it needs on the way stays bounded.
 *
 * Bare machines: the replica that serves at place 0, the new one, and between them a queue that keeps the order; what
 * comes next is drawn from a seed. PLAIT_SEED=seed replays one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "table/copies/replicas.h"
#include "table/state/snap.h"
#include "table/state/values.h"

enum { WORKERS = 2, SERVERS = 5, FIRST = WORKERS, ROWS = 60, COLS = 2, TABLES_MAX = 2, SEEDS = 400, KEYS = 12 };

typedef struct world {
    uint64_t   seed;
    pli_random random;
    pli_layout layout;
    pli_spec   spec[TABLES_MAX];
    int32_t    tables;
    int32_t    number; /* of the server whose shards these are */
    pli_server serves, made;
    int32_t    place; /* of the new replica */
    bool       has_made, clocks;
    pli_msg   *to, **to_last;     /* on its way to the new replica */
    pli_msg   *back, **back_last; /* and to the one that serves   */
    uint64_t   seq[WORKERS], clock_seq[WORKERS];
    int64_t    clock[WORKERS];
    int64_t    zeros, snapshots;
    bool       snapped_whole; /* the last snapshot was begun when the new replica was whole, as the log has it */
    int64_t    slices, most;  /* slices that were sent; most of them that were on their way at once */
} world;

static uint64_t pick(world *w, uint64_t below) { return pli_random_below(&w->random, below); }

#define SURE(w, what)                                                                                                  \
    do {                                                                                                               \
        if (!(what)) fail_msg("PLAIT_SEED=%llu: %s", (unsigned long long)(w)->seed, #what);                            \
    } while (0)

/* --- the network -------------------------------------------------------------------------------------------------- */

static void take_out(world *w, pli_out *out, int32_t from) {
    if (out->error.code < 0) fail_msg("PLAIT_SEED=%llu: %s", (unsigned long long)w->seed, out->error.text);
    int64_t slices = 0;
    for (pli_msg *msg = out->first, *next; msg != NULL; msg = next) {
        next = msg->next;
        msg->next = NULL;
        msg->head.src = from;
        if (!(msg->head.flags & PLI_FLAG_LOG)) {
            pli_msg_free(&msg); /* to a worker */
        } else if (msg->head.kind == PLI_LOGGED) {
            *w->back_last = msg;
            w->back_last = &msg->next;
        } else {
            SURE(w, msg->head.kind != PLI_CREATE || w->place == 1 || msg->head.body_bytes < 1 << 10);
            w->slices += msg->head.kind == PLI_SLICE;
            *w->to_last = msg;
            w->to_last = &msg->next;
        }
    }
    for (const pli_msg *msg = w->to; msg != NULL; msg = msg->next) slices += msg->head.kind == PLI_SLICE;
    if (slices > w->most) w->most = slices;
    pli_out_init(out);
}

static pli_msg *pop(pli_msg **first, pli_msg ***last) {
    pli_msg *msg = *first;
    if (msg == NULL) return NULL;
    *first = msg->next;
    if (*first == NULL) *last = first;
    msg->next = NULL;
    return msg;
}

static bool deliver(world *w) {
    pli_out  out;
    pli_msg *msg = pop(&w->to, &w->to_last);
    if (msg == NULL) return false;
    pli_out_init(&out);
    pli_server_ops.on_message(&w->made, 1, msg, &out);
    take_out(w, &out, w->made.rank);
    return true;
}

static bool confirm(world *w) {
    pli_out  out;
    pli_msg *msg = pop(&w->back, &w->back_last);
    if (msg == NULL) return false;
    pli_out_init(&out);
    pli_server_ops.on_message(&w->serves, 1, msg, &out);
    take_out(w, &out, w->serves.rank);
    return true;
}

static void close_made(world *w) {
    if (w->has_made) pli_server_close(&w->made);
    w->has_made = false;
    pli_msg_free_list(&w->to);
    pli_msg_free_list(&w->back);
    w->to_last = &w->to;
    w->back_last = &w->back;
}

/* The other replica's rank dies; the next one begins. */
static void kill_other(world *w) {
    const pli_member_event event = { .kind = PLI_MEMBER_DIED, .epoch = 2, .why = { .text = "killed" },
                                     .rank = pli_replica_rank(&w->layout, w->number, w->place) };
    pli_out                out;
    close_made(w);
    w->place++;
    SURE(w, pli_server_open_replica(&w->made, &w->layout, w->number, w->place, 1, 1, NULL) == PLAIT_OK);
    w->has_made = true;
    w->most = 0;
    w->snapped_whole = false;
    pli_out_init(&out);
    pli_server_ops.on_member(&w->serves, 1, &event, &out);
    SURE(w, w->serves.replicas->to_place == w->place);
    take_out(w, &out, w->serves.rank);
}

/* --- workers ------------------------------------------------------------------------------------------------------ */

static pli_msg *message(world *w, int32_t k, pli_kind kind, size_t bytes) {
    pli_msg *msg = pli_msg_new(bytes);
    if (bytes > 0) memset(pli_msg_body(msg), 0, bytes);
    msg->head.kind = (uint16_t)kind;
    msg->head.src = k;
    msg->head.clock = w->clock[k];
    msg->head.incarnation = 1;
    msg->head.seq = ++w->seq[k];
    return msg;
}

static void say(world *w, pli_msg *msg) {
    pli_out out;
    pli_out_init(&out);
    pli_server_ops.on_message(&w->serves, 1, msg, &out);
    take_out(w, &out, w->serves.rank);
}

/* Some of all keys, increasing. Returns how many. */
static int64_t draw_keys(world *w, const pli_spec *spec, uint64_t keys[KEYS]) {
    const uint64_t below = spec->rows > 0 ? ROWS : ROWS * SERVERS; /* a sparse table's lie on all servers */
    int64_t        n = 0;
    for (uint64_t key = pick(w, below / 4); n < KEYS && key < below; key += 1 + pick(w, below / 8))
        if (pli_placement_rank(&spec->placement, pli_placement_shard_of(&spec->placement, key)) == w->serves.home)
            keys[n++] = key;
    return n;
}

static float draw_value(world *w) { return (float)pick(w, 1000) / 64 - 7; }

/* A PUSH or CLOCK with a part for each of the tables `which`. */
static pli_msg *push_message(world *w, int32_t k, pli_kind kind, uint32_t which) {
    const size_t most = TABLES_MAX * (sizeof(pli_wire_part) + KEYS * 8 + ROWS * COLS * 4 + 16);
    pli_msg     *msg = message(w, k, kind, most);
    uint32_t     n = 0;
    for (int32_t t = 0; t < w->tables; t++) n += which >> t & 1;
    uint64_t at = n * sizeof(pli_wire_part);
    msg->head.arg32 = n;
    n = 0;
    for (int32_t t = 0; t < w->tables; t++) {
        const pli_spec *spec = &w->spec[t];
        pli_wire_part   part = { .table = (uint32_t)t, .examples = 1 + (int64_t)pick(w, 3), .keys_at = at };
        uint64_t        keys[KEYS];
        if (!(which >> t & 1)) continue;
        if (spec->keyed) {
            part.flags = PLI_PART_KEYED;
            part.first = -1;
            part.n = draw_keys(w, spec, keys);
            memcpy(pli_at(pli_msg_body(msg), (int64_t)at), keys, (size_t)part.n * 8);
            at += (uint64_t)part.n * 8;
        } else {
            part.first = (int64_t)pick(w, ROWS);
            part.n = 1 + (int64_t)pick(w, (uint64_t)(ROWS - part.first));
        }
        part.values_at = at;
        float *values = pli_at(pli_msg_body(msg), (int64_t)at);
        for (int64_t i = 0; i < part.n * COLS; i++) values[i] = draw_value(w);
        at += pli_pad8((uint64_t)part.n * COLS * 4);
        memcpy(pli_at(pli_msg_body(msg), (int64_t)(n++ * sizeof part)), &part, sizeof part);
    }
    return msg;
}

/* A worker whose clock is not safe sends nothing. */
static bool may_go_on(const world *w, int32_t k) { return w->serves.replicas->safe[k] >= w->clock_seq[k]; }

static void end_clock(world *w, int32_t k) {
    if (!may_go_on(w, k)) return;
    pli_msg *msg = push_message(w, k, PLI_CLOCK, (uint32_t)pick(w, UINT64_C(1) << w->tables));
    w->clock_seq[k] = msg->head.seq;
    w->clock[k]++;
    say(w, msg);
}

static void push_early(world *w, int32_t k) { /* to tables that apply at once */
    uint32_t which = 0;
    for (int32_t t = 0; t < w->tables; t++) which |= (uint32_t)!w->serves.table[t]->at_clock << t;
    if (which != 0 && may_go_on(w, k)) say(w, push_message(w, k, PLI_PUSH, which));
}

static void put_back(world *w, int32_t k) {
    const int32_t   t = (int32_t)pick(w, (uint64_t)w->tables);
    const pli_spec *spec = &w->spec[t];
    const int32_t   slots = spec->ruled ? spec->rule.ops->slots : 0;
    pli_wire_state  state = { .table = (uint32_t)t, .array = (uint32_t)pick(w, (uint64_t)slots + 1) };
    uint64_t        keys[KEYS];
    if (!may_go_on(w, k)) return;
    if (spec->rows == 0) {
        state.n = draw_keys(w, spec, keys);
    } else {
        state.first = (int64_t)pick(w, ROWS);
        state.n = 1 + (int64_t)pick(w, (uint64_t)(ROWS - state.first));
    }
    const size_t key_bytes = spec->rows == 0 ? (size_t)state.n * 8 : 0;
    pli_msg     *msg = message(w, k, PLI_RESTORE, sizeof state + key_bytes + (size_t)state.n * COLS * 4);
    float       *values = pli_at(pli_msg_body(msg), (int64_t)(sizeof state + key_bytes));
    memcpy(pli_msg_body(msg), &state, sizeof state);
    memcpy(pli_at(pli_msg_body(msg), sizeof state), keys, key_bytes);
    for (int64_t i = 0; i < state.n * COLS; i++) values[i] = draw_value(w) + 8; /* a rule's state is not negative */
    say(w, msg);
}

/* Perhaps the last zeroing once more, as another worker asks for it when the one that did has died. */
static void zero(world *w, int32_t k) {
    if (!may_go_on(w, k)) return;
    w->zeros += pick(w, 3) != 0;
    const pli_wire_state state = { .table = (uint32_t)pick(w, (uint64_t)w->tables), .array = PLI_STATE_ZERO,
                                   .first = w->zeros };
    pli_msg *msg = message(w, k, PLI_RESTORE, sizeof state);
    memcpy(pli_msg_body(msg), &state, sizeof state);
    say(w, msg);
}

static void begin_snapshot(world *w, int32_t k) {
    if (!may_go_on(w, k)) return;
    const uint64_t number = (uint64_t)++w->snapshots;
    pli_msg *msg = message(w, k, PLI_SNAP, sizeof number);
    memcpy(pli_msg_body(msg), &number, sizeof number);
    w->snapped_whole = !w->serves.replicas->making;
    say(w, msg);
}

/* --- a schedule --------------------------------------------------------------------------------------------------- */

static void make_table(world *w, int32_t t, const char *consistency) {
    plait_table_opts opts;
    char             name[4] = { 't', (char)('0' + t), 0 };
    float            penalty[ROWS * COLS], initial[ROWS * COLS];
    const uint64_t   shape = pick(w, 3), rule = pick(w, 4);
    plait_table_opts_init(&opts);
    opts.name = name;
    opts.cols = COLS;
    opts.rows = shape == 2 ? 0 : ROWS;
    opts.keyed = shape == 1;
    opts.rule.name = (const char *[]){ NULL, "sgd", "adagrad", "adam" }[rule];
    if (rule > 0 && pick(w, 2) == 0) opts.rule.l2 = 0.125;
    const bool penalised = rule > 0 && shape < 2 && pick(w, 2) == 0, begins = shape < 2 && pick(w, 2) == 0;
    SURE(w, pli_spec_make(t, &opts, "ps", consistency, 4, NULL, &w->spec[t], NULL) == PLAIT_OK);
    w->spec[t].placement = pli_placement_make(w->spec[t].rows, COLS * 4, 0, SERVERS, FIRST);
    for (int i = 0; i < ROWS * COLS; i++) penalty[i] = (float)pick(w, 3), initial[i] = draw_value(w);
    const size_t    bytes = sizeof penalty;
    pli_wire_create create = { .job_hash = 5, .spec_hash = 9, .initial_bytes = begins ? bytes : 0,
                               .penalty_bytes = penalised ? bytes : 0 };
    pli_spec_encode(&w->spec[t], &create.spec);
    pli_msg *msg = message(w, 0, PLI_CREATE, sizeof create + (begins + penalised) * bytes);
    memcpy(pli_msg_body(msg), &create, sizeof create);
    if (begins) memcpy(pli_at(pli_msg_body(msg), sizeof create), initial, bytes);
    if (penalised) memcpy(pli_at(pli_msg_body(msg), (int64_t)(sizeof create + begins * bytes)), penalty, bytes);
    say(w, msg);
    SURE(w, w->serves.table[t] != NULL);
}

static void open_world(world *w, uint64_t seed) {
    memset(w, 0, sizeof *w);
    w->seed = seed;
    w->random = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 11, 0);
    w->to_last = &w->to;
    w->back_last = &w->back;
    w->layout = (pli_layout){ .workers = WORKERS, .servers = SERVERS, .first_server = FIRST, .job_hash = 5,
                              .replicas = 2 };
    pli_slice_bytes = (int64_t[]){ 1, 50, 120, 400, 1 << 20 }[pick(w, 5)];
    w->tables = 1 + (int32_t)pick(w, TABLES_MAX);
    const pli_placement dense = pli_placement_make(ROWS, COLS * 4, 0, SERVERS, FIRST);
    const uint64_t      policies = pick(w, 3); /* 2: of both kinds */
    w->number = pli_placement_rank(&dense, 0) - FIRST;
    w->place = 1;
    SURE(w, pli_server_open_replica(&w->serves, &w->layout, w->number, 0, 1, 1, NULL) == PLAIT_OK);
    SURE(w, pli_server_open_replica(&w->made, &w->layout, w->number, 1, 1, 1, NULL) == PLAIT_OK);
    w->has_made = w->snapped_whole = true;
    for (int32_t t = 0; t < w->tables; t++)
        make_table(w, t, policies == 0 || (policies == 2 && t == 0) ? "bsp" : "async");
    w->clocks = pli_server_has_clocks(&w->serves);
}

static void close_world(world *w) {
    close_made(w);
    pli_server_close(&w->serves);
    pli_slice_bytes = 1 << 20;
}

static void act(world *w) {
    const int32_t k = (int32_t)pick(w, WORKERS);
    switch (pick(w, 16)) {
    case 0:
    case 1:
    case 2:
    case 3: end_clock(w, k); break;
    case 4:
    case 5:
    case 6: push_early(w, k); break;
    case 7: put_back(w, k); break;
    case 8:
        if (pick(w, 4) == 0) zero(w, k);
        break;
    case 9:
        if (pick(w, 4) == 0) begin_snapshot(w, k);
        break;
    case 10:
        if (pick(w, 12) == 0 && w->place + 1 < pli_replica_places(&w->layout)) kill_other(w);
        break;
    case 11:
    case 12: (void)confirm(w); break;
    default: (void)deliver(w);
    }
}

/* --- the verdict -------------------------------------------------------------------------------------------------- */

static void compare(world *w, const pli_store *a, const pli_store *b) {
    const pli_spec *spec = a->spec;
    SURE(w, !pli_store_lacks_rows(b) && a->rows == b->rows && a->units == b->units);
    SURE(w, (a->penalty == NULL) == (b->penalty == NULL));
    for (int32_t array = PLI_STATE_VALUES; array < PLI_STATE_KEYS; array++) {
        const size_t   bytes = (size_t)(a->rows * pli_state_row_bytes(spec, array));
        unsigned char *x = malloc(bytes + 1), *y = malloc(bytes + 1);
        if (bytes > 0) pli_snap_copy(a, array, 0, a->rows, x), pli_snap_copy(b, array, 0, b->rows, y);
        SURE(w, memcmp(x, y, bytes) == 0);
        free(x);
        free(y);
    }
    if (a->penalty != NULL) SURE(w, memcmp(a->penalty, b->penalty, (size_t)(a->rows * pli_row_bytes(spec))) == 0);
    uint64_t *of_a = malloc((size_t)a->rows * 8 + 8), *of_b = malloc((size_t)a->rows * 8 + 8);
    if (spec->rows == 0) pli_keymap_keys(&a->map, of_a), pli_keymap_keys(&b->map, of_b);
    SURE(w, spec->rows > 0 || memcmp(of_a, of_b, (size_t)a->rows * 8) == 0);
    free(of_a);
    free(of_b);
}

/* Both replicas know the same of the prepared clock, and apply it. */
static void settle(world *w) {
    pli_out out;
    while (deliver(w) || confirm(w)) continue;
    pli_out_init(&out);
    SURE(w, pli_replicas_reach(&w->serves, INT64_MAX, &out) && pli_replicas_reach(&w->made, INT64_MAX, &out));
    SURE(w, !w->clocks || w->serves.applied == w->made.applied);
}

static void check(world *w) {
    SURE(w, w->made.replicas->whole && !w->serves.replicas->making);
    SURE(w, w->most <= 5); /* four at first, or some more small ones; then one */
    for (int32_t t = 0; t < w->tables; t++) {
        const pli_server_table *a = w->serves.table[t], *b = w->made.table[t];
        SURE(w, a->state == b->state && a->zeros == b->zeros && a->zeros <= w->zeros);
        compare(w, &a->shard.store, &b->shard.store);
        SURE(w, w->snapshots == 0 || (b->snap != NULL) == w->snapped_whole);
        if (b->snap != NULL) SURE(w, a->snap != NULL && b->snap->rows == a->snap->rows);
    }
}

static void test_all_that_changes_rows_comes_between(void **state) {
    (void)state;
    const char *seed = getenv("PLAIT_SEED");
    int64_t     between = 0;
    for (uint64_t i = 1; i <= SEEDS; i++) {
        static world w;
        if (seed != NULL) i = strtoull(seed, NULL, 10);
        open_world(&w, i);
        for (uint64_t n = pick(&w, 100); n > 0; n--) act(&w);
        if (w.place == 1) kill_other(&w);
        for (uint64_t n = 20 + pick(&w, 200); n > 0; n--) {
            const bool making = w.serves.replicas->making;
            act(&w);
            between += making;
        }
        settle(&w);
        check(&w);
        close_world(&w);
        if (seed != NULL) return;
    }
    assert_true(between > 10 * SEEDS); /* what was drawn happened while slices were under way */
}

/* --- moments ------------------------------------------------------------------------------------------------------ */

/* A world of that seed in which a new replica has begun and lacks rows. */
static void open_between(world *w, uint64_t seed) {
    open_world(w, seed);
    pli_slice_bytes = 1;
    for (int n = 0; n < 40; n++) act(w);
    if (w->place == 1) kill_other(w);
    while (!w->made.replicas->begun) SURE(w, deliver(w));
}

/* The maker dies: the shards are lost, and clients that ask for them are told. */
static void test_its_maker_dies(void **state) {
    (void)state;
    int64_t lacked = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        static world w;
        open_between(&w, seed);
        for (uint64_t n = pick(&w, 20); n > 0 && !w.made.replicas->whole; n--) act(&w);
        const bool     whole = w.made.replicas->whole;
        const pli_msg *told = NULL;
        pli_out        out;
        pli_out_init(&out);
        for (int32_t place = 0; place < w.place; place++) {
            const pli_member_event event = { .kind = PLI_MEMBER_DIED, .epoch = 3, .why = { .text = "killed" },
                                             .rank = pli_replica_rank(&w.layout, w.number, place) };
            pli_server_ops.on_member(&w.made, 1, &event, &out);
        }
        SURE(&w, w.made.replicas->serves == whole && w.made.replicas->empty == !whole);
        pli_out_drop(&out);
        pli_out_init(&out);
        pli_server_ops.on_message(&w.made, 1, message(&w, 0, PLI_LEAVE, 0), &out);
        for (const pli_msg *msg = out.first; msg != NULL; msg = msg->next)
            if (msg->head.kind == PLI_NONE && msg->head.dst == 0) told = msg;
        SURE(&w, out.error.code >= 0 && (told != NULL) == !whole);
        lacked += !whole;
        pli_out_drop(&out);
        close_world(&w);
    }
    assert_true(lacked > 10);
}

/* A slice that is not the next, is cut, or names what is not there. */
static void test_malformed(void **state) {
    (void)state;
    enum { TABLE, EARLIER, LATER, NEGATIVE, MANY, HUGE_N, FLAGS, CUT, LONG, SHORT, AGAIN, KINDS };
    for (uint64_t seed = 1; seed <= 60; seed++)
        for (int kind = 0; kind < KINDS; kind++) {
            static world   w;
            pli_wire_slice slice;
            pli_out        out;
            plait_error    why = { 0 };
            open_between(&w, seed);
            while (w.to != NULL && w.to->head.kind != PLI_SLICE) (void)deliver(&w);
            pli_msg *msg = pop(&w.to, &w.to_last);
            if (msg == NULL) { /* its tables had no rows */
                close_world(&w);
                break;
            }
            memcpy(&slice, pli_msg_body(msg), sizeof slice);
            const pli_store *store = &w.made.table[slice.table]->shard.store;
            const int64_t    rows = store->rows, here = store->here;
            if (kind == TABLE) slice.table = 7;
            if (kind == EARLIER) slice.first--;
            if (kind == LATER) slice.first++;
            if (kind == NEGATIVE) slice.n = -1;
            if (kind == MANY) slice.n++;
            if (kind == HUGE_N) slice.n = INT64_MAX / 8;
            if (kind == FLAGS) slice.flags ^= PLI_SLICE_PENALTY;
            if (kind == CUT) msg->head.body_bytes -= 8;
            if (kind == SHORT) msg->head.body_bytes = sizeof slice - 8;
            memcpy(pli_msg_body(msg), &slice, sizeof slice);
            if (kind == LONG) {
                pli_msg *longer = pli_msg_new(msg->head.body_bytes + 8);
                memcpy(pli_msg_body(longer), pli_msg_body(msg), msg->head.body_bytes);
                longer->head.clock = msg->head.clock;
                pli_msg_free(&msg);
                msg = longer;
            }
            pli_out_init(&out);
            if (kind == AGAIN) SURE(&w, pli_replicas_take_slice(&w.made, msg, &out, &why) == PLAIT_OK);
            const bool had_rows = slice.n > 0 || (slice.flags & PLI_SLICE_LAST);
            const bool refused = pli_replicas_take_slice(&w.made, msg, &out, &why) == PLAIT_EFORMAT;
            SURE(&w, refused || (kind == AGAIN && !had_rows));
            SURE(&w, kind == AGAIN || (store->rows == rows && store->here == here));
            pli_msg_free(&msg);
            close_world(&w);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_that_changes_rows_comes_between),
        cmocka_unit_test(test_its_maker_dies),
        cmocka_unit_test(test_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0; /* to audit.mutants */
}
