/* JSON rows to lines of text, and how many rows a text has. See body.h.
 *
 * jansson reads one value at a time and says where it ended, so the outer list is walked here, and only one row at a
 * time is a tree in memory. */
#include "cli/serve/body.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "data/schema/schema.h"

typedef struct reading {
    const pli_schema *schema;
    pli_body_rows    *to;
    json_t           *keys; /* list: the columns of objects, in the order of the first one, or of a model whose columns
                               have numbers for names; NULL: rows are lists */
    int64_t           row;  /* from 1 */
    bool              table;
    plait_error      *err;
} reading;

static plait_status bad_row(const reading *r, const char *what) {
    return pli_fail(r->err, PLAIT_EFORMAT, "row %lld: %s", (long long)r->row, what);
}

static plait_status bad_cell(const reading *r, const char *column, const char *what) {
    char name[80];
    pli_printable(name, sizeof name, column);
    return pli_fail(r->err, PLAIT_EFORMAT, "row %lld, column %s: %s", (long long)r->row, name, what);
}

/* --- cells -------------------------------------------------------------------------------------------------------- */

static plait_status add_quoted(const reading *r, const char *column, const char *text) {
    pli_text *to = &r->to->text;
    for (const char *p = text; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20)
            return bad_cell(r, column, "a control character or newline in a text; leave it out");
    pli_text_add_bytes(to, "\"", 1);
    for (const char *p = text; *p != '\0'; p++) pli_text_add_bytes(to, *p == '"' ? "\"\"" : p, *p == '"' ? 2 : 1);
    pli_text_add_bytes(to, "\"", 1);
    return PLAIT_OK;
}

static void add_number(pli_text *to, const json_t *value) {
    if (json_is_integer(value)) pli_text_add(to, "%lld", (long long)json_integer_value(value));
    else pli_text_add(to, "%.17g", json_real_value(value));
}

/* A cell of a table; NULL and null: it is missing. */
static plait_status add_cell(const reading *r, const char *column, const json_t *value) {
    if (value == NULL || json_is_null(value)) return PLAIT_OK;
    if (json_is_string(value)) return add_quoted(r, column, json_string_value(value));
    if (json_is_boolean(value)) {
        pli_text_add(&r->to->text, "%s", json_is_true(value) ? "true" : "false");
        return PLAIT_OK;
    }
    if (!json_is_number(value)) return bad_cell(r, column, "a list or object; expected a number, a text or null");
    add_number(&r->to->text, value);
    return PLAIT_OK;
}

/* An entry of a libsvm line; a 0 is left out. */
static plait_status add_entry(const reading *r, const char *index, const json_t *value) {
    int64_t number = -1;
    if (!json_is_number(value))
        return bad_cell(r, index, "the model's features are numbers; expected a number (a missing one is 0)");
    if (!pli_parse_i64(index, &number) || number < 0)
        return bad_cell(r, index, "the model's features have numbers for names (libsvm); expected one of these");
    if (json_number_value(value) == 0) return PLAIT_OK;
    pli_text_add(&r->to->text, " %lld:", (long long)number);
    add_number(&r->to->text, value);
    return PLAIT_OK;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* Column k of those that are features; -1: there is none. */
static int64_t feature_column(const pli_schema *s, int64_t after) {
    for (int64_t i = after; i < s->columns; i++)
        if (s->column[i].role == PLI_ROLE_NUMBER || s->column[i].role == PLI_ROLE_TEXT) return i;
    return -1;
}

static plait_status add_header(reading *r) {
    const pli_schema *s = r->schema;
    size_t            k;
    json_t           *key;
    if (r->keys != NULL) {
        json_array_foreach(r->keys, k, key) {
            if (k > 0) pli_text_add_bytes(&r->to->text, ",", 1);
            PLI_TRY(add_quoted(r, "name", json_string_value(key)));
        }
    } else {
        for (int64_t i = feature_column(s, 0), n = 0; i >= 0; i = feature_column(s, i + 1), n++) {
            if (n > 0) pli_text_add_bytes(&r->to->text, ",", 1);
            PLI_TRY(add_quoted(r, "name", s->column[i].name));
        }
    }
    pli_text_add_bytes(&r->to->text, "\n", 1);
    r->to->head = r->to->text.length;
    return PLAIT_OK;
}

static plait_status add_list(reading *r, const json_t *row) {
    const pli_schema *s = r->schema;
    const size_t      n = json_array_size(row);
    char              number[32];
    int64_t           want = 0, at = -1;
    if (!r->table) {
        if ((int64_t)n > s->features)
            return pli_fail(r->err, PLAIT_EFORMAT, "row %lld: %zu numbers, but the model has %lld features",
                            (long long)r->row, n, (long long)s->features);
        pli_text_add_bytes(&r->to->text, "0", 1); /* a label, so that the line is not empty */
        for (size_t j = 0; j < n; j++) {
            snprintf(number, sizeof number, "%zu", j + (size_t)(r->to->index_base[0] - '0'));
            PLI_TRY(add_entry(r, number, json_array_get(row, j)));
        }
        return PLAIT_OK;
    }
    for (int64_t i = feature_column(s, 0); i >= 0; i = feature_column(s, i + 1)) want++;
    if ((int64_t)n != want)
        return pli_fail(r->err, PLAIT_EFORMAT, "row %lld: %zu values, expected %lld, one for each column of the model "
                        "('plait inspect' lists them)", (long long)r->row, n, (long long)want);
    for (size_t j = 0; j < n; j++) {
        at = feature_column(s, at + 1);
        if (j > 0) pli_text_add_bytes(&r->to->text, ",", 1);
        PLI_TRY(add_cell(r, s->column[at].name, json_array_get(row, j)));
    }
    return PLAIT_OK;
}

/* Columns without names are read by place, so their objects are put into the model's order by the names c1, c2, ...
 * that it lists. The label is no feature, and may be there. */
static plait_status check_column(const reading *r, const char *key) {
    const pli_schema *s = r->schema;
    for (int64_t i = 0; i < s->columns; i++)
        if (pli_is(s->column[i].name, key)) return PLAIT_OK;
    return bad_cell(r, key, "the model's columns have no names; call them c1, c2, ... as 'plait inspect' does, or send "
                    "lists");
}

static plait_status add_object(reading *r, json_t *row) {
    const char *key;
    json_t     *value;
    size_t      k, known = 0;
    if (!r->table) {
        pli_text_add_bytes(&r->to->text, "0", 1);
        json_object_foreach(row, key, value) PLI_TRY(add_entry(r, key, value));
        return PLAIT_OK;
    }
    json_array_foreach(r->keys, k, value) {
        const json_t *cell = json_object_get(row, json_string_value(value));
        known += cell != NULL;
        if (k > 0) pli_text_add_bytes(&r->to->text, ",", 1);
        PLI_TRY(add_cell(r, json_string_value(value), cell));
    }
    if (known == json_object_size(row)) return PLAIT_OK;
    json_object_foreach(row, key, value) {
        if (!r->schema->has_names) {
            PLI_TRY(check_column(r, key));
            continue;
        }
        bool found = false;
        size_t i;
        json_t *name;
        json_array_foreach(r->keys, i, name) found = found || strcmp(json_string_value(name), key) == 0;
        if (!found) return bad_cell(r, key, "the first row has no such column; give it there too (null: missing)");
    }
    return PLAIT_OK;
}

/* The first row says whether rows are lists or objects, and which columns there are. */
static plait_status first_row(reading *r, const json_t *row) {
    const char *key;
    json_t     *value;
    if (!json_is_object(row)) return r->table ? add_header(r) : PLAIT_OK;
    r->keys = json_array();
    if (r->table && !r->schema->has_names) {
        const pli_schema *s = r->schema;
        for (int64_t i = feature_column(s, 0); i >= 0; i = feature_column(s, i + 1))
            json_array_append_new(r->keys, json_string(s->column[i].name));
        return add_header(r);
    }
    json_object_foreach((json_t *)row, key, value) json_array_append_new(r->keys, json_string(key));
    return r->table ? add_header(r) : PLAIT_OK;
}

static plait_status add_row(reading *r, json_t *row) {
    r->row++;
    if (!json_is_array(row) && !json_is_object(row))
        return bad_row(r, "expected a list of numbers, or an object of column: value");
    if ((json_is_array(row) ? json_array_size(row) : json_object_size(row)) == 0) return bad_row(r, "it is empty");
    if (r->row == 1) PLI_TRY(first_row(r, row));
    if (json_is_object(row) != (r->keys != NULL)) return bad_row(r, "lists and objects are mixed; give one of them");
    PLI_TRY(json_is_array(row) ? add_list(r, row) : add_object(r, row));
    pli_text_add_bytes(&r->to->text, "\n", 1);
    return r->to->text.failed ? pli_fail(r->err, PLAIT_ENOMEM, "no memory for the rows") : PLAIT_OK;
}

/* --- the outer list ----------------------------------------------------------------------------------------------- */

static const char *skip_space(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
    return p;
}

static int64_t line_of(const char *body, const char *at) {
    int64_t line = 1;
    for (const char *p = body; p < at; p++) line += *p == '\n';
    return line;
}

static plait_status bad_json(const reading *r, const char *body, const char *at, const char *what) {
    char text[160];
    pli_printable(text, sizeof text, what);
    return pli_fail(r->err, PLAIT_EFORMAT, "body:%lld: row %lld: no JSON: %s; expected a list of rows, "
                    "[[1, 2], [3, 4]]", (long long)line_of(body, at), (long long)r->row + 1, text);
}

static plait_status read_row(reading *r, const char *body, const char **at, const char *end) {
    pli_json_where where;
    const size_t   left = (size_t)(end - *at), n = left < PLI_BODY_ROW_BYTES ? left : PLI_BODY_ROW_BYTES;
    json_t        *row = json_loadb(*at, n, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &where);
    if (row == NULL) {
        const bool cut = n < left && where.position >= (int)n - 8;
        return bad_json(r, body, *at + (where.position > 0 && where.position < (int)n ? where.position : 0),
                        cut ? "a row has more than 4 MiB" : where.text);
    }
    *at += where.position;
    const plait_status status = add_row(r, row);
    json_decref(row);
    return status;
}

static plait_status read_rows(reading *r, const char *body, size_t bytes) {
    const char *end = body + bytes, *at = skip_space(body, end);
    if (at == end || *at != '[') return bad_json(r, body, at, "it does not begin with [");
    at = skip_space(at + 1, end);
    if (at < end && *at == ']') return pli_fail(r->err, PLAIT_EFORMAT, "the list has no rows; give at least one");
    for (;;) {
        PLI_TRY(read_row(r, body, &at, end));
        at = skip_space(at, end);
        if (at == end || (*at != ',' && *at != ']'))
            return bad_json(r, body, at, at == end ? "it ends before its list does" : "expected , or ] behind a row");
        if (*at++ == ']') break;
        at = skip_space(at, end);
    }
    at = skip_space(at, end);
    return at == end ? PLAIT_OK : bad_json(r, body, at, "something follows its list");
}

plait_status pli_body_json(const pli_schema *schema, const char *body, size_t bytes, pli_body_rows *out,
                           plait_error *err) {
    reading r = { .schema = schema, .to = out, .err = err };
    *out = (pli_body_rows){ .json = true, .rows = -1, .index_base = "auto" };
    r.table = schema->format == PLI_FORMAT_TABLE;
    if (r.table && schema->hash_bits > 0)
        return pli_fail(err, PLAIT_EREFUSED, "the model's features are hashed: send its rows as text/csv");
    if (!r.table && schema->format != PLI_FORMAT_LIBSVM && schema->format != PLI_FORMAT_NONE)
        return pli_fail(err, PLAIT_EREFUSED, "the model is not of numbers or columns: send its rows as text/plain, in "
                        "the format that it was trained on");
    if (!r.table) out->index_base = schema->format == PLI_FORMAT_LIBSVM && schema->index_base == 0 ? "0" : "1";
    out->format = r.table ? "csv" : "libsvm";
    const plait_status status = read_rows(&r, body, bytes);
    out->rows = r.row;
    json_decref(r.keys);
    return status;
}

/* Rows of libsvm text: lines that are neither blank nor comments. */
static int64_t count_rows(const char *body, size_t bytes) {
    int64_t     rows = 0;
    const char *end = body + bytes;
    for (const char *p = body; p < end;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p)), *to = newline != NULL ? newline : end;
        while (p < to && isspace((unsigned char)*p)) p++;
        rows += p < to && *p != '#';
        p = to + 1;
    }
    return rows;
}

void pli_body_text(const pli_schema *schema, const char *body, size_t bytes, pli_body_rows *out) {
    const bool libsvm = schema->format == PLI_FORMAT_LIBSVM;
    *out = (pli_body_rows){ .format = libsvm ? "libsvm" : "auto", .index_base = "auto", .rows = -1 };
    if (libsvm) out->rows = count_rows(body, bytes);
}

void pli_body_free(pli_body_rows *rows) { pli_text_free(&rows->text); }

void pli_body_place(const pli_body_rows *rows, plait_error *err) {
    int  n = 0;
    long line = 0;
    char rest[sizeof err->text];
    if (!rows->json || sscanf(err->text, "body:%ld:%n", &line, &n) != 1 || n == 0) return;
    snprintf(rest, sizeof rest, "%s", err->text + n);
    snprintf(err->text, sizeof err->text, "row %ld:%.480s", line - (rows->head > 0 ? 1 : 0), rest);
}
