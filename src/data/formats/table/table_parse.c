/* Rows of csv and tsv into CSR. Numbers are read in place; zeros are left out; a missing number is NaN until the
 * mean of its column is known. */
#include <math.h>
#include <stdio.h>

#include "data/formats/table/table.h"

typedef const unsigned char *cursor;

/* --- cells ---------------------------------------------------------------------------------------------------- */

const char *pli_cell_text(const pli_cell *cell, pli_text *buffer, size_t *length_out) {
    bool utf8 = pli_is_utf8(cell->text, cell->length),
         zero = cell->length > 0 && memchr(cell->text, '\0', cell->length) != NULL;
    *length_out = cell->length;
    if (!cell->doubled && utf8 && !zero) return (const char *)cell->text;
    buffer->length = 0;
    for (size_t i = 0; i < cell->length; i++) {
        unsigned char c = cell->text[i] != '\0' ? cell->text[i] : '?',
                      pair[2] = { (unsigned char)(0xc0 | c >> 6), 0x80 | (c & 0x3f) };
        if (utf8 || c < 0x80)
            pli_text_add_bytes(buffer, &c, 1);
        else
            pli_text_add_bytes(buffer, pair, 2);
        if (c == '"' && cell->doubled) i++;
    }
    *length_out = buffer->length;
    return buffer->failed ? NULL : buffer->data != NULL ? buffer->data : "";
}

/* --- numbers -------------------------------------------------------------------------------------------------- */

/* Parses a copy, which may be read beyond its end, and in which a decimal comma can be replaced by a point. */
bool pli_cell_number(const pli_cell *cell, bool decimal_comma, double *out) {
    unsigned char copy[128 + PLI_PARSE_PAD] = { 0 };
    if (cell->length == 0 || cell->length > 127) return false;
    memcpy(copy, cell->text, cell->length);
    unsigned char *comma = decimal_comma ? memchr(copy, ',', cell->length) : NULL;
    if (comma != NULL && memchr(copy, '.', cell->length) == NULL) *comma = '.';
    return pli_number_f64(copy, out) == copy + cell->length;
}

static bool is_infinity(const pli_cell *cell) {
    static const char *const words[] = { "inf", "Inf", "INF", "infinity", "Infinity" };
    size_t                   sign = cell->length > 0 && (*cell->text == '-' || *cell->text == '+');
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) == cell->length - sign && memcmp(words[i], cell->text + sign, cell->length - sign) == 0)
            return true;
    return false;
}

bool pli_cell_is_number(const pli_cell *cell, bool decimal_comma) {
    double value;
    return pli_cell_number(cell, decimal_comma, &value) || is_infinity(cell);
}

static size_t digits_at(cursor p, cursor end) {
    cursor from = p;
    while (p < end && (unsigned)(*p - '0') < 10) p++;
    return (size_t)(p - from);
}

/* Where digits in groups of three end that `mark` separates, such as 1,234,567; NULL: they are not written so. */
static cursor groups_end(cursor p, cursor end, unsigned char mark, size_t *groups_out) {
    size_t first = digits_at(p, end);
    *groups_out = 1;
    if (first < 1 || first > 3 || *p == '0') return NULL;
    for (p += first; end - p >= 4 && *p == mark && digits_at(p + 1, end) == 3; p += 4) ++*groups_out;
    return *groups_out > 1 ? p : NULL;
}

/* Is there nothing before `end`, or only a fraction behind `mark`? */
static bool is_fraction(cursor p, cursor end, unsigned char mark) {
    return p == end || (*p == mark && digits_at(p + 1, end) == (size_t)(end - p - 1) && end - p > 1);
}

/* Is the cell a number with a unit? */
static bool has_unit(const pli_cell *cell) {
    static const char *const units[] = { "%", "$", "\xe2\x82\xac", "\xc2\xa3" };
    pli_cell                 bare = *cell;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const size_t n = strlen(units[i]);
        if (cell->length <= n) continue;
        if (memcmp(cell->text, units[i], n) == 0) bare.text += n;
        else if (memcmp(cell->text + cell->length - n, units[i], n) != 0) continue;
        bare.length = cell->length - n;
        for (; bare.length > 0 && *bare.text == ' '; bare.length--) bare.text++;
        while (bare.length > 0 && bare.text[bare.length - 1] == ' ') bare.length--;
        return pli_cell_is_number(&bare, true) || pli_cell_odd_number(&bare) != PLI_ODD_NONE;
    }
    return false;
}

pli_odd_number pli_cell_odd_number(const pli_cell *cell) {
    double       value;
    size_t       groups;
    const cursor end = cell->text + cell->length;
    cursor       p = cell->text, tail;
    if (cell->length > 127 || cell->length == 0) return PLI_ODD_NONE;
    p += *p == '-' || *p == '+';
    if (p < end && (tail = groups_end(p, end, ',', &groups)) != NULL && is_fraction(tail, end, '.'))
        return groups == 2 && tail == end ? PLI_ODD_EITHER : PLI_ODD_GROUPED;
    if (p < end && (tail = groups_end(p, end, '.', &groups)) != NULL && (tail != end || groups > 2) &&
        is_fraction(tail, end, ','))
        return PLI_ODD_GROUPED;
    if (memchr(cell->text, ',', cell->length) != NULL && pli_cell_number(cell, true, &value)) return PLI_ODD_COMMA;
    return has_unit(cell) ? PLI_ODD_UNIT : PLI_ODD_NONE;
}

/* --- a row ---------------------------------------------------------------------------------------------------- */

typedef struct parser {
    const pli_table_rules *t;
    pli_rows              *rows;
    pli_found             *found;
    pli_bad               *bad;
    plait_status           status;
    pli_text               buffer;
    double                 label;
    float                  weight;
    bool                   any_missing, has_label;
} parser;

static bool refuse(parser *s, cursor at, int64_t column, const char *expected, const pli_cell *cell) {
    int n = cell != NULL ? (int)(cell->length < 40 ? cell->length : 40) : 0;
    if (cell != NULL)
        s->status = pli_bad_at(s->bad, at, "column \"%.40s\": expected %s, found \"%.*s\"", s->t->name[column],
                               expected, n, (const char *)cell->text);
    else
        s->status = pli_bad_at(s->bad, at, "column \"%.40s\": expected %s", s->t->name[column], expected);
    return false;
}

/* Refuses a text in a column of numbers. It may be an error in the data, or the column may be meant as texts. */
static bool refuse_number(parser *s, int64_t i, const pli_cell *cell, const char *expected) {
    refuse(s, cell->text, i, expected, cell);
    if (pli_cell_is_number(cell, s->t->decimal_comma) || s->t->fixed || s->t->user >= 0) return false;
    size_t used = strlen(s->bad->text);
    snprintf(s->bad->text + used, sizeof s->bad->text - used,
             "; correct the cell or leave it empty, or read the whole column as texts: --text-columns %.40s",
             s->t->name[i]);
    return false;
}

static bool no_memory(parser *s) {
    s->bad->at = NULL;
    s->status = PLAIT_ENOMEM;
    return false;
}

/* Room is reserved: one entry for each cell. */
static bool put(parser *s, uint32_t key, float value) {
    pli_block *b = &s->rows->b;
    if (value != 1.0f && b->value == NULL && !pli_rows_need_values(s->rows)) return no_memory(s);
    b->col[b->entries] = key;
    if (b->value != NULL) b->value[b->entries] = value;
    b->entries++;
    return true;
}

static bool put_number(parser *s, const pli_table_cell *c, float value) {
    if (value == 0.0f) return true;
    return put(s, s->t->schema->hash_bits > 0 ? c->hashed : (uint32_t)s->t->schema->column[c->column].first_key, value);
}

static bool read_number(parser *s, int64_t i, const pli_cell *cell) {
    const pli_table_cell *c = &s->t->cell[i];
    double                value;
    if (pli_cell_is_missing(cell)) {
        if (s->t->schema->hash_bits > 0) return true;
        s->any_missing = true;
        return put(s, (uint32_t)s->t->schema->column[c->column].first_key, NAN);
    }
    if (!pli_cell_number(cell, s->t->decimal_comma, &value) || fabs(value) > 3.4e38)
        return refuse_number(s, i, cell, "a finite number");
    return put_number(s, c, (float)(value - c->origin));
}

/* Gives the hashed key its name, if one is wanted: "column=text". */
static bool name_text(parser *s, uint32_t key, const char *column, const char *text, size_t length) {
    pli_names *names = s->found->names;
    pli_text   name = { 0 };
    if (names == NULL || !pli_names_wants(names, key)) return true;
    pli_text_add(&name, "%s=", column);
    pli_text_add_bytes(&name, text, length);
    const bool good = !name.failed && pli_names_give(names, key, name.data, name.length);
    pli_text_free(&name);
    return good || no_memory(s);
}

/* Remembers the first user and the first item that the model does not know. */
static void note_cold(parser *s, int32_t column, const char *text, size_t length) {
    const int which = column == s->t->item;
    char     *to = s->found->cold_text[which];
    if (s->t->user < 0 || (column != s->t->user && column != s->t->item)) return;
    if (s->found->cold[which]++ == 0)
        snprintf(to, sizeof s->found->cold_text[which], "%.*s", length < 39 ? (int)length : 39, text);
}

static bool read_text(parser *s, int64_t i, const pli_cell *cell) {
    const pli_table_cell *c = &s->t->cell[i];
    const pli_column     *column = &s->t->schema->column[c->column];
    size_t                length;
    if (pli_cell_is_missing(cell) && s->t->user >= 0 && !s->t->fixed)
        return refuse(s, cell->text, i, c->column == s->t->user ? "a user" : "an item", cell);
    if (pli_cell_is_missing(cell)) return true;
    const char *text = pli_cell_text(cell, &s->buffer, &length);
    if (text == NULL) return no_memory(s);
    if (s->t->schema->hash_bits > 0) {
        uint64_t mask = (UINT64_C(1) << s->t->schema->hash_bits) - 1;
        const uint32_t key = (uint32_t)(pli_hash_bytes(text, length, c->seed + 1) & mask);
        return name_text(s, key, column->name, text, length) && put(s, key, 1.0f);
    }
    int64_t place = pli_dict_find(&column->dict, text, length);
    if (place >= 0) return put(s, (uint32_t)(column->first_key + (uint64_t)place), 1.0f);
    s->found->unknown_texts++;
    note_cold(s, c->column, text, length);
    return true;
}

static bool read_label(parser *s, int64_t i, const pli_cell *cell) {
    const pli_table_cell *c = &s->t->cell[i];
    size_t                length;
    s->has_label = !pli_cell_is_missing(cell);
    if (!s->has_label) return s->t->labels_optional ? true : refuse(s, cell->text, i, "a label", cell);
    if (!c->label_is_text) {
        if (pli_cell_number(cell, s->t->decimal_comma, &s->label)) return true;
        if (!s->t->labels_optional)
            return refuse_number(s, i, cell, s->t->user >= 0 ? "a value (a finite number)"
                                                             : "a label (a finite number)");
        s->has_label = false;
        s->found->unknown_labels++;
        return true;
    }
    const char *text = pli_cell_text(cell, &s->buffer, &length);
    if (text == NULL) return no_memory(s);
    int64_t place = pli_dict_find(&s->t->schema->column[c->column].dict, text, length);
    s->has_label = place >= 0;
    s->label = (double)place;
    s->found->unknown_labels += place < 0;
    return true;
}

static bool read_weight(parser *s, int64_t i, const pli_cell *cell) {
    double value;
    if (!pli_cell_number(cell, s->t->decimal_comma, &value) || value < 0 || value > 3.4e38)
        return refuse(s, cell->text, i, "a weight (a finite number, not negative)", cell);
    s->weight = (float)value;
    return true;
}

static bool read_cell(parser *s, int64_t i, const pli_cell *cell) {
    const pli_table_cell *c = &s->t->cell[i];
    if (c->column < 0) return true;
    switch (c->role) {
    case PLI_ROLE_NUMBER: return read_number(s, i, cell);
    case PLI_ROLE_TEXT: return read_text(s, i, cell);
    case PLI_ROLE_LABEL: return read_label(s, i, cell);
    case PLI_ROLE_WEIGHT: return read_weight(s, i, cell);
    }
    return true;
}

/* Reads a plain number as the label. */
static inline bool read_plain_label(parser *s, pli_cells *cells, const pli_table_cell *c) {
    cursor end = c->label_is_text ? NULL : pli_number_f64(cells->at, &s->label);
    if (end == NULL || end > cells->end || !pli_at_delimiter(cells, end)) return false;
    s->has_label = true;
    pli_cells_step(cells, end);
    return true;
}

/* Reads a plain number in the next cell. false: look closer, or see s->status. */
static inline bool read_plain(parser *s, pli_cells *cells, const pli_table_cell *c) {
    float  value;
    cursor p = cells->at;
    if (c->column < 0 || p >= cells->end) return false;
    if (c->role == PLI_ROLE_LABEL) return read_plain_label(s, cells, c);
    if (c->role != PLI_ROLE_NUMBER) return false;
    double wide;
    cursor end = c->origin == 0 ? pli_number_f32(p, &value) : pli_number_f64(p, &wide);
    if (c->origin != 0 && end != NULL) value = (float)(wide - c->origin);
    if (end == NULL || end > cells->end || !pli_at_delimiter(cells, end)) return false;
    if (!put_number(s, c, value)) return false;
    pli_cells_step(cells, end);
    return true;
}

/* Sorts the row's keys, and notes which entries wait for a mean. */
static bool settle_entries(parser *s) {
    pli_rows  *rows = s->rows;
    pli_block *b = &rows->b;
    int64_t    from = b->row_start[b->rows], repeat;
    if (!s->t->in_order && !pli_rows_sort_tail(rows, from, 0, s->t->schema->hash_bits > 0, &repeat))
        return no_memory(s);
    for (int64_t i = from; s->any_missing && i < b->entries; i++)
        if (isnan(b->value[i]) && !pli_rows_note_missing(rows, i)) return no_memory(s);
    return true;
}

static bool end_row(parser *s) {
    pli_block *b = &s->rows->b;
    if (!settle_entries(s)) return false;
    if (!s->has_label) s->label = NAN;
    if (s->t->schema->label_kind != PLI_LABEL_TEXT && !pli_found_label(s->found, s->label)) return no_memory(s);
    if (s->t->has_weights && !pli_rows_need_weights(s->rows)) return no_memory(s);
    if (b->weight != NULL) b->weight[b->rows] = s->weight;
    b->label[b->rows++] = s->label + 0.0;
    b->row_start[b->rows] = b->entries;
    return true;
}

static bool parse_row(parser *s, cursor line, cursor end) {
    const pli_table_rules *t = s->t;
    pli_cells              cells = pli_cells_of(line, end, t->delimiter);
    pli_cell               cell;
    bool                   bad = false;
    int64_t                n = 0;
    s->weight = 1.0f;
    s->any_missing = s->has_label = false;
    if (!pli_rows_reserve(s->rows, t->cells) ||
        (s->rows->b.rows == s->rows->row_capacity && !pli_rows_reserve_rows(s->rows, 1)))
        return no_memory(s);
    for (; n < t->cells; n++) {
        if (read_plain(s, &cells, &t->cell[n])) continue;
        if (s->status < 0) return false;
        cursor at = cells.at;
        if (!pli_cells_next(&cells, &cell, &bad)) break;
        if (bad) return refuse(s, at, n, "a delimiter after the closing quote", NULL);
        if (!read_cell(s, n, &cell)) return false;
    }
    if (bad) return refuse(s, line, n, "a quote that ends on its line", NULL);
    bool more = n == t->cells && cells.at <= cells.end;
    if (n < t->cells || more) {
        s->status = pli_bad_at(s->bad, line, "expected %lld cells, found %s%lld", (long long)t->cells,
                               more ? "more than " : "", (long long)n);
        return false;
    }
    return end_row(s);
}

static plait_status parse_table(const void *rules, const unsigned char *from, const unsigned char *to, pli_rows *rows,
                                pli_found *found, pli_bad *bad) {
    parser s = { .t = rules, .rows = rows, .found = found, .bad = bad };
    cursor next = from;
    bad->at = NULL;
    if (!pli_rows_reserve_rows(rows, 1)) return PLAIT_ENOMEM;
    for (cursor p = pli_table_reader.row(from, to); p < to && s.status == PLAIT_OK;
         p = pli_table_reader.row(next, to)) {
        cursor end = pli_line_end(p, to, &next);
        (void)parse_row(&s, p, end);
    }
    pli_text_free(&s.buffer);
    return s.status;
}

/* Skips empty lines. */
static const unsigned char *table_row(const unsigned char *from, const unsigned char *to) {
    while (from < to && (*from == '\n' || (*from == '\r' && from + 1 < to && from[1] == '\n'))) from++;
    return from;
}

const pli_reader pli_table_reader = { .name = "table", .parse = parse_table, .row = table_row };
