/* graph/extend.h - what extend and its gradient share: the attributes, and which place each new place copies. */
#ifndef PLI_GRAPH_EXTEND_H
#define PLI_GRAPH_EXTEND_H

#include "graph/taps.h"

enum { PLI_EXTEND_AXIS, PLI_EXTEND_BEFORE, PLI_EXTEND_AFTER, PLI_EXTEND_MODE, PLI_EXTEND_ATTRS };

extern const plait_attr_spec pli_extend_attrs[PLI_EXTEND_ATTRS];

/** The shape `to` of the output for an input of shape `from`. Errors: ESHAPE. */
plait_status pli_extend_infer(const plait_call *call, const plait_shape *from, plait_shape *to);
pli_taps_fn  pli_extend_taps;

#endif
