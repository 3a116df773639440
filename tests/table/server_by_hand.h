/* server_by_hand.h - a bare server of two workers and one table of 20 rows, and the messages that tests hand to it. */
#ifndef PLI_TESTS_TABLE_SERVER_BY_HAND_H
#define PLI_TESTS_TABLE_SERVER_BY_HAND_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "table/client/client.h"
#include "table/server/server.h"

enum { RANK = 2, ROWS = 20, CROWD = 64 };

static const pli_layout layout = { .workers = 2, .servers = 1, .first_server = RANK, .job_hash = 77 };

typedef struct fixture {
    pli_server server;
    pli_spec   spec;
    uint64_t   seq[CROWD];
    pli_out    out;
} fixture;

static inline pli_msg *message(fixture *f, int32_t src, pli_kind kind, int64_t clock, size_t bytes) {
    pli_msg *msg = pli_msg_new(bytes);
    if (bytes > 0) memset(pli_msg_body(msg), 0, bytes);
    msg->head.kind = (uint16_t)kind;
    msg->head.src = src;
    msg->head.clock = clock;
    msg->head.incarnation = 1;
    msg->head.arg32 = 5;
    msg->head.seq = ++f->seq[src];
    return msg;
}

/* Delivers and returns how many messages came back. */
static inline int deliver(fixture *f, pli_msg *msg) {
    int n = 0;
    pli_out_drop(&f->out);
    pli_out_init(&f->out);
    pli_server_ops.on_message(&f->server, 1, msg, &f->out);
    for (const pli_msg *at = f->out.first; at != NULL; at = at->next) n++;
    return n;
}

/* Has the server sent a message of the kind to the rank? */
static inline const pli_msg *sent(const fixture *f, int32_t to, pli_kind kind) {
    for (const pli_msg *at = f->out.first; at != NULL; at = at->next)
        if (at->head.dst == to && at->head.kind == kind) return at;
    return NULL;
}

static inline pli_msg *create_message(fixture *f, uint64_t job_hash, uint64_t spec_hash) {
    pli_msg         *msg = message(f, 0, PLI_CREATE, 0, sizeof(pli_wire_create));
    pli_wire_create *create = pli_msg_body(msg);
    create->job_hash = job_hash;
    create->spec_hash = spec_hash;
    pli_spec_encode(&f->spec, &create->spec);
    return msg;
}

static inline void open_server_with(fixture *f, const pli_layout *with, plait_table_opts *opts,
                                    const char *consistency) {
    memset(f, 0, sizeof *f);
    pli_out_init(&f->out);
    opts->name = "w";
    opts->rows = ROWS;
    assert_int_equal(pli_spec_make(0, opts, "ps", consistency, 1, NULL, &f->spec, NULL), PLAIT_OK);
    f->spec.placement = pli_placement_make(ROWS, 4, 0, 1, RANK);
    assert_int_equal(pli_server_open(&f->server, with, RANK, 0, 1, NULL), PLAIT_OK);
    assert_int_equal(deliver(f, create_message(f, 77, 1)), 1);
    assert_int_equal(f->out.first->head.flags & PLI_FLAG_FAILED, 0);
}

static inline void open_server(fixture *f, const char *consistency) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    open_server_with(f, &layout, &opts, consistency);
}

static inline void close_server(fixture *f) {
    pli_out_drop(&f->out);
    pli_server_close(&f->server);
}

static inline void expect_failure(const fixture *f, plait_status code, const char *text) {
    const pli_wire_failure *failure = pli_msg_body(f->out.first);
    assert_true(f->out.first->head.flags & PLI_FLAG_FAILED);
    assert_int_equal(failure->code, code);
    assert_non_null(strstr(failure->text, text));
}

static inline pli_msg *pull_message(fixture *f, int32_t src, int64_t clock, uint32_t table, int64_t first, int64_t n) {
    pli_msg *msg = message(f, src, PLI_PULL, clock, sizeof(pli_wire_pull));
    *(pli_wire_pull *)pli_msg_body(msg) = (pli_wire_pull){ .table = table, .first = first, .n = n };
    return msg;
}

static inline pli_msg *clock_message(fixture *f, int32_t src, int64_t clock, int64_t first, int64_t n, float value) {
    pli_msg       *msg = message(f, src, PLI_CLOCK, clock, sizeof(pli_wire_part) + (size_t)ROWS * 4);
    pli_wire_part *part = pli_msg_body(msg);
    float         *values = (float *)(part + 1);
    msg->head.arg32 = 1;
    *part = (pli_wire_part){ .first = first, .n = n, .values_at = sizeof *part };
    for (int i = 0; i < ROWS; i++) values[i] = value;
    return msg;
}

static inline float served(fixture *f, int64_t clock) {
    assert_int_equal(deliver(f, pull_message(f, 0, clock, 0, 3, 1)), 1);
    return *(const float *)pli_msg_body(f->out.first);
}

typedef struct heard {
    int       n[PLI_EVENT_KINDS];
    pli_event last;
} heard;

static inline void hear(void *user, const pli_event *event) {
    heard *h = user;
    h->n[event->kind]++;
    h->last = *event;
}

#endif
