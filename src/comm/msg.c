/* Messages and slabs. A slab that owns its bytes has them in the same allocation, one cache line behind the head. */
#include "comm/msg.h"

#include <stdatomic.h>
#include <string.h>

#include "base/base.h"

enum { SLAB_HEAD_BYTES = 64 };
_Static_assert(sizeof(pli_slab) <= SLAB_HEAD_BYTES, "a slab's head fits in its cache line");

pli_slab *pli_slab_new(size_t bytes) {
    if (bytes > SIZE_MAX - SLAB_HEAD_BYTES) return NULL;
    pli_slab *slab = pli_aligned(SLAB_HEAD_BYTES + bytes);
    if (slab == NULL) return NULL;
    atomic_init(&slab->refs, 1);
    slab->bytes = bytes;
    slab->memory = (unsigned char *)slab + SLAB_HEAD_BYTES;
    return slab;
}

pli_slab *pli_slab_ref(pli_slab *slab) {
    /* relaxed: a thread that takes a reference holds one already */
    if (slab != NULL) atomic_fetch_add_explicit(&slab->refs, 1, memory_order_relaxed);
    return slab;
}

void pli_slab_unref(pli_slab **slab_ptr) {
    pli_slab *slab = *slab_ptr;
    *slab_ptr = NULL;
    if (slab == NULL) return;
    /* release: our reads and writes come before those of the thread that frees or reuses; acquire: that thread sees
     * them */
    if (atomic_fetch_sub_explicit(&slab->refs, 1, memory_order_acq_rel) != 1) return;
    pli_free(slab);
}

int pli_slab_is_mine(const pli_slab *slab) {
    return atomic_load_explicit(&slab->refs, memory_order_acquire) == 1;
}

static pli_msg *msg_with(pli_slab *body, size_t offset, size_t bytes) {
    pli_msg *msg = pli_malloc(sizeof *msg);
    if (msg == NULL) return NULL;
    memset(&msg->head, 0, sizeof msg->head);
    msg->head.version = PLI_WIRE_VERSION;
    msg->head.body_bytes = bytes;
    msg->body = body;
    msg->offset = offset;
    msg->next = NULL;
    msg->note = 0;
    msg->origin_ns = 0;
    return msg;
}

pli_msg *pli_msg_new(size_t body_bytes) {
    pli_slab *body = NULL;
    if (body_bytes > 0 && (body = pli_slab_new(body_bytes)) == NULL) return NULL;
    pli_msg *msg = msg_with(body, 0, body_bytes);
    if (msg == NULL) pli_slab_unref(&body);
    return msg;
}

pli_msg *pli_msg_of_slab(pli_slab *slab, size_t offset, size_t bytes) {
    pli_msg *msg = msg_with(NULL, offset, bytes);
    if (msg != NULL && bytes > 0) msg->body = pli_slab_ref(slab);
    return msg;
}

pli_msg *pli_msg_copy(const pli_msg *msg) {
    pli_msg *copy = pli_malloc(sizeof *copy);
    if (copy == NULL) return NULL;
    *copy = *msg;
    copy->next = NULL;
    pli_slab_ref(copy->body);
    return copy;
}

void pli_msg_free(pli_msg **msg_ptr) {
    pli_msg *msg = *msg_ptr;
    *msg_ptr = NULL;
    if (msg == NULL) return;
    pli_slab_unref(&msg->body);
    pli_free(msg);
}

void pli_msg_free_list(pli_msg **list) {
    for (pli_msg *msg = *list, *next; msg != NULL; msg = next) {
        next = msg->next;
        pli_msg_free(&msg);
    }
    *list = NULL;
}
