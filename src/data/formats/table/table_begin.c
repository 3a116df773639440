/* Begins to read csv and tsv: finds the delimiter and the headers. */
#include "data/formats/table/table.h"

#include <stdio.h>
#include <string.h>

#include "data/formats/table/delimiter.h"

/* --- delimiter ------------------------------------------------------------------------------------------------- */

static void note_rival(pli_dataset *d, const pli_delimiters *found) {
    char        names[2][PLI_DELIMITER_NAME];
    const char *taken = pli_delimiter_name(found->delimiter, names[0]),
               *other = pli_delimiter_name(found->rival, names[1]);
    pli_dataset_note(d, "%s: delimiters %s and %s both give every line the same number of cells, %lld and %lld; %s is "
                        "used, --delimiter %s chooses the other", d->sources->source[0].path, taken, other,
                     (long long)found->cells, (long long)found->rival_cells, taken, other);
}

static plait_status choose_delimiter(pli_dataset *d, const plait_data_opts *opts, const pli_schema *fixed,
                                     const pli_lines *l, plait_error *err) {
    pli_table_rules *t = d->table;
    const bool       tsv = opts->format != NULL && strcmp(opts->format, "tsv") == 0;
    pli_delimiters   found = { .delimiter = '\t' };
    char             name[PLI_DELIMITER_NAME];
    if (opts->delimiter != NULL) PLI_TRY(pli_delimiter_read(opts->delimiter, &found.delimiter, err));
    if (tsv && found.delimiter != '\t')
        return pli_fail(err, PLAIT_EINVAL, "delimiter %s with format tsv, which has the tab: take --format csv",
                        pli_delimiter_name(found.delimiter, name));
    if (opts->delimiter == NULL && !tsv)
        pli_delimiter_find(l, fixed != NULL ? fixed->delimiter : '\0', fixed != NULL ? fixed->columns : 0, &found);
    t->delimiter = found.delimiter;
    if (found.rival != '\0') note_rival(d, &found);
    return PLAIT_OK;
}

/* --- header ---------------------------------------------------------------------------------------------------- */

/* scikit-learn's data files begin with "rows,features,class,class,...", which are no names. */
static bool is_title(const pli_lines *l, char delimiter) {
    pli_cell cell;
    int64_t  cells = l->n > 1 ? pli_lines_cells(l, 1, delimiter) : 0, first = pli_lines_cells(l, 0, delimiter);
    char     features[16];
    if (l->n < 2 || first < 3 || !pli_lines_cell(l, 0, delimiter, 0, &cell) ||
        !pli_cell_is_number(&cell, delimiter != ','))
        return false;
    size_t n = (size_t)snprintf(features, sizeof features, "%lld", (long long)cells - 1);
    if (!pli_lines_cell(l, 0, delimiter, 1, &cell) || cell.length != n || memcmp(cell.text, features, n) != 0)
        return false;
    for (int64_t i = 2; i < first; i++)
        if (pli_lines_cell(l, 0, delimiter, i, &cell) && pli_cell_is_number(&cell, delimiter != ',')) return false;
    return true;
}

static bool same_text(const pli_cell *a, const pli_cell *b) {
    return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

/* The first cell of the column is a text. 1: all other cells are numbers; -1: one of them is the same text; 0:
 * neither. */
static int judge_column(const pli_lines *l, char delimiter, int64_t column, const pli_cell *first) {
    bool numbers = true;
    for (int64_t i = 1; i < l->n; i++) {
        pli_cell cell;
        if (!pli_lines_cell(l, i, delimiter, column, &cell)) continue;
        if (same_text(first, &cell)) return -1;
        numbers &= pli_cell_is_missing(&cell) || pli_cell_is_number(&cell, delimiter != ',');
    }
    return numbers ? 1 : 0;
}

static bool looks_like_header(const pli_lines *l, char delimiter, const pli_schema *fixed) {
    int64_t cells = pli_lines_cells(l, 0, delimiter), over_numbers = 0, seen_again = 0;
    if (l->n < 2 && fixed == NULL) return false;
    for (int64_t i = 0; i < cells; i++) {
        pli_cell first;
        if (!pli_lines_cell(l, 0, delimiter, i, &first)) continue;
        for (int64_t k = 0; fixed != NULL && fixed->has_names && k < fixed->columns; k++)
            if (strlen(fixed->column[k].name) == first.length &&
                memcmp(fixed->column[k].name, first.text, first.length) == 0)
                return true;
        if (pli_cell_is_number(&first, delimiter != ',')) return false;
        if (pli_cell_is_missing(&first)) continue;
        int verdict = judge_column(l, delimiter, i, &first);
        over_numbers += verdict > 0;
        seen_again += verdict < 0;
    }
    return over_numbers > 0 || (seen_again == 0 && l->n >= 5);
}

/* Is each number below the cell of line 1, and is there one? */
static bool is_above_numbers(const pli_lines *l, char delimiter, int64_t column, const pli_cell *first) {
    bool any = false;
    for (int64_t i = 1; i < l->n; i++) {
        pli_cell cell;
        if (pli_lines_cell(l, i, delimiter, column, &cell)) any |= pli_cell_is_number(&cell, delimiter != ',');
    }
    return any && judge_column(l, delimiter, column, first) > 0;
}

/* Users and items are texts, so a header is known by its names alone. A text above numbers that is none of them may be
 * a mistyped value: then the user must say. */
static plait_status judge_pairs(const pli_lines *l, char delimiter, const pli_schema *fixed, const char *path,
                                bool *header_out, plait_error *err) {
    const int64_t cells = pli_lines_cells(l, 0, delimiter);
    pli_cell      cell;
    for (int64_t i = 0; i < cells; i++) {
        if (!pli_lines_cell(l, 0, delimiter, i, &cell)) continue;
        *header_out = *header_out || pli_pairs_is_name(cell.text, cell.length);
        for (int64_t k = 0; fixed != NULL && fixed->has_names && k < fixed->columns; k++)
            *header_out = *header_out || (strlen(fixed->column[k].name) == cell.length &&
                                          memcmp(fixed->column[k].name, cell.text, cell.length) == 0);
    }
    for (int64_t i = 0; i < cells && !*header_out; i++) {
        if (!pli_lines_cell(l, 0, delimiter, i, &cell) || pli_cell_is_missing(&cell) ||
            pli_cell_is_number(&cell, delimiter != ',') || !is_above_numbers(l, delimiter, i, &cell))
            continue;
        return pli_fail(err, PLAIT_EFORMAT, "%s:1: \"%.*s\" is no number, but those below it are; if this line has the "
                                            "columns' names, say --header yes (or name them user, item, rating); else "
                                            "correct the value",
                        path, (int)(cell.length < 40 ? cell.length : 40), (const char *)cell.text);
    }
    return PLAIT_OK;
}

/* Does each line begin with #, like a comment in other formats? */
static bool is_all_comments(const pli_source *source) {
    const unsigned char *p = source->data + source->begin, *to = source->data + source->bytes, *next;
    for (p = pli_table_reader.row(p, to); p < to; p = pli_table_reader.row(next, to)) {
        if (*p != '#') return false;
        (void)pli_line_end(p, to, &next);
    }
    return true;
}

/* Is there only one line, and does it have names? */
static bool is_header_alone(const pli_lines *l, char delimiter) {
    const int64_t cells = pli_lines_cells(l, 0, delimiter);
    pli_cell      cell;
    for (int64_t i = 0; i < cells; i++)
        if (pli_lines_cell(l, 0, delimiter, i, &cell) &&
            (pli_cell_is_missing(&cell) || pli_cell_is_number(&cell, delimiter != ',')))
            return false;
    return l->n == 1 && cells > 0;
}

static plait_status check_rows(const pli_dataset *d, const char *wish, const pli_lines *l, const pli_schema *fixed,
                               plait_error *err) {
    const char *path = d->sources->source[0].path;
    for (int64_t i = 0; i < d->sources->n; i++)
        if (is_all_comments(&d->sources->source[i]))
            return pli_fail(err, PLAIT_EFORMAT, "%s: no rows: all of its lines begin with #",
                            d->sources->source[i].path);
    if (fixed == NULL && d->sources->n == 1 && strcmp(wish, "auto") == 0 && is_header_alone(l, d->table->delimiter))
        return pli_fail(err, PLAIT_EFORMAT, "%s: no rows: its only line is read as names of columns (--header no reads "
                                            "it as a row)", path);
    return PLAIT_OK;
}

static plait_status choose_header(pli_dataset *d, const char *wish, bool pairs, const pli_lines *l,
                                  const pli_schema *fixed, plait_error *err) {
    pli_table_rules  *t = d->table;
    const pli_source *source = &d->sources->source[0];
    if (strcmp(wish, "auto") != 0 && strcmp(wish, "yes") != 0 && strcmp(wish, "no") != 0)
        return pli_fail(err, PLAIT_EINVAL, "header \"%s\": expected auto, yes or no", wish);
    if (l->n == 0) return pli_fail(err, PLAIT_EFORMAT, "%s: no rows", source->path);
    PLI_TRY(check_rows(d, wish, l, fixed, err));
    t->title = strcmp(wish, "auto") == 0 && is_title(l, t->delimiter);
    t->header = !t->title && strcmp(wish, "yes") == 0;
    if (pairs && !t->title && strcmp(wish, "auto") == 0)
        PLI_TRY(judge_pairs(l, t->delimiter, fixed, source->path, &t->header, err));
    else if (!t->title && strcmp(wish, "auto") == 0) t->header = looks_like_header(l, t->delimiter, fixed);
    if (!t->header && !t->title) return PLAIT_OK;
    pli_text_add_bytes(&t->header_line, l->begin[0], (size_t)(l->end[0] - l->begin[0]));
    if (t->title)
        pli_dataset_note(d, "%s: the first line gives sizes and class names and is left out%s", source->path,
                         d->unlabelled ? "" : "; the label is the last column");
    return t->header_line.failed ? pli_table_no_memory(err) : PLAIT_OK;
}

/* Sets the rows of each source to begin behind its header, which must equal the first source's. */
static plait_status skip_headers(pli_dataset *d, plait_error *err) {
    pli_table_rules *t = d->table;
    pli_lines       *l = pli_malloc(sizeof *l);
    plait_status     status = l != NULL ? PLAIT_OK : pli_table_no_memory(err);
    for (int64_t i = 0; status == PLAIT_OK && i < d->sources->n; i++) {
        const pli_source *source = &d->sources->source[i];
        pli_lines_first(source, l);
        size_t n = l->n > 0 ? (size_t)(l->end[0] - l->begin[0]) : 0;
        if (n == t->header_line.length && n > 0 && memcmp(l->begin[0], t->header_line.data, n) == 0)
            d->begin[i] = (size_t)(l->behind_first - source->data);
        else if (t->header)
            status = pli_fail(err, PLAIT_EFORMAT, "%s:1: expected the header of %s", source->path,
                              d->sources->source[0].path);
    }
    pli_free(l);
    return status;
}

plait_status pli_table_begin(pli_dataset *d, const plait_data_opts *opts, const pli_schema *fixed, plait_error *err) {
    pli_table_rules *t = d->table = pli_calloc(1, sizeof *t);
    pli_lines       *l = pli_malloc(sizeof *l);
    plait_status     status = t != NULL && l != NULL ? PLAIT_OK : pli_table_no_memory(err);
    if (status == PLAIT_OK) {
        pli_lines_first(&d->sources->source[0], l);
        status = choose_delimiter(d, opts, fixed, l, err);
        if (status == PLAIT_OK)
            status = choose_header(d, opts->header != NULL ? opts->header : "auto", pli_table_of_pairs(opts), l,
                                   fixed, err);
        if (status == PLAIT_OK) t->cells = pli_lines_cells(l, t->title && l->n > 1 ? 1 : 0, t->delimiter);
    }
    pli_free(l);
    if (status == PLAIT_OK && t->cells == 1 && fixed == NULL && !d->unlabelled &&
        (opts->delimiter != NULL || opts->format == NULL || strcmp(opts->format, "auto") == 0))
        pli_dataset_note(d, "%s: read as a table of one column, the labels, so its rows have no features; --format "
                            "chooses another format", d->sources->source[0].path);
    if (status == PLAIT_OK && t->cells > PLI_MAX_COLUMNS)
        status = pli_fail(err, PLAIT_EFORMAT, "%s:1: %lld columns: a table has at most %d; write them as libsvm data",
                          d->sources->source[0].path, (long long)t->cells, PLI_MAX_COLUMNS);
    if (status == PLAIT_OK && t->cells == 0)
        status =
            pli_fail(err, PLAIT_EFORMAT, "%s:1: expected quotes that end on their line, and a delimiter after them",
                     d->sources->source[0].path);
    return status == PLAIT_OK && t->header_line.length > 0 ? skip_headers(d, err) : status;
}
