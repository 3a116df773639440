/* Learns from the log who died. See schedule_dead.h. */
#include "watch/audit/schedule_dead.h"

static plait_status make(pli_schedule_dead *d, int32_t workers, plait_error *err) {
    if (d->workers > 0) return PLAIT_OK;
    d->gone = pli_calloc((size_t)workers, sizeof *d->gone);
    d->ended = pli_calloc((size_t)workers, sizeof *d->ended);
    d->counted = pli_calloc((size_t)workers, sizeof *d->counted);
    if (d->gone == NULL || d->ended == NULL || d->counted == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for deaths of %d workers", (int)workers);
    d->workers = workers;
    return PLAIT_OK;
}

void pli_schedule_dead_free(pli_schedule_dead *d) {
    pli_free(d->gone);
    pli_free(d->ended);
    pli_free(d->counted);
    *d = (pli_schedule_dead){ 0 };
}

static void note(pli_schedule_dead *d, const pli_event *event, bool *done) {
    const bool    server = event->server;
    const int32_t of = server ? event->peer : event->rank;
    if (of < 0 || of >= d->workers) return;
    if (server && event->kind == PLI_EVENT_GONE) d->gone[of] = true;
    if (server && event->kind == PLI_EVENT_TICK && event->clock >= d->counted[of]) d->counted[of] = event->clock + 1;
    if (!server && event->kind == PLI_EVENT_CLOCK && event->clock >= d->ended[of]) d->ended[of] = event->clock + 1;
    if (!server && event->kind == PLI_EVENT_DONE) done[of] = true;
}

/* pass 0 finds how many workers there are. */
static plait_status read_stream(pli_schedule_dead *d, const pli_logfile *file, int32_t stream, int pass, bool *done,
                                plait_error *err) {
    pli_log_cursor  *cursor = NULL;
    const pli_event *event;
    plait_status     status = PLAIT_OK;
    plait_error      why = { 0 };
    PLI_TRY(pli_log_cursor_open(file, stream, &cursor, err));
    while (status >= 0 && (event = pli_log_cursor_next(cursor, &why)) != NULL) {
        if (event->group != NULL) continue;
        if (event->kind == PLI_EVENT_JOB && pass == 0) {
            status = make(d, event->info.job->workers, err);
            break;
        }
        if (pass == 1) note(d, event, done);
    }
    pli_log_cursor_close(&cursor);
    return status >= 0 && why.code < 0 ? pli_fail(err, why.code, "%s", why.text) : status;
}

static plait_status read_all(pli_schedule_dead *d, const pli_logfile *file, int pass, bool *done, plait_error *err) {
    for (int32_t i = 0; i < pli_logfile_streams(file); i++) PLI_TRY(read_stream(d, file, i, pass, done, err));
    return PLAIT_OK;
}

plait_status pli_schedule_dead_read(pli_schedule_dead *d, const pli_logfile *file, plait_error *err) {
    for (int32_t i = 0; i < pli_logfile_streams(file); i++)
        if (pli_logfile_life(file, i) > 1)
            return pli_fail(err, PLAIT_EREFUSED,
                            "--schedule of a run in which rank %d was started anew is refused: its turns are not "
                            "judged; nearest is the audit of its tables",
                            pli_logfile_rank(file, i));
    PLI_TRY(read_all(d, file, 0, NULL, err));
    bool *done = pli_calloc((size_t)d->workers + 1, sizeof *done);
    if (done == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for deaths");
    const plait_status status = read_all(d, file, 1, done, err);
    for (int32_t w = 0; w < d->workers; w++) d->gone[w] = d->gone[w] && !done[w];
    pli_free(done);
    return status;
}

bool pli_schedule_died_in(const pli_schedule_dead *d, int32_t worker, int64_t clock) {
    return worker >= 0 && worker < d->workers && d->gone[worker] && d->ended[worker] <= clock;
}

bool pli_schedule_counted(const pli_schedule_dead *d, int32_t worker, int64_t clock) {
    return worker >= 0 && worker < d->workers && d->counted[worker] > clock;
}

int32_t pli_schedule_dead_by(const pli_schedule_dead *d, int64_t clock) {
    int32_t n = 0;
    for (int32_t w = 0; w < d->workers; w++) n += pli_schedule_died_in(d, w, clock);
    return n;
}

bool pli_schedule_lacks(const pli_schedule_dead *d, const pli_logfile *file) {
    if (pli_logfile_cut(file) == NULL) return false;
    int32_t streams = pli_logfile_streams(file);
    for (int32_t i = 0; i < streams; i++) {
        const int32_t rank = pli_logfile_rank(file, i);
        const bool    dead = rank >= 0 && rank < d->workers && d->gone[rank];
        if (pli_logfile_stream_is_cut(file, i) && !dead) return true;
    }
    return false;
}
