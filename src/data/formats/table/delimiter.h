/* data/formats/table/delimiter.h - the first lines of a table, and the delimiter of their cells. */
#ifndef PLI_DATA_DELIMITER_H
#define PLI_DATA_DELIMITER_H

#include "data/formats/table/cells.h"
#include "data/source/source.h"

enum { PLI_LINES = 200 };

/* The first rows of a source, without blank lines. */
typedef struct pli_lines {
    const unsigned char *begin[PLI_LINES], *end[PLI_LINES], *behind_first;
    int64_t              n;
} pli_lines;

/** Finds the first rows of a source. */
void pli_lines_first(const pli_source *source, pli_lines *out);
/** How many cells a line has; 0: a quote does not end. */
int64_t pli_lines_cells(const pli_lines *lines, int64_t line, char delimiter);
/** Cell `at` of a line; false: there is none. */
bool pli_lines_cell(const pli_lines *lines, int64_t line, char delimiter, int64_t at, pli_cell *cell);

enum { PLI_DELIMITER_NAME = 12 };
/** "tab", "space", "comma", "semicolon", "pipe", or the character itself. Errors: EINVAL. */
plait_status pli_delimiter_read(const char *text, char *delimiter_out, plait_error *err);
/** As --delimiter takes it and a shell does not change it: "tab", ",", "';'". */
const char *pli_delimiter_name(char delimiter, char name[PLI_DELIMITER_NAME]);

/* The delimiter of the lines; rival: another that cuts as many of them alike, '\0': none. */
typedef struct pli_delimiters {
    char    delimiter, rival;
    int64_t cells, rival_cells;
} pli_delimiters;

/** Finds the delimiter that cuts the lines into equally many cells, more than one; ',' if there is none. If there
 *  are several it is the tab; else the one whose cells are more often numbers; else the one that makes more cells.
 *  known: the delimiter of the model's data ('\0': none), which is taken if it cuts a line into known_cells, or one
 *  less. */
void pli_delimiter_find(const pli_lines *lines, char known, int64_t known_cells, pli_delimiters *out);

#endif
