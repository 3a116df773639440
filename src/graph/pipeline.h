/* graph/pipeline.h - schedules of pipelines: which micro-batch a rank works on next, and in which direction.
 *
 * A graph is cut into parts p = 0 .. P-1, one after the other. Micro-batch m goes forward through the parts and then
 * backward. A schedule is a list of (part, m, direction) for each rank; it has no threads and no clock. Whoever runs it
 * asks for the next piece of work and says when it is done. Whether its inputs have arrived is not the schedule's
 * business: a rank waits for them.
 *
 *     gpipe        F0 F1 F2 F3 B0 B1 B2 B3. All m micro-batches are under way at once. The share of time in which a
 *                  rank works is m / (m + P - 1). (Huang et al., "GPipe", NeurIPS 2019)
 *     1f1b         rank r first goes forward P-1-r times, then forward and backward in turns. It works as much as with
 *                  gpipe, but at most P - r micro-batches are under way. (Narayanan et al., "Efficient Large-Scale
 *                  Language Model Training on GPU Clusters Using Megatron-LM", SC 2021: PipeDream-flush; the order is
 *                  that of Harlap et al., "PipeDream", 2018)
 *     interleaved  1f1b in which a rank has several parts (chunks), R apart: the bubble shrinks by their number. The
 *                  micro-batches go in groups of R (Narayanan et al., section 2.2); m is a multiple of R.
 *
 * A rank does the backward passes of a part in the order of the micro-batches, so gradients are added in the same order
 * under every schedule. */
#ifndef PLI_GRAPH_PIPELINE_H
#define PLI_GRAPH_PIPELINE_H

#include <plait/status.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct pli_pipeline_work {
    int32_t part, micro_batch;
    bool    backward;
} pli_pipeline_work;

typedef enum pli_pipeline_kind { PLI_GPIPE, PLI_1F1B, PLI_INTERLEAVED } pli_pipeline_kind;

enum { PLI_PIPELINES = 3 };
extern const char *const pli_pipelines[PLI_PIPELINES];

typedef struct pli_pipeline {
    pli_pipeline_kind kind;
    int32_t           ranks, chunks, micro_batches, rank;
    int64_t           at; /* pieces that are done */
} pli_pipeline;

/** Errors: ENAME an unknown schedule, with the nearest; EINVAL counts below 1, or that the schedule does not take. */
plait_status pli_pipeline_init(pli_pipeline *pipeline, const char *schedule, int32_t ranks, int32_t chunks,
                               int32_t micro_batches, int32_t rank, plait_error *err);
/** What comes next; false: all is done. */
bool pli_pipeline_next(const pli_pipeline *pipeline, pli_pipeline_work *work_out);
/** What came next is done. */
void pli_pipeline_done(pli_pipeline *pipeline);

#endif
