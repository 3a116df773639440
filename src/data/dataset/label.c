/* Says in words where the labels of a data set are, and whether its text labels are really numbers. */
#include <string.h>

#include "data/formats/idx.h"
#include "data/formats/npy.h"
#include "data/formats/table/table.h"

bool pli_label_is_none(const char *label) { return label != NULL && strcmp(label, "none") == 0; }

/* Finds the label among a table's cells. With a cache it is found in the schema, which has all columns in the file's
 * order. */
static bool find_cell(const pli_dataset *d, int64_t *at_out, int64_t *cells_out) {
    const struct pli_table_rules *t = d->table;
    *cells_out = t != NULL ? t->cells : d->schema->columns;
    for (*at_out = 0; *at_out < *cells_out; ++*at_out) {
        const pli_role role = t != NULL ? t->cell[*at_out].role : d->schema->column[*at_out].role;
        if (role == PLI_ROLE_LABEL && (t == NULL || t->cell[*at_out].column >= 0)) return true;
    }
    return false;
}

static void add_column(const pli_dataset *d, pli_text *text) {
    int64_t at, cells;
    if (!find_cell(d, &at, &cells)) {
        pli_text_add(text, "none");
        return;
    }
    pli_text_add(text, "%.60s ", d->table != NULL ? d->table->name[at] : d->schema->column[at].name);
    if (at == 0) pli_text_add(text, "(first column)");
    else if (at == cells - 1) pli_text_add(text, "(last column)");
    else pli_text_add(text, "(column %lld)", (long long)at + 1);
}

void pli_dataset_label(const pli_dataset *dataset, pli_text *text) {
    const pli_dataset *d = dataset->whole != NULL ? dataset->whole : dataset;
    const char        *file;
    if (d->schema->unlabelled) {
        pli_text_add(text, "none");
        return;
    }
    switch (d->schema->format) {
    case PLI_FORMAT_NPY:
    case PLI_FORMAT_TABLE:
        file = d->npy != NULL ? pli_npy_label_file(d->npy) : NULL;
        if (file != NULL) pli_text_add(text, "%.80s", file);
        else add_column(d, text);
        return;
    case PLI_FORMAT_VW:
    case PLI_FORMAT_LIBSVM: pli_text_add(text, "first number of each line"); return;
    case PLI_FORMAT_CHARS: pli_text_add(text, "next character"); return;
    case PLI_FORMAT_NONE: pli_text_add(text, "as given"); return;
    case PLI_FORMAT_IDX:
        file = d->idx != NULL ? pli_idx_label_file(d->idx) : NULL;
        pli_text_add(text, "%.80s", file != NULL ? file : "none");
        return;
    }
}

/* --- texts that look like numbers --------------------------------------------------------------------------------- */

const char *pli_schema_odd_label(const pli_schema *schema) {
    const pli_column *column = pli_schema_label_column(schema);
    const char       *example = NULL;
    int64_t           like = 0;
    if (schema->label_kind != PLI_LABEL_TEXT || column == NULL || schema->label_asked) return NULL;
    for (int64_t i = 0; i < column->dict.n; i++) {
        const char    *text = column->dict.text[i];
        const pli_cell cell = { .text = (const unsigned char *)text, .length = strlen(text) };
        const bool     odd = pli_cell_odd_number(&cell) != PLI_ODD_NONE;
        like += odd || pli_cell_is_number(&cell, false);
        if (odd && example == NULL) example = text;
    }
    return 2 * like >= column->dict.n ? example : NULL;
}
