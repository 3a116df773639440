/* Thousands of seeded schedules of the bare client and server machines over the direct driver: random numbers of
 * workers and servers, tables, policies, networks that delay, reorder, double and lose, workers that leave or die. Each
 * fourth is of replicas and sums (sums.h).
 *
 * The oracle shares nothing with the protocol. Each worker has a column of its own in every row, and what it adds in
 * its clock c is 2^c, at most once a row: so a value read is the set of clocks of that worker that it contains, and a
 * lost, doubled or misplaced update shows as a wrong bit. (Where a table keeps the least or the greatest, the last of
 * them: marks.h.) What a get must contain and may contain follows from the contract's words alone:
 *     own updates     all of them (additive); those of clocks before (ruled: minus 2^c a clock, by sgd of rate 1);
 *                     what was added while the read was under way, or not
 *     bsp             of the others exactly the clocks before the reader's; bounded-delay:0 too
 *     ssp:S           of the others at least the clocks < c - S; essp:S, bounded-delay:S, asp:S:W too
 *     asp:S:W         at least the clocks below the last multiple of W
 *     sequential      exactly the turns before the reader's
 *     vap:V           at no moment has a worker's incs accepted as much as V (weak), or all but one together (strong),
 *                     that the shards' values do not hold
 *     leases          each block's share of each clock is computed by one worker, who was leased it (balance dynamic)
 *     any             nothing that was not added; of each worker and row a prefix in time; never less than was read
 *                     before
 * Every schedule is judged a second time, from its event log alone, by the audit. PLAIT_JUDGE=audit leaves the verdict
 * to it: what is refuted is printed, and the program ends with 4.
 * Half of the tables that lie on servers have filters without loss, and servers forget what they know of lists of keys.
 * A failing seed is replayed by PLAIT_SEED=seed; PLAIT_EVENTS=file keeps its event log; PLAIT_COMBINE=min, max, last or
 * counts has all tables combine so. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "comm/collective.h"
#include "direct/direct.h"
#include "table/copies/mirror.h"
#include "table/events.h"
#include "table/server/leases.h"

#include "marks.h"
#include "sure.h"
#include "witness.h"

enum {
    WORKERS_MAX = 4,
    TABLES_MAX = 3,
    BLOCKS_MAX = 12,
    HOT = 5 /* rows that are used */,
    ROWS = 520,
    CLOCKS = 9,
    SCHEDULES = 2000,
    SCHEDULES_FULL = 10000
};

typedef enum state { READY, LEASING, READING, UPDATING, IN_BARRIER, LAST_READ, DONE, LEFT, DEAD } state;

/* What a policy promises; the rest is own updates, prefixes, nothing lost. */
typedef struct promise {
    const char *spec;
    bool        exact, turns, own; /* clocks before, no more; turns; a ruled table's own updates at once */
    int64_t     bound, barrier;    /* CLOCKS: none */
    double      most, sum;         /* value bounds: of each worker, of all but one; 0: none */
} promise;

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
    uint64_t          seen[TABLES_MAX][HOT][WORKERS_MAX]; /* read last */
    int64_t           last[TABLES_MAX][HOT];              /* the same of rows that are replaced */
    int               want; /* UPDATING: what is left to do for this inc */
    bool              accepted, settling; /* it is in pending; its inc returns only when it is applied */
    int64_t           n;
    uint64_t          keys[HOT];
    double            delta[HOT * WORKERS_MAX];
    int64_t           leased;           /* clocks whose shares it has computed */
    pli_lease         lease[BLOCKS_MAX];
    int64_t           leases;
} worker;

typedef struct world {
    uint64_t   seed;
    direct    *d;
    pli_layout layout;
    int32_t    workers, tables;
    bool       lossy;
    pli_spec   spec[TABLES_MAX];
    promise    promise[TABLES_MAX];
    uint64_t   hot[HOT];
    pli_server server[2 * WORKERS_MAX];
    worker     worker[WORKERS_MAX];
    int64_t    gets;
    pli_lease_terms terms;  /* balance dynamic; blocks 0: static */
    int32_t         keeper; /* the server that keeps the leases  */
    uint8_t         computed[BLOCKS_MAX][CLOCKS];
    int8_t          holder[BLOCKS_MAX];
    int64_t         departed;
    int64_t         moved;
    pli_random    filters; /* draws of filters, apart from the schedule's */
    witness         witness;
} world;

static bool audit_judges; /* and nobody else: the oracle is silent, and a schedule may end in any way */

static uint64_t pick(world *w, uint64_t below) { return direct_pick(w->d, below); }

/* --- the witness: an event log, and the audit of it --------------------------------------------------------------- */

static uint64_t time_in(void *user) { return direct_now(((world *)user)->d); }

static const pli_event_sink *sink_of(const world *w) { return witness_sink(&w->witness); }

/* An inc that was accepted. */
static void tell_inc(world *w, int32_t k, int t) {
    const worker *me = &w->worker[k];
    me->table[t]->incs++;
    pli_raise_inc(sink_of(w), k, &w->spec[t], me->n, me->keys, 0, me->delta);
}

/* whole: all ranks came to their end. */
static void close_log(world *w, bool whole) {
    for (int32_t s = 0; whole && s < w->layout.servers; s++)
        pli_raise(sink_of(w), w->layout.first_server + s, true, PLI_EVENT_DONE);
    witness_judge(&w->witness, whole, w->seed, audit_judges);
}

/* --- building a world --------------------------------------------------------------------------------------------- */

static const promise promises[] = {
    { "bsp", .exact = true },
    { "ssp:0", .bound = 0 },
    { "ssp:1", .bound = 1 },
    { "ssp:3", .bound = 3 },
    { "essp:0", .bound = 0 },
    { "essp:2", .bound = 2 },
    { "asp:3:4", .bound = 3, .barrier = 4 },
    { "asp:1:9", .bound = 1, .barrier = 9 },
    { "bounded-delay:0", .exact = true },
    { "bounded-delay:2", .bound = 2 },
    { "sequential", .turns = true },
    { "vap:60", .bound = CLOCKS, .sum = 60 },
    { "vap:9:weak", .bound = CLOCKS, .most = 9 },
    { "downpour:2:3", .bound = CLOCKS, .own = true },
    { "downpour:3:1", .bound = CLOCKS, .own = true },
    { "async", .bound = CLOCKS },
};
enum { PROMISES = sizeof promises / sizeof *promises };

/* What is not drawn: all tables are of this kind (NULL: any) and have this promise (-1: any that goes with it). */
static const marks_kind *forced;
static int               forced_promise = -1;

static uint64_t draw_promise(world *w) {
    uint64_t drawn = pick(w, PROMISES);
    if (forced_promise >= 0) return (uint64_t)forced_promise;
    while (forced != NULL && !marks_go_with(forced, promises[drawn].spec)) drawn = (drawn + 1) % PROMISES;
    return drawn;
}

static void make_spec(world *w, int32_t id) {
    uint64_t         policy = draw_promise(w), shape = pick(w, 3);
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
    static const char *const filters[] = { "key-cache", "key-delta", "zstd", "key-cache,key-delta,zstd" };
    uint64_t filtered = pli_random_below(&w->filters, 8);
    if (filtered < 4) opts.filter = filters[filtered];
    w->promise[id] = promises[policy];
    draw_marks(pli_random_at(w->seed, PLI_RANDOM_SCHEDULE, 3, (uint64_t)id),
               promises[policy].most + promises[policy].sum > 0, strncmp(promises[policy].spec, "downpour", 8) != 0,
               &opts);
    marks_force(forced, &opts);
    SURE(w, pli_spec_make(id, &opts, "ps", promises[policy].spec, 1, NULL, &w->spec[id], NULL) == PLAIT_OK);
    w->spec[id].placement = pli_placement_make(w->spec[id].rows, pli_row_bytes(&w->spec[id]), pick(w, 4) == 0,
                                               w->layout.servers, w->layout.first_server);
    if (w->spec[id].placement.shards == 1) w->spec[id].filter[0] = '\0';
    if (w->spec[id].placement.shards == 1)
        SURE(w, pli_topology_make("local", PLI_FILL_ANY, &w->spec[id].topology, NULL) == PLAIT_OK);
}

static pli_msg *create_message(const world *w, const pli_spec *spec) {
    pli_wire_create create = { .job_hash = w->layout.job_hash, .spec_hash = pli_spec_hash(spec, NULL, NULL) };
    pli_spec_encode(spec, &create.spec);
    size_t   names = spec->filter[0] == '\0' ? 0 : pli_pad8(strlen(spec->filter) + 1);
    pli_msg *msg = pli_msg_new(sizeof create + names);
    memcpy(pli_msg_body(msg), &create, sizeof create);
    if (names > 0) strncpy((char *)pli_msg_body(msg) + sizeof create, spec->filter, names);
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
            pli_raise_table(sink_of(w), k, &w->spec[t], PLI_WAY_SERVED);
        }
    }
}

static void choose_hot(world *w) {
    for (int i = 0; i < HOT; i++) w->hot[i] = (uint64_t)(i * (ROWS / HOT)) + pick(w, ROWS / HOT);
}

/* Of a balanced job. */
static void draw_terms(world *w) {
    if (pick(w, 3) > 0) return;
    w->terms = (pli_lease_terms){ .tenants = w->workers, .blocks = 2 * w->workers +
                                            (int64_t)pick(w, (uint64_t)(BLOCKS_MAX - 2 * w->workers + 1)),
                                  .clocks = 1 + (int64_t)pick(w, CLOCKS + 3) };
    w->keeper = (int32_t)pick(w, (uint64_t)w->layout.servers);
    for (int64_t b = 0; b < w->terms.blocks; b++) {
        worker *me = &w->worker[b % w->workers];
        me->lease[me->leases++] = (pli_lease){ .block = b, .rows = 10 + (int64_t)pick(w, 9), .until = PLI_LEASE_OPEN };
        w->holder[b] = (int8_t)(b % w->workers);
    }
}

static void open_world(world *w, uint64_t seed) {
    memset(w, 0, sizeof *w);
    w->seed = seed;
    w->filters = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 2, 0);
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
                              .resend_after_ns = w->lossy ? 2000000 : 0,
                              .backup = w->workers > 1 && pli_random_below(&random, 4) == 0 };
    w->d = direct_new(seed, w->workers + apart, &net);
    SURE(w, witness_open(&w->witness, w->workers + apart, time_in, w));
    choose_hot(w);
    for (int32_t s = 0; s < w->layout.servers; s++) {
        int32_t rank = w->layout.first_server + s;
        SURE(w, pli_server_open(&w->server[s], &w->layout, rank, 0, 1, NULL) == PLAIT_OK);
        w->server[s].sink = sink_of(w);
        pli_raise_server_job(&w->server[s]);
        direct_add(w->d, rank, PLI_PORT_SERVER, &pli_server_ops, &w->server[s]);
    }
    for (int32_t k = 0; k < w->workers; k++) {
        worker *me = &w->worker[k];
        SURE(w, pli_client_open(&me->client, &w->layout, k, 0, 1, NULL) == PLAIT_OK);
        pli_client_listen(&me->client, sink_of(w));
        pli_raise_job(sink_of(w), k, 1, &w->layout);
        direct_add(w->d, k, PLI_PORT_CLIENT, &pli_client_ops, &me->client);
        me->values = calloc((size_t)ROWS * (size_t)w->workers, sizeof(double));
        me->leaves_at = pick(w, 6) == 0 ? (int64_t)pick(w, CLOCKS) : -1;
        me->dies = me->leaves_at >= 0 && apart > 0 && pick(w, 2) == 0;
    }
    draw_terms(w);
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

/* --- the oracle --------------------------------------------------------------------------------------------------- */

static uint64_t below(int64_t clock) { return clock <= 0 ? 0 : (UINT64_C(1) << clock) - 1; }

/* Do all bits of a above its highest one miss in of? Is a the beginning of what was issued? */
static bool is_prefix(uint64_t a, uint64_t of) {
    if (a == 0) return true;
    int high = 63 - __builtin_clzll(a);
    return a == (of & below(high + 1));
}

/* value: of worker `from`'s column of hot row h, as read by worker `by` in `clock`; last: after the barrier. */
static void check_value(world *w, int t, int h, int32_t by, int32_t from, double value, int64_t clock, bool last) {
    const promise *p = &w->promise[t];
    const worker  *writer = &w->worker[from];
    uint64_t      *before = &w->worker[by].seen[t][h][from];
    uint64_t       issued = writer->issued[t][h], seen;
    bool           gone = writer->state == LEFT || writer->state == DEAD || writer->leaves_at >= 0;
    if (w->layout.backup > 0 && p->exact) return; /* what came late is dropped: the audit knows what */
    SURE(w, mark_read(&w->spec[t], value, issued, &seen) && (seen & ~issued) == 0);
    SURE(w, is_prefix(seen, issued));
    SURE(w, (*before & ~seen) == 0 || (by == from && gone)); /* a leaver's last clock is dropped */
    *before = seen;
    if (by == from && (!w->spec[t].ruled || p->own)) SURE(w, (writer->before[h] & ~seen) == 0);
    else if (by == from)
        SURE(w, (seen & below(clock)) == (issued & below(clock)) &&
                    (seen & ~below(clock) & ~writer->flushed[t][h]) == 0);
    if (gone || by == from) return;
    if (last) SURE(w, seen == issued);
    else if (p->exact) SURE(w, seen == (issued & below(clock)));
    else if (p->turns) SURE(w, seen == (issued & below(clock + (from < by))));
    else SURE(w, (seen & below(clock - p->bound)) == (issued & below(clock - p->bound)));
    if (!last && p->barrier > 0) SURE(w, (below(clock / p->barrier * p->barrier) & issued & ~seen) == 0);
}

/* Value bounds, at any moment: what was accepted, and what the shards hold. */
static void check_bounds(world *w, int t) {
    const promise       *p = &w->promise[t];
    const pli_placement *placement = &w->spec[t].placement;
    double               unseen[WORKERS_MAX] = { 0 }, sum = 0, least = INFINITY;
    for (int h = 0; h < HOT && (p->most > 0 || p->sum > 0); h++) {
        const pli_server *server =
            &w->server[pli_placement_rank(placement, pli_placement_shard_of(placement, w->hot[h])) -
                       placement->first_rank];
        double values[WORKERS_MAX] = { 0 };
        pli_store_get(&server->table[t]->shard.store, 1, &w->hot[h], values);
        for (int32_t k = 0; k < w->workers; k++) {
            const worker *writer = &w->worker[k];
            uint64_t      accepted = writer->issued[t][h];
            if (writer->settling && writer->reads == t) accepted &= ~(UINT64_C(1) << writer->client.clock);
            double held = mark_at(w->spec[t].type, values, k);
            double miss = (double)accepted - (w->spec[t].ruled ? -held : held);
            if (miss > unseen[k]) unseen[k] = miss;
        }
    }
    for (int32_t k = 0; k < w->workers; k++) {
        sum += unseen[k];
        least = unseen[k] < least ? unseen[k] : least;
        if (p->most > 0) SURE(w, unseen[k] < p->most);
    }
    if (p->sum > 0) SURE(w, sum - least < p->sum);
}

/* A row that is replaced, as check_value has it of each worker's column. */
static void check_last(world *w, int t, int h, int32_t by, const void *row, bool last) {
    const promise *p = &w->promise[t];
    worker        *me = &w->worker[by];
    const int64_t  clock = me->client.clock;
    mark_reader    r = { .worker = by, .clock = clock };
    if (w->layout.backup > 0 && p->exact) return;
    for (int32_t from = 0; from < w->workers; from++) {
        const worker  *writer = &w->worker[from];
        const uint64_t issued = writer->issued[t][h];
        const bool     gone = writer->state == LEFT || writer->state == DEAD || writer->leaves_at >= 0;
        const bool     exact = !last && (p->exact || p->turns);
        uint64_t       due = issued & below(last ? CLOCKS : clock - p->bound + (p->turns && from < by));
        if (!last && p->barrier > 0) due |= issued & below(clock / p->barrier * p->barrier);
        r.must[from] = from == by ? writer->before[h] : gone ? 0 : due;
        r.may[from] = from == by || gone || !exact ? issued : due;
    }
    SURE(w, mark_last(&w->spec[t], row, &r, &me->last[t][h]));
}

static void check_row(world *w, int32_t by, int h, int64_t i) {
    worker         *me = &w->worker[by];
    const pli_spec *spec = &w->spec[me->reads];
    const bool      last = me->state == LAST_READ;
    if (spec->combine->replaces)
        check_last(w, me->reads, h, by, (const char *)me->values + i * pli_row_bytes(spec), last);
    for (int32_t from = 0; !spec->combine->replaces && from < w->workers; from++)
        check_value(w, me->reads, h, by, from, mark_at(spec->type, me->values, i * w->workers + from),
                    me->client.clock, last);
}

static void check_read(world *w, int32_t by) {
    const pli_ask *ask = &w->worker[by].ask;
    for (int64_t i = 0; i < ask->n; i++) {
        uint64_t key = ask->by_key ? ask->keys[i] : (uint64_t)(ask->first + i);
        for (int h = 0; h < HOT; h++)
            if (key == w->hot[h]) check_row(w, by, h, i);
    }
    w->gets++;
}

/* What the worker waits for has come. */
static void unlink_ticket(world *w, int32_t k, pli_ticket *ticket) {
    uint64_t now;
    direct_enter(w->d, k, PLI_PORT_CLIENT, &now);
    pli_ticket_unlink(&w->worker[k].client, ticket);
    direct_leave(w->d, k, PLI_PORT_CLIENT);
}

/* --- leases ------------------------------------------------------------------------------------------------------- */

/* The worker computes its shares of this clock. */
static void compute_shares(world *w, int32_t k) {
    worker *me = &w->worker[k];
    for (int64_t i = 0; i < me->leases; i++) {
        const pli_lease *lease = &me->lease[i];
        if (me->leased < lease->from || me->leased >= lease->until) continue;
        SURE(w, audit_judges || w->computed[lease->block][me->leased] == 0);
        w->computed[lease->block][me->leased]++;
        w->moved += w->holder[lease->block] != k;
        w->holder[lease->block] = (int8_t)k;
    }
    me->leased++;
}

static pli_msg *lease_question(world *w, int32_t k) {
    worker         *me = &w->worker[k];
    int64_t         n = me->leased == 0 ? me->leases : 0;
    pli_wire_lease  ask = { .terms = w->terms, .n = n };
    pli_msg        *msg = pli_msg_new(sizeof ask + (size_t)n * sizeof *me->lease);
    if (me->leased > 0)
        ask.pace = (pli_pace){ .rows = 100, .seconds = (double)(1 + pick(w, 3) + 4 * (uint64_t)(k == 0)) };
    memcpy(pli_msg_body(msg), &ask, sizeof ask);
    if (n > 0) memcpy((char *)pli_msg_body(msg) + sizeof ask, me->lease, (size_t)n * sizeof *me->lease);
    msg->head.clock = me->leased;
    return msg;
}

/* At the beginning of a clock: asks for leases, where that is due, or computes. */
static void begin_shares(world *w, int32_t k) {
    worker  *me = &w->worker[k];
    uint64_t now;
    if (me->leased % w->terms.clocks % PLI_LEASE_EVERY != 0) {
        compute_shares(w, k);
        return;
    }
    pli_out *out = direct_enter(w->d, k, PLI_PORT_CLIENT, &now);
    pli_ticket_open(&me->client, &me->ticket);
    SURE(w, pli_client_send(&me->client, now, w->keeper, PLI_LEASE, lease_question(w, k), &me->ticket, out, NULL) ==
                PLAIT_OK);
    direct_leave(w->d, k, PLI_PORT_CLIENT);
    me->state = LEASING;
}

static void take_leases(world *w, int32_t k) {
    worker        *me = &w->worker[k];
    const pli_msg *reply = me->ticket.replies;
    unlink_ticket(w, k, &me->ticket);
    SURE(w, me->ticket.failure.code == 0 && reply != NULL);
    me->leases = (int64_t)(reply->head.body_bytes / sizeof *me->lease);
    SURE(w, me->leases <= BLOCKS_MAX);
    memcpy(me->lease, pli_msg_body(reply), (size_t)me->leases * sizeof *me->lease);
    pli_ticket_free(&me->ticket);
    me->state = READY;
    compute_shares(w, k);
}

/* Where nobody has left, nothing is left out. */
static void check_shares(world *w) {
    for (int32_t k = 0; k < w->workers; k++)
        if (w->worker[k].leaves_at >= 0) return;
    for (int64_t b = 0; b < w->terms.blocks; b++)
        for (int c = 0; c < CLOCKS; c++) SURE(w, w->computed[b][c] == 1);
}

/* --- what workers do ---------------------------------------------------------------------------------------------- */

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

static void finish_ask(world *w, int32_t k) {
    worker     *me = &w->worker[k];
    plait_error err = { 0 };
    unlink_ticket(w, k, &me->ask.ticket);
    SURE(w, pli_ask_finish(&me->client, &me->ask, &err) == PLAIT_OK);
}

static void end_read(world *w, int32_t k) {
    worker *me = &w->worker[k];
    finish_ask(w, k);
    if (!audit_judges) check_read(w, k);
    pli_ask_abandon(&me->ask);
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

/* What plait_table_flush does where pushes are applied at clocks: nothing more is added to the table in this clock, and
 * what departs leaves now or with the next that does. */
static void depart(world *w, int32_t k, int t) {
    worker  *me = &w->worker[k];
    uint64_t now;
    bool     leaves = me->leaves_at == me->client.clock && !me->dies; /* that is refused */
    if (!me->table[t]->at_clock || !w->spec[t].ruled || leaves) return;
    me->table[t]->departs = true;
    if (pick(w, 3) == 0) return;
    SURE(w, pli_client_build_push(&me->client, NULL, PLI_PUSH, NULL) == PLAIT_OK);
    pli_out *out = direct_enter(w->d, k, PLI_PORT_CLIENT, &now);
    SURE(w, pli_client_send_push(&me->client, now, PLI_PUSH, out, NULL) == PLAIT_OK);
    direct_leave(w->d, k, PLI_PORT_CLIENT);
    w->departed++;
}

/* The worker's updates are in its pending ones: from now on they may be seen. */
static void count_issued(world *w, int32_t k) {
    worker *me = &w->worker[k];
    for (int64_t i = 0; i < me->n; i++)
        for (int h = 0; h < HOT; h++)
            if (w->hot[h] == me->keys[i]) me->issued[me->reads][h] |= UINT64_C(1) << me->client.clock;
}

static void ask_turn(world *w, int32_t k, int what) {
    worker  *me = &w->worker[k];
    uint64_t now;
    pli_out *out = direct_enter(w->d, k, PLI_PORT_CLIENT, &now);
    SURE(w, pli_ask_turn(&me->client, now, me->table[me->reads], what, &me->ask, out, NULL) == PLAIT_OK);
    direct_leave(w->d, k, PLI_PORT_CLIENT);
    me->state = UPDATING;
}

/* What an inc does, as far as it can go without waiting. */
static void go_on_adding(world *w, int32_t k) {
    worker *me = &w->worker[k];
    int     t = me->reads;
    me->state = READY;
    for (int step = PLAIT_TURN; step <= PLAIT_SETTLE; step *= 2) {
        if (step == PLAIT_SEND && !me->accepted) {
            SURE(w, pli_pending_add(&me->table[t]->pending, me->n, me->keys, me->delta, 0, NULL) == PLAIT_OK);
            tell_inc(w, k, t);
            me->accepted = true;
            me->settling = (me->want & PLAIT_SETTLE) != 0;
            count_issued(w, k);
        }
        if (!(me->want & step)) continue;
        me->want &= ~step;
        if (step != PLAIT_TURN && me->table[t]->pending.touched) push(w, k, t, PLI_PUSH);
        if (step != PLAIT_SEND) {
            ask_turn(w, k, step == PLAIT_TURN ? PLAIT_TURN : PLAIT_SETTLE);
            return;
        }
    }
}

static void end_wait(world *w, int32_t k) {
    worker *me = &w->worker[k];
    finish_ask(w, k);
    pli_ask_abandon(&me->ask);
    if (me->accepted) me->settling = false;
    go_on_adding(w, k);
}

/* Adds 2^clock to the worker's column of a random set of rows that it has not yet added to in this clock. */
static void add(world *w, int32_t k, int t) {
    worker *me = &w->worker[k];
    int64_t clock = me->client.clock;
    if (me->table[t]->departs) return;
    if (me->state == READING && me->table[t]->policy.ops->worker.on_inc != NULL) return; /* it might wait */
    marks_clear(&w->spec[t], HOT * w->workers, me->delta);
    me->n = 0;
    for (int h = 0; h < HOT; h++) {
        if ((me->issued[t][h] >> clock & 1) || pick(w, 2) == 0) continue;
        mark_put(&w->spec[t], me->delta, me->n, k, clock);
        me->keys[me->n++] = w->hot[h];
    }
    SURE(w, pli_client_on_inc(&me->client, me->table[t], me->n, me->keys, me->delta, &me->want, NULL) == PLAIT_OK);
    me->accepted = false;
    if (me->state != READING) {
        me->reads = t;
        go_on_adding(w, k);
        return;
    }
    SURE(w, pli_pending_add(&me->table[t]->pending, me->n, me->keys, me->delta, 0, NULL) == PLAIT_OK);
    tell_inc(w, k, t);
    int reads = me->reads;
    me->reads = t;
    count_issued(w, k);
    me->reads = reads;
}

static void send_all(world *w, int32_t k, pli_kind kind, pli_ticket *ticket) {
    worker  *me = &w->worker[k];
    uint64_t now;
    pli_out *out = direct_enter(w->d, k, PLI_PORT_CLIENT, &now);
    if (ticket != NULL) pli_ticket_open(&me->client, ticket);
    SURE(w, pli_client_send_all(&me->client, now, kind, ticket, out, NULL) == PLAIT_OK);
    direct_leave(w->d, k, PLI_PORT_CLIENT);
}

/* A leaver keeps to the barrier; the dead do nothing any more. */
static void leave_or_die(world *w, int32_t k) {
    worker *me = &w->worker[k];
    for (int t = 0; t < w->tables; t++) {
        for (int h = 0; h < HOT; h++)
            me->issued[t][h] &= below(me->client.clock) | me->flushed[t][h]; /* what has not ended is dropped */
        pli_pending_clear(&me->table[t]->pending);
        me->table[t]->incs = 0;
    }
    if (me->dies) {
        me->state = DEAD;
        direct_member(w->d, PLI_MEMBER_DIED, k, &(plait_error){ .code = PLAIT_EPEER, .text = "killed by the test" });
    } else {
        send_all(w, k, PLI_LEAVE, NULL);
        pli_raise(sink_of(w), k, false, PLI_EVENT_LEAVE);
        me->client.left = true;
        send_all(w, k, PLI_BARRIER, &me->ticket);
        me->state = IN_BARRIER;
    }
}

static void send_kept(world *w, int32_t k) {
    for (int t = 0; t < w->tables; t++)
        if (w->worker[k].table[t]->kept) push(w, k, t, PLI_PUSH);
}

/* A server forgets what it knows of a worker's lists of keys, as one that is started anew: it has to ask for them. */
static void forget_lists(world *w, int32_t k) {
    pli_server       *server = &w->server[pli_random_below(&w->filters, (uint64_t)w->layout.servers)];
    pli_server_table *table = pli_server_table_of(server, pli_random_below(&w->filters, (uint64_t)w->tables));
    if (table == NULL || table->chain == NULL || pli_random_below(&w->filters, 3) > 0) return;
    const plait_filter_table described = table->chain[k].table;
    pli_chain_close(&table->chain[k]);
    SURE(w, pli_chain_open(&table->chain[k], &table->filters, &described, NULL) == PLAIT_OK);
}

static void end_clock(world *w, int32_t k) {
    worker *me = &w->worker[k];
    forget_lists(w, k);
    if (me->leaves_at == me->client.clock) {
        if (!me->dies) send_kept(w, k);
        leave_or_die(w, k);
        return;
    }
    push(w, k, -1, PLI_CLOCK);
    if (me->client.clock < CLOCKS) return;
    send_kept(w, k);
    send_all(w, k, PLI_BARRIER, &me->ticket);
    me->state = IN_BARRIER;
}

static void end_barrier(world *w, int32_t k) {
    worker  *me = &w->worker[k];
    uint64_t now;
    unlink_ticket(w, k, &me->ticket);
    direct_enter(w->d, k, PLI_PORT_CLIENT, &now);
    for (int t = 0; t < w->tables; t++) pli_cache_drop_fresh(me->table[t]);
    direct_leave(w->d, k, PLI_PORT_CLIENT);
    pli_ticket_free(&me->ticket);
    me->client.met = true;
    pli_raise(sink_of(w), k, false, PLI_EVENT_BARRIER);
    for (int t = 0; t < w->tables; t++) pli_cache_forget(me->table[t]);
    begin_read(w, k, 0, LAST_READ);
}

/* One act of worker k. false: it waits, or is at its end. */
static bool act(world *w, int32_t k) {
    worker *me = &w->worker[k];
    int     t = (int)pick(w, (uint64_t)w->tables);
    switch (me->state) {
    case READY:
        if (w->terms.blocks > 0 && me->leased <= me->client.clock) {
            begin_shares(w, k);
            return true;
        }
        switch (pick(w, 6)) {
        case 5: depart(w, k, t); break;
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
    case LEASING:
        if (!pli_ticket_done(&me->ticket)) return false;
        take_leases(w, k);
        return true;
    case UPDATING:
        if (!pli_ticket_done(&me->ask.ticket)) return false;
        end_wait(w, k);
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
        if (me->state == DONE) pli_raise(sink_of(w), k, false, PLI_EVENT_DONE);
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

static int64_t gets, moved, departed; /* of all schedules */

/* false: nobody can move, or for too long. */
static bool run_all(world *w) {
    for (int64_t step = 0; !all_done(w); step++) {
        if (step == 2000000) return false;
        bool    happened = pick(w, 3) != 0 ? direct_step(w->d) : false;
        int32_t first = (int32_t)pick(w, (uint64_t)w->workers);
        if (!happened) happened = act(w, first);
        for (int32_t i = 0; !happened && i < w->workers; i++) happened = act(w, (first + i) % w->workers);
        if (!happened) happened = direct_step(w->d);
        for (int t = 0; t < w->tables && !audit_judges; t++) check_bounds(w, t);
        if (!happened) return false;
    }
    return direct_run(w->d, 1000000); /* all is said: nobody sends for ever, to the dead for instance */
}

static void run_schedule(uint64_t seed) {
    static world w;
    open_world(&w, seed);
    bool ended = run_all(&w);
    if (!audit_judges) SURE(&w, ended); /* else: a hang */
    if (!audit_judges) check_machines(&w);
    if (!audit_judges) check_shares(&w);
    close_log(&w, ended);
    gets += w.gets;
    moved += w.moved;
    departed += w.departed;
    close_world(&w);
}

#include "sums.h"

static void test_schedules(void **unused) {
    (void)unused;
    const char *seed = getenv("PLAIT_SEED"), *count = getenv("PLAIT_SCHEDULES"), *judge = getenv("PLAIT_JUDGE");
    int64_t     live = pli_alloc_live(), n = SCHEDULES, from = 1;
    if (getenv("PLAIT_TEST_FULL") != NULL) n = SCHEDULES_FULL;
    if (count != NULL) n = atoll(count);
    audit_judges = judge != NULL && strcmp(judge, "audit") == 0;
    forced = marks_kind_of(getenv("PLAIT_COMBINE"));
    if (seed != NULL) from = atoll(seed), n = 1;
    for (int64_t i = 0; i < n; i++) ((from + i) % 4 == 0 ? run_sums : run_schedule)((uint64_t)(from + i));
    assert_int_equal(pli_alloc_live(), live);
    assert_true(audit_judges || gets >= n);
    assert_true(audit_judges || n < SCHEDULES || (moved > 0 && departed > n / 10));
}

/* Each way to combine, and counts, under each policy, over servers and by sums. */
static void test_kinds(void **unused) {
    (void)unused;
    const int64_t n = getenv("PLAIT_TEST_FULL") != NULL ? 2000 : 15;
    if (getenv("PLAIT_JUDGE") != NULL || getenv("PLAIT_SEED") != NULL) return;
    for (int k = 0; k < MARKS_KINDS; k++) {
        forced = &marks_kinds[k];
        for (forced_promise = 0; forced_promise < PROMISES; forced_promise++) {
            if (!marks_go_with(forced, promises[forced_promise].spec)) continue;
            for (int64_t i = 1; i <= n; i++) run_schedule((uint64_t)i);
            print_message("%s x %s: %d schedules\n", forced->name, promises[forced_promise].spec, (int)n);
        }
        for (int64_t i = 1; i <= n; i++) run_sums((uint64_t)i);
        print_message("%s x bsp, bounded-delay by sums: %d schedules\n", forced->name, (int)n);
    }
    forced = NULL;
    forced_promise = -1;
}

/* What is rare: rows come unasked while a push of the reader's waits for a list of keys that the server has forgotten.
 * They do not hold it, and are not to be taken for what does. */
static void test_rare(void **unused) {
    (void)unused;
    if (getenv("PLAIT_JUDGE") == NULL) run_schedule(2698);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_schedules), cmocka_unit_test(test_rare),
                                        cmocka_unit_test(test_kinds) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
