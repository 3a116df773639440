#include "graph/map.h"

#include <string.h>

#include "graph/kernel.h"

enum { LANE_BYTES = PLI_MAP_BLOCK * 8 }; /* of a buffer: a block of the largest elements */

/* --- planning -------------------------------------------------------------------------------------------------- */

/* Axes of the output along which the input goes on without a break are one; axes of length 1 are none. */
static void join_axes(pli_map_input *m, const plait_shape *in, const plait_shape *out) {
    int64_t stride[PLAIT_RANK_MAX];
    pli_broadcast_strides(in, out, stride);
    m->rank = 0;
    for (int32_t i = 0; i < out->rank; i++) {
        if (out->dim[i] == 1) continue;
        if (m->rank > 0 && m->stride[m->rank - 1] == stride[i] * out->dim[i]) {
            m->dim[m->rank - 1] *= out->dim[i];
            m->stride[m->rank - 1] = stride[i];
            continue;
        }
        m->dim[m->rank] = out->dim[i];
        m->stride[m->rank++] = stride[i];
    }
}

bool pli_map_plan(pli_map *map, const plait_op *op, const plait_tensor *in, int32_t n_in, const plait_tensor *out) {
    const plait_type type = in[0].type;
    const bool       by_f32 = type == PLAIT_BF16 && op->map[PLAIT_BF16] == NULL;
    if (n_in > PLI_MAP_INPUTS) return false;
    *map = (pli_map){ .fn = op->map[by_f32 ? PLAIT_F32 : type], .n_in = n_in, .all_direct = true };
    map->elements = plait_shape_elements(&out->shape);
    map->narrowed = by_f32 && out->type == PLAIT_BF16;
    map->out_bytes = plait_type_bytes(out->type);
    for (int32_t k = 0; k < n_in; k++) {
        pli_map_input *m = &map->in[k];
        *m = (pli_map_input){ .bytes = plait_type_bytes(in[k].type), .widened = by_f32 && in[k].type == PLAIT_BF16 };
        join_axes(m, &in[k].shape, &out->shape);
        m->direct = m->rank == 0 || (m->rank == 1 && m->stride[0] == 1);
        map->all_direct = map->all_direct && m->direct && !m->widened;
    }
    map->all_direct = map->all_direct && !map->narrowed;
    return map->fn != NULL;
}

size_t pli_map_scratch(const pli_map *map) { return map->all_direct ? 0 : (size_t)(map->n_in + 1) * LANE_BYTES; }

int64_t pli_map_items(const pli_map *map) { return pli_items_of(map->elements); }

/* --- running --------------------------------------------------------------------------------------------------- */

static void repeat(size_t bytes, const void *from, void *to, int64_t n) {
    if (bytes == 4) {
        uint32_t x, *y = to;
        memcpy(&x, from, sizeof x);
        for (int64_t i = 0; i < n; i++) y[i] = x;
    } else if (bytes == 8) {
        uint64_t x, *y = to;
        memcpy(&x, from, sizeof x);
        for (int64_t i = 0; i < n; i++) y[i] = x;
    } else if (bytes == 2) {
        uint16_t x, *y = to;
        memcpy(&x, from, sizeof x);
        for (int64_t i = 0; i < n; i++) y[i] = x;
    } else {
        memset(to, *(const unsigned char *)from, (size_t)n);
    }
}

/* Elements first .. first + n of the output's order, from an input with fewer: a walk over its axes, the last one in runs. */
static void spread(const pli_map_input *m, const unsigned char *data, int64_t first, int64_t n, unsigned char *to) {
    const int32_t last = m->rank - 1;
    int64_t       at[PLAIT_RANK_MAX], from = 0;
    for (int32_t i = last; i >= 0; i--) {
        at[i] = first % m->dim[i];
        first /= m->dim[i];
        from += at[i] * m->stride[i];
    }
    while (n > 0) {
        const int64_t left = m->dim[last] - at[last], run = left < n ? left : n;
        if (m->stride[last] == 0) repeat(m->bytes, data + (size_t)from * m->bytes, to, run);
        else memcpy(to, data + (size_t)from * m->bytes, (size_t)run * m->bytes);
        to += (size_t)run * m->bytes;
        n -= run;
        from -= at[last] * m->stride[last];
        at[last] = 0;
        for (int32_t i = last - 1; i >= 0; i--) { /* the next row */
            from += m->stride[i];
            if (++at[i] < m->dim[i]) break;
            from -= m->stride[i] * m->dim[i];
            at[i] = 0;
        }
    }
}

/* In place, from the end: a lane holds twice as much. */
static void widen(void *lane, int64_t n) {
    const uint16_t *narrow = lane;
    float          *wide = lane;
    for (int64_t i = n - 1; i >= 0; i--) {
        uint16_t x;
        memcpy(&x, narrow + i, sizeof x);
        const float y = pli_bf16_to_f32(x);
        memcpy(wide + i, &y, sizeof y);
    }
}

/* Where the block's elements of an input are. */
static const void *lane_of(const pli_map_input *m, const void *data, int64_t first, int64_t n, unsigned char *lane) {
    const unsigned char *bytes = data;
    if (m->direct && !m->widened) return bytes + (size_t)first * m->bytes;
    if (m->direct) memcpy(lane, bytes + (size_t)first * m->bytes, (size_t)n * m->bytes);
    else spread(m, bytes, first, n, lane);
    if (m->widened) widen(lane, n);
    return lane;
}

static void run_block(const pli_map *map, const plait_tensor *in, const plait_tensor *out, const plait_attr *attr,
                      unsigned char *scratch, int64_t first, int64_t n) {
    const void    *lane[PLI_MAP_INPUTS];
    unsigned char *last = scratch + (size_t)map->n_in * LANE_BYTES;
    for (int32_t k = 0; k < map->n_in; k++) lane[k] = lane_of(&map->in[k], in[k].data, first, n, scratch + (size_t)k * LANE_BYTES);
    if (!map->narrowed) {
        map->fn(n, lane, (unsigned char *)out->data + (size_t)first * map->out_bytes, attr);
        return;
    }
    map->fn(n, lane, last, attr);
    const float *wide = (const float *)(const void *)last;
    uint16_t    *to = (uint16_t *)out->data + first;
    for (int64_t i = 0; i < n; i++) to[i] = pli_bf16_of_f32(wide[i]);
}

void pli_map_run(const pli_map *map, const plait_tensor *in, const plait_tensor *out, const plait_attr *attr, void *scratch,
                 int64_t item) {
    int64_t       first;
    const int64_t n = pli_item_piece(map->elements, item, &first), end = first + n;
    const int64_t block = map->all_direct ? n : PLI_MAP_BLOCK;
    for (; first < end; first += block)
        run_block(map, in, out, attr, scratch, first, end - first < block ? end - first : block);
}
