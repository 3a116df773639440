/* Online learning from a pipe whose rows are learnt as they come. Its front says which labels there are and how large
 * values are; features may come later, and the table grows with them. */
#include "learn/linear/online.h"

#include <math.h>
#include <string.h>

#include "learn/solve/solver.h"
#include "table/table.h"

#define MOST_VALUES (INT64_C(1) << 28) /* a table of more grows by key, from the start */

bool pli_online_may_live(const pli_run *run) {
    return run->solver == &pli_solver_online && pli_online_is_alone(run) && run->opts->replicas <= 1;
}

/* Moves the last rows of the table, the intercepts and the totals, from behind `before` features to behind `after`. */
static void move_last(pli_linear_fit *l, int64_t before, int64_t after) {
    pli_online   *o = l->online;
    const int64_t rows = l->linear.intercept + 1;
    memmove(o->memory + after * o->stride, o->memory + before * o->stride, (size_t)(rows * o->stride));
    if (after > before) { /* at least as far as there are rows to move */
        const int64_t stale = after - before < rows ? after - before : rows;
        memset(o->memory + before * o->stride, 0, (size_t)(stale * o->stride));
    }
    l->linear.features = after;
    o->total_key = (uint64_t)(after + l->linear.intercept);
}

plait_status pli_online_grow(pli_run *run) {
    pli_linear_fit *l = pli_linear_fit_of(run);
    const uint64_t  need = pli_stream_features(run->loop->batches);
    const int64_t   before = l->linear.features;
    if (need <= (uint64_t)before || l->fit.scale.centre != NULL) return PLAIT_OK; /* centres: every row has all */
    if (need > (uint64_t)(MOST_VALUES / l->online->cols))
        return pli_fail(run->err, PLAIT_EFORMAT,
                        "a feature with the number %llu in a live pipe is refused: its table would have more than 2^28 "
                        "values; hash the features, as with --hash-bits 22", (unsigned long long)need);
    const int64_t after = (int64_t)need > 2 * before ? (int64_t)need : 2 * before;
    PLI_TRY(pli_table_place_grow(l->w, after + l->linear.intercept + 1, run->err));
    (void)pli_table_place(l->w, &l->online->memory, &l->online->stride);
    move_last(l, before, after);
    return PLAIT_OK;
}

void pli_online_settle(pli_run *run) {
    pli_linear_fit *l = pli_linear_fit_of(run);
    if (!run->live) return;
    pli_linear_count_again(run);
    if (l->online->in_place && run->features < l->linear.features) move_last(l, l->linear.features, run->features);
}

plait_status pli_online_unknown(const pli_run *run, const pli_block *block, int64_t number, plait_error *err) {
    const double label = block->label[number];
    const long long row = (long long)(block->first_row + number + 1);
    if (pli_fit_of(run)->goal.classes == 0)
        return pli_fail(err, PLAIT_EFORMAT, "row %lld has a label that model %s cannot learn (%g)", row,
                        run->opts->model, label);
    if (isnan(label) || pli_schema_label_is_text(run->schema))
        return pli_fail(err, PLAIT_EFORMAT, "row %lld has a label that no row had when training began: a live pipe "
                                            "must begin with rows of all classes; or train from a file", row);
    return pli_fail(err, PLAIT_EFORMAT, "row %lld has the label %g, which no row had when training began: a live pipe "
                                        "must begin with rows of all classes; or train from a file", row, label);
}
