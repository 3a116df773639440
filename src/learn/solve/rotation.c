/* Blocks that rotate over the workers. See rotation.h. */
#include "learn/solve/rotation.h"

int64_t pli_rotation_staleness(const pli_topology_kind *topology, const char *consistency) {
    const int64_t clocks = pli_pair_staleness(pli_pair_properties(topology, consistency, NULL), consistency);
    return clocks < 0 ? 0 : clocks < PLI_ROTATION_MOST ? clocks : PLI_ROTATION_MOST;
}

plait_status pli_rotation_make(pli_run *run, const char *name, int64_t blocks,
                               plait_status (*push)(void *user, const plait_turn *turn),
                               int64_t (*touches)(void *user, int64_t block, int64_t room, plait_touch *touch),
                               plait_schedule **schedule_out) {
    plait_schedule_opts o;
    plait_schedule_opts_init(&o);
    o.name = name;
    o.order = "rotate";
    o.variables = blocks;
    o.push = push;
    o.touches = touches;
    o.user = run;
    run->rotates = true;
    return plait_schedule_create(run->job, &o, schedule_out);
}
