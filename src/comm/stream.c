/* Exactly once and in order; the head of stream.h explains how.
 *
 * Invariants of the sender:   acked < next; if it keeps copies, kept holds acked+1 .. next-1 in order.
 * Invariants of the receiver: every number below expected was handed on exactly once; the stash holds numbers above
 * expected, strictly increasing, at most STASH_MAX of them. */
#include "comm/stream.h"

#include <string.h>

enum { STASH_MAX = 1024, RESEND_MAX = 64, PATIENCE_DOUBLINGS_MAX = 6 };

void pli_tx_init(pli_tx *tx, uint64_t resend_after_ns) {
    memset(tx, 0, sizeof *tx);
    tx->next = 1;
    tx->resend_after_ns = resend_after_ns;
    tx->kept_last = &tx->kept;
}

void pli_tx_destroy(pli_tx *tx) {
    pli_msg_free_list(&tx->kept);
    tx->kept_last = &tx->kept;
}

static uint64_t patience_ns(const pli_tx *tx) {
    int32_t doublings = tx->tries < PATIENCE_DOUBLINGS_MAX ? tx->tries : PATIENCE_DOUBLINGS_MAX;
    return tx->resend_after_ns << doublings;
}

bool pli_tx_send(pli_tx *tx, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    msg->head.seq = tx->next;
    if ((tx->resend_after_ns > 0 || tx->keeps) && !tx->ended) {
        pli_msg *copy = pli_msg_copy(msg);
        if (copy == NULL) return false;
        if (tx->kept == NULL) {
            tx->sent_at_ns = now_ns;
            tx->tries = 0;
        }
        *tx->kept_last = copy;
        tx->kept_last = &copy->next;
        if (tx->resend_after_ns > 0) pli_out_wake(out, tx->sent_at_ns + patience_ns(tx));
    }
    tx->next++;
    pli_out_send(out, msg);
    return true;
}

void pli_tx_acked(pli_tx *tx, uint64_t seq) {
    if (seq <= tx->acked || seq >= tx->next) return; /* already known, or of a message never sent */
    tx->acked = seq;
    tx->tries = 0;
    while (tx->kept != NULL && tx->kept->head.seq <= seq) {
        pli_msg *msg = tx->kept;
        tx->kept = msg->next;
        pli_msg_free(&msg);
    }
    if (tx->kept == NULL) tx->kept_last = &tx->kept;
}

void pli_tx_end(pli_tx *tx) {
    pli_tx_acked(tx, tx->next - 1);
    tx->ended = true;
}

void pli_tx_arrived(pli_tx *tx, uint64_t seq) {
    if (seq <= tx->arrived || seq >= tx->next) return;
    tx->arrived = seq;
    tx->tries = 0;
}

void pli_tx_wakeup(pli_tx *tx, uint64_t now_ns, pli_out *out) {
    if (tx->kept == NULL || tx->resend_after_ns == 0) return;
    out->keeps = true;
    if (now_ns >= tx->sent_at_ns + patience_ns(tx)) {
        int32_t n = 0;
        for (const pli_msg *msg = tx->kept; msg != NULL && n < RESEND_MAX; msg = msg->next) {
            if (msg != tx->kept && msg->head.seq <= tx->arrived)
                continue; /* the first copy also asks how much is
                                                                            * safe */
            pli_msg *copy = pli_msg_copy(msg);
            n++;
            if (copy == NULL) break; /* the next wake-up tries again */
            pli_out_send(out, copy);
        }
        tx->sent_at_ns = now_ns;
        tx->tries++;
    }
    pli_out_wake(out, tx->sent_at_ns + patience_ns(tx));
}

void pli_rx_init(pli_rx *rx) {
    memset(rx, 0, sizeof *rx);
    rx->expected = 1;
}

void pli_rx_destroy(pli_rx *rx) {
    pli_msg_free_list(&rx->stash);
    rx->stashed = 0;
}

/* Takes *msg into the stash, in order, or drops it if it is a repeat or there is no room. */
static void stash(pli_rx *rx, pli_msg **msg) {
    pli_msg **at = &rx->stash;
    while (*at != NULL && (*at)->head.seq < (*msg)->head.seq) at = &(*at)->next;
    bool repeat = *at != NULL && (*at)->head.seq == (*msg)->head.seq;
    if (repeat || rx->stashed >= STASH_MAX) {
        pli_msg_free(msg);
        return;
    }
    (*msg)->next = *at;
    *at = *msg;
    *msg = NULL;
    rx->stashed++;
}

pli_rx_verdict pli_rx_take(pli_rx *rx, pli_msg **msg) {
    const pli_head *head = &(*msg)->head;
    if (head->incarnation < rx->incarnation) return PLI_RX_OLD;
    if (head->incarnation > rx->incarnation) { /* the sender was started anew, and counts from 1 */
        if (rx->incarnation != 0) {
            pli_rx_destroy(rx);
            rx->expected = 1;
        }
        rx->incarnation = head->incarnation;
    }
    if (head->seq == 0) return PLI_RX_TAKE; /* unsequenced */
    if (head->seq < rx->expected) return PLI_RX_DUPLICATE;
    if (head->seq > rx->expected) {
        stash(rx, msg);
        return PLI_RX_EARLY;
    }
    rx->expected++;
    return PLI_RX_TAKE;
}

pli_msg *pli_rx_next(pli_rx *rx) {
    pli_msg *msg = rx->stash;
    if (msg == NULL || msg->head.seq != rx->expected) return NULL;
    rx->stash = msg->next;
    rx->stashed--;
    rx->expected++;
    msg->next = NULL;
    return msg;
}
