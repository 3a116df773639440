/* learn/net/placed.h - a net that is cut by a placement, while that is made (placed.c) or made anew (suit.c). */
#ifndef PLI_LEARN_PLACED_H
#define PLI_LEARN_PLACED_H

#include "learn/net/stages.h"

typedef struct pli_staging {
    const pli_run  *run;
    const pli_net  *net;
    int32_t         ranks, stages; /* of a replica; stages: twice as many under interleaved */
    int64_t         n, rows;       /* forward nodes; rows of a micro-batch */
    int32_t        *place;         /* [nodes of the graph] */
    pli_stage_hosts hosts;
    int32_t         micro_batches; /* of a simulated step */
    double          seconds;       /* of a step, by simulation */
} pli_staging;

/** Without places and hosts, which the caller sets. */
pli_staging pli_staging_make(const pli_run *run, const pli_net *net, int32_t ranks, int32_t chunks, int64_t rows);
/** The placement in which the net's nodes have these places, judged in the order that runs. place [nodes]; given
 *  [nodes]: room. The caller destroys it. Errors: those of plait_placement_create. */
plait_status pli_staging_given(const pli_staging *p, const int32_t *place, int32_t *given,
                               plait_placement **placement_out, plait_error *err);
/** The time of a step in it. */
plait_status pli_staging_seconds(const pli_staging *p, const int32_t *place, int32_t *given, double *seconds_out,
                                 plait_error *err);
/** Writes the weights of each stage: "stage 0: w1, b1; stage 1: w2, b2". */
void pli_staging_list(const pli_staging *p, const int32_t *place, pli_text *text);

#endif
