/* graph/form/onnx.h - an ONNX model as plain structs, and the module that reads them from bytes and writes them.
 *
 * The module (src/graph/onnx/, plait-onnx.so) knows the file format and nothing of graphs; import.c and export.c know
 * graphs and nothing of the file format. The structs have Plait's types, and every array is as long as its shape says:
 * the module refuses all else. */
#ifndef PLI_GRAPH_FORM_ONNX_H
#define PLI_GRAPH_FORM_ONNX_H

#include <plait/graph.h>

#include "base/base.h"

#define PLI_ONNX_ABI 3u

/* The domain of ops for models that are no nets. */
#define PLI_ONNX_ML "ai.onnx.ml"

/* The versions that are read. From opset 22 on, the ops that are read differ only in their types
 * (tests/graph/onnx_nodes.py checks that). */
enum { PLI_ONNX_OPSET_MIN = 17, PLI_ONNX_OPSET_MAX = 23, PLI_ONNX_IR_MIN = 8, PLI_ONNX_IR_MAX = 11 };

typedef struct pli_onnx_tensor {
    const char        *name; /* "": none */
    plait_tensor       tensor;
    const char *const *text; /* elements that are strings; tensor then has only the shape; else NULL */
} pli_onnx_tensor;

/* Kinds of attributes, with ONNX's numbers. */
typedef enum pli_onnx_kind {
    PLI_ONNX_FLOAT = 1,
    PLI_ONNX_INT = 2,
    PLI_ONNX_TEXT = 3,
    PLI_ONNX_TENSOR = 4,
    PLI_ONNX_FLOATS = 6,
    PLI_ONNX_INTS = 7,
    PLI_ONNX_TEXTS = 8
} pli_onnx_kind;

typedef struct pli_onnx_attr {
    const char            *name;
    pli_onnx_kind          kind;
    int32_t                n; /* number of floats, ints or texts */
    int64_t                i;
    float                  f;
    const char            *text; /* ends with a zero byte */
    const float           *floats;
    const int64_t         *ints;
    const char *const     *texts;
    const pli_onnx_tensor *tensor;
} pli_onnx_attr;

typedef struct pli_onnx_node {
    const char        *name, *op, *domain; /* "": none */
    int32_t            n_in, n_out, n_attrs;
    const char *const *in, *const *out; /* "": left out */
    const pli_onnx_attr *attr;
} pli_onnx_node;

typedef struct pli_onnx_value {
    const char  *name;
    plait_tensor tensor;  /* without data; a length that has a name or is missing is PLAIT_ANY */
    bool         is_text; /* elements are strings, and tensor has only the shape               */
    bool         open;    /* no shape is given                                                 */
    const char  *axis;    /* name of the first length if it is PLAIT_ANY; only written         */
} pli_onnx_value;

typedef struct pli_onnx_model {
    int64_t                ir, opset; /* opset: of ops without a domain; -1: not given   */
    int64_t                ml;        /* opset of PLI_ONNX_ML; 0: not used; only written */
    const char            *producer, *producer_version, *name;
    int64_t                n_nodes, n_tensors, n_in, n_out, n_notes;
    const pli_onnx_node   *node;
    const pli_onnx_tensor *tensor; /* initialisers */
    const pli_onnx_value  *in, *out;
    const char *const     *note;  /* [2 n_notes] key, value */
    void                  *owner; /* the module's memory for all of the above; NULL: the maker of the model owns it */
} pli_onnx_model;

typedef struct pli_onnx_codec {
    uint32_t abi; /* PLI_ONNX_ABI */
    /** Reads a model from bytes [n]. Large arrays are not copied: bytes are borrowed until free. Errors: EFORMAT;
     *  EREFUSED data in other files; ENOMEM. */
    plait_status (*decode)(const void *bytes, size_t n, pli_onnx_model *model_out, plait_error *err);
    void (*free)(pli_onnx_model *model);
    /** Writes a model. release frees *bytes_out. */
    plait_status (*encode)(const pli_onnx_model *model, void **bytes_out, size_t *n_out, plait_error *err);
    void (*release)(void *bytes);
} pli_onnx_codec;

/** Loads the module. Call pli_module_close with handle when the codec and all that it made are no longer needed.
 *  Errors: EMODULE, whose text has the command that installs it. */
plait_status pli_onnx_open(void **handle_out, const pli_onnx_codec **codec_out, plait_error *err);

/* For messages: the types that both ONNX and Plait have. */
#define PLI_ONNX_TYPES "FLOAT, DOUBLE, BFLOAT16, UINT8, INT32, INT64 and BOOL"

/** ONNX's number of a type, or 0; the type of such a number, or -1. */
int32_t pli_onnx_type(plait_type type);
int32_t pli_onnx_type_of(int32_t number);

#endif
