/* Collects the trace of a run from its ranks, and writes it (trace.h). */
#include "cli/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "comm/comm.h"

enum { TAG_TIME = 0x7003, TAG_ASK = 0x7004, TAG_SPANS = 0x7005 };

/* Packed spans of all processes together: about two million spans, and a file of 200 MB. More makes viewers slow. */
#define BUDGET_BYTES ((size_t)32 << 20)
#define BUDGET_LEAST ((size_t)1 << 20) /* for one process */

static plait_status begin(pli_run_trace *run, plait_comm *comm, plait_error *err) {
    const int32_t ranks = plait_comm_size(comm);
    if (run->trace != NULL) return PLAIT_OK;
    run->rank = pli_calloc((size_t)ranks, sizeof *run->rank);
    if (run->rank == NULL) return pli_fail(err, PLAIT_ENOMEM, "trace: no memory for %d ranks", ranks);
    size_t budget = pli_comm_shares_process(comm) ? BUDGET_BYTES : BUDGET_BYTES / (size_t)ranks;
    if (budget < BUDGET_LEAST) budget = BUDGET_LEAST;
    PLI_TRY(pli_trace_create(ranks, plait_comm_threads(comm), budget, &run->trace, err));
    run->ranks = ranks;
    snprintf(run->transport, sizeof run->transport, "%s", plait_comm_transport(comm));
    run->simulated = pli_comm_charges(comm);
    run->origin_ns = run->simulated ? 0 : pli_comm_stamp(comm); /* simulated time begins at 0 */
    return PLAIT_OK;
}

/* The clocks of machines differ, so the leading worker sends each rank its time; when it is read, it is as old as the
 * message took. Ranks of one host share a clock. */
typedef struct told_time {
    uint64_t now_ns;
    char     host[256];
} told_time;

static plait_status compare_clocks(pli_trace_rank *mine, plait_comm *comm) {
    told_time told = { 0 };
    size_t    bytes = 0;
    snprintf(told.host, sizeof told.host, "%s", plait_comm_host(comm));
    for (int32_t r = 0; pli_comm_leads(comm) && r < plait_comm_size(comm); r++) {
        told.now_ns = pli_comm_stamp(comm);
        if (r != plait_comm_rank(comm)) PLI_TRY(plait_comm_send(comm, r, TAG_TIME, &told, sizeof told));
    }
    if (pli_comm_leads(comm)) return PLAIT_OK;
    PLI_TRY(plait_comm_recv(comm, pli_comm_lead(comm), TAG_TIME, &told, sizeof told, &bytes, NULL));
    if (strncmp(told.host, mine->host, sizeof told.host) != 0)
        mine->shift_ns = (int64_t)(told.now_ns - pli_comm_stamp(comm));
    return PLAIT_OK;
}

plait_status pli_run_trace_open(pli_run_trace *run, plait_comm *comm, plait_error *err) {
    pthread_mutex_lock(&run->lock);
    plait_status status = begin(run, comm, err);
    pthread_mutex_unlock(&run->lock);
    if (status < 0) return status;
    pli_trace_rank *mine = &run->rank[plait_comm_rank(comm)];
    *mine = (pli_trace_rank){ .rank = plait_comm_rank(comm), .pid = run->simulated ? 0 : pli_pid(),
                              .server = !pli_comm_is_worker(comm) };
    snprintf(mine->host, sizeof mine->host, "%s", plait_comm_host(comm));
    if (!pli_comm_shares_process(comm)) {
        run->alone = mine->rank;
        if ((status = compare_clocks(mine, comm)) < 0) *err = *plait_comm_error(comm);
    }
    if (status >= 0) pli_comm_set_spans(comm, pli_trace_sink(run->trace));
    return status;
}

static plait_status add_own(pli_run_trace *run, pli_trace_file *file, int32_t rank, plait_error *err) {
    pli_text packed = { 0 };
    pli_trace_pack(run->trace, rank, &packed);
    plait_status status = packed.failed
                              ? pli_fail(err, PLAIT_ENOMEM, "trace: no memory for the spans of rank %" PRId32, rank)
                              : pli_trace_file_add(file, &run->rank[rank], packed.data, packed.length, err);
    pli_text_free(&packed);
    return status;
}

/* Asks a rank of another process for its spans, even if the file has failed, because the rank waits for that. */
static plait_status add_other(pli_run_trace *run, pli_trace_file *file, plait_comm *comm, int32_t rank,
                              plait_error *err) {
    pli_msg     *msg = NULL;
    plait_status status = plait_comm_send(comm, rank, TAG_ASK, "", 0);
    if (status >= 0) status = pli_comm_take(comm, rank, TAG_SPANS, &msg);
    if (status < 0) {
        *err = *plait_comm_error(comm);
        return status;
    }
    if (run->status == PLAIT_OK)
        run->status = pli_trace_file_add_sent(file, rank, pli_msg_body(msg), msg->head.body_bytes, &run->why);
    pli_msg_free(&msg);
    return PLAIT_OK;
}

/* Ends the file; after a failure leaves none. */
static void end_file(pli_run_trace *run, pli_trace_file *file) {
    run->dropped = file != NULL ? pli_trace_file_dropped(file) : 0;
    if (run->status == PLAIT_OK) run->status = pli_trace_file_close(&file, &run->why);
    else pli_trace_file_abandon(&file);
}

/* Fails if other ranks are lost. A failure of the file is kept for pli_run_trace_close, so that it does not cost the
 * model. */
static plait_status write_all(pli_run_trace *run, plait_comm *comm, const char *path, plait_error *err) {
    pli_trace_file *file = NULL;
    plait_status    status = PLAIT_OK;
    run->status = pli_trace_file_open(path, run->transport, run->simulated, run->origin_ns, &file, &run->why);
    for (int32_t r = 0; status == PLAIT_OK && r < run->ranks; r++) {
        if (r != plait_comm_rank(comm)) status = add_other(run, file, comm, r, err);
        else if (run->status == PLAIT_OK) run->status = add_own(run, file, r, &run->why);
    }
    if (status < 0) pli_trace_file_abandon(&file);
    else end_file(run, file);
    return status;
}

static plait_status send_own(pli_run_trace *run, plait_comm *comm, plait_error *err) {
    pli_text packed = { 0 };
    size_t   bytes = 0;
    char     nothing;
    pli_trace_pack_rank(&run->rank[run->alone], &packed);
    pli_trace_pack(run->trace, run->alone, &packed);
    if (packed.failed) {
        pli_text_free(&packed);
        return pli_fail(err, PLAIT_ENOMEM, "trace: no memory for the spans of rank %" PRId32, run->alone);
    }
    plait_status status = plait_comm_recv(comm, pli_comm_lead(comm), TAG_ASK, &nothing, sizeof nothing, &bytes, NULL);
    if (status >= 0) status = plait_comm_send(comm, pli_comm_lead(comm), TAG_SPANS, packed.data, packed.length);
    if (status < 0) *err = *plait_comm_error(comm);
    pli_text_free(&packed);
    return status;
}

plait_status pli_run_trace_gather(pli_run_trace *run, plait_comm *comm, const char *path, plait_error *err) {
    if (run->alone < 0) return PLAIT_OK; /* close writes it, when all ranks are done */
    pli_comm_set_spans(comm, NULL);
    PLI_TRY(pli_comm_leads(comm) ? write_all(run, comm, path, err) : send_own(run, comm, err));
    run->written = true;
    return PLAIT_OK;
}

/* Writes the spans of all ranks of this process. */
static void write_here(pli_run_trace *run, const char *path) {
    pli_trace_file *file = NULL;
    const int32_t   first = run->alone < 0 ? 0 : run->alone, end = run->alone < 0 ? run->ranks : run->alone + 1;
    run->status = pli_trace_file_open(path, run->transport, run->simulated, run->origin_ns, &file, &run->why);
    for (int32_t r = first; run->status == PLAIT_OK && r < end; r++) run->status = add_own(run, file, r, &run->why);
    end_file(run, file);
}

plait_status pli_run_trace_close(pli_run_trace *run, const char *path, uint64_t *dropped_out, plait_error *err) {
    if (run->trace != NULL && !run->written) {
        char *own = run->alone < 0 ? pli_strdup(path) : pli_format("%s.%" PRId32, path, run->alone);
        if (own == NULL) run->status = pli_fail(&run->why, PLAIT_ENOMEM, "trace: no memory");
        else write_here(run, own);
        pli_free(own);
    }
    const plait_status status = run->status;
    if (status < 0) *err = run->why;
    *dropped_out = run->dropped;
    pli_trace_destroy(&run->trace);
    pli_free(run->rank);
    pthread_mutex_destroy(&run->lock);
    return status;
}
