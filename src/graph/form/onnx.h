/* graph/form/onnx.h - an ONNX model as plain structs, and the module that makes them of bytes, and bytes of them.
 *
 * The module (src/graph/onnx/, plait-onnx.so) knows the wire and nothing of graphs; import.c and export.c know graphs
 * and nothing of the wire. Types are Plait's already, and every array is as long as its shape says: the module refuses
 * what is not. */
#ifndef PLI_GRAPH_FORM_ONNX_H
#define PLI_GRAPH_FORM_ONNX_H

#include <plait/graph.h>

#include "base/base.h"

#define PLI_ONNX_ABI 2u

/* What is read. From opset 22 on the ops that are read have got types alone (tests/graph/onnx_nodes.py holds that). */
enum { PLI_ONNX_OPSET_MIN = 17, PLI_ONNX_OPSET_MAX = 23, PLI_ONNX_IR_MIN = 8, PLI_ONNX_IR_MAX = 11 };

typedef struct pli_onnx_tensor {
    const char        *name; /* "" none */
    plait_tensor       tensor;
    const char *const *text; /* of strings: its elements, and tensor has the shape alone; else NULL */
} pli_onnx_tensor;

/* As ONNX numbers them. */
typedef enum pli_onnx_kind {
    PLI_ONNX_FLOAT = 1,
    PLI_ONNX_INT = 2,
    PLI_ONNX_TEXT = 3,
    PLI_ONNX_TENSOR = 4,
    PLI_ONNX_FLOATS = 6,
    PLI_ONNX_INTS = 7,
    PLI_ONNX_TEXTS = 8 /* read only */
} pli_onnx_kind;

typedef struct pli_onnx_attr {
    const char            *name;
    pli_onnx_kind          kind;
    int32_t                n; /* of floats, ints, texts */
    int64_t                i;
    float                  f;
    const char            *text; /* ends in a zero */
    const float           *floats;
    const int64_t         *ints;
    const char *const     *texts;
    const pli_onnx_tensor *tensor;
} pli_onnx_attr;

typedef struct pli_onnx_node {
    const char        *name, *op, *domain; /* "" none */
    int32_t            n_in, n_out, n_attrs;
    const char *const *in, *const *out; /* "" left out */
    const pli_onnx_attr *attr;
} pli_onnx_node;

typedef struct pli_onnx_value {
    const char  *name;
    plait_tensor tensor;  /* without data; PLAIT_ANY where a length has a name or none */
    bool         is_text; /* of strings, and tensor has the shape alone                */
    bool         open;    /* no shape is given                                         */
    const char  *axis;    /* what the first length is called where it is PLAIT_ANY; written only */
} pli_onnx_value;

typedef struct pli_onnx_model {
    int64_t                ir, opset; /* of the ops without a domain; -1: none is said */
    const char            *producer, *producer_version, *name;
    int64_t                n_nodes, n_tensors, n_in, n_out, n_notes;
    const pli_onnx_node   *node;
    const pli_onnx_tensor *tensor; /* initialisers */
    const pli_onnx_value  *in, *out;
    const char *const     *note;  /* [2 n_notes] key, value */
    void                  *owner; /* the module's: everything above lies there; NULL: the maker's */
} pli_onnx_model;

typedef struct pli_onnx_codec {
    uint32_t abi; /* PLI_ONNX_ABI */
    /** Copies nothing of large arrays: bytes are borrowed until free. Errors: EFORMAT, EREFUSED data in other files,
     *  ENOMEM. */
    plait_status (*decode)(const void *bytes, size_t n, pli_onnx_model *model_out, plait_error *err);
    void (*free)(pli_onnx_model *model);
    /** *bytes_out is given back by release. */
    plait_status (*encode)(const pli_onnx_model *model, void **bytes_out, size_t *n_out, plait_error *err);
    void (*release)(void *bytes);
} pli_onnx_codec;

/** Loads the module. handle is given to pli_module_close when the codec and all that it made are done with. Errors:
 *  EMODULE with what installs it. */
plait_status pli_onnx_open(void **handle_out, const pli_onnx_codec **codec_out, plait_error *err);

/* For messages: the types that there are in both. */
#define PLI_ONNX_TYPES "FLOAT, DOUBLE, BFLOAT16, UINT8, INT32, INT64 and BOOL"

/** A type as ONNX numbers it; 0, -1: there is none. */
int32_t pli_onnx_type(plait_type type);
int32_t pli_onnx_type_of(int32_t number);

#endif
