/* From bodies to answers: read the rows, predict, write a line or a value for each.
 *
 * Requests whose rows are lines of one form (the same format, header and question) and whose number of rows is known
 * beforehand are joined: reading and predicting has a price a call, which a single row should not pay alone. If the
 * joined rows are not all good, each request is answered on its own, so that only the bad one hears of its mistake. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/answers.h"
#include "cli/serve/body.h"
#include "cli/serve/serve.h"
#include "learn/model/model.h"

enum { JOIN_BYTES = 1 << 16, JOINED_BYTES = 8 << 20 }; /* a body that may be joined; all together */

typedef struct item {
    pli_http_request *request;
    pli_body_rows     rows;
    plait_answer      answer;
    bool              json_out, joined;
} item;

void pli_serve_refuse(pli_http_request *r, int code, const char *fmt, ...) {
    char    text[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    pli_text_free(&r->answer);
    pli_text_add(&r->answer, "{\"error\": ");
    pli_text_add_quoted(&r->answer, text);
    pli_text_add(&r->answer, "}\n");
    r->answer_type = "application/json";
    r->code = code;
    r->rows = 0;
}

/* --- the question ------------------------------------------------------------------------------------------------- */

static const char *const known[] = { "proba", "contributions", "header" };

static bool is_yes(const char *value) {
    return strcmp(value, "1") == 0 || strcmp(value, "") == 0 || strcmp(value, "true") == 0 || strcmp(value, "yes") == 0;
}

static bool is_no(const char *value) {
    return strcmp(value, "0") == 0 || strcmp(value, "false") == 0 || strcmp(value, "no") == 0;
}

bool pli_serve_check_query(pli_http_request *r) {
    for (int32_t i = 0; i < r->args && i < PLI_HTTP_ARGS; i++) {
        const char *near = pli_nearest(r->name[i], known, 3);
        if (near == NULL || strcmp(near, r->name[i]) != 0) {
            pli_serve_refuse(r, 400, "no option \"%s\"%s%s%s; /predict takes proba, contributions and header",
                             r->name[i], near != NULL ? "; did you mean " : "", near != NULL ? near : "",
                             near != NULL ? "?" : "");
            return false;
        }
        if (!is_yes(r->value[i]) && !is_no(r->value[i]) &&
            !(strcmp(near, "header") == 0 && strcmp(r->value[i], "auto") == 0)) {
            pli_serve_refuse(r, 400, "%s=%s: expected %s", near, r->value[i],
                             strcmp(near, "header") == 0 ? "auto, yes or no" : "1 or 0");
            return false;
        }
    }
    if (r->args <= PLI_HTTP_ARGS) return true;
    pli_serve_refuse(r, 400, "%d options, but /predict takes at most %d", (int)r->args, PLI_HTTP_ARGS);
    return false;
}

/* Is the header this type, perhaps with parameters behind it, such as a charset? */
static bool has_type(const char *header, const char *type) {
    const size_t n = strlen(type);
    return strncasecmp(header, type, n) == 0 && strchr(" \t;", header[n]) != NULL;
}

/* Does the client leave it to the content? Those that name no type send the second (curl), or the third. */
static bool has_no_type(const char *header) {
    return *header == '\0' || has_type(header, "application/x-www-form-urlencoded") ||
           has_type(header, "application/octet-stream");
}

bool pli_serve_check_type(pli_http_request *r) {
    if (has_no_type(r->type) || has_type(r->type, "application/json") || has_type(r->type, "text/csv") ||
        has_type(r->type, "text/plain"))
        return true;
    pli_serve_refuse(r, 415, "Content-Type %s: /predict takes application/json, text/csv, and text/plain for lines as "
                     "in the training data", r->type);
    return false;
}

static const char *value_of(const pli_http_request *r, const char *name) {
    for (int32_t i = 0; i < r->args; i++)
        if (strcmp(r->name[i], name) == 0) return r->value[i];
    return "0";
}

static const char *header_of(const pli_http_request *r) {
    for (int32_t i = 0; i < r->args; i++)
        if (strcmp(r->name[i], "header") == 0)
            return strcmp(r->value[i], "auto") == 0 ? "auto" : is_yes(r->value[i]) ? "yes" : "no";
    return "auto";
}

/* Does the client want JSON? What it accepts decides; else the form of its body. */
static bool wants_json(const pli_http_request *r, bool json_in) {
    const bool json = strstr(r->accept, "application/json") != NULL;
    const bool text = strstr(r->accept, "text/plain") != NULL || strstr(r->accept, "text/csv") != NULL;
    return json != text ? json : json_in;
}

static void refuse_by(pli_http_request *r, const plait_error *err) {
    pli_serve_refuse(r, err->code == PLAIT_ENOMEM ? 503 : 400, "%s", err->text);
    r->retry = err->code == PLAIT_ENOMEM;
}

/* Reads what kind of rows they are; false: the request is answered. */
static bool prepare(const plait_model *model, item *it) {
    pli_http_request *r = it->request;
    plait_error       err = { .rank = -1 };
    const char       *first = r->body.data != NULL ? r->body.data + strspn(r->body.data, " \t\r\n") : "";
    const bool        csv = has_type(r->type, "text/csv"), text = csv || has_type(r->type, "text/plain");
    const bool json = has_type(r->type, "application/json") || (!text && (*first == '[' || *first == '{'));
    it->answer = is_yes(value_of(r, "contributions")) ? PLAIT_ANSWER_CONTRIBUTIONS
                 : is_yes(value_of(r, "proba"))       ? PLAIT_ANSWER_PROBABILITIES
                                                      : PLAIT_ANSWER_LABEL;
    it->json_out = wants_json(r, json);
    if (r->body.length == 0) {
        pli_serve_refuse(r, 400, "the body is empty; send rows: JSON, text/csv, or text/plain as in the training data");
        return false;
    }
    const pli_schema *schema = pli_model_schema(model);
    plait_status      status = pli_answer_check(model, it->answer, &err);
    if (status >= 0 && json) status = pli_body_json(schema, r->body.data, r->body.length, &it->rows, &err);
    else if (status >= 0) pli_body_text(schema, r->body.data, r->body.length, &it->rows);
    if (csv && status >= 0) {
        it->rows.format = "csv";
        it->rows.rows = -1;
    }
    if (status < 0) refuse_by(r, &err);
    return status >= 0;
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

/* A label as JSON: a number, if it is written as one. */
static void add_label(const plait_model *model, double value, pli_text *text) {
    const char *label = plait_model_label(model, (int64_t)value);
    double      number;
    char        written[32] = "";
    if (pli_parse_f64(label, &number)) pli_format_f64(number, written);
    if (strcmp(written, label) == 0) pli_text_add(text, "%s", label);
    else pli_text_add_quoted(text, label);
}

static void add_value(double value, pli_text *text) {
    if (value - value == 0) pli_text_add(text, "%.9g", value);
    else pli_text_add(text, "null");
}

static void add_json(const plait_model *model, plait_answer answer, const double *values, int64_t width,
                     pli_text *text) {
    if (answer == PLAIT_ANSWER_LABEL && plait_model_classes(model) > 0) {
        add_label(model, values[0], text);
        return;
    }
    const bool list = answer != PLAIT_ANSWER_LABEL;
    if (list) pli_text_add_bytes(text, "[", 1);
    for (int64_t k = 0; k < width; k++) {
        if (k > 0) pli_text_add_bytes(text, ", ", 2);
        add_value(values[k], text);
    }
    if (list) pli_text_add_bytes(text, "]", 1);
}

static void write_answer(const plait_model *model, item *it, const double *values, int64_t rows) {
    pli_http_request *r = it->request;
    const int64_t     width = plait_model_width(model, it->answer);
    if (it->json_out) pli_text_add(&r->answer, "{\"predictions\": [");
    for (int64_t i = 0; i < rows; i++) {
        if (it->json_out && i > 0) pli_text_add_bytes(&r->answer, ", ", 2);
        if (it->json_out) add_json(model, it->answer, values + i * width, width, &r->answer);
        else pli_answer_add(model, it->answer, values + i * width, width, &r->answer);
    }
    if (it->json_out) pli_text_add(&r->answer, "]}\n");
    r->answer_type = it->json_out ? "application/json" : "text/plain; charset=utf-8";
    r->code = 200;
    r->rows = rows;
    if (!r->answer.failed) return;
    pli_serve_refuse(r, 503, "no memory for the answer; send fewer rows in a request");
    r->retry = true;
}

/* Reads text and predicts its rows; *values_out is the caller's to free. */
static plait_status predict(const plait_model *model, const item *it, const char *text, size_t bytes,
                            double **values_out, int64_t *rows_out, plait_error *err) {
    plait_data     *data = NULL;
    plait_data_opts opts;
    plait_data_opts_init(&opts);
    opts.format = it->rows.format;
    opts.index_base = it->rows.index_base;
    opts.header = it->rows.json && it->rows.head > 0 ? "yes" : header_of(it->request);
    if (it->rows.json && it->rows.head > 0) opts.delimiter = "comma";
    plait_status  status = pli_model_read_bytes(model, &opts, "body", text, bytes, &data, err);
    const int64_t rows = plait_data_labels(data), width = plait_model_width(model, it->answer);
    double       *values = status >= 0 ? pli_array((size_t)rows, (size_t)width * sizeof *values) : NULL;
    if (status >= 0 && values == NULL) status = pli_fail(err, PLAIT_ENOMEM, "no memory for the answers");
    if (status >= 0) status = pli_answer_ask(model, data, it->answer, values, err);
    plait_data_destroy(&data);
    if (status < 0) pli_free(values);
    else {
        *values_out = values;
        *rows_out = rows;
    }
    return status;
}

static const char *text_of(const item *it) {
    return it->rows.text.length > 0 ? it->rows.text.data : it->request->body.data;
}
static size_t bytes_of(const item *it) {
    return it->rows.text.length > 0 ? it->rows.text.length : it->request->body.length;
}

static void answer_alone(const plait_model *model, item *it) {
    plait_error err = { .rank = -1 };
    double     *values = NULL;
    int64_t     rows = 0;
    if (predict(model, it, text_of(it), bytes_of(it), &values, &rows, &err) < 0) {
        pli_body_place(&it->rows, &err);
        refuse_by(it->request, &err);
    } else if (it->rows.json && it->rows.rows != rows) {
        pli_serve_refuse(it->request, 400, "%lld rows of JSON were read as %lld; send them as text/csv",
                         (long long)it->rows.rows, (long long)rows);
    } else {
        write_answer(model, it, values, rows);
    }
    pli_free(values);
}

/* --- joining ------------------------------------------------------------------------------------------------------ */

static bool may_join(const item *a, const item *b) {
    return a->rows.rows >= 0 && b->rows.rows >= 0 && a->answer == b->answer && bytes_of(a) <= JOIN_BYTES &&
           bytes_of(b) <= JOIN_BYTES && strcmp(a->rows.format, b->rows.format) == 0 &&
           strcmp(a->rows.index_base, b->rows.index_base) == 0 && a->rows.head == b->rows.head &&
           memcmp(text_of(a), text_of(b), a->rows.head) == 0;
}

/* Adds the lines of an item, whole, behind those that are there. */
static void add_lines(const item *it, bool first, pli_text *text) {
    const size_t skip = first ? 0 : it->rows.head;
    pli_text_add_bytes(text, text_of(it) + skip, bytes_of(it) - skip);
    if (text->length > 0 && text->data[text->length - 1] != '\n') pli_text_add_bytes(text, "\n", 1);
}

/* Answers item [0] and those of [n] that may join it, and counts a call of the model. false: they must be answered
 * alone. */
static bool answer_joined(const plait_model *model, item *it, int64_t n, int64_t *calls) {
    pli_text    text = { 0 };
    plait_error err = { .rank = -1 };
    double     *values = NULL;
    int64_t     rows = 0, want = 0, joined = 0, at = 0;
    for (int64_t i = 0; i < n && text.length <= JOINED_BYTES; i++) {
        if (it[i].request->code != 0 || it[i].joined || (i > 0 && !may_join(&it[0], &it[i]))) continue;
        add_lines(&it[i], i == 0, &text);
        want += it[i].rows.rows;
        it[i].joined = true;
        joined++;
    }
    const bool asks = joined > 1 && !text.failed;
    const bool good = asks && predict(model, it, text.data, text.length, &values, &rows, &err) >= 0 && rows == want;
    *calls += asks;
    for (int64_t i = 0; good && i < n; i++) {
        if (!it[i].joined || it[i].request->code != 0) continue;
        write_answer(model, &it[i], values + at * plait_model_width(model, it[i].answer), it[i].rows.rows);
        at += it[i].rows.rows;
    }
    pli_free(values);
    pli_text_free(&text);
    return good;
}

int64_t pli_serve_answer(const plait_model *model, pli_http_request *list) {
    int64_t n = 0, k = 0, calls = 0;
    for (pli_http_request *r = list; r != NULL; r = r->next) n++;
    item *it = pli_calloc((size_t)n + 1, sizeof *it);
    for (pli_http_request *r = list; r != NULL; r = r->next) {
        if (it == NULL) {
            pli_serve_refuse(r, 503, "no memory for the request; come again");
            continue;
        }
        it[k].request = r;
        if (prepare(model, &it[k])) k++;
        else pli_body_free(&it[k].rows);
        if (r->code != 0 && k < n) it[k] = (item){ 0 };
    }
    for (int64_t i = 0; i < k; i++) {
        if (it[i].request->code != 0) continue;
        if (!it[i].joined && it[i].rows.rows >= 0 && bytes_of(&it[i]) <= JOIN_BYTES &&
            answer_joined(model, &it[i], k - i, &calls))
            continue;
        answer_alone(model, &it[i]);
        calls++;
    }
    for (int64_t i = 0; i < k; i++) pli_body_free(&it[i].rows);
    pli_free(it);
    return calls;
}
