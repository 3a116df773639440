/* data/formats/table/cells.h - a line of csv, tsv and similar formats, cell by cell.
 *
 * A cell may stand in double quotes; inside, "" is a quote and the delimiter is text. A cell ends on its line.
 * Blanks around a cell do not count. With the delimiter ' ' any run of blanks delimits. */
#ifndef PLI_DATA_CELLS_H
#define PLI_DATA_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct pli_cell {
    const unsigned char *text;
    size_t               length;
    bool                 doubled; /* it was quoted, and contains "" */
} pli_cell;

typedef struct pli_cells {
    const unsigned char *at, *end; /* at > end: no more cells */
    char                 delimiter;
} pli_cells;

/** The end of the line at p, before "\n" or "\r\n"; *next_out is the next line. */
static inline const unsigned char *pli_line_end(const unsigned char *p, const unsigned char *to,
                                                const unsigned char **next_out) {
    const unsigned char *newline = memchr(p, '\n', (size_t)(to - p)), *end = newline != NULL ? newline : to;
    *next_out = newline != NULL ? newline + 1 : to;
    return end > p && end[-1] == '\r' ? end - 1 : end;
}

static inline bool pli_is_space(unsigned char c) { return c == ' ' || c == '\t'; }

static inline pli_cells pli_cells_of(const unsigned char *line, const unsigned char *end, char delimiter) {
    while (delimiter == ' ' && line < end && pli_is_space(*line)) line++;
    while (delimiter == ' ' && end > line && pli_is_space(end[-1])) end--;
    return (pli_cells){ line, end, delimiter };
}

/** Steps over the delimiter at `at`, which is at the end of a cell. */
static inline void pli_cells_step(pli_cells *cells, const unsigned char *at) {
    const unsigned char *end = cells->end;
    if (at >= end) {
        cells->at = end + 1;
        return;
    }
    at++;
    while (cells->delimiter == ' ' && at < end && pli_is_space(*at)) at++;
    cells->at = at;
}

static inline bool pli_at_delimiter(const pli_cells *cells, const unsigned char *p) {
    return p >= cells->end || *p == (unsigned char)cells->delimiter || (cells->delimiter == ' ' && *p == '\t');
}

/** The next cell; false: there is none. *bad_out: a quote does not end, or text follows it. */
static inline bool pli_cells_next(pli_cells *cells, pli_cell *cell, bool *bad_out) {
    const unsigned char *p = cells->at, *end = cells->end;
    if (p > end) return false;
    while (p < end && pli_is_space(*p) && !pli_at_delimiter(cells, p)) p++;
    *cell = (pli_cell){ p, 0, false };
    if (p < end && *p == '"') {
        cell->text = ++p;
        while ((p = memchr(p, '"', (size_t)(end - p))) != NULL && p + 1 < end && p[1] == '"') {
            cell->doubled = true;
            p += 2;
        }
        if (p == NULL) {
            *bad_out = true;
            return false;
        }
        cell->length = (size_t)(p - cell->text);
        p++;
        while (p < end && pli_is_space(*p) && !pli_at_delimiter(cells, p)) p++;
        *bad_out |= !pli_at_delimiter(cells, p);
    } else {
        while (!pli_at_delimiter(cells, p)) p++;
        const unsigned char *last = p;
        while (last > cell->text && pli_is_space(last[-1])) last--;
        cell->length = (size_t)(last - cell->text);
    }
    pli_cells_step(cells, p);
    return true;
}

/** Is the cell empty, or a word that means nothing, such as NA? */
static inline bool pli_cell_is_missing(const pli_cell *cell) {
    static const char *const words[] = { "",    "NA", "N/A",  "n/a",  "na",   "nan", "NaN",
                                         "NAN", "?",  "null", "NULL", "None", "none" };
    if (cell->length > 4) return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) == cell->length && memcmp(words[i], cell->text, cell->length) == 0) return true;
    return false;
}

#endif
