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
    if (isnan(x)) return (uint16_t)(bits >> 16 | 64); /* a NaN whose payload lay in the lower half stays one */
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

void pli_element_set(const plait_tensor *t, int64_t i, double value) {
    switch (t->type) {
    case PLAIT_F32: ((float *)t->data)[i] = (float)value; break;
    case PLAIT_F64: ((double *)t->data)[i] = value; break;
    case PLAIT_I64: ((int64_t *)t->data)[i] = (int64_t)value; break;
    case PLAIT_I32: ((int32_t *)t->data)[i] = (int32_t)value; break;
    case PLAIT_BF16: ((uint16_t *)t->data)[i] = pli_bf16_of_f32((float)value); break;
    case PLAIT_U8: ((uint8_t *)t->data)[i] = (uint8_t)value; break;
    case PLAIT_BOOL: ((uint8_t *)t->data)[i] = value != 0; break;
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
