/* Tells the caller of progress. See progress.h. */
#include "learn/solve/progress.h"

#include <math.h>

#include "learn/keep/keep.h"

#define TELL_NS UINT64_C(100000000)

void pli_meter_start(pli_meter *meter, pli_run *run) {
    *meter = (pli_meter){ .run = run, .begun_ns = pli_comm_now(run->comm), .told_ns = pli_comm_now(run->comm),
                          .loss = NAN };
}

/* How many workers have rows: spares replace workers that have died, as far as there are spares. */
static int32_t computing(const pli_run *run) {
    const int32_t living = plait_comm_workers(run->comm) - pli_comm_absent(run->comm);
    return living < pli_run_holders(run) ? living : pli_run_holders(run);
}

int pli_meter_rest_ms(const pli_meter *meter) {
    const uint64_t passed_ns = pli_comm_now(meter->run->comm) - meter->told_ns;
    return passed_ns < TELL_NS ? (int)((TELL_NS - passed_ns) / 1000000) : 0;
}

void pli_meter_tell(pli_meter *meter, const pli_sums *sums, int64_t epoch, int64_t clock, bool epoch_ended) {
    pli_run      *run = meter->run;
    const int64_t turns = run->turns > 1 ? run->turns : 1;
    if (run->opts->progress == NULL || !pli_comm_leads(run->comm)) return;
    meter->rows += sums->rows;
    pli_sums_add(&meter->lately, sums);
    uint64_t now = pli_comm_now(run->comm);
    epoch_ended = epoch_ended && (epoch + 1) % turns == 0;
    if (!epoch_ended && !meter->waits && now - meter->told_ns < TELL_NS) return;
    double  seconds = (double)(now - meter->begun_ns) * 1e-9, lately = (double)(now - meter->told_ns) * 1e-9;
    const bool endless = run->live && !epoch_ended; /* nobody knows how many clocks will come */
    int64_t done = epoch > 0 ? epoch * run->clocks + clock + 1 : clock + 1;
    int64_t all = endless ? 0 : run->clocks * run->epochs;
    if (meter->lately.rows > 0) {
        meter->loss = pli_sums_loss(&meter->lately);
        meter->rows_per_second = (meter->rows - meter->told_rows) * computing(run) / lately;
    }
    int64_t before = run->resume != NULL ? run->resume->clock : 0; /* done by an earlier run */
    plait_progress p = { .epoch = epoch / turns + 1,
                         .epochs = run->epochs / turns,
                         .clock = done,
                         .clocks = all,
                         .loss = meter->loss,
                         .validation_loss = run->validation_loss,
                         .rows_per_second = meter->rows_per_second,
                         .seconds = seconds,
                         .seconds_left = done > before && all > 0
                                             ? seconds / (double)(done - before) * (double)(all - done)
                                             : NAN,
                         .epoch_ended = epoch_ended,
                         .validation_accuracy = run->validation_accuracy,
                         .learning_rate = run->rule.ops == NULL ? (double)NAN
                                              : run->rule.learning_rate * pli_schedule_factor(&run->rule, done - 1),
                         .bytes = (double)(plait_comm_bytes_sent(run->comm) - run->training_bytes),
                         .topology = run->topology,
                         .consistency = run->consistency,
                         .optimizer = run->optimizer };
    run->opts->progress(run->opts->user, &p);
    meter->told_ns = now;
    meter->told_rows = meter->rows;
    if (meter->lately.rows > 0) meter->lately = (pli_sums){ 0 };
}
