/* significant:X - a pushed row travels once what has gathered for it is larger than X: on a table with an update rule
 * in units of the mean gradient (the sum divided by the push's rows of data). Until then it waits at the worker.
 *
 * Papers: Li et al., "Parameter Server for Distributed Machine Learning", Big Learning Workshop 2013 (the significantly
 * modified filter); Hsieh et al., "Gaia", NSDI 2017 (the same between data centres). */
#include "table/filter/filter.h"

#include <math.h>

#include "table/state/values.h"

typedef struct threshold {
    double least;
} threshold;

static plait_status parse(void *state, const char *parameters, const plait_filter_table *table, plait_error *err) {
    threshold *t = state;
    (void)table;
    if (parameters != NULL && pli_parse_f64(parameters, &t->least) && t->least > 0) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL, "filter significant%s%s: expected significant:X, a number above 0",
                    parameters != NULL ? ":" : "", parameters != NULL ? parameters : "");
}

static plait_status choose(void *state, const plait_part *part, const void *values, unsigned char *keep) {
    const threshold *t = state;
    int64_t          row_bytes = part->cols * pli_value_bytes(part->type);
    double           least = t->least * (part->examples > 0 ? (double)part->examples : 1);
    for (int64_t i = 0; i < part->n; i++) {
        double norm = pli_values_max_norm(part->type, part->cols, pli_at_const(values, i * row_bytes));
        if (norm <= least) keep[i] = 0; /* NaN travels */
    }
    return PLAIT_OK;
}

const plait_filter pli_significant_filter = {
    .name = "significant",
    .parameters = ":X",
    .summary = "sends of a push only the rows whose accumulated gradient is larger than X",
    .state_bytes = sizeof(threshold),
    .loss = PLAIT_KEPT_BACK,
    .parse = parse,
    .rows = { .choose = choose },
};
