/* Thousands of seeded schedules of the bare client and server machines over the direct driver: random numbers of
 * workers and servers, tables, policies, networks that delay, reorder, double and lose, workers that leave or die.
 *
 * The oracle shares nothing with the protocol. Each worker has a column of its own in every row, and what it adds in
 * its clock c is 2^c, at most once a row: so a value read is the set of clocks of that worker that it contains, and a
 * lost, doubled or misplaced update shows as a wrong bit. What a get must contain and may contain follows from the
 * contract's words alone:
 *     own updates     all of them (additive); those of clocks before (ruled: minus 2^c a clock, by sgd of rate 1);
 *                     what was added while the read was under way, or not
 *     bsp             of the others exactly the clocks before the reader's
 *     ssp:S           of the others at least the clocks < c - S
 *     any             nothing that was not added; of each worker and row a prefix in time
 * A failing seed is replayed by PLAIT_SEED=seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "direct/direct.h"
#include "table/client.h"
#include "table/server.h"

enum { WORKERS_MAX = 4, TABLES_MAX = 3, HOT = 5 /* rows that are used */, ROWS = 520, CLOCKS = 9, SCHEDULES = 2000 };

typedef enum state { READY, READING, IN_BARRIER, LAST_READ, DONE, LEFT, DEAD } state;

typedef struct worker {
    pli_client        client;
    pli_client_table *table[TABLES_MAX];
    state             state;
    int64_t           leaves_at;
    bool              dies;
    pli_ask           ask;
    pli_ticket        ticket;
    int               reads; /* table being read */
    double           *values;
    uint64_t          issued[TABLES_MAX][HOT];  /* bit c: added in clock c           */
    uint64_t          before[HOT];              /* of the table being read: issued before the read began */
    uint64_t          flushed[TABLES_MAX][HOT]; /* ruled: already pushed in clock c */
} worker;

typedef struct world {
    uint64_t   seed;
    direct    *d;
    pli_layout layout;
    int32_t    workers, tables;
    bool       lossy;
    pli_spec   spec[TABLES_MAX];
    int64_t    bound[TABLES_MAX]; /* ssp's S; -1: bsp; CLOCKS: async */
    uint64_t   hot[HOT];
    pli_server server[2 * WORKERS_MAX];
    worker     worker[WORKERS_MAX];
    int64_t    gets;
} world;

#define SURE(w, condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) fail_msg("PLAIT_SEED=%llu line %d: %s", (unsigned long long)(w)->seed, __LINE__, #condition); \
    } while (0)

static uint64_t pick(world *w, uint64_t below) { return direct_pick(w->d, below); }

/* --- building a world ------------------------------------------------------------------------------------------------ */

static void make_spec(world *w, int32_t id) {
    static const char *const policies[] = { "bsp", "ssp:0", "ssp:1", "ssp:3", "async" };
    static const int64_t     bounds[] = { -1, 0, 1, 3, CLOCKS };
    uint64_t                 policy = pick(w, 5), shape = pick(w, 3);
    char                     name[8];
    plait_table_opts         opts;
    plait_table_opts_init(&opts);
    snprintf(name, sizeof name, "t%d", id);
    opts.name = name;
    opts.type = PLAIT_F64;
    opts.rows = shape == 2 ? 0 : ROWS;
    opts.keyed = shape == 1;
    opts.cols = w->workers;
    if (pick(w, 3) == 0) {
        opts.rule.name = "sgd";
        opts.rule.learning_rate = 1;
    }
    w->bound[id] = bounds[policy];
    SURE(w, pli_spec_make(id, &opts, "ps", policies[policy], 1, &w->spec[id], NULL) == PLAIT_OK);
    w->spec[id].placement = pli_placement_make(w->spec[id].rows, pli_row_bytes(&w->spec[id]), pick(w, 4) == 0,
                                               w->layout.servers, w->layout.first_server);
    if (w->spec[id].placement.shards == 1) w->spec[id].topology = pli_topology_find("local");
}

static pli_msg *create_message(const world *w, const pli_spec *spec) {
    pli_wire_create create = { .job_hash = w->layout.job_hash, .spec_hash = pli_spec_hash(spec, NULL, NULL) };
    pli_spec_encode(spec, &create.spec);
    pli_msg *msg = pli_msg_new(sizeof create);
    memcpy(pli_msg_body(msg), &create, sizeof create);
    return msg;
}

static bool ticket_done(void *arg) { return pli_ticket_done(arg); }

static void create_tables(world *w) {
    pli_client *client = &w->worker[0].client;
    uint64_t    now;
    for (int32_t t = 0; t < w->tables; t++) {
        const pli_placement *placement = &w->spec[t].placement;
        pli_ticket           ticket;
        pli_out             *out = direct_enter(w->d, 0, PLI_PORT_CLIENT, &now);
        pli_ticket_open(client, &ticket);
        for (int32_t i = 0; i < placement->shards; i++)
            SURE(w, pli_client_send(client, now, pli_placement_rank(placement, i) - placement->first_rank, PLI_CREATE,
                                    create_message(w, &w->spec[t]), &ticket, out, NULL) == PLAIT_OK);
        direct_leave(w->d, 0, PLI_PORT_CLIENT);
        SURE(w, direct_run_until(w->d, ticket_done, &ticket, 1000000));
        SURE(w, ticket.failure.code == 0);
        direct_enter(w->d, 0, PLI_PORT_CLIENT, &now);
        pli_ticket_unlink(client, &ticket);
        direct_leave(w->d, 0, PLI_PORT_CLIENT);
        pli_ticket_free(&ticket);
        for (int32_t k = 0; k < w->workers; k++) {
            SURE(w, pli_client_table_open(&w->spec[t], &w->layout, &w->worker[k].table[t], NULL) == PLAIT_OK);
            SURE(w, pli_client_add_table(&w->worker[k].client, w->worker[k].table[t], NULL) == PLAIT_OK);
        }
    }
}

static void choose_hot(world *w) {
    for (int i = 0; i < HOT; i++) w->hot[i] = (uint64_t)(i * (ROWS / HOT)) + pick(w, ROWS / HOT);
}

static void open_world(world *w, uint64_t seed) {
    memset(w, 0, sizeof *w);
    w->seed = seed;
    pli_random  random = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 1, 0);
    direct_opts net = { 0 };
    if (pli_random_below(&random, 3) > 0) {
        net = (direct_opts){ .reorder = pli_random_f64(&random) * 0.5, .twice = pli_random_f64(&random) * 0.3,
                             .delay = pli_random_f64(&random) * 0.3, .early_wake = pli_random_f64(&random) * 0.2 };
        if (pli_random_below(&random, 2) > 0) net.drop = pli_random_f64(&random) * 0.3;
    }
    w->lossy = net.drop > 0;
    w->workers = 1 + (int32_t)pli_random_below(&random, WORKERS_MAX);
    int32_t apart = pli_random_below(&random, 2) > 0 ? 1 + (int32_t)pli_random_below(&random, WORKERS_MAX) : 0;
    w->layout = (pli_layout){ .workers = w->workers, .servers = apart > 0 ? apart : w->workers,
                              .first_server = apart > 0 ? w->workers : 0, .job_hash = 5,
                              .resend_after_ns = w->lossy ? 2000000 : 0 };
    w->d = direct_new(seed, w->workers + apart, &net);
    choose_hot(w);
    for (int32_t s = 0; s < w->layout.servers; s++) {
        int32_t rank = w->layout.first_server + s;
        SURE(w, pli_server_open(&w->server[s], &w->layout, rank, 0, 1, NULL) == PLAIT_OK);
        direct_add(w->d, rank, PLI_PORT_SERVER, &pli_server_ops, &w->server[s]);
    }
    for (int32_t k = 0; k < w->workers; k++) {
        worker *me = &w->worker[k];
        SURE(w, pli_client_open(&me->client, &w->layout, k, 0, 1, NULL) == PLAIT_OK);
        direct_add(w->d, k, PLI_PORT_CLIENT, &pli_client_ops, &me->client);
        me->values = calloc((size_t)ROWS * (size_t)w->workers, sizeof(double));
        me->leaves_at = pick(w, 6) == 0 ? (int64_t)pick(w, CLOCKS) : -1;
        me->dies = me->leaves_at >= 0 && apart > 0 && pick(w, 2) == 0;
    }
    w->tables = 1 + (int32_t)pick(w, TABLES_MAX);
    for (int32_t t = 0; t < w->tables; t++) make_spec(w, t);
    create_tables(w);
}

static void close_world(world *w) {
    for (int32_t k = 0; k < w->workers; k++) {
        for (int32_t t = 0; t < w->tables; t++) pli_client_table_close(&w->worker[k].table[t]);
        pli_client_close(&w->worker[k].client);
        free(w->worker[k].values);
    }
    for (int32_t s = 0; s < w->layout.servers; s++) pli_server_close(&w->server[s]);
    direct_free(&w->d);
}

/* --- the oracle ------------------------------------------------------------------------------------------------------- */

static uint64_t below(int64_t clock) { return clock <= 0 ? 0 : (UINT64_C(1) << clock) - 1; }

/* Do all bits of a above its highest one miss in of? Is a the beginning of what was issued? */
static bool is_prefix(uint64_t a, uint64_t of) {
    if (a == 0) return true;
    int high = 63 - __builtin_clzll(a);
    return a == (of & below(high + 1));
}

/* value: of worker `from`'s column of hot row h, as read by worker `by` in `clock`; last: after the barrier. */
static void check_value(world *w, int t, int h, int32_t by, int32_t from, double value, int64_t clock, bool last) {
    const worker *writer = &w->worker[from];
    uint64_t      issued = writer->issued[t][h], seen = (uint64_t)(w->spec[t].ruled ? -value : value);
    bool          gone = writer->state == LEFT || writer->state == DEAD || writer->leaves_at >= 0;
    SURE(w, w->spec[t].ruled ? value <= 0 : value >= 0);
    SURE(w, (double)seen == (w->spec[t].ruled ? -value : value) && (seen & ~issued) == 0);
    SURE(w, is_prefix(seen, issued));
    if (by == from && !w->spec[t].ruled) SURE(w, (writer->before[h] & ~seen) == 0);
    if (by == from && w->spec[t].ruled)
        SURE(w, (seen & below(clock)) == (issued & below(clock)) &&
                    (seen & ~below(clock) & ~writer->flushed[t][h]) == 0);
    if (gone || by == from) return;
    if (last) SURE(w, seen == issued);
    else if (w->bound[t] < 0) SURE(w, seen == (issued & below(clock)));
    else SURE(w, (seen & below(clock - w->bound[t])) == (issued & below(clock - w->bound[t])));
}

static void check_read(world *w, int32_t by) {
    worker        *me = &w->worker[by];
    const pli_ask *ask = &me->ask;
    for (int64_t i = 0; i < ask->n; i++) {
        uint64_t key = ask->by_key ? ask->keys[i] : (uint64_t)(ask->first + i);
        for (int h = 0; h < HOT; h++)
            for (int32_t from = 0; key == w->hot[h] && from < w->workers; from++)
                check_value(w, me->reads, h, by, from, me->values[i * w->workers + from], me->client.clock,
                            me->state == LAST_READ);
    }
    w->gets++;
}

/* --- what workers do -------------------------------------------------------------------------------------------------- */

static const uint64_t *hot_keys(world *w) { return w->hot; }

static void begin_read(world *w, int32_t k, int t, state next) {
    worker      *me = &w->worker[k];
    uint64_t     now;
    plait_error  err = { 0 };
    plait_status status;
    pli_out     *out = direct_enter(w->d, k, PLI_PORT_CLIENT, &now);
    me->reads = t;
    memcpy(me->before, me->issued[t], sizeof me->before);
    if (w->spec[t].rows == 0 || pick(w, 2) == 0) {
        uint64_t first = pick(w, HOT);
        status = pli_ask_keys(&me->client, now, me->table[t], (int64_t)(HOT - first), hot_keys(w) + first, me->values,
                              &me->ask, out, &err);
    } else {
        int64_t first = pick(w, 2) == 0 ? 0 : (int64_t)pick(w, ROWS);
        status = pli_ask_range(&me->client, now, me->table[t], first, ROWS - first, me->values, &me->ask, out, &err);
    }
    SURE(w, status == PLAIT_OK);
    if (pick(w, 4) == 0) pli_ticket_wonder(&me->client, now, &me->ask.ticket, out);
    direct_leave(w->d, k, PLI_PORT_CLIENT);
    me->state = next;
}

static void end_read(world *w, int32_t k) {
    worker     *me = &w->worker[k];
    uint64_t    now;
    plait_error err = { 0 };
    direct_enter(w->d, k, PLI_PORT_CLIENT, &now);
    pli_ticket_unlink(&me->client, &me->ask.ticket);
    direct_leave(w->d, k, PLI_PORT_CLIENT);
    SURE(w, pli_ask_finish(&me->client, &me->ask, &err) == PLAIT_OK);
    check_read(w, k);
    pli_ask_abandon(&me->ask);
}

/* Adds 2^clock to the worker's column of a random set of rows that it has not yet added to in this clock. */
static void add(world *w, int32_t k, int t) {
    worker  *me = &w->worker[k];
    uint64_t keys[HOT];
    double   delta[HOT * WORKERS_MAX] = { 0 };
    int64_t  n = 0, clock = me->client.clock;
    for (int h = 0; h < HOT; h++) {
        if ((me->issued[t][h] >> clock & 1) || pick(w, 2) == 0) continue;
        delta[n * w->workers + k] = (double)(UINT64_C(1) << clock);
        keys[n++] = w->hot[h];
        me->issued[t][h] |= UINT64_C(1) << clock;
    }
    SURE(w, pli_pending_add(&me->table[t]->pending, n, keys, delta, 0, NULL) == PLAIT_OK);
}

static void push(world *w, int32_t k, int t, pli_kind kind) {
    worker  *me = &w->worker[k];
    uint64_t now;
    if (kind == PLI_PUSH && me->table[t]->at_clock) return;
    for (int h = 0; kind == PLI_PUSH && h < HOT; h++) me->flushed[t][h] |= me->issued[t][h];
    SURE(w, pli_client_build_push(&me->client, kind == PLI_PUSH ? me->table[t] : NULL, kind, NULL) == PLAIT_OK);
    pli_out *out = direct_enter(w->d, k, PLI_PORT_CLIENT, &now);
    SURE(w, pli_client_send_push(&me->client, now, kind, out, NULL) == PLAIT_OK);
    direct_leave(w->d, k, PLI_PORT_CLIENT);
}

static void send_all(world *w, int32_t k, pli_kind kind, pli_ticket *ticket) {
    worker  *me = &w->worker[k];
    uint64_t now;
    pli_out *out = direct_enter(w->d, k, PLI_PORT_CLIENT, &now);
    if (ticket != NULL) pli_ticket_open(&me->client, ticket);
    SURE(w, pli_client_send_all(&me->client, now, true, kind, ticket, out, NULL) == PLAIT_OK);
    direct_leave(w->d, k, PLI_PORT_CLIENT);
}

/* A leaver keeps to the barrier; the dead do nothing any more. */
static void leave_or_die(world *w, int32_t k) {
    worker *me = &w->worker[k];
    for (int t = 0; t < w->tables; t++) {
        for (int h = 0; h < HOT; h++)
            me->issued[t][h] &= below(me->client.clock) | me->flushed[t][h]; /* what has not ended is dropped */
        pli_pending_clear(&me->table[t]->pending);
    }
    if (me->dies) {
        me->state = DEAD;
        direct_member(w->d, PLI_MEMBER_DIED, k, &(plait_error){ .code = PLAIT_EPEER, .text = "killed by the test" });
    } else {
        send_all(w, k, PLI_LEAVE, NULL);
        me->client.left = true;
        send_all(w, k, PLI_BARRIER, &me->ticket);
        me->state = IN_BARRIER;
    }
}

static void end_clock(world *w, int32_t k) {
    worker *me = &w->worker[k];
    if (me->leaves_at == me->client.clock) {
        leave_or_die(w, k);
        return;
    }
    push(w, k, -1, PLI_CLOCK);
    if (me->client.clock < CLOCKS) return;
    send_all(w, k, PLI_BARRIER, &me->ticket);
    me->state = IN_BARRIER;
}

static void end_barrier(world *w, int32_t k) {
    worker  *me = &w->worker[k];
    uint64_t now;
    direct_enter(w->d, k, PLI_PORT_CLIENT, &now);
    pli_ticket_unlink(&me->client, &me->ticket);
    direct_leave(w->d, k, PLI_PORT_CLIENT);
    pli_ticket_free(&me->ticket);
    for (int t = 0; t < w->tables; t++) pli_cache_forget(me->table[t]);
    begin_read(w, k, 0, LAST_READ);
}

/* One act of worker k. false: it waits, or is at its end. */
static bool act(world *w, int32_t k) {
    worker *me = &w->worker[k];
    int     t = (int)pick(w, (uint64_t)w->tables);
    switch (me->state) {
    case READY:
        switch (pick(w, 5)) {
        case 0: case 1: begin_read(w, k, t, READING); break;
        case 2: add(w, k, t); break;
        case 3: push(w, k, t, PLI_PUSH); break;
        default: end_clock(w, k); break;
        }
        return true;
    case READING:
        if (me->dies && me->leaves_at == me->client.clock && pick(w, 4) == 0) {
            pli_ticket_unlink(&me->client, &me->ask.ticket);
            pli_ask_abandon(&me->ask);
            leave_or_die(w, k);
            return true;
        }
        if (pick(w, 4) == 0) { /* updates while a read is under way */
            if (pick(w, 2) == 0) add(w, k, t);
            else if (t != me->reads) push(w, k, t, PLI_PUSH); /* an update waits for the reads of its table */
            return true;
        }
        if (!pli_ticket_done(&me->ask.ticket)) return false;
        end_read(w, k);
        me->state = READY;
        return true;
    case IN_BARRIER:
        if (!pli_ticket_done(&me->ticket)) return false;
        end_barrier(w, k);
        return true;
    case LAST_READ:
        if (!pli_ticket_done(&me->ask.ticket)) return false;
        end_read(w, k);
        if (me->reads + 1 < w->tables) begin_read(w, k, me->reads + 1, LAST_READ);
        else me->state = DONE;
        return true;
    default: return false;
    }
}

static bool all_done(const world *w) {
    for (int32_t k = 0; k < w->workers; k++)
        if (w->worker[k].state != DONE && w->worker[k].state != DEAD) return false;
    return true;
}

static void check_machines(world *w) {
    for (int32_t rank = 0; rank < w->workers + (w->layout.first_server > 0 ? w->layout.servers : 0); rank++)
        if (direct_error(w->d, rank)->code < 0)
            fail_msg("PLAIT_SEED=%llu rank %d: %s", (unsigned long long)w->seed, rank, direct_error(w->d, rank)->text);
}

static int64_t gets; /* of all schedules */

static void run_schedule(uint64_t seed) {
    static world w;
    open_world(&w, seed);
    for (int64_t step = 0; !all_done(&w); step++) {
        SURE(&w, step < 2000000);
        bool    happened = pick(&w, 3) != 0 ? direct_step(w.d) : false;
        int32_t first = (int32_t)pick(&w, (uint64_t)w.workers);
        if (!happened) happened = act(&w, first);
        for (int32_t i = 0; !happened && i < w.workers; i++) happened = act(&w, (first + i) % w.workers);
        if (!happened) happened = direct_step(w.d);
        SURE(&w, happened); /* nobody can move: a hang */
    }
    SURE(&w, direct_run(w.d, 1000000)); /* all is said: nobody sends for ever, to the dead for instance */
    check_machines(&w);
    gets += w.gets;
    close_world(&w);
}

static void test_schedules(void **unused) {
    (void)unused;
    const char *seed = getenv("PLAIT_SEED"), *count = getenv("PLAIT_SCHEDULES");
    int64_t     live = pli_alloc_live(), n = SCHEDULES, from = 1;
    if (count != NULL) n = atoll(count);
    if (seed != NULL) from = atoll(seed), n = 1;
    for (int64_t i = 0; i < n; i++) run_schedule((uint64_t)(from + i));
    assert_int_equal(pli_alloc_live(), live);
    assert_true(gets >= n);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_schedules) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
