/* Rounds that are made again when a worker dies. See rounds.h. */
#include "vertex/async/rounds.h"

#include <string.h>

#include "comm/comm.h"
#include "table/table.h"
#include "vertex/beside.h"
#include "vertex/reader.h"

enum { FRONTIER = 2, PIECE = 1 << 14 }; /* who waits, with what weight, plus 1; what was too small to tell */

typedef struct pli_rounds {
    plait_table      *table[2];
    int32_t           cols; /* of a row: the value's bits, and FRONTIER */
    int               good; /* which has the last good round; -1: none yet */
    int32_t           absent; /* how many workers were, at the beginning of the era */
    plait_vertex_cut *cut;    /* of this era; NULL: the first one's, which is the caller's */
} pli_rounds;

plait_status pli_rounds_make(pli_vertex_run *run) {
    pli_rounds *r = run->rounds = pli_calloc(1, sizeof *r);
    if (r == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "%s: no memory for rounds", run->program.name);
    r->good = -1;
    r->cols = (int32_t)((run->value_bytes + 7) / 8) + FRONTIER;
    pli_beside round = { .program = run->program.name, .what = "round0", .type = PLAIT_I64, .rows = run->edges->n,
                         .cols = r->cols };
    PLI_TRY(pli_beside_make(run->job, &round, &r->table[0]));
    round.what = "round1";
    return pli_beside_make(run->job, &round, &r->table[1]);
}

void pli_rounds_free(pli_vertex_run *run) {
    if (run->rounds == NULL) return;
    plait_vertex_cut_destroy(&run->rounds->cut);
    pli_free(run->rounds);
    run->rounds = NULL;
}

/* --- what lies in the tables -------------------------------------------------------------------------------------- */

static plait_status no_memory(const pli_vertex_run *run) {
    return pli_fail(run->err, PLAIT_ENOMEM, "%s: no memory for rows of a round", run->program.name);
}

/* Rows of the own vertices; NULL: no memory. */
static int64_t *make_rows(const pli_vertex_run *run) {
    return pli_calloc((size_t)run->part.owned * (size_t)run->rounds->cols, sizeof(int64_t));
}

plait_status pli_rounds_load(pli_async *a, bool *loaded_out) {
    pli_vertex_run   *run = a->run;
    const pli_rounds *r = run->rounds;
    *loaded_out = r->good >= 0;
    if (!*loaded_out || run->part.owned == 0) return PLAIT_OK;
    int64_t *rows = make_rows(run);
    if (rows == NULL) return no_memory(run);
    const plait_status status =
        plait_table_get_range(r->table[r->good], run->cut->first[run->rank], run->part.owned, rows);
    for (int64_t i = 0; status == PLAIT_OK && i < run->part.owned; i++) {
        const int64_t *row = rows + i * r->cols;
        double         waits[FRONTIER];
        memcpy(a->locks.value + (size_t)i * run->value_bytes, row, run->value_bytes);
        memcpy(waits, row + r->cols - FRONTIER, sizeof waits);
        if (waits[0] > 0) pli_queue_push(&a->queue, i, waits[0] - 1);
        a->unsaid[i] = waits[1];
    }
    pli_free(rows);
    return status;
}

/* The own vertices' rows, less what the table has. */
static void fill_changes(const pli_async *a, const int64_t *old, int64_t *rows) {
    const pli_vertex_run *run = a->run;
    const int32_t         cols = run->rounds->cols;
    for (int64_t i = 0; i < run->part.owned; i++) {
        int64_t     *row = rows + i * cols;
        const double weight = a->queue.weight != NULL ? a->queue.weight[i] : 0,
                     waits[FRONTIER] = { pli_queue_has(&a->queue, i) ? 1 + weight : 0, a->unsaid[i] };
        memcpy(row, a->locks.value + (size_t)i * run->value_bytes, run->value_bytes);
        memcpy(row + cols - FRONTIER, waits, sizeof waits);
        for (int32_t k = 0; k < cols; k++) row[k] = (int64_t)((uint64_t)row[k] - (uint64_t)old[i * cols + k]);
    }
}

static int next_of(const pli_rounds *r) { return r->good == 0; }

static plait_status push_own(pli_async *a) {
    pli_vertex_run   *run = a->run;
    const pli_rounds *r = run->rounds;
    plait_table      *table = r->table[next_of(r)];
    const int64_t     first = run->cut->first[run->rank], n = run->part.owned;
    if (n == 0) return PLAIT_OK;
    int64_t     *old = make_rows(run), *rows = make_rows(run);
    plait_status status = old != NULL && rows != NULL ? PLAIT_OK : no_memory(run);
    if (status == PLAIT_OK) status = plait_table_get_range(table, first, n, old);
    if (status == PLAIT_OK) {
        fill_changes(a, old, rows);
        status = plait_table_inc_range(table, first, n, rows, 0);
    }
    pli_free(old);
    pli_free(rows);
    return status;
}

/* A worker has died in the clock: its rows are pushed as they are. The round is not good in any case, but the shards
 * wait for the same rows. */
static plait_status push_nothing(pli_async *a, int32_t home) {
    const pli_vertex_run *run = a->run;
    const pli_rounds     *r = run->rounds;
    const int64_t         first = run->cut->first[home], n = run->cut->first[home + 1] - first;
    if (n == 0) return PLAIT_OK;
    int64_t *rows = pli_calloc((size_t)n * (size_t)r->cols, sizeof *rows);
    if (rows == NULL) return no_memory(run);
    const plait_status status = plait_table_inc_range(r->table[next_of(r)], first, n, rows, 0);
    pli_free(rows);
    return status;
}

plait_status pli_rounds_push(pli_async *a) {
    const pli_vertex_run *run = a->run;
    plait_status          status;
    PLI_TRY(push_own(a));
    while ((status = plait_job_clock(run->job)) == PLAIT_STAND_IN)
        for (int32_t w = 0; w < run->workers; w++)
            if (plait_job_inherits(run->job, w, 0)) PLI_TRY(push_nothing(a, w));
    return status;
}

void pli_rounds_commit(pli_async *a) { a->run->rounds->good = next_of(a->run->rounds); }

plait_status pli_rounds_values(pli_vertex_run *run, void *values_out) {
    const pli_rounds *r = run->rounds;
    const int64_t     n = run->edges->n;
    int64_t          *rows = pli_array(PIECE * (size_t)r->cols, sizeof *rows);
    plait_status      status = rows != NULL ? PLAIT_OK : no_memory(run);
    for (int64_t v = 0; status == PLAIT_OK && v < n; v += PIECE) {
        const int64_t some = n - v < PIECE ? n - v : PIECE;
        status = plait_table_get_range(r->table[r->good], v, some, rows);
        for (int64_t i = 0; status == PLAIT_OK && i < some; i++)
            memcpy((char *)values_out + (size_t)(v + i) * run->value_bytes, rows + i * r->cols, run->value_bytes);
    }
    pli_free(rows);
    return status;
}

/* --- votes, eras -------------------------------------------------------------------------------------------------- */

plait_status pli_rounds_vote(pli_async *a, bool well, bool *good_out) {
    plait_comm *comm = plait_job_comm(a->run->job);
    int64_t     all = well;
    PLI_TRY(plait_comm_allreduce(comm, &all, 1, PLAIT_I64, PLAIT_MIN));
    *good_out = all != 0 && pli_comm_absent(comm) == a->run->rounds->absent;
    return PLAIT_OK;
}

/* Spreads where the parts of the living begin over all workers. */
static void spread(const pli_vertex_run *run, const uint8_t *absent, const plait_vertex_cut *cut, int64_t *first,
                   int64_t *reads) {
    for (int32_t w = 0, part = 0; w <= run->workers; w++) {
        first[w] = cut->first[part];
        if (w == run->workers || absent[w]) continue;
        if (cut->reads != NULL) reads[w] = cut->reads[part];
        part++;
    }
}

/* Deals the vertices out anew. A process that has its own part alone makes the cut's numbers, and reads the part then
 * (reader.h). */
static plait_status deal(const pli_vertex_run *run, int32_t living, plait_vertex_cut **cut_out) {
    if (run->edges->again == NULL)
        return pli_cut_create(run->edges, run->cut->near, "range", living, cut_out, run->err);
    plait_vertex_cut *cut = pli_calloc(1, sizeof *cut);
    if (cut == NULL) return no_memory(run);
    *cut = (plait_vertex_cut){ .edges = run->edges, .near = run->cut->near, .parts = living,
                               .method = run->cut->method, .rows.n = run->edges->n,
                               .replication = run->cut->replication, .imbalance = run->cut->imbalance,
                               .first = pli_calloc((size_t)living + 1, sizeof *cut->first) };
    const plait_status status =
        cut->first != NULL ? pli_ingress_deal(run->edges, living, cut->first, run->err) : no_memory(run);
    if (status < 0) plait_vertex_cut_destroy(&cut);
    else *cut_out = cut;
    return status;
}

/* A cut of the vertices among the living, in which the absent have no vertex. */
static plait_status cut_anew(pli_vertex_run *run, const uint8_t *absent, plait_vertex_cut **cut_out) {
    plait_vertex_cut *cut = NULL;
    int64_t          *first = pli_array((size_t)run->workers + 1, sizeof *first);
    int64_t          *reads = pli_calloc((size_t)run->workers, sizeof *reads);
    const int32_t     living = run->workers - pli_comm_absent(plait_job_comm(run->job));
    plait_status      status = first != NULL && reads != NULL ? PLAIT_OK : no_memory(run);
    if (status == PLAIT_OK) status = deal(run, living, &cut);
    if (status < 0) {
        pli_free(first);
        pli_free(reads);
        return status;
    }
    spread(run, absent, cut, first, reads);
    pli_free(cut->first);
    pli_free(cut->reads);
    cut->first = first;
    cut->reads = reads;
    cut->parts = run->workers;
    *cut_out = cut;
    return PLAIT_OK;
}

plait_status pli_rounds_begin_era(pli_async *a) {
    pli_vertex_run   *run = a->run;
    pli_rounds       *r = run->rounds;
    plait_comm       *comm = plait_job_comm(run->job);
    const uint8_t    *absent = pli_comm_absentees(comm);
    plait_vertex_cut *cut = NULL;
    uint64_t          now_ns;
    pli_out           out;
    r->absent = pli_comm_absent(comm);
    pli_vertex_leave_part(run);
    PLI_TRY(cut_anew(run, absent, &cut));
    pli_port_enter(a->port, &now_ns, &out);
    const bool made = pli_locks_begin_anew(&a->locks, cut->first, absent);
    pli_port_leave(a->port, &out);
    plait_vertex_cut_destroy(&r->cut);
    run->cut = r->cut = cut;
    if (!made) return pli_fail(run->err, PLAIT_ENOMEM, "%s: no memory for scopes", run->program.name);
    return pli_vertex_take_part(run);
}
