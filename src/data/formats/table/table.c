/* Opening csv and tsv: finds what each column is. */
#include "data/formats/table/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE_BYTES = 64 << 10 };

plait_status pli_table_no_memory(plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory for the columns");
}

/* --- names ------------------------------------------------------------------------------------------------------ */

static plait_status name_columns(pli_dataset *d, plait_error *err) {
    pli_table_rules *t = d->table;
    pli_text         buffer = { 0 };
    const char      *line = t->header_line.data != NULL ? t->header_line.data : "";
    pli_cells        cells =
        pli_cells_of((const unsigned char *)line, (const unsigned char *)line + t->header_line.length, t->delimiter);
    bool         bad = false;
    plait_status status = PLAIT_OK;
    t->cell = pli_calloc((size_t)t->cells, sizeof *t->cell);
    t->name = pli_calloc((size_t)t->cells, sizeof *t->name);
    if (t->cell == NULL || t->name == NULL) return pli_table_no_memory(err);
    for (int64_t i = 0; i < t->cells && status == PLAIT_OK; i++) {
        pli_cell    cell = { 0 };
        size_t      length = 0;
        const char *text = NULL;
        if (t->header && pli_cells_next(&cells, &cell, &bad)) text = pli_cell_text(&cell, &buffer, &length);
        t->name[i] =
            length > 0 && text != NULL ? pli_format("%.*s", (int)length, text) : pli_format("c%lld", (long long)i + 1);
        if (t->name[i] == NULL) status = pli_table_no_memory(err);
    }
    pli_text_free(&buffer);
    if (status == PLAIT_OK && bad)
        status =
            pli_fail(err, PLAIT_EFORMAT, "%s:1: expected a quote that ends on its line", d->sources->source[0].path);
    return status;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static plait_status check_names(const pli_dataset *d, plait_error *err) {
    const pli_table_rules *t = d->table;
    char                 **sorted = pli_array((size_t)t->cells, sizeof *sorted);
    plait_status           status = PLAIT_OK;
    if (sorted == NULL) return pli_table_no_memory(err);
    memcpy(sorted, t->name, (size_t)t->cells * sizeof *sorted);
    qsort(sorted, (size_t)t->cells, sizeof *sorted, by_name);
    for (int64_t i = 1; i < t->cells && status == PLAIT_OK; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            status = pli_fail(err, PLAIT_EFORMAT,
                              "%s:1: two columns are named \"%.60s\" (--header no reads the line as data)",
                              d->sources->source[0].path, sorted[i]);
    pli_free(sorted);
    return status;
}

static int64_t find_name(const pli_table_rules *t, const char *name) {
    for (int64_t i = 0; i < t->cells; i++)
        if (strcmp(t->name[i], name) == 0) return i;
    return -1;
}

static plait_status no_such_column(const pli_dataset *d, const char *what, const char *name, plait_error *err) {
    const pli_table_rules *t = d->table;
    if (pli_file_exists(name))
        return pli_fail(err, PLAIT_ENAME,
                        "%s: no column \"%.60s\" for %s; a file of labels goes with images in idx format and "
                        "arrays in npy format",
                        d->sources->source[0].path, name, what);
    const char *near = pli_nearest(name, (const char *const *)t->name, (size_t)t->cells);
    return pli_fail(err, PLAIT_ENAME, "%s: no column \"%.60s\" for %s%s%.60s%s", d->sources->source[0].path, name, what,
                    near != NULL ? "; did you mean \"" : "", near != NULL ? near : "", near != NULL ? "\"?" : "");
}

/* Finds a column by name, or by number: from 1, or negative from the end. */
static plait_status find_column(const pli_dataset *d, const char *what, const char *name, int64_t *out,
                                plait_error *err) {
    const pli_table_rules *t = d->table;
    int64_t                number;
    *out = find_name(t, name);
    if (*out >= 0 && t->header) return PLAIT_OK;
    if (!pli_parse_i64(name, &number)) return *out >= 0 ? PLAIT_OK : no_such_column(d, what, name, err);
    *out = number > 0 ? number - 1 : t->cells + number;
    if (number != 0 && *out >= 0 && *out < t->cells) return PLAIT_OK;
    return pli_fail(err, PLAIT_ENAME, "%s: no column %lld for %s: expected 1 to %lld, or -1 for the last",
                    d->sources->source[0].path, (long long)number, what, (long long)t->cells);
}

/* --- kinds ------------------------------------------------------------------------------------------------------ */

/* What the sampled cells of a column are; missing cells do not count. */
typedef struct kinds {
    int64_t  numbers, texts;
    int64_t  commas, odd; /* of the texts: numbers if commas are decimal; others that look like numbers */
    pli_cell comma_example, odd_example; /* the first of each */
    pli_range range; /* of the numbers */
} kinds;

/* A column of numbers may have errors in it: a single text, or one cell in ten, does not make it a text column; such
 * a cell is an error when its row is read. */
static bool is_text_column(const kinds *k) {
    return k->texts > 0 && (k->numbers == 0 || (k->texts > 1 && k->texts > (k->numbers + k->texts) / 10));
}

/* How many commas can only be decimal, and how many may also separate thousands. */
typedef struct commas {
    int64_t sure, either;
} commas;

static void sample_text(kinds *k, const pli_cell *cell, commas *seen) {
    const pli_odd_number odd = pli_cell_odd_number(cell);
    const bool           is_comma = odd == PLI_ODD_COMMA || odd == PLI_ODD_EITHER;
    k->texts++;
    seen->sure += odd == PLI_ODD_COMMA;
    seen->either += odd == PLI_ODD_EITHER;
    if (is_comma && k->commas++ == 0) k->comma_example = *cell;
    if (!is_comma && odd != PLI_ODD_NONE && k->odd++ == 0) k->odd_example = *cell;
}

static void sample_line(const pli_table_rules *t, kinds *found, commas *seen, const unsigned char *line,
                        const unsigned char *end) {
    pli_cells cells = pli_cells_of(line, end, t->delimiter);
    pli_cell  cell;
    bool      bad = false;
    for (int64_t i = 0; i < t->cells && pli_cells_next(&cells, &cell, &bad); i++) {
        if (pli_cell_is_missing(&cell)) continue;
        double value;
        if (pli_cell_is_number(&cell, false))
            found[i].numbers++;
        else
            sample_text(&found[i], &cell, seen);
        if (pli_cell_number(&cell, t->delimiter != ',', &value)) pli_range_add(&found[i].range, value);
    }
}

/* Counts the kinds of cells in the first rows of each segment of the data set. */
static void sample_kinds(const pli_dataset *d, kinds *found, commas *seen) {
    for (int64_t i = 0; i < d->segments; i++) {
        const pli_source    *source = &d->sources->source[d->segment[i].source];
        const unsigned char *p = source->data + d->segment[i].from, *to = source->data + d->segment[i].to, *next;
        const unsigned char *stop = to - p > SAMPLE_BYTES ? p + SAMPLE_BYTES : to;
        for (p = pli_table_reader.row(p, to); p < stop; p = pli_table_reader.row(next, to)) {
            const unsigned char *end = pli_line_end(p, to, &next);
            sample_line(d->table, found, seen, p, end);
        }
    }
}

/* may_choose: the user may set --text-columns here. With a model the choice was made before. */
static void note_commas(pli_dataset *d, const char *name, const pli_cell *example, bool may_choose) {
    pli_dataset_note(d, "%s: numbers have decimal commas, as %.*s in column \"%.60s\"%s%.60s%s",
                     d->sources->source[0].path, (int)example->length, (const char *)example->text, name,
                     may_choose ? " (--text-columns " : "", may_choose ? name : "",
                     may_choose ? " takes its cells as texts)" : "");
}

/* Decides whether commas are decimal. They are not if they separate cells. Writers of decimal commas separate cells
 * by semicolons. */
static void settle_commas(pli_dataset *d, const pli_schema *fixed, kinds *found, const commas *seen) {
    pli_table_rules *t = d->table;
    bool             told = false;
    t->decimal_comma = t->delimiter != ',' && (seen->sure > 0 || (seen->either > 0 && t->delimiter == ';') ||
                                               (fixed != NULL && fixed->decimal_comma));
    for (int64_t i = 0; t->decimal_comma && i < t->cells; i++) {
        kinds *k = &found[i];
        if (k->commas == 0) continue;
        k->numbers += k->commas;
        k->texts -= k->commas;
        k->commas = 0;
        if (!told && !is_text_column(k))
            note_commas(d, t->name[i], &k->comma_example, fixed == NULL);
        told = told || !is_text_column(k);
    }
}

/* Finds kinds [cells] in the data set's sample, and whether commas are decimal. */
static plait_status find_kinds(pli_dataset *d, const pli_schema *fixed, kinds **found_out, plait_error *err) {
    commas seen = { 0, 0 };
    kinds *found = pli_calloc((size_t)d->table->cells, sizeof *found);
    if (found == NULL) return pli_table_no_memory(err);
    sample_kinds(d, found, &seen);
    settle_commas(d, fixed, found, &seen);
    *found_out = found;
    return PLAIT_OK;
}

static void note_texts(pli_dataset *d, const char *name, const kinds *k) {
    const pli_cell *example = k->odd > 0 ? &k->odd_example : &k->comma_example;
    if (2 * (k->odd + k->commas) >= k->texts)
        pli_dataset_note(
            d,
            "column \"%.60s\" is read as texts: cells such as %.*s look like numbers, but are not written like 1234.5, "
            "with a point, without separated thousands and without a unit",
            name, (int)(example->length < 40 ? example->length : 40), (const char *)example->text);
    else if (k->numbers > 0)
        pli_dataset_note(d, "column \"%.60s\" is read as texts, though %lld of %lld cells in the sample are numbers",
                         name, (long long)k->numbers, (long long)(k->numbers + k->texts));
}

/* Marks the columns that hold texts: those found in the sample, and those that names lists ("city,3"). */
static plait_status mark_texts(pli_dataset *d, const char *names, plait_error *err) {
    pli_table_rules *t = d->table;
    kinds           *found = NULL;
    char            *copy = names != NULL ? pli_strdup(names) : NULL, *next = NULL;
    plait_status     status =
        names != NULL && copy == NULL ? pli_table_no_memory(err) : find_kinds(d, NULL, &found, err);
    for (int64_t i = 0; i < t->cells && status == PLAIT_OK; i++) {
        t->cell[i].range = found[i].range;
        if (!is_text_column(&found[i]) || i == t->group) continue;
        t->cell[i].role = PLI_ROLE_TEXT;
        note_texts(d, t->name[i], &found[i]);
    }
    for (char *name = copy != NULL && status == PLAIT_OK ? strtok_r(copy, ",", &next) : NULL;
         name != NULL && status == PLAIT_OK; name = strtok_r(NULL, ",", &next)) {
        int64_t at = 0;
        status = find_column(d, "texts", name, &at, err);
        if (status < 0) break;
        t->cell[at].role = PLI_ROLE_TEXT;
        t->cell[at].asked = true;
    }
    pli_free(copy);
    pli_free(found);
    return status;
}

/* --- roles, found in the data ------------------------------------------------------------------------------------- */

static const char *const label_names[] = { "label", "target", "class", "y", "Label", "Target", "Class", "Y" };
enum { LABEL_NAMES = sizeof label_names / sizeof *label_names };

static bool is_label_name(const char *name) {
    for (size_t i = 0; i < LABEL_NAMES; i++)
        if (strcmp(label_names[i], name) == 0) return true;
    return false;
}

static int64_t default_label(const pli_table_rules *t) {
    for (size_t i = 0; t->header && i < LABEL_NAMES; i++) {
        int64_t at = find_name(t, label_names[i]);
        if (at >= 0) return at;
    }
    return t->title ? t->cells - 1 : 0;
}

int64_t pli_table_name(const pli_table_rules *t, const char *name) { return find_name(t, name); }

/* Without labels, a column that would otherwise be the label is a feature. The user is told, since it may give the
 * answer away. */
static void note_no_label(pli_dataset *d) {
    const pli_table_rules *t = d->table;
    const int64_t          usual = default_label(t);
    if (t->title || is_label_name(t->name[usual]))
        pli_dataset_note(d, "note: column \"%.60s\" is a feature like all others, since rows have no label (--label "
                            "none)",
                         t->name[usual]);
}

/* Finds the column that says which rows belong together. */
static plait_status find_group(pli_dataset *d, const plait_data_opts *opts, int64_t label, int64_t weight,
                               plait_error *err) {
    pli_table_rules *t = d->table;
    if (opts->group_column == NULL) return PLAIT_OK;
    PLI_TRY(find_column(d, "the groups", opts->group_column, &t->group, err));
    if (t->group != label && t->group != weight) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL, "column \"%s\" is both %s and group; say which column the label is by --label",
                    t->name[t->group], t->group == label ? "label" : "weight");
}

static plait_status find_roles(pli_dataset *d, const plait_data_opts *opts, plait_error *err) {
    pli_table_rules *t = d->table;
    pli_schema      *schema = d->schema;
    const bool       none = schema->unlabelled;
    const bool       pairs = pli_table_of_pairs(opts);
    int64_t          label = none ? -1 : pairs ? pli_pairs_label(t) : default_label(t), weight = -1;
    if (none && !pairs) note_no_label(d);
    else if (!none && opts->label != NULL) PLI_TRY(find_column(d, "the label", opts->label, &label, err));
    if (opts->weight_column != NULL) PLI_TRY(find_column(d, "the weights", opts->weight_column, &weight, err));
    PLI_TRY(find_group(d, opts, label, weight, err));
    if (pairs && label < 0 && !none)
        return pli_fail(err, PLAIT_EFORMAT, "%s: %lld column%s and none of values: expected a user, an item and a "
                                            "value in each line; --label none reads users and items alone",
                        d->sources->source[0].path, (long long)t->cells, pli_plural(t->cells));
    if (label == weight && !none)
        return pli_fail(err, PLAIT_EINVAL, "column \"%s\" is both label and weight", t->name[label]);
    PLI_TRY(mark_texts(d, opts->text_columns, err));
    if (pairs) PLI_TRY(pli_pairs_columns(d, label, weight, err));
    schema->has_names = t->header;
    schema->delimiter = t->delimiter;
    schema->decimal_comma = t->decimal_comma;
    for (int64_t i = 0; i < t->cells; i++) {
        pli_table_cell *cell = &t->cell[i];
        bool            text = cell->role == PLI_ROLE_TEXT;
        if (i == t->group || (pairs && !text && i != label && i != weight)) continue;
        if (i == weight && text)
            return pli_fail(err, PLAIT_EFORMAT, "%s: the weights in column \"%.60s\" are not numbers",
                            d->sources->source[0].path, t->name[i]);
        cell->role = i == label    ? PLI_ROLE_LABEL
                     : i == weight ? PLI_ROLE_WEIGHT
                     : text        ? PLI_ROLE_TEXT
                                   : PLI_ROLE_NUMBER;
        cell->label_is_text = i == label && text;
        cell->column = (int32_t)schema->columns;
        if (cell->label_is_text) schema->label_kind = PLI_LABEL_TEXT;
        if (cell->label_is_text) schema->label_asked = cell->asked;
        if (pli_schema_add_column(schema, t->name[i], strlen(t->name[i]), cell->role) == NULL)
            return pli_table_no_memory(err);
    }
    return PLAIT_OK;
}

/* --- roles, by the model's schema --------------------------------------------------------------------- */

static void take_role(pli_dataset *d, int64_t at, int64_t column) {
    pli_table_cell *cell = &d->table->cell[at];
    cell->column = (int32_t)column;
    cell->role = d->schema->column[column].role;
    cell->label_is_text = cell->role == PLI_ROLE_LABEL && d->schema->label_kind == PLI_LABEL_TEXT;
}

/* Rows without names: they have the model's columns in the same order, with or without the label. */
static plait_status match_by_place(pli_dataset *d, plait_error *err) {
    const pli_schema *schema = d->schema;
    pli_table_rules  *t = d->table;
    const bool        has_column = pli_schema_label_column(schema) != NULL;
    bool              without_label = t->cells == schema->columns - 1 && has_column;
    if (t->cells != schema->columns && !without_label)
        return pli_fail(
            err, PLAIT_ESHAPE,
            "%s: expected %lld columns, as in the data that the model was trained on%s, found %lld",
            d->sources->source[0].path, (long long)schema->columns,
            has_column ? " (or one less, without the label)" : "", (long long)t->cells);
    for (int64_t column = 0, at = 0; column < schema->columns; column++) {
        const bool is_label = schema->column[column].role == PLI_ROLE_LABEL;
        if (without_label && is_label) continue;
        if (!is_label || !schema->unlabelled) take_role(d, at, column);
        at++;
    }
    return PLAIT_OK;
}

static plait_status match_by_name(pli_dataset *d, const plait_data_opts *opts, plait_error *err) {
    const pli_schema *schema = d->schema;
    pli_table_rules  *t = d->table;
    int64_t           ignored = 0, passed = 0, label = -1; /* passed: label columns that are not read */
    if (opts->label != NULL && !schema->unlabelled)
        PLI_TRY(find_column(d, "the label", opts->label, &label, err));
    for (int64_t column = 0; column < schema->columns; column++) {
        bool    is_label = schema->column[column].role == PLI_ROLE_LABEL;
        int64_t at = is_label && label >= 0 ? label : find_name(t, schema->column[column].name);
        if (is_label && schema->unlabelled)
            passed += at >= 0;
        else if (at >= 0)
            take_role(d, at, column);
        else if (!is_label && schema->column[column].role != PLI_ROLE_WEIGHT && !pli_pairs_may_lack(schema, column))
            return no_such_column(d, "a feature of the model", schema->column[column].name, err);
    }
    for (int64_t i = 0; i < t->cells; i++) ignored += t->cell[i].column < 0;
    ignored -= passed;
    if (ignored > 0) pli_dataset_note(d, "%lld columns that the model does not know are ignored", (long long)ignored);
    return PLAIT_OK;
}

/* --- opening ------------------------------------------------------------------------------------------ */

static void finish_rules(pli_dataset *d) {
    pli_table_rules *t = d->table;
    uint64_t         mask = (UINT64_C(1) << d->schema->hash_bits) - 1;
    int32_t          last = -1;
    t->schema = d->schema;
    t->in_order = d->schema->hash_bits == 0;
    pli_pairs_rules(t);
    for (int64_t i = 0; i < t->cells; i++) {
        pli_table_cell *cell = &t->cell[i];
        t->has_weights |= cell->role == PLI_ROLE_WEIGHT && cell->column >= 0;
        t->has_text |=
            cell->column >= 0 && ((cell->role == PLI_ROLE_TEXT && d->schema->hash_bits == 0) || cell->label_is_text);
        if (cell->column < 0) continue;
        t->in_order &= cell->column > last;
        last = cell->column;
        const char *name = d->schema->column[cell->column].name;
        cell->seed = pli_hash_bytes(name, strlen(name), 0);
        cell->hashed = (uint32_t)(cell->seed & mask);
        const int64_t origin = pli_origin_find(d->schema->origin, d->schema->origins, (uint64_t)cell->column);
        cell->origin = origin >= 0 ? d->schema->origin[origin].value : 0;
    }
}

plait_status pli_table_open(pli_dataset *d, const plait_data_opts *opts, const pli_schema *fixed, plait_error *err) {
    pli_table_rules *t = d->table;
    PLI_TRY(name_columns(d, err));
    PLI_TRY(check_names(d, err));
    t->group = -1;
    for (int64_t i = 0; i < t->cells; i++) t->cell[i].column = -1;
    t->fixed = t->labels_optional = fixed != NULL;
    if (fixed == NULL) {
        d->schema->keeps_missing = opts->keep_missing != 0;
        PLI_TRY(find_roles(d, opts, err));
        PLI_TRY(pli_table_origins(d, opts->origins != 0, err));
    } else {
        kinds *found = NULL;
        PLI_TRY(find_kinds(d, fixed, &found, err));
        pli_free(found);
        const bool numbered = !fixed->has_names && !t->header && pli_pairs_numbered(fixed, t->cells);
        PLI_TRY((fixed->has_names && t->header) || numbered ? match_by_name(d, opts, err) : match_by_place(d, err));
    }
    finish_rules(d);
    pli_schema_number(d->schema);
    d->reader = &pli_table_reader;
    d->rules = t;
    return PLAIT_OK;
}

void pli_table_close(pli_table_rules **table) {
    pli_table_rules *t = *table;
    if (t == NULL) return;
    for (int64_t i = 0; t->name != NULL && i < t->cells; i++) pli_free(t->name[i]);
    pli_free(t->name);
    pli_free(t->cell);
    pli_text_free(&t->header_line);
    pli_free(t);
    *table = NULL;
}
