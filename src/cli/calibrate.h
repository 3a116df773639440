/* cli/calibrate.h - what computing a graph costs on this machine. */
#ifndef PLI_CLI_CALIBRATE_H
#define PLI_CLI_CALIBRATE_H

#include <plait/status.h>

typedef struct pli_graph_cost {
    double flop_ns, tap_ns, step_ns, moved_ns, node_ns;
} pli_graph_cost;

/** Measures matrix products, convolutions, pooling, copies and small nodes, each on one thread. Errors: ENOMEM. */
plait_status pli_calibrate_graph(pli_graph_cost *cost_out, plait_error *err);

#endif
