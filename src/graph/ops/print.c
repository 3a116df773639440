/* print: writes a text, the input's type and shape, and its first elements to the session's log, at level info. Its
 * output is the scalar true: fetch it to make the run print. */
#include <stdio.h>

#include "graph/kernel.h"
#include "graph/ops/ops.h"

enum { ELEMENTS = 16 };

static const plait_attr_spec attrs[] = {
    { .preset = { .name = "text", .kind = PLAIT_ATTR_TEXT, .u.text = "" } },
};

static plait_status run(const plait_call *call, int64_t item) {
    (void)item;
    const plait_tensor *x = &call->in[0];
    const int64_t       n = plait_shape_elements(&x->shape);
    char                shape[128], list[ELEMENTS * 26 + 8];
    size_t              at = 0;
    list[0] = '\0';
    for (int64_t i = 0; i < n && i < ELEMENTS; i++) {
        char word[32];
        pli_format_f64(pli_element(x, i), word);
        at += (size_t)snprintf(list + at, sizeof list - at, " %s", word);
    }
    if (n > ELEMENTS) snprintf(list + at, sizeof list - at, " ...");
    pli_shape_text(x, shape);
    pli_log(call->log, PLAIT_LOG_INFO, -1, "graph", "%s%s%s:%s", call->attr[0].u.text,
            call->attr[0].u.text[0] != '\0' ? " " : "", shape, list);
    pli_element_set(&call->out[0], 0, 1);
    return PLAIT_OK;
}

static const plait_kernel        ref = { .name = "ref", .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_print = {
    .size = sizeof(plait_op),
    .name = "print",
    .summary = "says the first elements to the log",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .n_attrs = 1,
    .flags = PLAIT_OP_STATEFUL,
    .infer = pli_infer_done,
    .kernels = kernels,
};
