/* A server receives arbitrary messages from two workers. It answers, or fails the job, and neither reads nor writes
 * outside of a message. Input: frames of kind (from 128 on: and filtered), source, clock, arg32 (a byte each), two
 * bytes of length, a body.
 *
 * If the first byte is 0x7c .. 0x7f, the server is one of two replicas (replicas.h): bit 0 is its place, bit 1 says
 * that its tables apply at once. Then the upper two bits of a frame's kind mean: 0 a worker's message; 1 the same with
 * flag REDO; 2 a message of the other replica about the worker `source`; 3 a filtered one. Kinds 61, 62, 63: a wake-up;
 * `source` has left; has died. */
#include <stdlib.h>
#include <string.h>

#include "table/copies/replicas.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RANK = 2, OTHER = 3, COPIES_FROM = 0x7c, WAKEUP = 61, LEFT = 62, DIED = 63 };

typedef struct fuzzed {
    pli_server server;
    uint64_t   now_ns, seq[2], logged; /* numbers of the workers' streams, and of the log's */
    uint32_t   epoch;
} fuzzed;

static plait_status sum_all(void *user, const plait_slice *slices, int32_t n, const void *args, size_t args_bytes,
                            void *answer, size_t answer_bytes) {
    (void)user; (void)args; (void)args_bytes;
    double sum = 0;
    if (n < 1 || answer_bytes < sizeof(double)) return PLAIT_ESHAPE;
    for (int32_t s = 0; s < n; s++) /* as functions do: all tables are cut as the first is */
        for (int64_t i = 0; i < slices[0].rows * slices[0].cols; i++) sum += (double)((float *)slices[s].values)[i];
    *(double *)answer = sum;
    return PLAIT_OK;
}

static const plait_function functions[] = { { .name = "get", .run = sum_all }, { .name = "set", .updates = 1,
                                                                                 .run = sum_all } };

/* Descriptions that ask for much memory are left out: this program does not look for that. */
static bool is_large(const pli_msg *msg) {
    pli_wire_create create;
    if (msg->head.kind != PLI_CREATE || msg->head.body_bytes < sizeof create) return false;
    memcpy(&create, pli_msg_body(msg), sizeof create);
    return create.spec.rows > 4096 || create.spec.cols > 64;
}

static void deliver(fuzzed *f, pli_msg *msg) {
    pli_out out;
    pli_out_init(&out);
    if (is_large(msg)) pli_msg_free(&msg);
    else pli_server_ops.on_message(&f->server, ++f->now_ns, msg, &out);
    pli_out_drop(&out);
}

static bool is_worker(int32_t rank) { return rank == 0 || rank == 1; }

/* Makes the message that the other replica would send. */
static void make_logged(fuzzed *f, uint64_t worker, pli_msg *msg) {
    msg->head.flags = PLI_FLAG_LOG;
    msg->head.src = OTHER;
    if (msg->head.kind == PLI_LOGGED) {
        msg->head.arg64 = msg->head.arg32;
        return;
    }
    msg->head.seq = ++f->logged;
    msg->head.arg64 = worker << 40 | (worker < 2 ? ++f->seq[worker] : 1);
}

/* Handles a frame that is no message. */
static bool happens(fuzzed *f, const uint8_t *head) {
    const pli_member_event event = { .kind = head[0] == DIED ? PLI_MEMBER_DIED : PLI_MEMBER_LEFT,
                                     .rank = (int8_t)head[1], .epoch = ++f->epoch };
    pli_out                out;
    if (f->server.replicas == NULL || head[0] < WAKEUP || head[0] > DIED) return false;
    pli_out_init(&out);
    if (head[0] == WAKEUP) pli_server_ops.on_wakeup(&f->server, f->now_ns += 1000, &out);
    else pli_server_ops.on_member(&f->server, ++f->now_ns, &event, &out);
    pli_out_drop(&out);
    return true;
}

static void take_frame(fuzzed *f, const uint8_t *head, size_t bytes) {
    const bool copies = f->server.replicas != NULL;
    if (happens(f, head)) return;
    pli_msg *msg = pli_msg_new(bytes);
    if (msg == NULL) abort();
    msg->head.kind = head[0] & (copies ? 63 : 127);
    msg->head.flags = head[0] & 128 ? PLI_FLAG_FILTERED : 0;
    msg->head.src = (int8_t)head[1];
    msg->head.clock = (int8_t)head[2];
    msg->head.arg32 = head[3];
    msg->head.incarnation = 1;
    msg->head.epoch = f->epoch;
    if (bytes > 0) memcpy(pli_msg_body(msg), head + 6, bytes);
    if (copies && head[0] >> 6 == 1) msg->head.flags = PLI_FLAG_REDO;
    if (copies && head[0] >> 6 == 2) make_logged(f, head[1], msg);
    else if (is_worker(msg->head.src)) msg->head.seq = ++f->seq[msg->head.src];
    deliver(f, msg);
}

static void create(fuzzed *f, int32_t id, int64_t rows, const char *consistency, const char *rule, const char *filter,
                   int exact) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    pli_spec spec;
    opts.name = "t";
    opts.rows = rows;
    opts.keyed = id == 2;
    opts.exact = exact;
    opts.rule.name = rule;
    opts.rule.l2 = rule == NULL ? 0 : 0.1;
    if (pli_spec_make(id, &opts, "ps", consistency, 1, NULL, &spec, NULL) < 0) abort();
    pli_wire_create create = { .spec_hash = 1 };
    pli_spec_encode(&spec, &create.spec);
    size_t   names = filter == NULL ? 0 : pli_pad8(strlen(filter) + 1);
    pli_msg *msg = pli_msg_new(sizeof create + names);
    if (msg == NULL) abort();
    memcpy(pli_msg_body(msg), &create, sizeof create);
    if (names > 0) strncpy((char *)pli_msg_body(msg) + sizeof create, filter, names);
    msg->head.kind = PLI_CREATE;
    msg->head.incarnation = 1;
    if (f->server.replicas != NULL && !f->server.replicas->serves) make_logged(f, 0, msg);
    else msg->head.seq = ++f->seq[0];
    deliver(f, msg);
}

static void open_one(fuzzed *f) {
    static const pli_layout layout = { .workers = 2, .servers = 1, .first_server = RANK, .functions = functions,
                                       .n_functions = 2 };
    if (pli_server_open(&f->server, &layout, RANK, 0, 1, NULL) < 0) abort();
    create(f, 0, 600, "bsp", "sgd", NULL, 0);
    create(f, 1, 0, "async", NULL, NULL, 0);
    create(f, 2, 50, "ssp:1", "adam", NULL, 0);
    create(f, 3, 0, "async", "sgd", "key-cache,key-delta,fixed8,zstd", 0);
    create(f, 4, 40, "bsp", NULL, NULL, 1);
    create(f, 5, 0, "bsp", "adam", "key-cache,zstd", 1);
}

/* Opens tables with a shard on all servers. At place 2 the server is a replica that is being made. */
static void open_copy(fuzzed *f, int32_t place, bool at_once) {
    const pli_layout layout = { .workers = 2, .servers = place == 2 ? 3 : 2, .first_server = RANK,
                                .functions = functions, .n_functions = 2, .resend_after_ns = 500, .replicas = 2 };
    if (pli_server_open_replica(&f->server, &layout, place == 0 ? 0 : 1, place, 0, 1, NULL) < 0) abort();
    create(f, 0, 2100, at_once ? "async" : "bsp", "sgd", NULL, 0);
    create(f, 1, 0, at_once ? "ssp:1" : "bsp", NULL, NULL, 0);
    create(f, 2, 2100, at_once ? "essp:1" : "bsp", "adam", NULL, 0);
    create(f, 3, 0, at_once ? "async" : "bsp", "sgd", NULL, !at_once);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzzed f = { .now_ns = 1 };
    if (size > 0 && data[0] >= COPIES_FROM && data[0] < COPIES_FROM + 6) {
        open_copy(&f, data[0] < COPIES_FROM + 4 ? data[0] & 1 : 2, (data[0] & 2) != 0);
        data++;
        size--;
    } else {
        open_one(&f);
    }
    while (size >= 6) {
        size_t bytes = (size_t)data[4] | (size_t)data[5] << 8;
        if (bytes > size - 6) bytes = size - 6;
        take_frame(&f, data, bytes);
        data += 6 + bytes;
        size -= 6 + bytes;
    }
    pli_server_close(&f.server);
    return 0;
}
