/* predict - what a model says of rows: a label, a value or probabilities. */
#include "cli/answers.h"

static int predict(int argc, char *const *argv) {
    return pli_answers(&pli_command_predict, PLAIT_ANSWER_LABEL, argc, argv);
}

const pli_command pli_command_predict = {
    .name = "predict",
    .usage = "predict --model-file FILE --data D [--proba] [--out FILE]",
    .summary = "apply a model: one line a row",
    .details = "Of text there is a line for each character, foretold from those before it. A line is the label as the "
               "training data wrote it (a regression's value), or, with --proba, one probability a "
               "class, separated by one space, in the order in which inspect lists the labels; two for binary models.",
    .rows = pli_answer_rows,
    .run = predict,
};
