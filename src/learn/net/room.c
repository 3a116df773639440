/* Does a net fit the hosts of a simulated cluster? Its file may say what memory hosts have. What a rank needs is known
 * from the graph (plait/place.h): its weights with the optimiser's state, which count as if the rank kept them whole,
 * and the values that its micro-batches keep alive. A run that would not fit real hosts is refused before a weight is
 * drawn. */
#include <math.h>

#include "comm/cluster.h"
#include "learn/net/placed.h"
#include "learn/net/stages_state.h"

enum { NAMED = 3 }; /* so many ranks that lack memory are named */

static bool says_memory(const pli_cluster *c) {
    for (int64_t g = 0; c != NULL && g < c->groups; g++)
        if (isfinite(c->group[g].memory)) return true;
    return false;
}

/* Adds one rank that lacks memory; returns how many there are so far. */
static int32_t lack(const pli_run *run, int32_t rank, double bytes, int32_t lacking, pli_text *text) {
    const double room = pli_cluster_memory(pli_comm_cluster(run->comm), rank);
    if (bytes <= room) return lacking;
    if (lacking < NAMED)
        pli_text_add(text, "%srank %d needs %.3g MB and has %.3g", lacking > 0 ? ", " : "", (int)rank, bytes / 1e6,
                     room / 1e6);
    return lacking + 1;
}

/* Each rank against its stage's share. */
static plait_status judge(const pli_run *run, const plait_placement *placement) {
    const int32_t stages = pli_run_stages(run), replicas = pli_run_holders(run);
    pli_text      text = { 0 };
    int32_t       lacking = 0;
    plait_status  status = PLAIT_OK;
    for (int32_t k = 0; status == PLAIT_OK && k < stages; k++) {
        plait_place_share share;
        status = plait_placement_share(placement, k, &share, run->err);
        for (int32_t r = 0; status == PLAIT_OK && r < replicas; r++)
            lacking = lack(run, k * replicas + r, share.variable_bytes + share.activation_bytes, lacking, &text);
    }
    if (status == PLAIT_OK && lacking > 0)
        status = pli_fail(run->err, PLAIT_EREFUSED,
                          "the net does not fit its hosts: %s%s; take more --columns, or --cut, or a smaller --batch",
                          text.data != NULL ? text.data : "", lacking > NAMED ? ", and so on" : "");
    pli_text_free(&text);
    return status;
}

plait_status pli_net_room_check(const pli_run *run) {
    const pli_net    *net = pli_net_trained(run);
    const pli_stages *stages = pli_net_fit_of(run)->stages;
    const int32_t     most = run->opts->micro_batches > 1 ? run->opts->micro_batches : 1;
    const int64_t     rows = run->batch / pli_run_holders(run) / most;
    plait_placement  *placement = NULL;
    if (!says_memory(pli_comm_cluster(run->comm)) || run->lbfgs) return PLAIT_OK;
    const pli_staging p = pli_staging_make(run, net, pli_run_stages(run), stages != NULL ? stages->chunks : 1,
                                           rows > 1 ? rows : 1);
    int32_t *room = pli_calloc(2 * (size_t)plait_graph_nodes(net->graph), sizeof *room);
    if (room == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory to count a net's bytes");
    plait_status status = pli_staging_given(&p, stages != NULL ? stages->place : room,
                                            room + plait_graph_nodes(net->graph), &placement, run->err);
    if (status == PLAIT_OK) status = judge(run, placement);
    plait_placement_destroy(&placement);
    pli_free(room);
    return status;
}
