/* comm/transport.h - what a transport must provide. One folder each: threads/ mpi/ (later tcp/ sim/). A
 * transport that needs a library is a module, plait-<name>.so, whose one entry symbol returns its ops.
 *
 * A transport moves messages between ranks, lets a rank's thread sleep until something happened, and may
 * fulfil collectives natively. It knows nothing of what messages mean. Everything above (ports, inboxes,
 * waits, reasons, error, bytes counted) is in comm and is the same for all.
 */
#ifndef PLI_COMM_TRANSPORT_H
#define PLI_COMM_TRANSPORT_H

#include "comm/comm.h"

#define PLI_TRANSPORT_ABI 1u

typedef struct pli_transport pli_transport; /* a transport's own state in this process */

typedef struct pli_transport_ops {
    uint32_t    abi; /* PLI_TRANSPORT_ABI */
    const char *name;
    bool        one_process;     /* ranks share the process                                          */
    uint64_t    resend_after_ns; /* 0: reliable and ordered                                          */

    /** Joins the job; fills in the ranks that live here (first, count), total size, and checks the
     *  counts of opts against the launcher's. */
    plait_status (*open)(const plait_comm_opts *opts, pli_transport **transport_out, int32_t *size_out, int32_t *first_out,
                         int32_t *count_out, plait_error *err);
    /** Sends msg (taken) to another process's rank. Never blocks. Incoming messages are handed to
     *  pli_comm_deliver. NULL where all ranks are in one process. Any thread. */
    plait_status (*send)(pli_transport *transport, pli_msg *msg);
    /** Native collectives, or NULL: then the message form (comm/collective.c) serves. Called by the
     *  worker's thread; must not return before done, nor after the deadline. */
    plait_status (*allreduce)(pli_transport *transport, int32_t rank, void *buf, int64_t n, plait_type type,
                              plait_reduce op, uint64_t deadline_ns, plait_error *err);
    plait_status (*barrier)(pli_transport *transport, int32_t rank, uint64_t deadline_ns, plait_error *err);
    /** Ends in good order (failed: as fast as possible, peers may be gone). */
    void (*close)(pli_transport **transport, bool failed);
} pli_transport_ops;

/** A module's entry symbol: "plait_transport_module". */
typedef const pli_transport_ops *pli_transport_entry_fn(void);

/** A transport's thread hands a message (taken) to the rank that it is for. */
void pli_comm_deliver(pli_transport *transport, pli_msg *msg);
/** A transport saw a rank come or go. */
void pli_comm_member(pli_transport *transport, const pli_member_event *event);

#endif
