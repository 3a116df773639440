/* Slices with NumPy's bounds: negative bounds count from the end, bounds are clipped to the array, steps may be
 * negative. */
#include "graph/slice.h"

enum { AXES, STARTS, ENDS, STEPS };

const plait_attr_spec pli_slice_attrs[4] = {
    [AXES] = { .preset = { .name = "axes", .kind = PLAIT_ATTR_INTS } },
    [STARTS] = { .preset = { .name = "starts", .kind = PLAIT_ATTR_INTS }, .required = 1 },
    [ENDS] = { .preset = { .name = "ends", .kind = PLAIT_ATTR_INTS }, .required = 1 },
    [STEPS] = { .preset = { .name = "steps", .kind = PLAIT_ATTR_INTS } },
};

/* A bound, which counts from the end if it is negative, clipped to low .. high. */
static int64_t held(int64_t bound, int64_t length, int64_t low, int64_t high) {
    if (bound < 0) bound = bound < -length ? -1 : bound + length;
    return bound < low ? low : bound > high ? high : bound;
}

/* The first place of a slice along one axis; *n_out: the number of places. */
static int64_t places(int64_t start, int64_t end, int64_t step, int64_t length, int64_t *n_out) {
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? length : length - 1;
    const int64_t a = held(start, length, low, high), b = held(end, length, low, high);
    const int64_t span = step > 0 ? b - a : a - b, by = step > 0 ? step : -step;
    *n_out = span > 0 ? (span - 1) / by + 1 : 0;
    return a;
}

plait_status pli_slice_of(const plait_call *call, const plait_shape *from, plait_shape *to, pli_slice *slice_out) {
    const plait_attr *axes = &call->attr[AXES], *starts = &call->attr[STARTS], *ends = &call->attr[ENDS],
                     *steps = &call->attr[STEPS];
    pli_axes  taken;
    pli_slice s = { .base = 0 };
    if (starts->n != ends->n || (steps->n != 0 && steps->n != starts->n) || (axes->n != 0 && axes->n != starts->n) ||
        starts->n > from->rank)
        return plait_call_fail(call, PLAIT_ESHAPE,
                               "axes, starts, ends and steps are of different numbers, or more than there are axes");
    PLI_TRY(pli_axes_of(call, axes, from->rank, false, &taken));
    *to = *from;
    pli_strides(from, s.stride);
    for (int32_t k = 0; k < starts->n; k++) {
        int32_t       axis;
        const int64_t step = steps->n == 0 ? 1 : steps->u.ints[k];
        if (step == 0 || step == INT64_MIN)
            return plait_call_fail(call, PLAIT_ESHAPE, "a step of %lld", (long long)step);
        PLI_TRY(pli_axis_find(call, axes->n == 0 ? k : axes->u.ints[k], from->rank, &axis));
        if (from->dim[axis] < 0) continue;
        const int64_t first = places(starts->u.ints[k], ends->u.ints[k], step, from->dim[axis], &to->dim[axis]);
        s.base += first * s.stride[axis];
        if (to->dim[axis] > 1) s.stride[axis] *= step;
    }
    *slice_out = s;
    return PLAIT_OK;
}
