/* Infers the shape of ops that work line by line, divides their lines into items, and tells whether the lines are
 * floats or contiguous. */
#include "graph/lines.h"

const plait_attr_spec pli_axis_attrs[] = { { .preset = { .name = "axis", .kind = PLAIT_ATTR_INT, .u.i = -1 } } };

int64_t pli_line_items(const plait_call *call) {
    const pli_lines lines = pli_lines_of_call(call);
    return pli_lines_items(&lines);
}

int pli_lines_f32(const plait_call *call) { return call->in[0].type == PLAIT_F32; }
int pli_rows_f32(const plait_call *call) { return pli_lines_f32(call) && pli_lines_of_call(call).step == 1; }

plait_status pli_infer_lines(const plait_call *call) {
    int32_t axis;
    if (!pli_type_is_float(call->in[0].type)) return plait_call_fail(call, PLAIT_ESHAPE, "of floats only; cast it");
    PLI_TRY(pli_axis_find(call, call->attr[0].u.i, call->in[0].shape.rank, &axis));
    return pli_infer_as_input(call);
}
