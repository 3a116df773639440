/* topk:F - only the fraction F of a push's rows with the largest values travels; the others wait at the worker, and
 * later updates are added to them, until they are among the largest. A row counts by its largest absolute value.
 *
 * Papers: Stich, Cordonnier, Jaggi, "Sparsified SGD with Memory", NeurIPS 2018 (converges as fast as without); Lin et
 * al., "Deep Gradient Compression", ICLR 2018. */
#include "table/filter/filter.h"

#include "table/state/values.h"

typedef struct choice {
    double fraction;
} choice;

static plait_status parse(void *state, const char *parameters, const plait_filter_table *table, plait_error *err) {
    (void)table;
    return pli_filter_fraction("topk", parameters, &((choice *)state)->fraction, err);
}

static plait_status choose(void *state, const plait_part *part, const void *values, unsigned char *keep) {
    const choice *c = state;
    double       *score = pli_array((size_t)part->n, sizeof *score);
    int64_t row_bytes = part->cols * pli_value_bytes(part->type);
    if (score == NULL) return PLAIT_ENOMEM;
    for (int64_t i = 0; i < part->n; i++)
        score[i] = pli_values_max_norm(part->type, part->cols, pli_at_const(values, i * row_bytes));
    bool done = pli_filter_select(part->n, score, c->fraction, keep);
    pli_free(score);
    return done ? PLAIT_OK : PLAIT_ENOMEM;
}

const plait_filter pli_topk_filter = {
    .name = "topk",
    .parameters = ":F",
    .summary = "sends of a push only the fraction F of the rows with the largest values",
    .state_bytes = sizeof(choice),
    .loss = PLAIT_KEPT_BACK,
    .parse = parse,
    .rows = { .choose = choose },
};
