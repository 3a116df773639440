/* ONNX's Pad and Resize: each becomes one node for each axis, except padding with one value, which is a single node. */
#include <math.h>
#include <string.h>

#include "graph/form/import.h"
#include "graph/kernel.h"
#include <plait/nn.h>

enum { MOST = PLAIT_RANK_MAX };

/* The axes of an input or an attribute, or all axes of x, counted from the front, each once. */
static plait_status axes_from_front(pli_import *im, plait_value x, int64_t axes[MOST], int32_t *n) {
    const int32_t rank = pli_import_shape(im, x).rank;
    bool          seen[MOST] = { false };
    if (*n < 0)
        for (*n = 0; *n < rank; (*n)++) axes[*n] = *n;
    for (int32_t k = 0; k < *n; k++) {
        axes[k] = pli_import_axis(im, x, axes[k]);
        PLI_TRY(plait_graph_check(im->g, im->err));
        if (seen[axes[k]]) return pli_import_fail(im, PLAIT_ESHAPE, "axis %lld twice", (long long)axes[k]);
        seen[axes[k]] = true;
    }
    return PLAIT_OK;
}

/* --- Pad -------------------------------------------------------------------------------------------------------- */

/* Negative pads remove places: a slice comes first. */
static plait_value cut(pli_import *im, plait_value x, int64_t *before, int64_t *after) {
    const int32_t rank = pli_import_shape(im, x).rank;
    int64_t       starts[MOST], ends[MOST];
    bool          any = false;
    for (int32_t i = 0; i < rank; i++) {
        any = any || before[i] < 0 || after[i] < 0;
        starts[i] = before[i] < 0 ? -before[i] : 0;
        ends[i] = after[i] < 0 ? after[i] : INT64_MAX;
        before[i] = before[i] < 0 ? 0 : before[i];
        after[i] = after[i] < 0 ? 0 : after[i];
    }
    return any ? plait_op_slice(im->g, x, rank, starts, ends, NULL) : x;
}

static plait_status extend(pli_import *im, plait_value x, const char *mode, const int64_t *before,
                           const int64_t *after) {
    const int32_t rank = pli_import_shape(im, x).rank;
    for (int32_t i = 0; i < rank; i++) {
        const plait_attr attrs[] = { plait_attr_int("axis", i), plait_attr_int("before", before[i]),
                                     plait_attr_int("after", after[i]), plait_attr_text("mode", mode) };
        if (before[i] < 0 || after[i] < 0)
            return pli_import_fail(im, PLAIT_EREFUSED, "pads below 0 with mode %.20s are refused; Slice takes off",
                                   mode);
        if (before[i] > 0 || after[i] > 0) x = plait_graph_op(im->g, "extend", &x, 1, attrs, 4);
    }
    pli_import_out(im, 0, x);
    return PLAIT_OK;
}

static plait_status pad(pli_import *im) {
    int64_t     pads[2 * MOST], axes[MOST], before[MOST] = { 0 }, after[MOST] = { 0 };
    int32_t     n, n_axes;
    double      value;
    const char *mode = pli_import_text(im, "mode", "constant");
    const bool  constant = strcmp(mode, "constant") == 0;
    if (!constant && strcmp(mode, "reflect") != 0 && strcmp(mode, "edge") != 0 && strcmp(mode, "wrap") != 0)
        return pli_import_fail(im, PLAIT_ENAME, "mode '%.20s'; known are constant, reflect, edge and wrap", mode);
    PLI_TRY(pli_import_ints(im, 1, 2 * MOST, pads, &n));
    PLI_TRY(pli_import_number(im, 2, 0, &value));
    PLI_TRY(pli_import_ints(im, 3, MOST, axes, &n_axes));
    const plait_value x = pli_import_in(im, 0);
    PLI_TRY(plait_graph_check(im->g, im->err));
    PLI_TRY(axes_from_front(im, x, axes, &n_axes));
    if (n != 2 * n_axes) return pli_import_fail(im, PLAIT_ESHAPE, "%d pads for %d axes", n, n_axes);
    for (int32_t k = 0; k < n_axes; k++) {
        before[axes[k]] = pads[k];
        after[axes[k]] = pads[n_axes + k];
        if (pads[k] == INT64_MIN || pads[n_axes + k] == INT64_MIN)
            return pli_import_fail(im, PLAIT_ESHAPE, "pads of -2^63");
    }
    if (!constant) return extend(im, x, mode, before, after);
    const plait_value rest = cut(im, x, before, after);
    pli_import_out(im, 0, plait_op_pad(im->g, rest, pli_import_shape(im, x).rank, before, after, value));
    return PLAIT_OK;
}

/* --- Resize ----------------------------------------------------------------------------------------------------- */

/* The scales or lengths that a Resize asks for along n axes; `sized` tells which. */
typedef struct asked {
    int32_t n;
    bool    sized;
    int64_t axis[MOST], length[MOST];
    double  scale[MOST];
} asked;

/* Reads scales (input 2) or sizes (input 3), which must be known at import; an empty one counts as not given. */
static plait_status read_asked(pli_import *im, plait_value x, asked *a) {
    const plait_tensor *scales = pli_import_known(im, 2);
    int32_t             n;
    a->n = pli_import_list(im, "axes", MOST, a->axis);
    if (a->n == -2) return pli_import_fail(im, PLAIT_ESHAPE, "more than %d axes", MOST);
    PLI_TRY(axes_from_front(im, x, a->axis, &a->n));
    PLI_TRY(pli_import_ints(im, 3, MOST, a->length, &n));
    if (pli_import_has(im, 2) && scales == NULL)
        return pli_import_fail(im, PLAIT_EREFUSED, "input 2 is computed, which is refused: it is to be a constant");
    const int64_t n_scales = scales != NULL ? plait_shape_elements(&scales->shape) : 0;
    a->sized = n > 0;
    if (a->sized == (n_scales > 0)) return pli_import_fail(im, PLAIT_EFORMAT, "it needs either scales or sizes");
    if ((a->sized ? n : n_scales) != a->n)
        return pli_import_fail(im, PLAIT_ESHAPE, "%lld %s for %d axes", (long long)(a->sized ? n : n_scales),
                               a->sized ? "sizes" : "scales", a->n);
    for (int32_t k = 0; k < a->n; k++) {
        a->scale[k] = a->sized ? 0 : pli_element(scales, k);
        if (!a->sized) a->length[k] = -1;
        if (a->sized && a->length[k] < 0)
            return pli_import_fail(im, PLAIT_ESHAPE, "a size of %lld", (long long)a->length[k]);
    }
    return PLAIT_OK;
}

/* With not_larger and not_smaller, sizes are bounds for one scale of all axes. */
static plait_status keep_aspect(pli_import *im, plait_value x, asked *a) {
    const char *policy = pli_import_text(im, "keep_aspect_ratio_policy", "stretch");
    const bool  larger = strcmp(policy, "not_larger") == 0;
    double      scale = larger ? HUGE_VAL : 0;
    if (strcmp(policy, "stretch") == 0 || !a->sized) return PLAIT_OK;
    if (!larger && strcmp(policy, "not_smaller") != 0)
        return pli_import_fail(im, PLAIT_ENAME, "keep_aspect_ratio_policy '%.20s' is not known", policy);
    const plait_shape from = pli_import_shape(im, x);
    for (int32_t k = 0; k < a->n; k++) {
        const int64_t length = from.dim[a->axis[k]];
        if (length <= 0)
            return pli_import_fail(im, PLAIT_EREFUSED,
                                   "keep_aspect_ratio_policy %.20s is refused where a run decides a length", policy);
        const double own = (double)a->length[k] / (double)length;
        scale = larger ? fmin(scale, own) : fmax(scale, own);
    }
    for (int32_t k = 0; k < a->n; k++) {
        a->length[k] = (int64_t)(scale * (double)from.dim[a->axis[k]] + 0.5);
        a->scale[k] = scale;
    }
    return PLAIT_OK;
}

static plait_status check_resize(const pli_import *im) {
    const char *mode = pli_import_text(im, "mode", "nearest");
    if (strcmp(pli_import_text(im, "coordinate_transformation_mode", ""), "tf_crop_and_resize") == 0)
        return pli_import_fail(im, PLAIT_EREFUSED, "coordinate_transformation_mode tf_crop_and_resize is refused");
    if (pli_import_int(im, "antialias", 0) != 0) return pli_import_fail(im, PLAIT_EREFUSED, "antialias is refused");
    if (pli_import_int(im, "exclude_outside", 0) != 0 && strcmp(mode, "cubic") != 0)
        return pli_import_fail(im, PLAIT_EREFUSED, "exclude_outside is refused unless the mode is cubic");
    return PLAIT_OK;
}

static plait_status resize(pli_import *im) {
    plait_value x = pli_import_in(im, 0);
    asked       a;
    PLI_TRY(plait_graph_check(im->g, im->err));
    PLI_TRY(check_resize(im));
    PLI_TRY(read_asked(im, x, &a));
    PLI_TRY(keep_aspect(im, x, &a));
    for (int32_t k = 0; k < a.n; k++) {
        const int64_t    length = pli_import_shape(im, x).dim[a.axis[k]];
        const bool       scaled = a.scale[k] != 0;
        const plait_attr attrs[] = {
            plait_attr_int("axis", a.axis[k]),
            plait_attr_int("length", a.length[k]),
            plait_attr_float("scale", a.scale[k]),
            plait_attr_text("mode", pli_import_text(im, "mode", "nearest")),
            plait_attr_text("places", pli_import_text(im, "coordinate_transformation_mode", "half_pixel")),
            plait_attr_text("rounds", pli_import_text(im, "nearest_mode", "round_prefer_floor")),
            plait_attr_float("cubic", pli_import_float(im, "cubic_coeff_a", -0.75)),
            plait_attr_int("exclude", pli_import_int(im, "exclude_outside", 0) != 0),
        };
        if (scaled ? a.scale[k] == 1 : length == a.length[k]) continue; /* the axis does not change */
        x = plait_graph_op(im->g, "resize", &x, 1, attrs, 8);
    }
    pli_import_out(im, 0, x);
    return PLAIT_OK;
}

const pli_import_op pli_import_images[] = {
    { "Pad", pad, NULL, "mode text" },
    { "Resize", resize, NULL,
      "antialias int, axes ints, coordinate_transformation_mode text, cubic_coeff_a float, exclude_outside int, "
      "extrapolation_value float, keep_aspect_ratio_policy text, mode text, nearest_mode text" },
    { NULL, NULL, NULL, NULL },
};
