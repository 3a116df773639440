#include "comm/links.h"

#include "base/base.h"

bool pli_links_init(pli_links *links, int32_t ranks, uint32_t port, uint64_t resend_after_ns) {
    links->ranks = ranks;
    links->port = port;
    links->resend_after_ns = resend_after_ns;
    links->link = pli_array((size_t)ranks, sizeof *links->link);
    if (links->link == NULL) return false;
    for (int32_t r = 0; r < ranks; r++) {
        pli_tx_init(&links->link[r].tx, resend_after_ns);
        pli_rx_init(&links->link[r].rx);
    }
    return true;
}

void pli_links_destroy(pli_links *links) {
    for (int32_t r = 0; links->link != NULL && r < links->ranks; r++) {
        pli_tx_destroy(&links->link[r].tx);
        pli_rx_destroy(&links->link[r].rx);
    }
    pli_free(links->link);
    links->link = NULL;
}

bool pli_links_send(pli_links *links, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    struct pli_link *link = &links->link[msg->head.dst];
    msg->head.port = links->port;
    msg->head.arg64 = link->rx.expected - 1;
    if (pli_tx_send(&link->tx, now_ns, msg, out)) return true;
    pli_msg_free(&msg);
    return false;
}

static void acknowledge(pli_links *links, int32_t to, pli_out *out) {
    if (links->resend_after_ns == 0) return;
    pli_msg *ack = pli_msg_new(0);
    if (ack == NULL) return; /* a repeated message will ask again */
    ack->head.kind = PLI_LINK_ACK;
    ack->head.dst = to;
    ack->head.port = links->port;
    ack->head.arg64 = links->link[to].rx.expected - 1;
    pli_out_send(out, ack);
}

pli_msg *pli_links_take(pli_links *links, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    (void)now_ns;
    int32_t src = msg->head.src;
    if (src < 0 || src >= links->ranks) {
        pli_msg_free(&msg);
        return NULL;
    }
    struct pli_link *link = &links->link[src];
    if (msg->head.incarnation >= link->rx.incarnation) pli_tx_acked(&link->tx, msg->head.arg64);
    if (msg->head.kind == PLI_LINK_ACK) {
        pli_msg_free(&msg);
        return NULL;
    }
    pli_rx_verdict verdict = pli_rx_take(&link->rx, &msg);
    if (verdict == PLI_RX_TAKE) {
        acknowledge(links, src, out);
        return msg;
    }
    if (verdict == PLI_RX_DUPLICATE) acknowledge(links, src, out);
    pli_msg_free(&msg);
    return NULL;
}

pli_msg *pli_links_next(pli_links *links, int32_t src) { return pli_rx_next(&links->link[src].rx); }

void pli_links_wakeup(pli_links *links, uint64_t now_ns, pli_out *out) {
    for (int32_t r = 0; r < links->ranks; r++) pli_tx_wakeup(&links->link[r].tx, now_ns, out);
}

void pli_links_forget(pli_links *links, int32_t src) {
    if (src >= 0 && src < links->ranks) pli_tx_end(&links->link[src].tx);
}
