/* graph/resizing.h - what resize and its gradient share: the attributes, and the places that each place is made of. */
#ifndef PLI_GRAPH_RESIZING_H
#define PLI_GRAPH_RESIZING_H

#include "graph/taps.h"

enum {
    PLI_RESIZE_AXIS,
    PLI_RESIZE_LENGTH,
    PLI_RESIZE_SCALE,
    PLI_RESIZE_MODE,
    PLI_RESIZE_PLACES,
    PLI_RESIZE_ROUNDS,
    PLI_RESIZE_CUBIC,
    PLI_RESIZE_EXCLUDE,
    PLI_RESIZE_ATTRS
};

extern const plait_attr_spec pli_resize_attrs[PLI_RESIZE_ATTRS];

/** The shape `to` of the output for an input of shape `from`. Errors: ESHAPE, ENAME. */
plait_status pli_resize_infer(const plait_call *call, const plait_shape *from, plait_shape *to);
pli_taps_fn  pli_resize_taps;

#endif
