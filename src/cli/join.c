/* Lines of data with a model's answers. See join.h. */
#include "cli/join.h"

#include <inttypes.h>
#include <string.h>

#include "cli/answers.h"

plait_status pli_join_begin(const plait_model *model, const plait_data *data, plait_answer answer, pli_join *join,
                            plait_error *err) {
    *join = (pli_join){ .model = model, .answer = answer };
    if (pli_written_begin(data, &join->rows, err) < 0)
        return pli_fail(err, PLAIT_EREFUSED, "predict: --join: %s, so there is nothing to put answers behind; without "
                                             "--join the answers come in the order of the rows", err->text);
    join->is_table = pli_written_delimiter(&join->rows) != '\0';
    join->delimiter = join->is_table ? pli_written_delimiter(&join->rows) : '\t';
    return PLAIT_OK;
}

/* --- cells ------------------------------------------------------------------------------------------------------ */

static void add_delimiter(const pli_join *join, pli_text *text) { pli_text_add_bytes(text, &join->delimiter, 1); }

/* Adds a cell, in quotes if a table would read it otherwise as several or as nothing. */
static void add_cell(const pli_join *join, const char *cell, pli_text *text) {
    const char special[] = { join->delimiter, '"', '\0' };
    const bool quoted = join->is_table && (cell[0] == '\0' || strpbrk(cell, special) != NULL);
    pli_text   shown = { 0 };
    if (!quoted) {
        pli_text_add_printable(text, cell, strlen(cell), "");
        return;
    }
    pli_text_add_printable(&shown, cell, strlen(cell), "");
    pli_text_add(text, "\"");
    for (size_t i = 0; i < shown.length; i++) {
        const bool quote = shown.data[i] == '"';
        pli_text_add_bytes(text, quote ? "\"\"" : &shown.data[i], quote ? 2 : 1);
    }
    pli_text_add(text, "\"");
    text->failed = text->failed || shown.failed;
    pli_text_free(&shown);
}

/* --- names ------------------------------------------------------------------------------------------------------ */

/* A name that no column of the data has: with _2 behind it, or _3, if need be. */
static void add_name(const pli_join *join, const char *name, pli_text *text) {
    pli_text all = { 0 };
    pli_text_add(&all, "%s", name);
    for (int n = 2; !all.failed && pli_written_has_column(&join->rows, all.data); n++) {
        all.length = 0;
        pli_text_add(&all, "%s_%d", name, n);
    }
    add_delimiter(join, text);
    add_cell(join, all.data != NULL ? all.data : "", text);
    text->failed = text->failed || all.failed;
    pli_text_free(&all);
}

static void add_name_of(const pli_join *join, const char *before, const char *what, pli_text *text) {
    pli_text name = { 0 };
    pli_text_add(&name, "%s%s", before, what);
    add_name(join, name.data != NULL ? name.data : "", text);
    pli_text_free(&name);
}

/* SHAP values: "adds_age", ..., "adds_mean"; of more than two classes with the class before, "Rome_adds_age". */
static void add_contributions(const pli_join *join, int64_t width, pli_text *text) {
    const int64_t features = plait_model_rows(join->model), scores = width / (features + 1);
    for (int64_t k = 0; k < scores; k++) {
        pli_text before = { 0 };
        pli_text_add(&before, "%s%sadds_", scores > 1 ? plait_model_label(join->model, k) : "", scores > 1 ? "_" : "");
        for (int64_t j = 0; j < features && before.data != NULL; j++)
            add_name_of(join, before.data, plait_model_feature(join->model, j), text);
        if (before.data != NULL) add_name_of(join, before.data, "mean", text);
        text->failed = text->failed || before.failed;
        pli_text_free(&before);
    }
}

void pli_join_header(const pli_join *join, pli_text *text) {
    const int64_t width = plait_model_width(join->model, join->answer);
    size_t        bytes = 0;
    const char   *header = pli_written_header(&join->rows, &bytes);
    if (header == NULL) return;
    pli_text_add_bytes(text, header, bytes);
    switch (join->answer) {
    case PLAIT_ANSWER_LABEL: add_name(join, "predicted", text); break;
    case PLAIT_ANSWER_PROBABILITIES:
        for (int64_t k = 0; k < width; k++) add_name_of(join, "p_", plait_model_label(join->model, k), text);
        break;
    case PLAIT_ANSWER_CONTRIBUTIONS: add_contributions(join, width, text); break;
    case PLAIT_ANSWER_TRANSFORM: break; /* transform has no --join */
    }
    pli_text_add(text, "\n");
}

/* --- rows ------------------------------------------------------------------------------------------------------- */

plait_status pli_join_add(pli_join *join, const double *values, int64_t width, pli_text *text, plait_error *err) {
    const char *line = NULL;
    size_t      bytes = 0;
    if (!pli_written_next(&join->rows, &line, &bytes))
        return pli_fail(err, PLAIT_EFORMAT, "predict: --join: the data have changed while they were read");
    pli_text_add_bytes(text, line, bytes);
    add_delimiter(join, text);
    if (join->answer == PLAIT_ANSWER_LABEL && plait_model_classes(join->model) > 0)
        add_cell(join, plait_model_label(join->model, (int64_t)values[0]), text);
    else
        pli_answer_numbers(values, width, join->delimiter, text);
    pli_text_add(text, "\n");
    return PLAIT_OK;
}
