/* Ports: inboxes, and running machines in place. The invariant is stated at struct pli_port. */
#include "comm/rounds.h"
#include "comm/world.h"

#ifdef PLI_TESTING /* see world.h */
#define SHAKE() pli_comm_shake()
#else
#define SHAKE() ((void)0)
#endif

void pli_port_init(pli_port *port, plait_comm *comm, uint32_t number) {
    atomic_init(&port->inbox, NULL);
    atomic_init(&port->lock, 0);
    atomic_init(&port->queued, 0);
    atomic_init(&port->state, PLI_PORT_NOT_YET);
    atomic_init(&port->seen, 0);
    atomic_init(&port->wake_at_ns, PLI_NEVER);
    atomic_init(&port->owes, false);
    port->next_run = NULL;
    port->comm = comm;
    port->number = number;
    port->numbers = NULL;
    port->job = 0;
    port->ops = NULL;
    port->machine = NULL;
}

/* --- the lock: a futex mutex with a try (Drepper, "Futexes Are Tricky", mutex 3) ------------------------ */

static bool try_lock(pli_port *port) {
    uint32_t free = 0;
    return atomic_compare_exchange_strong(&port->lock, &free, 1);
}

static void lock(pli_port *port) {
    for (int i = 0; i < 64; i++)
        if (try_lock(port)) return;
    while (atomic_exchange(&port->lock, 2) != 0) pli_futex_wait(&port->lock, 2, 1000000000u);
}

static void unlock(pli_port *port) {
    if (atomic_exchange(&port->lock, 0) == 2) pli_futex_wake(&port->lock, 1);
}

/* --- work ------------------------------------------------------------------------------------------------- */

void pli_work_init(pli_work *work) {
    work->first = NULL;
    work->last = &work->first;
    work->remote = false;
}

static void work_add(pli_work *work, pli_port *port) {
    if (atomic_exchange(&port->queued, 1) != 0) return; /* the thread that queued it has not looked into the inbox
                                                         * yet */
    port->next_run = NULL;
    *work->last = port;
    work->last = &port->next_run;
}

static void push(pli_port *port, pli_msg *msg) {
    pli_msg *old = atomic_load_explicit(&port->inbox, memory_order_relaxed);
    do msg->next = old;
    while (!atomic_compare_exchange_weak(&port->inbox, &old, msg));
}

/* Takes the whole inbox, oldest first. */
static pli_msg *take_all(pli_port *port) {
    pli_msg *list = NULL;
    for (pli_msg *msg = atomic_exchange(&port->inbox, NULL), *next; msg != NULL; msg = next) {
        next = msg->next;
        msg->next = list;
        list = msg;
    }
    return list;
}

static bool has_work(const pli_port *port) {
    if (atomic_load(&port->state) == PLI_PORT_NOT_YET) return false;
    if (atomic_load(&port->inbox) != NULL) return true;
    return atomic_load(&port->state) == PLI_PORT_OPEN &&
           atomic_load(&port->seen) != atomic_load(&port->comm->members->n_events);
}

void pli_comm_fail(plait_comm *comm, const plait_error *why) {
    pthread_mutex_lock(&comm->failed_lock);
    if (!atomic_load_explicit(&comm->failed, memory_order_relaxed)) {
        comm->failed_why = *why;
        if (comm->failed_why.rank < 0) comm->failed_why.rank = comm->rank;
        atomic_store_explicit(&comm->failed, true, memory_order_release);
    }
    pthread_mutex_unlock(&comm->failed_lock);
    pli_log(comm->world->log, PLAIT_LOG_DEBUG, comm->rank, "comm", "%s", why->text);
}

/* Puts a message (taken) into the inbox of the port of this rank for which it is. */
static void hand(plait_comm *comm, pli_msg *msg, pli_work *work) {
    pli_port *port = pli_comm_port(comm, msg->head.port);
    if (port == NULL) {
        plait_error why = { .rank = comm->rank };
        pli_fail(&why, PLAIT_ENOMEM, "no memory for a port of a group");
        pli_msg_free(&msg);
        pli_comm_fail(comm, &why);
        pli_comm_ring(comm);
        return;
    }
    push(port, msg);
    work_add(work, port);
}

/* Collectives use all flags for their own purposes. */
static bool is_counted(const pli_msg *msg) {
    const uint32_t port = msg->head.port % PLI_PORT_MAX;
    return port < PLI_PORT_SERVER || port == PLI_PORT_AGREED || !(msg->head.flags & PLI_MSG_UNCOUNTED);
}

/* msg: its receiver is a rank of the run, its port one of the group whose port has sent it. */
static void send_one(const pli_port *from, pli_msg *msg, pli_work *work) {
    plait_comm *comm = from->comm;
    pli_world  *world = comm->world;
    int32_t     dst = msg->head.dst;
    uint32_t    number = msg->head.port;
    msg->head.src = comm->rank;
    msg->head.epoch = pli_comm_epoch(comm);
    msg->head.incarnation = pli_comm_incarnation(comm);
    if (atomic_load_explicit(&comm->killed, memory_order_relaxed)) {
        pli_msg_free(&msg);
        return;
    }
    if (dst < 0 || dst >= world->size || number == 0 || number >= PLI_PORT_MAX) {
        pli_log(world->log, PLAIT_LOG_ERROR, comm->rank, "comm", "a message to rank %d, port %u, which does not exist",
                dst, number);
        pli_msg_free(&msg);
        return;
    }
    msg->head.port = (uint16_t)(from->number - from->number % PLI_PORT_MAX + number);
    if (dst != comm->rank && is_counted(msg))
        atomic_fetch_add_explicit(&comm->sent[number], sizeof(pli_head) + msg->head.body_bytes, memory_order_relaxed);
    if (!pli_world_is_local(world, dst) || (world->ops->carries_local && dst != comm->rank)) {
        pli_doctor_sent(world, comm->rank, dst);
        world->ops->send(world->transport, msg);
        work->remote = true;
        return;
    }
    hand(&world->local[dst - world->place.first], msg, work);
}

void pli_comm_charge(plait_comm *comm, const pli_out *out) {
    if (comm->world->ops->work == NULL) return;
    for (int kind = 0; kind < PLI_WORK_KINDS; kind++) pli_comm_work(comm, (pli_work_kind)kind, out->work[kind]);
}

/* Messages from `first` on continue the chain that began at origin_ns, except those that already have a chain. */
static void stamp(pli_msg *first, uint64_t origin_ns) {
    for (pli_msg *msg = first; msg != NULL; msg = msg->next)
        if (msg->origin_ns == 0) msg->origin_ns = origin_ns;
}

/* Empties a machine's answer. The machine's lock is still held, so that its messages leave in order. cause_ns: when
 * the chain began that it rings for. */
static void empty(pli_port *port, pli_out *out, uint64_t cause_ns, pli_work *work) {
    plait_comm *comm = port->comm;
    for (pli_msg *msg = out->first, *next; msg != NULL; msg = next) {
        next = msg->next;
        if (msg->head.seq > 0 && comm->world->place.resend_after_ns > 0) atomic_store(&port->owes, true);
        msg->head.job = port->job;
        msg->head.dst = pli_numbers_rank(port->numbers, msg->head.dst);
        send_one(port, msg, work);
    }
    pli_comm_charge(comm, out);
    bool ring = out->ring;
    if (out->wake_at_ns < atomic_load_explicit(&port->wake_at_ns, memory_order_relaxed)) {
        atomic_store(&port->wake_at_ns, out->wake_at_ns);
        ring = true; /* a sleeping waiter must wake up earlier */
    }
    if (out->error.code < 0) {
        out->error.rank = pli_numbers_rank(port->numbers, out->error.rank);
        pli_comm_fail(comm, &out->error);
        ring = true;
    }
    if (out->ring) pli_comm_ring_since(comm, cause_ns);
    else if (ring) pli_comm_ring(comm);
    pli_out_init(out);
}

/* A message for a machine that is no more was doubled on its way, or was sent again because its sender had not heard
 * that it arrived. A message of a job that this rank has not begun yet will come again. */
static void take_late(const pli_port *port, pli_msg **msg, pli_work *work) {
    const pli_world *world = port->comm->world;
    bool     over = (int16_t)((*msg)->head.job - port->job) <= 0; /* job numbers wrap around */
    bool     asks = over && world->place.resend_after_ns > 0 && (*msg)->head.seq > 0 && port->ops->late != NULL;
    pli_msg *answer = asks ? port->ops->late(*msg) : NULL;
    if (answer != NULL) {
        answer->head.dst = (*msg)->head.src;
        answer->head.job = (*msg)->head.job;
        send_one(port, answer, work);
    }
    pli_msg_free(msg);
}

/* Hands a message to the machine. The machine's answer and its ring belong to that message's chain. */
static void take(pli_port *port, uint64_t now_ns, pli_msg *msg, pli_out *out, uint64_t *cause_ns) {
    uint64_t  origin_ns = msg->origin_ns != 0 ? msg->origin_ns : now_ns;
    pli_msg **answers = out->last;
    bool      rings = out->ring;
    msg->head.src = pli_numbers_of(port->numbers, msg->head.src);
    msg->head.dst = pli_numbers_of(port->numbers, msg->head.dst);
    msg->head.port %= PLI_PORT_MAX;
    if (msg->head.src < 0) { /* from nobody that the group knows */
        pli_msg_free(&msg);
        return;
    }
    out->ring = false;
    port->ops->on_message(port->machine, now_ns, msg, out);
    stamp(*answers, origin_ns);
    if (out->ring) *cause_ns = origin_ns;
    out->ring = out->ring || rings;
}

static void tell_member(const pli_port *port, uint64_t now_ns, const pli_member_event *event, pli_out *out) {
    if (port->numbers == NULL) {
        port->ops->on_member(port->machine, now_ns, event, out);
        return;
    }
    pli_member_event own = *event;
    own.rank = pli_numbers_of(port->numbers, event->rank);
    if (own.rank >= 0) port->ops->on_member(port->machine, now_ns, &own, out);
}

/* Called with the lock held. Messages come first, then the member events that stood in the log before the inbox was
 * taken, so that a rank's last message comes before the news of its end. */
static void run_locked(pli_port *port, pli_work *work) {
    pli_world   *world = port->comm->world;
    pli_members *members = port->comm->members;
    int32_t      events = atomic_load(&members->n_events);
    SHAKE();
    pli_msg   *msg = take_all(port);
    bool       open = atomic_load_explicit(&port->state, memory_order_relaxed) == PLI_PORT_OPEN &&
                !atomic_load_explicit(&port->comm->killed, memory_order_relaxed);
    uint64_t   now_ns = open ? pli_world_now(world) : 0, cause_ns = now_ns;
    pli_out    out;
    pli_out_init(&out);
    for (pli_msg *next; msg != NULL; msg = next) {
        next = msg->next;
        msg->next = NULL;
        if (open && msg->head.job == port->job) take(port, now_ns, msg, &out, &cause_ns);
        else take_late(port, &msg, work);
    }
    for (int32_t i = atomic_load_explicit(&port->seen, memory_order_relaxed); open && i < events; i++) {
        const pli_member_event *event = &members->events[i];
        if (event->rank != port->comm->rank && port->ops->on_member != NULL) tell_member(port, now_ns, event, &out);
    }
    atomic_store(&port->seen, events);
    stamp(out.first, now_ns);
    empty(port, &out, cause_ns, work);
}

static void try_port(pli_port *port, pli_work *work) {
    while (has_work(port) && try_lock(port)) {
        run_locked(port, work);
        SHAKE();
        unlock(port);
    }
}

void pli_work_run(pli_work *work, pli_world *world) {
    pli_port *port;
    while ((port = work->first) != NULL) {
        work->first = port->next_run;
        if (work->first == NULL) work->last = &work->first;
        atomic_exchange(&port->queued, 0); /* before the look into the inbox: a message pushed from now on queues the
                                            * port anew */
        SHAKE();
        try_port(port, work);
    }
    if (work->remote && world->ops->progress != NULL) world->ops->progress(world->transport);
}

/* --- what rooms call ---------------------------------------------------------------------------------------- */

plait_status pli_port_open(plait_comm *comm, uint32_t number, const pli_machine_ops *ops, void *state,
                           pli_port **port_out, plait_error *err) {
    return pli_port_open_in(comm, NULL, number, ops, state, port_out, err);
}

plait_status pli_port_open_in(plait_comm *comm, plait_group *group, uint32_t number, const pli_machine_ops *ops,
                              void *state, pli_port **port_out, plait_error *err) {
    if (number == 0 || number >= PLI_PORT_MAX) return pli_fail(err, PLAIT_EINVAL, "there is no port %u", number);
    pli_port *port = pli_comm_port(comm, pli_group_id(group) * PLI_PORT_MAX + number);
    if (port == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a port of a group");
    lock(port);
    if (atomic_load(&port->state) == PLI_PORT_OPEN) {
        unlock(port);
        return pli_fail(err, PLAIT_EINVAL, "port %u of rank %d is in use (%s)", number, comm->rank, port->ops->name);
    }
    port->ops = ops;
    port->machine = state;
    port->numbers = pli_group_numbers(group);
    port->job = number < PLI_PORT_SERVER ? 0 : comm->jobs;
    atomic_store(&port->seen, 0);
    atomic_store(&port->wake_at_ns, PLI_NEVER);
    atomic_store(&port->state, PLI_PORT_OPEN);
    unlock(port);
    *port_out = port;
    pli_work work;
    pli_work_init(&work);
    try_port(port, &work);
    pli_work_run(&work, comm->world);
    return PLAIT_OK;
}

/* Ports of a group open when a member comes to the group's first table of a job, at which others may have been before.
 * Where nothing is sent again, messages for the next job wait here as they did for the first. Those that are late for
 * this one are freed when the port opens again, or with the run. */
void pli_port_close(pli_port **port_ptr) {
    pli_port *port = *port_ptr;
    *port_ptr = NULL;
    if (port == NULL) return;
    lock(port);
    const bool waits = port->number >= PLI_PORT_MAX && port->comm->world->place.resend_after_ns == 0;
    atomic_store(&port->state, waits ? PLI_PORT_NOT_YET : PLI_PORT_CLOSED);
    atomic_store(&port->wake_at_ns, PLI_NEVER);
    atomic_store(&port->owes, false);
    port->machine = NULL;
    port->numbers = NULL;
    unlock(port);
    pli_work work; /* drops the messages that have come, if none is waited for */
    pli_work_init(&work);
    try_port(port, &work);
}

void pli_port_enter(pli_port *port, uint64_t *now_ns, pli_out *out) {
    pli_world_settle(port->comm->world);
    lock(port);
    *now_ns = pli_world_now(port->comm->world);
    pli_out_init(out);
}

void pli_port_leave(pli_port *port, pli_out *out) {
    pli_work work;
    pli_work_init(&work);
    uint64_t now_ns = out->first != NULL || out->ring ? pli_world_now(port->comm->world) : 0;
    stamp(out->first, now_ns);
    empty(port, out, now_ns, &work);
    unlock(port);
    try_port(port, &work);
    pli_work_run(&work, port->comm->world);
}

/* --- what drivers call ----------------------------------------------------------------------------------------- */

void pli_world_deliver(pli_world *world, pli_msg *msg) {
    if (world->heard != NULL &&
        atomic_load_explicit(&world->heard[msg->head.src], memory_order_relaxed) < msg->head.epoch)
        atomic_store_explicit(&world->heard[msg->head.src], msg->head.epoch, memory_order_relaxed);
    if (msg->head.port == 0) {
        pli_world_control(world, msg);
        return;
    }
    int32_t src = msg->head.src, dst = msg->head.dst;
    const pli_members *members = pli_world_comm(world, dst)->members;
    const uint32_t     life = members->life[src];
    if (msg->head.incarnation > life && world->apart != NULL) { /* this rank does not know yet that src lives anew */
        pli_msg **last = &pli_world_comm(world, dst)->early;
        while (*last != NULL) last = &(*last)->next;
        msg->next = NULL;
        *last = msg;
        return;
    }
    if (msg->head.incarnation != life ||
        atomic_load_explicit(&members->ended[src], memory_order_relaxed) == PLI_MEMBER_DIED + 1) {
        pli_msg_free(&msg); /* from a life that is over */
        return;
    }
    pli_work work;
    pli_work_init(&work);
    hand(pli_world_comm(world, dst), msg, &work);
    pli_doctor_received(world, src, dst);
    pli_work_run(&work, world);
}

void pli_members_take_early(pli_members *members) {
    pli_world *world = members->world;
    for (int32_t i = 0; i < world->place.count; i++) {
        if (world->local[i].members != members) continue;
        pli_msg *early = world->local[i].early;
        world->local[i].early = NULL;
        for (pli_msg *next; early != NULL; early = next) {
            next = early->next;
            early->next = NULL;
            pli_world_deliver(world, early);
        }
    }
}

void pli_members_announce(pli_members *members) {
    pli_world    *world = members->world;
    const bool    alone = world->n_members > 1;
    const int32_t first = alone ? members->me : 0, to = alone ? first + 1 : world->place.count;
    pli_work      work;
    pli_work_init(&work);
    for (int32_t i = first; i < to; i++) {
        uint32_t at = 1;
        for (pli_port *port; (port = pli_comm_next_port(&world->local[i], &at)) != NULL;) work_add(&work, port);
    }
    pli_work_run(&work, world);
    for (int32_t i = first; i < to; i++) pli_comm_ring(&world->local[i]);
}

static void wake(pli_port *port) {
    uint64_t now_ns;
    pli_out  out;
    pli_port_enter(port, &now_ns, &out);
    atomic_store(&port->wake_at_ns, PLI_NEVER);
    if (atomic_load(&port->state) == PLI_PORT_OPEN && !atomic_load(&port->comm->killed) && port->ops->on_wakeup != NULL)
        port->ops->on_wakeup(port->machine, now_ns, &out);
    if (atomic_exchange(&port->owes, out.keeps) && !out.keeps) pli_comm_ring(port->comm); /* a thread may wait for
                                                                                           * that */
    pli_port_leave(port, &out);
}

uint64_t pli_comm_wakeups(plait_comm *comm, uint64_t now_ns) {
    uint64_t next = PLI_NEVER;
    uint32_t number = 1;
    for (pli_port *port; (port = pli_comm_next_port(comm, &number)) != NULL;) {
        if (atomic_load(&port->wake_at_ns) <= now_ns) wake(port);
        uint64_t at = atomic_load(&port->wake_at_ns);
        if (at < next) next = at;
    }
    return next;
}

bool pli_comm_owes(plait_comm *comm) {
    bool     owes = false;
    uint32_t at = 1;
    for (const pli_port *port; (port = pli_comm_next_port(comm, &at)) != NULL;)
        owes = owes || atomic_load(&port->owes);
    return owes;
}
