/* Writes and reads the body of a message that carries a tensor. See parcel.h. */
#include "learn/net/parcel.h"

#include <string.h>

#include "base/base.h"

size_t pli_parcel_bytes(const plait_tensor *t) {
    const int64_t n = plait_shape_elements(&t->shape);
    size_t        bytes;
    if (n < 0 || __builtin_mul_overflow((size_t)n, plait_type_bytes(t->type), &bytes) || bytes > SIZE_MAX / 4) return 0;
    return PLI_PARCEL_BYTES + bytes;
}

void pli_parcel_write(const plait_edge *edge, const plait_tensor *t, void *body) {
    const size_t bytes = pli_parcel_bytes(t) - PLI_PARCEL_BYTES;
    pli_parcel   p = { .micro_batch = edge->micro_batch,
                       .value = edge->value,
                       .from = edge->from,
                       .to = edge->to,
                       .replica = edge->replica,
                       .type = (int32_t)t->type,
                       .rank = t->shape.rank };
    for (int32_t i = 0; i < t->shape.rank; i++) p.dim[i] = t->shape.dim[i];
    memset(body, 0, PLI_PARCEL_BYTES);
    memcpy(body, &p, sizeof p);
    if (bytes > 0) memcpy((unsigned char *)body + PLI_PARCEL_BYTES, t->data, bytes);
}

plait_status pli_parcel_read(const void *body, size_t bytes, plait_edge *edge_out, plait_tensor *tensor_out,
                             plait_error *err) {
    pli_parcel   p;
    plait_tensor t;
    if (bytes < PLI_PARCEL_BYTES)
        return pli_fail(err, PLAIT_EFORMAT, "a tensor from another part is cut off: %zu bytes", bytes);
    memcpy(&p, body, sizeof p);
    if (p.type < 0 || p.type >= PLAIT_TYPES || p.rank < 0 || p.rank > PLAIT_RANK_MAX)
        return pli_fail(err, PLAIT_EFORMAT, "a tensor from another part has type %d and %d axes", p.type, p.rank);
    t = (plait_tensor){ .type = (plait_type)p.type, .shape = { .rank = p.rank } };
    for (int32_t i = 0; i < p.rank; i++) {
        if (p.dim[i] < 0) return pli_fail(err, PLAIT_EFORMAT, "a tensor from another part has a length below 0");
        t.shape.dim[i] = p.dim[i];
    }
    if (pli_parcel_bytes(&t) != bytes)
        return pli_fail(err, PLAIT_EFORMAT, "a tensor from another part has %zu bytes, which is not its shape", bytes);
    t.data = (unsigned char *)(uintptr_t)body + PLI_PARCEL_BYTES;
    *edge_out = (plait_edge){
        .value = p.value, .from = p.from, .to = p.to, .replica = p.replica, .micro_batch = p.micro_batch
    };
    *tensor_out = t;
    return PLAIT_OK;
}
