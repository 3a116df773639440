/* The channel of a cut graph over comm (plait/comm_channel.h): a port of its own, whose machine keeps the tensors that
 * have come, in order, and counts what it has sent.
 *
 * Two kinds of messages. A parcel (parcel.h) is a tensor. A grant says that the reader has received one along an edge;
 * a producer may have `grants` parcels of an edge on the way. Both travel in the links' streams, so they come once and
 * in order. The fields of a grant are those of its parcel, without elements. */
#include <plait/comm_channel.h>

#include <stdio.h>
#include <string.h>

#include "comm/comm.h"
#include "comm/links.h"
#include "graph/edge.h"
#include "graph/graph.h"
#include "learn/net/parcel.h"
#include "learn/net/stages.h"

enum { PARCEL = 1, GRANT = 2, GRANTS = 8 };

/* How many parcels of an edge are on the way. */
typedef struct sent {
    plait_edge edge; /* micro_batch does not count */
    int32_t    n;
} sent;

struct plait_comm_channel {
    plait_channel calls;
    plait_comm   *comm;
    pli_port     *port;
    int32_t       n_ranks, grants;
    int32_t      *rank; /* [n_ranks] */
    /* the machine's state, under the port's lock */
    pli_links links;
    bool     *left;          /* [size of the job] */
    pli_msg  *first, **last; /* parcels that were not received yet, in order */
    pli_msg  *lent;          /* those that were, until they are given back */
    sent     *sent;
    int64_t   n_sent, sent_capacity;
    uint64_t  waited_ns; /* in all; the rank's own */
};

static int32_t rank_of(const plait_comm_channel *c, int32_t part) { return c->rank[part % c->n_ranks]; }

/* The count of an edge; NULL: no memory. */
static sent *count_of(plait_comm_channel *c, const plait_edge *edge) {
    int64_t at = 0;
    while (at < c->n_sent && !pli_edge_is(&c->sent[at].edge, edge)) at++;
    if (at < c->n_sent) return &c->sent[at];
    if (!pli_grow((void **)&c->sent, &c->sent_capacity, c->n_sent + 1, sizeof *c->sent)) return NULL;
    c->sent[c->n_sent] = (sent){ .edge = *edge };
    return &c->sent[c->n_sent++];
}

/* --- the machine ------------------------------------------------------------------------------------------------ */

static void take(plait_comm_channel *c, pli_msg *msg, pli_out *out) {
    plait_edge   edge;
    plait_tensor t;
    plait_error  err;
    if (pli_parcel_read(pli_msg_body(msg), msg->head.body_bytes, &edge, &t, &err) < 0) {
        pli_out_fail(out, err.code, "%s (rank %d)", err.text, msg->head.src);
        pli_msg_free(&msg);
    } else if (msg->head.kind == PARCEL) {
        msg->next = NULL;
        *c->last = msg;
        c->last = &msg->next;
    } else {
        sent *count = count_of(c, &edge);
        if (count != NULL && count->n > 0) count->n--;
        pli_msg_free(&msg);
    }
    pli_out_ring(out);
}

static void on_message(void *state, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    plait_comm_channel *c = state;
    const int32_t       src = msg->head.src;
    for (msg = pli_links_take(&c->links, now_ns, msg, out); msg != NULL; msg = pli_links_next(&c->links, src))
        take(c, msg, out);
}

static void on_wakeup(void *state, uint64_t now_ns, pli_out *out) {
    plait_comm_channel *c = state;
    pli_links_wakeup(&c->links, now_ns, out);
}

static void on_member(void *state, uint64_t now_ns, const pli_member_event *event, pli_out *out) {
    plait_comm_channel *c = state;
    (void)now_ns;
    if (event->kind == PLI_MEMBER_JOINED || c->left[event->rank]) return;
    c->left[event->rank] = true;
    pli_links_forget(&c->links, event->rank);
    pli_out_ring(out);
}

static const pli_machine_ops machine = {
    .name = "channel", .on_message = on_message, .on_wakeup = on_wakeup, .on_member = on_member
};

static pli_msg **find(plait_comm_channel *c, const plait_edge *edge) {
    plait_edge   of;
    plait_tensor t;
    for (pli_msg **at = &c->first; *at != NULL; at = &(*at)->next) {
        (void)pli_parcel_read(pli_msg_body(*at), (*at)->head.body_bytes, &of, &t, NULL); /* it was checked */
        if (pli_edge_is(&of, edge) && of.micro_batch == edge->micro_batch) return at;
    }
    return NULL;
}

/* --- the channel's calls ----------------------------------------------------------------------------------------- */

static plait_status no_memory(const plait_comm_channel *c, const plait_edge *edge, plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory to send value %d to part %d on rank %d", edge->value, edge->to,
                    rank_of(c, edge->to));
}

static pli_msg *message(uint16_t kind, int32_t to, const plait_edge *edge, const plait_tensor *t) {
    const size_t bytes = pli_parcel_bytes(t);
    pli_msg     *msg = bytes > 0 ? pli_msg_new(bytes) : NULL;
    if (msg == NULL) return NULL;
    msg->head.kind = kind;
    msg->head.dst = to;
    pli_parcel_write(edge, t, pli_msg_body(msg));
    return msg;
}

static plait_status send(void *user, const plait_edge *edge, const plait_tensor *tensor, int *taken_out,
                         plait_error *err) {
    plait_comm_channel *c = user;
    uint64_t            now_ns;
    pli_out             out;
    pli_port_enter(c->port, &now_ns, &out);
    sent      *count = count_of(c, edge);
    const bool granted = count != NULL && count->n < c->grants;
    if (granted) count->n++;
    pli_port_leave(c->port, &out);
    *taken_out = granted;
    if (count == NULL) return no_memory(c, edge, err);
    if (!granted) return PLAIT_OK;
    pli_msg *msg = message(PARCEL, rank_of(c, edge->to), edge, tensor); /* a large copy, without the lock */
    if (msg == NULL) return no_memory(c, edge, err);
    pli_port_enter(c->port, &now_ns, &out);
    const bool done = pli_links_send(&c->links, now_ns, msg, &out);
    pli_port_leave(c->port, &out);
    return done ? PLAIT_OK : no_memory(c, edge, err);
}

static bool fits(const pli_msg *msg, const plait_tensor *like, const void **data_out) {
    plait_edge   edge;
    plait_tensor t;
    (void)pli_parcel_read(pli_msg_body(msg), msg->head.body_bytes, &edge, &t, NULL);
    *data_out = t.data;
    return pli_edge_fits(&t, like);
}

static plait_status receive(void *user, const plait_edge *edge, const plait_tensor *like, const void **data_out,
                            plait_error *err) {
    static const plait_tensor nothing = { .type = PLAIT_F32, .shape = { .rank = 1 } };
    plait_comm_channel       *c = user;
    uint64_t                  now_ns;
    pli_out                   out;
    plait_status              status = PLAIT_OK;
    *data_out = NULL;
    pli_port_enter(c->port, &now_ns, &out);
    pli_msg **at = find(c, edge), *msg = at == NULL ? NULL : *at;
    pli_msg  *grant = msg == NULL ? NULL : message(GRANT, msg->head.src, edge, &nothing);
    if (msg != NULL && !fits(msg, like, data_out)) {
        status =
            pli_fail(err, PLAIT_ESHAPE,
                     "rank %d has sent value %d in another shape than part %d expects: do both have the same feeds?",
                     msg->head.src, edge->value, edge->to);
        *data_out = NULL;
        pli_msg_free(&grant);
    } else if (msg != NULL && (grant == NULL || !pli_links_send(&c->links, now_ns, grant, &out))) {
        status = no_memory(c, edge, err);
        *data_out = NULL;
    } else if (msg != NULL) {
        *at = msg->next;
        if (*at == NULL) c->last = at;
        msg->next = c->lent;
        c->lent = msg;
    }
    pli_port_leave(c->port, &out);
    return status;
}

static void release(void *user, const plait_edge *edge, const void *data) {
    plait_comm_channel *c = user;
    (void)edge;
    pli_msg **at = &c->lent; /* only the rank's own thread uses this list */
    while (*at != NULL && (const unsigned char *)pli_msg_body(*at) + PLI_PARCEL_BYTES != data) at = &(*at)->next;
    pli_msg *msg = *at;
    if (msg == NULL) return;
    *at = msg->next;
    pli_msg_free(&msg);
}

/* --- waiting ----------------------------------------------------------------------------------------------------- */

typedef struct waiting {
    plait_comm_channel *channel;
    const plait_edge   *edge;
    int32_t             peer; /* a rank */
    bool                sends, good;
} waiting;

static bool is_over(void *arg) {
    waiting            *w = arg;
    plait_comm_channel *c = w->channel;
    uint64_t            now_ns;
    pli_out             out;
    pli_port_enter(c->port, &now_ns, &out);
    const sent *count = w->sends ? count_of(c, w->edge) : NULL;
    w->good = w->sends ? count == NULL || count->n < c->grants : find(c, w->edge) != NULL;
    const bool left = c->left[w->peer];
    pli_port_leave(c->port, &out);
    return w->good || left;
}

static void tell(const void *arg, char *text, size_t bytes) {
    const waiting    *w = arg;
    const plait_edge *e = w->edge;
    if (w->sends)
        snprintf(text, bytes, "part %d on rank %d to receive value %d of part %d, micro-batch %lld", e->to, w->peer,
                 e->value, e->from, (long long)e->micro_batch);
    else
        snprintf(text, bytes, "value %d of part %d on rank %d for part %d, micro-batch %lld", e->value, e->from,
                 w->peer, e->to, (long long)e->micro_batch);
}

static void show(const void *arg, pli_wait *wait) {
    wait->kind = PLI_WAIT_RECV;
    wait->peer = ((const waiting *)arg)->peer;
}

static plait_status wait_for(void *user, const plait_edge *edge, int sends, plait_error *err) {
    plait_comm_channel *c = user;
    waiting w = { .channel = c, .edge = edge, .peer = rank_of(c, sends ? edge->to : edge->from), .sends = sends != 0 };
    const pli_reason reason = { .tell = tell, .show = show, .arg = &w };
    pli_comm_enter(c->comm, "the channel of a cut graph");
    plait_error *own = pli_comm_error(c->comm); /* the call is added to it */
    const uint64_t begun_ns = pli_comm_now(c->comm);
    plait_status   status = pli_comm_wait(c->comm, is_over, &w, &reason, own);
    c->waited_ns += pli_comm_now(c->comm) - begun_ns;
    if (status >= 0 && !w.good) status = pli_comm_is_lost(c->comm, &reason, own); /* it dies with that one */
    if (status >= 0 && !w.good) {
        char text[160];
        tell(&w, text, sizeof text);
        status = pli_fail(own, PLAIT_EPEER, "rank %d has left; this rank waited for %s", w.peer, text);
    }
    status = pli_comm_leave(c->comm, status);
    if (status < 0 && err != NULL && err != own) *err = *own;
    return status;
}

/* --- life -------------------------------------------------------------------------------------------------------- */

static plait_status check(const plait_comm *comm, int32_t n, const int32_t *rank, int32_t grants, plait_error *err) {
    if (n < 1 || n > plait_comm_size(comm) || grants < 0)
        return pli_fail(err, PLAIT_EINVAL, "a channel of %d ranks that grants %d tensors, in a job of %d ranks", n,
                        grants, plait_comm_size(comm));
    for (int32_t k = 0; k < n; k++) {
        if (rank[k] < 0 || rank[k] >= plait_comm_size(comm))
            return pli_fail(err, PLAIT_EINVAL, "a channel: there is no rank %d", rank[k]);
        for (int32_t j = 0; j < k; j++)
            if (rank[j] == rank[k]) return pli_fail(err, PLAIT_EINVAL, "a channel: rank %d is listed twice", rank[k]);
    }
    return PLAIT_OK;
}

plait_status plait_comm_channel_create(plait_comm *comm, int32_t n_ranks, const int32_t *ranks, int32_t grants,
                                       plait_comm_channel **channel_out) {
    if (comm == NULL) return PLAIT_EINVAL; /* there is nowhere to put the text */
    plait_error *err = pli_comm_error(comm);
    PLI_TRY(PLI_GIVEN(err, ranks));
    PLI_TRY(PLI_GIVEN(err, channel_out));
    PLI_TRY(check(comm, n_ranks, ranks, grants, err));
    plait_comm_channel *c = pli_calloc(1, sizeof *c);
    if (c == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a channel");
    const int32_t size = plait_comm_size(comm);
    c->calls = (plait_channel){ .user = c, .send = send, .receive = receive, .release = release, .wait = wait_for };
    c->comm = comm;
    c->n_ranks = n_ranks;
    c->grants = grants == 0 ? GRANTS : grants;
    c->last = &c->first;
    c->rank = pli_array((size_t)n_ranks, sizeof *c->rank);
    c->left = pli_calloc((size_t)size, sizeof *c->left);
    plait_status status = PLAIT_OK;
    if (c->rank == NULL || c->left == NULL ||
        !pli_links_init(&c->links, size, PLI_PORT_CHANNEL, pli_comm_resend_after_ns(comm)))
        status = pli_fail(err, PLAIT_ENOMEM, "no memory for a channel");
    if (status == PLAIT_OK) {
        memcpy(c->rank, ranks, (size_t)n_ranks * sizeof *ranks);
        status = pli_port_open(comm, PLI_PORT_CHANNEL, &machine, c, &c->port, err);
    }
    if (status == PLAIT_OK)
        *channel_out = c;
    else
        plait_comm_channel_destroy(&c);
    return status;
}

const plait_channel *plait_comm_channel_calls(const plait_comm_channel *channel) {
    return channel == NULL ? NULL : &channel->calls;
}

uint64_t pli_comm_channel_waited_ns(const plait_comm_channel *channel) { return channel->waited_ns; }

void plait_comm_channel_destroy(plait_comm_channel **channel) {
    plait_comm_channel *c = channel == NULL ? NULL : *channel;
    if (c == NULL) return;
    pli_port_close(&c->port);
    pli_msg_free_list(&c->first);
    pli_msg_free_list(&c->lent);
    pli_links_destroy(&c->links);
    pli_free(c->sent);
    pli_free(c->left);
    pli_free(c->rank);
    pli_free(c);
    *channel = NULL;
}
