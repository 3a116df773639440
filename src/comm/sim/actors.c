/* Bodies and ports. sim.h has the ideas. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "comm/sim/sim.h"

#define FOREVER     1e15 /* seconds: SimGrid's sleeps want a number */
#define STACK_BYTES ((unsigned)(2 << 20))

static double   clock_s(void) { return simgrid_get_clock(); }
static uint64_t ns_of(double seconds) { return seconds >= 1e10 ? PLI_NEVER : (uint64_t)llround(seconds * 1e9); }

uint64_t pli_sim_now(const pli_transport *sim) {
    (void)sim;
    return ns_of(clock_s());
}

static sim_actor *self(void) { return sg_actor_self_get_data(); }

/* --- waking and resting ------------------------------------------------------------------------------------- */

static void list_wake(pli_transport *sim, sim_actor *actor) {
    if (actor->listed) return;
    actor->listed = true;
    actor->next = NULL;
    *sim->wake_last = actor;
    sim->wake_last = &actor->next;
}

/* May change actors. */
static void wake_all(pli_transport *sim) {
    sim_actor *actor;
    while ((actor = sim->wake) != NULL) {
        sim->wake = actor->next;
        if (sim->wake == NULL) sim->wake_last = &sim->wake;
        actor->listed = false;
        if (!actor->asleep) continue;
        actor->asleep = false;
        sg_sem_release(actor->bell);
    }
}

/* Until it is woken, or until `until` (INFINITY: no end). */
static void rest(sim_actor *me, double until) {
    double now = clock_s();
    if (until <= now) return;
    me->asleep = true;
    if (until >= FOREVER) {
        sg_sem_acquire(me->bell);
    } else {
        sg_sem_acquire_timeout(me->bell, until - now);
    }
    me->asleep = false;
}

/* A frozen rank does nothing, save that it ends with the job. */
static void thaw(sim_rank *r, sim_actor *me) {
    for (;;) {
        double now = clock_s(), until = pli_script_thaw(&r->sim->cluster, r->rank, now);
        if (until <= now || r->dead || r->sim->over || atomic_load(&r->sim->world->lost)) return;
        rest(me, until < r->dies ? until : r->dies);
        if (clock_s() >= r->dies) return;
    }
}

static void die(sim_rank *r) {
    if (r->dead || r->done || clock_s() < r->dies) return;
    r->dead = true;
    plait_error why = { 0 };
    pli_fail(&why, PLAIT_EPEER, "killed by %s at %.6g s", r->sim->cluster.path != NULL ? r->sim->cluster.path : "the cluster",
             r->dies);
    why.rank = r->rank;
    pli_comm_fail(pli_world_comm(r->sim->world, r->rank), &why);
    list_wake(r->sim, &r->body);
}

/* --- paying ---------------------------------------------------------------------------------------------------- */

static void pay(sim_actor *me) {
    sim_rank *r = me->rank;
    while (me->owed > 0 && !r->dead) {
        double owed = me->owed, now = clock_s();
        me->owed = 0;
        bool   computes = !me->is_port && pli_comm_is_worker(pli_world_comm(r->sim->world, r->rank));
        double until = pli_script_finish(&r->sim->cluster, r->sim->seed, r->rank, computes ? r->clock : -1, now, owed);
        if (until > r->dies) until = r->dies;
        bool never = until >= FOREVER; /* frozen for good */
        sg_actor_sleep_until(never ? pli_script_freeze(&r->sim->cluster, r->rank, now) : until);
        if (never) thaw(r, me);
        die(r);
    }
    me->owed = 0;
    r->clock += me->clocks;
    me->clocks = 0;
}

void pli_sim_work(pli_transport *sim, int32_t rank, pli_work_kind kind, uint64_t amount) {
    sim_actor *me = self();
    (void)rank; /* who runs a machine of another rank, at a death, does it for free enough */
    me->owed += sim->cluster.cost.work_ns[kind] * (double)amount * 1e-9;
    if (kind == PLI_WORK_CLOCKS) me->clocks += (int64_t)amount;
}

/* --- letters ----------------------------------------------------------------------------------------------------- */

static bool is_before(const sim_letter *a, const sim_letter *b) {
    if (a->due_ns != b->due_ns) return a->due_ns < b->due_ns;
    return a->order != b->order ? a->order < b->order : a->number < b->number;
}

static bool push_letter(sim_rank *r, sim_letter letter) {
    if (!pli_grow((void **)&r->letter, &r->capacity, r->letters + 1, sizeof *r->letter)) return false;
    int64_t at = r->letters++;
    for (; at > 0 && is_before(&letter, &r->letter[(at - 1) / 2]); at = (at - 1) / 2) r->letter[at] = r->letter[(at - 1) / 2];
    r->letter[at] = letter;
    return true;
}

static sim_letter pop_letter(sim_rank *r) {
    sim_letter first = r->letter[0], last = r->letter[--r->letters];
    int64_t    at = 0;
    for (int64_t child; (child = 2 * at + 1) < r->letters; at = child) {
        if (child + 1 < r->letters && is_before(&r->letter[child + 1], &r->letter[child])) child++;
        if (!is_before(&r->letter[child], &last)) break;
        r->letter[at] = r->letter[child];
    }
    if (r->letters > 0) r->letter[at] = last;
    return first;
}

static void fail(pli_transport *sim, const char *what) {
    plait_error why;
    if (sim->failed) return;
    sim->failed = true;
    pli_fail(&why, PLAIT_ENOMEM, "no memory %s", what);
    why.rank = -1;
    pli_world_fail(sim->world, &why);
}

static void arrived(pli_transport *sim, sim_rank *src) {
    if (--src->on_the_way == 0 && src->done) list_wake(sim, &src->body);
}

static void post(pli_transport *sim, sim_rank *src, pli_msg *msg, double delay) {
    sim_rank  *dst = &sim->rank[msg->head.dst];
    double     way = pli_cluster_latency(&sim->cluster, src->host, dst->host) + delay;
    uint64_t   due = ns_of(clock_s() + way);
    sim_letter letter = { .msg = msg, .due_ns = due, .number = ++sim->number };
    letter.order = pli_hash_u64(sim->seed ^ pli_hash_u64(due ^ pli_hash_u64((uint64_t)src->rank + 1)));
    if (!push_letter(dst, letter)) {
        pli_msg_free(&msg);
        fail(sim, "to carry a message");
        return;
    }
    src->on_the_way++;
    if (dst->letter[0].number == letter.number) list_wake(sim, &dst->port);
}

/* Gives a message to the world outside. */
static void dispatch(pli_transport *sim, sim_rank *src, pli_msg *msg) {
    pli_fate fate = { .copies = 1 };
    if (sim->cluster.mishaps > 0)
        fate = pli_script_fate(&sim->cluster, sim->seed, src->rank, msg->head.dst, src->sent, clock_s());
    src->sent++;
    if (src->dead) fate.copies = 0;
    for (int32_t copy = 1; copy < fate.copies; copy++) {
        pli_msg *twin = pli_msg_copy(msg);
        if (twin != NULL) post(sim, src, twin, fate.delay[copy]);
    }
    if (fate.copies == 0) {
        pli_msg_free(&msg);
    } else {
        post(sim, src, msg, fate.delay[0]);
    }
}

void pli_sim_send(pli_transport *sim, pli_msg *msg) {
    sim_rank *src = &sim->rank[msg->head.src];
    msg->next = NULL;
    *src->out_last = msg;
    src->out_last = &msg->next;
    self()->owed += (sim->cluster.cost.message_ns + sim->cluster.cost.byte_ns * (double)msg->head.body_bytes) * 1e-9;
    if (src->out_listed) return;
    src->out_listed = true;
    src->next_out = NULL;
    *sim->out_last = src;
    sim->out_last = &src->next_out;
}

/* Pays, sends, rings. May change actors: no port is held. */
bool pli_sim_settle(pli_transport *sim) {
    sim_actor *me = self();
    sim_rank  *src;
    pay(me);
    while ((src = sim->out) != NULL) {
        sim->out = src->next_out;
        if (sim->out == NULL) sim->out_last = &sim->out;
        src->out_listed = false;
        pli_msg *list = src->out;
        src->out = NULL;
        src->out_last = &src->out;
        for (pli_msg *next; list != NULL; list = next) {
            next = list->next;
            list->next = NULL;
            dispatch(sim, src, list);
        }
    }
    wake_all(sim);
    return false;
}

void pli_sim_ring(pli_transport *sim, int32_t rank) { list_wake(sim, &sim->rank[rank].body); }

/* --- the body ------------------------------------------------------------------------------------------------------ */

void pli_sim_sleep(pli_transport *sim, plait_comm *comm, uint32_t bell, uint64_t until_ns) {
    sim_actor *me = self();
    sim_rank  *r = me->rank;
    pli_sim_settle(sim);
    die(r);
    if (atomic_load(&comm->bell) != bell || r->dead) return;
    double until = until_ns == PLI_NEVER ? (double)INFINITY : (double)until_ns * 1e-9;
    rest(me, until < r->dies ? until : r->dies);
    die(r);
    thaw(r, me);
}

void pli_sim_drain(pli_transport *sim, int32_t rank, bool in_good_order) {
    sim_rank  *r = &sim->rank[rank];
    sim_actor *me = self();
    r->done = true;
    pli_sim_settle(sim);
    while (in_good_order && r->on_the_way > 0 && !r->dead && !atomic_load(&sim->world->lost)) rest(me, INFINITY);
    if (r->dead) sg_actor_sleep_for(sim->cluster.cost.notice);
}

static void end_all(pli_transport *sim) {
    sim->over = true;
    for (int32_t i = 0; i < sim->size; i++) list_wake(sim, &sim->rank[i].port);
    if (sim->widths.bell != NULL) list_wake(sim, &sim->widths);
    wake_all(sim);
}

static void run_body(sim_rank *r) {
    pli_transport *sim = r->sim;
    thaw(r, &r->body);
    pli_world_run_rank(sim->world, r->rank);
    pli_sim_settle(sim);
    if (--sim->living == 0) end_all(sim);
}

/* --- the port ------------------------------------------------------------------------------------------------------- */

static void trace(pli_transport *sim, const pli_msg *msg) {
    const pli_head *h = &msg->head;
    uint64_t        line[4] = { pli_sim_now(sim), (uint64_t)(uint32_t)h->src << 32 | (uint32_t)h->dst,
                                (uint64_t)h->port << 32 | h->kind, h->seq };
    uint64_t        bytes = sizeof *h + h->body_bytes;
    pli_sha256_add(&sim->trace, line, sizeof line);
    pli_sha256_add(&sim->trace, &bytes, sizeof bytes);
}

static void take(sim_rank *r, sim_letter letter) {
    pli_transport *sim = r->sim;
    sim_rank      *src = &sim->rank[letter.msg->head.src];
    const double   bytes = (double)(sizeof(pli_head) + letter.msg->head.body_bytes);
    if (src->host != r->host) sg_host_sendto(src->place, r->place, bytes);
    r->port.owed += (sim->cluster.cost.message_ns + sim->cluster.cost.byte_ns * bytes) * 1e-9;
    pay(&r->port);
    thaw(r, &r->port);
    die(r);
    if (r->dead) {
        pli_msg_free(&letter.msg);
    } else {
        trace(sim, letter.msg);
        pli_world_deliver(sim->world, letter.msg);
    }
    arrived(sim, src);
    pli_sim_settle(sim);
}

static void run_port(sim_rank *r) {
    pli_transport *sim = r->sim;
    bool           resends = sim->world->place.resend_after_ns > 0;
    while (!sim->over) {
        double next = INFINITY;
        if (resends && !r->dead) { /* while the body computes, too */
            uint64_t wake_ns = pli_comm_wakeups(pli_world_comm(sim->world, r->rank), pli_sim_now(sim));
            if (wake_ns != PLI_NEVER) next = (double)wake_ns * 1e-9;
        }
        double due = r->letters > 0 ? (double)r->letter[0].due_ns * 1e-9 : (double)INFINITY;
        if (sim->over) break;
        if (r->letters > 0 && r->letter[0].due_ns <= pli_sim_now(sim)) {
            take(r, pop_letter(r));
        } else {
            rest(&r->port, due < next ? due : next);
        }
    }
}

/* --- all ------------------------------------------------------------------------------------------------------------- */

static void actor_main(int argc, char **argv) {
    (void)argc;
    (void)argv;
    sim_actor *me = self();
    if (me->is_port) run_port(me->rank);
    else run_body(me->rank);
}


/* Link widths follow the script. */
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
        rest(me, next);
        if (sim->over) return;
        set_widths(&sim->cluster, clock_s());
        next = pli_script_next_width(&sim->cluster, clock_s());
    }
}

static plait_status start(const char *name, sg_host_t host, xbt_main_func_t code, sim_actor *actor, plait_error *err) {
    if ((actor->bell = sg_sem_init(0)) == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for %s", name);
    sg_actor_t born = sg_actor_init(name, host);
    sg_actor_set_data(born, actor);
    sg_actor_set_stacksize(born, STACK_BYTES);
    sg_actor_start_(born, code, 0, NULL);
    return PLAIT_OK;
}

/* Born in an order that the seed draws. */
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
        if (status == PLAIT_OK) status = start("port", r->place, actor_main, &r->port, err);
    }
    sim->widths.rank = &sim->rank[0];
    if (status == PLAIT_OK && pli_script_next_width(&sim->cluster, -1) < FOREVER)
        status = start("links", sim->rank[0].place, widths_main, &sim->widths, err);
    pli_free(order);
    if (status == PLAIT_OK) simgrid_run();
    return status;
}
