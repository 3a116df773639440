/* Tables out of pieces. See kept_pieces.h. */
#include "learn/keep/kept_pieces.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void pli_kept_name(const plait_table *table, char name[PLI_KEPT_NAME]) {
    if (table->whole.rows == 0)
        snprintf(name, PLI_KEPT_NAME, "%s", plait_table_name(table));
    else
        snprintf(name, PLI_KEPT_NAME, "%s[%" PRId64 ",%" PRId64 "]", plait_table_name(table), table->whole.row0,
                 table->whole.col0);
}

/* --- what was kept ------------------------------------------------------------------------------------------------ */

/* Is the tensor called `name`.values, or `name`[ROW,COL].values? */
static bool is_piece(const pli_checkpoint_tensor *tensor, const char *name, pli_kept_piece *out) {
    const size_t length = strlen(name);
    int          end = 0;
    *out = (pli_kept_piece){ .rows = tensor->shape[0], .cols = tensor->dims > 1 ? tensor->shape[1] : 1 };
    if (strncmp(tensor->name, name, length) != 0 || length >= sizeof out->name) return false;
    if (tensor->name[length] == '[' &&
        (sscanf(tensor->name + length, "[%" SCNd64 ",%" SCNd64 "]%n", &out->row0, &out->col0, &end) != 2 || end == 0))
        return false;
    const size_t all = length + (size_t)end;
    snprintf(out->name, sizeof out->name, "%.*s", (int)all, tensor->name);
    return out->row0 >= 0 && out->col0 >= 0 && strcmp(tensor->name + all, ".values") == 0;
}

plait_status pli_kept_pieces_find(pli_checkpoint *from, const char *where, const char *name, pli_kept_pieces *out,
                                  plait_error *err) {
    *out = (pli_kept_pieces){ .from = from, .where = where };
    for (int64_t i = 0; i < pli_checkpoint_tensors(from); i++) {
        pli_kept_piece piece;
        if (!is_piece(pli_checkpoint_tensor_at(from, i), name, &piece)) continue;
        if (!pli_grow((void **)&out->piece, &out->capacity, out->n + 1, sizeof *out->piece)) {
            pli_kept_pieces_free(out);
            return pli_fail(err, PLAIT_ENOMEM, "no memory to restore table %s", name);
        }
        out->piece[out->n++] = piece;
    }
    return PLAIT_OK;
}

void pli_kept_pieces_free(pli_kept_pieces *pieces) {
    pli_free(pieces->piece);
    *pieces = (pli_kept_pieces){ 0 };
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Where the rows that are wanted lie in the whole table, and how many of their values were found. */
typedef struct wanted {
    const pli_kept_pieces *pieces;
    const plait_table     *table;
    const char            *what, *type;
    int64_t                row0, rows, col0, cols, cell; /* cell: bytes of a value */
    bool                   numbers;                      /* a number a row, whatever the columns */
    unsigned char         *out, *seen;                   /* seen: [rows] of numbers: was it found? */
    int64_t                found;
    plait_error           *err;
} wanted;

static plait_status not_there(const wanted *w) {
    return pli_fail(w->err, PLAIT_EMISMATCH,
                    "%s/%s: the pieces of %s.%s are not those of a table of %" PRId64 " x %" PRId64 " values",
                    w->pieces->where, pli_checkpoint_folder(w->pieces->from), plait_table_name(w->table), w->what,
                    w->table->whole.rows > 0 ? w->table->whole.rows : plait_table_rows(w->table),
                    w->table->whole.rows > 0 ? w->table->whole.cols : plait_table_cols(w->table));
}

/* "paid", of whoever: a number a row, and no values. */
static bool is_paid(const char *what) {
    const char *dot = strrchr(what, '.');
    return strcmp(dot != NULL ? dot + 1 : what, "paid") == 0;
}

/* Puts n values of a row to where they are wanted. A number of a row must be the same in all pieces. */
static plait_status put_row(wanted *w, int64_t row, int64_t col, int64_t n, const unsigned char *from) {
    const int64_t  bytes = (w->numbers ? 1 : w->cols) * w->cell;
    unsigned char *to = w->out + (row - w->row0) * bytes + (w->numbers ? 0 : (col - w->col0) * w->cell);
    if (w->numbers && w->seen[row - w->row0])
        return memcmp(to, from, (size_t)w->cell) == 0
                   ? PLAIT_OK
                   : pli_fail(w->err, PLAIT_EMISMATCH,
                              "%s/%s: the columns of row %" PRId64 " of table %s have paid their penalties up to "
                              "different clocks, so they cannot be joined; go on with as many columns as before",
                              w->pieces->where, pli_checkpoint_folder(w->pieces->from), row,
                              plait_table_name(w->table));
    memcpy(to, from, (size_t)((w->numbers ? 1 : n) * w->cell));
    if (w->numbers) w->seen[row - w->row0] = 1;
    w->found += w->numbers ? 1 : n;
    return PLAIT_OK;
}

/* Takes what a piece has of them. */
static plait_status take(wanted *w, const pli_kept_piece *p) {
    const int64_t row = pli_greater(w->row0, p->row0), rows = pli_lesser(w->row0 + w->rows, p->row0 + p->rows) - row;
    const int64_t col = pli_greater(w->col0, p->col0), cols = pli_lesser(w->col0 + w->cols, p->col0 + p->cols) - col;
    const int64_t row_bytes = (w->numbers ? 1 : p->cols) * w->cell;
    char          name[PLI_CHECKPOINT_NAME];
    if (rows <= 0 || cols <= 0) return PLAIT_OK;
    snprintf(name, sizeof name, "%s.%s", p->name, w->what);
    const pli_checkpoint_tensor *tensor = pli_checkpoint_find(w->pieces->from, name);
    if (tensor == NULL || strcmp(tensor->type, w->type) != 0 || tensor->shape[0] != p->rows ||
        pli_checkpoint_row_bytes(tensor) != row_bytes)
        return not_there(w);
    unsigned char *own = pli_array((size_t)rows, (size_t)row_bytes);
    if (own == NULL) return pli_fail(w->err, PLAIT_ENOMEM, "no memory to restore table %s", plait_table_name(w->table));
    plait_status status = pli_checkpoint_read(w->pieces->from, tensor, row - p->row0, rows, own, w->err);
    for (int64_t r = 0; status >= 0 && r < rows; r++)
        status = put_row(w, row + r, col, cols, own + r * row_bytes + (w->numbers ? 0 : (col - p->col0) * w->cell));
    pli_free(own);
    return status;
}

/* Do all pieces lie in the whole of the table? */
static bool fit(const wanted *w) {
    const pli_piece *of = &w->table->whole;
    const int64_t    rows = of->rows > 0 ? of->rows : plait_table_rows(w->table);
    const int64_t    cols = of->rows > 0 ? of->cols : plait_table_cols(w->table);
    for (int64_t i = 0; i < w->pieces->n; i++) {
        const pli_kept_piece *p = &w->pieces->piece[i];
        if (p->rows > rows - p->row0 || p->cols > cols - p->col0) return false;
    }
    return true;
}

plait_status pli_kept_pieces_read(const pli_kept_pieces *pieces, const plait_table *table, const char *what,
                                  const char *type, int64_t first, int64_t n, void *out, plait_error *err) {
    wanted w = { .pieces = pieces, .table = table, .what = what, .type = type, .row0 = table->whole.row0 + first,
                 .rows = n, .col0 = table->whole.col0, .cols = plait_table_cols(table),
                 .cell = strchr(type, '6') != NULL ? 8 : 4, .numbers = is_paid(what), .out = out,
                 .err = err };
    if (!fit(&w)) return not_there(&w);
    w.seen = pli_calloc((size_t)n, 1);
    if (w.seen == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to restore table %s", plait_table_name(table));
    plait_status status = PLAIT_OK;
    for (int64_t i = 0; status >= 0 && i < pieces->n; i++) status = take(&w, &pieces->piece[i]);
    pli_free(w.seen);
    if (status < 0) return status;
    return w.found == n * (w.numbers ? 1 : w.cols) ? PLAIT_OK : not_there(&w);
}
