/* cli/answers.h - a model's answers to the rows of data, one line a row: what predict and transform share. */
#ifndef PLI_CLI_ANSWERS_H
#define PLI_CLI_ANSWERS_H

#include "cli/cli.h"

/* Options of predict. The first are of predict alone; those of transform begin after them. */
enum { PLI_ANSWER_OF_PREDICT = 3 };
extern const pli_opt pli_answer_rows[];

/** Runs the command: reads its options and writes the answers: labels (--proba: probabilities) or transformed rows.
 *  Returns the exit code. */
int pli_answers(const pli_command *command, plait_answer answer, int argc, char *const *argv);

/** Can the model give this answer? EREFUSED: no; the error names the command whose answer it can give. */
plait_status pli_answer_check(const plait_model *model, plait_answer answer, plait_error *err);
/** Fills values [rows, plait_model_width] with the answers. */
plait_status pli_answer_ask(const plait_model *model, const plait_data *data, plait_answer answer, double *values,
                            plait_error *err);
/** Adds numbers with `sign` between. */
void pli_answer_numbers(const double *values, int64_t width, char sign, pli_text *text);
/** Adds the line of one row: a class by its name, or numbers. */
void pli_answer_add(const plait_model *model, plait_answer answer, const double *values, int64_t width, pli_text *text);

#endif
