/* Computes where a place of the resized axis lies in the input, and how it is made of the places near it. Words and
 * meanings are those of ONNX's Resize.
 *
 *     places   half_pixel, half_pixel_symmetric, pytorch_half_pixel, asymmetric, align_corners
 *     scale    output length / input length: decides where places lie and, if no length is given, how many there are;
 *              0: the length decides both
 *     mode     nearest (1 place, chosen by `rounds`), linear (2), cubic (4, by Keys's kernel with parameter `cubic`)
 *
 * Paper: Keys, "Cubic Convolution Interpolation for Digital Image Processing", IEEE Trans. ASSP 1981. */
#include "graph/resizing.h"

#include <math.h>
#include <string.h>

#include "graph/ops/ops.h"

static const char *const modes[] = { "nearest", "linear", "cubic" };
static const char *const places[] = { "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric",
                                      "align_corners" };
static const char *const rounds[] = { "round_prefer_floor", "round_prefer_ceil", "floor", "ceil" };

enum { NEAREST, LINEAR, CUBIC };
enum { HALF_PIXEL, SYMMETRIC, PYTORCH, ASYMMETRIC, CORNERS };
enum { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL };

const plait_attr_spec pli_resize_attrs[PLI_RESIZE_ATTRS] = {
    [PLI_RESIZE_AXIS] = { .preset = { .name = "axis", .kind = PLAIT_ATTR_INT, .u.i = -1 } },
    [PLI_RESIZE_LENGTH] = { .preset = { .name = "length", .kind = PLAIT_ATTR_INT, .u.i = -1 } },
    [PLI_RESIZE_SCALE] = { .preset = { .name = "scale", .kind = PLAIT_ATTR_FLOAT } },
    [PLI_RESIZE_MODE] = { .preset = { .name = "mode", .kind = PLAIT_ATTR_TEXT, .u.text = "nearest" } },
    [PLI_RESIZE_PLACES] = { .preset = { .name = "places", .kind = PLAIT_ATTR_TEXT, .u.text = "half_pixel" } },
    [PLI_RESIZE_ROUNDS] = { .preset = { .name = "rounds", .kind = PLAIT_ATTR_TEXT, .u.text = "round_prefer_floor" } },
    [PLI_RESIZE_CUBIC] = { .preset = { .name = "cubic", .kind = PLAIT_ATTR_FLOAT, .u.f = -0.75 } },
    [PLI_RESIZE_EXCLUDE] = { .preset = { .name = "exclude", .kind = PLAIT_ATTR_INT } },
};

/* The number of the attribute's text in a list of words; -1: it is not there. */
static int32_t number_of(const plait_attr *attr, const char *const *words, int32_t n) {
    for (int32_t i = 0; i < n; i++)
        if (strcmp(attr->u.text, words[i]) == 0) return i;
    return -1;
}
#define NUMBER(call, which, words) number_of(&(call)->attr[which], words, (int32_t)(sizeof(words) / sizeof *(words)))

static plait_status check_word(const plait_call *call, int32_t which, const char *const *words, size_t n) {
    const plait_attr *attr = &call->attr[which];
    if (number_of(attr, words, (int32_t)n) >= 0) return PLAIT_OK;
    return pli_fail_unknown(call->error, attr->name, attr->u.text, words, n);
}

plait_status pli_resize_infer(const plait_call *call, const plait_shape *from, plait_shape *to) {
    const int64_t length = call->attr[PLI_RESIZE_LENGTH].u.i;
    const double  scale = call->attr[PLI_RESIZE_SCALE].u.f;
    int32_t       axis;
    PLI_TRY(pli_axis_find(call, call->attr[PLI_RESIZE_AXIS].u.i, from->rank, &axis));
    PLI_TRY(check_word(call, PLI_RESIZE_MODE, modes, sizeof modes / sizeof *modes));
    PLI_TRY(check_word(call, PLI_RESIZE_PLACES, places, sizeof places / sizeof *places));
    PLI_TRY(check_word(call, PLI_RESIZE_ROUNDS, rounds, sizeof rounds / sizeof *rounds));
    if (!(scale > 0 && scale <= 1 << 20) && (length < 0 || scale != 0))
        return plait_call_fail(call, PLAIT_ESHAPE, "a scale of %g; above 0, at most 1048576, or a length", scale);
    if (!isfinite(call->attr[PLI_RESIZE_CUBIC].u.f))
        return plait_call_fail(call, PLAIT_ESHAPE, "cubic is %g", call->attr[PLI_RESIZE_CUBIC].u.f);
    *to = *from;
    if (length >= 0) {
        to->dim[axis] = length;
        return PLAIT_OK;
    }
    if (from->dim[axis] < 0) return PLAIT_OK;
    const double made = floor((double)from->dim[axis] * scale);
    if (made > 0x1p53) return plait_call_fail(call, PLAIT_ESHAPE, "axis %d is longer than any can be", axis);
    to->dim[axis] = (int64_t)made;
    return PLAIT_OK;
}

/* The coordinate of place j of `to` among the places of `from`: between two of them, or beyond an end. */
static double place_of(const plait_call *call, int64_t from, int64_t to, int64_t j) {
    const double given = call->attr[PLI_RESIZE_SCALE].u.f, at = (double)j;
    const double scale = given > 0 ? given : (double)to / (double)from,
                 made = given > 0 ? (double)from * scale : (double)to;
    const double half_pixel = (at + 0.5) / scale - 0.5;
    switch (NUMBER(call, PLI_RESIZE_PLACES, places)) {
    case CORNERS: return made == 1 ? 0 : at * (double)(from - 1) / (made - 1);
    case ASYMMETRIC: return at / scale;
    case PYTORCH: return made == 1 ? -0.5 : half_pixel;
    case SYMMETRIC: return (double)from / 2 * (1 - (double)to / made) + half_pixel;
    default: return half_pixel;
    }
}

/* For a coordinate that lies r, 0 < r < 1, above the lower of two places: 0 chooses the lower place, 1 the upper. */
static int64_t rounded(const plait_call *call, double r) {
    switch (NUMBER(call, PLI_RESIZE_ROUNDS, rounds)) {
    case FLOOR: return 0;
    case CEIL: return 1;
    case PREFER_CEIL: return r >= 0.5;
    default: return r > 0.5;
    }
}

/* Keys's kernel at a distance of at most 2. */
static double keys(double a, double distance) {
    const double d = fabs(distance);
    return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

/* Places beyond an end are replaced by the end. If they are excluded (cubic alone), they get weight 0, and the others
 * are scaled to weigh 1 together. */
static void hold(const plait_call *call, int64_t from, pli_taps *taps) {
    const bool exclude = call->attr[PLI_RESIZE_EXCLUDE].u.i != 0 && taps->n == 4;
    double     sum = 0;
    for (int32_t k = 0; k < taps->n; k++) {
        const bool outside = taps->at[k] < 0 || taps->at[k] >= from;
        if (outside && exclude) taps->weight[k] = 0;
        if (outside) taps->at[k] = taps->at[k] < 0 ? 0 : from - 1;
        sum += taps->weight[k];
    }
    for (int32_t k = 0; k < taps->n && exclude && sum != 0; k++) taps->weight[k] /= sum;
}

void pli_resize_taps(const plait_call *call, int64_t from, int64_t to, int64_t j, pli_taps *taps) {
    const double  x = place_of(call, from, to, j), below = floor(x), r = x - below;
    const int64_t at = (int64_t)fmax(-4, fmin(below, (double)from + 4)); /* further out, the places are the same */
    const double  a = call->attr[PLI_RESIZE_CUBIC].u.f;
    switch (NUMBER(call, PLI_RESIZE_MODE, modes)) {
    case LINEAR: *taps = (pli_taps){ .n = 2, .at = { at, at + 1 }, .weight = { 1 - r, r } }; break;
    case CUBIC:
        *taps = (pli_taps){ .n = 4,
                            .at = { at - 1, at, at + 1, at + 2 },
                            .weight = { keys(a, r + 1), keys(a, r), keys(a, 1 - r), keys(a, 2 - r) } };
        break;
    default: *taps = (pli_taps){ .n = 1, .at = { r > 0 ? at + rounded(call, r) : at }, .weight = { 1 } }; break;
    }
    hold(call, from, taps);
}
