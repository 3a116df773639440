/* cli/graph_stop.h - `plait graph run` that stops, on a signal or for a checkpoint, and goes on. */
#ifndef PLI_CLI_GRAPH_STOP_H
#define PLI_CLI_GRAPH_STOP_H

#include "cli/graph_run.h"
#include "cli/signals.h"

typedef struct pli_graph_stop {
    const pli_graph_run *set;
    pli_signals          signals;
    pli_talk             talk;
    bool                 anew;      /* --resume DIR --checkpoint DIR, and DIR holds no checkpoint: it begins anew */
    char                 note[200]; /* of checkpoints: what run they are of                                      */
} pli_graph_stop;

/** From now on signals are heard. Errors: those of pli_signals_open. */
plait_status pli_graph_stop_open(pli_graph_stop *stop, const pli_graph_run *set, plait_error *err);
void         pli_graph_stop_close(pli_graph_stop *stop);
/** The clock in which the run begins: that of --resume's newest checkpoint, or 0. Errors: as plait_checkpoint_open. */
plait_status pli_graph_stop_clock(const pli_graph_stop *stop, int64_t *clock_out, plait_error *err);
/** Notes what the run is, before it begins, and sets what its options need. */
void pli_graph_stop_note(pli_graph_stop *stop, const plait_edges *edges);
void pli_graph_stop_opts(pli_graph_stop *stop, plait_vertex_opts *opts);
/** Says that the run was interrupted, and how to go on; processes: its ranks are processes of a launcher. */
void pli_graph_stop_say(pli_graph_stop *stop, int64_t supersteps, bool processes);

#endif
