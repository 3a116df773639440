/* What all ranks do at a moment, as JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <plait/job.h>

#include "comm/figures.h"
#include "watch/dashboard/dashboard.h"

enum { LINE = 512 };

/* The clock of each worker: of its tables the latest. */
static void find_clocks(const plait_comm *comm, uint64_t timeout_ns, int64_t *clock) {
    const int32_t     size = plait_comm_size(comm);
    int64_t           n = 0;
    plait_table_part *part = NULL;
    plait_error       err;
    for (int32_t r = 0; r < size; r++) clock[r] = -1;
    if (plait_job_describe(comm, timeout_ns, &n, &part, &err) < 0) return;
    for (int64_t i = 0; i < n; i++)
        if (part[i].rank >= 0 && part[i].rank < size && part[i].clock > clock[part[i].rank])
            clock[part[i].rank] = part[i].clock;
    plait_comm_free(part);
}

static const char *const told_names[PLI_TOLD] = { "epoch", "clock", "loss", "validation_loss", "rows_per_second",
                                                  "learning_rate", "seconds" };

void pli_sample_progress(plait_comm *comm, const plait_progress *p) {
    const double told[PLI_TOLD] = { (double)p->epoch, (double)p->clock, p->loss, p->validation_loss,
                                    p->rows_per_second, p->learning_rate, p->seconds };
    pli_comm_tell_figures(comm, told);
}

static void tell_progress(const double *told, pli_text *text) {
    pli_json_object(text, "progress");
    for (int32_t i = 0; i < PLI_TOLD; i++) {
        if (i < 2) pli_json_i64(text, told_names[i], (int64_t)told[i]);
        else pli_json_f64(text, told_names[i], told[i]);
    }
    pli_json_end(text);
}

static void tell_rank(const pli_figures *f, int64_t clock, const char *does, pli_text *text) {
    const uint64_t used_ns = f->wait_ns + f->network_ns;
    pli_json_object(text, NULL);
    pli_json_bool(text, "heard", f->heard);
    pli_json_f64(text, "lived", (double)f->lived_ns * 1e-9);
    pli_json_f64(text, "compute", f->lived_ns > used_ns ? (double)(f->lived_ns - used_ns) * 1e-9 : 0.0);
    /* without network, all time in calls counts as waiting, as in the run's record */
    pli_json_f64(text, "wait", (double)(f->wait_ns + (f->in_flight ? 0 : f->network_ns)) * 1e-9);
    pli_json_f64(text, "network", f->in_flight ? (double)f->network_ns * 1e-9 : (double)NAN);
    pli_json_i64(text, "clock", clock);
    pli_json_text(text, "does", does);
    if (f->has_told) tell_progress(f->told, text);
    pli_json_object(text, "sent");
    for (int32_t k = 0; k < PLI_SENT_KINDS; k++)
        if (f->sent[k] > 0) pli_json_u64(text, pli_sent_kinds[k], f->sent[k]);
    pli_json_end(text);
    pli_json_end(text);
}

void pli_sample_tell(const plait_comm *comm, uint64_t timeout_ns, pli_text *text) {
    const int32_t size = plait_comm_size(comm);
    const size_t  room = 1 + LINE * (size_t)size;
    pli_figures  *figures = NULL;
    int64_t      *clock = pli_array((size_t)size, sizeof *clock);
    char         *does = pli_malloc(room), *rest = NULL;
    plait_error   err;
    if (clock != NULL && does != NULL && pli_comm_figures(comm, timeout_ns, &figures, &err) >= 0) {
        plait_comm_doctor(comm, timeout_ns, does, room);
        find_clocks(comm, timeout_ns, clock);
        char *line = strtok_r(does, "\n", &rest);
        pli_json_begin(text);
        pli_json_list(text, "ranks");
        for (int32_t r = 0; r < size; r++) {
            tell_rank(&figures[r], clock[r], line, text);
            line = line != NULL ? strtok_r(NULL, "\n", &rest) : NULL;
        }
        pli_json_list_end(text);
        pli_json_end(text);
    }
    pli_free(figures);
    pli_free(does);
    pli_free(clock);
}
