/* Runs the collectives of attempts, and feeds the machine that agrees on them. See agreed_sums.h. */
#include "comm/agreed_sums.h"

#include <stdio.h>
#include <string.h>

#include "comm/agreed.h"
#include "comm/call.h"
#include "comm/forms/forms.h"

/* Fields belong to whoever holds the port, or to the worker's thread. */
struct pli_agreed_sums {
    plait_comm    *comm;
    pli_port      *port;
    pli_agreed     agreed;
    pli_links      links;      /* of the agreement's messages */
    pli_collective collective; /* of the workers that live, by their places among them */
    pli_hosts      hosts;      /* of them   */
    int32_t        n_living;
    int32_t       *living;     /* [n_living] their ranks */
    uint8_t       *left;       /* [workers] has ended in good order */
    /* the step's parts, while the worker is in pli_agreed_sums_run */
    const pli_agreed_part *parts;
    int64_t        n_parts, room;
    pli_coll_run  *run;        /* [n_parts] */
    pli_msg     ***piece;      /* [n_parts] of lists: [n_pieces] what its collective receives; else NULL */
    int32_t        n_pieces;   /* how many workers take part in the attempt that was begun last      */
    bool           begun;      /* the collectives of an attempt are under way, or over: the one ... */
    int32_t        begun_without; /* ... that leaves out so many dead                                 */
    /* of the worker's thread */
    int64_t        step;       /* how many it has ended */
    uint8_t       *stood, *next; /* [workers] */
    _Atomic int64_t  ended;    /* steps that are committed; release after the sums are there */
    _Atomic uint64_t deaths;   /* how many it has decided on; release, pairs with the worker's acquire */
    _Atomic int32_t  waits_for; /* relaxed: for the reason of a wait */
};

/* --- attempts ----------------------------------------------------------------------------------------------------- */

static bool is_list(const pli_agreed_part *part) { return part->list != NULL; }

static void free_pieces(pli_agreed_sums *s) {
    for (int64_t i = 0; i < s->n_parts; i++) {
        for (int32_t w = 0; s->piece[i] != NULL && w < s->n_pieces; w++) pli_msg_free(&s->piece[i][w]);
        pli_free(s->piece[i]);
        s->piece[i] = NULL;
    }
}

/* The messages of collectives get what tells their attempt, and go to ranks. */
static void forward(const pli_agreed_sums *s, pli_out *from, pli_out *out) {
    for (pli_msg *msg = from->first, *next; msg != NULL; msg = next) {
        next = msg->next;
        msg->next = NULL;
        msg->head.dst = s->living[msg->head.dst];
        msg->head.port = PLI_PORT_AGREED;
        msg->head.server = (uint16_t)(s->agreed.n_dead + 1);
        pli_out_send(out, msg);
    }
    for (int kind = 0; kind < PLI_WORK_KINDS; kind++) pli_out_work(out, (pli_work_kind)kind, from->work[kind]);
    if (from->wake_at_ns < PLI_NEVER) pli_out_wake(out, from->wake_at_ns);
    if (from->ring) pli_out_ring(out);
    out->keeps = out->keeps || from->keeps;
}

/* The messages of the agreement go through its own streams. */
static void forward_words(pli_agreed_sums *s, uint64_t now_ns, pli_out *from, pli_out *out) {
    for (pli_msg *msg = from->first, *next; msg != NULL; msg = next) {
        next = msg->next;
        msg->next = NULL;
        if (!pli_links_send(&s->links, now_ns, msg, out)) pli_out_fail(out, PLAIT_ENOMEM, "no memory for a message");
    }
    if (from->ring) pli_out_ring(out);
    if (from->error.code < 0 && out->error.code >= 0) out->error = from->error;
}

/* Tells the worker's thread what was decided. */
static void tell_worker(pli_agreed_sums *s, pli_out *out) {
    const pli_agreed *a = &s->agreed;
    if (a->decided) atomic_store_explicit(&s->deaths, (uint64_t)a->n_dead, memory_order_release);
    atomic_store_explicit(&s->ended, a->step, memory_order_release);
    pli_out_ring(out);
}

static const plait_error *failure(const pli_agreed_sums *s) {
    for (int64_t i = 0; s->begun && i < s->n_parts; i++)
        if (pli_coll_is_done(&s->run[i]) && s->run[i].error.code < 0) return &s->run[i].error;
    return NULL;
}

/* The collectives have gone on: is the sum there? */
static void look(pli_agreed_sums *s, uint64_t now_ns, pli_out *out) {
    pli_agreed *a = &s->agreed;
    pli_out     words;
    if (!s->begun || s->begun_without != a->n_dead || !a->decided || a->summed || a->step > s->step) return;
    if (failure(s) != NULL) {
        pli_out_ring(out);
        return;
    }
    for (int64_t i = 0; i < s->n_parts; i++)
        if (!pli_coll_is_done(&s->run[i])) {
            atomic_store_explicit(&s->waits_for, atomic_load_explicit(&s->run[i].waits_for, memory_order_relaxed),
                                  memory_order_relaxed);
            return;
        }
    pli_out_init(&words);
    pli_agreed_summed(a, &words);
    forward_words(s, now_ns, &words, out);
    tell_worker(s, out);
}

static bool make_hosts(const pli_world *world, int32_t n, const int32_t *rank, pli_hosts *out) {
    int32_t *host_of = pli_array((size_t)n, sizeof *host_of);
    for (int32_t i = 0; host_of != NULL && i < n; i++) host_of[i] = world->hosts.host[rank[i]];
    const bool made = host_of != NULL && pli_hosts_make(host_of, n, out);
    pli_free(host_of);
    return made;
}

static int32_t place_of(const pli_agreed_sums *s, int32_t rank) {
    for (int32_t i = 0; i < s->n_living; i++)
        if (s->living[i] == rank) return i;
    return -1;
}

/* Collectives among those that live now. */
static bool open_collective(pli_agreed_sums *s) {
    const pli_agreed *a = &s->agreed;
    s->n_living = 0;
    for (int32_t r = 0; r < a->ranks; r++)
        if (!pli_agreed_is_dead(a->dead, r)) s->living[s->n_living++] = r;
    if (!pli_collective_init(&s->collective, place_of(s, a->me), s->n_living, s->links.resend_after_ns)) return false;
    s->collective.rank = s->living;
    for (int32_t i = 0; i < s->n_living; i++) s->collective.left[i] = s->left[s->living[i]] != 0;
    return make_hosts(s->comm->world, s->n_living, s->living, &s->hosts);
}

static void close_collective(pli_agreed_sums *s) {
    if (s->collective.come != NULL) pli_collective_destroy(&s->collective);
    pli_hosts_free(&s->hosts);
}

static bool make_pieces(pli_agreed_sums *s, int64_t i) {
    pli_msg *list = s->parts[i].list;
    s->piece[i] = pli_calloc((size_t)s->n_living, sizeof **s->piece);
    if (s->piece[i] == NULL) return false;
    pli_msg **own = &s->piece[i][place_of(s, s->agreed.me)];
    *own = pli_msg_of_slab(list->body, list->offset, list->head.body_bytes);
    return *own != NULL;
}

static pli_coll call_of(const pli_agreed_sums *s, int64_t i) {
    const pli_agreed_part *part = &s->parts[i];
    if (is_list(part))
        return (pli_coll){ .kind = PLI_PIECES, .type = PLAIT_U8, .root = PLI_COLL_OF_TABLES, .piece = s->piece[i],
                           .begun = true };
    pli_coll call = { .kind = PLI_ALLREDUCE, .type = part->type, .op = part->op, .root = PLI_COLL_OF_TABLES,
                      .n = part->n, .buf = part->values, .begun = true };
    pli_coll_choose(&call, s->comm->world->form, s->n_living, &s->hosts);
    return call;
}

/* Begins an attempt. The values that are summed are copies: another attempt may need the worker's own. */
static plait_status begin(pli_agreed_sums *s, uint64_t now_ns, pli_out *out, plait_error *err) {
    pli_out calls;
    free_pieces(s);
    s->n_pieces = s->n_living;
    for (int64_t i = 0; i < s->n_parts; i++) {
        const pli_agreed_part *part = &s->parts[i];
        if (is_list(part) && !make_pieces(s, i)) return pli_fail(err, PLAIT_ENOMEM, "no memory for the sums of a step");
        if (!is_list(part) && part->n > 0)
            memcpy(part->values, part->given, (size_t)part->n * pli_type_bytes(part->type));
    }
    s->begun = true;
    s->begun_without = s->agreed.n_dead;
    pli_out_init(&calls);
    for (int64_t i = 0; i < s->n_parts; i++) {
        const pli_coll call = call_of(s, i);
        if (s->n_living > 1) {
            pli_collective_begin(&s->collective, now_ns, &call, &s->run[i], &calls);
        } else {
            s->run[i] = (pli_coll_run){ .call = call };
            atomic_init(&s->run[i].done, true);
        }
    }
    forward(s, &calls, out);
    look(s, now_ns, out);
    return PLAIT_OK;
}

/* --- the machine -------------------------------------------------------------------------------------------------- */

static void take_word(pli_agreed_sums *s, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    const int32_t src = msg->head.src;
    pli_out       words;
    pli_out_init(&words);
    for (msg = pli_links_take(&s->links, now_ns, msg, out); msg != NULL; msg = pli_links_next(&s->links, src)) {
        pli_agreed_take(&s->agreed, msg, &words);
        pli_msg_free(&msg);
    }
    forward_words(s, now_ns, &words, out);
    tell_worker(s, out);
}

static void on_message(void *state, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_agreed_sums *s = state;
    const int32_t    place = place_of(s, msg->head.src);
    if (msg->head.server == 0) {
        take_word(s, now_ns, msg, out);
        return;
    }
    if (place < 0 || msg->head.server != s->agreed.n_dead + 1) { /* of an attempt that is over */
        pli_msg_free(&msg);
        return;
    }
    pli_out calls;
    pli_out_init(&calls);
    msg->head.src = place;
    pli_collective_ops.on_message(&s->collective, now_ns, msg, &calls);
    forward(s, &calls, out);
    look(s, now_ns, out);
}

static void on_wakeup(void *state, uint64_t now_ns, pli_out *out) {
    pli_agreed_sums *s = state;
    pli_out          calls;
    pli_out_init(&calls);
    pli_links_wakeup(&s->links, now_ns, out);
    pli_collective_ops.on_wakeup(&s->collective, now_ns, &calls);
    forward(s, &calls, out);
}

static void on_death(pli_agreed_sums *s, uint64_t now_ns, int32_t rank, pli_out *out) {
    pli_out words;
    if (pli_agreed_is_dead(s->agreed.dead, rank)) return;
    pli_out_init(&words);
    pli_links_forget(&s->links, rank);
    close_collective(s);
    s->begun = s->agreed.summed; /* a sum that is there may be decided for yet; else its parts are given again */
    pli_agreed_died(&s->agreed, rank, &words);
    if (!open_collective(s)) pli_out_fail(out, PLAIT_ENOMEM, "no memory for the sums of those who live");
    forward_words(s, now_ns, &words, out);
    tell_worker(s, out);
}

static void on_member(void *state, uint64_t now_ns, const pli_member_event *event, pli_out *out) {
    pli_agreed_sums *s = state;
    if (event->kind == PLI_MEMBER_JOINED || event->rank < 0 || event->rank >= s->agreed.ranks) return;
    if (event->kind == PLI_MEMBER_DIED) {
        on_death(s, now_ns, event->rank, out);
        return;
    }
    pli_out          calls;
    pli_member_event own = *event;
    own.rank = place_of(s, event->rank);
    s->left[event->rank] = 1;
    pli_links_forget(&s->links, event->rank);
    if (own.rank < 0) return;
    pli_out_init(&calls);
    pli_collective_ops.on_member(&s->collective, now_ns, &own, &calls);
    forward(s, &calls, out);
    look(s, now_ns, out);
}

static pli_msg *late(const pli_msg *msg) {
    pli_msg *ack = pli_msg_new(0);
    if (ack == NULL) return NULL;
    ack->head.kind = PLI_LINK_ACK;
    ack->head.port = PLI_PORT_AGREED;
    ack->head.server = msg->head.server;
    ack->head.arg64 = msg->head.seq;
    return ack;
}

static const pli_machine_ops ops = {
    .name = "agreed sums", .on_message = on_message, .on_wakeup = on_wakeup, .on_member = on_member, .late = late
};

/* --- opening ------------------------------------------------------------------------------------------------------ */

static void free_sums(pli_agreed_sums *s) {
    close_collective(s);
    pli_agreed_destroy(&s->agreed);
    if (s->links.link != NULL) pli_links_destroy(&s->links);
    pli_free(s->run);
    pli_free(s->piece);
    pli_free(s->living);
    pli_free(s->left);
    pli_free(s->stood);
    pli_free(s->next);
    pli_free(s);
}

plait_status pli_agreed_sums_open(plait_comm *comm, pli_agreed_sums **sums_out, plait_error *err) {
    const int32_t    workers = comm->world->place.workers;
    pli_agreed_sums *s = pli_calloc(1, sizeof *s);
    if (s == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the sums of workers");
    s->comm = comm;
    atomic_init(&s->waits_for, -1);
    s->living = pli_array((size_t)workers, sizeof *s->living);
    s->left = pli_calloc((size_t)workers, 1);
    s->stood = pli_calloc((size_t)workers, 1);
    s->next = pli_calloc((size_t)workers, 1);
    const bool made = s->living != NULL && s->left != NULL && s->stood != NULL && s->next != NULL &&
                      pli_agreed_init(&s->agreed, comm->rank, workers) &&
                      pli_links_init(&s->links, workers, PLI_PORT_AGREED, comm->world->place.resend_after_ns) &&
                      open_collective(s);
    plait_status status = made ? pli_port_open(comm, PLI_PORT_AGREED, &ops, s, &s->port, err)
                               : pli_fail(err, PLAIT_ENOMEM, "no memory for the sums of workers");
    if (status < 0) free_sums(s);
    else *sums_out = s;
    return status;
}

void pli_agreed_sums_close(pli_agreed_sums **sums) {
    pli_agreed_sums *s = *sums;
    *sums = NULL;
    if (s == NULL) return;
    pli_port_close(&s->port);
    free_pieces(s);
    free_sums(s);
}

/* --- the worker --------------------------------------------------------------------------------------------------- */

const uint8_t *pli_agreed_sums_stood(const pli_agreed_sums *s) { return s->stood; }
const uint8_t *pli_agreed_sums_next(const pli_agreed_sums *s) { return s->next; }

/* What the worker's thread waits for. */
typedef struct news {
    pli_agreed_sums *sums;
    uint64_t         deaths; /* that it knows were decided on */
} news;

static bool has_news(void *arg) {
    const news            *n = arg;
    const pli_agreed_sums *s = n->sums;
    return atomic_load_explicit(&s->ended, memory_order_acquire) > s->step ||
           atomic_load_explicit(&s->deaths, memory_order_acquire) > n->deaths;
}

static bool has_failed(pli_agreed_sums *s, plait_error *err) {
    uint64_t now_ns;
    pli_out  out;
    pli_port_enter(s->port, &now_ns, &out);
    const plait_error *why = s->agreed.decided ? failure(s) : NULL;
    if (why != NULL) *err = *why;
    pli_port_leave(s->port, &out);
    return why != NULL;
}

static bool is_ready(void *arg) {
    plait_error why;
    return has_news(arg) || has_failed(((news *)arg)->sums, &why);
}

static void tell_step(const void *arg, char *text, size_t bytes) {
    const pli_agreed_sums *s = ((const news *)arg)->sums;
    const int32_t          rank = atomic_load_explicit(&s->waits_for, memory_order_relaxed);
    if (rank >= 0) snprintf(text, bytes, "the sums of step %lld, held up by rank %d", (long long)s->step, rank);
    else snprintf(text, bytes, "the sums of step %lld", (long long)s->step);
}

static void show_step(const void *arg, pli_wait *wait) {
    const pli_agreed_sums *s = ((const news *)arg)->sums;
    wait->kind = PLI_WAIT_OTHER;
    wait->peer = atomic_load_explicit(&s->waits_for, memory_order_relaxed);
}

/* Does the worker stand in for those that the attempts leave out now? If not, next says for whom it has to. */
static bool stands_in(pli_agreed_sums *s) {
    const pli_agreed *a = &s->agreed;
    for (int32_t r = 0; r < a->ranks; r++) s->next[r] = pli_agreed_is_dead(a->attempt, r);
    return memcmp(s->next, s->stood, (size_t)a->ranks) == 0;
}

/* With the port: PLAIT_OK the step has ended; PENDING: it goes on. */
static plait_status go_on(pli_agreed_sums *s, uint64_t now_ns, pli_out *out, plait_error *err) {
    if (s->agreed.step > s->step) return PLAIT_OK;
    if (!s->agreed.decided) return PLAIT_PENDING;
    if (!stands_in(s)) return PLAIT_STAND_IN;
    if (!s->begun) PLI_TRY(begin(s, now_ns, out, err));
    return s->agreed.step > s->step ? PLAIT_OK : PLAIT_PENDING;
}

static plait_status make_room(pli_agreed_sums *s, int64_t n, plait_error *err) {
    if (n <= s->room) return PLAIT_OK;
    pli_free(s->run);
    pli_free(s->piece);
    s->room = 0;
    s->run = pli_array((size_t)n, sizeof *s->run);
    s->piece = pli_calloc((size_t)n, sizeof *s->piece);
    if (s->run == NULL || s->piece == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the sums of a step");
    s->room = n;
    return PLAIT_OK;
}

/* Hands the lists over, by ranks. */
static plait_status hand_over(pli_agreed_sums *s, plait_error *err) {
    const int32_t workers = s->agreed.ranks;
    for (int64_t i = 0; i < s->n_parts; i++) {
        pli_msg **to = s->parts[i].piece;
        if (!is_list(&s->parts[i])) continue;
        for (int32_t r = 0, place = 0; r < workers; r++) {
            pli_msg_free(&to[r]);
            if (s->stood[r]) {
                to[r] = pli_msg_new(0);
                if (to[r] == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the sums of a step");
                continue;
            }
            to[r] = s->piece[i][place];
            s->piece[i][place++] = NULL;
        }
    }
    return PLAIT_OK;
}

/* The parts are the worker's again. */
static void take_back(pli_agreed_sums *s) {
    free_pieces(s);
    s->n_parts = 0;
    s->parts = NULL;
    s->begun = false;
}

/* The attempt has failed for the worker's thread alone: nothing of its memory may be touched any more. */
static void give_up(pli_agreed_sums *s, plait_error *err) {
    uint64_t now_ns;
    pli_out  out, calls;
    pli_port_enter(s->port, &now_ns, &out);
    pli_out_init(&calls);
    if (s->begun && s->collective.first != NULL)
        pli_collective_abort(&s->collective, s->collective.first, err, &calls);
    pli_out_drop(&calls);
    take_back(s);
    pli_port_leave(s->port, &out);
}

plait_status pli_agreed_sums_run(pli_agreed_sums *s, int64_t n, const pli_agreed_part *parts, plait_error *err) {
    uint64_t     now_ns;
    pli_out      out;
    plait_status status = PLAIT_PENDING;
    PLI_TRY(make_room(s, n, err));
    memcpy(s->stood, s->next, (size_t)s->agreed.ranks);
    pli_port_enter(s->port, &now_ns, &out);
    s->parts = parts;
    s->n_parts = n;
    pli_port_leave(s->port, &out);
    while (status == PLAIT_PENDING) {
        news             n_known = { .sums = s, .deaths = atomic_load_explicit(&s->deaths, memory_order_acquire) };
        const pli_reason reason = { .tell = tell_step, .show = show_step, .arg = &n_known };
        pli_port_enter(s->port, &now_ns, &out);
        status = go_on(s, now_ns, &out, err);
        pli_port_leave(s->port, &out);
        if (status != PLAIT_PENDING) break;
        plait_status waited = pli_comm_wait(s->comm, is_ready, &n_known, &reason, err);
        if (waited < 0 || (!has_news(&n_known) && has_failed(s, err))) status = waited < 0 ? waited : err->code;
    }
    /* who was taken for dead may be alone: nothing is agreed there */
    if (status >= 0) {
        plait_status lost = pli_comm_is_lost(s->comm, NULL, err);
        if (lost < 0) status = lost;
    }
    if (status < 0) {
        give_up(s, err);
        return status;
    }
    if (status == PLAIT_OK) status = hand_over(s, err);
    pli_port_enter(s->port, &now_ns, &out);
    take_back(s);
    pli_port_leave(s->port, &out);
    if (status == PLAIT_OK) s->step++;
    return status;
}
