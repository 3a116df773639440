/* randk:F - a fraction F of a push's rows travels, chosen at random; the others wait at the worker, and later updates
 * are added to them. The choice is a function of seed, table, clock and row, so all workers choose alike.
 *
 * Paper: Stich, Cordonnier, Jaggi, "Sparsified SGD with Memory", NeurIPS 2018. */
#include "table/filter/filter.h"

typedef struct choice {
    double fraction;
} choice;

static plait_status parse(void *state, const char *parameters, const plait_filter_table *table, plait_error *err) {
    (void)table;
    return pli_filter_fraction("randk", parameters, &((choice *)state)->fraction, err);
}

static plait_status choose(void *state, const plait_part *part, const void *values, unsigned char *keep) {
    const choice *c = state;
    double       *score = pli_array((size_t)part->n, sizeof *score);
    uint64_t stream = pli_part_stream(part);
    (void)values;
    if (score == NULL) return PLAIT_ENOMEM;
    for (int64_t i = 0; i < part->n; i++) score[i] = pli_stream_unit(stream, pli_part_row(part, i), 0);
    bool done = pli_filter_select(part->n, score, c->fraction, keep);
    pli_free(score);
    return done ? PLAIT_OK : PLAIT_ENOMEM;
}

const plait_filter pli_randk_filter = {
    .name = "randk",
    .parameters = ":F",
    .summary = "sends of a push only a random fraction F of the rows",
    .state_bytes = sizeof(choice),
    .loss = PLAIT_KEPT_BACK,
    .parse = parse,
    .rows = { .choose = choose },
};
