/* Seeded schedules of servers with two replicas (table/copies/replicas.h) over the direct driver: any one rank dies, at
 * any moment, and all that was acknowledged is there, once.
 *
 * The oracle shares nothing with the protocol. Worker v has column v of every row; what belongs to its rows of data in
 * clock c is 2^c in that column, on rows that (v, c) alone choose: so a value is the set of clocks that it contains.
 *     bsp     a get in clock c has exactly the clocks < c, of every worker, dead or not: the others stand in for the
 *             dead (each for some rows); and so has the end. That is the model of a run in which nobody died. Who
 *             stands in for one whose part was there after all, as others know by now who are a clock ahead, may read
 *             that clock; what it then adds is wrong, and must count nowhere: it adds 2^BAD.
 *     else    a get holds all that the reader had acknowledged, and what its last get had, and nothing that was not
 *             added; at the end each
 *             worker's acknowledged clocks are there, of the dead one's last clock all or less
 *     filters that round: at the end a value, with what workers keep of it (their chains' residuals), is that set: of
 *             those that live what they keep then, of the dead what they kept after the last push that counted. Under
 *             bsp all gets of a clock have the same.
 * Under downpour what the dead one had gathered since its last push is gone with it, and no more.
 * Sometimes it is only taken for dead and goes on for a while: what it says counts for nothing that is not safe
 * already. When all shards have two replicas again, another rank may die. Some workers may be spares: they have no rows
 * of their own, and no shards at first. A table under adam has no such sets: there a get in clock c has, to the bit,
 * what every other get in c has had, in a run of the same tables in which nobody dies, too; and where both replicas
 * live at the end, each has the other's rows and moments. A worker may leave early (it adds nothing from then on), and
 * take many messages for a clock. To some barriers each brings something: what is there is the same for all who hear of
 * it. Besides: nobody hangs, no machine fails. A failing seed is replayed by PLAIT_SEED=seed; PLAIT_TRACE=1 prints
 * events.
 *
 * Every schedule is judged a second time, from its event log alone, by the audit. PLAIT_JUDGE=audit leaves the verdict
 * to it: the test then ends with 4 when the audit refutes a log, and the oracle only ends a schedule that it finds
 * wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "direct/direct.h"
#include "table/client/client.h"
#include "table/copies/hosted.h"
#include "table/events.h"
#include "table/state/values.h"

#include "sure.h"
#include "witness.h"

enum {
    WORKERS_MAX = 4,
    RANKS_MAX = 8,
    TABLES_MAX = 2,
    ROWS = 520,
    HOT = 6, /* rows that are used */
    CLOCKS = 7,
    BAD = 20,
    AFTERWARDS = 500, /* events */
    MANY = 90,
    SCHEDULES = 2000,
    SCHEDULES_FULL = 20000,
    RARE = 8997 /* a new replica has all but the end of the clock under way when who serves dies, too */
};

typedef enum state {
    READY, READING, ADDING, ENDING, STANDING_IN, STANDING_READS, IN_BARRIER, LAST_READ, LEAVING, DONE, DEAD
} state;

typedef struct worker {
    pli_client        client;
    pli_client_table *table[TABLES_MAX];
    state             state;
    int64_t           clock; /* ended: acknowledged */
    int32_t           reads; /* table being read */
    pli_ask           ask;
    pli_ticket        ticket;
    bool              asking, waiting;
    uint8_t           covers[WORKERS_MAX]; /* stands in for */
    bool              in_vain; /* in whose stead it reads was there after all */
    bool              left;
    int32_t           again; /* so many more reads before the clock is ended */
    int32_t           item, phase, want; /* of what it adds in a clock: which, how far, what the policy wants */
    uint64_t          gathering; /* number of the barrier to which it has brought something; 0: to none */
    double            values[ROWS * WORKERS_MAX];
    uint64_t          seen[TABLES_MAX][HOT][WORKERS_MAX]; /* by its last get, unless under bsp */
    double            kept[CLOCKS + 1][TABLES_MAX][HOT][WORKERS_MAX]; /* by its filters, before the clock's push */
} worker;

typedef struct world {
    uint64_t   seed;
    direct    *d;
    pli_layout layout;
    int32_t    workers, tables, ranks;
    bool       bsp, dies; /* bsp: some tables apply at clocks */
    bool       stale[TABLES_MAX]; /* applies at once: all of them, or, beside bsp, the second */
    bool        dies_again; /* another, once all shards have two replicas again */
    bool        two_gone;   /* and one that is taken for dead had shards of the other's */
    int32_t    victim;
    int64_t    death_at;
    int64_t    second_at; /* of a worker that holds no shards; -1: nobody */
    int32_t    second;
    bool       second_stands_in; /* it dies soon after it has said that it stands in for the victim */
    pli_spec   spec[TABLES_MAX];
    uint64_t   hot[HOT];
    pli_server  server[RANKS_MAX]; /* by rank */
    pli_hosted backups[RANKS_MAX];
    worker     worker[WORKERS_MAX];
    bool       dead[RANKS_MAX], zombie[RANKS_MAX]; /* zombie: taken for dead, and alive */
    bool       suspects; /* the victim is only taken for dead */
    uint64_t   barriers; /* bit c: behind clock c - 1 */
    uint64_t   gathers;  /* bit n: to the n-th barrier each brings something, if it is not the last */
    uint64_t   strikes_at; /* the victim, who gathers, dies soon after the last has come to that one; 0: whenever */
    uint32_t   came[CLOCKS + 2]; /* to which these have come; 0: nobody has heard yet */
    int64_t    many_in;  /* that clock has many messages; -1: none */
    int32_t    leaver;   /* -1: nobody */
    int64_t    leaves_at;
    bool       opaque[TABLES_MAX]; /* adam, and filters that round: a value is no set */
    bool       rounds[TABLES_MAX]; /* filters that round, or keep rows back */
    int64_t    gathers_for[TABLES_MAX]; /* downpour's P; else 1 */
    witness    witness;
} world;

static bool    audit_judges;
static jmp_buf gave_up;

#undef fail_msg
#define fail_msg(...)                                                                                                  \
    do {                                                                                                               \
        if (audit_judges) longjmp(gave_up, 1);                                                                         \
        print_error("ERROR: " __VA_ARGS__);                                                                            \
        print_error("\n");                                                                                             \
        fail();                                                                                                        \
    } while (0)

/* Of opaque tables: what every get of a clock has, in both runs of a seed. */
static struct {
    bool   known[TABLES_MAX][CLOCKS + 1];
    double values[TABLES_MAX][CLOCKS + 1][HOT * WORKERS_MAX];
} model;

static uint64_t pick(world *w, uint64_t below) { return direct_pick(w->d, below); }

/* Does what belongs to worker v's rows in the clock touch hot row h of table t? */
static bool adds(const world *w, int t, int32_t v, int64_t clock, int h) {
    pli_random r = pli_random_at(w->seed, PLI_RANDOM_SCHEDULE, (uint64_t)(t * 1000 + v * 100 + clock), (uint64_t)h);
    if ((v == w->leaver && clock >= w->leaves_at) || v >= w->workers - w->layout.spares) return false;
    return pli_random_below(&r, 3) > 0;
}

/* Filters that round get rows which are not alike, so that something is rounded. */
static double share(const world *w, int t, int h) { return w->rounds[t] ? 1 + 0.37 * h : 1; }

static uint64_t expected(const world *w, int t, int32_t v, int64_t clocks, int h) {
    uint64_t bits = 0;
    for (int64_t c = 0; c < clocks; c++)
        if (adds(w, t, v, c, h)) bits |= UINT64_C(1) << c;
    return bits;
}

/* --- the witness -------------------------------------------------------------------------------------------------- */

static uint64_t time_in(void *user) { return direct_now(((world *)user)->d); }

static const pli_event_sink *sink_of(const world *w) { return witness_sink(&w->witness); }

static void listen_to_clients(world *w) {
    for (int32_t k = 0; k < w->workers; k++) {
        pli_client_listen(&w->worker[k].client, sink_of(w));
        pli_raise_job(sink_of(w), k, &w->layout);
    }
}

/* --- the world ---------------------------------------------------------------------------------------------------- */

static bool ticket_done(void *arg) { return pli_ticket_done(arg); }

/* Filters without loss go with all tables; others with a rule, and topk with async alone. */
static const char *draw_filter(world *w, bool ruled, bool async) {
    static const char *const exact[] = { "key-cache", "key-cache,key-delta", "zstd", "key-cache,zstd" };
    static const char *const lossy[] = { "fixed8", "key-cache,fp16", "onebit", "fixed16", "key-cache,topk:0.4" };
    if (pick(w, 3) > 0) return NULL;
    if (!ruled || pick(w, 2) == 0) return exact[pick(w, 4)];
    return lossy[pick(w, async ? 5 : 4)];
}

static bool is_lossy(const char *filter) {
    pli_filters_list list;
    return pli_filters_read(filter, NULL, &list, NULL) >= 0 &&
           (pli_filters_have(&list, PLAIT_ROUNDED) || pli_filters_have(&list, PLAIT_KEPT_BACK));
}

static void make_table(world *w, int32_t t) {
    enum { STALE = 10 };
    static const char *const stale[STALE] = { "async", "ssp:1", "ssp:3", "essp:1", "bounded-delay:1", "asp:1:3",
                                              "asp:3:4", "downpour:2:3", "vap:6", "sequential" };
    char                     name[8];
    plait_table_opts         opts;
    plait_table_opts_init(&opts);
    snprintf(name, sizeof name, "t%d", t);
    opts.name = name;
    opts.type = PLAIT_F64;
    uint64_t shape = pick(w, 3);
    opts.rows = shape == 2 ? 0 : ROWS;
    opts.keyed = shape == 1;
    opts.cols = w->workers;
    w->stale[t] = !w->bsp || (t == 1 && pick(w, 2) == 0);
    const bool     bsp = !w->stale[t];
    const char    *consistency = bsp ? "bsp" : stale[pick(w, STALE)];
    const uint64_t rule = bsp ? pick(w, 4) : strcmp(consistency, "async") == 0 ? pick(w, 3) : 0;
    if (rule >= 2) {
        opts.rule.name = rule == 2 ? "sgd" : "adam";
        opts.rule.learning_rate = rule == 2 ? 1 : 0.01;
    }
    opts.filter = draw_filter(w, rule == 2, !bsp);
    w->rounds[t] = is_lossy(opts.filter);
    opts.exact = bsp && !w->rounds[t] && pick(w, 2) == 0;
    w->opaque[t] = rule == 3 || (w->rounds[t] && bsp);
    w->gathers_for[t] = strncmp(consistency, "downpour", 8) == 0 ? 3 : 1;
    SURE(w, pli_spec_make(t, &opts, "ps", consistency, 1, NULL, &w->spec[t], NULL) == PLAIT_OK);
    w->spec[t].placement = pli_placement_make(w->spec[t].rows, pli_row_bytes(&w->spec[t]), false, w->layout.servers,
                                              w->layout.first_server);
}

static void create_tables(world *w) {
    uint64_t now;
    for (int32_t t = 0; t < w->tables; t++) {
        const pli_placement *placement = &w->spec[t].placement;
        pli_wire_create      create = { .job_hash = 5, .spec_hash = pli_spec_hash(&w->spec[t], NULL, NULL) };
        pli_ticket           ticket;
        pli_out             *out = direct_enter(w->d, 0, PLI_PORT_CLIENT, &now);
        pli_spec_encode(&w->spec[t], &create.spec);
        pli_ticket_open(&w->worker[0].client, &ticket);
        for (int32_t i = 0; i < placement->shards; i++) {
            const size_t names = (size_t)pli_pad8(strlen(w->spec[t].filter) + (w->spec[t].filter[0] != 0));
            pli_msg     *msg = pli_msg_new(sizeof create + names);
            memcpy(pli_msg_body(msg), &create, sizeof create);
            strncpy(pli_at(pli_msg_body(msg), sizeof create), w->spec[t].filter, names);
            SURE(w, pli_client_send(&w->worker[0].client, now, pli_placement_rank(placement, i) - placement->first_rank,
                                    PLI_CREATE, msg, &ticket, out, NULL) == PLAIT_OK);
        }
        direct_leave(w->d, 0, PLI_PORT_CLIENT);
        SURE(w, direct_run_until(w->d, ticket_done, &ticket, 1000000) && ticket.failure.code == 0);
        direct_enter(w->d, 0, PLI_PORT_CLIENT, &now);
        pli_ticket_unlink(&w->worker[0].client, &ticket);
        direct_leave(w->d, 0, PLI_PORT_CLIENT);
        pli_ticket_free(&ticket);
        for (int32_t k = 0; k < w->workers; k++) {
            SURE(w, pli_client_table_open(&w->spec[t], &w->layout, &w->worker[k].table[t], NULL) == PLAIT_OK);
            SURE(w, pli_client_add_table(&w->worker[k].client, w->worker[k].table[t], NULL) == PLAIT_OK);
            pli_raise_table(sink_of(w), k, &w->spec[t], PLI_WAY_SERVED);
        }
    }
}

/* Has the rank shards from the first, or at any time? */
static bool serves(const world *w, int32_t rank) {
    return rank >= w->layout.first_server && rank < w->layout.first_server + w->layout.servers;
}
static bool holds(const world *w, int32_t rank) {
    return serves(w, rank) || (rank < w->workers && rank >= w->workers - w->layout.spares);
}

/* lives: whatever the seed says, nobody dies. */
static void open_world(world *w, uint64_t seed, bool lives) {
    memset(w, 0, sizeof *w);
    w->seed = seed;
    pli_random  random = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 7, 0);
    direct_opts net = { .trace = getenv("PLAIT_TRACE") != NULL };
    if (pli_random_below(&random, 3) > 0) {
        net.delay = pli_random_f64(&random) * 0.3;
        net.early_wake = pli_random_f64(&random) * 0.2;
        net.twice = pli_random_f64(&random) * 0.2;
        net.reorder = pli_random_f64(&random) * 0.3;
        net.drop = pli_random_below(&random, 2) > 0 ? pli_random_f64(&random) * 0.2 : 0;
    }
    bool lossy = net.drop > 0 || net.reorder > 0;
    w->workers = 2 + (int32_t)pli_random_below(&random, WORKERS_MAX - 1);
    int32_t apart = pli_random_below(&random, 2) > 0 ? 2 + (int32_t)pli_random_below(&random, WORKERS_MAX - 1) : 0;
    w->ranks = w->workers + apart;
    const int32_t spares =
        pli_random_below(&random, 3) == 0 ? 1 + (int32_t)pli_random_below(&random, (uint64_t)w->workers - 1) : 0;
    w->layout = (pli_layout){ .workers = w->workers,
                              .servers = apart > 0 ? apart : w->workers - spares,
                              .first_server = apart > 0 ? w->workers : 0,
                              .job_hash = 5,
                              .spares = spares,
                              .resend_after_ns = lossy ? 2000000 : 0,
                              .replicas = 2 };
    w->d = direct_new(seed, w->ranks, &net);
    w->bsp = pick(w, 3) > 0;
    w->leaver = -1;
    for (int i = 0; i < HOT; i++) w->hot[i] = (uint64_t)(i * (ROWS / HOT)) + pick(w, ROWS / HOT);
    SURE(w, witness_open(&w->witness, w->ranks, time_in, w));
    for (int32_t rank = 0; rank < w->ranks; rank++) {
        if (serves(w, rank)) {
            SURE(w, pli_server_open(&w->server[rank], &w->layout, rank, 0, 1, NULL) == PLAIT_OK);
            w->server[rank].sink = sink_of(w);
            pli_raise_server_job(&w->server[rank]);
            direct_add(w->d, rank, PLI_PORT_SERVER, &pli_server_ops, &w->server[rank]);
        }
        if (!holds(w, rank)) continue;
        SURE(w, pli_hosted_open(&w->backups[rank], &w->layout, rank, 0, 1, sink_of(w), NULL) == PLAIT_OK);
        direct_add(w->d, rank, PLI_PORT_REPLICA, &pli_hosted_ops, &w->backups[rank]);
    }
    for (int32_t k = 0; k < w->workers; k++) {
        SURE(w, pli_client_open(&w->worker[k].client, &w->layout, k, 0, 1, NULL) == PLAIT_OK);
        direct_add(w->d, k, PLI_PORT_CLIENT, &pli_client_ops, &w->worker[k].client);
    }
    listen_to_clients(w);
    w->tables = 1 + (int32_t)pick(w, TABLES_MAX);
    for (int32_t t = 0; t < w->tables; t++) make_table(w, t);
    create_tables(w);
    w->dies = pick(w, 8) > 0 && !lives;
    w->dies_again = pick(w, 2) == 0;
    w->barriers = pick(w, UINT64_C(1) << CLOCKS) & pick(w, UINT64_C(1) << CLOCKS);
    w->many_in = pick(w, 16) == 0 ? (int64_t)pick(w, CLOCKS) : -1;
    w->suspects = pick(w, 4) == 0;
    w->victim = (int32_t)pick(w, (uint64_t)w->ranks);
    w->death_at = direct_events(w->d) + (int64_t)pick(w, lossy ? 1500 : 500);
    w->second = (int32_t)pick(w, (uint64_t)w->workers);
    w->second_at = -1;
    if (apart > 0 && w->workers > 2 && w->second != w->victim && pick(w, 2) == 0) {
        w->second_stands_in = pick(w, 2) == 0;
        w->second_at = w->second_stands_in ? INT64_MAX : direct_events(w->d) + (int64_t)pick(w, 500);
        if (w->second_stands_in) w->victim = (w->second + 1) % w->workers;
    }
    /* Under bsp a dead one's rows must not fall to one who has left: of workers none but the leaver dies. */
    if (pick(w, 3) == 0 && (!w->bsp || w->victim >= w->workers)) {
        w->leaver = w->second_at >= 0 ? w->second : (int32_t)pick(w, (uint64_t)w->workers);
        w->leaves_at = 1 + (int64_t)pick(w, CLOCKS - 1);
        w->barriers &= (UINT64_C(1) << w->leaves_at) - 1; /* where it does not come to all */
    }
    w->gathers = pick(w, UINT64_C(1) << (CLOCKS + 2)) & ~UINT64_C(1);
    if (pick(w, 4) > 0 || w->second_stands_in || w->leaver >= 0 || w->barriers == 0) return;
    w->strikes_at = 1 + pick(w, 3);
    w->gathers |= UINT64_C(1) << w->strikes_at;
    w->victim = w->layout.first_server;
    w->death_at = INT64_MAX;
}

/* NULL: nothing has come for one yet. */
static const pli_server *copy_at(const world *w, int32_t s, int32_t place) {
    const int32_t rank = pli_replica_rank(&w->layout, s, place);
    return place == 0 ? &w->server[rank] : w->backups[rank].replica[s];
}

/* Of the replicas that live. NULL: all died. */
static const pli_server *who_serves(const world *w, int32_t s) {
    for (int32_t p = 0; p < pli_replica_places(&w->layout); p++) {
        const pli_server *replica = copy_at(w, s, p);
        if (replica != NULL && !w->dead[replica->rank] && replica->replicas->serves) return replica;
    }
    return NULL;
}

/* The other replica, if it lives. */
static const pli_server *other_of(const world *w, const pli_server *replica) {
    const pli_replicas *c = replica->replicas;
    return c->other < 0 || w->dead[c->other] ? NULL : copy_at(w, replica->number, c->other_place);
}

/* May any rank die? */
static bool all_are_double(const world *w) {
    for (int32_t s = 0; s < w->layout.servers; s++) {
        const pli_server *replica = who_serves(w, s), *other = replica == NULL ? NULL : other_of(w, replica);
        if (other == NULL || !other->replicas->whole) return false;
    }
    return true;
}

static void tell(const world *w) {
    for (int32_t k = 0; k < w->workers; k++)
        print_message("worker %d: state %d clock %lld\n", k, w->worker[k].state, (long long)w->worker[k].clock);
    for (int32_t s = 0; s < w->layout.servers; s++)
        for (int32_t p = 0; p < pli_replica_places(&w->layout); p++) {
            const pli_server *replica = copy_at(w, s, p);
            if (replica == NULL) continue;
            const pli_replicas *c = replica->replicas;
            print_message("shards %d place %d rank %d%s: serves %d whole %d other %d applied %lld sum %d deaths %d "
                          "slowest %lld unconfirmed %d\n",
                          s, p, replica->rank, w->dead[replica->rank] ? " (dead)" : "", c->serves, c->whole, c->other,
                          (long long)replica->applied, c->sum != NULL, c->deaths, (long long)replica->slowest,
                          c->first != NULL);
        }
}

static bool same_rows(const pli_store *a, const pli_store *b) {
    const pli_spec *spec = a->spec;
    const int64_t   row_bytes = pli_row_bytes(spec);
    if (a->rows != b->rows || a->units != b->units) return false;
    for (int64_t r = 0; r < a->rows; r++) {
        const pli_chunk *x = &a->chunk[r >> a->shift], *y = &b->chunk[r >> b->shift];
        const int64_t    at = (r & a->mask) * row_bytes;
        if (memcmp(pli_at_const(x->values, at), pli_at_const(y->values, at), (size_t)row_bytes) != 0) return false;
        for (int i = 0; spec->ruled && i < spec->rule.ops->slots; i++) {
            const void *of_x = pli_at_const(x->slot[i], at), *of_y = pli_at_const(y->slot[i], at);
            if (memcmp(of_x, of_y, (size_t)row_bytes) != 0) return false;
        }
    }
    return true;
}

/* Has the other replica, where it lives, confirmed all of the log? */
static bool all_is_logged(void *arg) {
    const world *w = arg;
    for (int32_t s = 0; s < w->layout.servers; s++) {
        const pli_server *replica = who_serves(w, s);
        if (replica != NULL && other_of(w, replica) != NULL && replica->replicas->first != NULL) return false;
    }
    return true;
}

/* Where both replicas of shards live, they are the same, now that all has arrived; and some of it again, where the
 * network loses: there who is gone is told for ever. Where nobody is, all becomes quiet. */
static void compare_copies(world *w) {
    if (!direct_run_until(w->d, all_is_logged, w, 200000)) tell(w);
    SURE(w, all_is_logged(w));
    const bool ends = !w->dies && w->layout.first_server > 0; /* ranks with shards are told that others have ended */
    SURE(w, direct_run(w->d, ends ? 100000 : AFTERWARDS) || !ends);
    SURE(w, all_is_logged(w));
    for (int32_t s = 0; s < w->layout.servers; s++) {
        const pli_server *a = who_serves(w, s), *b = a == NULL ? NULL : other_of(w, a);
        if (b == NULL) continue; /* or who would serve has ended, and hears nothing any more */
        const bool clocks = pli_server_has_clocks(a);
        if (!b->replicas->whole || b->replicas->serves || (clocks && a->applied != b->applied)) tell(w);
        SURE(w, b->replicas->whole && !b->replicas->serves && (a->applied == b->applied || !clocks));
        for (int64_t t = 0; t < a->tables; t++) {
            if (a->table[t] == NULL) continue;
            SURE(w, b->table[t] != NULL && same_rows(&a->table[t]->shard.store, &b->table[t]->shard.store));
        }
    }
}

static void close_world(world *w) {
    for (int32_t k = 0; k < w->workers; k++) {
        worker *me = &w->worker[k];
        if (me->asking) pli_ask_abandon(&me->ask);
        if (me->waiting) pli_ticket_free(&me->ticket);
        for (int32_t t = 0; t < w->tables; t++) pli_client_table_close(&me->table[t]);
        pli_client_close(&me->client);
    }
    for (int32_t r = 0; r < w->ranks; r++) {
        if (serves(w, r)) pli_server_close(&w->server[r]);
        pli_hosted_close(&w->backups[r]);
    }
    direct_free(&w->d);
}

/* --- a worker's steps --------------------------------------------------------------------------------------------- */

static pli_out *enter(world *w, int32_t k, uint64_t *now) { return direct_enter(w->d, k, PLI_PORT_CLIENT, now); }
static void     leave(world *w, int32_t k) { direct_leave(w->d, k, PLI_PORT_CLIENT); }

static void begin_read(world *w, int32_t k) {
    worker     *me = &w->worker[k];
    uint64_t    now;
    pli_out    *out = enter(w, k, &now);
    plait_status status;
    if (w->spec[me->reads].rows > 0 && pick(w, 2) == 0)
        status = pli_ask_range(&me->client, now, me->table[me->reads], 0, ROWS, me->values, &me->ask, out, NULL);
    else
        status = pli_ask_keys(&me->client, now, me->table[me->reads], HOT, w->hot, me->values, &me->ask, out, NULL);
    leave(w, k);
    SURE(w, status == PLAIT_OK || w->zombie[k]);
    if (status < 0)
        me->state = DEAD; /* it has heard that it is taken for dead */
    else me->asking = true;
}

static void tell_value(const world *w, int32_t k, int h, int32_t v, uint64_t seen, uint64_t wanted) {
    const worker   *me = &w->worker[k];
    const pli_spec *spec = &w->spec[me->reads];
    tell(w);
    print_message("worker %d clock %d t %d %s%s h %d v %d: %llx not %llx\n", k, (int)me->clock, me->reads,
                  spec->consistency, spec->ruled ? " ruled" : "", h, v, (unsigned long long)seen,
                  (unsigned long long)wanted);
}

/* A get of an opaque table. */
static void check_opaque(world *w, int32_t k, int64_t clock) {
    worker *me = &w->worker[k];
    double  seen[HOT * WORKERS_MAX] = { 0 };
    int     t = me->reads;
    size_t  row = (size_t)w->workers * sizeof *seen;
    for (int h = 0; h < HOT; h++)
        memcpy(seen + h * w->workers, me->values + (me->ask.by_key ? h : (int64_t)w->hot[h]) * w->workers, row);
    if (!model.known[t][clock]) memcpy(model.values[t][clock], seen, sizeof seen);
    model.known[t][clock] = true;
    if (memcmp(model.values[t][clock], seen, sizeof seen) == 0) return;
    me->in_vain = me->in_vain || me->state == STANDING_READS;
    if (me->state == STANDING_READS) return;
    tell(w);
    print_message("worker %d clock %d t %d\n", k, (int)clock, t);
    for (int i = 0; i < HOT * w->workers; i++) print_message("%d: %a not %a\n", i, seen[i], model.values[t][clock][i]);
    SURE(w, memcmp(model.values[t][clock], seen, sizeof seen) == 0);
}

static void check_exactly(world *w, int32_t k, int64_t clock, int h, int32_t v, uint64_t seen) {
    worker        *me = &w->worker[k];
    const uint64_t wanted = expected(w, me->reads, v, clock, h);
    if (seen == wanted) return;
    if (me->state == STANDING_READS && seen == expected(w, me->reads, v, clock + 1, h)) {
        me->in_vain = true;
        return;
    }
    tell_value(w, k, h, v, seen, wanted);
    SURE(w, seen == wanted);
}

static void check_bounds(world *w, int32_t k, bool last, int h, int32_t v, uint64_t seen) {
    const int      t = w->worker[k].reads;
    const uint64_t most = expected(w, t, v, CLOCKS, h);
    const int64_t  ended = w->worker[v].clock, lost = w->dead[v] ? ended % w->gathers_for[t] : 0;
    const uint64_t least = expected(w, t, v, v == k ? ended : last ? ended - lost : 0, h);
    uint64_t      *before = &w->worker[k].seen[t][h][v];
    if ((seen & ~most) != 0 || ((least | *before) & ~seen) != 0) tell_value(w, k, h, v, seen, least | *before);
    SURE(w, (seen & ~most) == 0);
    SURE(w, (least & ~seen) == 0);
    SURE(w, (*before & ~seen) == 0);
    *before = seen;
}

/* What worker k's filters keep of hot row h, in column v. A filter that rounds a row rounds all its columns. */
static double kept_of(world *w, int t, int32_t k, int h, int32_t v) {
    const pli_client_table *table = w->worker[k].table[t];
    double                  row[WORKERS_MAX] = { 0 };
    plait_part              part = { .keys = &w->hot[h], .n = 1, .cols = w->workers, .type = PLAIT_F64 };
    uint16_t                shard;
    pli_placement_shards(&table->spec.placement, 1, &w->hot[h], &shard);
    pli_residual *rest = &table->chain[shard].residual;
    part.first = (int64_t)w->hot[h];
    if (!rest->keyed) part.keys = NULL;
    pli_residual_add_to(rest, &part, row);
    return row[v];
}

/* The worker is about to push what it has added in its clock. */
static void note_kept(world *w, int32_t k) {
    worker *me = &w->worker[k];
    for (int t = 0; t < w->tables; t++)
        for (int h = 0; w->rounds[t] && h < HOT; h++)
            for (int32_t v = 0; v < w->workers; v++) me->kept[me->clock][t][h][v] = kept_of(w, t, k, h, v);
}

/* Is there, of each dead worker, a clock after which nothing of it counted any more, so that what it kept then is all
 * that is missing? */
static bool explains(world *w, int t, int h, int32_t v, int32_t from, double off) {
    while (from < w->workers && !w->dead[from]) from++;
    if (from == w->workers) return off < 1e-6 && off > -1e-6;
    if (explains(w, t, h, v, from + 1, off + kept_of(w, t, from, h, v))) return true;
    for (int64_t c = 0; c <= CLOCKS; c++)
        if (explains(w, t, h, v, from + 1, off + w->worker[from].kept[c][t][h][v])) return true;
    return false;
}

/* Once all have ended: what was sent, with what the living keep, and the dead had kept, is all that was added. */
static void check_rounded(world *w, int32_t k) {
    const int t = w->worker[k].reads;
    for (int h = 0; h < HOT; h++)
        for (int32_t v = 0; v < w->workers; v++) {
            const int64_t row = w->worker[k].ask.by_key ? h : (int64_t)w->hot[h];
            double        off = -w->worker[k].values[row * w->workers + v];
            off -= (double)expected(w, t, v, w->stale[t] ? w->worker[v].clock : CLOCKS, h) * share(w, t, h);
            for (int32_t i = 0; i < w->workers; i++) off += w->dead[i] ? 0 : kept_of(w, t, i, h, v);
            if ((w->dead[v] && w->stale[t]) || explains(w, t, h, v, 0, off)) continue;
            tell(w);
            print_message("worker %d t %d %s h %d v %d: off by %g\n", k, t, w->spec[t].filter, h, v, off);
            SURE(w, off == 0);
        }
}

static void check_read(world *w, int32_t k, bool last) {
    worker       *me = &w->worker[k];
    const int64_t clock = last ? CLOCKS : me->clock;
    bool          ruled = w->spec[me->reads].ruled;
    if (w->opaque[me->reads]) check_opaque(w, k, clock);
    if (w->rounds[me->reads] && last) check_rounded(w, k);
    if (w->opaque[me->reads] || w->rounds[me->reads]) return;
    for (int h = 0; h < HOT; h++)
        for (int32_t v = 0; v < w->workers; v++) {
            double   value = me->values[(me->ask.by_key ? h : (int64_t)w->hot[h]) * w->workers + v];
            uint64_t seen = (uint64_t)(ruled ? -value : value);
            SURE(w, (double)seen == (ruled ? -value : value));
            if (!w->stale[me->reads]) check_exactly(w, k, clock, h, v, seen);
            else check_bounds(w, k, last, h, v, seen);
        }
}

static bool end_read(world *w, int32_t k, bool last) {
    worker  *me = &w->worker[k];
    uint64_t now;
    if (!pli_ticket_done(&me->ask.ticket)) return false;
    SURE(w, w->zombie[k] || me->ask.ticket.failure.code == 0);
    enter(w, k, &now);
    pli_ticket_unlink(&me->client, &me->ask.ticket);
    leave(w, k);
    SURE(w, pli_ask_finish(&me->client, &me->ask, NULL) == PLAIT_OK);
    if (!w->zombie[k]) check_read(w, k, last);
    pli_ask_abandon(&me->ask);
    me->asking = false;
    me->reads++;
    return true;
}

/* The worker that computes what belongs to v's rows, of hot row h. */
static int32_t holder(const world *w, int32_t k, int32_t v, int h, const uint8_t *dead) {
    const pli_client one = { .layout = w->layout, .replaced = (uint8_t *)(uintptr_t)dead,
                             .dead = w->worker[k].client.dead };
    return pli_client_holder(&one, v, (uint64_t)h, false);
}

/* The hot rows of worker v that worker k holds when `now` are dead, and did not hold when `before` were (NULL: nobody
 * has computed). Returns how many. */
static int64_t held(const world *w, int32_t k, int32_t v, int t, const uint8_t *before, const uint8_t *now,
                    uint64_t *keys, double *delta) {
    const worker *me = &w->worker[k];
    const double  bits = (double)(UINT64_C(1) << (me->in_vain ? BAD : me->clock));
    int64_t       n = 0;
    memset(delta, 0, HOT * WORKERS_MAX * sizeof *delta);
    for (int h = 0; h < HOT; h++) {
        if (!adds(w, t, v, me->clock, h) || holder(w, k, v, h, now) != k) continue;
        if (before != NULL && holder(w, k, v, h, before) == k) continue;
        delta[n * w->workers + v] = bits * share(w, t, h);
        keys[n++] = w->hot[h];
    }
    return n;
}

static void add_update(world *w, int32_t k, int t, int64_t n, const uint64_t *keys, const double *delta) {
    worker *me = &w->worker[k];
    SURE(w, pli_pending_add(&me->table[t]->pending, n, keys, delta, 0, NULL) == PLAIT_OK);
    me->table[t]->incs++;
    pli_raise_inc(sink_of(w), k, &w->spec[t], n, keys, 0, delta);
}

/* Where updates apply at once nobody stands in. */
static void add_held(world *w, int32_t k, const uint8_t *before, const uint8_t *now) {
    for (int32_t v = 0; v < w->workers; v++)
        for (int t = 0; t < w->tables; t++) {
            double   delta[HOT * WORKERS_MAX];
            uint64_t keys[HOT];
            const int64_t n = w->stale[t] ? 0 : held(w, k, v, t, before, now, keys, delta);
            if (n > 0 || (v == k && !w->stale[t])) add_update(w, k, t, n, keys, delta);
        }
}

/* To who is only taken for dead all that serve may die. */
static void send_push(world *w, int32_t k, pli_client_table *table, pli_kind kind) {
    worker  *me = &w->worker[k];
    uint64_t now;
    SURE(w, pli_client_build_push(&me->client, table, kind, NULL) == PLAIT_OK);
    pli_out           *out = enter(w, k, &now);
    const plait_status status = pli_client_send_push(&me->client, now, kind, out, NULL);
    leave(w, k);
    SURE(w, status == PLAIT_OK || w->zombie[k]);
    if (status < 0) me->state = DEAD;
}

/* Asks the servers for a turn, or until they have applied what was sent. */
static void ask_turn(world *w, int32_t k, pli_client_table *table, int what) {
    uint64_t now;
    if (what == PLAIT_SETTLE && table->pending.touched) send_push(w, k, table, PLI_PUSH);
    if (w->worker[k].state == DEAD) return;
    pli_out *out = enter(w, k, &now);
    SURE(w, pli_ask_turn(&w->worker[k].client, now, table, what, &w->worker[k].ask, out, NULL) == PLAIT_OK);
    leave(w, k);
    w->worker[k].asking = true;
}

static bool turn_has_come(world *w, int32_t k) {
    worker  *me = &w->worker[k];
    uint64_t now;
    if (!me->asking) return true;
    if (!pli_ticket_done(&me->ask.ticket)) return false;
    SURE(w, w->zombie[k] || me->ask.ticket.failure.code == 0);
    enter(w, k, &now);
    pli_ticket_unlink(&me->client, &me->ask.ticket);
    leave(w, k);
    SURE(w, pli_ask_finish(&me->client, &me->ask, NULL) == PLAIT_OK);
    pli_ask_abandon(&me->ask);
    me->asking = false;
    return true;
}

/* Adds what the worker holds, one update after the other, each as its policy wants it (served_inc). false: it waits.
 * *done_out: all is added. */
static bool step_adding(world *w, int32_t k, bool *done_out) {
    worker           *me = &w->worker[k];
    const int         t = me->item / w->workers;
    const int32_t     v = me->item % w->workers;
    double            delta[HOT * WORKERS_MAX];
    uint64_t          keys[HOT];
    *done_out = false;
    if (!turn_has_come(w, k)) return false;
    if (t == w->tables) {
        me->item = me->phase = 0;
        *done_out = true;
        return true;
    }
    pli_client_table *table = me->table[t];
    /* Items of one that was ahead may be done twice where updates apply at once (docs/failures.md). */
    const int64_t     n = held(w, k, v, t, NULL, w->stale[t] ? NULL : me->covers, keys, delta);
    if (n == 0 && v != k) me->phase = 4;
    if (me->phase == 0) SURE(w, pli_client_on_inc(&me->client, table, n, keys, delta, &me->want, NULL) == PLAIT_OK);
    if (me->phase == 0 && (me->want & PLAIT_TURN)) ask_turn(w, k, table, PLAIT_TURN);
    if (me->phase == 1 && (me->want & PLAIT_SETTLE_FIRST)) ask_turn(w, k, table, PLAIT_SETTLE);
    if (me->phase == 2) add_update(w, k, t, n, keys, delta);
    if (me->phase == 3 && (me->want & PLAIT_SETTLE)) ask_turn(w, k, table, PLAIT_SETTLE);
    me->item += me->phase == 4;
    me->phase = (me->phase + 1) % 5;
    return true;
}

static void send_kept(world *w, int32_t k) {
    for (int t = 0; t < w->tables; t++)
        if (w->worker[k].table[t]->kept && w->worker[k].state != DEAD)
            send_push(w, k, w->worker[k].table[t], PLI_PUSH);
}

static void begin_clock_end(world *w, int32_t k) {
    worker *me = &w->worker[k];
    me->state = ENDING;
    note_kept(w, k);
    if (pick(w, 4) == 0) send_push(w, k, me->table[0], PLI_PUSH); /* some of it leaves early */
    if (me->state == ENDING) send_push(w, k, NULL, PLI_CLOCK);
}

static bool has_ended(const worker *me) { return me->clock == CLOCKS || me->left; }

/* What worker v brings to a barrier: v + 1 times the same. */
static uint64_t brought(int32_t v, uint64_t number) { return number << 8 | (uint64_t)v; }

static plait_status send_gather(worker *me, int32_t k, uint64_t now, pli_out *out) {
    uint64_t mine[WORKERS_MAX];
    me->gathering = me->client.barriers + 1;
    for (int32_t i = 0; i <= k; i++) mine[i] = brought(k, me->gathering);
    return pli_client_send_gather(&me->client, now, mine, (size_t)(k + 1) * sizeof *mine, &me->ticket, out, NULL);
}

static void ask_all(world *w, int32_t k, pli_kind kind) {
    worker      *me = &w->worker[k];
    const bool   meets = kind == PLI_BARRIER;
    const bool   gathers = meets && !has_ended(me) && (w->gathers >> (me->client.barriers + 1) & 1);
    uint64_t     now;
    plait_status status;
    pli_out     *out = enter(w, k, &now);
    pli_ticket_open(&me->client, &me->ticket);
    me->waiting = true;
    if (gathers && me->client.barriers + 1 == w->strikes_at) w->death_at = direct_events(w->d) + (int64_t)pick(w, 40);
    if (gathers) status = send_gather(me, k, now, out);
    else status = pli_client_send_all(&me->client, now, kind, &me->ticket, out, NULL);
    SURE(w, status == PLAIT_OK);
    leave(w, k);
}

/* Each has come with what it has brought, or has died; as all others hear. */
static void check_gathered(world *w, int32_t k) {
    worker         *me = &w->worker[k];
    const pli_msg  *reply = me->ticket.replies;
    uint32_t        came = 0;
    SURE(w, reply != NULL && reply->head.body_bytes >= (uint64_t)w->workers * sizeof(uint64_t));
    const uint64_t *bytes = pli_msg_body(reply), *at = bytes + w->workers;
    for (int32_t v = 0; v < w->workers; v++) {
        SURE(w, bytes[v] == PLI_GONE ? w->dead[v] : bytes[v] == (uint64_t)(v + 1) * sizeof *at);
        for (int32_t i = 0; bytes[v] != PLI_GONE && i <= v; i++) SURE(w, *at++ == brought(v, me->gathering));
        came |= (uint32_t)(bytes[v] != PLI_GONE) << v;
    }
    SURE(w, (const uint64_t *)pli_at_const(bytes, (int64_t)reply->head.body_bytes) == at);
    SURE(w, (came >> k & 1) && (w->came[me->gathering] == 0 || w->came[me->gathering] == came));
    w->came[me->gathering] = came;
}

static bool answered(world *w, int32_t k) {
    worker  *me = &w->worker[k];
    uint64_t now;
    if (!pli_ticket_done(&me->ticket)) return false;
    SURE(w, me->ticket.failure.code == 0);
    if (me->gathering > 0 && !w->zombie[k]) check_gathered(w, k);
    me->gathering = 0;
    enter(w, k, &now);
    pli_ticket_unlink(&me->client, &me->ticket);
    leave(w, k);
    pli_ticket_free(&me->ticket);
    me->waiting = false;
    return true;
}

static void enter_clock(world *w, worker *me) {
    me->again = me->clock == w->many_in ? MANY : 0;
    me->reads = 0;
    me->state = READY;
}

/* As after every barrier. */
static void forget_copies(world *w, int32_t k) {
    uint64_t now;
    enter(w, k, &now);
    for (int t = 0; t < w->tables; t++) {
        pli_cache_forget(w->worker[k].table[t]);
        pli_cache_drop_fresh(w->worker[k].table[t]);
    }
    leave(w, k);
}

static void leave_early(world *w, int32_t k) {
    worker  *me = &w->worker[k];
    uint64_t now;
    pli_out *out = enter(w, k, &now);
    SURE(w, pli_client_send_all(&me->client, now, PLI_LEAVE, NULL, out, NULL) == PLAIT_OK);
    me->client.left = me->left = true;
    leave(w, k);
    pli_raise(sink_of(w), k, false, PLI_EVENT_LEAVE);
}

static bool end_clock(world *w, int32_t k) {
    worker  *me = &w->worker[k];
    uint64_t now;
    if (pli_client_is_safe(&me->client)) {
        enter(w, k, &now);
        pli_client_end_clock(&me->client);
        leave(w, k);
        me->clock++;
        enter_clock(w, me);
        if (k == w->leaver && me->clock == w->leaves_at) {
            send_kept(w, k);
            leave_early(w, k);
        }
        if (!has_ended(me) && !(w->barriers >> me->clock & 1)) return true;
        send_kept(w, k);
        if (me->state == DEAD) return true;
        ask_all(w, k, PLI_BARRIER);
        me->state = IN_BARRIER;
        return true;
    }
    if (!pli_client_must_stand_in(&me->client)) return false;
    enter(w, k, &now);
    pli_client_begin_standing_in(&me->client, NULL);
    leave(w, k);
    me->in_vain = false;
    me->reads = 0;
    me->state = STANDING_IN;
    return true;
}

static void send_stand_in(world *w, int32_t k) {
    worker  *me = &w->worker[k];
    uint8_t  before[WORKERS_MAX];
    uint64_t now;
    memcpy(before, me->covers, sizeof before);
    memcpy(me->covers, me->client.next, (size_t)w->workers);
    add_held(w, k, before, me->covers);
    me->in_vain = false;
    SURE(w, pli_client_build_push(&me->client, NULL, PLI_PUSH, NULL) == PLAIT_OK);
    pli_out           *out = enter(w, k, &now);
    const plait_status status = pli_client_send_view(&me->client, now, out, NULL);
    leave(w, k);
    SURE(w, status == PLAIT_OK || w->zombie[k]);
    me->state = status < 0 ? DEAD : ENDING;
    if (k == w->second && w->second_stands_in) w->second_at = direct_events(w->d) + (int64_t)pick(w, 50);
}

/* false: it waits */
static bool step_worker(world *w, int32_t k) {
    worker *me = &w->worker[k];
    bool    done;
    switch (me->state) {
    case READY:
        me->state = READING;
        begin_read(w, k);
        return true;
    case READING:
        if (!end_read(w, k, false)) return false;
        me->state = me->reads < w->tables ? READY : ADDING;
        if (me->again-- > 0) { /* once more, from the server */
            forget_copies(w, k);
            me->reads--;
            me->state = READY;
        }
        return true;
    case ADDING:
        if (!step_adding(w, k, &done)) return false;
        if (done) begin_clock_end(w, k);
        return true;
    case ENDING: return end_clock(w, k);
    case STANDING_IN:
        me->state = STANDING_READS;
        begin_read(w, k);
        return true;
    case STANDING_READS:
        if (!end_read(w, k, false)) return false;
        me->state = STANDING_IN;
        if (me->reads == w->tables) send_stand_in(w, k);
        return true;
    case IN_BARRIER:
        done = me->gathering == 0; /* else the first server alone was asked */
        if (!answered(w, k)) return false;
        if (done) pli_raise(sink_of(w), k, false, PLI_EVENT_BARRIER);
        forget_copies(w, k);
        me->reads = 0;
        me->client.met = has_ended(me); /* what it reads is not rounded */
        me->state = has_ended(me) ? LAST_READ : READY;
        return true;
    case LAST_READ:
        if (!me->asking) {
            if (me->reads == w->tables) {
                ask_all(w, k, PLI_BYE);
                me->state = LEAVING;
                return true;
            }
            begin_read(w, k);
            return true;
        }
        return end_read(w, k, true);
    case LEAVING:
        if (!answered(w, k)) return false;
        me->state = DONE;
        pli_raise(sink_of(w), k, false, PLI_EVENT_DONE);
        direct_member(w->d, PLI_MEMBER_LEFT, k, NULL);
        return true;
    case DONE:
    case DEAD: break;
    }
    return false;
}

static void kill_rank(world *w, int32_t rank, bool suspected) {
    plait_error why = { .code = PLAIT_EPEER, .rank = rank, .text = "killed" };
    if (w->dead[rank] || (rank < w->workers && w->worker[rank].state == DONE)) return;
    w->dead[rank] = true;
    w->zombie[rank] = suspected;
    if (suspected)
        direct_suspect(w->d, rank, &why);
    else direct_member(w->d, PLI_MEMBER_DIED, rank, &why);
    if (rank < w->workers && !suspected) w->worker[rank].state = DEAD;
}

static bool is_at_work(const world *w, int32_t k) {
    return !w->dead[k] && w->worker[k].state != DONE && w->worker[k].state != DEAD;
}

/* Any rank, while a worker is left, once nothing can be lost by it. */
/* Does one that is taken for dead and lives hold shards that the rank holds, too? */
static bool shares_with_zombie(const world *w, int32_t rank) {
    for (int32_t s = 0; s < w->layout.servers; s++) {
        bool here = false, zombie = false;
        for (int32_t p = 0; p < pli_replica_places(&w->layout); p++) {
            const pli_server *replica = copy_at(w, s, p);
            if (replica == NULL) continue;
            here = here || replica->rank == rank;
            zombie = zombie || w->zombie[replica->rank];
        }
        if (here && zombie) return true;
    }
    return false;
}

static void kill_another(world *w) {
    const int32_t rank = (int32_t)pick(w, (uint64_t)w->ranks);
    int32_t       left = 0;
    for (int32_t k = 0; k < w->workers; k++) left += k != rank && is_at_work(w, k);
    if (pick(w, 20) > 0 || w->dead[rank] || left == 0 || !all_are_double(w)) return;
    if (w->bsp && w->leaver >= 0 && rank < w->workers) return;
    w->dies_again = pick(w, 2) == 0;
    w->two_gone = w->two_gone || shares_with_zombie(w, rank);
    kill_rank(w, rank, false);
}

/* Does the rank end the job because two replicas of its shards take each other for dead? Here no view drops what a
 * zombie says, so the third rank may hear it of both. */
static bool names_a_cut(const world *w, int32_t rank) {
    return w->two_gone && strstr(direct_error(w->d, rank)->text, "take each other for dead") != NULL;
}

/* false: the job has ended before its time, as it may */
static bool play(world *w) {
    for (int64_t turn = 0; turn < 2000000; turn++) {
        int32_t over = 0;
        if (w->dies && direct_events(w->d) >= w->death_at) kill_rank(w, w->victim, w->suspects);
        if (w->dies && w->dies_again && w->dead[w->victim]) kill_another(w);
        if (w->dies && w->second_at >= 0 && direct_events(w->d) >= w->second_at &&
            (!holds(w, w->second) || all_are_double(w)))
            kill_rank(w, w->second, w->suspects);
        for (int32_t k = 0; k < w->workers; k++)
            over += w->worker[k].state == DONE || w->worker[k].state == DEAD || w->zombie[k];
        if (over == w->workers) return true;
        int32_t first = (int32_t)pick(w, (uint64_t)w->workers);
        bool    moved = false;
        if (pick(w, 2) == 0) moved = step_worker(w, first);
        if (!moved && direct_step(w->d)) moved = true;
        for (int32_t i = 0; !moved && i < w->workers; i++) moved = step_worker(w, (first + i) % w->workers);
        for (int32_t r = 0; r < w->ranks; r++) {
            if (w->dead[r] || direct_error(w->d, r)->code == 0) continue;
            if (names_a_cut(w, r)) return false;
            tell(w);
            fail_msg("rank %d: %s\nreplay: PLAIT_SEED=%llu", r, direct_error(w->d, r)->text,
                     (unsigned long long)w->seed);
        }
        if (moved) continue;
        tell(w);
        fail_msg("all wait\nreplay: PLAIT_SEED=%llu %s", (unsigned long long)w->seed, program_invocation_name);
    }
    tell(w);
    fail_msg("no end\nreplay: PLAIT_SEED=%llu %s", (unsigned long long)w->seed, program_invocation_name);
    return false;
}

static void run_schedule(world *w, uint64_t seed, bool lives) {
    if (setjmp(gave_up) != 0) {
        witness_judge(&w->witness, false, w->seed, audit_judges);
        return;
    }
    open_world(w, seed, lives);
    const bool ends = play(w);
    if (ends) compare_copies(w);
    witness_judge(&w->witness, ends, w->seed, audit_judges);
    close_world(w);
}

static void test_any_one_may_die(void **unused) {
    (void)unused;
    const char *seed = getenv("PLAIT_SEED"), *count = getenv("PLAIT_SCHEDULES"), *judge = getenv("PLAIT_JUDGE");
    int64_t     n = getenv("PLAIT_TEST_FULL") != NULL ? SCHEDULES_FULL : SCHEDULES;
    audit_judges = judge != NULL && strcmp(judge, "audit") == 0;
    if (count != NULL) n = atoll(count);
    if (seed != NULL) n = 1;
    for (int64_t i = 0; i < n + (seed == NULL); i++) {
        static world w;
        uint64_t     number = seed != NULL ? strtoull(seed, NULL, 10) : i == n ? RARE : (uint64_t)(i + 1);
        memset(&model, 0, sizeof model);
        run_schedule(&w, number, false);
        if (w.opaque[0] && w.rounds[0]) memset(model.known[0], 0, sizeof model.known[0]); /* what is kept differs */
        if (w.opaque[1] && w.rounds[1]) memset(model.known[1], 0, sizeof model.known[1]);
        if ((w.opaque[0] && !w.rounds[0]) || (w.opaque[1] && !w.rounds[1])) run_schedule(&w, number, true);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_any_one_may_die) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
