/* Schedules of pipelines. See pipeline.h. The k-th forward piece and the k-th backward piece of a rank follow from k by
 * arithmetic, and so does the order of the two: a schedule needs no memory. */
#include "graph/pipeline.h"

#include <string.h>

#include "base/base.h"

const char *const pli_pipelines[PLI_PIPELINES] = {
    [PLI_GPIPE] = "gpipe", [PLI_1F1B] = "1f1b", [PLI_INTERLEAVED] = "interleaved"
};

plait_status pli_pipeline_init(pli_pipeline *p, const char *schedule, int32_t ranks, int32_t chunks,
                               int32_t micro_batches, int32_t rank, plait_error *err) {
    int32_t kind = 0;
    while (kind < PLI_PIPELINES && strcmp(pli_pipelines[kind], schedule) != 0) kind++;
    if (kind == PLI_PIPELINES) return pli_fail_unknown(err, "schedule", schedule, pli_pipelines, PLI_PIPELINES);
    if (ranks < 1 || chunks < 1 || micro_batches < 1 || rank < 0 || rank >= ranks || micro_batches > INT32_MAX / chunks)
        return pli_fail(err, PLAIT_EINVAL,
                        "a pipeline of %d micro-batches over %d ranks with %d parts each, at rank "
                        "%d",
                        micro_batches, ranks, chunks, rank);
    if (chunks > 1 && kind != PLI_INTERLEAVED)
        return pli_fail(err, PLAIT_EINVAL, "schedule %s has one part a rank, not %d; take interleaved", schedule,
                        chunks);
    if (kind == PLI_INTERLEAVED && micro_batches % ranks != 0)
        return pli_fail(err, PLAIT_EINVAL,
                        "schedule interleaved over %d ranks takes a multiple of %d micro-batches, not %d; take %d",
                        ranks, ranks, micro_batches, (micro_batches / ranks + 1) * ranks);
    *p = (pli_pipeline){
        .kind = (pli_pipeline_kind)kind, .ranks = ranks, .chunks = chunks, .micro_batches = micro_batches, .rank = rank
    };
    return PLAIT_OK;
}

/* How many forward pieces come before the first backward one; total: of all. */
static int64_t warm_up(const pli_pipeline *p, int64_t total) {
    if (p->kind == PLI_GPIPE) return total;
    int64_t first = p->ranks - 1 - p->rank;
    if (p->chunks > 1) first = 2 * first + (int64_t)(p->chunks - 1) * p->ranks;
    return first < total ? first : total;
}

/* The k-th piece in one direction: groups of `ranks` micro-batches, each through all chunks. */
static pli_pipeline_work piece(const pli_pipeline *p, int64_t k, bool backward) {
    if (p->chunks == 1) return (pli_pipeline_work){ p->rank, (int32_t)k, backward };
    const int64_t group = (int64_t)p->ranks * p->chunks, in_group = k % group;
    int32_t       chunk = (int32_t)(in_group / p->ranks);
    if (backward) chunk = p->chunks - 1 - chunk;
    return (pli_pipeline_work){ chunk * p->ranks + p->rank, (int32_t)(k / group * p->ranks + in_group % p->ranks),
                                backward };
}

bool pli_pipeline_next(const pli_pipeline *p, pli_pipeline_work *work_out) {
    const int64_t total = (int64_t)p->micro_batches * p->chunks, warm = warm_up(p, total), turns = total - warm;
    const int64_t i = p->at - warm; /* since the turns began */
    if (p->at == 2 * total) return false;
    if (i < 0)
        *work_out = piece(p, p->at, false);
    else if (i < 2 * turns)
        *work_out = piece(p, i % 2 == 0 ? warm + i / 2 : i / 2, i % 2 != 0);
    else
        *work_out = piece(p, i - turns, true);
    return true;
}

void pli_pipeline_done(pli_pipeline *p) {
    p->at++;
}
