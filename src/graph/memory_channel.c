/* A channel in memory, for the parts of a graph whose sessions run on threads of one process (plait/session.h).
 *
 * Tensors lie in one list, in the order in which they were sent; a part that has nothing to do sleeps until the list
 * changes. If all parts sleep and none of them could go on, no part will ever change the list: they wait for each
 * other, and are told so. */
#include <plait/session.h>

#include <pthread.h>
#include <string.h>

#include "graph/edge.h"
#include "graph/plan.h"

typedef struct parcel {
    struct parcel *next;
    plait_edge     edge;
    plait_tensor   tensor; /* data lies behind the parcel, at a cache line */
    bool           received;
} parcel;

/* A part that waits. */
typedef struct waiter {
    struct waiter *next;
    plait_edge     edge;
    bool           sends;
} waiter;

struct plait_memory_channel {
    plait_channel   calls;
    pthread_mutex_t lock; /* guards all that follows */
    pthread_cond_t  changed;
    int32_t         threads, grants, n_waiting, n_left;
    bool            stuck;
    bool           *left; /* [threads] by their first parts */
    parcel         *first, **last;
    waiter         *waiting;
};

enum { LINE_BYTES = 64 };

/* --- under the lock -------------------------------------------------------------------------------------------- */

static int32_t on_the_way(const plait_memory_channel *c, const plait_edge *edge) {
    int32_t n = 0;
    for (const parcel *p = c->first; p != NULL; p = p->next) n += !p->received && pli_edge_is(&p->edge, edge);
    return n;
}

static parcel *find(const plait_memory_channel *c, const plait_edge *edge) {
    parcel *p = c->first;
    while (p != NULL && (p->received || !pli_edge_is(&p->edge, edge) || p->edge.micro_batch != edge->micro_batch))
        p = p->next;
    return p;
}

static bool can_go_on(const plait_memory_channel *c, const plait_edge *edge, bool sends) {
    return sends ? on_the_way(c, edge) < c->grants : find(c, edge) != NULL;
}

static bool peer_left(const plait_memory_channel *c, const plait_edge *edge, bool sends) {
    const int32_t peer = sends ? edge->to : edge->from;
    return peer >= 0 && c->left[peer % c->threads]; /* a thread has every threads-th part, as a rank has */
}

static bool all_stuck(const plait_memory_channel *c) {
    if (c->n_waiting + c->n_left < c->threads) return false;
    for (const waiter *w = c->waiting; w != NULL; w = w->next)
        if (can_go_on(c, &w->edge, w->sends) || peer_left(c, &w->edge, w->sends)) return false;
    return true;
}

/* --- the channel's calls --------------------------------------------------------------------------------------- */

static plait_status send(void *user, const plait_edge *edge, const plait_tensor *tensor, int *taken_out,
                         plait_error *err) {
    plait_memory_channel *c = user;
    const size_t          bytes = pli_tensor_bytes(tensor);
    pthread_mutex_lock(&c->lock);
    const bool granted = on_the_way(c, edge) < c->grants; /* only this part sends along the edge */
    pthread_mutex_unlock(&c->lock);
    *taken_out = granted;
    if (!granted) return PLAIT_OK;
    parcel *p =
        bytes < SIZE_MAX / 2 ? pli_aligned(LINE_BYTES * ((sizeof *p + LINE_BYTES - 1) / LINE_BYTES) + bytes) : NULL;
    if (p == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to send %zu bytes to part %d", bytes, edge->to);
    *p = (parcel){ .edge = *edge, .tensor = *tensor };
    p->tensor.data = (unsigned char *)p + LINE_BYTES * ((sizeof *p + LINE_BYTES - 1) / LINE_BYTES);
    if (bytes > 0) memcpy(p->tensor.data, tensor->data, bytes);
    pthread_mutex_lock(&c->lock);
    *c->last = p;
    c->last = &p->next;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return PLAIT_OK;
}

static plait_status receive(void *user, const plait_edge *edge, const plait_tensor *like, const void **data_out,
                            plait_error *err) {
    plait_memory_channel *c = user;
    pthread_mutex_lock(&c->lock);
    parcel    *p = find(c, edge);
    const bool fits = p == NULL || pli_edge_fits(&p->tensor, like);
    if (p != NULL && fits) {
        p->received = true;
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->lock);
    *data_out = p != NULL && fits ? p->tensor.data : NULL;
    if (fits) return PLAIT_OK;
    return pli_fail(err, PLAIT_ESHAPE,
                    "part %d has sent another shape than part %d expects: do both have the same feeds?", edge->from,
                    edge->to);
}

static void release(void *user, const plait_edge *edge, const void *data) {
    plait_memory_channel *c = user;
    (void)edge;
    pthread_mutex_lock(&c->lock);
    parcel **link = &c->first;
    while (*link != NULL && (*link)->tensor.data != data) link = &(*link)->next;
    parcel *p = *link;
    if (p != NULL) {
        *link = p->next;
        if (p->next == NULL) c->last = link;
    }
    pthread_mutex_unlock(&c->lock);
    pli_free(p);
}

static plait_status failed(const plait_edge *edge, bool sends, plait_status code, const char *why, plait_error *err) {
    return pli_fail(err, code, "part %d waits for part %d to %s value %d of micro-batch %lld: %s",
                    sends ? edge->from : edge->to, sends ? edge->to : edge->from, sends ? "take" : "send", edge->value,
                    (long long)edge->micro_batch, why);
}

static plait_status wait(void *user, const plait_edge *edge, int sends, plait_error *err) {
    plait_memory_channel *c = user;
    waiter                w = { .edge = *edge, .sends = sends != 0 };
    pthread_mutex_lock(&c->lock);
    w.next = c->waiting;
    c->waiting = &w;
    c->n_waiting++;
    while (!can_go_on(c, edge, w.sends) && !peer_left(c, edge, w.sends) && !c->stuck) {
        c->stuck = all_stuck(c);
        if (c->stuck)
            pthread_cond_broadcast(&c->changed);
        else
            pthread_cond_wait(&c->changed, &c->lock);
    }
    const bool good = can_go_on(c, edge, w.sends), left = peer_left(c, edge, w.sends);
    waiter   **link = &c->waiting;
    while (*link != &w) link = &(*link)->next;
    *link = w.next;
    c->n_waiting--;
    pthread_mutex_unlock(&c->lock);
    if (good) return PLAIT_OK;
    return left ? failed(edge, w.sends, PLAIT_EPEER, "it has left", err)
                : failed(edge, w.sends, PLAIT_EDEADLOCK, "all parts wait for each other", err);
}

/* --- life ------------------------------------------------------------------------------------------------------ */

plait_status plait_memory_channel_create(int32_t threads, int32_t grants, plait_memory_channel **channel_out,
                                         plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, channel_out));
    if (threads < 1 || grants < 1)
        return pli_fail(error_out, PLAIT_EINVAL, "a channel of %d threads that grants %d tensors", threads, grants);
    plait_memory_channel *c = pli_calloc(1, sizeof *c);
    bool                 *left = c != NULL ? pli_calloc((size_t)threads, sizeof *left) : NULL;
    if (left == NULL) {
        pli_free(c);
        return pli_fail(error_out, PLAIT_ENOMEM, "no memory for a channel");
    }
    *c = (plait_memory_channel){
        .calls = { .user = c, .send = send, .receive = receive, .release = release, .wait = wait },
        .threads = threads,
        .grants = grants,
        .left = left,
        .last = &c->first
    };
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    *channel_out = c;
    return PLAIT_OK;
}

const plait_channel *plait_memory_channel_calls(const plait_memory_channel *channel) {
    return channel == NULL ? NULL : &channel->calls;
}

void plait_memory_channel_leave(plait_memory_channel *c, int32_t part) {
    if (c == NULL || part < 0) return;
    part %= c->threads;
    pthread_mutex_lock(&c->lock);
    c->n_left += !c->left[part];
    c->left[part] = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

void plait_memory_channel_destroy(plait_memory_channel **channel) {
    plait_memory_channel *c = channel == NULL ? NULL : *channel;
    if (c == NULL) return;
    while (c->first != NULL) {
        parcel *next = c->first->next;
        pli_free(c->first);
        c->first = next;
    }
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    pli_free(c->left);
    pli_free(c);
    *channel = NULL;
}
