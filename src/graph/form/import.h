/* graph/form/import.h - what the ops of an ONNX import see: one node at a time, its inputs as values of the graph or
 * as constants that are known now, its attributes.
 *
 * An op is one function, listed with its ONNX name in one of the tables below. What it cannot do it refuses by name;
 * what the graph then has against it is told with the node's name by import.c. */
#ifndef PLI_GRAPH_FORM_IMPORT_H
#define PLI_GRAPH_FORM_IMPORT_H

#include "graph/form/form.h"
#include "graph/form/onnx.h"

typedef struct pli_import pli_import;
typedef plait_status      pli_import_fn(pli_import *im);

/* how: what fn is told by, where one function serves several ops ("add"). attrs: all attributes that it may have, with
 * their kinds, "axis int, alpha float, mode text, pads ints" (tensor, floats): others are refused before fn sees the
 * node. NULL: none. */
typedef struct pli_import_op {
    const char    *name;
    pli_import_fn *fn;
    const char    *how, *attrs;
} pli_import_op;

/** NULL-ended. */
extern const pli_import_op pli_import_elements[], pli_import_shapes[], pli_import_lengths[], pli_import_numbers[],
    pli_import_layers[], pli_import_images[], pli_import_recurrent[];
/** NULL-ended: all of these. */
extern const pli_import_op *const pli_import_tables[];

struct pli_import {
    plait_graph             *g;
    const pli_onnx_model    *model;
    const pli_onnx_node     *node; /* at hand */
    const pli_import_op     *op;
    plait_error             *err;
    struct pli_import_names *names;  /* import.c's */
    pli_budget               budget; /* for values  */
};

/** Fails with the node's op and name before the text. */
plait_status pli_import_fail(const pli_import *im, plait_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Input k is given. */
bool pli_import_has(const pli_import *im, int32_t k);
/** Input k as a value; PLAIT_NONE where it is not given, or the graph has failed. An initialiser of floats becomes a
 *  variable. */
plait_value pli_import_in(pli_import *im, int32_t k);
/** The same, but an initialiser becomes a constant: what training leaves alone. */
plait_value pli_import_fixed(pli_import *im, int32_t k);
/** Input k as an array that is known now; NULL: it is computed, or not given. */
const plait_tensor *pli_import_known(const pli_import *im, int32_t k);
/** Input k as integers that are known now, at most most. *n_out -1: not given. Errors: EREFUSED it is computed. */
plait_status pli_import_ints(const pli_import *im, int32_t k, int32_t most, int64_t *ints, int32_t *n_out);
/** Input k as one number; absent where it is not given. Errors: as of ints. */
plait_status pli_import_number(const pli_import *im, int32_t k, double absent, double *out);

/** Errors: ENAME an attribute that the op does not list, EFORMAT one of another kind, or twice (import_attrs.c). */
plait_status pli_import_check_attrs(const pli_import *im);

const pli_onnx_attr *pli_import_attr(const pli_import *im, const char *name, pli_onnx_kind kind); /* NULL: none */
int64_t              pli_import_int(const pli_import *im, const char *name, int64_t absent);
double               pli_import_float(const pli_import *im, const char *name, double absent);
const char          *pli_import_text(const pli_import *im, const char *name, const char *absent);
/** An attribute of at most `most` integers; answers how many, -1 where there is none, -2 where there are more. */
int32_t pli_import_list(const pli_import *im, const char *name, int32_t most, int64_t *ints);

/** Output k is this value. */
void pli_import_out(pli_import *im, int32_t k, plait_value value);
/** Output k is this array, which is known now; its data is copied. */
plait_status pli_import_out_known(pli_import *im, int32_t k, const plait_tensor *tensor);
/** Output k, a value already, is the shape of x, which a run decides. */
void pli_import_out_shape_of(pli_import *im, int32_t k, plait_value x);
/** The value whose shape input k is and a run decides; else PLAIT_NONE. */
plait_value pli_import_shape_of(const pli_import *im, int32_t k);
/** Does anybody want output k? */
bool pli_import_wants(const pli_import *im, int32_t k);

/** Constants beside a value: of its type, rank 0. */
plait_value pli_import_scalar(pli_import *im, plait_value like, double x);
plait_shape pli_import_shape(const pli_import *im, plait_value value); /* rank 0 where there is none */
/** The length of an axis of x as a scalar i64; a run counts one that it decides. Of x only the shape is used. */
plait_value pli_import_length(pli_import *im, plait_value x, int32_t axis);
/** x with its axis counted from the front; -1 where there is no such axis, and the graph is told. */
int32_t pli_import_axis(pli_import *im, plait_value x, int64_t axis);

#endif
