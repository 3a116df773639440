/* Moves columns of layers from rank to rank, at a clock's edge. See shift.h.
 *
 * The pieces of a layer now, and those by the new shares, are two cuts of the same rows and columns:
 *
 *     now     |   rank 0   |   rank 1   |   rank 2   |
 *     then    |    rank 0     |  1  |     rank 2     |      rank 1 gives to both sides
 *
 * All ranks go through the same steps, so nobody waits in a circle. A rank gives the rows of its tables that change,
 * as a checkpoint would keep them, each cut to the columns that a new piece has; also to itself. It drops these tables,
 * and makes those of its new pieces. It takes from all ranks what lies in these, joins it to whole rows, and puts them
 * back.
 *
 * Of R replicas, member r puts the r-th part of the whole parameter's rows, where a table lies on servers. Where each
 * member has a copy, it puts all rows. */
#include <string.h>

#include "learn/net/shift.h"
#include "table/state/state.h"
#include "table/state/values.h"
#include "table/table.h"

enum { TAG_COLUMNS = -1000002, PUMP_BYTES = 1 << 20 };

/* A message: rows of an array of a new piece, of some columns; their bytes follow. cols 0: a number a row. */
typedef struct head {
    int64_t piece, array, row, rows, col, cols; /* piece -1: the sender has sent all */
} head;

/* A table of this rank that changes. */
typedef struct changed {
    int32_t        piece;
    plait_table   *table;       /* the new one */
    int64_t        first, rows; /* which of its rows this rank puts */
    int64_t        units;       /* how far lazy penalties are paid */
    int64_t        missing;     /* bytes that have not come */
    unsigned char *array[PLI_STATE_ARRAYS]; /* [rows, bytes of a row] */
} changed;

typedef struct moving {
    pli_run       *run;
    const pli_net *from, *to;
    int32_t        replicas, me; /* me: this rank's replica */
    changed        table[PLI_NET_PARAMS];
    int32_t        n;
    pli_capture   *capture;
    pli_capture_place place;
    plait_status   status;
} moving;

/* Both cuts have all of a layer, so a piece that stays as it is has nothing to do with the others. */
static bool changes(const moving *m, int32_t piece) {
    const pli_net_param *a = &m->from->param[piece], *b = &m->to->param[piece];
    return a->rows != b->rows || a->cols != b->cols || a->row0 != b->row0 || a->col0 != b->col0;
}

static void find(moving *m) {
    const pli_stages *stages = pli_net_fit_of(m->run)->stages;
    for (int32_t p = 0; p < m->from->n_params; p++)
        if (pli_stages_have(stages, p) && changes(m, p)) m->table[m->n++].piece = p;
}

/* Rows of the whole parameter that a member puts. */
static void rows_of(const moving *m, const plait_table *table, int32_t of, int32_t member, int64_t *first_out,
                    int64_t *end_out) {
    const int64_t all = pli_net_fit_of(m->run)->net->param[of].rows;
    const bool    copied = pli_state_is_copied(table);
    *first_out = copied ? 0 : all * member / m->replicas;
    *end_out = copied ? all : all * (member + 1) / m->replicas;
}

/* --- giving ------------------------------------------------------------------------------------------------------- */

/* Rows of an array of a piece that is given, in the whole parameter's rows and columns. */
typedef struct block {
    const plait_table   *table;
    const unsigned char *bytes;
    int32_t              of, array;
    int64_t              row0, rows, col0, cols, cell; /* cell: bytes of a value */
} block;

static plait_status send(const moving *m, int32_t to, const head *h, pli_msg *msg) {
    if (msg == NULL) return pli_fail(m->run->err, PLAIT_ENOMEM, "no memory to hand columns over");
    memcpy(pli_msg_body(msg), h, sizeof *h);
    return pli_comm_send_msg(m->run->comm, to, TAG_COLUMNS, msg);
}

/* Sends what the block has of rows first .. end - 1 of a new piece. */
static plait_status send_rows(const moving *m, const block *b, int32_t piece, int32_t to, int64_t first, int64_t end) {
    const pli_net_param *then = &m->to->param[piece];
    const bool    numbers = b->array == PLI_STATE_PAID;
    const int64_t col = pli_greater(b->col0, then->col0);
    const int64_t cols = pli_lesser(b->col0 + b->cols, then->col0 + then->cols) - col;
    const int64_t stride = (numbers ? 1 : b->cols) * b->cell, bytes = (numbers ? 1 : cols) * b->cell;
    if (first >= end || cols <= 0) return PLAIT_OK;
    const head h = { .piece = piece, .array = b->array, .row = first - then->row0, .rows = end - first,
                     .col = numbers ? 0 : col - then->col0, .cols = numbers ? 0 : cols };
    pli_msg *msg = pli_msg_new(sizeof h + (size_t)((end - first) * bytes));
    for (int64_t r = 0; msg != NULL && r < h.rows; r++)
        memcpy(pli_at(pli_msg_body(msg), (int64_t)sizeof h + r * bytes),
               b->bytes + (first - b->row0 + r) * stride + (numbers ? 0 : col - b->col0) * b->cell, (size_t)bytes);
    return send(m, to, &h, msg);
}

static plait_status give_block(const moving *m, const block *b) {
    const pli_stages *stages = pli_net_fit_of(m->run)->stages;
    for (int32_t p = 0; p < m->to->n_params; p++) {
        const pli_net_param *then = &m->to->param[p];
        if (then->of != b->of || !changes(m, p)) continue;
        for (int32_t member = 0; member < m->replicas; member++) {
            int64_t first, end;
            rows_of(m, b->table, b->of, member, &first, &end);
            first = pli_greater(pli_greater(first, then->row0), b->row0);
            end = pli_lesser(pli_lesser(end, then->row0 + then->rows), b->row0 + b->rows);
            PLI_TRY(send_rows(m, b, p, pli_stages_of(stages, p) * m->replicas + member, first, end));
        }
    }
    return PLAIT_OK;
}

static void give_rows(void *user, pli_msg *rows) {
    moving               *m = user;
    int64_t               first, n;
    const pli_state_part *part = pli_capture_follow(m->capture, &m->place, rows->head.body_bytes, &first, &n);
    const int32_t         piece = m->table[part->table].piece;
    const pli_net_param  *now = &m->from->param[piece];
    const int64_t         row_bytes = (int64_t)rows->head.body_bytes / n;
    const block b = { .table = pli_net_fit_of(m->run)->table[piece], .bytes = pli_msg_body(rows), .of = now->of,
                      .array = part->array, .row0 = now->row0 + first, .rows = n, .col0 = now->col0, .cols = now->cols,
                      .cell = part->array == PLI_STATE_PAID ? row_bytes : row_bytes / now->cols };
    if (m->status >= 0) m->status = give_block(m, &b);
    pli_msg_free(&rows);
}

static plait_status give_tables(moving *m) {
    plait_table **table = pli_net_fit_of(m->run)->table, *list[PLI_NET_PARAMS];
    for (int32_t i = 0; i < m->n; i++) list[i] = table[m->table[i].piece];
    PLI_TRY(pli_capture_begin(list[0]->job, m->n, list, &m->capture, m->run->err));
    for (int32_t i = 0; i < m->n; i++) m->table[i].units = pli_capture_units(m->capture, i);
    for (bool done = false; !done && m->status >= 0;)
        PLI_TRY(pli_capture_pump(m->capture, PUMP_BYTES, true, give_rows, m, &done, m->run->err));
    return m->status;
}

static plait_status give(moving *m) {
    plait_status status = m->n > 0 ? give_tables(m) : PLAIT_OK;
    pli_capture_end(&m->capture);
    PLI_TRY(status);
    const head end = { .piece = -1 };
    for (int32_t w = 0; w < plait_comm_workers(m->run->comm); w++)
        PLI_TRY(send(m, w, &end, pli_msg_new(sizeof end)));
    for (int32_t i = 0; i < m->n; i++)
        PLI_TRY(pli_run_drop_table(m->run, &pli_net_fit_of(m->run)->table[m->table[i].piece]));
    return PLAIT_OK;
}

/* --- taking ------------------------------------------------------------------------------------------------------- */

/* Makes a new table, and room for the rows that this rank puts. */
static plait_status make(const moving *m, changed *t) {
    const pli_net_param *then = &m->to->param[t->piece];
    int32_t              arrays[PLI_STATE_ARRAYS];
    int64_t              first, end;
    PLI_TRY(pli_net_make_table(m->run, t->piece));
    t->table = pli_net_fit_of(m->run)->table[t->piece];
    rows_of(m, t->table, then->of, m->me, &first, &end);
    t->first = pli_greater(first - then->row0, 0);
    t->rows = pli_greater(pli_lesser(end - then->row0, then->rows) - t->first, 0);
    const int32_t n = pli_state_arrays(t->table, arrays);
    for (int32_t i = 0; t->rows > 0 && i < n; i++) {
        plait_type    type;
        const int64_t row_bytes = pli_state_bytes(t->table, arrays[i], &type);
        t->array[arrays[i]] = pli_calloc((size_t)t->rows, (size_t)row_bytes);
        if (t->array[arrays[i]] == NULL)
            return pli_fail(m->run->err, PLAIT_ENOMEM, "no memory to take columns of table %s",
                            plait_table_name(t->table));
        if (arrays[i] != PLI_STATE_PAID) t->missing += t->rows * row_bytes;
    }
    return PLAIT_OK;
}

static changed *table_of(moving *m, int64_t piece) {
    for (int32_t i = 0; i < m->n; i++)
        if (m->table[i].piece == piece) return &m->table[i];
    return NULL;
}

/* The new table that the rows are of; NULL: the message is wrong. */
static changed *check(moving *m, const head *h, int64_t bytes) {
    changed   *t = table_of(m, h->piece);
    plait_type type;
    if (t == NULL || h->array < 0 || h->array >= PLI_STATE_ARRAYS || t->array[h->array] == NULL) return NULL;
    const int64_t width = plait_table_cols(t->table), row_bytes = pli_state_bytes(t->table, (int32_t)h->array, &type);
    const bool    numbers = h->array == PLI_STATE_PAID;
    if (h->row < t->first || h->rows < 1 || h->rows > t->rows - (h->row - t->first) || numbers != (h->cols == 0) ||
        h->col < 0 || h->cols < 0 || h->cols > width - h->col)
        return NULL;
    return bytes == h->rows * (numbers ? row_bytes : row_bytes / width * h->cols) ? t : NULL;
}

static plait_status take_rows(moving *m, const pli_msg *msg, bool *end_out) {
    const int64_t bytes = (int64_t)msg->head.body_bytes - (int64_t)sizeof(head);
    head          h = { .piece = -1 };
    plait_type    type;
    if (bytes >= 0) memcpy(&h, pli_msg_body(msg), sizeof h);
    *end_out = bytes == 0 && h.piece < 0;
    if (*end_out) return PLAIT_OK;
    changed *t = bytes > 0 ? check(m, &h, bytes) : NULL;
    if (t == NULL)
        return pli_fail(m->run->err, PLAIT_EFORMAT, "rank %d hands columns over wrongly", msg->head.src);
    const int64_t row_bytes = pli_state_bytes(t->table, (int32_t)h.array, &type), each = bytes / h.rows;
    const int64_t at = h.cols == 0 ? 0 : h.col * (each / h.cols);
    for (int64_t r = 0; r < h.rows; r++)
        memcpy(t->array[h.array] + (h.row - t->first + r) * row_bytes + at,
               pli_at_const(pli_msg_body(msg), (int64_t)sizeof h + r * each), (size_t)each);
    if (h.cols > 0) t->missing -= bytes;
    return PLAIT_OK;
}

static plait_status take_from(moving *m, int32_t giver) {
    for (bool end = false; !end;) {
        pli_msg *msg = NULL;
        PLI_TRY(pli_comm_take(m->run->comm, giver, TAG_COLUMNS, &msg));
        const plait_status status = take_rows(m, msg, &end);
        pli_msg_free(&msg);
        PLI_TRY(status);
    }
    return PLAIT_OK;
}

/* Where a table lies on servers, one worker says how far its penalties go. */
static plait_status put(const moving *m, const changed *t) {
    if (t->missing != 0)
        return pli_fail(m->run->err, PLAIT_EFORMAT, "the columns of table %s have not come as a whole",
                        plait_table_name(t->table));
    if (pli_state_is_copied(t->table) || pli_state_leads(t->table))
        PLI_TRY(pli_state_put_units(t->table, t->units, m->run->err));
    for (int32_t a = 0; a < PLI_STATE_ARRAYS; a++)
        if (t->array[a] != NULL)
            PLI_TRY(pli_state_put(t->table, a, t->first, t->rows, NULL, t->array[a], m->run->err));
    return PLAIT_OK;
}

static plait_status take(moving *m) {
    for (int32_t i = 0; i < m->n; i++) PLI_TRY(make(m, &m->table[i]));
    for (int32_t w = 0; w < plait_comm_workers(m->run->comm); w++) PLI_TRY(take_from(m, w));
    for (int32_t i = 0; i < m->n; i++) PLI_TRY(put(m, &m->table[i]));
    return PLAIT_OK;
}

plait_status pli_column_move(pli_run *run, pli_net **pieces) {
    pli_net_fit *n = pli_net_fit_of(run);
    pli_net     *then = *pieces;
    moving       m = { .run = run, .from = n->pieces, .to = then, .replicas = pli_run_holders(run),
                       .me = pli_stages_replica(n->stages) };
    find(&m);
    PLI_TRY(give(&m));
    *pieces = n->pieces;
    n->pieces = then;
    n->pieces->units = m.from->units;
    const plait_status status = take(&m);
    for (int32_t i = 0; i < m.n; i++)
        for (int32_t a = 0; a < PLI_STATE_ARRAYS; a++) pli_free(m.table[i].array[a]);
    return status;
}
