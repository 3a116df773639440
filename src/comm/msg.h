/* comm/msg.h - messages and slabs: what travels between the state machines of different ranks.
 *
 * A message is a fixed header of 64 bytes and a body. The body is a reference-counted *slab* that nobody writes after
 * it was sent: threads pass the pointer, other transports the bytes. A body may be a part of a slab, so a shard answers
 * a pull with a reference to its published values and copies nothing.
 *
 * The protocol assumes nothing of a transport. Every message carries the number of the sender's view, the sender's
 * incarnation (which life of the rank) and a sequence number in its stream: a receiver drops messages that it has seen
 * (comm/stream.h) and those of ranks that its own view lacks.
 *
 * The header is written to the wire as it lies in memory, little-endian; a body's layout is documented with its
 * kind. A decoder checks every size before using it: bytes from a wire are untrusted. */
#ifndef PLI_COMM_MSG_H
#define PLI_COMM_MSG_H

#include <stddef.h>
#include <stdint.h>

#include <plait/status.h>

#define PLI_WIRE_VERSION 2

enum { PLI_MSG_UNCOUNTED = 1 }; /* a flag in head.flags, at the ports of tables: the message stays in the process
                                 * (local tables), so no byte is sent */

typedef struct pli_slab {
    _Atomic int32_t refs;
    size_t          bytes;
    void           *memory; /* [bytes], 64-byte aligned, one cache line behind this struct's start */
} pli_slab;

pli_slab *pli_slab_new(size_t bytes);                     /* refs 1, not zeroed; NULL: out of memory */
pli_slab *pli_slab_ref(pli_slab *slab);                   /* returns slab                            */
void      pli_slab_unref(pli_slab **slab);                /* NULLs; frees with the last reference    */
int       pli_slab_is_mine(const pli_slab *slab);         /* refs == 1: the holder may write (acquire, pairs with
                                                           * unref's release) */

typedef struct pli_head {
    uint16_t version;     /* PLI_WIRE_VERSION                                              */
    uint16_t server;      /* at the ports of tables: number of the server whose shards it is about; else 0 */
    uint16_t kind;        /* each port gives it its own meaning */
    uint16_t flags;
    int32_t  src, dst;    /* ranks                                                         */
    uint16_t port;        /* the receiver's machine */
    uint16_t job;         /* at the ports of rooms above: number of the run's job, 1, 2, ...; else 0 */
    uint32_t epoch;       /* the number of the sender's view (comm/membership.h) */
    uint32_t incarnation; /* of the sender: 1, 2, ... each time its rank is started anew   */
    uint32_t arg32;       /* meaning depends on kind */
    uint64_t seq;         /* in the stream sender -> (receiver, port); 0: unsequenced      */
    int64_t  clock;       /* meaning depends on kind; a worker's clock */
    uint64_t arg64;       /* meaning depends on kind */
    uint64_t body_bytes;
} pli_head;
_Static_assert(sizeof(pli_head) == 64, "the wire header is 64 bytes");

typedef struct pli_msg {
    pli_head        head;
    pli_slab       *body;   /* a reference, or NULL if body_bytes is 0 */
    size_t          offset; /* where the body begins in the slab */
    struct pli_msg *next;   /* next in the list that holds it */
    uint64_t        note;   /* for the machine that received it; is not sent */
    uint64_t        origin_ns; /* when a rank's own call or wake-up began the chain of messages that led to this one;
                                * 0: not stamped yet. It is not sent: a message from another process begins a new
                                * chain */
} pli_msg;

/** A message with a body of its own [body_bytes] (0: none); head zeroed but for version and body_bytes. */
pli_msg *pli_msg_new(size_t body_bytes);
/** A message whose body is [offset, offset + bytes) of slab; takes a reference of its own. */
pli_msg *pli_msg_of_slab(pli_slab *slab, size_t offset, size_t bytes);
/** Another message with the same head and body (for resending and for doubling in tests). */
pli_msg *pli_msg_copy(const pli_msg *msg);
void     pli_msg_free(pli_msg **msg);
void     pli_msg_free_list(pli_msg **list); /* all that are linked by next */
static inline void *pli_msg_body(const pli_msg *msg) {
    return msg->body == NULL ? NULL : (unsigned char *)msg->body->memory + msg->offset;
}

#endif
