/* Reads npy files as tables without names; npy.h says what they are. Where their labels are: npy_label.c. */
#include "data/formats/npy_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SAMPLE_BYTES = 64 << 10 };

/* --- opening ---------------------------------------------------------------------------------------------------- */

void pli_npy_close(struct pli_npy **npy) {
    if (*npy == NULL) return;
    pli_sources_release(&(*npy)->labels);
    pli_free((*npy)->array);
    pli_free(*npy);
    *npy = NULL;
}

/* All files are cut as one, so their rows have equal lengths. */
static plait_status open_arrays(pli_dataset *d, plait_error *err) {
    struct pli_npy    *npy = d->npy;
    const pli_sources *sources = d->sources;
    for (int64_t i = 0; i < sources->n; i++) {
        const pli_source    *source = &sources->source[i];
        pli_npy_array       *a = &npy->array[i];
        const pli_npy_array *first = &npy->array[0];
        PLI_TRY(pli_npy_read(source->path, source->data, source->bytes, a, err));
        if (a->axes == 1)
            return pli_fail(err, PLAIT_EFORMAT,
                            "%s: it has one axis, and rows are an array of two: save it as `numpy.save(\"rows.npy\", "
                            "array.reshape(-1, 1))` does; labels are named by --label", source->path);
        if (a->columns != first->columns || a->item != first->item)
            return pli_fail(err, PLAIT_EMISMATCH,
                            "%s has rows of %lld numbers of %zu bytes, but %s of %lld numbers of %zu bytes: save all "
                            "with the same columns and type", source->path, (long long)a->columns, a->item,
                            sources->source[0].path, (long long)first->columns, first->item);
        if (a->columns > PLI_MAX_COLUMNS)
            return pli_fail(err, PLAIT_EFORMAT, "%s: %lld columns: a table has at most %d", source->path,
                            (long long)a->columns, PLI_MAX_COLUMNS);
        d->begin[i] = a->begin;
    }
    npy->columns = npy->array[0].columns;
    d->row_bytes = npy->array[0].item * (size_t)npy->columns;
    return PLAIT_OK;
}

plait_status pli_npy_open(pli_dataset *d, const plait_data_opts *opts, const pli_schema *fixed, plait_error *err) {
    const char *path = d->sources->source[0].path;
    if (opts->hash_bits > 0)
        return pli_fail(err, PLAIT_EINVAL, "%s: an array has few and dense features, which are not hashed; leave out "
                                           "--hash-bits", path);
    if (opts->pairs != 0)
        return pli_fail(err, PLAIT_EINVAL, "%s: a factorisation takes users and items by their names: write them as "
                                           "text, as `numpy.savetxt(\"ratings.txt\", array, fmt=\"%%g\")` does", path);
    struct pli_npy *npy = d->npy = pli_calloc(1, sizeof *npy);
    if (npy == NULL) return pli_table_no_memory(err);
    npy->array = pli_calloc((size_t)d->sources->n, sizeof *npy->array);
    if (npy->array == NULL) return pli_table_no_memory(err);
    npy->sources = d->sources;
    npy->label_at = npy->weight_at = -1;
    npy->unlabelled = d->unlabelled;
    PLI_TRY(open_arrays(d, err));
    return pli_npy_find_label(d, opts, fixed, err);
}

/* --- the model's columns ---------------------------------------------------------------------------------------- */

static int64_t count(const pli_schema *schema, pli_role role) {
    int64_t n = 0;
    for (int64_t i = 0; i < schema->columns; i++) n += schema->column[i].role == role;
    return n;
}

/* Label and weight are where the model has them, unless the user said otherwise; the label may be missing. Texts
 * cannot be in an array. */
static plait_status find_fixed(pli_dataset *d, const plait_data_opts *opts, const pli_schema *fixed,
                               plait_error *err) {
    struct pli_npy *npy = d->npy;
    const char     *path = d->sources->source[0].path;
    const int64_t   features = count(fixed, PLI_ROLE_NUMBER), all = fixed->columns;
    if (count(fixed, PLI_ROLE_TEXT) > 0)
        return pli_fail(err, PLAIT_EMISMATCH, "%s: the model was trained on columns of texts, and an array holds "
                                              "numbers: write its rows as CSV", path);
    const bool without_label = npy->columns == all - count(fixed, PLI_ROLE_LABEL);
    for (int64_t i = 0, at = 0; i < all && (npy->columns == all || without_label); i++) {
        const pli_role role = fixed->column[i].role;
        if (role == PLI_ROLE_LABEL && without_label) continue;
        if (role == PLI_ROLE_LABEL && npy->label_at < 0) npy->label_at = at;
        if (role == PLI_ROLE_WEIGHT && opts->weight_column == NULL) npy->weight_at = at;
        at++;
    }
    if (opts->weight_column != NULL)
        PLI_TRY(pli_npy_find_column(npy, "the weights", opts->weight_column, &npy->weight_at, err));
    return npy->columns - (npy->label_at >= 0) - (npy->weight_at >= 0) == features
               ? PLAIT_OK
               : pli_fail(err, PLAIT_ESHAPE, "%s: expected %lld columns of features, as in the data that the model was "
                                             "trained on, found %lld", path, (long long)features,
                          (long long)npy->columns - (npy->label_at >= 0) - (npy->weight_at >= 0));
}

/* --- new columns ------------------------------------------------------------------------------------------------ */

static plait_status add_columns(pli_dataset *d, plait_error *err) {
    pli_table_rules *t = d->table;
    for (int64_t i = 0; i < t->cells; i++)
        if (pli_schema_add_column(d->schema, t->name[i], strlen(t->name[i]), t->cell[i].role) == NULL)
            return pli_table_no_memory(err);
    return PLAIT_OK;
}

/* The range of each column's numbers in the first rows of each segment, as a table has it. */
static void sample_ranges(pli_dataset *d) {
    const struct pli_npy *npy = d->npy;
    const int64_t         most = 1 + SAMPLE_BYTES / (int64_t)d->row_bytes;
    for (int64_t s = 0; s < d->segments; s++) {
        const pli_segment   *segment = &d->segment[s];
        const pli_npy_array *a = &npy->array[segment->source];
        const unsigned char *data = d->sources->source[segment->source].data;
        const int64_t        first = (int64_t)((segment->from - a->begin) / d->row_bytes),
                      rows = (int64_t)((segment->to - segment->from) / d->row_bytes);
        for (int64_t r = 0; r < rows && r < most; r++)
            for (int64_t c = 0; c < npy->columns; c++) {
                const double x = pli_npy_element(a, data + pli_npy_at(a, first + r, c));
                if (isfinite(x)) pli_range_add(&d->table->cell[c].range, x);
            }
    }
}

/* Makes d->table: cells with names and roles. */
static plait_status make_table(pli_dataset *d, plait_error *err) {
    const struct pli_npy *npy = d->npy;
    pli_table_rules      *t = d->table = pli_calloc(1, sizeof *t);
    if (t == NULL) return pli_table_no_memory(err);
    t->cells = npy->columns;
    t->cell = pli_calloc((size_t)t->cells, sizeof *t->cell);
    t->name = pli_calloc((size_t)t->cells, sizeof *t->name);
    if (t->cell == NULL || t->name == NULL) return pli_table_no_memory(err);
    t->user = t->item = -1;
    t->in_order = true;
    t->schema = d->schema;
    t->has_weights = npy->weight_at >= 0;
    for (int64_t i = 0; i < t->cells; i++) {
        t->name[i] = pli_format("c%lld", (long long)i + 1);
        if (t->name[i] == NULL) return pli_table_no_memory(err);
        t->cell[i].role = i == npy->label_at    ? PLI_ROLE_LABEL
                          : i == npy->weight_at ? PLI_ROLE_WEIGHT
                                                : PLI_ROLE_NUMBER;
    }
    return PLAIT_OK;
}

/* Says which column of the schema each cell is: numbers in their order, label and weight if it has them. */
static void number_cells(pli_dataset *d) {
    pli_table_rules  *t = d->table;
    const pli_schema *schema = d->schema;
    int32_t           next = 0;
    for (int64_t i = 0; i < t->cells; i++) {
        const pli_role role = t->cell[i].role;
        int32_t        at = role == PLI_ROLE_NUMBER ? next : 0;
        while (at < schema->columns && schema->column[at].role != role) at++;
        t->cell[i].column = at < schema->columns ? at : -1;
        if (role == PLI_ROLE_NUMBER) next = at + 1;
        const int64_t origin = pli_origin_find(schema->origin, schema->origins, (uint64_t)(uint32_t)at);
        t->cell[i].origin = role == PLI_ROLE_NUMBER && origin >= 0 ? schema->origin[origin].value : 0;
    }
}

plait_status pli_npy_describe(pli_dataset *d, const plait_data_opts *opts, const pli_schema *fixed, plait_error *err) {
    struct pli_npy *npy = d->npy;
    if (fixed != NULL) PLI_TRY(find_fixed(d, opts, fixed, err));
    else if (opts->weight_column != NULL)
        PLI_TRY(pli_npy_find_column(npy, "the weights", opts->weight_column, &npy->weight_at, err));
    if (npy->label_at >= 0 && npy->label_at == npy->weight_at)
        return pli_fail(err, PLAIT_EINVAL, "column %lld is both label and weight", (long long)npy->label_at + 1);
    PLI_TRY(make_table(d, err));
    npy->table = d->table;
    d->table->fixed = d->table->labels_optional = fixed != NULL;
    if (fixed == NULL) {
        d->schema->keeps_missing = opts->keep_missing != 0;
        PLI_TRY(add_columns(d, err));
        number_cells(d);
        sample_ranges(d);
        PLI_TRY(pli_table_origins(d, opts->origins != 0, err));
    }
    number_cells(d);
    pli_schema_number(d->schema);
    d->reader = &pli_npy_reader;
    d->rules = npy;
    return PLAIT_OK;
}

/* --- rows ------------------------------------------------------------------------------------------------------- */

/* The source in which `from` lies. */
static int64_t source_of(const struct pli_npy *npy, const unsigned char *from) {
    int64_t i = 0;
    for (; i + 1 < npy->sources->n; i++) {
        const pli_source *source = &npy->sources->source[i];
        if (from >= source->data && from < source->data + source->bytes) break;
    }
    return i;
}

typedef struct parser {
    const struct pli_npy *npy;
    const pli_npy_array  *a;
    const unsigned char  *data; /* the file */
    pli_rows             *rows;
    pli_found            *found;
    pli_bad              *bad;
} parser;

static plait_status refuse(const parser *s, int64_t row, int64_t column, const char *expected, double x) {
    const size_t at = pli_npy_at(s->a, row, column);
    return pli_bad_at(s->bad, s->data + at, "row %" PRId64 ", column %" PRId64 " (byte %zu): expected %s, found %g",
                      row + 1, column + 1, at, expected, x);
}

/* Most arrays hold floats or doubles of this machine's order. */
static inline double element(const pli_npy_array *a, const unsigned char *at) {
    float  single;
    double wide;
    if (a->kind != 'f' || a->swapped || a->item < 4) return pli_npy_element(a, at);
    memcpy(&single, at, sizeof single);
    if (a->item == 4) return (double)single;
    memcpy(&wide, at, sizeof wide);
    return wide;
}

static plait_status read_features(const parser *s, int64_t row) {
    const pli_table_rules *t = s->npy->table;
    pli_block             *b = &s->rows->b;
    const size_t           step = s->a->item * (size_t)(s->a->fortran ? s->a->rows : 1);
    const unsigned char   *at = s->data + pli_npy_at(s->a, row, 0);
    for (int64_t i = 0; i < t->cells; i++, at += step) {
        const pli_table_cell *c = &t->cell[i];
        if (c->role != PLI_ROLE_NUMBER) continue;
        const double x = element(s->a, at);
        const float  value = (float)(x - c->origin);
        if (value == 0) continue;
        if (!(fabs(x) <= 3.4e38) && !isnan(x)) return refuse(s, row, i, "a finite number of 32 bits, or NaN", x);
        if (isnan(x) && !pli_rows_note_missing(s->rows, b->entries)) return PLAIT_ENOMEM;
        b->col[b->entries] = (uint32_t)t->schema->column[c->column].first_key;
        b->value[b->entries++] = value;
    }
    return PLAIT_OK;
}

/* A model of labels that are texts knows numbers by what they look like. */
static double label_of_text(const parser *s, double x) {
    const pli_column *column = pli_schema_label_column(s->npy->table->schema);
    char              text[32];
    const int         n = snprintf(text, sizeof text, "%.17g", x);
    const int64_t     place = column != NULL ? pli_dict_find(&column->dict, text, (size_t)n) : -1;
    s->found->unknown_labels += place < 0;
    return place < 0 ? (double)NAN : (double)place;
}

static plait_status read_label(const parser *s, int64_t row, double *label_out) {
    const struct pli_npy  *npy = s->npy;
    const pli_table_rules *t = npy->table;
    *label_out = NAN;
    if (npy->unlabelled || (npy->labels == NULL && npy->label_at < 0)) return PLAIT_OK;
    if (npy->labels != NULL)
        *label_out = pli_npy_element(&npy->label, npy->labels->source[0].data + pli_npy_at(&npy->label, row, 0));
    else *label_out = pli_npy_element(s->a, s->data + pli_npy_at(s->a, row, npy->label_at));
    if (isinf(*label_out) || (isnan(*label_out) && !t->labels_optional)) {
        if (npy->labels == NULL) return refuse(s, row, npy->label_at, "a label (a finite number)", *label_out);
        return pli_bad_at(s->bad, s->data, "%.80s: label %" PRId64 " (byte %zu): expected a finite number, found %g",
                          npy->labels->source[0].path, row + 1, pli_npy_at(&npy->label, row, 0), *label_out);
    }
    if (!isnan(*label_out) && t->schema->label_kind == PLI_LABEL_TEXT) *label_out = label_of_text(s, *label_out);
    return PLAIT_OK;
}

static plait_status read_row(const parser *s, int64_t row) {
    pli_block *b = &s->rows->b;
    double     label, weight = 1;
    if (!pli_rows_reserve(s->rows, s->npy->columns) || !pli_rows_need_values(s->rows)) return PLAIT_ENOMEM;
    PLI_TRY(read_features(s, row));
    PLI_TRY(read_label(s, row, &label));
    if (s->npy->weight_at >= 0) weight = pli_npy_element(s->a, s->data + pli_npy_at(s->a, row, s->npy->weight_at));
    if (!(weight >= 0 && weight <= 3.4e38))
        return refuse(s, row, s->npy->weight_at, "a weight (a finite number, not negative)", weight);
    if (s->npy->table->schema->label_kind != PLI_LABEL_TEXT && !pli_found_label(s->found, label)) return PLAIT_ENOMEM;
    if (s->npy->table->has_weights && !pli_rows_need_weights(s->rows)) return PLAIT_ENOMEM;
    if (b->weight != NULL) b->weight[b->rows] = (float)weight;
    b->label[b->rows++] = label + 0.0;
    b->row_start[b->rows] = b->entries;
    return PLAIT_OK;
}

static plait_status parse(const void *rules, const unsigned char *from, const unsigned char *to, pli_rows *rows,
                          pli_found *found, pli_bad *bad) {
    const struct pli_npy *npy = rules;
    const int64_t         i = source_of(npy, from);
    const pli_npy_array  *a = &npy->array[i];
    const unsigned char  *data = npy->sources->source[i].data;
    const size_t          row_bytes = a->item * (size_t)a->columns;
    const int64_t         first = (int64_t)(((size_t)(from - data) - a->begin) / row_bytes);
    const int64_t         n = (int64_t)((size_t)(to - from) / row_bytes);
    const parser          s = { npy, a, data, rows, found, bad };
    bad->at = NULL;
    if (!pli_rows_reserve_rows(rows, n)) return PLAIT_ENOMEM;
    for (int64_t r = 0; r < n; r++) {
        const plait_status status = read_row(&s, first + r);
        if (status < 0) return status;
    }
    return PLAIT_OK;
}

const pli_reader pli_npy_reader = { .name = "npy", .parse = parse };
