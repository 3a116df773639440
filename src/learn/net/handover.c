/* Tables that go from group to group. See handover.h. */
#include "learn/net/handover.h"

#include <string.h>

#include "table/state/rest.h"
#include "table/state/state.h"
#include "table/state/values.h"
#include "table/table.h"

enum { TAG_STATE = -1000001, PUMP_BYTES = 1 << 20 };
/* What a message holds, beside an array of the table (PLI_STATE_VALUES, ...). */
enum {
    UNITS = -1,       /* in rows: how far lazy penalties go */
    END = -2,         /* the sender has sent all */
    REST = -3,        /* rows that filters have kept, of type `first` ... */
    REST_BY_KEY = -4, /* ... behind their keys */
};

typedef struct head {
    int64_t number, array, first, rows; /* the rows' bytes follow */
} head;

/* --- giving ------------------------------------------------------------------------------------------------------- */

typedef struct giving {
    plait_comm       *comm;
    const pli_handed *table;
    int32_t           ranks, me;
    pli_capture      *capture;
    pli_capture_place place;
    plait_status      status;
    plait_error      *err;
} giving;

static plait_status send_one(const giving *g, int32_t to, const head *h, const void *rows, size_t bytes) {
    pli_msg *msg = pli_msg_new(sizeof *h + bytes);
    if (msg == NULL) return pli_fail(g->err, PLAIT_ENOMEM, "no memory to hand a table over");
    memcpy(pli_msg_body(msg), h, sizeof *h);
    if (bytes > 0) memcpy(pli_at(pli_msg_body(msg), sizeof *h), rows, bytes);
    return pli_comm_send_msg(g->comm, to, TAG_STATE, msg);
}

static plait_status send_to_all(const giving *g, int32_t first, const head *h, const void *rows, size_t bytes) {
    for (int32_t r = 0; r < g->ranks; r++) PLI_TRY(send_one(g, first + r, h, rows, bytes));
    return PLAIT_OK;
}

static void give_rows(void *user, pli_msg *rows) {
    giving               *g = user;
    const size_t          bytes = (size_t)rows->head.body_bytes;
    head                  h;
    const pli_state_part *part = pli_capture_follow(g->capture, &g->place, bytes, &h.first, &h.rows);
    const pli_handed     *t = &g->table[part->table];
    h.number = t->number;
    h.array = part->array;
    if (g->status >= 0)
        g->status = pli_state_is_copied(t->table) ? send_to_all(g, t->first, &h, pli_msg_body(rows), bytes)
                                                  : send_one(g, t->first + g->me, &h, pli_msg_body(rows), bytes);
    pli_msg_free(&rows);
}

/* Is table i the first of the list that goes to its group, or comes from it? */
static bool is_first_of(const pli_handed *tables, int32_t i) {
    int32_t k = 0;
    while (tables[k].first != tables[i].first) k++;
    return k == i;
}

static plait_status send_rest(const giving *g, const pli_handed *t, const pli_rest *rest) {
    const int64_t keys = rest->keys != NULL ? rest->n * (int64_t)sizeof *rest->keys : 0;
    const int64_t values = rest->n * rest->cols * pli_value_bytes(rest->type);
    const head    h = { .number = t->number, .array = keys > 0 ? REST_BY_KEY : REST, .first = rest->type,
                        .rows = rest->n };
    pli_msg      *msg = pli_msg_new(sizeof h + (size_t)(keys + values));
    if (msg == NULL) return pli_fail(g->err, PLAIT_ENOMEM, "no memory to hand a table over");
    memcpy(pli_msg_body(msg), &h, sizeof h);
    if (keys > 0) memcpy(pli_at(pli_msg_body(msg), sizeof h), rest->keys, (size_t)keys);
    memcpy(pli_at(pli_msg_body(msg), (int64_t)sizeof h + keys), rest->values, (size_t)values);
    return pli_comm_send_msg(g->comm, t->first + g->me, TAG_STATE, msg);
}

static plait_status give_rest(const giving *g, const pli_handed *t) {
    pli_rest rest = { 0 };
    if (!pli_rest_is_kept(t->table)) return PLAIT_OK;
    PLI_TRY(pli_rest_take(t->table, &rest, g->err));
    const plait_status status = rest.values != NULL && rest.n > 0 ? send_rest(g, t, &rest) : PLAIT_OK;
    pli_rest_free(&rest);
    return status;
}

/* Units come first. */
static plait_status give_all(giving *g, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        const head h = { .number = g->table[i].number, .array = UNITS, .rows = pli_capture_units(g->capture, i) };
        PLI_TRY(send_to_all(g, g->table[i].first, &h, NULL, 0));
    }
    for (bool done = false; !done && g->status >= 0;)
        PLI_TRY(pli_capture_pump(g->capture, PUMP_BYTES, true, give_rows, g, &done, g->err));
    PLI_TRY(g->status);
    for (int32_t i = 0; i < n; i++) PLI_TRY(give_rest(g, &g->table[i]));
    for (int32_t i = 0; i < n; i++)
        if (is_first_of(g->table, i)) PLI_TRY(send_to_all(g, g->table[i].first, &(head){ .array = END }, NULL, 0));
    return PLAIT_OK;
}

plait_status pli_handover_give(plait_comm *comm, const pli_handed *tables, int32_t n, int32_t ranks, int32_t me,
                               plait_error *err) {
    giving        g = { .comm = comm, .table = tables, .ranks = ranks, .me = me, .err = err };
    plait_table **list = pli_calloc((size_t)n, sizeof(plait_table *));
    if (list == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to hand tables over");
    for (int32_t i = 0; i < n; i++) list[i] = tables[i].table;
    plait_status status = pli_capture_begin(list[0]->job, n, list, &g.capture, err);
    if (status >= 0) status = give_all(&g, n);
    pli_capture_end(&g.capture);
    pli_free((void *)list);
    return status;
}

/* --- taking ------------------------------------------------------------------------------------------------------- */

static const pli_handed *find(const pli_handed *tables, int32_t n, int64_t number) {
    for (int32_t i = 0; i < n; i++)
        if (tables[i].number == number) return &tables[i];
    return NULL;
}

/* Where a table lies on servers, one worker says how far its penalties go. */
static plait_status put_units(plait_table *table, int64_t units, plait_error *err) {
    if (!pli_state_is_copied(table) && !pli_state_leads(table)) return PLAIT_OK;
    return pli_state_put_units(table, units, err);
}

/* bytes: behind the head. */
static plait_status put_rest(plait_table *table, const head *h, const pli_msg *msg, int64_t bytes, plait_error *err) {
    pli_rest rest = { .type = h->first == PLAIT_F64 ? PLAIT_F64 : PLAIT_F32, .n = h->rows,
                      .cols = plait_table_cols(table) };
    const int64_t keys = h->array == REST_BY_KEY ? (int64_t)sizeof *rest.keys : 0;
    const int64_t each = rest.cols * pli_value_bytes(rest.type) + keys;
    if (h->rows < 1 || h->rows > INT64_MAX / each || bytes != h->rows * each)
        return pli_fail(err, PLAIT_EFORMAT, "rank %d hands what filters have kept of table %s over wrongly",
                        msg->head.src, plait_table_name(table));
    const size_t n = (size_t)h->rows;
    rest.values = pli_array(n, (size_t)(each - keys));
    rest.keys = keys > 0 ? pli_array(n, sizeof *rest.keys) : NULL;
    plait_status status = rest.values == NULL || (keys > 0 && rest.keys == NULL)
                              ? pli_fail(err, PLAIT_ENOMEM, "no memory to take a table over") : PLAIT_OK;
    if (status >= 0 && keys > 0)
        memcpy(rest.keys, pli_at_const(pli_msg_body(msg), sizeof *h), n * sizeof *rest.keys);
    if (status >= 0) {
        memcpy(rest.values, pli_at_const(pli_msg_body(msg), (int64_t)sizeof *h + h->rows * keys),
               n * (size_t)(each - keys));
        status = pli_rest_add(table, &rest, err);
    }
    pli_rest_free(&rest);
    return status;
}

static plait_status put(const pli_handed *tables, int32_t n, const pli_msg *msg, bool *end_out, plait_error *err) {
    const size_t bytes = (size_t)msg->head.body_bytes;
    plait_type   type;
    head         h;
    if (bytes < sizeof h) return pli_fail(err, PLAIT_EFORMAT, "rank %d hands a table over wrongly", msg->head.src);
    memcpy(&h, pli_msg_body(msg), sizeof h);
    *end_out = h.array == END;
    if (*end_out) return PLAIT_OK;
    const pli_handed *t = find(tables, n, h.number);
    if (t == NULL)
        return pli_fail(err, PLAIT_EFORMAT, "rank %d hands a table over that this rank does not take", msg->head.src);
    if (h.array == UNITS) return put_units(t->table, h.rows, err);
    if (h.array == REST || h.array == REST_BY_KEY)
        return put_rest(t->table, &h, msg, (int64_t)(bytes - sizeof h), err);
    const int64_t row_bytes = h.array >= 0 && h.array < PLI_STATE_KEYS
                                  ? pli_state_bytes(t->table, (int32_t)h.array, &type) : 0;
    if (h.rows < 0 || row_bytes <= 0 || h.rows > INT64_MAX / row_bytes ||
        bytes - sizeof h != (size_t)(h.rows * row_bytes))
        return pli_fail(err, PLAIT_EFORMAT, "rank %d hands table %s over wrongly", msg->head.src,
                        plait_table_name(t->table));
    return pli_state_put(t->table, (int32_t)h.array, h.first, h.rows, NULL,
                         pli_at_const(pli_msg_body(msg), sizeof h), err);
}

static plait_status take_from(plait_comm *comm, const pli_handed *tables, int32_t n, int32_t giver, plait_error *err) {
    for (bool end = false; !end;) {
        pli_msg *msg = NULL;
        PLI_TRY(pli_comm_take(comm, giver, TAG_STATE, &msg));
        const plait_status status = put(tables, n, msg, &end, err);
        pli_msg_free(&msg);
        PLI_TRY(status);
    }
    return PLAIT_OK;
}

plait_status pli_handover_take(plait_comm *comm, const pli_handed *tables, int32_t n, int32_t ranks,
                               plait_error *err) {
    for (int32_t i = 0; i < n; i++)
        for (int32_t r = 0; is_first_of(tables, i) && r < ranks; r++)
            PLI_TRY(take_from(comm, tables, n, tables[i].first + r, err));
    return PLAIT_OK;
}
