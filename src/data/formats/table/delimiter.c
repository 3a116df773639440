/* Finds the character that separates the cells of a table. Each candidate cuts a sample of lines; the one that cuts
 * all of them into the same number of cells wins. */
#include "data/formats/table/delimiter.h"

#include <stdio.h>

#include "data/formats/table/table.h"

enum { SAMPLE_BYTES = 1 << 18, CANDIDATES = 6 };

/* --- lines ------------------------------------------------------------------------------------------------------ */

void pli_lines_first(const pli_source *source, pli_lines *out) {
    const unsigned char *p = source->data + source->begin, *to = source->data + source->bytes, *next;
    out->n = 0;
    out->behind_first = to;
    for (p = pli_table_reader.row(p, to); p < to && out->n < PLI_LINES; p = pli_table_reader.row(next, to)) {
        out->begin[out->n] = p;
        out->end[out->n] = pli_line_end(p, to, &next);
        if (out->n++ == 0) out->behind_first = next;
    }
}

int64_t pli_lines_cells(const pli_lines *l, int64_t line, char delimiter) {
    pli_cells cells = pli_cells_of(l->begin[line], l->end[line], delimiter);
    pli_cell  cell;
    bool      bad = false;
    int64_t   n = 0;
    while (pli_cells_next(&cells, &cell, &bad)) n++;
    return bad ? 0 : n;
}

bool pli_lines_cell(const pli_lines *l, int64_t line, char delimiter, int64_t at, pli_cell *cell) {
    pli_cells cells = pli_cells_of(l->begin[line], l->end[line], delimiter);
    bool      bad = false;
    for (int64_t i = 0; i <= at; i++)
        if (!pli_cells_next(&cells, cell, &bad)) return false;
    return true;
}

/* How many lines are looked at: few, if they are long. */
static int64_t sampled(const pli_lines *l) {
    int64_t bytes = 0, n = 0;
    for (; n < l->n && (n < 2 || bytes < SAMPLE_BYTES); n++) bytes += l->end[n] - l->begin[n];
    return n;
}

/* --- names ------------------------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    char        delimiter;
} names[] = { { "tab", '\t' },      { "space", ' ' }, { "comma", ',' },
              { "semicolon", ';' }, { "pipe", '|' },  { "\\t", '\t' } };

plait_status pli_delimiter_read(const char *text, char *delimiter_out, plait_error *err) {
    static const char no_delimiters[] = "\"'.+-\n\r";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i].name) != 0) continue;
        *delimiter_out = names[i].delimiter;
        return PLAIT_OK;
    }
    const char c = text[0];
    const bool printable = (c >= ' ' && c <= '~') || c == '\t';
    const bool of_words = (unsigned)((c | 32) - 'a') < 26 || (unsigned)(c - '0') < 10;
    if (c != '\0' && text[1] == '\0' && printable && !of_words && strchr(no_delimiters, c) == NULL) {
        *delimiter_out = c;
        return PLAIT_OK;
    }
    return pli_fail(err, PLAIT_EINVAL,
                    "delimiter \"%.20s\": expected tab, space, comma, semicolon, pipe, or one character that is no "
                    "letter, digit, quote, point or sign",
                    text);
}

const char *pli_delimiter_name(char delimiter, char name[PLI_DELIMITER_NAME]) {
    if (delimiter == '\t' || delimiter == ' ') return delimiter == ' ' ? "space" : "tab";
    const bool plain = strchr(",:/=@%", delimiter) != NULL;
    snprintf(name, PLI_DELIMITER_NAME, plain ? "%c" : "'%c'", delimiter);
    return name;
}

/* --- the search ------------------------------------------------------------------------------------------------- */

typedef struct candidate {
    char    delimiter;
    int64_t cells, alike; /* cells of most lines; how many lines have that many */
    bool    all;          /* alike: all lines, or all but the first, which may be a title */
    int64_t torn;         /* if there is a choice: cells with a quote in their middle */
    double  numbers;      /* if there is a choice: share of the cells that are numbers */
} candidate;

/* Cuts the lines into cells, and takes the number of cells that most lines have; if two are equally frequent, the
 * greater. */
static candidate cut(const pli_lines *l, int64_t n, char delimiter) {
    int64_t   count[PLI_LINES];
    candidate c = { .delimiter = delimiter };
    for (int64_t i = 0; i < n; i++) count[i] = pli_lines_cells(l, i, delimiter);
    for (int64_t i = 0; i < n; i++) {
        int64_t same = 0;
        if (count[i] < 2) continue;
        for (int64_t k = 0; k < n; k++) same += count[k] == count[i];
        if (same < c.alike || (same == c.alike && count[i] <= c.cells)) continue;
        c.cells = count[i];
        c.alike = same;
    }
    c.all = c.alike == n || (c.alike == n - 1 && n > 1 && count[0] != c.cells);
    return c;
}

/* Looks into the cells. The first line may have names, so numbers are counted in the others. */
static void look_at_cells(const pli_lines *l, int64_t n, candidate *c) {
    int64_t numbers = 0, filled = 0;
    for (int64_t i = 0; i < n; i++) {
        pli_cells cells = pli_cells_of(l->begin[i], l->end[i], c->delimiter);
        pli_cell  cell;
        bool      bad = false;
        while (pli_cells_next(&cells, &cell, &bad)) {
            const bool quoted = cell.text > l->begin[i] && cell.text[-1] == '"';
            c->torn += !quoted && memchr(cell.text, '"', cell.length) != NULL;
            if ((i == 0 && n > 1) || pli_cell_is_missing(&cell)) continue;
            filled++;
            numbers += pli_cell_is_number(&cell, c->delimiter != ',');
        }
    }
    c->numbers = filled > 0 ? (double)numbers / (double)filled : 0;
}

/* A candidate that cuts quotes apart stands inside them. A tab separates cells and is rarely inside one; blanks are
 * inside many. */
static bool is_better(const candidate *a, const candidate *b) {
    if (b->cells == 0 || a->alike != b->alike) return a->alike > b->alike;
    if (a->torn != b->torn) return a->torn < b->torn;
    if ((a->delimiter == '\t') != (b->delimiter == '\t')) return a->delimiter == '\t';
    if (a->numbers > b->numbers || a->numbers < b->numbers) return a->numbers > b->numbers;
    if ((a->delimiter == ' ') != (b->delimiter == ' ')) return b->delimiter == ' ';
    return a->cells > b->cells;
}

/* Some lines may be wrong; they are reported when they are read. */
static bool is_enough(const candidate *c, int64_t n) { return c->cells > 1 && (c->all || 4 * c->alike >= 3 * n); }

/* Collects the candidates that cut the lines well enough in list [CANDIDATES]; the known one first. */
static int gather(const pli_lines *l, int64_t n, char known, candidate *list) {
    const char all[CANDIDATES] = { known, '\t', ';', '|', ',', ' ' };
    int        found = 0;
    for (int i = known == '\0'; i < CANDIDATES; i++) {
        if (i > 0 && all[i] == known) continue;
        candidate c = cut(l, n, all[i]);
        if (is_enough(&c, n)) list[found++] = c;
    }
    return found;
}

void pli_delimiter_find(const pli_lines *l, char known, int64_t known_cells, pli_delimiters *out) {
    const int64_t n = sampled(l);
    candidate     list[CANDIDATES], best = { 0 };
    const int     found = gather(l, n, known, list);
    *out = (pli_delimiters){ .delimiter = ',' };
    for (int i = 0; i < found; i++) {
        candidate *c = &list[i];
        if (c->delimiter == known && (c->cells == known_cells || c->cells == known_cells - 1)) {
            *out = (pli_delimiters){ .delimiter = known, .cells = c->cells };
            return;
        }
        if (found > 1) look_at_cells(l, n, c);
        if (is_better(c, &best)) best = *c;
    }
    if (found == 0) return;
    *out = (pli_delimiters){ .delimiter = best.delimiter, .cells = best.cells };
    for (int i = 0; i < found && best.delimiter != ' '; i++) {
        const candidate *c = &list[i];
        if (c->delimiter == best.delimiter || c->delimiter == ' ') continue;
        if (c->alike < best.alike || c->torn > best.torn) continue;
        out->rival = c->delimiter;
        out->rival_cells = c->cells;
    }
}
