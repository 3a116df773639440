/* Plans a map: joins axes, and gives buffers to inputs and steps. Runs it: prepares a block of each input, runs the
 * steps over it, and the last step writes the output. */
#include "graph/map.h"

#include <string.h>

#include "graph/kernel.h"

/* --- planning -------------------------------------------------------------------------------------------------- */

/* Joins axes of the output along which the input continues without a gap, and drops axes of length 1. */
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

/* Is the op computed in F32? BF16 is, if the op has no loop for BF16. */
static bool goes_by_f32(const plait_op *op, plait_type type) {
    return type == PLAIT_BF16 && op->map[PLAIT_BF16] == NULL;
}

/* The type of an operand, which is an input or the result of an earlier step. */
static plait_type type_of(const pli_map_op *ops, const plait_tensor *in, int32_t operand) {
    return operand < PLI_MAP_INPUTS ? in[operand].type : ops[operand - PLI_MAP_INPUTS].type;
}

static void plan_input(pli_map *map, int32_t k, const plait_tensor *in, const plait_shape *shape, bool widened) {
    pli_map_input *m = &map->in[k];
    *m = (pli_map_input){ .bytes = plait_type_bytes(in->type), .widened = widened };
    join_axes(m, &in->shape, shape);
    m->direct = m->rank == 0 || (m->rank == 1 && m->stride[0] == 1);
    m->uniform = !m->direct && m->rank == 1 && m->stride[0] == 0;
    m->buffer = m->direct && !widened ? -1 : map->n_buffers++;
}

/* Gives buffers to steps. A buffer is free again after the last step that reads it (linear scan: Poletto and Sarkar,
 * TOPLAS 1999). */
static void give_buffers(pli_map *map) {
    int32_t last[PLI_MAP_STEPS], owner[PLI_MAP_STEPS], n = 0;
    for (int32_t j = 0; j < map->n_steps; j++) {
        last[j] = j;
        for (int32_t i = 0; i < map->step[j].n_in; i++)
            if (map->step[j].in[i] >= PLI_MAP_INPUTS) last[map->step[j].in[i] - PLI_MAP_INPUTS] = j;
    }
    for (int32_t j = 0; j < map->n_steps; j++) {
        pli_map_step *s = &map->step[j];
        s->buffer = -1;
        if (s->output >= 0 && !s->rounded) continue;
        int32_t at = 0;
        while (at < n && last[owner[at]] >= j) at++;
        owner[at] = j;
        if (at == n) n++;
        s->buffer = map->n_buffers + at;
    }
    map->n_buffers += n;
}

static bool plan_step(pli_map *map, int32_t j, const pli_map_op *ops, const plait_tensor *in) {
    const pli_map_op *o = &ops[j];
    const plait_type  type = type_of(ops, in, o->in[0]);
    const bool        by_f32 = goes_by_f32(o->op, type);
    pli_map_step     *s = &map->step[j];
    *s = (pli_map_step){ .fn = o->op->map[by_f32 ? PLAIT_F32 : type],
                         .attr = o->attr,
                         .n_in = o->n_in,
                         .output = o->output,
                         .rounded = by_f32 && o->type == PLAIT_BF16,
                         .bytes = plait_type_bytes(o->type) };
    memcpy(s->in, o->in, (size_t)o->n_in * sizeof *o->in);
    for (int32_t i = 0; i < o->n_in; i++) /* an operand is either BF16 or F32 for all its readers */
        if (type_of(ops, in, o->in[i]) == PLAIT_BF16 && !by_f32)
            return o->in[i] < PLI_MAP_INPUTS && map->n_steps == 1 && s->fn != NULL;
    return s->fn != NULL;
}

plait_status pli_map_create(pli_arena *arena, const pli_map_op *ops, int32_t n_ops, const plait_tensor *in,
                            int32_t n_in, const plait_shape *shape, pli_map **map_out, plait_error *err) {
    *map_out = NULL;
    if (n_in > PLI_MAP_INPUTS || n_ops > PLI_MAP_STEPS) return PLAIT_OK;
    for (int32_t j = 0; j < n_ops; j++)
        if (ops[j].n_in > PLI_MAP_INPUTS) return PLAIT_OK;
    pli_map *map = pli_arena_take(arena, sizeof *map);
    if (map == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a plan of the graph");
    *map = (pli_map){ .elements = plait_shape_elements(shape), .n_in = n_in, .n_steps = n_ops, .lane_bytes = 4 };
    map->in = pli_arena_take(arena, (size_t)n_in * sizeof *map->in);
    map->step = pli_arena_take(arena, (size_t)n_ops * sizeof *map->step);
    if (map->in == NULL || map->step == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a plan of the graph");
    const bool by_f32 = goes_by_f32(ops[0].op, type_of(ops, in, ops[0].in[0]));
    for (int32_t k = 0; k < n_in; k++) {
        plan_input(map, k, &in[k], shape, in[k].type == PLAIT_BF16 && (by_f32 || n_ops > 1));
        if (map->in[k].bytes > map->lane_bytes) map->lane_bytes = map->in[k].bytes;
    }
    for (int32_t j = 0; j < n_ops; j++) {
        if (!plan_step(map, j, ops, in)) return PLAIT_OK;
        if (map->step[j].bytes > map->lane_bytes) map->lane_bytes = map->step[j].bytes;
    }
    give_buffers(map);
    map->block = PLI_MAP_BLOCK;
    while (map->block > PLI_MAP_BLOCK / 4 && map->block * (int64_t)map->lane_bytes * map->n_buffers > 32768)
        map->block /= 2;
    map->lane_bytes *= (size_t)map->block;
    map->plain = n_ops == 1 && map->n_buffers == 0;
    *map_out = map;
    return PLAIT_OK;
}

size_t pli_map_scratch(const pli_map *map) { return (size_t)map->n_buffers * map->lane_bytes; }

int64_t pli_map_items(const pli_map *map) { return pli_items_of(map->elements); }

bool pli_map_in_place(const pli_map *map, int32_t input, int32_t output) {
    if (!map->in[input].direct) return false;
    int32_t writes = 0;
    while (map->step[writes].output != output) writes++;
    if (map->step[writes].bytes != map->in[input].bytes) return false;
    if (map->in[input].widened) return true; /* a block of it is in the buffer before the output is written */
    for (int32_t j = writes + 1; j < map->n_steps; j++)
        for (int32_t i = 0; i < map->step[j].n_in; i++)
            if (map->step[j].in[i] == input) return false;
    return true;
}

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

/* Fills n elements, from `first` of the output on, from an input that is broadcast: a walk over the axes, in runs along
 * the last one. */
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
        if (m->stride[last] == 0)
            repeat(m->bytes, data + (size_t)from * m->bytes, to, run);
        else
            memcpy(to, data + (size_t)from * m->bytes, (size_t)run * m->bytes);
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

/* Widens n BF16 to F32 in place, from the end, because an F32 takes twice the space. */
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

/* The address of a block's elements of an input. */
static const void *lane_of(const pli_map_input *m, const void *data, int64_t first, int64_t n, unsigned char *lane) {
    const unsigned char *bytes = data;
    if (m->buffer < 0) return bytes + (size_t)first * m->bytes;
    if (m->direct)
        memcpy(lane, bytes + (size_t)first * m->bytes, (size_t)n * m->bytes);
    else
        spread(m, bytes, first, n, lane);
    if (m->widened) widen(lane, n);
    return lane;
}

/* Rounds a step's result to BF16; later steps read the rounded values as F32. */
static void round_lane(const pli_map_step *s, float *lane, int64_t n, const plait_tensor *out, int64_t first) {
    uint16_t *narrow = s->output >= 0 ? (uint16_t *)out[s->output].data + first : NULL;
    for (int64_t i = 0; i < n; i++) {
        const uint16_t x = pli_bf16_of_f32(lane[i]);
        if (narrow != NULL) narrow[i] = x;
        lane[i] = pli_bf16_to_f32(x);
    }
}

typedef struct block {
    const pli_map      *map;
    const void         *input[PLI_MAP_INPUTS];
    void               *made[PLI_MAP_STEPS];
    const plait_tensor *out;
    unsigned char      *scratch;
} block;

static void run_steps(block *b, int64_t first, int64_t n) {
    for (int32_t j = 0; j < b->map->n_steps; j++) {
        const pli_map_step *s = &b->map->step[j];
        const void         *in[PLI_MAP_INPUTS];
        for (int32_t i = 0; i < s->n_in; i++)
            in[i] = s->in[i] < PLI_MAP_INPUTS ? b->input[s->in[i]] : b->made[s->in[i] - PLI_MAP_INPUTS];
        b->made[j] = s->buffer >= 0 ? b->scratch + (size_t)s->buffer * b->map->lane_bytes
                                    : (unsigned char *)b->out[s->output].data + (size_t)first * s->bytes;
        s->fn(n, in, b->made[j], s->attr);
        if (s->rounded) round_lane(s, b->made[j], n, b->out, first);
    }
}

static void run_plain(const pli_map *map, const void *const *in, const plait_tensor *out, int64_t first, int64_t n) {
    const pli_map_step *s = &map->step[0];
    const void         *from[PLI_MAP_INPUTS];
    for (int32_t i = 0; i < s->n_in; i++)
        from[i] = (const unsigned char *)in[s->in[i]] + (size_t)first * map->in[s->in[i]].bytes;
    s->fn(n, from, (unsigned char *)out[0].data + (size_t)first * s->bytes, s->attr);
}

void pli_map_run(const pli_map *map, const void *const *in, const plait_tensor *out, void *scratch, int64_t item) {
    int64_t       first;
    const int64_t n = pli_item_piece(map->elements, item, &first);
    pli_map_run_some(map, in, out, scratch, first, n);
}

void pli_map_run_some(const pli_map *map, const void *const *in, const plait_tensor *out, void *scratch, int64_t first,
                      int64_t n) {
    const int64_t end = first + n;
    if (map->plain) {
        run_plain(map, in, out, first, n);
        return;
    }
    block b;
    b.map = map;
    b.out = out;
    b.scratch = scratch;
    for (int64_t at = first; at < end; at += map->block) {
        const int64_t some = end - at < map->block ? end - at : map->block;
        for (int32_t k = 0; k < map->n_in; k++) {
            if (map->in[k].uniform && at > first) continue; /* filled for the first block */
            const int64_t count = map->in[k].uniform && n < map->block ? n : map->in[k].uniform ? map->block : some;
            b.input[k] = lane_of(&map->in[k], in[k], at, count,
                                 b.scratch + (size_t)(map->in[k].buffer < 0 ? 0 : map->in[k].buffer) * map->lane_bytes);
        }
        run_steps(&b, at, some);
    }
}
