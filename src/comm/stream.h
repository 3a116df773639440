/* comm/stream.h - exactly once and in order, over a transport that may lose, double and reorder.
 *
 * Each pair (sender machine -> receiver machine) is a stream of messages numbered 1, 2, 3, ... The receiver hands
 * messages on strictly in order: lower numbers are duplicates and are dropped (but acknowledged again), higher ones
 * wait in a bounded stash. The sender keeps messages that are not acknowledged and sends them again at a wake-up that
 * came without progress. On a reliable transport (threads, mpi) resending is off (resend_after_ns 0): numbers are still
 * checked, but nothing is kept unless the user of the stream wants it (a client lays its unacknowledged incs over the
 * values that it reads).
 *
 * Acknowledgements are cumulative. They ride in any message that goes the other way; a machine that has nothing to send
 * answers a duplicate or a resend with a bare acknowledgement.
 *
 * When a newer incarnation of the sender appears, the receiver forgets the older one's stream; messages of older
 * incarnations are dropped. Streams are parts of machines: they have no threads and no clock of their own. */
#ifndef PLI_COMM_STREAM_H
#define PLI_COMM_STREAM_H

#include "comm/machine.h"

typedef struct pli_tx {
    uint64_t  next;            /* number of the next message: 1, 2, ...              */
    uint64_t  acked;           /* all messages up to here have arrived (keeps: and are safe) */
    uint64_t  arrived;         /* keeps: all messages up to here have arrived */
    uint64_t  resend_after_ns; /* 0: never resend, and nothing is kept, unless ... */
    bool      keeps;           /* ... this is set: unacknowledged messages are kept for a rank that may take the
                                * receiver's place */
    uint64_t  sent_at_ns;      /* when the oldest kept message was last sent */
    int32_t   tries;
    bool      ended;           /* the receiver has ended: see pli_tx_end */
    pli_msg  *kept, **kept_last; /* copies of messages not acknowledged, in order */
} pli_tx;
void pli_tx_init(pli_tx *tx, uint64_t resend_after_ns);
void pli_tx_destroy(pli_tx *tx);
/** Numbers msg, keeps a copy if resending is on, and sends it. false: out of memory, not sent. */
bool pli_tx_send(pli_tx *tx, uint64_t now_ns, pli_msg *msg, pli_out *out);
/** All messages up to seq have arrived (keeps: and are safe with the rank that may take the receiver's place). */
void pli_tx_acked(pli_tx *tx, uint64_t seq);
/** The receiver has ended and acknowledges no more: messages kept for it are dropped, and none is kept from now on. */
void pli_tx_end(pli_tx *tx);
/** keeps: all messages up to seq have arrived, though they are not safe yet. */
void pli_tx_arrived(pli_tx *tx, uint64_t seq);
/** Sends messages again that have waited too long (the patience doubles each time); asks for the next wake-up. */
void pli_tx_wakeup(pli_tx *tx, uint64_t now_ns, pli_out *out);

typedef struct pli_rx {
    uint64_t expected;    /* number of the next message to hand on; starts at 1 */
    uint32_t incarnation; /* incarnation of the sender that is followed; 0: none yet */
    int32_t  stashed;
    pli_msg *stash;       /* messages ahead of their turn, in order */
} pli_rx;
void pli_rx_init(pli_rx *rx);
void pli_rx_destroy(pli_rx *rx);
typedef enum pli_rx_verdict { PLI_RX_TAKE, PLI_RX_DUPLICATE, PLI_RX_EARLY, PLI_RX_OLD } pli_rx_verdict;
/** Judges a message. TAKE: it is next; the caller handles it and then calls pli_rx_next until NULL. DUPLICATE, OLD:
 *  the caller frees it (and may acknowledge again). EARLY: the stash took it, or dropped it because it was full;
 *  *msg is NULL in both cases. A dropped message will be sent again. */
pli_rx_verdict pli_rx_take(pli_rx *rx, pli_msg **msg);
pli_msg       *pli_rx_next(pli_rx *rx); /* a stashed message whose turn has come (taken), or NULL */

#endif
