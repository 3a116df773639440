/* graph/form/import.h - what the ops of an ONNX import see: one node at a time, with its attributes, and with its
 * inputs as values of the graph or as constants that are known at import.
 *
 * An op is one function, listed with its ONNX name in one of the tables below. It refuses by name what it cannot do. If
 * the graph refuses what the op has built, import.c reports it with the node's name. */
#ifndef PLI_GRAPH_FORM_IMPORT_H
#define PLI_GRAPH_FORM_IMPORT_H

#include "graph/form/form.h"
#include "graph/form/onnx.h"

typedef struct pli_import pli_import;
typedef plait_status      pli_import_fn(pli_import *im);

/* how: tells fn which op it is, if one function serves several ("add"). attrs: all attributes that the op may have,
 * with their kinds, "axis int, alpha float, mode text, pads ints" (also tensor, floats); others are refused before fn
 * sees the node. NULL: no attributes. */
typedef struct pli_import_op {
    const char    *name;
    pli_import_fn *fn;
    const char    *how, *attrs;
} pli_import_op;

/** Tables of ops; NULL ends each. */
extern const pli_import_op pli_import_elements[], pli_import_shapes[], pli_import_lengths[], pli_import_numbers[],
    pli_import_layers[], pli_import_images[], pli_import_recurrent[];
/** All these tables; NULL ends the list. */
extern const pli_import_op *const pli_import_tables[];

struct pli_import {
    plait_graph             *g;
    const pli_onnx_model    *model;
    const pli_onnx_node     *node; /* the current node */
    const pli_import_op     *op;
    plait_error             *err;
    struct pli_import_names *names;  /* private to import.c */
    pli_budget               budget; /* for values          */
};

/** Fails with a text that begins with the node's op and name. */
plait_status pli_import_fail(const pli_import *im, plait_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Is input k given? */
bool pli_import_has(const pli_import *im, int32_t k);
/** Input k as a value; PLAIT_NONE: it is not given, or the graph has failed. An initialiser of floats becomes a
 *  variable. */
plait_value pli_import_in(pli_import *im, int32_t k);
/** The same, but an initialiser becomes a constant, which training does not change. */
plait_value pli_import_fixed(pli_import *im, int32_t k);
/** Input k as an array that is known at import; NULL: it is computed, or not given. */
const plait_tensor *pli_import_known(const pli_import *im, int32_t k);
/** Input k as at most `most` integers that are known at import. *n_out -1: not given. Errors: EREFUSED it is
 *  computed. */
plait_status pli_import_ints(const pli_import *im, int32_t k, int32_t most, int64_t *ints, int32_t *n_out);
/** Input k as one number, or `absent` if it is not given. Errors: as pli_import_ints. */
plait_status pli_import_number(const pli_import *im, int32_t k, double absent, double *out);

/** Checks the attributes (import_attrs.c). Errors: ENAME an attribute that the op does not list; EFORMAT an attribute
 *  of another kind, or given twice. */
plait_status pli_import_check_attrs(const pli_import *im);

const pli_onnx_attr *pli_import_attr(const pli_import *im, const char *name, pli_onnx_kind kind); /* NULL: none */
int64_t              pli_import_int(const pli_import *im, const char *name, int64_t absent);
double               pli_import_float(const pli_import *im, const char *name, double absent);
const char          *pli_import_text(const pli_import *im, const char *name, const char *absent);
/** An attribute of at most `most` integers. Returns how many; -1: there is no such attribute; -2: there are more. */
int32_t pli_import_list(const pli_import *im, const char *name, int32_t most, int64_t *ints);

/** Makes this value output k. */
void pli_import_out(pli_import *im, int32_t k, plait_value value);
/** Makes output k this array, which is known at import; its data is copied. */
plait_status pli_import_out_known(pli_import *im, int32_t k, const plait_tensor *tensor);
/** Notes that output k, which is a value already, is the shape of x, which a run decides. */
void pli_import_out_shape_of(pli_import *im, int32_t k, plait_value x);
/** The value x if input k is the shape of x, which a run decides; else PLAIT_NONE. */
plait_value pli_import_shape_of(const pli_import *im, int32_t k);
/** Does the node have an output k, that is, is it named? */
bool pli_import_wants(const pli_import *im, int32_t k);

/** A constant of rank 0 with the type of `like`. */
plait_value pli_import_scalar(pli_import *im, plait_value like, double x);
plait_shape pli_import_shape(const pli_import *im, plait_value value); /* rank 0 where there is none */
/** The length of an axis of x as a scalar i64; if it is unknown, the run computes it. Only the shape of x is used. */
plait_value pli_import_length(pli_import *im, plait_value x, int32_t axis);
/** The axis of x counted from the front; -1: there is no such axis, and the graph has failed. */
int32_t pli_import_axis(pli_import *im, plait_value x, int64_t axis);

#endif
