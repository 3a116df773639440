/* predict - prints a model's prediction for each row: a label, a value or probabilities. */
#include "cli/answers.h"

static int predict(int argc, char *const *argv) {
    return pli_answers(&pli_command_predict, PLAIT_ANSWER_LABEL, argc, argv);
}

const pli_command pli_command_predict = {
    .name = "predict",
    .usage = "predict --model-file FILE --data D [--proba|--contributions] [--join] [--out FILE]",
    .summary = "apply a model to data: one line for each row",
    .details = "A line holds the predicted label as the training data wrote it; for a regression, the value. With "
               "--proba it holds one probability for each class instead (two for a binary model), separated by one "
               "space, in the order in which 'plait inspect' lists the labels. For text: one predicted character a "
               "line, from the characters before it. With --contributions it holds what each feature adds to the "
               "score, in the order of 'plait inspect --weights', and last the mean score; they add up to the "
               "score. With --join each line of the data is written, too, and the answer behind it.",
    .rows = pli_answer_rows,
    .run = predict,
};
