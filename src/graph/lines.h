/* graph/lines.h - an array seen as lines along one of its axes: each has n elements, `step` apart. An item is some
 * consecutive lines. */
#ifndef PLI_GRAPH_LINES_H
#define PLI_GRAPH_LINES_H

#include "graph/kernel.h"
#include "graph/ops/ops.h"

typedef struct pli_lines {
    int64_t count, n, step;
} pli_lines;

/** The lines of a shape whose lengths are all known; axis is valid. */
static inline pli_lines pli_lines_of(const plait_shape *shape, int64_t axis) {
    const int32_t at = (int32_t)(axis < 0 ? axis + shape->rank : axis);
    pli_lines     lines = { .count = 1, .n = shape->dim[at], .step = 1 };
    for (int32_t i = 0; i < shape->rank; i++) {
        if (i != at) lines.count *= shape->dim[i];
        if (i > at) lines.step *= shape->dim[i];
    }
    return lines;
}

/** The first element of line i. */
static inline int64_t pli_line_at(const pli_lines *lines, int64_t i) {
    return i / lines->step * lines->step * lines->n + i % lines->step;
}

static inline int64_t pli_lines_an_item(const pli_lines *lines) {
    return lines->n > 0 && lines->n < PLI_ITEM_ELEMENTS ? PLI_ITEM_ELEMENTS / lines->n : 1;
}
static inline int64_t pli_lines_items(const pli_lines *lines) {
    const int64_t each = pli_lines_an_item(lines);
    return (lines->count + each - 1) / each;
}
/** The lines of an item: sets the first, returns how many. */
static inline int64_t pli_lines_piece(const pli_lines *lines, int64_t item, int64_t *first_out) {
    const int64_t each = pli_lines_an_item(lines);
    *first_out = item * each;
    return lines->count - *first_out < each ? lines->count - *first_out : each;
}

/* The attribute `axis` of ops that work line by line; the last axis by default. */
extern const plait_attr_spec pli_axis_attrs[1];
/** The lines of input 0 along that axis, and the items of such an op's kernels. */
static inline pli_lines pli_lines_of_call(const plait_call *call) {
    return pli_lines_of(&call->in[0].shape, call->attr[0].u.i);
}
int64_t pli_line_items(const plait_call *call);
/** `suits` of kernels: input 0 is f32; pli_rows_f32: its lines are contiguous, too. */
int pli_lines_f32(const plait_call *call);
int pli_rows_f32(const plait_call *call);
/** infer: output 0 is like input 0, whose type is a float. */
plait_status pli_infer_lines(const plait_call *call);

/** The shape without one of its axes. */
static inline plait_shape pli_without_axis(const plait_shape *shape, int32_t axis) {
    plait_shape out = { .rank = shape->rank - 1 };
    for (int32_t i = 0; i < out.rank; i++) out.dim[i] = shape->dim[i < axis ? i : i + 1];
    return out;
}

#endif
