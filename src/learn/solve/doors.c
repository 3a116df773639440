/* Doors: the clocks with which workers come and go. See doors.h. */
#include "learn/solve/doors.h"

#include "table/table.h"

plait_status pli_doors_begin(pli_loop *doors, pli_run *run, const pli_steps *steps, bool *came_out) {
    *came_out = false;
    if (run->opts->slots == 0) return PLAIT_OK;
    *doors = (pli_loop){ .run = run, .steps = steps, .doors = true };
    doors->away = pli_job_is_away(run->job, plait_comm_rank(run->comm));
    pli_job_shut(run->job, true);
    PLI_TRY(pli_turnover_begin(doors));
    *came_out = doors->away;
    return doors->away ? pli_turnover_wait(doors) : PLAIT_OK;
}

/* Nobody has pushed, so who stands in for a dead worker has nothing to add. */
static plait_status add_nothing(pli_run *run) {
    (void)run;
    return PLAIT_OK;
}

plait_status pli_doors_open(pli_loop *doors, bool *came_out, bool *changed_out) {
    *came_out = *changed_out = false;
    if (!doors->doors) return PLAIT_OK;
    plait_job *job = doors->run->job;
    pli_job_shut(job, false);
    const plait_status status = pli_turnover_clock(doors, add_nothing, came_out);
    pli_job_shut(job, true);
    *changed_out = status == PLAIT_OK && pli_job_roster_changed(job);
    return status;
}

void pli_doors_end(pli_loop *doors) {
    if (!doors->doors) return;
    pli_turnover_end(doors);
    pli_job_shut(doors->run->job, false);
    doors->doors = false;
}
