/* cli/graph_stop.h - `plait graph run` that stops, on a signal or for a checkpoint, and goes on. */
#ifndef PLI_CLI_GRAPH_STOP_H
#define PLI_CLI_GRAPH_STOP_H

#include "cli/graph_run.h"
#include "cli/lost.h"
#include "cli/signals.h"

/* From where the run goes on. folder "": it starts from the beginning. */
typedef struct pli_graph_from {
    char    folder[40]; /* of --resume */
    int64_t clock;      /* in which the run begins */
} pli_graph_from;

typedef struct pli_graph_stop {
    const pli_graph_run *set;
    pli_signals          signals;
    pli_talk             talk;
    pli_graph_from       from;      /* set by the process's first worker, for all of its workers                 */
    char                 note[240]; /* of checkpoints: what run they are of. Its first `same` characters must be */
    size_t               same;      /* the same where a run goes on                                              */
    const plait_comm    *alone;     /* the process's rank, if it has one                                         */
    pli_lost             lost;      /* the ranks without which the run goes on, as far as the process has heard  */
    int64_t              told;      /* of these                                                                  */
} pli_graph_stop;

/** From now on signals are heard. Errors: those of pli_signals_open. */
plait_status pli_graph_stop_open(pli_graph_stop *stop, const pli_graph_run *set, plait_error *err);
void         pli_graph_stop_close(pli_graph_stop *stop);
/** From where the run goes on. The lead decides it for all, so that no worker sees another checkpoint as the newest.
 *  Errors: EINVAL the checkpoint is of another run; those of plait_checkpoint_open. Collective over the workers. */
plait_status pli_graph_stop_find(pli_graph_stop *stop, plait_comm *comm, pli_graph_from *from_out);
/** Notes what the run is, before it begins, and sets what its options need. */
void pli_graph_stop_note(pli_graph_stop *stop, const plait_edges *edges);
void pli_graph_stop_opts(pli_graph_stop *stop, plait_vertex_opts *opts);
/** Notes options that have no effect: once, by the worker that leads. */
void pli_graph_effects(pli_talk *talk, const pli_graph_run *set, const pli_vertex_named *named,
                       const plait_comm *comm);
/** Hears which ranks have died; the lowest living one tells it. */
void pli_graph_stop_lost(pli_graph_stop *stop, const plait_comm *comm);
/** Says that the run was interrupted, and how to go on; processes: its ranks are processes of a launcher. */
void pli_graph_stop_say(pli_graph_stop *stop, int64_t supersteps, bool processes);

#endif
