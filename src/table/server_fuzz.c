/* A server that is told anything by two workers: an error of the job, or an answer, and nothing read or written
 * outside of a message. Input: frames of kind (from 128 on: and filtered), source, clock, arg32 (a byte each), two
 * bytes of length, a body. */
#include <stdlib.h>
#include <string.h>

#include "table/server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RANK = 2 };

static plait_status sum_all(void *user, const plait_slice *slices, int32_t n, const void *args, size_t args_bytes,
                            void *answer, size_t answer_bytes) {
    (void)user; (void)args; (void)args_bytes;
    if (n < 1 || answer_bytes < sizeof(double)) return PLAIT_ESHAPE;
    *(double *)answer = (double)slices[0].rows;
    return PLAIT_OK;
}

static const plait_function functions[] = { { .name = "get", .run = sum_all }, { .name = "set", .updates = 1,
                                                                                 .run = sum_all } };

/* Memory that a description asks for is not what is looked for here. */
static bool is_large(const pli_msg *msg) {
    pli_wire_create create;
    if (msg->head.kind != PLI_CREATE || msg->head.body_bytes < sizeof create) return false;
    memcpy(&create, pli_msg_body(msg), sizeof create);
    return create.spec.rows > 4096 || create.spec.cols > 64;
}

static void deliver(pli_server *server, pli_msg *msg) {
    pli_out out;
    pli_out_init(&out);
    pli_server_ops.on_message(server, 1, msg, &out);
    pli_out_drop(&out);
}

static pli_msg *next_frame(const uint8_t **data, size_t *size, uint64_t *seq) {
    if (*size < 6) return NULL;
    const uint8_t *head = *data;
    size_t         bytes = (size_t)head[4] | (size_t)head[5] << 8;
    if (bytes > *size - 6) bytes = *size - 6;
    pli_msg *msg = pli_msg_new(bytes);
    if (msg == NULL) abort();
    msg->head.kind = head[0] & 127;
    msg->head.flags = head[0] & 128 ? PLI_FLAG_FILTERED : 0;
    msg->head.src = (int8_t)head[1];
    msg->head.clock = (int8_t)head[2];
    msg->head.arg32 = head[3];
    msg->head.incarnation = 1;
    if (msg->head.src == 0 || msg->head.src == 1) msg->head.seq = ++seq[msg->head.src];
    if (bytes > 0) memcpy(pli_msg_body(msg), head + 6, bytes);
    *data += 6 + bytes;
    *size -= 6 + bytes;
    return msg;
}

static pli_msg *create_message(int32_t id, int64_t rows, const char *consistency, const char *rule, const char *filter,
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
    msg->head.seq = (uint64_t)id + 1;
    return msg;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const pli_layout layout = { .workers = 2, .servers = 1, .first_server = RANK, .functions = functions,
                                .n_functions = 2 };
    pli_server       server;
    pli_msg         *msg;
    uint64_t         seq[2] = { 6, 0 };
    if (pli_server_open(&server, &layout, RANK, 0, 1, NULL) < 0) abort();
    deliver(&server, create_message(0, 600, "bsp", "sgd", NULL, 0));
    deliver(&server, create_message(1, 0, "async", NULL, NULL, 0));
    deliver(&server, create_message(2, 50, "ssp:1", "adam", NULL, 0));
    deliver(&server, create_message(3, 0, "async", "sgd", "key-cache,key-delta,fixed8,zstd", 0));
    deliver(&server, create_message(4, 40, "bsp", NULL, NULL, 1));
    deliver(&server, create_message(5, 0, "bsp", "adam", "key-cache,zstd", 1));
    while ((msg = next_frame(&data, &size, seq)) != NULL) {
        if (is_large(msg)) pli_msg_free(&msg);
        else deliver(&server, msg);
    }
    pli_server_close(&server);
    return 0;
}
