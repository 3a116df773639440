/* transform - what a model makes of rows: distances to clusters, a projection. */
#include "cli/answers.h"

static int transform(int argc, char *const *argv) {
    return pli_answers(&pli_command_transform, PLAIT_ANSWER_TRANSFORM, argc, argv);
}

const pli_command pli_command_transform = {
    .name = "transform",
    .usage = "transform --model-file FILE --data D [--out FILE]",
    .summary = "what a model makes of rows: one line a row",
    .details =
        "A line has as many numbers as the model's own space has axes, separated by tabs: a clustering's distances "
        "to its centres, a projection onto components. A model that has no such space is refused; 'plait "
        "predict' writes what it says of rows.",
    .rows = pli_answer_rows + 1, /* without --proba */
    .run = transform,
};
