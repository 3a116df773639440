/* Reads and writes elements of any type as numbers (rounded to BF16, clipped to a type's range); computes strides of
 * shapes; walks arrays, joining axes that are adjacent in memory; adds rows. */
#include "graph/kernel.h"

#include <math.h>
#include <string.h>

int64_t pli_items_by_output(const plait_call *call) { return pli_items_of(plait_shape_elements(&call->out[0].shape)); }

float pli_bf16_to_f32(uint16_t x) {
    const uint32_t bits = (uint32_t)x << 16;
    float          y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

uint16_t pli_bf16_of_f32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isnan(x)) return (uint16_t)(bits >> 16 | 64); /* a NaN with bits in the lower half only stays a NaN */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

double pli_element(const plait_tensor *t, int64_t i) {
    switch (t->type) {
    case PLAIT_F32: return ((const float *)t->data)[i];
    case PLAIT_F64: return ((const double *)t->data)[i];
    case PLAIT_I64: return (double)((const int64_t *)t->data)[i];
    case PLAIT_I32: return ((const int32_t *)t->data)[i];
    case PLAIT_BF16: return pli_bf16_to_f32(((const uint16_t *)t->data)[i]);
    case PLAIT_U8:
    case PLAIT_BOOL: return ((const uint8_t *)t->data)[i];
    }
    return 0;
}

/* value as an integer, clipped to low .. high, which are a power of two and one less than a power of two: as doubles
 * they are exact, or rounded up to the power. */
static int64_t held(double value, int64_t low, int64_t high) {
    if (value != value) return 0;
    return value <= (double)low ? low : value >= (double)high ? high : (int64_t)value;
}

void pli_element_set(const plait_tensor *t, int64_t i, double value) {
    switch (t->type) {
    case PLAIT_F32: ((float *)t->data)[i] = (float)value; break;
    case PLAIT_F64: ((double *)t->data)[i] = value; break;
    case PLAIT_I64: ((int64_t *)t->data)[i] = held(value, INT64_MIN, INT64_MAX); break;
    case PLAIT_I32: ((int32_t *)t->data)[i] = (int32_t)held(value, INT32_MIN, INT32_MAX); break;
    case PLAIT_BF16: ((uint16_t *)t->data)[i] = pli_bf16_of_f32((float)value); break;
    case PLAIT_U8: ((uint8_t *)t->data)[i] = (uint8_t)held(value, 0, UINT8_MAX); break;
    case PLAIT_BOOL: ((uint8_t *)t->data)[i] = value != 0; break;
    }
}

int64_t pli_element_int(const plait_tensor *t, int64_t i) {
    switch (t->type) {
    case PLAIT_I64: return ((const int64_t *)t->data)[i];
    case PLAIT_I32: return ((const int32_t *)t->data)[i];
    default: return ((const uint8_t *)t->data)[i];
    }
}

void pli_element_set_int(const plait_tensor *t, int64_t i, int64_t value) {
    switch (t->type) {
    case PLAIT_I64: ((int64_t *)t->data)[i] = value; break;
    case PLAIT_I32: ((int32_t *)t->data)[i] = (int32_t)(uint32_t)(uint64_t)value; break;
    case PLAIT_BOOL: ((uint8_t *)t->data)[i] = value != 0; break;
    default: ((uint8_t *)t->data)[i] = (uint8_t)value; break;
    }
}

void pli_strides(const plait_shape *shape, int64_t strides[PLAIT_RANK_MAX]) {
    int64_t step = 1;
    for (int32_t i = shape->rank - 1; i >= 0; i--) {
        strides[i] = step;
        step *= shape->dim[i];
    }
}

void pli_broadcast_strides(const plait_shape *from, const plait_shape *to, int64_t strides[PLAIT_RANK_MAX]) {
    int64_t own[PLAIT_RANK_MAX];
    pli_strides(from, own);
    for (int32_t i = 0; i < to->rank; i++) {
        const int32_t at = i - (to->rank - from->rank);
        strides[i] = at < 0 || from->dim[at] == 1 ? 0 : own[at];
    }
}

/* --- walks ----------------------------------------------------------------------------------------------------- */

/* Does axis i continue the walk's last axis without a gap in every array? */
static bool joins(const pli_walk *walk, const int64_t (*strides)[PLAIT_RANK_MAX], int32_t i, int64_t length) {
    for (int32_t k = 0; k < walk->arrays; k++)
        if (walk->stride[k][walk->rank - 1] != strides[k][i] * length) return false;
    return true;
}

void pli_walk_begin(pli_walk *walk, const plait_shape *to, int32_t arrays, const int64_t (*strides)[PLAIT_RANK_MAX],
                    int64_t first, int64_t n) {
    *walk = (pli_walk){ .rank = 0, .arrays = arrays, .left = n };
    for (int32_t i = 0; i < to->rank; i++) {
        if (to->dim[i] == 1) continue;
        if (walk->rank > 0 && joins(walk, strides, i, to->dim[i]))
            walk->dim[walk->rank - 1] *= to->dim[i];
        else
            walk->dim[walk->rank++] = to->dim[i];
        for (int32_t k = 0; k < arrays; k++) walk->stride[k][walk->rank - 1] = strides[k][i];
    }
    if (walk->rank == 0) walk->dim[walk->rank++] = 1;
    for (int32_t i = walk->rank - 1; i >= 0 && n > 0; i--) {
        walk->at[i] = first % walk->dim[i];
        first /= walk->dim[i];
    }
    for (int32_t k = 0; k < arrays; k++) walk->step[k] = walk->stride[k][walk->rank - 1];
}

int64_t pli_walk_next(pli_walk *walk) {
    const int32_t last = walk->rank - 1;
    const int64_t rest = walk->dim[last] - walk->at[last], n = walk->left < rest ? walk->left : rest;
    if (n <= 0) return 0;
    for (int32_t k = 0; k < walk->arrays; k++) {
        walk->from[k] = walk->base[k];
        for (int32_t i = 0; i <= last; i++) walk->from[k] += walk->at[i] * walk->stride[k][i];
    }
    walk->left -= n;
    walk->at[last] += n;
    for (int32_t i = last; i > 0 && walk->at[i] == walk->dim[i]; i--) {
        walk->at[i] = 0;
        walk->at[i - 1]++;
    }
    return n;
}

/* Copies n elements of 1, 2, 4 or 8 bytes, with a step on each side. */
static void copy_run(int64_t n, size_t bytes, char *to, int64_t to_step, const char *from, int64_t from_step) {
    if (to_step == 1 && from_step == 1) {
        memcpy(to, from, (size_t)n * bytes);
        return;
    }
    if (bytes == 4)
        for (int64_t i = 0; i < n; i++)
            ((uint32_t *)(void *)to)[i * to_step] = ((const uint32_t *)(const void *)from)[i * from_step];
    else if (bytes == 8)
        for (int64_t i = 0; i < n; i++)
            ((uint64_t *)(void *)to)[i * to_step] = ((const uint64_t *)(const void *)from)[i * from_step];
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * to_step * (int64_t)bytes, from + i * from_step * (int64_t)bytes, bytes);
}

void pli_read_strided(const plait_call *call, const plait_tensor *from, int64_t base,
                      const int64_t strides[PLAIT_RANK_MAX], int64_t item) {
    const plait_tensor *out = &call->out[0];
    const int64_t       bytes = (int64_t)plait_type_bytes(out->type);
    int64_t             table[1][PLAIT_RANK_MAX], at;
    memcpy(table[0], strides, sizeof table[0]);
    const int64_t n = pli_item_piece(plait_shape_elements(&out->shape), item, &at);
    pli_walk      walk;
    pli_walk_begin(&walk, &out->shape, 1, (const int64_t(*)[PLAIT_RANK_MAX])table, at, n);
    for (int64_t run; (run = pli_walk_next(&walk)) > 0; at += run)
        copy_run(run, (size_t)bytes, (char *)out->data + at * bytes, 1,
                 (const char *)from->data + (base + walk.from[0]) * bytes, walk.step[0]);
}

void pli_write_strided(const plait_tensor *from, const plait_tensor *to, int64_t base,
                       const int64_t strides[PLAIT_RANK_MAX]) {
    const int64_t bytes = (int64_t)plait_type_bytes(from->type);
    int64_t       table[1][PLAIT_RANK_MAX], at = 0;
    memcpy(table[0], strides, sizeof table[0]);
    pli_walk walk;
    pli_walk_begin(&walk, &from->shape, 1, (const int64_t(*)[PLAIT_RANK_MAX])table, 0,
                   plait_shape_elements(&from->shape));
    for (int64_t run; (run = pli_walk_next(&walk)) > 0; at += run)
        copy_run(run, (size_t)bytes, (char *)to->data + (base + walk.from[0]) * bytes, walk.step[0],
                 (const char *)from->data + at * bytes, 1);
}

/* --- rows ----------------------------------------------------------------------------------------------------- */

static void add_f32(int64_t n, const float *x, float *y) {
    for (int64_t i = 0; i < n; i++) y[i] += x[i];
}

void pli_add_row(const plait_tensor *to, int64_t to_first, const plait_tensor *from, int64_t from_first, int64_t n) {
    const bool floats = pli_type_is_float(to->type);
    if (to->type == PLAIT_F32) {
        add_f32(n, (const float *)from->data + from_first, (float *)to->data + to_first);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = to_first + i;
        if (floats)
            pli_element_set(to, at, pli_element(to, at) + pli_element(from, from_first + i));
        else
            pli_element_set_int(
                to, at, (int64_t)((uint64_t)pli_element_int(to, at) + (uint64_t)pli_element_int(from, from_first + i)));
    }
}
