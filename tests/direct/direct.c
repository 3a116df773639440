#include "direct/direct.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HASHED_BYTES_MAX = 1 << 16 };

struct machine {
    const pli_machine_ops *ops;
    void                  *state;
    uint64_t               wake_at_ns;
    pli_out                out; /* between enter and leave */
    bool                   entered, gone;
};

struct rank {
    struct machine port[PLI_PORT_MAX];
    uint32_t       incarnation, epoch;
    uint64_t       bytes;
    bool           rung, dead;
    plait_error    error;
};

/* One thing in flight: a message, or (msg NULL) the news of a member for one machine. */
struct flight {
    pli_msg *msg;
    uint64_t not_before_ns, body_hash;
    int32_t  src, dst;
    uint32_t port;
    int32_t  news; /* index into members */
    bool     may_overtake;
};

struct direct {
    direct_opts       opts;
    pli_random        random;
    int32_t           ranks;
    struct rank      *rank;
    struct flight    *bag; /* in the order of sending */
    int64_t           n, capacity;
    pli_member_event *members;
    int64_t           n_members, members_capacity;
    uint64_t          now_ns, hash;
    int64_t           events;
};

static void die(const char *what) {
    fprintf(stderr, "direct driver: %s\n", what);
    abort();
}

direct *direct_new(uint64_t seed, int32_t ranks, const direct_opts *opts) {
    direct *d = pli_calloc(1, sizeof *d);
    if (d == NULL) return NULL;
    if (opts != NULL) d->opts = *opts;
    if (d->opts.delay_ns == 0) d->opts.delay_ns = 1000000;
    if (d->opts.event_ns == 0) d->opts.event_ns = 1000;
    d->random = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 0, 0);
    d->ranks = ranks;
    d->now_ns = 1;
    d->rank = pli_calloc((size_t)ranks, sizeof *d->rank);
    if (d->rank == NULL) {
        pli_free(d);
        return NULL;
    }
    for (int32_t r = 0; r < ranks; r++) {
        d->rank[r].incarnation = d->rank[r].epoch = 1;
        for (uint32_t p = 0; p < PLI_PORT_MAX; p++) d->rank[r].port[p].wake_at_ns = PLI_NEVER;
    }
    return d;
}

void direct_free(direct **d_ptr) {
    direct *d = *d_ptr;
    *d_ptr = NULL;
    if (d == NULL) return;
    for (int64_t i = 0; i < d->n; i++) pli_msg_free(&d->bag[i].msg);
    pli_free(d->bag);
    pli_free(d->members);
    pli_free(d->rank);
    pli_free(d);
}

uint64_t direct_pick(direct *d, uint64_t below) { return pli_random_below(&d->random, below); }
static bool dice(direct *d, double probability) { return probability > 0 && pli_random_f64(&d->random) < probability; }

uint64_t direct_now(const direct *d) { return d->now_ns; }
int64_t  direct_in_flight(const direct *d) { return d->n; }
int64_t  direct_events(const direct *d) { return d->events; }
uint64_t direct_hash(const direct *d) { return d->hash; }
uint64_t direct_bytes(const direct *d, int32_t rank) { return d->rank[rank].bytes; }
const plait_error *direct_error(const direct *d, int32_t rank) { return &d->rank[rank].error; }
bool               direct_rung(direct *d, int32_t rank) {
    bool rung = d->rank[rank].rung;
    d->rank[rank].rung = false;
    return rung;
}

/* --- the bag -------------------------------------------------------------------------------------------- */

static uint64_t hash_body(const pli_msg *msg) {
    size_t bytes = msg->head.body_bytes < HASHED_BYTES_MAX ? msg->head.body_bytes : HASHED_BYTES_MAX;
    return bytes == 0 ? 0 : pli_hash_bytes(pli_msg_body(msg), bytes, 0);
}

static void throw_in(direct *d, struct flight flight) {
    if (!pli_grow((void **)&d->bag, &d->capacity, d->n + 1, sizeof *d->bag)) die("out of memory");
    if (flight.src != flight.dst) {
        flight.may_overtake = dice(d, d->opts.reorder);
        if (dice(d, d->opts.delay)) flight.not_before_ns = d->now_ns + 1 + direct_pick(d, d->opts.delay_ns);
    }
    d->bag[d->n++] = flight;
}

static void throw_msg(direct *d, pli_msg *msg) {
    const pli_head *head = &msg->head;
    if (head->dst < 0 || head->dst >= d->ranks || head->port == 0 || head->port >= PLI_PORT_MAX)
        die("a message to a rank or port that does not exist");
    throw_in(d, (struct flight){ .msg = msg, .src = head->src, .dst = head->dst, .port = head->port,
                                 .body_hash = hash_body(msg), .news = -1 });
}

static void send(direct *d, int32_t src, pli_msg *msg) {
    struct rank *rank = &d->rank[src];
    msg->head.src = src;
    msg->head.epoch = rank->epoch;
    msg->head.incarnation = rank->incarnation;
    msg->next = NULL;
    if (msg->head.dst != src) rank->bytes += sizeof(pli_head) + msg->head.body_bytes;
    if (msg->head.dst != src && dice(d, d->opts.drop)) {
        if (d->opts.trace)
            fprintf(stderr, "%" PRIu64 " lost: %d -> %d kind %u\n", d->now_ns, src, msg->head.dst, msg->head.kind);
        pli_msg_free(&msg);
        return;
    }
    pli_msg *copy = msg->head.dst != src && dice(d, d->opts.twice) ? pli_msg_copy(msg) : NULL;
    throw_msg(d, msg);
    if (copy != NULL) throw_msg(d, copy);
}

static void empty(direct *d, int32_t r, uint32_t port, pli_out *out) {
    struct machine *m = &d->rank[r].port[port];
    for (pli_msg *msg = out->first, *next; msg != NULL; msg = next) {
        next = msg->next;
        send(d, r, msg);
    }
    if (out->wake_at_ns < m->wake_at_ns) m->wake_at_ns = out->wake_at_ns;
    d->rank[r].rung |= out->ring;
    if (out->error.code < 0 && d->rank[r].error.code >= 0) d->rank[r].error = out->error;
    pli_out_init(out);
}

/* --- machines --------------------------------------------------------------------------------------------- */

void direct_add(direct *d, int32_t rank, uint32_t port, const pli_machine_ops *ops, void *state) {
    d->rank[rank].port[port] = (struct machine){ .ops = ops, .state = state, .wake_at_ns = PLI_NEVER };
}

void direct_remove(direct *d, int32_t rank, uint32_t port) {
    d->rank[rank].port[port] = (struct machine){ .gone = true, .wake_at_ns = PLI_NEVER };
}

pli_out *direct_enter(direct *d, int32_t rank, uint32_t port, uint64_t *now_ns) {
    struct machine *m = &d->rank[rank].port[port];
    if (m->ops == NULL || m->entered) die("enter: no machine there, or entered twice");
    m->entered = true;
    *now_ns = d->now_ns;
    pli_out_init(&m->out);
    return &m->out;
}

void direct_leave(direct *d, int32_t rank, uint32_t port) {
    struct machine *m = &d->rank[rank].port[port];
    m->entered = false;
    empty(d, rank, port, &m->out);
}

/* --- events --------------------------------------------------------------------------------------------------- */

static bool is_there(const direct *d, const struct flight *f) {
    const struct machine *m = &d->rank[f->dst].port[f->port];
    return m->ops != NULL || m->gone || d->rank[f->dst].dead;
}

/* May it be delivered now? Only if nothing of its pair that must come before it is left in the bag. */
static bool is_due(const direct *d, int64_t i) {
    const struct flight *f = &d->bag[i];
    if (f->not_before_ns > d->now_ns || !is_there(d, f)) return false;
    for (int64_t k = 0; f->msg == NULL && k < i; k++) { /* a machine hears of a rank's lives in their order */
        const struct flight *before = &d->bag[k];
        if (before->msg == NULL && before->src == f->src && before->dst == f->dst && before->port == f->port)
            return false;
    }
    if (f->may_overtake) return true;
    for (int64_t k = 0; k < i; k++) {
        const struct flight *before = &d->bag[k];
        if (before->src == f->src && before->dst == f->dst && !before->may_overtake) return false;
    }
    return true;
}

/* Picks a flight that is due, searching from a random place on; -1: none is due. */
static int64_t pick_flight(direct *d) {
    if (d->n == 0) return -1;
    int64_t from = (int64_t)direct_pick(d, (uint64_t)d->n);
    for (int64_t k = 0; k < d->n; k++) {
        int64_t i = from - k >= 0 ? from - k : from - k + d->n;
        if (is_due(d, i)) return i;
    }
    return -1;
}

static struct machine *pick_wakeup(direct *d, bool early, int32_t *rank_out, uint32_t *port_out) {
    struct machine *found = NULL;
    uint64_t        n = 0;
    for (int32_t r = 0; r < d->ranks; r++)
        for (uint32_t p = 1; p < PLI_PORT_MAX; p++) {
            struct machine *m = &d->rank[r].port[p];
            if (m->wake_at_ns == PLI_NEVER || (!early && m->wake_at_ns > d->now_ns)) continue;
            if (direct_pick(d, ++n) != 0) continue;
            found = m;
            *rank_out = r;
            *port_out = p;
        }
    return found;
}

static void note(direct *d, const char *what, int32_t src, int32_t dst, uint32_t port, const pli_head *head) {
    uint64_t words[6] = { d->hash, (uint64_t)what[0], (uint64_t)(uint32_t)src << 32 | (uint32_t)dst, port,
                          head != NULL ? head->seq : 0, head != NULL ? head->kind : 0 };
    d->hash = pli_hash_bytes(words, sizeof words, 0);
    d->events++;
    if (!d->opts.trace) return;
    fprintf(stderr, "%" PRIu64 " %s: %d -> %d port %u", d->now_ns, what, src, dst, port);
    if (head != NULL)
        fprintf(stderr, " kind %u seq %" PRIu64 " clock %" PRId64 " arg32 %u arg64 %" PRIu64 " body %" PRIu64,
                head->kind, head->seq, head->clock, head->arg32, head->arg64, head->body_bytes);
    fputc('\n', stderr);
}

static void wake(direct *d, struct machine *m, int32_t rank, uint32_t port) {
    pli_out out;
    pli_out_init(&out);
    note(d, "wake-up", rank, rank, port, NULL);
    m->wake_at_ns = PLI_NEVER;
    if (m->ops->on_wakeup != NULL) m->ops->on_wakeup(m->state, d->now_ns, &out);
    empty(d, rank, port, &out);
}

static void deliver(direct *d, int64_t i) {
    struct flight   f = d->bag[i];
    struct machine *m = &d->rank[f.dst].port[f.port];
    pli_out         out;
    pli_out_init(&out);
    memmove(&d->bag[i], &d->bag[i + 1], (size_t)(d->n - i - 1) * sizeof *d->bag);
    d->n--;
    note(d, f.msg != NULL ? "message" : "member", f.src, f.dst, f.port, f.msg != NULL ? &f.msg->head : NULL);
    if (f.msg != NULL && hash_body(f.msg) != f.body_hash) die("somebody has written a slab that was sent");
    if (m->ops == NULL) {
        pli_msg_free(&f.msg);
        return;
    }
    if (f.msg != NULL) {
        m->ops->on_message(m->state, d->now_ns, f.msg, &out);
    } else {
        const pli_member_event *event = &d->members[f.news];
        if (d->rank[f.dst].epoch < event->epoch) d->rank[f.dst].epoch = event->epoch;
        if (m->ops->on_member != NULL) m->ops->on_member(m->state, d->now_ns, event, &out);
    }
    empty(d, f.dst, f.port, &out);
}

/* Nothing is due now: lets time pass until something is. false: nothing ever will be. */
static bool jump(direct *d) {
    uint64_t next = PLI_NEVER;
    for (int64_t i = 0; i < d->n; i++)
        if (is_there(d, &d->bag[i]) && d->bag[i].not_before_ns > d->now_ns && d->bag[i].not_before_ns < next)
            next = d->bag[i].not_before_ns;
    for (int32_t r = 0; r < d->ranks; r++)
        for (uint32_t p = 1; p < PLI_PORT_MAX; p++)
            if (d->rank[r].port[p].wake_at_ns < next) next = d->rank[r].port[p].wake_at_ns;
    if (next == PLI_NEVER) return false;
    if (next > d->now_ns) d->now_ns = next;
    return true;
}

bool direct_step(direct *d) {
    d->now_ns += 1 + direct_pick(d, d->opts.event_ns);
    for (;;) { /* each jump leads to the time when something more is due */
        int32_t         rank = 0;
        uint32_t        port = 0;
        struct machine *m = pick_wakeup(d, dice(d, d->opts.early_wake), &rank, &port);
        int64_t         i = m != NULL && direct_pick(d, 2) == 0 ? -1 : pick_flight(d);
        if (i >= 0) {
            deliver(d, i);
            return true;
        }
        if (m != NULL) {
            wake(d, m, rank, port);
            return true;
        }
        if (!jump(d)) return false;
    }
}

bool direct_run(direct *d, int64_t max_events) {
    for (int64_t i = 0; i < max_events; i++)
        if (!direct_step(d)) return true;
    return false;
}

bool direct_run_until(direct *d, pli_ready_fn *ready, void *arg, int64_t max_events) {
    for (int64_t i = 0; i < max_events; i++) {
        if (ready(arg)) return true;
        if (!direct_step(d)) return ready(arg);
    }
    return false;
}

/* --- members ------------------------------------------------------------------------------------------------------ */

static void tell_members(direct *d, pli_member_kind kind, int32_t rank, const plait_error *why) {
    if (!pli_grow((void **)&d->members, &d->members_capacity, d->n_members + 1, sizeof *d->members))
        die("out of memory");
    pli_member_event *event = &d->members[d->n_members++];
    *event = (pli_member_event){ .kind = kind, .rank = rank, .epoch = (uint32_t)d->n_members + 1,
                                   .life = d->rank[rank].incarnation, .why = { .rank = rank } };
    if (why != NULL) event->why = *why;
    for (int32_t r = 0; r < d->ranks; r++)
        for (uint32_t p = 1; p < PLI_PORT_MAX; p++)
            if (r != rank && !d->rank[r].dead && d->rank[r].port[p].ops != NULL)
                throw_in(d, (struct flight){ .src = rank, .dst = r, .port = p, .news = (int32_t)d->n_members - 1 });
}

void direct_member(direct *d, pli_member_kind kind, int32_t rank, const plait_error *why) {
    d->rank[rank].dead = kind != PLI_MEMBER_JOINED;
    for (uint32_t p = 1; p < PLI_PORT_MAX && kind == PLI_MEMBER_DIED; p++) direct_remove(d, rank, p);
    tell_members(d, kind, rank, why);
}

void direct_suspect(direct *d, int32_t rank, const plait_error *why) { tell_members(d, PLI_MEMBER_DIED, rank, why); }

void direct_restart(direct *d, int32_t rank) {
    d->rank[rank].dead = false;
    d->rank[rank].incarnation++;
    d->rank[rank].epoch = (uint32_t)d->n_members + 1;
}

void direct_return(direct *d, int32_t rank) {
    d->rank[rank].incarnation++;
    direct_member(d, PLI_MEMBER_JOINED, rank, NULL);
    d->rank[rank].epoch = (uint32_t)d->n_members + 1;
    d->rank[rank].error = (plait_error){ 0 };
}

void direct_retell(direct *d, int32_t rank, uint32_t port) {
    for (int64_t i = 0; i < d->n_members; i++)
        if (d->members[i].rank != rank)
            throw_in(d, (struct flight){ .src = rank, .dst = rank, .port = port, .news = (int32_t)i });
}
