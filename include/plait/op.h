/* plait/op.h - an op of a dataflow graph is one table of data and functions; Plait's ops and yours have the same form.
 *
 * An op knows nothing of tables, ranks or devices. It says which shapes go in and come out (infer), how the gradients
 * of its inputs are made of other ops (gradient), and how it is computed (kernels; or `map`, for an op that works
 * element by element). Kernels write into memory that they are given, keep nothing between calls except what `open`
 * returned, and never call back into Plait. A kernel may run on any thread, and several of its items at once.
 */
#ifndef PLAIT_OP_H
#define PLAIT_OP_H

#include <plait/log.h>
#include <plait/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plait_graph plait_graph;
typedef int32_t            plait_value; /* one output of one node of a graph */
enum { PLAIT_NONE = -1 };               /* no value */

/* --- attributes: settings of a node, beside its inputs ---------------------------------------------- */

typedef enum plait_attr_kind {
    PLAIT_ATTR_INT,    /* i                                 */
    PLAIT_ATTR_FLOAT,  /* f                                 */
    PLAIT_ATTR_INTS,   /* ints [n]                          */
    PLAIT_ATTR_TEXT,   /* text                              */
    PLAIT_ATTR_TENSOR, /* tensor, whose data the graph owns */
    PLAIT_ATTR_TYPE    /* i: a plait_type; in files by name */
} plait_attr_kind;

typedef struct plait_attr {
    const char     *name;
    plait_attr_kind kind;
    int32_t         n; /* of ints */
    union {
        int64_t             i;
        double              f;
        const int64_t      *ints;
        const char         *text;
        const plait_tensor *tensor;
    } u;
} plait_attr;

/* An attribute that an op has. required: each node must give it a value. */
typedef struct plait_attr_spec {
    plait_attr preset; /* its name, its kind, and its value where a node gives none */
    int        required;
} plait_attr_spec;

/* --- one use of an op ------------------------------------------------------------------------------- */

/* A node, as its op's functions see it. */
typedef struct plait_call {
    const plait_tensor *in; /* [n_in]; in infer they have no data, and lengths may be PLAIT_ANY              */
    plait_tensor       *out; /* [n_out]; infer fills type and shape, kernels fill the memory at data          */
    int32_t             n_in, n_out;
    const plait_attr   *attr; /* [op->n_attrs], in the order and of the kinds of op->attrs                    */
    void               *state;     /* kernels: what open returned                                            */
    void               *scratch;   /* kernels: kernel->scratch bytes, 64-byte aligned, for this item alone   */
    uint64_t            seed;      /* random kernels: the seed of session and node ...                       */
    uint64_t            step;      /* ... and the number of the run                                          */
    void               *user;      /* the op's user                                                          */
    const plait_log    *log;       /* kernels: the session's log; NULL: silence                              */
    plait_error        *error;     /* filled by a function that fails                                        */
} plait_call;

/** Fills call->error and returns code. Ops call it when they fail. call NULL: nothing is filled; format NULL: the
 *  code's text. */
PLAIT_API plait_status plait_call_fail(const plait_call *call, plait_status code, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

typedef enum plait_device { PLAIT_CPU = 0 } plait_device;

/* One way to compute an op. */
typedef struct plait_kernel {
    const char  *name; /* "ref", "blas", "onednn"                                                            */
    plait_device device;
    int (*suits)(const plait_call *call);       /* can it compute this call? shapes are known; NULL: always   */
    plait_status (*open)(const plait_call *call, void **state_out); /* once for each memory of a plan; NULL: no state */
    void (*close)(void *state);
    size_t (*scratch)(const plait_call *call);  /* bytes that an item needs; NULL: 0                          */
    int64_t (*items)(const plait_call *call); /* parts that may run at once. It depends on shapes alone, so that the
                                                   number of threads never changes a bit; NULL: 1             */
    plait_status (*run)(const plait_call *call, int64_t item);
} plait_kernel;

/* What a gradient rule sees, and what it fills. */
typedef struct plait_gradient {
    plait_graph       *graph; /* the rule adds nodes to it                                                    */
    const plait_value *in;    /* [n_in]                                                                       */
    const plait_value *out;   /* [n_out]                                                                      */
    const plait_value *d_out; /* [n_out]: the target's derivative by each output; PLAIT_NONE: zero            */
    plait_value       *d_in;  /* [n_in]: the rule sets the derivative by each input, of its type and shape; PLAIT_NONE,
                                 as it is at first: zero                                                      */
    int32_t            n_in, n_out;
    const plait_attr  *attr;
    void              *user; /* the op's */
} plait_gradient;

/* Computes n >= 0 elements: element i of out from element i of each input. out may be one of in. */
typedef void plait_map_fn(int64_t n, const void *const *in, void *out, const plait_attr *attr);

enum {
    PLAIT_OP_STATEFUL = 1, /* it differs from run to run (random) or has an effect outside (print): it is never folded
                              or merged, nor dropped if it was fetched                                        */
    PLAIT_OP_ALIAS = 2,    /* output 0 is input 0 in another shape: no kernel, no memory                       */
    PLAIT_OP_STORE = 4,    /* input 0 is a variable: for Plait's own ops only                                  */
    PLAIT_OP_BOOL = 8      /* map: the output is BOOL, not of the inputs' type                                 */
};

typedef struct plait_op {
    size_t      size;    /* sizeof (plait_op)                                                                 */
    const char *name;    /* "matmul"                                                                          */
    const char *summary; /* one line                                                                          */
    int32_t     min_inputs, max_inputs, outputs; /* outputs 0: attribute 0, an int, is their number           */
    const plait_attr_spec *attrs; /* [n_attrs] */
    int32_t     n_attrs;
    uint32_t    flags;
    uint32_t    shape_only; /* bit i: only the shape of input i is used; the op does not need it computed      */
    uint32_t    in_place;   /* bit i: output 0 may be written over input i, if both have the same size         */
    plait_status (*infer)(const plait_call *call); /* NULL with map: inputs of one type, broadcast as NumPy does */
    void (*gradient)(const plait_gradient *at);    /* NULL: no gradient passes through the op                  */
    double (*flops)(const plait_call *call);       /* NULL: one for each element of output 0                   */
    const plait_kernel *const *kernels;            /* ends with NULL; the first that suits is used             */
    plait_map_fn *map[PLAIT_TYPES];                /* instead of kernels: by type of input 0; BF16 goes through F32 */
    void         *user;                            /* passed to all functions but map                               */
} plait_op;

#ifdef __cplusplus
}
#endif
#endif
