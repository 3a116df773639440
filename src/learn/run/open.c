/* Opens a run's data sets. Workers of one process share what was opened: a pipe is read once, and a packed file is
 * unpacked once. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "comm/shared.h"
#include "learn/run/run.h"
#include "learn/solve/solver.h"

enum { SMALL_BYTES = 16 << 20 };

bool pli_run_streams(const pli_run *run) {
    const plait_train_opts *o = run->opts;
    int64_t                 bytes = 0;
    const bool once = o->epochs == 1 || (o->epochs == 0 && (run->ways & PLAIT_LEARNER_ONE_EPOCH) != 0);
    const bool passes = run->solver != NULL && run->solver->passes; /* over the same rows, be it once */
    if (!once || o->data == NULL || passes || run->fraction > 0) return false;
    if ((run->ways & PLAIT_LEARNER_STREAMS) == 0) return false;
    for (int64_t i = 0; i < o->data->n_paths && bytes >= 0; i++) {
        const char *path = o->data->paths[i];
        int64_t     size = pli_is_directory(path) || pli_is_pipe(path) ? -1 : pli_file_bytes(path);
        bytes = size < 0 ? -1 : bytes + size;
    }
    return bytes < 0 || bytes > SMALL_BYTES; /* small plain files are as well read at once */
}

/* Does one worker learn each row as it comes? */
static bool learns_as_read(const pli_run *run, const plait_data_opts *files) {
    const pli_learner_more *more = run->learner->more;
    return plait_comm_workers(run->comm) == 1 && plait_comm_servers(run->comm) == 0 && !files->cache && more != NULL &&
           more->live != NULL && more->live(run);
}

/* Are the rows of a pipe to be taken as they come? */
static bool may_live(const pli_run *run, const plait_data_opts *files) {
    return files->n_paths == 1 && files->paths != NULL && files->paths[0] != NULL && pli_is_pipe(files->paths[0]) &&
           learns_as_read(run, files);
}

/* Can the means of columns wait for the pass? Sets that are judged are read before it, and need them. */
static bool means_can_wait(const pli_run *run, const plait_data_opts *files) {
    return run->opts->test == NULL && run->opts->test_memory == NULL && run->opts->validation == NULL &&
           learns_as_read(run, files);
}

static void tell_awaited(const void *arg, char *text, size_t bytes) {
    const char *path = arg;
    if (strcmp(path, "-") == 0) snprintf(text, bytes, "rows from the standard input");
    else snprintf(text, bytes, "rows from the pipe %s", path);
}

void pli_run_awaits(pli_run *run, const plait_data_opts *files) {
    const char *pipe = NULL;
    for (int64_t i = 0; files != NULL && i < files->n_paths && pipe == NULL; i++)
        if (pli_is_pipe(files->paths[i])) pipe = files->paths[i];
    if (pipe != NULL) run->awaits = (pli_reason){ .tell = tell_awaited, .arg = pipe };
    pli_comm_awaits(run->comm, pipe != NULL ? &run->awaits : NULL);
}

static void release_data(void *state) {
    pli_dataset *data = state;
    pli_dataset_destroy(&data);
}

/* The leading worker of a process opens first; the others then open theirs beside its data set. Nobody goes on before
 * all have done so. If a rank has failed, the leading one may end while others open theirs: its own stays for them. */
static plait_status open_together(pli_run *run, const plait_data_opts *files, const pli_schema *fixed, bool dealt,
                                  pli_dataset **data_out) {
    plait_status (*open)(const plait_data_opts *, const pli_schema *, int32_t, int32_t, pli_dataset **, plait_error *) =
        dealt ? pli_dataset_open_dealt : pli_dataset_open;
    int32_t            worker = plait_comm_rank(run->comm), workers = pli_run_holders(run);
    const pli_dataset *first = NULL;
    const bool   apart = plait_comm_workers(run->comm) == 1 || !pli_comm_shares_process(run->comm) || files->cache;
    plait_status status = PLAIT_OK;
    if (apart || pli_comm_leads(run->comm)) {
        pli_run_awaits(run, files);
        status = open(files, fixed, worker, workers, data_out, run->err);
        pli_run_awaits(run, NULL);
        if (apart || status < 0) return status;
        first = *data_out;
    }
    const bool lends = first != NULL;
    status = plait_comm_broadcast(run->comm, &first, sizeof first, pli_comm_lead(run->comm));
    if (status == PLAIT_OK && !lends)
        status = pli_dataset_open_beside(first, files, fixed, worker, workers, data_out, run->err);
    if (status == PLAIT_OK) status = plait_comm_barrier(run->comm);
    if (status < 0 && lends && pli_comm_leave_behind(run->comm, *data_out, release_data)) *data_out = NULL;
    return status;
}

/* Does the text have this line? */
static bool has_line(const char *text, const char *line, size_t length) {
    for (const char *at = text; *at != '\0'; at += strcspn(at, "\n"), at += *at == '\n')
        if (strcspn(at, "\n") == length && memcmp(at, line, length) == 0) return true;
    return false;
}

/* Test and validation data are opened with the options of the training data: was the note told of those already? */
static bool is_told(const pli_run *run, const pli_dataset *data, const char *note, size_t length) {
    return run->data != NULL && run->data != data && strncmp(note, "note: --", 8) == 0 &&
           has_line(pli_dataset_notes(run->data), note, length);
}

/* Logs the notes. The lead logs a note that all workers have; each worker logs its other notes, which name its rank. */
static plait_status tell_notes(pli_run *run, const pli_dataset *data) {
    const char  *mine = pli_dataset_notes(data);
    int32_t      workers = plait_comm_workers(run->comm), rank = plait_comm_rank(run->comm);
    void        *all = NULL;
    bool         same = false;
    plait_status status = pli_agree_is_same(run->comm, mine, &same);
    if (status < 0 || (same && (!pli_comm_leads(run->comm) || *mine == '\0'))) return status;
    size_t *sizes = pli_array((size_t)workers, sizeof *sizes);
    if (sizes == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for notes");
    if (!same) status = plait_comm_allgatherv(run->comm, mine, strlen(mine) + 1, sizes, &all);
    for (const char *note = mine; status == PLAIT_OK && *note != '\0';) {
        size_t      length = strcspn(note, "\n");
        const char *text = all;
        int32_t     have = same ? workers : 0;
        for (int32_t w = 0; !same && w < workers; text += sizes[w], w++) have += has_line(text, note, length);
        if ((have < workers || pli_comm_leads(run->comm)) && !is_told(run, data, note, length))
            pli_log(pli_comm_log(run->comm), PLAIT_LOG_INFO, have < workers ? rank : -1, "data", "%.*s", (int)length,
                    note);
        note += length + (note[length] == '\n');
    }
    plait_comm_free(all);
    pli_free(sizes);
    return status;
}

/* Rows of one class teach nothing, so this waits until the front of a live pipe has two. */
static plait_status wait_for_classes(pli_run *run, const plait_data_opts *files, const pli_schema *fixed) {
    bool said = false;
    while (pli_dataset_is_live(run->data) && run->learner->labels == PLAIT_LABELS_CLASSES &&
           pli_schema_labels(pli_dataset_schema(run->data)) == 1) {
        pli_dataset *front = run->data;
        if (!said)
            pli_log(pli_comm_log(run->comm), PLAIT_LOG_INFO, -1, "data",
                    "all rows of the pipe so far have one label: learning begins when another comes");
        said = true;
        run->data = NULL;
        pli_run_awaits(run, files);
        plait_status status = pli_dataset_wait_for_more(front, run->err);
        pli_run_awaits(run, NULL);
        if (status == PLAIT_OK)
            status = pli_dataset_open_beside(front, files, fixed, 0, 1, &run->data, run->err);
        pli_dataset_destroy(&front);
        PLI_TRY(status);
        PLI_TRY(pli_dataset_scan(run->data, false, run->pool, run->err));
    }
    run->live = pli_dataset_is_live(run->data);
    return PLAIT_OK;
}

plait_status pli_run_open(pli_run *run, const plait_data_opts *files, const plait_data *memory, const pli_schema *fixed,
                          bool stream, pli_dataset **data_out) {
    int32_t worker = plait_comm_rank(run->comm), workers = pli_run_holders(run);
    const bool trains = data_out == &run->data; /* these rows are dealt; those of a test stay in their order */
    if (memory != NULL)
        return (trains ? pli_dataset_of_memory_dealt : pli_dataset_of_memory)(memory, worker, workers, data_out,
                                                                              run->err);
    plait_data_opts quiet = *files; /* the notes of all workers are told here */
    quiet.log = NULL;
    const bool live = trains && stream && may_live(run, files);
    if (live) pli_run_awaits(run, files);
    plait_status status = live ? pli_dataset_open_live(&quiet, fixed, data_out, run->err)
                               : open_together(run, &quiet, fixed, trains, data_out);
    if (live) pli_run_awaits(run, NULL);
    if (status < 0) return status;
    char print[64];
    snprintf(print, sizeof print, "fingerprint %016" PRIx64, pli_dataset_fingerprint(*data_out));
    PLI_TRY(pli_agree_text(run->comm, "data", print, run->err));
    if (trains && stream && !live && means_can_wait(run, files)) pli_dataset_adds_means(*data_out);
    if (stream) PLI_TRY(pli_dataset_scan(*data_out, false, run->pool, run->err));
    else PLI_TRY(pli_dataset_load(*data_out, run->pool, run->err));
    if (live) PLI_TRY(wait_for_classes(run, &quiet, fixed));
    return tell_notes(run, *data_out);
}
