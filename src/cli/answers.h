/* cli/answers.h - a model's answers to the rows of data, one line a row: what predict and transform share. */
#ifndef PLI_CLI_ANSWERS_H
#define PLI_CLI_ANSWERS_H

#include "cli/cli.h"

/* Options of predict. The first are of predict alone; those of transform begin after them. */
enum { PLI_ANSWER_OF_PREDICT = 2 };
extern const pli_opt pli_answer_rows[];

/** Runs the command: reads its options and writes the answers: labels (--proba: probabilities) or transformed rows.
 *  Returns the exit code. */
int pli_answers(const pli_command *command, plait_answer answer, int argc, char *const *argv);

#endif
