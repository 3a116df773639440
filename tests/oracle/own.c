/* own.c - what a program brings of its own: an update rule, a server function, first values. */
#include <math.h>
#include <string.h>

#include "oracle.h"

/* A gradient is subtracted as it is, whatever it stands for. */
static void take_f32(const plait_rule_numbers *rule, const plait_step *step, int64_t n, float *w, float *const *slot,
                     const float *g, const float *penalty) {
    (void)rule, (void)step, (void)slot, (void)penalty;
    for (int64_t i = 0; i < n; i++) w[i] -= g[i];
}

static void take_f64(const plait_rule_numbers *rule, const plait_step *step, int64_t n, double *w, double *const *slot,
                     const double *g, const double *penalty) {
    (void)rule, (void)step, (void)slot, (void)penalty;
    for (int64_t i = 0; i < n; i++) w[i] -= g[i];
}

const plait_rule own_rule = { .name = "take", .learning_rate = 1, .apply_f32 = take_f32, .apply_f64 = take_f64 };

double value_at(plait_type type, const void *values, size_t at) {
    if (type == PLAIT_I64) return (double)((const int64_t *)values)[at];
    return type == PLAIT_F64 ? ((const double *)values)[at] : (double)((const float *)values)[at];
}

/* args: keys or rows [n]; answer [n, cols]: those that the shard owns. Answers of shards are added. */
static plait_status pick(void *user, const plait_slice *slices, int32_t n_slices, const void *args, size_t args_bytes,
                         void *answer, size_t answer_bytes) {
    const plait_slice *s = slices;
    const uint64_t    *wanted = args;
    double            *to = answer;
    (void)user, (void)n_slices;
    if (answer_bytes != args_bytes / sizeof *wanted * (size_t)s->cols * sizeof *to) return PLAIT_ESHAPE;
    for (int64_t row = 0; row < s->rows; row++) {
        const uint64_t key = s->keys != NULL ? s->keys[row] : (uint64_t)(s->first + row);
        for (size_t i = 0; i < args_bytes / sizeof *wanted; i++)
            for (int64_t j = 0; wanted[i] == key && j < s->cols; j++) {
                const int64_t at = row * s->cols + j;
                to[(int64_t)i * s->cols + j] = value_at(s->type, s->values, (size_t)at);
            }
    }
    return PLAIT_OK;
}

const plait_function own_function = { .name = "pick", .run = pick };

double nothing(const plan *t) {
    if (t->combine == ADD_UP || t->combine == LATEST) return 0;
    if (t->whole) return t->combine == LEAST ? (double)INT64_MAX : (double)INT64_MIN;
    return t->combine == LEAST ? INFINITY : -INFINITY;
}

/* The initial value of a row. If updates do not add up, it lies between two of them. */
double initial(const plan *t, uint64_t row, int32_t col) {
    if (t->combine != ADD_UP) return t->initial ? weight(t, t->digits / 2, col) * 1.5 : nothing(t);
    return t->initial ? t->unit / 4 * (double)(1 + (row + (uint64_t)col) % 3) : 0;
}
