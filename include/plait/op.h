/* plait/op.h - what an op of a dataflow graph is: one table of data and functions, the same for Plait's own and yours.
 *
 * An op knows nothing of tables, ranks or devices. It says which shapes go in and come out (infer), how its inputs'
 * gradients are made of other ops (gradient), and how it is computed (kernels; or `map`, for one that works element by
 * element). Kernels write into memory that they are given, keep nothing between calls but what `open` gave, and never
 * call back into Plait. Kernels of an item may run on any thread, several items at once.
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

/* --- attributes: what a node has beside its inputs -------------------------------------------------- */

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

/* What an op's attribute is called; its kind, and its value where a node does not say (required: it must). */
typedef struct plait_attr_spec {
    plait_attr preset;
    int        required;
} plait_attr_spec;

/* --- one use of an op ------------------------------------------------------------------------------- */

/* A node, as its op's functions see it. */
typedef struct plait_call {
    const plait_tensor *in; /* [n_in]; in infer without data, and with lengths that may be PLAIT_ANY         */
    plait_tensor       *out; /* [n_out]; infer fills type and shape, kernels data (which out.data points to)  */
    int32_t             n_in, n_out;
    const plait_attr   *attr; /* [op->n_attrs], in the order of op->attrs, every one of its kind              */
    void               *state;     /* kernels: what open gave                                                */
    void               *scratch;   /* kernels: kernel->scratch bytes, 64-byte aligned, of this item alone    */
    uint64_t            seed;      /* kernels of random ops: of the session and the node ...                 */
    uint64_t            step;      /* ... and of the run                                                     */
    void               *user;      /* the op's                                                               */
    const plait_log    *log;       /* kernels: the session's; NULL: silence                                  */
    plait_error        *error;     /* what a function that fails fills                                       */
} plait_call;

/** Fills call->error and returns code. For ops. call NULL: there is nothing to fill; format NULL: the code's text. */
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
    int (*suits)(const plait_call *call);       /* shapes are known; NULL: always                             */
    plait_status (*open)(const plait_call *call, void **state_out); /* once a memory that a plan runs in; NULL: none */
    void (*close)(void *state);
    size_t (*scratch)(const plait_call *call);  /* bytes an item needs; NULL: 0                               */
    int64_t (*items)(const plait_call *call); /* parts that may run at once, of the shapes alone, so that threads never
                                                   change a bit; NULL: 1                                      */
    plait_status (*run)(const plait_call *call, int64_t item);
} plait_kernel;

/* What a gradient rule sees, and what it fills. */
typedef struct plait_gradient {
    plait_graph       *graph; /* to which it adds nodes                                                       */
    const plait_value *in;    /* [n_in]                                                                       */
    const plait_value *out;   /* [n_out]                                                                      */
    const plait_value *d_out; /* [n_out]: the target's derivative by each output; PLAIT_NONE: zero            */
    plait_value       *d_in;  /* [n_in], PLAIT_NONE at first: by each input, of its type and shape; left: zero */
    int32_t            n_in, n_out;
    const plait_attr  *attr;
    void              *user; /* the op's */
} plait_gradient;

/* Element i of the output of element i of the inputs, n >= 0 in a row. out may be one of in. */
typedef void plait_map_fn(int64_t n, const void *const *in, void *out, const plait_attr *attr);

enum {
    PLAIT_OP_STATEFUL = 1, /* not the same each time (random), or seen outside (print): never folded, merged or dropped
                              when it was asked for                                                           */
    PLAIT_OP_ALIAS = 2,    /* output 0 is input 0 in another shape: no kernel, no memory                       */
    PLAIT_OP_STORE = 4,    /* input 0 is a variable: only Plait's own                                          */
    PLAIT_OP_BOOL = 8      /* map: the output is BOOL, not of the inputs' type                                 */
};

typedef struct plait_op {
    size_t      size;    /* sizeof (plait_op)                                                                 */
    const char *name;    /* "matmul"                                                                          */
    const char *summary; /* one line                                                                          */
    int32_t     min_inputs, max_inputs, outputs; /* outputs 0: as many as attr 0, an int, says                */
    const plait_attr_spec *attrs; /* [n_attrs] */
    int32_t     n_attrs;
    uint32_t    flags;
    uint32_t    shape_only; /* bit i: of input i only the shape is used; it is not computed for this op's sake */
    uint32_t    in_place;   /* bit i: output 0 may be written over input i, if they are of one size             */
    plait_status (*infer)(const plait_call *call); /* NULL with map: all inputs of one type, broadcast as NumPy does */
    void (*gradient)(const plait_gradient *at);    /* NULL: no gradient goes through it                        */
    double (*flops)(const plait_call *call);       /* NULL: one an element of output 0                         */
    const plait_kernel *const *kernels;            /* NULL-ended; the first that suits is taken                */
    plait_map_fn *map[PLAIT_TYPES];                /* by type of input 0, instead of kernels. BF16 goes through F32 */
    void         *user;                            /* handed to all but map                                         */
} plait_op;

#ifdef __cplusplus
}
#endif
#endif
