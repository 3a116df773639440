/* How long the stages of a cut net work. See stages.h.
 *
 * The slowest stage sets the pace of all: the others wait for it in each clock. Each rank measures its own work by
 * epoch, without messages and waits. It says when it has become slower, and which places would suit that. At the end
 * the run tells all times (--metrics).
 *
 * Layers move within the run if it was asked to (--balance dynamic, shift.h). Else they stay in their stages, and the
 * run only warns. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learn/net/stages.h"

/* A rank tells that it became slower if two epochs took so many times its least, and no fewer seconds than these, which
 * the machine's own noise may take; and if other places would shorten a clock by this share. */
static const double slower = 1.4, noise = 0.01, gains = 0.1;

plait_status pli_stage_pace_begin(const pli_run *run, pli_stage_pace *pace) {
    *pace = (pli_stage_pace){ .epochs = run->epochs, .least = (double)INFINITY };
    pace->seconds = pli_calloc((size_t)run->epochs, sizeof *pace->seconds);
    return pace->seconds != NULL ? PLAIT_OK : pli_fail(run->err, PLAIT_ENOMEM, "no memory for the times of a stage");
}

void pli_stage_pace_end(pli_stage_pace *pace) {
    pli_free(pace->seconds);
    *pace = (pli_stage_pace){ 0 };
}

/* Each rank knows its own speed, and that of the others at the run's beginning: it asks nobody. */
static void advise(const pli_run *run, pli_stage_pace *pace, double ratio) {
    const int32_t stages = pli_run_stages(run), stage = pli_stages_stage(pli_net_fit_of(run)->stages);
    pli_text      text = { 0 };
    double        gain = 0, *speed = pli_array((size_t)stages, sizeof *speed);
    for (int32_t s = 0; speed != NULL && s < stages; s++) speed[s] = s == stage ? 1 / ratio : 1;
    pace->told = true;
    if (speed != NULL && pli_stages_suit(run, speed, &text, &gain) >= 0 && gain > gains && !text.failed)
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_WARN, plait_comm_rank(run->comm), "learn",
                "stage %d has become %.2g times as slow as in its fastest epoch. A clock would take %.0f %% less by "
                "places of these weights: %s. With --balance dynamic layers move there within the run; or end it at a "
                "checkpoint, and --resume it with a --place FILE", stage, ratio, 100 * gain, text.data);
    pli_text_free(&text);
    pli_free(speed);
}

/* An epoch is over. One that the run resumed in is not whole; leases change how many rows a rank has. */
static void judge(const pli_run *run, pli_stage_pace *pace) {
    const double seconds = pace->seconds[pace->epoch];
    if (pace->clocks == run->clocks && !run->balanced) {
        pace->slow = seconds > slower * pace->least && seconds > noise ? pace->slow + 1 : 0;
        pace->least = fmin(pace->least, seconds);
        if (pace->slow > 1 && !pace->told && !run->shifts) advise(run, pace, seconds / pace->least);
    }
    pace->clocks = 0;
}

void pli_stage_pace_add(pli_stage_pace *pace, const pli_run *run, uint64_t ns) {
    if (pace->seconds == NULL || run->epochs_done >= pace->epochs) return;
    if (pace->epoch != run->epochs_done) judge(run, pace);
    pace->epoch = run->epochs_done;
    pace->seconds[pace->epoch] += (double)ns * 1e-9;
    pace->clocks++;
}

/* The slowest of the replicas' ranks of a stage counts. all [workers, epochs]; of [stages]. */
static void of_epoch(const pli_run *run, const double *all, int64_t epoch, double *of) {
    const int32_t stages = pli_run_stages(run), replicas = pli_run_holders(run);
    for (int32_t s = 0; s < stages; s++) {
        of[s] = 0;
        for (int32_t r = 0; r < replicas; r++)
            of[s] = fmax(of[s], all[(int64_t)(s * replicas + r) * run->epochs + epoch]);
    }
}

plait_status pli_stage_pace_tell(const pli_run *run, const pli_stage_pace *pace) {
    const int32_t workers = plait_comm_workers(run->comm), stages = pli_run_stages(run);
    if (stages == 1 || pace->seconds == NULL || run->interrupted || pli_comm_absent(run->comm) > 0) return PLAIT_OK;
    double      *all = pli_array((size_t)workers * (size_t)pace->epochs, sizeof *all);
    double      *of = pli_array((size_t)stages, sizeof *of);
    plait_status status = all != NULL && of != NULL
                              ? plait_comm_allgather(run->comm, pace->seconds, (size_t)pace->epochs * sizeof *all, all)
                              : pli_fail(run->err, PLAIT_ENOMEM, "no memory for the times of stages");
    const bool   tells = status >= 0 && pli_comm_leads(run->comm);
    for (int64_t epoch = 0; tells && run->opts->shares != NULL && epoch < run->epochs_done; epoch++) {
        of_epoch(run, all, epoch, of);
        run->opts->shares(run->opts->user, &(plait_shares){ .epoch = epoch + 1, .stages = stages, .seconds = of });
    }
    pli_free(all);
    pli_free(of);
    return status;
}
