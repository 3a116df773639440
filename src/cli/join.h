/* cli/join.h - predict --join: the lines of the data with the answers behind them.
 *
 * A table stays a table: its answers are further cells, with names if the table has a header. Behind a line of another
 * format (LIBSVM, VW) the answers follow a tab. */
#ifndef PLI_CLI_JOIN_H
#define PLI_CLI_JOIN_H

#include "cli/cli.h"
#include "data/data.h"

typedef struct pli_join {
    const plait_model *model;
    plait_answer       answer;
    pli_written        rows;
    char               delimiter; /* between answers */
    bool               is_table;
} pli_join;

/** Errors: EREFUSED the data are no lines, or lines with more than one answer each. */
plait_status pli_join_begin(const plait_model *model, const plait_data *data, plait_answer answer, pli_join *join,
                            plait_error *err);
/** Adds the header with the names of the answers, if the data have one. */
void pli_join_header(const pli_join *join, pli_text *text);
/** Adds the next line with its answers, values [width]. Errors: EFORMAT there is none, since the file has changed. */
plait_status pli_join_add(pli_join *join, const double *values, int64_t width, pli_text *text, plait_error *err);

#endif
