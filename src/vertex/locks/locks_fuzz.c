/* A lock machine receives arbitrary messages from two other ranks. It answers, or fails the job, and neither reads nor
 * writes outside of a message. Input: frames of kind, source, clock (a byte each), two bytes of length, a body. The
 * rank owns vertices 4 .. 7 of 12, and releases what it is granted. */
#include <stdint.h>
#include <string.h>

#include "base/base.h"
#include "vertex/locks/locks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int64_t first[] = { 0, 4, 8, 12 };

static void deliver(pli_locks *l, uint64_t seq, const uint8_t *frame, size_t bytes) {
    pli_msg *msg = pli_msg_new(bytes);
    pli_out  out;
    if (msg == NULL) return;
    msg->head.kind = frame[0] % 9;
    msg->head.src = frame[1] % 2 == 0 ? 0 : 2;
    msg->head.dst = 1;
    msg->head.incarnation = 1;
    msg->head.clock = frame[2];
    msg->head.seq = seq;
    if (bytes > 0) memcpy(pli_msg_body(msg), frame + 5, bytes);
    pli_out_init(&out);
    pli_locks_ops.on_message(l, seq, msg, &out);
    pli_out_drop(&out);
}

static void work(pli_locks *l, uint64_t now_ns) {
    pli_lock_notice notice;
    pli_out         out;
    pli_out_init(&out);
    while (pli_locks_noticed(l, &notice)) pli_msg_free(&notice.msg);
    for (pli_lock_scope *s; (s = pli_locks_next(l)) != NULL;) {
        for (uint32_t i = 0; i < s->n; i++) s->entry[i].wrote = i % 2;
        (void)pli_locks_release(l, now_ns, s, &out);
    }
    pli_locks_rest(l, now_ns, &out);
    pli_out_drop(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const pli_lock_entry scope[] = { { 2, 0, PLI_LOCK_READ, 0 }, { 5, 0, PLI_LOCK_WRITE, 0 },
                                            { 9, 0, PLI_LOCK_READ, 0 } };
    pli_locks l;
    pli_out   out;
    uint64_t  seq[2] = { 0, 0 };
    if (!pli_locks_init(&l, 1, 3, first, 8, 0)) return 0;
    pli_out_init(&out);
    (void)pli_locks_ask(&l, 1, 5, 3, scope, &out);
    pli_out_drop(&out);
    while (size >= 5) {
        size_t bytes = data[3] + 256u * data[4];
        if (bytes > size - 5) bytes = size - 5;
        deliver(&l, ++seq[data[1] % 2], data, bytes);
        work(&l, seq[0] + seq[1]);
        data += 5 + bytes;
        size -= 5 + bytes;
    }
    pli_locks_destroy(&l);
    return 0;
}
