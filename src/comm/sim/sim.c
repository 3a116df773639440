/* The transport's table of functions, and its opening and closing. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "comm/sim/sim.h"

/* Sanitizers follow threads, but not stacks that a program switches by itself. The order of events is the same with
 * both. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FACTORY "thread"
#else
#define FACTORY "raw"
#endif

/* SimGrid can have one engine and one platform in a process. */
static bool used;

/* Turns SimGrid's own messages and habits off: it would write to stderr and end the process at SIGINT. */
static void start_simgrid(void) {
    char            *argv[] = { "plait",
                                "--log=root.thres:critical",
                                "--cfg=contexts/factory:" FACTORY,
                                "--cfg=network/model:CM02",
                                "--cfg=network/TCP-gamma:0",
                                "--cfg=network/bandwidth-factor:1",
                                "--cfg=network/weight-S:0",
                                "--cfg=network/crosstraffic:0",
                                "--cfg=surf/precision:1e-12",
                                "--cfg=debug/verbose-exit:0",
                                NULL };
    int   argc = sizeof argv / sizeof *argv - 1;
    struct sigaction interrupt, fault;
    sigaction(SIGINT, NULL, &interrupt);
    sigaction(SIGSEGV, NULL, &fault);
    simgrid_init(&argc, argv);
    sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGSEGV, &fault, NULL);
    used = true;
}

static plait_status check(const plait_comm_opts *opts, plait_error *err) {
    if (used)
        return pli_fail(err, PLAIT_EREFUSED,
                        "a second simulated run in one process is refused, since SimGrid takes one platform for each "
                        "process: start another process");
    if (opts->threads > 1)
        return pli_fail(err, PLAIT_EREFUSED,
                        "--threads %d is refused over sim: a simulated rank computes on one core; give its "
                        "host a speed in the cluster's file",
                        opts->threads);
    return PLAIT_OK;
}

/* SimGrid would abort if it cannot have another stack. */
static plait_status check_mappings(pli_transport *sim, plait_error *err) {
    enum { OTHERS = 1000 /* mappings that are no stacks */ };
    int64_t left = pli_mappings_left() - OTHERS, wanted = (int64_t)sim->size * SIM_BORN * SIM_MAPPINGS;
    sim->mappings_left = left;
    if (left >= wanted) return PLAIT_OK;
    return pli_fail(err, PLAIT_EREFUSED,
                    "%d simulated ranks need %lld memory mappings for their stacks, but this system allows a process "
                    "%lld: take at most %lld ranks, or as root: sysctl -w vm.max_map_count=%lld",
                    sim->size, (long long)wanted, (long long)(left > 0 ? left : 0),
                    (long long)(left > 0 ? left / SIM_BORN / SIM_MAPPINGS : 0), (long long)(2 * wanted));
}

/* SimGrid cannot go on without memory either. For each other rank, a rank has some structs of its machines' streams;
 * what the job itself needs comes on top. Measured: 800 bytes a pair, 40 KB a rank. */
static plait_status check_memory(pli_transport *sim, plait_error *err) {
    enum { OF_A_PAIR = 500, OF_A_RANK = 32 << 10, OTHERS = 128 << 20 /* besides stacks: kept free for the job */ };
    const int64_t wanted = (int64_t)sim->size * ((int64_t)sim->size * OF_A_PAIR + OF_A_RANK);
    const int64_t there = pli_memory_bytes();
    const int64_t space = pli_address_space_left(), stacks = (int64_t)sim->size * SIM_BORN;
    if (wanted > there)
        return pli_fail(err, PLAIT_ENOMEM,
                        "%d simulated ranks need at least %lld MiB of memory, but only %lld MiB are there: take fewer "
                        "ranks",
                        sim->size, (long long)(wanted >> 20), (long long)(there >> 20));
    sim->stacks_left = INT64_MAX;
    if (space < INT64_MAX) sim->stacks_left = (space - wanted - OTHERS) / (int64_t)(SIM_STACK_BYTES + (64 << 10));
    if (sim->stacks_left >= stacks) return PLAIT_OK;
    return pli_fail(err, PLAIT_ENOMEM,
                    "%d simulated ranks need %lld stacks of %u MiB, but the limit on this process's address space "
                    "leaves %lld: take fewer ranks, or raise the limit (ulimit -v)",
                    sim->size, (long long)stacks, SIM_STACK_BYTES >> 20,
                    (long long)(sim->stacks_left > 0 ? sim->stacks_left : 0));
}

static void init_actor(sim_actor *actor, sim_rank *r, bool is_lane, bool idle) {
    *actor = (sim_actor){ .rank = r, .is_lane = is_lane, .idle = idle, .from = -1 };
    pli_sim_list_init(&actor->out);
}

static void free_actor(sim_actor *actor) {
    pli_msg_free_list(&actor->out.first);
    if (actor->bell != NULL) sg_sem_destroy(actor->bell);
}

static void free_transport(pli_transport *sim) {
    for (int32_t i = 0; sim->rank != NULL && i < sim->size; i++) {
        sim_rank *r = &sim->rank[i];
        for (int64_t l = 0; l < r->letters; l++) pli_msg_free(&r->letter[l].msg);
        pli_msg_free_list(&r->due.first);
        pli_msg_free_list(&r->arrived.first);
        pli_free(r->letter);
        free_actor(&r->body);
        for (int32_t l = 0; l < SIM_LANES; l++) free_actor(&r->lane[l]);
    }
    free_actor(&sim->widths);
    if (sim->cuts != NULL) free_actor(pli_sim_cuts_actor(sim));
    pli_sim_close_cuts(sim);
    pli_free(sim->rank);
    pli_cluster_free(&sim->cluster);
    pli_free(sim);
}

static void init_rank(pli_transport *sim, int32_t rank) {
    sim_rank *r = &sim->rank[rank];
    r->sim = sim;
    r->rank = rank;
    r->host = pli_cluster_host(&sim->cluster, rank);
    r->dies = pli_script_death(&sim->cluster, rank);
    pli_sim_list_init(&r->due);
    pli_sim_list_init(&r->arrived);
    init_actor(&r->body, r, false, false);
    for (int32_t l = 0; l < SIM_LANES; l++) init_actor(&r->lane[l], r, true, l > 0);
}

static plait_status open_sim(const plait_comm_opts *opts, pli_world *world, pli_place *place, pli_transport **out,
                             plait_error *err) {
    PLI_TRY(check(opts, err));
    pli_transport *sim = pli_calloc(1, sizeof *sim);
    if (sim == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the transport");
    place->workers = opts->workers > 0 ? opts->workers : 1;
    place->servers = opts->servers;
    sim->size = place->count = place->ranks_on_host = place->workers + place->servers;
    sim->world = world;
    sim->seed = opts->seed;
    sim->report = opts->simulated;
    sim->wake_last = &sim->wake;
    pli_sha256_init(&sim->trace);
    pli_host_name(place->host);
    plait_status status = check_mappings(sim, err);
    if (status == PLAIT_OK) status = check_memory(sim, err);
    if (status == PLAIT_OK)
        status = opts->cluster != NULL ? pli_cluster_read(opts->cluster, &sim->cluster, err)
                                       : pli_cluster_default(sim->size, &sim->cluster, err);
    if (status == PLAIT_EFORMAT || status == PLAIT_EVERSION)
        status = err->code = PLAIT_EINVAL; /* the error is in a setting, not in data */
    if (status == PLAIT_OK) status = pli_cluster_check(&sim->cluster, sim->size, err);
    sim->rank = status == PLAIT_OK ? pli_calloc((size_t)sim->size, sizeof *sim->rank) : NULL;
    if (status == PLAIT_OK && sim->rank == NULL)
        status = pli_fail(err, PLAIT_ENOMEM, "no memory for %d ranks", sim->size);
    if (status == PLAIT_OK) status = pli_sim_open_cuts(sim, opts->heartbeat_ns, place, err);
    place->host_of = status == PLAIT_OK ? pli_array((size_t)place->workers, sizeof *place->host_of) : NULL;
    if (status == PLAIT_OK && place->host_of == NULL)
        status = pli_fail(err, PLAIT_ENOMEM, "no memory for %d ranks", sim->size);
    if (status == PLAIT_OK) {
        for (int32_t r = 0; r < sim->size; r++) init_rank(sim, r);
        init_actor(&sim->widths, &sim->rank[0], false, false);
        if (sim->cuts != NULL) init_actor(pli_sim_cuts_actor(sim), &sim->rank[0], true, false);
        for (int32_t r = 0; r < place->workers; r++) place->host_of[r] = sim->rank[r].host;
        start_simgrid();
        status = pli_sim_platform(sim, err);
    }
    if (status < 0) {
        free_transport(sim);
        return status;
    }
    if (pli_cluster_is_lossy(&sim->cluster))
        place->resend_after_ns = (uint64_t)llround(sim->cluster.cost.resend_after * 1e9);
    *out = sim;
    return PLAIT_OK;
}

static void close_sim(pli_transport **transport, bool all_ended) {
    pli_transport *sim = *transport;
    *transport = NULL;
    (void)all_ended;
    if (sim == NULL) return;
    if (sim->report != NULL) {
        sim->report->virtual_seconds = simgrid_get_clock();
        sim->report->messages = sim->delivered;
        pli_sha256_end(&sim->trace, sim->report->trace_hash);
    }
    free_transport(sim);
}

static const pli_cluster *cluster_of(const pli_transport *sim) { return &sim->cluster; }

static const pli_transport_ops sim_ops = {
    .abi = PLI_TRANSPORT_ABI,
    .name = "sim",
    .carries_local = true,
    .open = open_sim,
    .send = pli_sim_send,
    .progress = pli_sim_settle,
    .now = pli_sim_now,
    .run = pli_sim_run,
    .sleep = pli_sim_sleep,
    .ring = pli_sim_ring,
    .work = pli_sim_work,
    .drain = pli_sim_drain,
    .silent_since = pli_sim_silent_since,
    .hears = pli_sim_hears,
    .vote = pli_sim_vote,
    .cluster = cluster_of,
    .close = close_sim,
};

__attribute__((visibility("default"))) const void *plait_transport_module(void);
const void *plait_transport_module(void) { return &sim_ops; }
