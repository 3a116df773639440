/* Convolutions, and their derivatives by images and by filters, by oneDNN (its C API, version 2).
 *
 * oneDNN needs images and filters in blocks of channels. One of our items is some images, or, in a derivative by
 * filters, some filters. An item copies its operands in oneDNN's layout to its own memory (reorder), convolves them,
 * and copies the result in the graph's layout. Shapes alone decide the items, and each runs on the calling thread, so
 * the number of threads changes no bit; the bits depend on the code that oneDNN generates for the processor. */
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>

#include "convs.h"
#include "graph/conv.h"

enum { IMAGES, FILTERS, OUTPUTS, OPERANDS };                             /* x or dx, w or dw, y or dy */
enum { BY_OUTPUTS = OUTPUTS, BY_IMAGES = IMAGES, BY_FILTERS = FILTERS }; /* which operand is computed */

/* How a use of an op is divided into items. */
typedef struct cut {
    pli_conv conv;
    int      wanted;
    int64_t  each, items; /* images, or filters, of an item; number of items */
    int64_t  after[2];    /* padding below and to the right */
} cut;

static cut cut_of(const plait_call *call, int wanted) {
    const plait_shape *x = &call->in[wanted == BY_IMAGES ? 2 : 0].shape, *w = &call->in[wanted == BY_OUTPUTS  ? 1
                                                                                        : wanted == BY_IMAGES ? 0
                                                                                                              : 2]
                                                                                   .shape;
    enum { PARTS = 16, FILTER_PARTS = 4, BLOCK = 16 };
    cut           c = { .conv = pli_conv_of(call->attr, x, w), .wanted = wanted };
    const int64_t filters = c.conv.filters;
    for (int i = 0; i < 2; i++) c.after[i] = call->attr[PLI_CONV_PADDING].u.ints[2 + i];
    if (wanted == BY_FILTERS)
        c.each = c.conv.groups > 1 ? filters : (filters + FILTER_PARTS * BLOCK - 1) / (FILTER_PARTS * BLOCK) * BLOCK;
    else
        c.each = (c.conv.images + PARTS - 1) / PARTS;
    const int64_t all = wanted == BY_FILTERS ? filters : c.conv.images;
    if (c.each > all) c.each = all;
    c.items = c.each > 0 ? (all + c.each - 1) / c.each : 0;
    return c;
}

static int64_t piece_of(const cut *c, int64_t item, int64_t *first_out) {
    const int64_t all = c->wanted == BY_FILTERS ? c->conv.filters : c->conv.images;
    *first_out = item * c->each;
    return all - *first_out < c->each ? all - *first_out : c->each;
}

/* The offset, in floats, of an item's part of an operand. */
static int64_t offset_of(const cut *c, int operand, int64_t first) {
    const pli_conv *v = &c->conv;
    if (c->wanted == BY_FILTERS)
        return operand == IMAGES ? 0 : operand == FILTERS ? first * v->taps : first * v->out[0] * v->out[1];
    return operand == FILTERS  ? 0
           : operand == IMAGES ? first * v->groups * v->channels * v->in[0] * v->in[1]
                               : first * v->groups * v->filters * v->out[0] * v->out[1];
}

/* --- descriptions for oneDNN ------------------------------------------------------------------------------------ */

/* Describes an operand of `n` images or filters: in the graph's layout (strides), or, with any, in a layout that oneDNN
 * chooses. */
static dnnl_status_t describe(const cut *c, int operand, int64_t n, bool any, dnnl_memory_desc_t *out) {
    const pli_conv *v = &c->conv;
    const int64_t  images = c->wanted == BY_FILTERS ? v->images : n, filters = c->wanted == BY_FILTERS ? n : v->filters;
    const int64_t  area[] = { v->in[0] * v->in[1], v->tap[0] * v->tap[1], v->out[0] * v->out[1] };
    const int64_t *length = operand == IMAGES ? v->in : operand == FILTERS ? v->tap : v->out;
    dnnl_dims_t    dim, step;
    int            rank = 0;
    if (operand == FILTERS && v->groups > 1) {
        dim[rank] = v->groups;
        step[rank++] = v->filters * v->taps;
    }
    dim[rank] = operand == FILTERS ? filters : images;
    step[rank++] = operand == FILTERS  ? v->taps
                   : operand == IMAGES ? v->groups * v->channels * area[IMAGES]
                                       : v->groups * v->filters * area[OUTPUTS];
    dim[rank] = operand == FILTERS ? v->channels : v->groups * (operand == IMAGES ? v->channels : filters);
    step[rank++] = area[operand];
    dim[rank] = length[0];
    step[rank++] = length[1];
    dim[rank] = length[1];
    step[rank++] = 1;
    if (any) return dnnl_memory_desc_init_by_tag(out, rank, dim, dnnl_f32, dnnl_format_tag_any);
    return dnnl_memory_desc_init_by_strides(out, rank, dim, dnnl_f32, step);
}

/* Makes the caller provide scratch memory, because a primitive may run on several threads at once. */
static dnnl_status_t borrowed_scratch(dnnl_primitive_attr_t *attr_out) {
    const dnnl_status_t status = dnnl_primitive_attr_create(attr_out);
    return status != dnnl_success ? status
                                  : dnnl_primitive_attr_set_scratchpad_mode(*attr_out, dnnl_scratchpad_mode_user);
}

static dnnl_status_t convolution(const cut *c, int64_t n, dnnl_engine_t engine, dnnl_primitive_desc_t *out) {
    const pli_conv         *v = &c->conv;
    const dnnl_dims_t       stride = { v->stride[0], v->stride[1] }, before = { v->before[0], v->before[1] };
    const dnnl_dims_t       dilation = { v->dilation[0] - 1, v->dilation[1] - 1 }, after = { c->after[0], c->after[1] };
    dnnl_memory_desc_t      any[OPERANDS];
    dnnl_convolution_desc_t desc;
    dnnl_primitive_desc_t   forward = NULL;
    dnnl_primitive_attr_t   attr = NULL;
    dnnl_status_t           status = borrowed_scratch(&attr);
    const dnnl_memory_desc_t *x = &any[IMAGES], *w = &any[FILTERS], *y = &any[OUTPUTS];
    for (int i = 0; i < OPERANDS && status == dnnl_success; i++) status = describe(c, i, n, true, &any[i]);
    if (status == dnnl_success) /* a derivative also needs the forward description */
        status = dnnl_dilated_convolution_forward_desc_init(&desc, dnnl_forward_training, dnnl_convolution_direct, x, w,
                                                            NULL, y, stride, dilation, before, after);
    if (status == dnnl_success) status = dnnl_primitive_desc_create(&forward, &desc, attr, engine, NULL);
    if (status == dnnl_success && c->wanted == BY_OUTPUTS) {
        *out = forward;
        forward = NULL;
    } else if (status == dnnl_success) {
        status = c->wanted == BY_IMAGES
                     ? dnnl_dilated_convolution_backward_data_desc_init(&desc, dnnl_convolution_direct, x, w, y, stride,
                                                                        dilation, before, after)
                     : dnnl_dilated_convolution_backward_weights_desc_init(&desc, dnnl_convolution_direct, x, w, NULL,
                                                                           y, stride, dilation, before, after);
        if (status == dnnl_success) status = dnnl_primitive_desc_create(out, &desc, attr, engine, forward);
    }
    if (forward != NULL) dnnl_primitive_desc_destroy(forward);
    if (attr != NULL) dnnl_primitive_attr_destroy(attr);
    return status;
}

/* --- what is made once ------------------------------------------------------------------------------------------ */

/* The primitives for items of one size. The last item may be smaller. */
typedef struct code {
    dnnl_primitive_t   convolve, reorder[OPERANDS]; /* reorder NULL: the graph's layout fits */
    dnnl_memory_desc_t plain[OPERANDS], liked[OPERANDS], scratch;
} code;

typedef struct work {
    dnnl_stream_t stream;
    dnnl_memory_t plain[OPERANDS], liked[OPERANDS], scratch;
} work;

typedef struct state {
    cut           cut;
    dnnl_engine_t engine;
    code          code[2];
    work         *work; /* [cut.items] */
} state;

static dnnl_status_t make_reorder(const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to, dnnl_engine_t engine,
                                  dnnl_primitive_t *out) {
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t         status = dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, NULL);
    if (status == dnnl_success) status = dnnl_primitive_create(out, pd);
    if (pd != NULL) dnnl_primitive_desc_destroy(pd);
    return status;
}

static dnnl_status_t make_code(const state *s, int64_t n, code *out) {
    static const dnnl_query_t queries[OPERANDS][OPERANDS] = {
        { dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md }, /* BY_IMAGES  */
        { dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md }, /* BY_FILTERS */
        { dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md },           /* BY_OUTPUTS */
    };
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t         status = convolution(&s->cut, n, s->engine, &pd);
    if (status == dnnl_success) status = dnnl_primitive_create(&out->convolve, pd);
    for (int i = 0; i < OPERANDS && status == dnnl_success; i++) {
        status = describe(&s->cut, i, n, false, &out->plain[i]);
        out->liked[i] = *dnnl_primitive_desc_query_md(pd, queries[s->cut.wanted][i], 0);
        if (status != dnnl_success || dnnl_memory_desc_equal(&out->plain[i], &out->liked[i])) continue;
        status = i == s->cut.wanted ? make_reorder(&out->liked[i], &out->plain[i], s->engine, &out->reorder[i])
                                    : make_reorder(&out->plain[i], &out->liked[i], s->engine, &out->reorder[i]);
    }
    if (status == dnnl_success) out->scratch = *dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    if (pd != NULL) dnnl_primitive_desc_destroy(pd);
    return status;
}

static dnnl_status_t make_work(const state *s, const code *how, work *out) {
    dnnl_status_t status = dnnl_stream_create(&out->stream, s->engine, dnnl_stream_in_order);
    for (int i = 0; i < OPERANDS && status == dnnl_success; i++) {
        status = dnnl_memory_create(&out->plain[i], &how->plain[i], s->engine, DNNL_MEMORY_NONE);
        if (status == dnnl_success && how->reorder[i] != NULL)
            status = dnnl_memory_create(&out->liked[i], &how->liked[i], s->engine, DNNL_MEMORY_ALLOCATE);
    }
    if (status == dnnl_success)
        status = dnnl_memory_create(&out->scratch, &how->scratch, s->engine, DNNL_MEMORY_ALLOCATE);
    return status;
}

static void destroy(void *user) {
    state *s = user;
    for (int64_t k = 0; s->work != NULL && k < s->cut.items; k++) {
        work *w = &s->work[k];
        for (int i = 0; i < OPERANDS; i++) {
            if (w->plain[i] != NULL) dnnl_memory_destroy(w->plain[i]);
            if (w->liked[i] != NULL) dnnl_memory_destroy(w->liked[i]);
        }
        if (w->scratch != NULL) dnnl_memory_destroy(w->scratch);
        if (w->stream != NULL) dnnl_stream_destroy(w->stream);
    }
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < OPERANDS; i++)
            if (s->code[k].reorder[i] != NULL) dnnl_primitive_destroy(s->code[k].reorder[i]);
        if (s->code[k].convolve != NULL) dnnl_primitive_destroy(s->code[k].convolve);
    }
    if (s->engine != NULL) dnnl_engine_destroy(s->engine);
    pli_free(s->work);
    pli_free(s);
}

/* oneDNN's threads are OpenMP's, whose number is a setting of the calling thread: one, until leave. */
static int enter(void) {
    const int before = omp_get_max_threads();
    omp_set_num_threads(1);
    return before;
}
static void leave(int before) { omp_set_num_threads(before); }

static plait_status failed(const plait_call *call, dnnl_status_t status) {
    if (status == dnnl_success) return PLAIT_OK;
    return plait_call_fail(call, status == dnnl_out_of_memory ? PLAIT_ENOMEM : PLAIT_EINVAL, "oneDNN: %s",
                           dnnl_status2str(status));
}

static plait_status create(const plait_call *call, int wanted, void **state_out) {
    state *s = pli_calloc(1, sizeof *s);
    if (s == NULL) return plait_call_fail(call, PLAIT_ENOMEM, "no memory for a convolution by oneDNN");
    s->cut = cut_of(call, wanted);
    s->work = pli_calloc((size_t)s->cut.items, sizeof *s->work);
    const int     before = enter();
    int64_t       first;
    const int64_t last = s->cut.items > 0 ? piece_of(&s->cut, s->cut.items - 1, &first) : 0;
    dnnl_status_t status = s->work != NULL ? dnnl_engine_create(&s->engine, dnnl_cpu, 0) : dnnl_out_of_memory;
    if (status == dnnl_success && s->cut.items > 0) status = make_code(s, s->cut.each, &s->code[0]);
    if (status == dnnl_success && last != s->cut.each) status = make_code(s, last, &s->code[1]);
    for (int64_t k = 0; k < s->cut.items && status == dnnl_success; k++)
        status = make_work(s, &s->code[piece_of(&s->cut, k, &first) != s->cut.each], &s->work[k]);
    leave(before);
    if (status != dnnl_success) {
        destroy(s);
        return failed(call, status);
    }
    *state_out = s;
    return PLAIT_OK;
}

/* Can oneDNN compute this call? */
static int suits(const plait_call *call, int wanted) {
    if (call->in[0].type != PLAIT_F32) return 0;
    const cut c = cut_of(call, wanted);
    if (c.items == 0 || c.conv.taps == 0 || c.conv.out[0] * c.conv.out[1] == 0 || c.conv.in[0] * c.conv.in[1] == 0)
        return 0;
    const int             before = enter();
    dnnl_engine_t         engine = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t         status = dnnl_engine_create(&engine, dnnl_cpu, 0);
    if (status == dnnl_success) status = convolution(&c, c.each, engine, &pd);
    if (pd != NULL) dnnl_primitive_desc_destroy(pd);
    if (engine != NULL) dnnl_engine_destroy(engine);
    leave(before);
    return status == dnnl_success;
}

/* --- an item ---------------------------------------------------------------------------------------------------- */

static dnnl_status_t reorder(const code *how, const work *w, int i, bool back) {
    const dnnl_exec_arg_t args[] = { { DNNL_ARG_FROM, back ? w->liked[i] : w->plain[i] },
                                     { DNNL_ARG_TO, back ? w->plain[i] : w->liked[i] } };
    return dnnl_primitive_execute(how->reorder[i], w->stream, 2, args);
}

static plait_status run(const plait_call *call, int wanted, int64_t item) {
    static const int arg[OPERANDS][OPERANDS] = { { DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST },
                                                 { DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST },
                                                 { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST } };
    static const int input[OPERANDS][OPERANDS] = { { -1, 0, 1 }, { 0, -1, 1 }, { 0, 1, -1 } }; /* -1: the output */
    const state     *s = call->state;
    const work      *w = &s->work[item];
    int64_t          first;
    const code      *how = &s->code[piece_of(&s->cut, item, &first) != s->cut.each];
    dnnl_exec_arg_t  args[OPERANDS + 1] = { [OPERANDS] = { DNNL_ARG_SCRATCHPAD, w->scratch } };
    dnnl_status_t    status = dnnl_success;
    const int        before = enter();
    for (int i = 0; i < OPERANDS && status == dnnl_success; i++) {
        const plait_tensor *t = input[wanted][i] < 0 ? &call->out[0] : &call->in[input[wanted][i]];
        status = dnnl_memory_set_data_handle(w->plain[i], (float *)t->data + offset_of(&s->cut, i, first));
        args[i] = (dnnl_exec_arg_t){ arg[wanted][i], how->reorder[i] != NULL ? w->liked[i] : w->plain[i] };
        if (status == dnnl_success && how->reorder[i] != NULL && i != wanted) status = reorder(how, w, i, false);
    }
    if (status == dnnl_success) status = dnnl_primitive_execute(how->convolve, w->stream, OPERANDS + 1, args);
    if (status == dnnl_success && how->reorder[wanted] != NULL) status = reorder(how, w, wanted, true);
    if (status == dnnl_success) status = dnnl_stream_wait(w->stream);
    leave(before);
    return failed(call, status);
}

static int64_t items(const plait_call *call, int wanted) { return cut_of(call, wanted).items; }

/* In the graph's layout the images of an item are contiguous, and so are its filters. */
static pli_region region(const plait_call *call, int wanted, int64_t item) {
    const cut     c = cut_of(call, wanted);
    int64_t       first;
    const int64_t n = piece_of(&c, item, &first), from = offset_of(&c, wanted, first),
                  one = wanted == BY_FILTERS ? c.conv.taps : offset_of(&c, wanted, 1);
    return (pli_region){ from, (wanted == BY_FILTERS ? c.conv.groups : 1) * n * one, 0, 1 };
}

/* --- the three --------------------------------------------------------------------------------------------------- */

#define KERNEL(op, wanted)                                                                                             \
    static int          op##_suits(const plait_call *call) { return suits(call, wanted); }                             \
    static plait_status op##_open(const plait_call *call, void **state_out) {                                          \
        return create(call, wanted, state_out);                                                                        \
    }                                                                                                                  \
    static int64_t      op##_items(const plait_call *call) { return items(call, wanted); }                             \
    static plait_status op##_run(const plait_call *call, int64_t item) { return run(call, wanted, item); }             \
    pli_region pli_onednn_##op##_region(const plait_call *call, int64_t item) { return region(call, wanted, item); }   \
    const plait_kernel pli_onednn_##op = { .name = "onednn f32",                                                       \
                                           .suits = op##_suits,                                                        \
                                           .open = op##_open,                                                          \
                                           .close = destroy,                                                           \
                                           .items = op##_items,                                                        \
                                           .run = op##_run };

KERNEL(conv2d, BY_OUTPUTS)
KERNEL(conv2d_input, BY_IMAGES)
KERNEL(conv2d_filter, BY_FILTERS)
