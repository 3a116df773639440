/* learn/net/stages_state.h - what stages.c (plan, groups, sessions) and stages_step.c (runs) know of a net in stages.
 */
#ifndef PLI_LEARN_STAGES_STATE_H
#define PLI_LEARN_STAGES_STATE_H

#include "graph/session.h"
#include "learn/net/stages.h"

enum {
    PLI_STAGE_CHUNKS = 2, /* parts of a rank under interleaved */
    PLI_OUTLINE_HEAD = 3,
    PLI_OUTLINE_LENGTHS = 3 /* besides those of candidates */
};

/* Traces the pieces of a part. */
typedef struct pli_stage_tracer {
    const pli_stages *stages;
    char              name[PLI_PIECES][40];
    uint64_t          begun_ns[PLI_PIECES];
} pli_stage_tracer;

struct pli_stages {
    pli_run            *run;
    int32_t             ranks, chunks, replicas, stage, replica;
    int32_t             spares; /* replicas behind the others, which have no rows until one of those has died */
    int32_t             most; /* micro-batches of a run, at most */
    int32_t            *place; /* [nodes of the graph] a part each; part p lies in stage p % ranks */
    const char         *pipeline; /* in which order micro-batches go */
    int32_t             judge;    /* the stage that has the loss */
    int32_t             stage_of[PLI_NET_PARAMS];
    int64_t             trained; /* rows */
    bool                judges;  /* a run at hand is of rows that are judged: a trace shows those of training */
    plait_group        *members, *peers; /* of the stage; of the replica */
    plait_comm_channel *channel;
    plait_session      *session[PLI_STAGE_CHUNKS];
    pli_stage_tracer    tracer[PLI_STAGE_CHUNKS];
    /* of a run; [most] */
    pli_net_rows *rows;
    plait_feed   *feed; /* [most, pli_stages_feeds] */
    plait_fetch  *fetch; /* [most, n_params + 1] */
    plait_batch  *batch;
    pli_sums     *sums;
    int64_t      *outline; /* [PLI_OUTLINE_HEAD + pli_stages_lengths most] */
    float        *scores; /* of rows that are scored */
    int64_t       scores_capacity;
};

static inline const pli_net *pli_stages_net(const pli_stages *s) { return pli_net_trained(s->run); }
/** Feeds of a micro-batch: of its rows; of variables, too, where it is judged. */
static inline int64_t pli_stages_feeds(const pli_stages *s) {
    const pli_net *net = pli_stages_net(s);
    return PLI_NET_FEEDS + 2 + (net->sampled > 0 ? 2 * net->columns : 0) + net->n_params;
}
/** Lengths of a micro-batch in an outline. */
static inline int64_t pli_stages_lengths(const pli_stages *s) {
    const pli_net *net = pli_stages_net(s);
    return PLI_OUTLINE_LENGTHS + (net->sampled > 0 ? net->columns : 0);
}

#endif
