/* transform - prints each row in the model's own space: distances to clusters, a projection. */
#include "cli/answers.h"

static int transform(int argc, char *const *argv) {
    return pli_answers(&pli_command_transform, PLAIT_ANSWER_TRANSFORM, argc, argv);
}

const pli_command pli_command_transform = {
    .name = "transform",
    .usage = "transform --model-file FILE --data D [--out FILE]",
    .summary = "transform data by a model: one line for each row",
    .details =
        "A line holds numbers separated by tabs: the row's distance to each centre of a clustering, or its coordinate "
        "on each component of a projection. A model that has neither is refused; use 'plait predict' with it.",
    .rows = pli_answer_rows + PLI_ANSWER_OF_PREDICT,
    .run = transform,
};
