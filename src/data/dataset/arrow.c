/* Data sets of Arrow streams (plait/arrow.h).
 *
 * A stream gives a schema and record batches. All batches are held until the end, which costs no copy. Then a first
 * pass collects the texts of each column, unless a model's columns are given; a second writes the rows as CSR, 8 bytes
 * for each value that is not zero. The data set owns these arrays: it is one of lent arrays (given.c) that lends to
 * itself. */
#include "data/dataset/arrow.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Where a column of the data set comes from. */
typedef struct source {
    int64_t        child; /* in the table                                            */
    pli_arrow_kind kind;
    pli_dict       dict; /* of texts                                                 */
    uint64_t       first; /* the feature of its number, or of its first text          */
} source;

typedef struct reader {
    const plait_arrow_opts *opts;
    struct ArrowSchema      schema;
    struct ArrowArray      *batch; /* [batches] */
    int64_t                 batches, room;
    source                 *column; /* [columns] */
    plait_memory_column    *described; /* [columns] of the data set: names and texts of those above */
    int64_t                 columns, rows, features, entries;
    plait_error            *err;
} reader;

void (plait_arrow_opts_init)(plait_arrow_opts *opts) {
    if (opts != NULL) *opts = (plait_arrow_opts){ .size = sizeof *opts };
}

void plait_arrow_opts_init_sized(plait_arrow_opts *opts, size_t size) {
    plait_arrow_opts all;
    (plait_arrow_opts_init)(&all);
    pli_sized_give(opts, size, &all, sizeof all);
}

static plait_status no_memory(const reader *r) { return pli_fail(r->err, PLAIT_ENOMEM, "no memory for a table"); }

/* --- the stream --------------------------------------------------------------------------------------------------- */

static plait_status failed(const reader *r, struct ArrowArrayStream *stream, int code) {
    const char *text = stream->get_last_error != NULL ? stream->get_last_error(stream) : NULL;
    return pli_fail(r->err, PLAIT_EIO, "the Arrow stream has failed (%d): %.300s", code,
                    text != NULL ? text : "no text");
}

static plait_status read_schema(reader *r, struct ArrowArrayStream *stream) {
    if (stream->release == NULL) return pli_fail(r->err, PLAIT_EINVAL, "the Arrow stream was released before");
    if (stream->get_schema == NULL || stream->get_next == NULL)
        return pli_fail(r->err, PLAIT_EINVAL, "the Arrow stream has no functions");
    const int code = stream->get_schema(stream, &r->schema);
    if (code != 0) return failed(r, stream, code);
    if (r->schema.format == NULL || strcmp(r->schema.format, "+s") != 0 || r->schema.n_children < 0 ||
        (r->schema.n_children > 0 && r->schema.children == NULL))
        return pli_fail(r->err, PLAIT_EINVAL, "the Arrow stream is no table: its type is \"%.20s\", expected \"+s\"",
                        r->schema.format != NULL ? r->schema.format : "");
    for (int64_t i = 0; i < r->schema.n_children; i++)
        if (r->schema.children[i] == NULL) return pli_fail(r->err, PLAIT_EINVAL, "a column of the schema is NULL");
    return PLAIT_OK;
}

/* A batch is a column of structs; its columns are its children, which its own offset shifts as well. */
static plait_status check_batch(reader *r, const struct ArrowArray *b) {
    if (b->length < 0 || b->offset < 0 || b->length > INT64_MAX / 1024 - r->rows || b->offset > INT64_MAX / 1024 ||
        b->n_children != r->schema.n_children || (b->n_children > 0 && b->children == NULL))
        return pli_fail(r->err, PLAIT_EINVAL, "batch %" PRId64 " of the Arrow stream does not match its schema",
                        r->batches);
    if (b->null_count != 0 && b->n_buffers > 0 && b->buffers != NULL && b->buffers[0] != NULL)
        return pli_fail(r->err, PLAIT_EINVAL, "batch %" PRId64 " of the Arrow stream has missing rows", r->batches);
    return PLAIT_OK;
}

static plait_status read_batches(reader *r, struct ArrowArrayStream *stream) {
    for (;;) {
        if (r->batches == r->room) {
            const int64_t      room = 2 * r->room + 8;
            struct ArrowArray *batch = pli_realloc(r->batch, (size_t)room, sizeof *batch);
            if (batch == NULL) return no_memory(r);
            r->batch = batch;
            r->room = room;
        }
        struct ArrowArray *b = &r->batch[r->batches];
        *b = (struct ArrowArray){ 0 };
        const int code = stream->get_next(stream, b);
        if (code != 0) return failed(r, stream, code);
        if (b->release == NULL) return PLAIT_OK; /* there are no more */
        r->batches++;
        PLI_TRY(check_batch(r, b));
        r->rows += b->length;
    }
}

/* --- columns ------------------------------------------------------------------------------------------------------ */

static int64_t child_named(const reader *r, const char *name) {
    for (int64_t i = 0; i < r->schema.n_children; i++) {
        const char *its = r->schema.children[i]->name;
        if (strcmp(its != NULL ? its : "", name) == 0) return i;
    }
    return -1;
}

static plait_status find_column(reader *r, int64_t i) {
    const plait_memory_column *given = r->opts->columns != NULL ? &r->opts->columns[i] : NULL;
    source                    *c = &r->column[i];
    if (given != NULL) PLI_TRY(pli_given_check_column(given, i, r->err));
    c->child = given != NULL ? child_named(r, given->name) : i;
    if (c->child < 0) return pli_fail(r->err, PLAIT_ENAME, "the table has no column \"%.60s\"", given->name);
    PLI_TRY(pli_arrow_kind_of(r->schema.children[c->child], &c->kind, r->err));
    if (given == NULL || (given->texts != NULL) == (c->kind == PLI_ARROW_TEXTS)) return PLAIT_OK;
    return pli_fail(r->err, PLAIT_EINVAL, "column \"%.60s\" has %s here, but had %s when the model was trained",
                    given->name, c->kind == PLI_ARROW_TEXTS ? "texts" : "numbers",
                    given->texts != NULL ? "texts" : "numbers");
}

static plait_status check_arrays(reader *r, const source *c) {
    for (int64_t k = 0; k < r->batches; k++)
        PLI_TRY(pli_arrow_check(r->schema.children[c->child], r->batch[k].children[c->child], r->batch[k].offset,
                                r->batch[k].length, r->err));
    return PLAIT_OK;
}

/* Texts that a column has not had, until they are sorted into its dictionary. */
typedef struct fresh_texts {
    char  **text;
    int64_t n, room;
} fresh_texts;

static bool add_fresh(fresh_texts *f, const pli_arrow_text *text) {
    if (f->n == f->room) {
        const int64_t room = 2 * f->room + 64;
        char        **more = pli_realloc(f->text, (size_t)room, sizeof *more);
        if (more == NULL) return false;
        f->text = more;
        f->room = room;
    }
    char *copy = pli_malloc((size_t)text->length + 1);
    if (copy == NULL) return false;
    if (text->length > 0) memcpy(copy, text->data, (size_t)text->length);
    copy[text->length] = '\0';
    f->text[f->n++] = copy;
    return true;
}

/* Sorts what is fresh into the dictionary. */
static bool settle_fresh(fresh_texts *f, pli_dict *dict) {
    pli_dict   more = { 0 };
    const bool good = pli_dict_set(&more, f->text, f->n);
    if (good) f->n = 0; /* the dictionary has them */
    const bool joined = good && pli_dict_merge(dict, &more);
    pli_dict_free(&more);
    return joined;
}

enum { FRESH_MOST = 4096 };

static plait_status collect_batch(reader *r, source *c, const struct ArrowArray *batch, fresh_texts *f) {
    const struct ArrowSchema *schema = r->schema.children[c->child];
    pli_arrow_text            text;
    for (int64_t i = 0; i < batch->length; i++) {
        PLI_TRY(pli_arrow_text_at(schema, batch->children[c->child], batch->offset + i, &text, r->err));
        if (text.data == NULL || pli_dict_find(&c->dict, text.data, (size_t)text.length) >= 0) continue;
        if (!add_fresh(f, &text)) return no_memory(r);
        if (f->n == FRESH_MOST + c->dict.n && !settle_fresh(f, &c->dict)) return no_memory(r);
    }
    return PLAIT_OK;
}

static plait_status collect_texts(reader *r, source *c) {
    fresh_texts  f = { 0 };
    plait_status status = PLAIT_OK;
    for (int64_t k = 0; k < r->batches && status == PLAIT_OK; k++) status = collect_batch(r, c, &r->batch[k], &f);
    if (status == PLAIT_OK && f.n > 0 && !settle_fresh(&f, &c->dict)) status = no_memory(r);
    for (int64_t i = 0; i < f.n; i++) pli_free(f.text[i]);
    pli_free(f.text);
    return status;
}

static const char *const no_texts[] = { NULL };

static plait_status settle_column(reader *r, int64_t i) {
    source *c = &r->column[i];
    PLI_TRY(find_column(r, i));
    PLI_TRY(check_arrays(r, c));
    c->first = (uint64_t)r->features;
    const char *name = r->schema.children[c->child]->name;
    r->described[i].name = name != NULL ? name : "";
    if (c->kind == PLI_ARROW_NUMBERS) {
        r->features++;
        return PLAIT_OK;
    }
    if (r->opts->columns == NULL) PLI_TRY(collect_texts(r, c));
    else if (!pli_given_copy_texts(&r->opts->columns[i], &c->dict)) return no_memory(r);
    r->described[i].texts = c->dict.n > 0 ? (const char *const *)c->dict.text : no_texts;
    r->described[i].n_texts = c->dict.n;
    r->features += c->dict.n;
    return PLAIT_OK;
}

static plait_status settle_columns(reader *r) {
    if (r->opts->columns != NULL && r->opts->n_columns < 0)
        return pli_fail(r->err, PLAIT_EINVAL, "n_columns is %" PRId64 ": expected how many columns has",
                        r->opts->n_columns);
    r->columns = r->opts->columns != NULL ? r->opts->n_columns : r->schema.n_children;
    r->column = pli_calloc((size_t)r->columns + 1, sizeof *r->column);
    r->described = pli_calloc((size_t)r->columns + 1, sizeof *r->described);
    if (r->column == NULL || r->described == NULL) return no_memory(r);
    for (int64_t i = 0; i < r->columns; i++) PLI_TRY(settle_column(r, i));
    return PLAIT_OK;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

typedef struct csr {
    int64_t  *start;  /* [rows + 1] */
    uint32_t *column; /* [room]     */
    float    *value;
    int64_t   n, room;
} csr;

static bool reserve(csr *out, int64_t more) {
    if (out->room - out->n >= more) return true;
    const int64_t room = out->n + more + out->n / 2 + 1024;
    uint32_t     *column = pli_realloc(out->column, (size_t)room, sizeof *column);
    if (column != NULL) out->column = column;
    float *value = column != NULL ? pli_realloc(out->value, (size_t)room, sizeof *value) : NULL;
    if (value != NULL) out->value = value, out->room = room;
    return value != NULL;
}

static void put(csr *out, uint64_t column, float value) {
    out->column[out->n] = (uint32_t)column;
    out->value[out->n++] = value;
}

static plait_status put_number(const reader *r, const source *c, int64_t row, double number, csr *out) {
    if (number != 0) put(out, c->first, (float)number);
    if (isfinite((float)number) || (isnan(number) && r->opts->keep_missing)) return PLAIT_OK;
    return pli_fail(r->err, PLAIT_EINVAL, "row %" PRId64 ", column \"%.60s\": %s", row,
                    r->described[c - r->column].name,
                    isnan(number) ? "a missing number (NaN), which only trees learn from"
                                  : "expected a finite number, in the range of a float");
}

static plait_status put_row(const reader *r, const struct ArrowArray *batch, int64_t i, int64_t row, csr *out) {
    if (!reserve(out, r->columns)) return no_memory(r);
    for (int64_t k = 0; k < r->columns; k++) {
        const source             *c = &r->column[k];
        const struct ArrowSchema *schema = r->schema.children[c->child];
        const struct ArrowArray  *cells = batch->children[c->child];
        pli_arrow_text            text;
        if (c->kind == PLI_ARROW_NUMBERS) {
            PLI_TRY(put_number(r, c, row, pli_arrow_number(schema, cells, batch->offset + i), out));
            continue;
        }
        PLI_TRY(pli_arrow_text_at(schema, cells, batch->offset + i, &text, r->err));
        const int64_t at = text.data != NULL ? pli_dict_find(&c->dict, text.data, (size_t)text.length) : -1;
        if (at >= 0) put(out, c->first + (uint64_t)at, 1);
    }
    out->start[row + 1] = out->n;
    return PLAIT_OK;
}

static plait_status put_rows(const reader *r, csr *out) {
    int64_t row = 0;
    out->start = pli_calloc((size_t)r->rows + 1, sizeof *out->start);
    if (out->start == NULL || !reserve(out, 1)) return no_memory(r);
    for (int64_t k = 0; k < r->batches; k++)
        for (int64_t i = 0; i < r->batch[k].length; i++) PLI_TRY(put_row(r, &r->batch[k], i, row++, out));
    return PLAIT_OK;
}

static plait_status make_data(const reader *r, csr *rows, plait_data **data_out) {
    plait_memory_opts o;
    plait_memory_opts_init(&o);
    o.rows = r->rows, o.features = r->features;
    o.values = rows->value, o.row_start = rows->start, o.column = rows->column;
    o.label = r->opts->label, o.weight = r->opts->weight;
    o.keep_missing = r->opts->keep_missing, o.lend = 1;
    o.columns = r->described, o.n_columns = r->columns;
    PLI_TRY(plait_data_from_memory(&o, data_out, r->err));
    (*data_out)->own_column = rows->column;
    (*data_out)->own_value = rows->value;
    rows->column = NULL;
    rows->value = NULL;
    return PLAIT_OK;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static plait_status read_table(reader *r, struct ArrowArrayStream *stream, csr *rows, plait_data **data_out) {
    PLI_TRY(read_schema(r, stream));
    PLI_TRY(read_batches(r, stream));
    if (r->rows < 1) return pli_fail(r->err, PLAIT_EINVAL, "the Arrow stream has no rows");
    if ((r->opts->label != NULL || r->opts->weight != NULL) && r->opts->rows != r->rows)
        return pli_fail(r->err, PLAIT_EINVAL, "%" PRId64 " labels or weights, but the table has %" PRId64 " rows",
                        r->opts->rows, r->rows);
    PLI_TRY(settle_columns(r));
    PLI_TRY(put_rows(r, rows));
    return make_data(r, rows, data_out);
}

static void free_reader(reader *r) {
    for (int64_t i = 0; i < r->batches; i++) r->batch[i].release(&r->batch[i]);
    if (r->schema.release != NULL) r->schema.release(&r->schema);
    for (int64_t i = 0; r->column != NULL && i < r->columns; i++) pli_dict_free(&r->column[i].dict);
    pli_free(r->batch);
    pli_free(r->column);
    pli_free(r->described);
}

plait_status plait_data_from_arrow(struct ArrowArrayStream *stream, const plait_arrow_opts *opts,
                                   plait_data **data_out, plait_error *error_out) {
    plait_error      local = { .code = PLAIT_OK };
    plait_arrow_opts own;
    plait_arrow_opts_init(&own);
    reader       r = { .opts = &own, .err = error_out != NULL ? error_out : &local };
    csr          rows = { 0 };
    plait_status status = PLI_GIVEN(r.err, stream);
    if (status < 0) return status;
    status = PLI_GIVEN(r.err, data_out);
    if (status >= 0 && opts != NULL)
        status = pli_sized_take(&own, sizeof own, PLI_SIZED_END(plait_arrow_opts, n_columns), opts, "plait_arrow_opts",
                                r.err);
    if (status >= 0) status = read_table(&r, stream, &rows, data_out);
    free_reader(&r);
    pli_free(rows.start);
    pli_free(rows.column);
    pli_free(rows.value);
    if (stream->release != NULL) stream->release(stream);
    return status;
}

plait_status plait_data_column(const plait_data *data, int64_t i, plait_memory_column *column_out,
                               plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, data));
    PLI_TRY(PLI_GIVEN(error_out, column_out));
    const pli_schema *schema = data->dataset->schema;
    for (int64_t k = 0; k < schema->columns; k++) {
        const pli_column *c = &schema->column[k];
        if ((c->role != PLI_ROLE_NUMBER && c->role != PLI_ROLE_TEXT) || i-- != 0) continue;
        const char *const *texts = c->dict.n > 0 ? (const char *const *)c->dict.text : no_texts;
        *column_out = (plait_memory_column){ c->name, c->role == PLI_ROLE_TEXT ? texts : NULL, c->dict.n };
        return PLAIT_OK;
    }
    return PLAIT_END;
}

plait_status plait_data_dense(const plait_data *data, float *out, plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, data));
    PLI_TRY(PLI_GIVEN(error_out, out));
    const int64_t features = plait_data_features(data);
    plait_row     row;
    if (data->dataset->schema->hash_bits > 0 || features < 1 || features > UINT32_MAX)
        return pli_fail(error_out, PLAIT_EINVAL, "%" PRId64 " features, hashed or none: an array cannot have them",
                        features);
    for (int32_t b = 0; b < plait_data_blocks(data); b++)
        for (int64_t i = 0; i < plait_data_block_rows(data, b); i++, out += features) {
            PLI_TRY(plait_data_row(data, b, i, &row, error_out));
            memset(out, 0, (size_t)features * sizeof *out);
            for (int64_t e = 0; e < row.n; e++)
                out[row.column != NULL ? row.column[e] : row.key[e]] = row.value != NULL ? row.value[e] : 1;
        }
    return PLAIT_OK;
}
