/* What actors do: the rank's body, resting, paying, sending. sim.h has the ideas. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "comm/sim/sim.h"

#define FOREVER     1e15 /* seconds: SimGrid's sleeps need a finite number */

double pli_sim_clock(void) { return simgrid_get_clock(); }

static uint64_t ns_of(double seconds) { return seconds >= 1e10 ? PLI_NEVER : (uint64_t)llround(seconds * 1e9); }

uint64_t pli_sim_now(const pli_transport *sim) {
    (void)sim;
    return ns_of(pli_sim_clock());
}

uint64_t pli_sim_silent_since(const pli_transport *sim, int32_t observer, int32_t rank) {
    double since = pli_script_silent(&sim->cluster, observer, rank, pli_sim_clock());
    return isinf(since) ? 0 : since > 0 ? ns_of(since) : 1;
}

/* Has the job ended for the rank? */
static bool is_lost(const pli_transport *sim, int32_t rank) {
    return atomic_load(&pli_world_members(sim->world, rank)->lost);
}

static sim_actor *self(void) { return sg_actor_self_get_data(); }

static void fail(pli_transport *sim, plait_error *why) {
    if (sim->failed) return;
    sim->failed = true;
    why->rank = -1;
    pli_world_fail(sim->world, why);
}

/* --- being born ------------------------------------------------------------------------------------------------ */

static void run_body(sim_rank *r);

static void actor_main(int argc, char **argv) {
    (void)argc;
    (void)argv;
    sim_actor *me = self();
    if (me->is_lane) pli_sim_run_lane(me);
    else run_body(me->rank);
}

static plait_status start(const char *name, sg_host_t host, xbt_main_func_t code, sim_actor *actor, plait_error *err) {
    sim_rank *r = actor->rank;
    if (r->sim->mappings_left < SIM_MAPPINGS)
        return pli_fail(err, PLAIT_EREFUSED,
                        "%d simulated ranks have used up the memory mappings that this system allows a process; "
                        "take fewer, or as root: sysctl -w vm.max_map_count=%d",
                        r->sim->size, 16 * r->sim->size);
    if (r->sim->stacks_left < 1)
        return pli_fail(err, PLAIT_ENOMEM,
                        "%d simulated ranks have used up the address space of this process (ulimit -v)", r->sim->size);
    if (actor->bell == NULL && (actor->bell = sg_sem_init(0)) == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for %s", name);
    r->sim->mappings_left -= SIM_MAPPINGS;
    r->sim->stacks_left--;
    sg_actor_t born = sg_actor_init(name, host);
    sg_actor_set_data(born, actor);
    sg_actor_set_stacksize(born, SIM_STACK_BYTES >> 10); /* it counts in KiB, though its name does not say so */
    sg_actor_start_(born, code, 0, NULL);
    return PLAIT_OK;
}

static void start_lane(sim_actor *lane) {
    plait_error err;
    if (start("lane", lane->rank->place, actor_main, lane, &err) < 0) fail(lane->rank->sim, &err);
}

/* --- waking and resting ------------------------------------------------------------------------------------- */

void pli_sim_wake(pli_transport *sim, sim_actor *actor) {
    if (actor->listed) return;
    actor->listed = true;
    actor->next = NULL;
    *sim->wake_last = actor;
    sim->wake_last = &actor->next;
}

/* May switch to other actors. */
void pli_sim_wake_all(pli_transport *sim) {
    sim_actor *actor;
    while ((actor = sim->wake) != NULL) {
        sim->wake = actor->next;
        if (sim->wake == NULL) sim->wake_last = &sim->wake;
        actor->listed = false;
        if (actor->bell == NULL && !sim->over) start_lane(actor);
        if (!actor->asleep) continue;
        actor->asleep = false;
        sg_sem_release(actor->bell);
    }
}

/* Rests until another actor wakes it, or until `until` (INFINITY: no end). */
void pli_sim_rest(sim_actor *me, double until) {
    double now = pli_sim_clock();
    if (until <= now) return;
    me->asleep = true;
    if (until >= FOREVER) {
        sg_sem_acquire(me->bell);
    } else {
        sg_sem_acquire_timeout(me->bell, until - now);
    }
    me->asleep = false;
}

/* When all ranks that have not ended are frozen for good, no rank is left whose patience could end, so the run ends. */
static void fail_if_all_stand(pli_transport *sim, int32_t rank) {
    if (sim->standing < sim->living || sim->living == 0 || is_lost(sim, rank)) return;
    pli_fail(&sim->stood, PLAIT_ETIMEOUT, "rank %d is frozen for good by %s, and so are all that have not ended", rank,
             sim->cluster.path != NULL ? sim->cluster.path : "the cluster");
    sim->stood.rank = rank;
    pli_world_fail(sim->world, &sim->stood);
    pli_sim_wake_all(sim);
}

/* A frozen rank does nothing until it thaws, except that it ends with the job. */
void pli_sim_thaw(sim_rank *r, sim_actor *me) {
    for (;;) {
        double now = pli_sim_clock(), until = pli_script_thaw(&r->sim->cluster, r->rank, now);
        if (until <= now || r->dead || r->sim->over || is_lost(r->sim, r->rank)) return;
        bool stands = !me->is_lane && until >= FOREVER && r->dies >= FOREVER;
        r->sim->standing += stands;
        if (stands) fail_if_all_stand(r->sim, r->rank);
        if (!is_lost(r->sim, r->rank)) pli_sim_rest(me, until < r->dies ? until : r->dies);
        r->sim->standing -= stands;
        if (pli_sim_clock() >= r->dies) return;
    }
}

void pli_sim_die(sim_rank *r) {
    if (r->dead || r->done || pli_sim_clock() < r->dies) return;
    r->dead = true;
    plait_error why = { 0 };
    pli_fail(&why, PLAIT_EPEER, "killed by %s at %.6g s",
             r->sim->cluster.path != NULL ? r->sim->cluster.path : "the cluster", r->dies);
    why.rank = r->rank;
    pli_comm_kill(pli_world_comm(r->sim->world, r->rank), &why);
    pli_sim_wake(r->sim, &r->body);
}

/* --- ringing ------------------------------------------------------------------------------------------------------ */

static void ring(sim_rank *r) {
    pli_sim_wake(r->sim, &r->body);
    if (r->sim->world->place.resend_after_ns > 0 && r->watcher != NULL) pli_sim_wake(r->sim, r->watcher);
}

static void ring_at_last(sim_actor *me) {
    if (me->rings) ring(me->rank);
    me->rings = false;
}

/* The change may be the time when something is to be sent again, so the watcher is told, too. */
void pli_sim_ring(pli_transport *sim, int32_t rank) {
    sim_actor *me = self();
    sim_rank  *r = &sim->rank[rank];
    r->rung = true;
    if (me != NULL && me->rank == r) me->rings = true;
    else ring(r);
}

/* --- paying ---------------------------------------------------------------------------------------------------- */

/* Computes until the clock shows `until`, or for longer if others want the same cores. */
static void compute_until(const pli_transport *sim, double until, double now) {
    if (sim->machine == NULL || until <= now) {
        sg_actor_sleep_until(until);
        return;
    }
    sg_exec_t work = sg_actor_exec_init((until - now) * 1e9);
    sg_exec_set_host(work, sim->machine);
    sg_exec_start(work);
    sg_exec_wait(work);
}

void pli_sim_pay(sim_actor *me) {
    sim_rank *r = me->rank;
    while (me->owed > 0 && !r->dead) {
        double owed = me->owed, now = pli_sim_clock();
        me->owed = 0;
        bool   computes = !me->is_lane && pli_comm_is_worker(pli_world_comm(r->sim->world, r->rank));
        double until = pli_script_finish(&r->sim->cluster, r->sim->seed, r->rank, computes ? r->clock : -1, now, owed);
        if (until > r->dies) until = r->dies;
        bool never = until >= FOREVER; /* frozen for good */
        if (never) sg_actor_sleep_until(pli_script_freeze(&r->sim->cluster, r->rank, now));
        else compute_until(r->sim, until, now);
        if (never) {
            ring_at_last(me);
            pli_sim_thaw(r, me);
        }
        pli_sim_die(r);
    }
    me->owed = 0;
    r->clock += me->clocks;
    me->clocks = 0;
}

void pli_sim_work(pli_transport *sim, int32_t rank, pli_work_kind kind, uint64_t amount) {
    sim_actor *me = self();
    (void)rank; /* at a death an actor may run a machine of another rank; the work is charged to the actor */
    me->owed += sim->cluster.cost.work_ns[kind] * (double)amount * 1e-9;
    if (kind == PLI_WORK_CLOCKS) me->clocks += (int64_t)amount;
}

/* --- sending ----------------------------------------------------------------------------------------------------- */

void pli_sim_taken(pli_transport *sim, sim_rank *src) {
    if (--src->on_the_way == 0 && src->done) pli_sim_wake(sim, &src->body);
}

/* When the message's first byte leaves: at once or, in a crowd, when the link alone would have sent the others. It
 * never leaves before the bytes of an older message. */
static double departs(sim_rank *src, const sim_rank *dst, size_t bytes) {
    const pli_cluster *c = &src->sim->cluster;
    double             now = pli_sim_clock();
    if (src->host == dst->host) return now;
    if (src->departed < now) src->departed = now;
    if (src->sent_by < now) src->sent_by = now;
    if (src->on_the_way >= SIM_CROWD && src->departed < src->sent_by) src->departed = src->sent_by;
    src->sent_by +=
        (double)bytes / (pli_cluster_group(c, src->host)->link.bandwidth * pli_script_width(c, src->host, -1, -1, now));
    return src->departed;
}

static void post(pli_transport *sim, sim_rank *src, pli_msg *msg, double leaves, double delay) {
    sim_rank *dst = &sim->rank[msg->head.dst];
    if (pli_sim_post(dst, msg, ns_of(leaves + pli_cluster_latency(&sim->cluster, src->host, dst->host) + delay))) {
        src->on_the_way++;
    } else {
        plait_error why;
        pli_msg_free(&msg);
        pli_fail(&why, PLAIT_ENOMEM, "no memory to carry a message");
        fail(sim, &why);
    }
}

/* Gives a message to the world outside. A link that is cut holds all messages until the same instant, and keeps
 * their order. */
static void dispatch(pli_transport *sim, sim_rank *src, pli_msg *msg) {
    sim_rank *dst = &sim->rank[msg->head.dst];
    size_t    bytes = sizeof(pli_head) + msg->head.body_bytes;
    double    leaves = departs(src, dst, bytes);
    pli_fate  fate = { .copies = 1 };
    if (sim->cluster.mishaps > 0)
        fate = pli_script_fate(&sim->cluster, sim->seed, src->rank, dst->rank, src->sent, leaves);
    src->sent++;
    if (src->dead) fate.copies = 0;
    for (int32_t copy = 1; copy < fate.copies; copy++) {
        pli_msg *twin = pli_msg_copy(msg);
        if (twin != NULL) post(sim, src, twin, departs(src, dst, bytes), fate.delay[copy]);
    }
    if (fate.copies == 0) {
        pli_msg_free(&msg);
    } else {
        post(sim, src, msg, leaves, fate.delay[0]);
    }
}

static bool has_sent_to(const sim_actor *actor, int32_t dst) {
    const pli_msg *msg = actor->out.first;
    while (msg != NULL && msg->head.dst != dst) msg = msg->next;
    return msg != NULL;
}

/* The youngest of the rank's actors that have sent to dst before batch and have not paid for it yet; NULL: none. */
static sim_actor *elder(sim_rank *src, uint64_t batch, int32_t dst) {
    sim_actor *last = NULL;
    for (int32_t i = -1; i < SIM_LANES; i++) {
        sim_actor *actor = i < 0 ? &src->body : &src->lane[i];
        if (actor->out.first == NULL || actor->batch >= batch || (last != NULL && actor->batch < last->batch)) continue;
        if (has_sent_to(actor, dst)) last = actor;
    }
    return last;
}

/* A message that is paid for leaves, or waits behind an older one to the same rank that is not paid for: messages of
 * each pair of ranks leave in the order in which they were sent. (An actor goes from the first message of its list
 * to paying without another actor's turn, so a whole list is older or younger than another.) */
static void leave(pli_transport *sim, sim_rank *src, uint64_t batch, pli_msg *msg) {
    sim_actor *before = elder(src, batch, msg->head.dst);
    if (before != NULL) {
        pli_sim_list_add(&before->out, msg);
    } else {
        msg->next = NULL;
        dispatch(sim, src, msg);
    }
}

static void leave_all(sim_actor *me) {
    pli_msg *list = me->out.first;
    pli_sim_list_init(&me->out);
    for (pli_msg *next; list != NULL; list = next) {
        next = list->next;
        leave(me->rank->sim, me->rank, me->batch, list);
    }
}

void pli_sim_send(pli_transport *sim, pli_msg *msg) {
    sim_actor *me = self();
    me->owed += (sim->cluster.cost.message_ns + sim->cluster.cost.byte_ns * (double)msg->head.body_bytes) * 1e-9;
    if (msg->head.src !=
        me->rank->rank) { /* the machine of another rank, run at a death: its messages do not wait until the actor
                           * that runs it has paid */
        leave(sim, &sim->rank[msg->head.src], ++sim->batches, msg);
        return;
    }
    if (me->out.first == NULL) me->batch = ++sim->batches;
    pli_sim_list_add(&me->out, msg);
}

/* A lane may have changed something and rung for the body: the body waits until the lane has paid, and only then
 * sees the change. */
static void await_lanes(sim_actor *me) {
    sim_rank *r = me->rank;
    for (int32_t i = 0; !me->is_lane && i < SIM_LANES; i++)
        while (r->lane[i].rings && pli_sim_clock() < r->dies) pli_sim_rest(me, r->dies);
}

/* Pays, sends, rings. May switch to other actors, so no port may be held. */
bool pli_sim_settle(pli_transport *sim) {
    sim_actor *me = self();
    pli_sim_pay(me);
    leave_all(me);
    ring_at_last(me);
    if (me->rank->done) pli_sim_wake(sim, &me->rank->body);
    pli_sim_wake_all(sim);
    await_lanes(me);
    return false;
}

/* --- the body ----------------------------------------------------------------------------------------------------- */

void pli_sim_sleep(pli_transport *sim, plait_comm *comm, uint32_t bell, uint64_t until_ns) {
    sim_actor *me = self();
    sim_rank  *r = me->rank;
    pli_sim_settle(sim);
    pli_sim_die(r);
    if (atomic_load(&comm->bell) != bell || r->dead) return;
    double until = until_ns == PLI_NEVER ? (double)INFINITY : (double)until_ns * 1e-9;
    pli_sim_rest(me, until < r->dies ? until : r->dies);
    await_lanes(me);
    pli_sim_die(r);
    pli_sim_thaw(r, me);
}

static bool has_unpaid(const sim_rank *r) {
    bool unpaid = false;
    for (int32_t i = 0; i < SIM_LANES; i++) unpaid = unpaid || r->lane[i].out.first != NULL;
    return unpaid;
}

void pli_sim_drain(pli_transport *sim, int32_t rank, bool in_good_order) {
    sim_rank  *r = &sim->rank[rank];
    sim_actor *me = self();
    r->done = true;
    pli_sim_settle(sim);
    while (in_good_order && (r->on_the_way > 0 || has_unpaid(r)) && !r->dead && !is_lost(sim, rank))
        pli_sim_rest(me, INFINITY);
    if (r->dead) sg_actor_sleep_for(sim->cluster.cost.notice);
}

static void end_all(pli_transport *sim) {
    sim->over = true;
    for (int32_t i = 0; i < sim->size; i++)
        for (int32_t l = 0; l < SIM_LANES; l++) pli_sim_wake(sim, &sim->rank[i].lane[l]);
    if (sim->widths.bell != NULL) pli_sim_wake(sim, &sim->widths);
    if (sim->cuts != NULL) pli_sim_wake(sim, pli_sim_cuts_actor(sim));
    pli_sim_wake_all(sim);
}

static void run_body(sim_rank *r) {
    pli_transport *sim = r->sim;
    pli_sim_thaw(r, &r->body);
    pli_world_run_rank(sim->world, r->rank);
    pli_sim_settle(sim);
    r->ended = true;
    if (--sim->living == 0) end_all(sim);
    if (sim->cuts != NULL) pli_sim_wake(sim, pli_sim_cuts_actor(sim)); /* it may be started anew */
    pli_sim_wake_all(sim);
    for (int32_t i = 0; i < sim->size && sim->standing > 0; i++)
        if (isinf(pli_script_thaw(&sim->cluster, i, pli_sim_clock()))) fail_if_all_stand(sim, i);
}

void pli_sim_run_again(sim_rank *r) {
    plait_error err;
    r->dies = INFINITY;
    r->dead = r->done = r->ended = false;
    r->sim->living++;
    if (start("body", r->place, actor_main, &r->body, &err) >= 0) return;
    r->sim->living--;
    r->dead = true;
    fail(r->sim, &err);
}

/* --- the whole run ------------------------------------------------------------------------------------------------ */

/* Sets the widths of links as the script says. */
static void set_width(const char *name, int32_t number, double bandwidth) {
    static const char *const ways[] = { "UP", "DOWN" };
    for (int way = 0; way < 2; way++) {
        char full[48];
        snprintf(full, sizeof full, "%s%d_%s", name, number, ways[way]);
        sg_link_set_bandwidth(sg_link_by_name(full), bandwidth);
    }
}

static void set_widths(const pli_cluster *c, double now) {
    for (int32_t h = 0; h < c->hosts; h++)
        set_width("host", h, pli_cluster_group(c, h)->link.bandwidth * pli_script_width(c, h, -1, -1, now));
    for (int32_t i = 0; i < c->racks; i++)
        set_width("uplink", i, c->rack[i].link.bandwidth * pli_script_width(c, -1, i, -1, now));
    for (int32_t i = 0; i < c->sites; i++)
        set_width("wan", i, c->site[i].link.bandwidth * pli_script_width(c, -1, -1, i, now));
}

static void widths_main(int argc, char **argv) {
    (void)argc;
    (void)argv;
    sim_actor     *me = self();
    pli_transport *sim = me->rank->sim;
    double         next = 0;
    while (!sim->over && next < FOREVER) {
        pli_sim_rest(me, next);
        if (sim->over) return;
        set_widths(&sim->cluster, pli_sim_clock());
        next = pli_script_next_width(&sim->cluster, pli_sim_clock());
    }
}

static void cuts_main(int argc, char **argv) {
    (void)argc;
    (void)argv;
    pli_sim_run_cuts(self());
}

/* Ranks start in an order that the seed draws. */
plait_status pli_sim_run(pli_transport *sim, plait_error *err) {
    uint32_t *order = pli_array((size_t)sim->size, sizeof *order);
    if (order == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for %d ranks", sim->size);
    pli_random random = pli_random_at(sim->seed, PLI_RANDOM_CLUSTER, UINT64_MAX, 0);
    pli_random_permutation(&random, sim->size, order);
    plait_status status = PLAIT_OK;
    sim->living = sim->size;
    for (int32_t i = 0; i < sim->size && status == PLAIT_OK; i++) {
        sim_rank *r = &sim->rank[order[i]];
        status = start("body", r->place, actor_main, &r->body, err);
        if (status == PLAIT_OK) status = start("lane", r->place, actor_main, &r->lane[0], err);
    }
    if (status == PLAIT_OK && pli_script_next_width(&sim->cluster, -1) < FOREVER)
        status = start("links", sim->rank[0].place, widths_main, &sim->widths, err);
    if (status == PLAIT_OK && sim->cuts != NULL)
        status = start("cuts", sim->rank[0].place, cuts_main, pli_sim_cuts_actor(sim), err);
    pli_free(order);
    if (status == PLAIT_OK) simgrid_run();
    if (status < 0 || sim->stood.code == PLAIT_OK) return status;
    *err = sim->stood;
    return err->code;
}
