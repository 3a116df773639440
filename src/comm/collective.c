/* The collective machine: takes the steps of all calls under way as far as messages have come.
 *
 * The header of a message says which call it belongs to, so that ranks that make different calls find out:
 *   kind   bits 0-3 the collective, 4-6 its form (0: none), 7 whether it was begun; high byte, with that of flags: the
 *          root
 *   flags  bits 0-3 type, 4-7 op, 8-15 low byte of the root
 *   arg32  number of the call, modulo 2^32       clock  n       body  the part of the buffer
 *
 * Streams are in order, so the k-th message of a peer in a call is for the k-th step that receives from that peer. A
 * peer may be calls ahead; then its messages wait in its fifo, as do messages for calls that have not reached that
 * step. When a call fails, all calls that were begun after it fail too, and none that were begun before. */
#include "comm/forms/forms.h"

#include <stdatomic.h>
#include <string.h>

#include "comm/comm.h"

/* Compares ids, not addresses: a module has a copy of the table of its own. */
static unsigned form_of(const pli_coll *call) { return call->form != NULL ? call->form->id : 0; }

static void stamp(pli_msg *msg, const pli_coll *call, uint64_t number) {
    msg->head.kind = (uint16_t)((unsigned)call->kind | form_of(call) << 4 | (unsigned)call->begun << 7 |
                                (unsigned)(call->root >> 8 & 0xff) << 8);
    msg->head.flags = (uint16_t)((unsigned)call->type | (unsigned)call->op << 4 | (unsigned)(call->root & 0xff) << 8);
    msg->head.arg32 = (uint32_t)number;
    msg->head.clock = call->n;
}

static pli_coll read_stamp(const pli_msg *msg) {
    return (pli_coll){ .kind = (pli_coll_kind)(msg->head.kind & 0xf),
                       .form = pli_form_numbered(msg->head.kind >> 4 & 0x7),
                       .begun = (msg->head.kind & 0x80) != 0,
                       .type = (plait_type)(msg->head.flags & 0xf),
                       .op = (plait_reduce)(msg->head.flags >> 4 & 0xf),
                       .root = (int32_t)((msg->head.kind >> 8) << 8 | msg->head.flags >> 8),
                       .n = msg->head.clock };
}

static bool same_call(const pli_coll *a, const pli_coll *b) {
    return a->kind == b->kind && form_of(a) == form_of(b) && a->begun == b->begun && a->type == b->type &&
           a->op == b->op && (a->root & 0xffff) == (b->root & 0xffff) && a->n == b->n;
}

static int32_t rank_of(const pli_collective *c, int32_t worker) { return c->rank != NULL ? c->rank[worker] : worker; }

/* The machine's last touch: the waiting thread may free run now. */
static void finish(pli_coll_run *run, pli_out *out) {
    pli_msg_free(&run->passing);
    atomic_store_explicit(&run->waits_for, -1, memory_order_relaxed);
    atomic_store_explicit(&run->done, true, memory_order_release);
    pli_out_ring(out);
}

/* Takes a run that is done out of the list of those under way. */
static void unlink_run(pli_collective *c, pli_coll_run **at) {
    pli_coll_run *run = *at;
    *at = run->next;
    if (*at == NULL) c->last = at;
}

/* Fails run, all calls under way that were begun after it, and all that will begin, with why. */
static void fail_from(pli_collective *c, pli_coll_run *run, const plait_error *why, pli_out *out) {
    plait_error    copy = *why; /* why may point into run */
    pli_coll_run **at = &c->first;
    if (c->error.code >= 0) c->error = copy;
    while (*at != NULL && (*at)->number < run->number) at = &(*at)->next;
    run = *at; /* if it does not exist, run is done */
    *at = NULL;
    c->last = at;
    for (pli_coll_run *next; run != NULL; run = next) {
        next = run->next;
        run->error = copy;
        finish(run, out);
    }
}

static bool send_part(pli_collective *c, pli_coll_run *run, uint64_t now_ns, const pli_coll_move *s, pli_out *out) {
    pli_msg *msg, *passing = run->passing,
                  *piece = run->call.piece != NULL && !run->call.meet ? run->call.piece[s->send_at] : NULL;
    if (piece != NULL) {
        msg = pli_msg_of_slab(piece->body, piece->offset, piece->head.body_bytes);
    } else if (passing != NULL && s->send_at == run->passing_at && s->send_bytes == passing->head.body_bytes &&
               s->send_bytes > 0) {
        msg = pli_msg_of_slab(passing->body, passing->offset, s->send_bytes);
    } else {
        msg = pli_msg_new(s->send_bytes);
        if (msg != NULL && s->send_bytes > 0)
            memcpy(pli_msg_body(msg), (const unsigned char *)run->call.buf + s->send_at, s->send_bytes);
    }
    if (msg == NULL) return false;
    stamp(msg, &run->call, run->number);
    msg->head.dst = s->to;
    return pli_links_send(&c->links, now_ns, msg, out);
}

/* Does msg belong to this call? If not, the call has failed, and the error names both calls. */
static bool check_part(pli_collective *c, pli_coll_run *run, const pli_coll_move *s, const pli_msg *msg) {
    pli_coll theirs = read_stamp(msg);
    theirs.group = run->call.group;
    bool     as_long = msg->head.body_bytes == s->recv_bytes || (pli_coll_in_pieces(&run->call) && !run->call.meet);
    if (msg->head.arg32 == (uint32_t)run->number && same_call(&theirs, &run->call) && as_long) return true;
    char     a[PLI_COLL_TEXT], b[PLI_COLL_TEXT];
    int32_t  ago = (int32_t)((uint32_t)run->number - msg->head.arg32); /* > 0: msg belongs to an earlier call, which
                                                                        * did not use it */
    uint64_t number = ago > 0 ? run->number - (uint64_t)ago : run->number;
    pli_coll_tell(&theirs, a, sizeof a);
    pli_coll_tell(run->number - number < PLI_COLL_RECENT ? &c->recent[number % PLI_COLL_RECENT] : &run->call, b,
                  sizeof b);
    pli_fail(&run->error, PLAIT_EMISMATCH, "collective %llu: rank %d called %s where rank %d called %s",
             (unsigned long long)number, rank_of(c, s->from), a, rank_of(c, c->me), b);
    return false;
}

/* Keeps msg if the next step passes on the bytes that were just copied, as in a ring's second half or a tree's inner
 * node. */
static void apply_part(pli_collective *c, pli_coll_run *run, const pli_coll_move *s, pli_msg *msg, pli_out *out) {
    if (run->call.piece != NULL && !run->call.meet) {
        pli_msg_free(&run->call.piece[s->recv_at]);
        run->call.piece[s->recv_at] = msg;
        return;
    }
    unsigned char *mine = (unsigned char *)run->call.buf + s->recv_at;
    const void    *theirs = pli_msg_body(msg);
    pli_msg_free(&run->passing);
    if (s->reduce) {
        int64_t n = (int64_t)(s->recv_bytes / pli_type_bytes(run->call.type));
        bool    lower = s->from < c->me;
        pli_reduce(mine, lower ? theirs : mine, lower ? mine : theirs, n, run->call.type, run->call.op);
        pli_out_work(out, PLI_WORK_SUMS, (uint64_t)n);
        pli_msg_free(&msg);
    } else {
        if (s->recv_bytes > 0) memcpy(mine, theirs, s->recv_bytes);
        run->passing = msg;
        run->passing_at = s->recv_at;
    }
}

static pli_msg *pop(struct pli_fifo *fifo) {
    pli_msg *msg = fifo->first;
    if (msg == NULL) return NULL;
    fifo->first = msg->next;
    if (fifo->first == NULL) fifo->last = &fifo->first;
    msg->next = NULL;
    return msg;
}

/* Does msg belong to another call that is under way or will begin? Not if its call is done here, and not if the peer
 * sent it in a later call when it should have ended this one first. */
static bool is_for_another(const pli_collective *c, const pli_coll_run *run, const pli_msg *msg) {
    int32_t ahead = (int32_t)(msg->head.arg32 - (uint32_t)run->number);
    return ahead > 0 ? run->call.begun : ahead < 0 && (int32_t)(msg->head.arg32 - (uint32_t)c->first->number) >= 0;
}

/* The peer's next message that this call must look at; NULL: none has come. */
static pli_msg *take_from(pli_collective *c, const pli_coll_run *run, int32_t peer) {
    struct pli_fifo *fifo = &c->come[peer];
    for (pli_msg **at = &fifo->first; *at != NULL; at = &(*at)->next) {
        pli_msg *msg = *at;
        if (is_for_another(c, run, msg)) continue;
        *at = msg->next;
        if (*at == NULL) fifo->last = at;
        msg->next = NULL;
        return msg;
    }
    return NULL;
}

/* Takes one step if it can. false: the call waits for a message, is over (over_out), or has failed (its error). */
static bool take_step(pli_collective *c, pli_coll_run *run, uint64_t now_ns, bool *over_out, pli_out *out) {
    pli_coll_move s;
    *over_out = !pli_coll_step(&run->call, c->me, c->workers, run->step, &s);
    if (*over_out) return false;
    if (s.to >= 0 && !run->sent) {
        if (!send_part(c, run, now_ns, &s, out)) {
            pli_fail(&run->error, PLAIT_ENOMEM, "no memory for a message of a collective");
            return false;
        }
        run->sent = true;
    }
    if (s.from >= 0) {
        pli_msg *msg = take_from(c, run, s.from);
        if (msg == NULL && !c->left[s.from]) {
            atomic_store_explicit(&run->waits_for, rank_of(c, s.from), memory_order_relaxed);
            return false;
        }
        if (msg == NULL) {
            if (c->error.code < 0) run->error = c->error;
            else (void)pli_coll_missed(&run->call, rank_of(c, s.from), &run->error);
            return false;
        }
        if (!check_part(c, run, &s, msg)) {
            pli_msg_free(&msg);
            return false;
        }
        apply_part(c, run, &s, msg, out);
    }
    run->sent = false;
    run->step++;
    return true;
}

/* Each call goes as far as it can; a message for one call says nothing about the others. */
static void advance(pli_collective *c, uint64_t now_ns, pli_out *out) {
    for (pli_coll_run **at = &c->first; *at != NULL;) {
        pli_coll_run *run = *at;
        bool          over;
        while (take_step(c, run, now_ns, &over, out)) {}
        if (over) {
            unlink_run(c, at);
            finish(run, out);
        } else if (run->error.code < 0) {
            fail_from(c, run, &run->error, out);
            return;
        } else {
            at = &run->next;
        }
    }
}

static void on_message(void *state, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_collective *c = state;
    int32_t         src = msg->head.src;
    if (src < 0 || src >= c->workers) {
        pli_msg_free(&msg);
        return;
    }
    for (msg = pli_links_take(&c->links, now_ns, msg, out); msg != NULL; msg = pli_links_next(&c->links, src)) {
        msg->next = NULL;
        *c->come[src].last = msg;
        c->come[src].last = &msg->next;
    }
    advance(c, now_ns, out);
}

static void on_wakeup(void *state, uint64_t now_ns, pli_out *out) {
    pli_collective *c = state;
    pli_links_wakeup(&c->links, now_ns, out);
}

static void on_member(void *state, uint64_t now_ns, const pli_member_event *event, pli_out *out) {
    pli_collective *c = state;
    if (event->kind == PLI_MEMBER_JOINED || event->rank >= c->workers) return;
    c->left[event->rank] = true;
    if (event->kind == PLI_MEMBER_DIED && c->error.code >= 0) c->error = event->why;
    pli_links_forget(&c->links, event->rank);
    advance(c, now_ns, out);
    /* A rank may wait for another that was to pass on what the dead rank has not sent; it would wait in vain. */
    if (event->kind == PLI_MEMBER_DIED && c->first != NULL) fail_from(c, c->first, &event->why, out);
}

const pli_machine_ops pli_collective_ops = {
    .name = "collective", .on_message = on_message, .on_wakeup = on_wakeup, .on_member = on_member
};

bool pli_collective_init(pli_collective *c, int32_t me, int32_t workers, uint64_t resend_after_ns) {
    memset(c, 0, sizeof *c);
    c->me = me;
    c->workers = workers;
    c->last = &c->first;
    c->come = pli_array((size_t)workers, sizeof *c->come);
    c->left = pli_calloc((size_t)workers, sizeof *c->left);
    if (c->come == NULL || c->left == NULL ||
        !pli_links_init(&c->links, workers, PLI_PORT_COLLECTIVE, resend_after_ns)) {
        pli_free(c->come);
        pli_free(c->left);
        c->come = NULL;
        c->left = NULL;
        return false;
    }
    for (int32_t r = 0; r < workers; r++) {
        c->come[r].first = NULL;
        c->come[r].last = &c->come[r].first;
    }
    return true;
}

void pli_collective_destroy(pli_collective *c) {
    for (int32_t r = 0; c->come != NULL && r < c->workers; r++) {
        pli_msg *msg;
        while ((msg = pop(&c->come[r])) != NULL) pli_msg_free(&msg);
    }
    for (pli_coll_run *run = c->first; run != NULL; run = run->next) pli_msg_free(&run->passing);
    pli_links_destroy(&c->links);
    pli_free(c->come);
    pli_free(c->left);
    c->come = NULL;
    c->left = NULL;
}

void pli_collective_begin(pli_collective *c, uint64_t now_ns, const pli_coll *call, pli_coll_run *run, pli_out *out) {
    *run = (pli_coll_run){ .call = *call, .number = ++c->started };
    atomic_init(&run->waits_for, -1);
    atomic_init(&run->done, false);
    c->recent[run->number % PLI_COLL_RECENT] = *call;
    if (c->error.code < 0) { /* after a failure the order of messages is lost for good */
        run->error = c->error;
        finish(run, out);
        return;
    }
    *c->last = run;
    c->last = &run->next;
    advance(c, now_ns, out);
}

void pli_collective_abort(pli_collective *c, pli_coll_run *run, const plait_error *why, pli_out *out) {
    fail_from(c, run, why, out);
}
