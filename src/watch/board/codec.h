/* watch/board/codec.h - the module plait-tensorboard: it turns an event, a plain struct, into bytes by protobuf-c. */
#ifndef PLI_BOARD_CODEC_H
#define PLI_BOARD_CODEC_H

#include <plait/tensor.h>

#include "base/base.h"

#define PLI_BOARD_ABI 1u

typedef struct pli_board_histogram {
    double        min, max, sum, sum_squares;
    int64_t       n;             /* number of values                                   */
    int32_t       buckets;
    const double *limit, *count; /* [buckets]: values <= limit[i] and > limit[i - 1]   */
} pli_board_histogram;

typedef struct pli_board_value {
    const char                *tag;
    double                     scalar;
    const pli_board_histogram *histogram; /* NULL: a scalar */
} pli_board_value;

typedef struct pli_board_node {
    const char        *name, *op;
    int32_t            n_inputs, n_outputs;
    const char *const *input;  /* [n_inputs] "name" or "name:output"        */
    const plait_tensor *output; /* [n_outputs] type and shape, without data */
} pli_board_node;

/* An event has exactly one of: a version of the file, values [n_values], a graph of nodes [n_nodes]. */
typedef struct pli_board_event {
    double                 wall_seconds;
    int64_t                step;
    const char            *version;
    const pli_board_value *value;
    const pli_board_node  *node;
    int64_t                n_values, n_nodes;
} pli_board_event;

typedef struct pli_board_codec {
    uint32_t abi; /* PLI_BOARD_ABI */
    /** Passes the event's bytes to take; false: out of memory. Any thread. */
    bool (*pack)(const pli_board_event *event, void (*take)(void *user, const void *bytes, size_t n), void *user);
} pli_board_codec;

#endif
