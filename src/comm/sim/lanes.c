/* What comes to a rank, and the lanes that carry it. sim.h has the ideas.
 *
 * A message is a letter until its latency is over. Then it stands among those that are due until it may flow, then
 * among those that have arrived until a lane takes it. Invariants:
 * 1. At most one lane takes, at most one watches, and at most SIM_FLOWS carry, each from another sender: messages of
 * one sender arrive at a rank in order.
 * 2. A lane that begins something that takes time has first woken another lane if there is more to do, so that a
 * flow never waits for the rank's work. */
#include <math.h>

#include "comm/sim/sim.h"

enum { LOOK = 32 /* at most so many due messages may be overtaken by younger ones of another sender */ };

void pli_sim_list_init(sim_list *list) {
    list->first = NULL;
    list->last = &list->first;
}

void pli_sim_list_add(sim_list *list, pli_msg *msg) {
    msg->next = NULL;
    *list->last = msg;
    list->last = &msg->next;
}

static pli_msg *remove_at(sim_list *list, pli_msg **link) {
    pli_msg *msg = *link;
    *link = msg->next;
    if (list->last == &msg->next) list->last = link;
    msg->next = NULL;
    return msg;
}

/* --- letters ------------------------------------------------------------------------------------------------------ */

static bool is_before(const sim_letter *a, const sim_letter *b) {
    if (a->due_ns != b->due_ns) return a->due_ns < b->due_ns;
    return a->order != b->order ? a->order < b->order : a->number < b->number;
}

static bool push_letter(sim_rank *r, sim_letter letter) {
    if (!pli_grow((void **)&r->letter, &r->capacity, r->letters + 1, sizeof *r->letter)) return false;
    int64_t at = r->letters++;
    for (; at > 0 && is_before(&letter, &r->letter[(at - 1) / 2]); at = (at - 1) / 2)
        r->letter[at] = r->letter[(at - 1) / 2];
    r->letter[at] = letter;
    return true;
}

static pli_msg *pop_letter(sim_rank *r) {
    sim_letter first = r->letter[0], last = r->letter[--r->letters];
    int64_t    at = 0;
    for (int64_t child; (child = 2 * at + 1) < r->letters; at = child) {
        if (child + 1 < r->letters && is_before(&r->letter[child + 1], &r->letter[child])) child++;
        if (!is_before(&r->letter[child], &last)) break;
        r->letter[at] = r->letter[child];
    }
    if (r->letters > 0) r->letter[at] = last;
    return first.msg;
}

static void wake_a_lane(sim_rank *r) {
    for (int32_t i = 0; i < SIM_LANES; i++)
        if (r->lane[i].idle) {
            pli_sim_wake(r->sim, &r->lane[i]);
            return;
        }
}

bool pli_sim_post(sim_rank *r, pli_msg *msg, uint64_t due_ns) {
    sim_letter letter = { .msg = msg, .due_ns = due_ns, .number = ++r->sim->number };
    letter.order = pli_hash_u64(r->sim->seed ^ pli_hash_u64(due_ns ^ pli_hash_u64((uint64_t)msg->head.src + 1)));
    if (!push_letter(r, letter)) return false;
    if (r->letter[0].number != letter.number) return true;
    if (r->watcher != NULL) pli_sim_wake(r->sim, r->watcher);
    else wake_a_lane(r);
    return true;
}

/* --- what is to be done ------------------------------------------------------------------------------------------- */

/* Collects letters whose time has come. Between ranks of one host there is no link to flow through. */
static void collect(sim_rank *r) {
    uint64_t now_ns = pli_sim_now(r->sim);
    while (r->letters > 0 && r->letter[0].due_ns <= now_ns) {
        pli_msg *msg = pop_letter(r);
        pli_sim_list_add(r->sim->rank[msg->head.src].host == r->host ? &r->arrived : &r->due, msg);
    }
}

static bool flows_from(const sim_rank *r, int32_t src) {
    for (int32_t i = 0; i < SIM_LANES; i++)
        if (r->lane[i].from == src) return true;
    return false;
}

/* Finds the oldest message that may flow now; NULL: none may. */
static pli_msg **next_flow(sim_rank *r) {
    pli_msg **link = &r->due.first;
    int32_t   flows = 0;
    for (int32_t i = 0; i < SIM_LANES; i++) flows += r->lane[i].from >= 0;
    if (flows == SIM_FLOWS) return NULL;
    for (int32_t i = 0; i < LOOK && *link != NULL; i++, link = &(*link)->next)
        if (!flows_from(r, (*link)->head.src)) return link;
    return NULL;
}

/* The lane is about to be busy: if there is more to do, it wakes another lane. */
static void relay(sim_rank *r) {
    bool resends = r->sim->world->place.resend_after_ns > 0;
    if ((r->arrived.first == NULL || r->takes) && next_flow(r) == NULL &&
        (r->watcher != NULL || (r->letters == 0 && !resends)))
        return;
    wake_a_lane(r);
    pli_sim_wake_all(r->sim);
}

/* --- doing it ----------------------------------------------------------------------------------------------------- */

/* While a message flows, the operating systems of both ends work for it: if all hosts are parts of one machine, on
 * cores that others may want. It has come when both are done. */
static void carry(sim_actor *me, pli_msg *msg) {
    sim_rank     *r = me->rank;
    const double  bytes = (double)(sizeof(pli_head) + msg->head.body_bytes);
    const double  kernel = r->sim->machine != NULL ? r->sim->cluster.cost.kernel_ns * bytes : 0; /* 1 ns: 1 flop */
    sg_exec_t     work = kernel > 0 ? sg_actor_exec_init(kernel) : NULL;
    me->from = msg->head.src;
    relay(r);
    if (work != NULL) {
        sg_exec_set_host(work, r->sim->machine);
        sg_exec_start(work);
    }
    sg_host_sendto(r->sim->rank[me->from].place, r->place, bytes);
    if (work != NULL) sg_exec_wait(work);
    me->from = -1;
    pli_sim_list_add(&r->arrived, msg);
}

static void trace(pli_transport *sim, const pli_msg *msg) {
    const pli_head *h = &msg->head;
    uint64_t        line[4] = { pli_sim_now(sim), (uint64_t)(uint32_t)h->src << 32 | (uint32_t)h->dst,
                                (uint64_t)h->port << 32 | h->kind, h->seq };
    uint64_t        bytes = sizeof *h + h->body_bytes;
    sim->delivered++;
    pli_sha256_add(&sim->trace, line, sizeof line);
    pli_sha256_add(&sim->trace, &bytes, sizeof bytes);
}

static void take(sim_actor *me) {
    sim_rank      *r = me->rank;
    pli_transport *sim = r->sim;
    pli_msg       *msg = remove_at(&r->arrived, &r->arrived.first);
    sim_rank      *src = &sim->rank[msg->head.src];
    double         bytes = (double)(sizeof(pli_head) + msg->head.body_bytes);
    r->takes = true;
    relay(r);
    me->owed += (sim->cluster.cost.message_ns + sim->cluster.cost.byte_ns * bytes) * 1e-9;
    pli_sim_pay(me);
    pli_sim_thaw(r, me);
    pli_sim_die(r);
    if (r->dead) {
        pli_msg_free(&msg);
    } else {
        trace(sim, msg);
        pli_world_deliver(sim->world, msg);
    }
    pli_sim_taken(sim, src);
    pli_sim_settle(sim);
    r->takes = false;
}

/* Waits until the next letter is due, or something is to be sent again. */
static void watch(sim_actor *me) {
    sim_rank *r = me->rank;
    double    next = INFINITY;
    bool      resends = r->sim->world->place.resend_after_ns > 0;
    r->watcher = me;
    r->rung = false;
    if (resends && !r->dead) { /* even while the body computes */
        uint64_t wake_ns = pli_comm_wakeups(pli_world_comm(r->sim->world, r->rank), pli_sim_now(r->sim));
        pli_sim_settle(r->sim);
        if (wake_ns != PLI_NEVER) next = (double)wake_ns * 1e-9;
    }
    double due = r->letters > 0 ? (double)r->letter[0].due_ns * 1e-9 : (double)INFINITY;
    if (!r->sim->over && !(resends && r->rung)) pli_sim_rest(me, due < next ? due : next);
    r->watcher = NULL;
}

void pli_sim_run_lane(sim_actor *me) {
    sim_rank *r = me->rank;
    pli_msg **link;
    while (!r->sim->over) {
        me->idle = false;
        collect(r);
        if (r->arrived.first != NULL && !r->takes) {
            take(me);
        } else if ((link = next_flow(r)) != NULL) {
            carry(me, remove_at(&r->due, link));
        } else if (r->watcher == NULL) {
            watch(me);
        } else {
            me->idle = true;
            pli_sim_rest(me, INFINITY);
        }
    }
    me->idle = false;
}
