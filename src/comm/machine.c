/* A machine's answer: a list of messages, a wake-up, a ring, an error. */
#include "comm/machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void pli_out_init(pli_out *out) {
    out->first = NULL;
    out->last = &out->first;
    out->wake_at_ns = PLI_NEVER;
    out->ring = false;
    out->keeps = false;
    out->error.code = PLAIT_OK;
    out->error.rank = -1;
    out->error.text[0] = '\0';
    memset(out->work, 0, sizeof out->work);
}

void pli_out_send(pli_out *out, pli_msg *msg) {
    msg->next = NULL;
    *out->last = msg;
    out->last = &msg->next;
}

void pli_out_wake(pli_out *out, uint64_t at_ns) {
    if (at_ns < out->wake_at_ns) out->wake_at_ns = at_ns;
}

void pli_out_ring(pli_out *out) { out->ring = true; }

void pli_out_work(pli_out *out, pli_work_kind kind, uint64_t amount) { out->work[kind] += amount; }

static void fail(pli_out *out, plait_status code, int32_t rank, const char *fmt, va_list ap) {
    if (out->error.code < 0) return; /* the first failure is the cause */
    vsnprintf(out->error.text, sizeof out->error.text, fmt, ap);
    out->error.code = code;
    out->error.rank = rank;
    out->ring = true; /* waiting threads must see it */
}

void pli_out_fail(pli_out *out, plait_status code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fail(out, code, -1, fmt, ap);
    va_end(ap);
}

void pli_out_lost(pli_out *out, int32_t rank, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fail(out, PLAIT_EPEER, rank, fmt, ap);
    va_end(ap);
}

void pli_out_drop(pli_out *out) {
    for (pli_msg *msg = out->first, *next; msg != NULL; msg = next) {
        next = msg->next;
        pli_msg_free(&msg);
    }
    pli_out_init(out);
}
