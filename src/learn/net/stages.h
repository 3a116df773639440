/* learn/net/stages.h - a net in stages (--cut), through which a batch goes in micro-batches (--micro-batches).
 *
 * K ranks hold one replica of the net's graph, and R = workers / K replicas train together. Stage k of replica r lies
 * on rank k R + r, so the ranks of stage 0 come first, and they alone have rows:
 *
 *              rank 0 .. R-1        R .. 2R-1          ...
 *              stage 0: rows, w1    stage 1: w2        ...    last stage: scores, loss
 *
 * A clock of a replica:
 *     stage 0 lays out the rows of each micro-batch and tells the others their shapes
 *     the micro-batches go forward and backward as the schedule says (graph/batches.h); x's values, activations, labels
 *     and slopes travel along the edges of the cut (plait/comm_channel.h)
 *     each rank pushes the gradients of its own variables, whose tables belong to the group of its stage
 *     the last stage tells the others the sums of losses
 *
 * Of spares (--spares), a multiple of K, whole replicas are made as well, S = spares / K of them: stage k of the s-th
 * lies on rank R K + k S + s. They are members of the stages' groups, without rows until a replica dies (outlive.h).
 *
 * A net that is not cut may have micro-batches: then one rank does all of it, and needs memory for one micro-batch. */
#ifndef PLI_LEARN_STAGES_H
#define PLI_LEARN_STAGES_H

#include <plait/comm_channel.h>
#include <plait/group.h>
#include <plait/place.h>
#include <plait/table_store.h>

#include "learn/net/fit.h"

/** The hosts of the stages, as a placement counts them (hosts.c). */
typedef struct pli_stage_hosts {
    int32_t                   stages, replicas;
    const struct pli_cluster *cluster; /* NULL: time is real, and hosts are equal  */
    double *speed, *latency, *bandwidth; /* [stages], [stages, stages]; with a cluster */
} pli_stage_hosts;

/** ENOMEM. */
plait_status pli_stage_hosts_make(const pli_run *run, int32_t stages, pli_stage_hosts *hosts_out);
/** Gives hosts of equal speed speeds of their own, which may be changed. ENOMEM. */
plait_status pli_stage_hosts_speeds(pli_stage_hosts *hosts);
void         pli_stage_hosts_free(pli_stage_hosts *hosts);
/** Fills speeds, links and costs, which opts borrows. */
void         pli_stage_hosts_fill(const pli_stage_hosts *hosts, plait_place_opts *opts);
/** Does it make no difference which host has which stage? */
bool         pli_stage_hosts_alike(const pli_stage_hosts *hosts);

/** Which stage each node of the net lies in. rows: of a micro-batch. place [nodes of the graph]: -1 for nodes that
 *  follow others (plait_cut). The stages are runs of layers whose slowest takes least time, by the costs of simulation
 *  (plait/place.h). hosts NULL: equal ones; of H hosts, host s % H has stage s. Errors: EREFUSED there are fewer layers
 *  than stages (the text has their weights); ENOMEM. */
plait_status pli_layers_place(const pli_net *net, int32_t stages, int64_t rows, const pli_stage_hosts *hosts,
                              int32_t *place, plait_error *err);

/** The same by a placement: is the net placed by --place, or by places that its graph keeps? */
bool pli_placed_by(const pli_run *run, const pli_net *net);
/** ranks * chunks stages. *pipeline becomes "gpipe" where stages are no chain, unless the run asks for another. Errors:
 *  EINVAL, with the names of the nodes; those of plait_graph_place_file and plait_placement_create. Collective over the
 *  workers. */
plait_status pli_placed_place(const pli_run *run, const pli_net *net, int32_t ranks, int32_t chunks, int64_t rows,
                              int32_t *place, const char **pipeline);

/** Fills the options of a placement of the net's gradients: rows of a micro-batch, which feeds stand for, and what is
 *  fetched. feeds, fetches: room, which opts borrows. */
void pli_net_place_opts(const pli_net *net, int64_t rows, plait_feed feeds[PLI_NET_TRAIN_FEEDS],
                        plait_value fetches[PLI_NET_PARAMS + 1], plait_place_opts *opts);

/** Cuts n layers, of so many seconds each, in `stages` runs, 1 <= stages <= n: first [stages] is where each begins. The
 *  slowest run takes least time. speed [stages]: of the host that has each run; NULL: 1. false: no memory. */
bool pli_layers_cut(const double *seconds, int32_t n, int32_t stages, const double *speed, int32_t *first);

/** Plans the stages of a run whose net and batch are known; *stages_out NULL: the net is whole, and so are its batches.
 *  Errors: those of pli_layers_place and pli_outlive_check. */
plait_status pli_stages_plan(pli_run *run, pli_stages **stages_out);
void         pli_stages_destroy(pli_stages **stages);

/** room.c: does each rank's share of the net, with the optimiser's state and the values of its micro-batches, fit the
 *  memory that the cluster's file gives its host? Errors: EREFUSED with the bytes by rank; ENOMEM. */
plait_status pli_net_room_check(const pli_run *run);

/** Does this rank have parameter p? stages NULL: it has all. */
bool         pli_stages_have(const pli_stages *stages, int32_t p);
/** The stage that has parameter p; the one that has a part. */
int32_t      pli_stages_of(const pli_stages *stages, int32_t p);
int32_t      pli_stages_at(const pli_stages *stages, int32_t part);
/** The first living rank that has parameter p; which replica this rank belongs to. */
int32_t      pli_stages_rank_of(const pli_stages *stages, int32_t p);
int32_t      pli_stages_replica(const pli_stages *stages);
int32_t      pli_stages_stage(const pli_stages *stages);
/** The group to which this rank's tables belong; NULL: all workers. */
plait_group *pli_stages_group(const pli_stages *stages);

/** Makes groups and the channel. Collective over all workers. */
plait_status pli_stages_meet(pli_stages *stages);
/** When this rank's tables are there: from now on the ranks of a replica end their clocks together, and die together in
 *  a run with two replicas of each shard (outlive.h). Errors: ENOMEM. */
plait_status pli_stages_outlive(pli_stages *stages);
/** Makes the sessions of this rank's parts, with these options. */
plait_status pli_stages_open(pli_stages *stages, const plait_session_opts *opts);
/** The random ops of the next run draw by this number, and those of later runs by the ones that follow. */
void         pli_stages_draw_from(pli_stages *stages, uint64_t number);
/** From now on the nodes have these places [nodes], a part each. The sessions are closed before, and opened
 *  afterwards (shift.h). */
void         pli_stages_take_places(pli_stages *stages, const int32_t *place);
void         pli_stages_close_sessions(pli_stages *stages);
/** How many rows have gone through this rank's part in training. */
int64_t      pli_stages_rows(const pli_stages *stages);
/** Closes the sessions and the channel. Groups live until the run ends, since their tables do. */
void         pli_stages_close(pli_stages *stages);

/** A clock of the replica; sums_out: of this rank's own rows. A rank without rows calls it, too. */
plait_status pli_stages_step(pli_stages *stages, plait_table_store *store, const pli_batch *batch, pli_sums *sums_out);
/** Judges rows by these values of the variables, instead of the tables': forward alone, in the data's units. All ranks
 *  of the replica call it. part: some rows, on the rank of stage 0, and NULL when there are no more; other ranks give
 *  NULL. *more_out: there were rows. sums_out: of these. */
plait_status pli_stages_judge(pli_stages *stages, const plait_feed *values, const pli_part *part, bool *more_out,
                              pli_sums *sums_out);
/** The same of a net with scores; rows in the data's units, as many as may be scored at once. */
plait_status pli_stages_score(pli_stages *stages, const plait_feed *values, const pli_part *part, bool *more_out);
/** Does it judge rows just now? stages NULL: no. */
bool         pli_stages_judges(const pli_stages *stages);
/** What came of it, on the rank of stage 0; valid until the next run. */
pli_scored   pli_stages_scored(const pli_stages *stages);
/* stage_pace.c. How long this rank has worked in each epoch, without messages and waits. */
typedef struct pli_stage_pace {
    int64_t epochs, epoch, clocks; /* all; that at hand, and its clocks so far */
    double *seconds;               /* [epochs] */
    double  least;                 /* of an epoch */
    int32_t slow;                  /* how many of the last epochs took much longer */
    bool    told;
} pli_stage_pace;

/** ENOMEM. */
plait_status pli_stage_pace_begin(const pli_run *run, pli_stage_pace *pace_out);
void         pli_stage_pace_end(pli_stage_pace *pace);
/** Adds a clock's work; warns once if the rank has become slower and other places would suit that. */
void         pli_stage_pace_add(pli_stage_pace *pace, const pli_run *run, uint64_t ns);
/** Tells the caller each epoch's times by stage. Collective. */
plait_status pli_stage_pace_tell(const pli_run *run, const pli_stage_pace *pace);
/** The runs of layers that would suit stages which have become slower: speed [stages], of that at the run's beginning.
 *  Writes the stages' weights; *gain_out: by which share a clock would be shorter, by simulation. Errors: EREFUSED the
 *  net is not cut by runs of layers, or by two a rank, which no --place names. */
plait_status pli_stages_suit(const pli_run *run, const double *speed, pli_text *text, double *gain_out);
/** The same for a net whose nodes have these places, one stage a rank (suit.c). */
plait_status pli_placed_suit(const pli_run *run, const pli_net *net, int32_t ranks, int64_t rows, const int32_t *place,
                             const double *speed, pli_text *text, double *gain_out);
/** The runs of layers that would suit all replicas, of which a row takes so many seconds on each rank: seconds
 *  [stages, replicas]. Writes the nodes' places and the stages' weights; *gain_out: by which share a clock would be
 *  shorter, by simulation. */
plait_status pli_stages_anew(const pli_run *run, const double *seconds, int32_t *place_out, pli_text *text,
                             double *gain_out);
/** The same for a net whose nodes have these places, `chunks` parts a rank (suit.c). */
plait_status pli_placed_anew(const pli_run *run, const pli_net *net, int32_t ranks, int32_t chunks, int64_t rows,
                             const int32_t *place, const double *seconds, int32_t *place_out, pli_text *text,
                             double *gain_out);
/** The net whose columns lie by shares that would suit all replicas, of which a row takes so many seconds on each rank:
 *  seconds [columns, replicas]; NULL: as the hosts' speeds say. Writes the shares; *gain_out: as above. The caller
 *  destroys. */
plait_status pli_stages_shares(const pli_run *run, const double *seconds, pli_net **pieces_out, pli_text *text,
                               double *gain_out);
/** The same for a net whose nodes have these places (suit.c). */
plait_status pli_placed_shares(const pli_run *run, const pli_net *net, int64_t rows, const int32_t *place,
                               const double *seconds, pli_net **pieces_out, pli_text *text, double *gain_out);
/** How long this rank has waited for the others of its replica, since the sessions were made; stages NULL: 0. */
uint64_t     pli_stages_waited_ns(const pli_stages *stages);
/** The same of a channel (comm_channel.c). */
uint64_t     pli_comm_channel_waited_ns(const plait_comm_channel *channel);
/** Fills values [net->values], of which this rank has its own parameters', on all workers. Collective. */
plait_status pli_stages_gather(const pli_stages *stages, float *values);

#endif
