/* Kernels for weighted places along an axis, forward and back (taps.h). An item is some indices of the axes before it,
 * so that no two items write the same element. Taps are computed for a few places at a time, and used for all indices
 * of the item. */
#include "graph/taps.h"

#include <string.h>

enum { FEW = 64 };

/* An array around one axis: [outer, length, inner]. */
typedef struct around {
    int64_t outer, inner;
} around;

static around around_of(const plait_shape *shape, int64_t axis) {
    around a = { 1, 1 };
    for (int32_t i = 0; i < shape->rank; i++) {
        if (i < axis) a.outer *= shape->dim[i];
        if (i > axis) a.inner *= shape->dim[i];
    }
    return a;
}

static int64_t front(int64_t axis, const plait_shape *shape) { return axis < 0 ? axis + shape->rank : axis; }

/* The number of outer indices of an item; it depends on the longer of the two lengths. */
static int64_t outer_of_item(const around *a, int64_t length) {
    const int64_t row = length > 0 && a->inner > 0 ? length * a->inner : 1;
    return row >= PLI_ITEM_ELEMENTS ? 1 : PLI_ITEM_ELEMENTS / row;
}

static int64_t longer(const plait_call *call, int32_t other, int64_t axis) {
    const int64_t a = call->in[other].shape.dim[axis], b = call->out[0].shape.dim[axis];
    return a > b ? a : b;
}

static int64_t items_of(const plait_call *call, int32_t other, int64_t axis) {
    axis = front(axis, &call->out[0].shape);
    const around  a = around_of(&call->out[0].shape, axis);
    const int64_t n = outer_of_item(&a, longer(call, other, axis));
    return (a.outer + n - 1) / n;
}

/* y += w x for n elements, from given places of the two arrays on. */
static void add_f32(int64_t n, double w, const plait_tensor *x, int64_t from, const plait_tensor *y, int64_t to) {
    const float *a = (const float *)x->data + from, by = (float)w;
    float       *b = (float *)y->data + to;
    for (int64_t i = 0; i < n; i++) b[i] += by * a[i];
}

static void add_ref(int64_t n, double w, const plait_tensor *x, int64_t from, const plait_tensor *y, int64_t to) {
    for (int64_t i = 0; i < n; i++) pli_element_set(y, to + i, pli_element(y, to + i) + w * pli_element(x, from + i));
}

typedef void add_fn(int64_t n, double w, const plait_tensor *x, int64_t from, const plait_tensor *y, int64_t to);

/* Forward for one outer index: a place made of a single input place is copied, whatever its type. */
static void make_places(const plait_tensor *x, int64_t from, const plait_tensor *y, int64_t to, int64_t inner,
                        const pli_taps *taps, int64_t n) {
    const size_t bytes = plait_type_bytes(y->type), row = (size_t)inner * bytes;
    add_fn      *add = y->type == PLAIT_F32 ? add_f32 : add_ref;
    for (int64_t p = 0; p < n; p++) {
        char *place = (char *)y->data + (size_t)(to + p * inner) * bytes;
        if (taps[p].n == 1) {
            memcpy(place, (const char *)x->data + (size_t)(from + taps[p].at[0] * inner) * bytes, row);
            continue;
        }
        memset(place, 0, row);
        for (int32_t k = 0; k < taps[p].n; k++)
            add(inner, taps[p].weight[k], x, from + taps[p].at[k] * inner, y, to + p * inner);
    }
}

/* The same if a place is a single f32, as along the last axis. */
static void make_single(const plait_tensor *x, int64_t from, const plait_tensor *y, int64_t to, const pli_taps *taps,
                        int64_t n) {
    const float *a = (const float *)x->data + from;
    float       *b = (float *)y->data + to;
    for (int64_t p = 0; p < n; p++) {
        float sum = 0;
        for (int32_t k = 0; k < taps[p].n; k++) sum += (float)taps[p].weight[k] * a[taps[p].at[k]];
        b[p] = sum;
    }
}

/* Back for one outer index: each place of dy is added to places of dx. */
static void spread(const plait_tensor *dy, int64_t from, const plait_tensor *dx, int64_t to, int64_t inner,
                   const pli_taps *taps, int64_t n) {
    add_fn *add = dx->type == PLAIT_F32 ? add_f32 : add_ref;
    for (int64_t p = 0; p < n; p++)
        for (int32_t k = 0; k < taps[p].n; k++)
            add(inner, taps[p].weight[k], dy, from + p * inner, dx, to + taps[p].at[k] * inner);
}

/* Runs an item over x [outer, many, inner] and y [outer, places, inner]; back: spreads the places of y over those of
 * x. */
static void go(const plait_call *call, pli_taps_fn *fn, const around *a, int64_t first, int64_t end, int64_t many,
               int64_t places, const plait_tensor *from, bool back) {
    const plait_tensor *to = &call->out[0];
    const bool          single = to->type == PLAIT_F32 && a->inner == 1;
    pli_taps            taps[FEW];
    if (back)
        for (int64_t i = first * many * a->inner; i < end * many * a->inner; i++) pli_element_set(to, i, 0);
    for (int64_t j = 0; j < places; j += FEW) {
        const int64_t n = places - j < FEW ? places - j : FEW;
        for (int64_t p = 0; p < n; p++) fn(call, many, places, j + p, &taps[p]);
        for (int64_t o = first; o < end; o++) {
            const int64_t x = o * many * a->inner, y = (o * places + j) * a->inner;
            if (back)
                spread(from, y, to, x, a->inner, taps, n);
            else if (single)
                make_single(from, x, to, y, taps, n);
            else
                make_places(from, x, to, y, a->inner, taps, n);
        }
    }
}

static plait_status run(const plait_call *call, int64_t axis, pli_taps_fn *fn, int64_t item, bool back) {
    const plait_tensor *from = &call->in[back ? 1 : 0], *to = &call->out[0];
    axis = front(axis, &to->shape);
    const around  a = around_of(&to->shape, axis);
    const int64_t each = outer_of_item(&a, longer(call, back ? 1 : 0, axis)), first = item * each,
                  end = a.outer - first < each ? a.outer : first + each;
    const int64_t many = (back ? to : from)->shape.dim[axis], places = (back ? from : to)->shape.dim[axis];
    if (many == 0 && places > 0)
        return plait_call_fail(call, PLAIT_EINVAL, "%lld places are to be made of an axis that has none",
                               (long long)places);
    go(call, fn, &a, first, end, many, places, from, back);
    return PLAIT_OK;
}

int64_t pli_taps_items(const plait_call *call, int64_t axis) { return items_of(call, 0, axis); }

plait_status pli_taps_run(const plait_call *call, int64_t axis, pli_taps_fn *fn, int64_t item) {
    return run(call, axis, fn, item, false);
}

int64_t pli_taps_back_items(const plait_call *call, int64_t axis) { return items_of(call, 1, axis); }

plait_status pli_taps_back(const plait_call *call, int64_t axis, pli_taps_fn *fn, int64_t item) {
    return run(call, axis, fn, item, true);
}
