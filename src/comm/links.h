/* comm/links.h - the streams of one machine to and from the same port of every other rank, for machines that
 * exchange messages with all ranks alike (tagged messages, collectives). head.arg64 of every message acknowledges
 * the other direction. */
#ifndef PLI_COMM_LINKS_H
#define PLI_COMM_LINKS_H

#include "comm/stream.h"

enum { PLI_LINK_ACK = 0xffff }; /* kind of a message that is only an acknowledgement */

typedef struct pli_links {
    int32_t  ranks;
    uint32_t port;
    uint64_t resend_after_ns;
    struct pli_link { pli_tx tx; pli_rx rx; } *link; /* [ranks] */
} pli_links;

bool pli_links_init(pli_links *links, int32_t ranks, uint32_t port, uint64_t resend_after_ns); /* false: no memory */
void pli_links_destroy(pli_links *links);
/** Numbers and sends msg, taken, to head.dst. false: out of memory, msg freed. */
bool pli_links_send(pli_links *links, uint64_t now_ns, pli_msg *msg, pli_out *out);
/** Judges a message (taken). Returns it if it is next in its stream: then call pli_links_next until NULL. */
pli_msg *pli_links_take(pli_links *links, uint64_t now_ns, pli_msg *msg, pli_out *out);
pli_msg *pli_links_next(pli_links *links, int32_t src);
void     pli_links_wakeup(pli_links *links, uint64_t now_ns, pli_out *out);
/** src will not answer any more: messages kept for it are dropped, and none is kept from now on. */
void pli_links_forget(pli_links *links, int32_t src);

#endif
