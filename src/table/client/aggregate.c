/* See aggregate.h. A message has one part for each table that was touched: the part's head, the keys, the sums; each is
 * padded to 8. */
#include "table/client/aggregate.h"

#include <string.h>

#include "table/server/wire.h"

typedef struct handed {
    uint32_t table, keyed;
    int64_t  examples, first, n; /* first: the first row of a dense table */
} handed;

static int64_t rows_of(const pli_pending *pending) {
    return pending->spec->keyed ? pending->set.n : pending->high - pending->low;
}

static uint64_t bytes_of(const pli_spec *spec, int64_t n) {
    return (spec->keyed ? (uint64_t)n * 8 : 0) + pli_pad8((uint64_t)(n * pli_sum_row_bytes(spec)));
}

static unsigned char *hand_table(const pli_pending *pending, unsigned char *to) {
    const pli_spec *spec = pending->spec;
    int64_t         n = rows_of(pending), row_bytes = pli_sum_row_bytes(spec);
    handed          head = { .table = (uint32_t)spec->id, .keyed = spec->keyed, .examples = pending->examples,
                             .first = pending->low, .n = n };
    memcpy(to, &head, sizeof head);
    to += sizeof head;
    if (n == 0) return to;
    if (spec->keyed) {
        memcpy(to, pending->set.keys, (size_t)n * 8);
        memcpy(to + n * 8, pending->sum, (size_t)(n * row_bytes));
    } else {
        memcpy(to, (const unsigned char *)pending->sum + pending->low * row_bytes, (size_t)(n * row_bytes));
    }
    return to + bytes_of(spec, n);
}

pli_msg *pli_aggregate_hand(pli_client *client) {
    uint64_t bytes = 0;
    for (int64_t i = 0; i < client->tables; i++) {
        const pli_pending *pending = &client->table[i]->pending;
        if (pending->touched) bytes += sizeof(handed) + bytes_of(pending->spec, rows_of(pending));
    }
    pli_msg *msg = pli_msg_new(bytes);
    if (msg == NULL) return NULL;
    unsigned char *to = pli_msg_body(msg);
    if (bytes > 0) memset(to, 0, bytes); /* the padding */
    for (int64_t i = 0; i < client->tables; i++) {
        pli_client_table *table = client->table[i];
        if (!table->pending.touched) continue;
        to = hand_table(&table->pending, to);
        pli_pending_clear(&table->pending);
        table->incs = 0;
    }
    return msg;
}

static plait_status misfit(const pli_msg *msg, plait_error *err) {
    return pli_fail(err, PLAIT_EFORMAT, "the updates that rank %d hands to its host's lead do not fit", msg->head.src);
}

/* Are the rows in the table? */
static bool fits(const pli_spec *spec, const handed *head, const unsigned char *data) {
    uint64_t outside = 0;
    if (spec->rows == 0) return true;
    if (!spec->keyed) return head->first >= 0 && head->first <= spec->rows && head->n <= spec->rows - head->first;
    for (int64_t i = 0; i < head->n; i++) {
        uint64_t key;
        memcpy(&key, data + i * 8, sizeof key);
        outside |= (uint64_t)(key >= (uint64_t)spec->rows);
    }
    return outside == 0;
}

static plait_status add_table(pli_client *client, const handed *head, const unsigned char *data, uint64_t bytes,
                              uint64_t *taken_out, plait_error *err) {
    pli_client_table *table = pli_client_table_of(client, head->table);
    const pli_spec   *spec = table == NULL ? NULL : &table->spec;
    if (spec == NULL || (head->keyed != 0) != spec->keyed || head->examples < 0 || head->examples > PLI_EXAMPLES_MAX ||
        head->n < 0 || (uint64_t)head->n > bytes / (uint64_t)pli_sum_row_bytes(spec))
        return PLAIT_EFORMAT;
    *taken_out = bytes_of(spec, head->n);
    if (*taken_out > bytes || !fits(spec, head, data)) return PLAIT_EFORMAT;
    const void *sums = data + (spec->keyed ? head->n * 8 : 0);
    return pli_pending_merge(&table->pending, head->n, spec->keyed ? (const uint64_t *)data : NULL, head->first, sums,
                             head->examples, err);
}

plait_status pli_aggregate_add(pli_client *client, const pli_msg *msg, plait_error *err) {
    const unsigned char *body = pli_msg_body(msg);
    uint64_t             at = 0, bytes = msg->head.body_bytes, taken = 0;
    while (at < bytes) {
        handed head;
        if (bytes - at < sizeof head) return misfit(msg, err);
        memcpy(&head, body + at, sizeof head);
        at += sizeof head;
        plait_status status = add_table(client, &head, body + at, bytes - at, &taken, err);
        if (status == PLAIT_EFORMAT) return misfit(msg, err);
        if (status < 0) return status;
        at += taken;
    }
    return PLAIT_OK;
}
