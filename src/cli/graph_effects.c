/* Notes options of `plait graph run` that have no effect, as effects.c does for train. What is not allowed is refused
 * elsewhere: options of another program (graph.c), settings that do not go together (vertex/suit.c). */
#include "cli/graph_stop.h"
#include "comm/comm.h"

void pli_graph_effects(pli_talk *talk, const pli_graph_run *set, const pli_vertex_named *named,
                       const plait_comm *comm) {
    const bool simulated = pli_is(plait_comm_transport(comm), "sim"), alone = plait_comm_workers(comm) == 1;
    if (pli_opts_is_given(set->opts, "partition") && named->whole)
        pli_talk_say(talk, "note: --partition has no effect on %s, of which each worker has the whole graph",
                     named->name);
    else if (pli_opts_is_given(set->opts, "partition") && alone)
        pli_talk_say(talk, "note: --partition has no effect with one worker");
    if (pli_opts_is_given(set->opts, "seed") && !named->draws && !simulated)
        pli_talk_say(talk, "note: --seed has no effect on %s without --transport sim: it draws no random numbers",
                     named->name);
}
