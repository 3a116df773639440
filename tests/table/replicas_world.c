/* The world of a schedule of replicas: its ranks, servers, tables and network, drawn from the seed, and who dies. See
 * replicas_world.h. */
#include "table/replicas_world.h"

uint64_t pick(world *w, uint64_t below) { return direct_pick(w->d, below); }

/* --- the witness -------------------------------------------------------------------------------------------------- */

static uint64_t time_in(void *user) { return direct_now(((world *)user)->d); }

const pli_event_sink *sink_of(const world *w) { return witness_sink(&w->witness); }

static void listen_to_clients(world *w) {
    for (int32_t k = 0; k < w->workers; k++) {
        pli_client_listen(&w->worker[k].client, sink_of(w));
        pli_raise_job(sink_of(w), k, 1, &w->layout);
    }
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

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
    w->stale[t] = !w->bsp || (t == 1 && pick(w, 2) == 0 && !w->elastic && w->layout.backup == 0);
    const bool     bsp = !w->stale[t];
    const char    *consistency = bsp ? "bsp" : stale[pick(w, STALE)];
    const uint64_t rule = bsp ? pick(w, 4) : strcmp(consistency, "async") == 0 ? pick(w, 3) : 0;
    if (rule >= 2) {
        opts.rule.name = rule == 2 ? "sgd" : "adam";
        opts.rule.learning_rate = rule == 2 ? 1 : 0.01;
    }
    pli_random random = pli_random_at(w->seed, PLI_RANDOM_SCHEDULE, 12, (uint64_t)t);
    w->replaces[t] = rule < 2 && strncmp(consistency, "downpour", 8) != 0 && strncmp(consistency, "vap", 3) != 0 &&
                     pli_random_below(&random, 4) == 0;
    if (w->replaces[t]) opts.combine = "last";
    w->ages[t] = !bsp && strncmp(consistency, "essp", 4) != 0 && strncmp(consistency, "downpour", 8) != 0 &&
                 strcmp(consistency, "async") != 0 && !w->replaces[t] && pli_random_below(&random, 4) == 0;
    if (w->ages[t]) {
        opts.rule.name = "sgd";
        opts.rule.learning_rate = 1;
        opts.rule.staleness_aware = 1;
    }
    opts.filter = w->elastic ? NULL : draw_filter(w, rule == 2, !bsp);
    w->rounds[t] = is_lossy(opts.filter);
    opts.exact = bsp && !w->rounds[t] && w->layout.backup == 0 && pick(w, 2) == 0 && !w->replaces[t];
    w->opaque[t] = rule == 3 || (w->rounds[t] && bsp);
    w->gathers_for[t] = strncmp(consistency, "downpour", 8) == 0 ? 3 : 1;
    SURE(w, pli_spec_make(t, &opts, "ps", consistency, 1, NULL, &w->spec[t], NULL) == PLAIT_OK);
    w->spec[t].placement = pli_placement_make(w->spec[t].rows, pli_row_bytes(&w->spec[t]), 0, w->layout.servers,
                                              w->layout.first_server);
    if (!w->moves) return;
    w->spec[t].most_shards = w->layout.servers;
    w->spec[t].placement = pli_moves_placement(&w->layout, &w->spec[t]);
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

/* --- a server function -------------------------------------------------------------------------------------------- */

static bool is_hot(const world *w, int64_t row) {
    for (int h = 0; h < HOT; h++)
        if ((int64_t)w->hot[h] == row) return true;
    return false;
}

/* Doubles all values of a shard; the answer is their sum before. So a call that is lost, runs twice, or runs on the
 * wrong side of a clock's sum shows in all that was added before. The first dense row that nobody updates gets the sum,
 * so one that runs over some of the rows shows as well. */
static plait_status twice(void *user, const plait_slice *slices, int32_t n_slices, const void *args, size_t args_bytes,
                          void *answer, size_t answer_bytes) {
    const plait_slice *s = slices;
    double            *x = s->values, *sum = answer;
    int64_t            idle = 0;
    (void)args;
    if (n_slices != 1 || args_bytes != 0 || answer_bytes != sizeof *sum) return PLAIT_EINVAL;
    for (int64_t i = 0; i < s->rows * s->cols; i++) {
        *sum += x[i];
        x[i] *= 2;
    }
    while (idle < s->rows && is_hot(user, s->first + idle)) idle++;
    if (s->keys == NULL && idle < s->rows) x[idle * s->cols] += *sum + 1;
    return PLAIT_OK;
}

/* Not where one leaves early, who would call no more, nor where others come. */
static uint64_t draw_calls(const world *w) {
    pli_random r = pli_random_at(w->seed, PLI_RANDOM_SCHEDULE, 11, 0);
    if (w->elastic || w->leaver >= 0 || w->layout.backup > 0 || pli_random_below(&r, 2) == 0) return 0;
    return pli_random_below(&r, UINT64_C(1) << CLOCKS) | pli_random_below(&r, UINT64_C(1) << CLOCKS);
}

/* --- the schedule ------------------------------------------------------------------------------------------------- */

/* Has the rank shards from the first? */
static bool serves(const world *w, int32_t rank) {
    if (w->moves) return false; /* all replicas are hosted */
    return rank >= w->layout.first_server && rank < w->layout.first_server + w->layout.servers;
}

bool holds(const world *w, int32_t rank) {
    return w->moves || serves(w, rank) || (rank < w->workers && rank >= w->workers - w->layout.spares);
}

/* Some worker that is in from the first neither dies nor leaves. */
static void draw_comings(world *w) {
    w->anchor = 0;
    while (w->anchor == w->victim || (w->second_at >= 0 && w->anchor == w->second)) w->anchor++;
    if (w->anchor >= w->workers - w->layout.slots) {
        w->second_at = -1;
        w->second_stands_in = false;
        w->anchor = w->victim == 0;
    }
    for (int32_t k = 0; k < w->workers; k++) {
        w->worker[k].goes = k == w->anchor ? 0 : (int32_t)pick(w, 3);
        memcpy(w->worker[k].covers, w->worker[k].client.replaced, (size_t)w->workers);
    }
    for (int32_t k = w->workers - w->layout.slots; k < w->workers; k++) ask_join(w, k);
}

/* With three replicas two may die at once, or one soon after the other. */
static void draw_fellow(world *w) {
    w->fellow = -1;
    if (w->layout.replicas < 3 || pick(w, 4) == 0) return;
    w->fellow = (int32_t)pick(w, (uint64_t)w->ranks);
    const int64_t later = pick(w, 2) == 0 ? 0 : (int64_t)pick(w, 200);
    w->fellow_at = w->death_at == INT64_MAX ? 0 : w->death_at + later; /* 0: with the victim */
}

/* Shards lie on the ranks of the first workers, at least two, and there are as many servers as workers, or more. */
static void draw_moves(world *w, pli_random *random) {
    if (w->workers < 3) w->workers = 3;
    w->ranks = w->workers;
    w->layout.slots = 1 + (int32_t)pli_random_below(random, (uint64_t)w->workers - 2);
    w->layout.homes = w->workers - w->layout.slots;
    w->layout.servers = w->workers + (int32_t)pli_random_below(random, 3);
    w->layout.workers = w->workers;
    w->layout.first_server = 0;
    w->layout.move_rate = pli_random_below(random, 4) == 0 ? 1 + pli_random_below(random, 100000000) : 0;
}

/* How many workers there are, and how many ranks that only serve. */
static void draw_ranks(world *w, pli_random *random, int32_t replicas, bool elastic, int32_t *apart_out) {
    const bool three = replicas > 2;
    w->workers = 2 + (int32_t)pli_random_below(random, three ? 4 : 3);
    *apart_out = pli_random_below(random, 2) == 0 ? 0 : three ? 3 + (int32_t)pli_random_below(random, 2)
                                                              : 2 + (int32_t)pli_random_below(random, 3);
    if (three && *apart_out == 0 && w->workers < 3) w->workers = 3;
    if (elastic && w->workers < 3 && (*apart_out == 0 || pli_random_below(random, 2) == 0)) w->workers = 3;
    w->ranks = w->workers + *apart_out;
}

/* A clock may end without some workers. What came too late is dropped, and the audit knows what. */
static void draw_backup(world *w) {
    pli_random r = pli_random_at(w->seed, PLI_RANDOM_SCHEDULE, 13, 0);
    if (!w->bsp || w->elastic || w->workers - w->layout.spares < 2 || pli_random_below(&r, 4) > 0) return;
    w->layout.backup = 1 + (int32_t)pli_random_below(&r, (uint64_t)w->workers - 1);
}

void open_world(world *w, uint64_t seed, int32_t replicas, bool lives, way how) {
    const bool elastic = how != FIXED;
    memset(w, 0, sizeof *w);
    w->elastic = elastic;
    w->moves = how == MOVING;
    w->seed = seed;
    pli_slice_bytes = (int64_t[]){ 1 << 20, 1000, 200, 20 }[seed % 4]; /* of a new replica's rows */
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
    int32_t apart;
    draw_ranks(w, &random, replicas, elastic, &apart);
    const int32_t slots = elastic ? (int32_t)pli_random_below(&random, (uint64_t)w->workers - 1) : 0;
    const int32_t spares = !elastic && pli_random_below(&random, 3) == 0
                               ? 1 + (int32_t)pli_random_below(&random, (uint64_t)w->workers - 1)
                               : 0;
    w->function = (plait_function){ .name = "twice", .updates = 1, .run = twice, .user = w };
    w->layout = (pli_layout){ .workers = w->workers,
                              .servers = apart > 0 ? apart : w->workers - spares - slots,
                              .first_server = apart > 0 ? w->workers : 0,
                              .job_hash = 5,
                              .spares = spares,
                              .slots = slots,
                              .resend_after_ns = lossy ? 2000000 : 0,
                              .replicas = replicas,
                              .functions = &w->function,
                              .n_functions = 1 };
    if (w->moves) draw_moves(w, &random);
    if (w->moves) apart = 0;
    w->d = direct_new(seed, w->ranks, &net);
    w->bsp = pick(w, 3) > 0 || elastic;
    draw_backup(w);
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
    w->strikes_joins = slots > 0 && seed % 7 == 1;
    if (w->strikes_joins) {
        w->victim = w->layout.first_server;
        w->second_stands_in = false;
    }
    if (elastic) draw_comings(w);
    if (w->strikes_joins) /* or when one comes again: replicas_worker.c */
        w->death_at = pick(w, 3) == 0 ? direct_events(w->d) + (int64_t)pick(w, 300) : INT64_MAX;
    if (pick(w, 3) == 0 && (!w->bsp || w->victim >= w->workers) && !elastic) {
        w->leaver = w->second_at >= 0 ? w->second : (int32_t)pick(w, (uint64_t)w->workers);
        w->leaves_at = 1 + (int64_t)pick(w, CLOCKS - 1);
        w->barriers &= (UINT64_C(1) << w->leaves_at) - 1; /* where it does not come to all */
    }
    w->calls = draw_calls(w);
    w->strikes_calls = w->calls != 0 && seed % 3 == 0;
    if (w->strikes_calls) {
        w->victim = w->layout.first_server + (int32_t)(seed / 3 % (uint64_t)w->layout.servers);
        w->death_at = INT64_MAX;
        w->dies_again = true;
    }
    draw_fellow(w);
    w->gathers = pick(w, UINT64_C(1) << (CLOCKS + 2)) & ~UINT64_C(1);
    if (pick(w, 4) > 0 || w->strikes_joins || w->second_stands_in || w->leaver >= 0 || w->barriers == 0) return;
    w->strikes_at = 1 + pick(w, 3);
    w->gathers |= UINT64_C(1) << w->strikes_at;
    if (elastic && w->anchor == w->layout.first_server) return;
    w->victim = w->layout.first_server;
    w->death_at = INT64_MAX;
}

static void close_worker(world *w, int32_t k) {
    worker *me = &w->worker[k];
    if (me->asking) pli_ask_abandon(&me->ask);
    if (me->waiting) pli_ticket_free(&me->ticket);
    for (int32_t t = 0; t < w->tables; t++) pli_client_table_close(&me->table[t]);
    pli_client_close(&me->client);
}

void close_world(world *w) {
    for (int32_t k = 0; k < w->workers; k++) close_worker(w, k);
    for (int32_t r = 0; r < w->ranks; r++) {
        if (serves(w, r)) pli_server_close(&w->server[r]);
        pli_hosted_close(&w->backups[r]);
    }
    direct_free(&w->d);
}

/* --- replicas ----------------------------------------------------------------------------------------------------- */

const pli_server *copy_at(const world *w, int32_t s, int32_t place) {
    const int32_t rank = pli_replica_rank(&w->layout, s, place);
    const pli_server *hosted = w->backups[rank].replica == NULL ? NULL : w->backups[rank].replica[s];
    if (w->moves) return hosted != NULL && hosted->replicas->place == place ? hosted : NULL;
    return place == 0 ? &w->server[rank] : hosted;
}

/* Where shards move: the replica of shards s on the rank, whichever place it has. NULL: none. */
static const pli_server *moving_on(const world *w, int32_t s, int32_t rank) {
    return w->backups[rank].replica == NULL ? NULL : w->backups[rank].replica[s];
}

const pli_server *who_serves(const world *w, int32_t s) {
    for (int32_t r = 0; w->moves && r < w->ranks; r++) {
        const pli_server *replica = moving_on(w, s, r);
        if (replica != NULL && !w->dead[r] && replica->replicas->serves) return replica;
    }
    if (w->moves) return NULL;
    for (int32_t p = 0; p < pli_replica_places(&w->layout); p++) {
        const pli_server *replica = copy_at(w, s, p);
        if (replica != NULL && !w->dead[replica->rank] && replica->replicas->serves) return replica;
    }
    return NULL;
}

const pli_server *other_of(const world *w, const pli_server *replica) {
    const pli_replicas *c = replica->replicas;
    return c->to < 0 || w->dead[c->to] ? NULL : copy_at(w, replica->number, c->to_place);
}

/* Where shards move: does somebody serve shards s, and are there so many whole replicas on other ranks than that one,
 * by the list of who serves? */
static bool has_whole(const world *w, int32_t s, int32_t but, int32_t least) {
    const pli_server *first = who_serves(w, s);
    int32_t           n = 0;
    for (int32_t r = 0; first != NULL && r < w->ranks; r++) {
        const pli_server *replica = moving_on(w, s, r);
        n += replica != NULL && r != but && !w->dead[r] && replica->replicas->whole &&
             pli_list_has(&first->replicas->moves.list, replica->replicas->place);
    }
    return n >= least;
}

/* Do all shards have two whole replicas? */
static bool all_are_double(const world *w) {
    for (int32_t s = 0; w->moves && s < w->layout.servers; s++)
        if (!has_whole(w, s, -1, 2)) return false;
    if (w->moves) return true;
    for (int32_t s = 0; s < w->layout.servers; s++) {
        const pli_server *replica = who_serves(w, s), *other = replica == NULL ? NULL : other_of(w, replica);
        if (other == NULL || !other->replicas->whole) return false;
    }
    return true;
}

bool may_die(const world *w, int32_t rank) {
    if (w->layout.replicas < 3) return all_are_double(w);
    for (int32_t s = 0; s < w->layout.servers; s++) {
        bool whole = false;
        if (w->moves) whole = has_whole(w, s, rank, 1);
        for (int32_t p = 0; p < pli_replica_places(&w->layout) && !w->moves; p++) {
            const pli_server *replica = copy_at(w, s, p);
            whole = whole || (replica != NULL && replica->rank != rank && !w->dead[replica->rank] &&
                              replica->replicas->whole);
        }
        if (!whole) return false;
    }
    return true;
}

bool all_are_made(void *arg) {
    const world *w = arg;
    int32_t      lives = 0;
    for (int32_t r = 0; r < w->ranks; r++) lives += !w->dead[r];
    for (int32_t s = 0; w->moves && s < w->layout.servers; s++) {
        const pli_server *first = who_serves(w, s);
        const bool        holds_some = first == NULL || first->tables > 0 || s == 0;
        if (holds_some && !has_whole(w, s, -1, lives < w->layout.replicas ? lives : w->layout.replicas)) return false;
    }
    for (int32_t s = 0; s < w->layout.servers && !w->moves; s++) {
        int32_t living = 0, whole = 0;
        for (int32_t p = 0; p < pli_replica_places(&w->layout); p++) {
            const pli_server *replica = copy_at(w, s, p);
            if (w->dead[pli_replica_rank(&w->layout, s, p)]) continue;
            living++;
            whole += replica != NULL && replica->replicas->whole;
        }
        if (whole < living && whole < w->layout.replicas) return false;
    }
    return true;
}

static void tell_list(const pli_server *replica) {
    const pli_replicas *c = replica->replicas;
    const pli_moves    *m = &c->moves;
    print_message("  place %d out %d linked %d plan %d opened %d behind %d log %lld confirmed %lld making %d list",
                  c->place, m->out, m->linked, m->plan, m->opened, m->whole_behind, (long long)c->log,
                  (long long)c->confirmed, c->making);
    for (int32_t i = 0; i < m->list.n; i++) print_message(" %d", m->list.at[i]);
    print_message("\n");
}

void tell(const world *w) {
    for (int32_t k = 0; k < w->workers; k++)
        print_message("worker %d%s: state %d clock %lld\n", k, w->zombie[k] ? " (taken for dead)" : "",
                      w->worker[k].state, (long long)w->worker[k].clock);
    for (int32_t k = 0; w->moves && k < w->workers; k++)
        for (const pli_ticket *t = w->worker[k].client.tickets; t != NULL; t = t->next) {
            print_message("  worker %d ticket %u pending %d replies of", k, t->id, t->pending);
            for (const pli_msg *r = t->replies; r != NULL; r = r->next) print_message(" %d", r->head.src);
            print_message("\n");
        }
    for (int32_t s = 0; s < w->layout.servers; s++)
        for (int32_t p = 0; p < (w->moves ? w->ranks : pli_replica_places(&w->layout)); p++) {
            const pli_server *replica = w->moves ? moving_on(w, s, p) : copy_at(w, s, p);
            if (replica == NULL) continue;
            const pli_replicas *c = replica->replicas;
            if (w->moves) tell_list(replica);
            print_message("shards %d place %d rank %d%s: serves %d whole %d from %d to %d applied %lld sum %d deaths "
                          "%d slowest %lld unconfirmed %d\n",
                          s, c->place, replica->rank, w->dead[replica->rank] ? " (dead)" : "", c->serves, c->whole,
                          c->from, c->to, (long long)replica->applied, c->sum != NULL, c->deaths,
                          (long long)replica->slowest, c->first != NULL);
        }
}

/* --- deaths ------------------------------------------------------------------------------------------------------- */

void kill_rank(world *w, int32_t rank, bool suspected) {
    plait_error why = { .code = PLAIT_EPEER, .rank = rank, .text = "killed" };
    if (is_dead(w, rank) || (rank < w->workers && w->worker[rank].state == DONE)) return;
    if (w->dead[rank]) suspected = false;
    w->dead[rank] = true;
    if (rank < w->workers) w->back[rank] = false;
    w->zombie[rank] = suspected;
    if (suspected)
        direct_suspect(w->d, rank, &why);
    else direct_member(w->d, PLI_MEMBER_DIED, rank, &why);
    if (rank < w->workers && !suspected) w->worker[rank].state = DEAD;
}

void revive_some(world *w) {
    const int32_t k = (int32_t)pick(w, (uint64_t)w->workers);
    bool          goes_on = false;
    enum { OFTEN = 4 };
    if (w->returned == OFTEN || pick(w, 30) > 0 || !is_dead(w, k) || w->zombie[k] || w->worker[k].state != DEAD) return;
    for (int32_t v = 0; v < w->workers; v++)
        goes_on = goes_on || (!is_dead(w, v) && w->worker[v].state < LAST_READ);
    if (!goes_on) return;
    close_worker(w, k);
    w->worker[k] = (worker){ 0 };
    w->back[k] = true;
    w->returned++;
    direct_return(w->d, k);
    worker *me = &w->worker[k];
    const uint32_t life = ++w->lives[k] + 1;
    SURE(w, pli_client_open(&me->client, &w->layout, k, 0, life, NULL) == PLAIT_OK);
    pli_client_listen(&me->client, sink_of(w));
    pli_raise_job(sink_of(w), k, life, &w->layout);
    direct_add(w->d, k, PLI_PORT_CLIENT, &pli_client_ops, &me->client);
    direct_retell(w->d, k, PLI_PORT_CLIENT);
    for (int32_t t = 0; t < w->tables; t++) {
        SURE(w, pli_client_table_open(&w->spec[t], &w->layout, &me->table[t], NULL) == PLAIT_OK);
        SURE(w, pli_client_add_table(&me->client, me->table[t], NULL) == PLAIT_OK);
        pli_raise_table(sink_of(w), k, &w->spec[t], PLI_WAY_SERVED);
    }
    me->goes = (int32_t)pick(w, 2);
    memcpy(me->covers, me->client.replaced, (size_t)w->workers);
    ask_join(w, k);
}

static bool is_at_work(const world *w, int32_t k) {
    return !is_dead(w, k) && w->worker[k].state != AWAY && w->worker[k].state != DONE && w->worker[k].state != DEAD;
}

/* No rank hears of a view that is made after one that lacks it: it hears that it is out, and ends. */
static void end_zombies(world *w) {
    static const uint32_t ports[] = { PLI_PORT_SERVER, PLI_PORT_CLIENT, PLI_PORT_REPLICA };
    for (int32_t rank = 0; rank < w->ranks; rank++) {
        if (!w->zombie[rank]) continue;
        for (size_t i = 0; i < sizeof ports / sizeof *ports; i++) direct_remove(w->d, rank, ports[i]);
        if (rank < w->workers) w->worker[rank].state = DEAD;
    }
}

static bool is_free_to_die(const world *w, int32_t rank) {
    if (is_dead(w, rank) || (w->elastic && rank == w->anchor) || !(w->dead[rank] || may_die(w, rank))) return false;
    return !w->bsp || w->leaver < 0 || rank >= w->workers;
}

void kill_fellow(world *w) {
    const int32_t rank = w->fellow;
    int32_t       left = 0;
    for (int32_t k = 0; k < w->workers; k++) left += k != rank && is_at_work(w, k);
    w->fellow = -1;
    if (left > 0 && is_free_to_die(w, rank)) kill_rank(w, rank, false);
}

/* Any rank, while a worker is left, once nothing can be lost by it. */
void kill_another(world *w) {
    const int32_t rank = (int32_t)pick(w, (uint64_t)w->ranks);
    int32_t       left = 0;
    for (int32_t k = 0; k < w->workers; k++) left += k != rank && is_at_work(w, k);
    if (pick(w, w->strikes_calls ? 5 : 20) > 0 || left == 0) return;
    if (!is_free_to_die(w, rank)) return;
    w->dies_again = pick(w, 2) == 0;
    if (w->layout.replicas > 2 || w->moves) end_zombies(w); /* of two, nobody takes anything from it */
    kill_rank(w, rank, false);
}
