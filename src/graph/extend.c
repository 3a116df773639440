/* Places beyond the ends of an axis are copies of places within it, as in numpy.pad:
 *
 *     reflect   d c b | a b c d | c b a      mirrored at the ends, which are not repeated
 *     edge      a a a | a b c d | d d d
 *     wrap      b c d | a b c d | a b c */
#include "graph/extend.h"

#include <string.h>

#include "graph/ops/ops.h"

const plait_attr_spec pli_extend_attrs[PLI_EXTEND_ATTRS] = {
    [PLI_EXTEND_AXIS] = { .preset = { .name = "axis", .kind = PLAIT_ATTR_INT, .u.i = -1 } },
    [PLI_EXTEND_BEFORE] = { .preset = { .name = "before", .kind = PLAIT_ATTR_INT } },
    [PLI_EXTEND_AFTER] = { .preset = { .name = "after", .kind = PLAIT_ATTR_INT } },
    [PLI_EXTEND_MODE] = { .preset = { .name = "mode", .kind = PLAIT_ATTR_TEXT, .u.text = "edge" } },
};

plait_status pli_extend_infer(const plait_call *call, const plait_shape *from, plait_shape *to) {
    const int64_t before = call->attr[PLI_EXTEND_BEFORE].u.i, after = call->attr[PLI_EXTEND_AFTER].u.i;
    const char   *mode = call->attr[PLI_EXTEND_MODE].u.text;
    int32_t       axis;
    PLI_TRY(pli_axis_find(call, call->attr[PLI_EXTEND_AXIS].u.i, from->rank, &axis));
    if (strcmp(mode, "reflect") != 0 && strcmp(mode, "edge") != 0 && strcmp(mode, "wrap") != 0)
        return plait_call_fail(call, PLAIT_ENAME, "mode '%.20s' is not known; known: reflect, edge, wrap", mode);
    if (before < 0 || after < 0 || before > INT32_MAX || after > INT32_MAX)
        return plait_call_fail(call, PLAIT_ESHAPE, "cannot extend by %lld and %lld; 0 to 2147483647", (long long)before,
                               (long long)after);
    *to = *from;
    if (from->dim[axis] >= 0 && __builtin_add_overflow(from->dim[axis], before + after, &to->dim[axis]))
        return plait_call_fail(call, PLAIT_ESHAPE, "axis %d is longer than any can be", axis);
    return PLAIT_OK;
}

/* i modulo n, 0 or more. */
static int64_t modulo(int64_t i, int64_t n) { return (i % n + n) % n; }

void pli_extend_taps(const plait_call *call, int64_t from, int64_t to, int64_t j, pli_taps *taps) {
    const char    mode = call->attr[PLI_EXTEND_MODE].u.text[0];
    int64_t       i = j - call->attr[PLI_EXTEND_BEFORE].u.i;
    const int64_t period = 2 * (from - 1);
    (void)to;
    if (mode == 'e') i = i < 0 ? 0 : i >= from ? from - 1 : i;
    if (mode == 'w') i = modulo(i, from);
    if (mode == 'r') {
        i = from > 1 ? modulo(i, period) : 0;
        if (i >= from) i = period - i;
    }
    *taps = (pli_taps){ .n = 1, .at = { i }, .weight = { 1 } };
}
