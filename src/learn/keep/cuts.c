/* A cut through tables of a job and of its groups. See cuts.h. */
#include "learn/keep/cuts.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "comm/comm.h"
#include "learn/keep/kept_own.h"
#include "learn/keep/kept_rests.h"
#include "table/table.h"

/* Tables of one part of the job. */
typedef struct cut {
    plait_job    *job;
    plait_table **table; /* [n] */
    int32_t       n;
    pli_capture  *capture;
    bool          taken; /* all of it was handed on */
} cut;

/* What a worker says of a table in which it takes part. */
typedef struct entry {
    int64_t  clock;  /* the worker's */
    int32_t  status; /* why the worker cannot take part; PLAIT_OK: it can */
    uint32_t group;
    char     name[PLI_KEPT_NAME]; /* "" in a worker's first entry, which stands for no table */
} entry;

struct pli_cuts {
    plait_job *job;
    cut       *cut; /* [n] in the order of the groups' numbers, then of all workers */
    int64_t    n;
    entry     *all;   /* [entries] each table once, in one order on all workers */
    int64_t   *units; /* [entries] */
    int64_t    entries;
    pli_kept_rest *rest; /* [rests] what filters had kept of this worker's updates to each of its tables */
    int64_t        rests;
    pli_kept_own  *own;  /* [rests] what each table has of the worker's own */
    bool           rests_taken; /* both were handed on */
};

static plait_status no_memory(plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory for a capture of tables");
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

static plait_status add_cut(pli_cuts *cuts, plait_job *job, int32_t n, plait_table *const *tables, plait_error *err) {
    cut *c = &cuts->cut[cuts->n];
    *c = (cut){ .job = job, .table = pli_calloc((size_t)n, sizeof(plait_table *)) };
    if (c->table == NULL) return no_memory(err);
    for (int32_t i = 0; i < n; i++)
        if (tables[i]->job == job) c->table[c->n++] = tables[i];
    if (c->n > 0) cuts->n++;
    else pli_free((void *)c->table);
    return PLAIT_OK;
}

static plait_status sort(pli_cuts *cuts, int32_t n, plait_table *const *tables, plait_error *err) {
    plait_job *job = cuts->job;
    cuts->cut = pli_calloc((size_t)job->parts + 1, sizeof *cuts->cut);
    if (cuts->cut == NULL) return no_memory(err);
    for (int64_t i = 0; i < job->parts; i++) PLI_TRY(add_cut(cuts, job->part[i], n, tables, err));
    return add_cut(cuts, job, n, tables, err);
}

/* Without a table of all workers they meet nevertheless. */
static plait_status begin_all(pli_cuts *cuts, plait_error *err) {
    if (cuts->n == 0 || cuts->cut[cuts->n - 1].job != cuts->job) PLI_TRY(pli_job_pass(cuts->job));
    for (int64_t i = 0; i < cuts->n; i++) {
        cut *c = &cuts->cut[i];
        PLI_TRY(pli_capture_begin(c->job, c->n, c->table, &c->capture, err));
    }
    return PLAIT_OK;
}

/* What filters keep, and a mirror of the worker's own, change with its next update. */
static plait_status take_rests(pli_cuts *cuts, plait_error *err) {
    int64_t n = 0;
    for (int64_t i = 0; i < cuts->n; i++) n += cuts->cut[i].n;
    cuts->rest = pli_calloc((size_t)n, sizeof *cuts->rest);
    cuts->own = pli_calloc((size_t)n, sizeof *cuts->own);
    if ((cuts->rest == NULL || cuts->own == NULL) && n > 0) return no_memory(err);
    for (int64_t i = 0; i < cuts->n; i++)
        for (int32_t t = 0; t < cuts->cut[i].n; t++) {
            const int64_t at = cuts->rests++;
            PLI_TRY(pli_kept_rest_take(cuts->cut[i].table[t], &cuts->rest[at], err));
            PLI_TRY(pli_kept_own_take(cuts->cut[i].table[t], &cuts->own[at], err));
        }
    return PLAIT_OK;
}

static plait_status give_rests(pli_cuts *cuts, pli_capture_take_fn *take, void *user, plait_error *err) {
    for (int64_t i = 0; !cuts->rests_taken && i < cuts->rests; i++) {
        PLI_TRY(pli_kept_rest_put(&cuts->rest[i], take, user, err));
        pli_rest_free(&cuts->rest[i].rest);
    }
    for (int64_t i = 0; !cuts->rests_taken && i < cuts->rests; i++) {
        PLI_TRY(pli_kept_own_put(&cuts->own[i], take, user, err));
        pli_own_free(&cuts->own[i].own);
    }
    cuts->rests_taken = true;
    return PLAIT_OK;
}

/* --- what all say ------------------------------------------------------------------------------------------------- */

static bool say(const pli_cuts *cuts, plait_status status, entry **mine_out, int64_t *n_out) {
    int64_t n = 1;
    for (int64_t i = 0; i < cuts->n; i++) n += cuts->cut[i].n;
    entry *mine = pli_calloc((size_t)n, sizeof *mine);
    if (mine == NULL) return false;
    *n_out = n;
    n = 0;
    mine[n++] = (entry){ .clock = plait_job_clock_now(cuts->job), .status = status };
    for (int64_t i = 0; i < cuts->n; i++)
        for (int32_t t = 0; t < cuts->cut[i].n; t++, n++) {
            const cut *c = &cuts->cut[i];
            mine[n] = (entry){ .clock = mine[0].clock, .group = pli_group_id(c->job->group) };
            pli_kept_name(c->table[t], mine[n].name);
        }
    *mine_out = mine;
    return true;
}

static plait_status add_entry(pli_cuts *cuts, const entry *said, plait_error *err) {
    if (said->name[0] == '\0') return PLAIT_OK;
    for (int64_t i = 0; i < cuts->entries; i++) {
        const entry *known = &cuts->all[i];
        if (strcmp(known->name, said->name) != 0) continue;
        if (known->group == said->group) return PLAIT_OK;
        return pli_fail(err, PLAIT_EINVAL,
                        "two groups have a table named %s each, and a checkpoint holds one of a name; give them names "
                        "of their own", said->name);
    }
    cuts->all[cuts->entries++] = *said;
    return PLAIT_OK;
}

static plait_status read_entry(pli_cuts *cuts, int32_t worker, const entry *said, plait_error *err) {
    const int64_t clock = plait_job_clock_now(cuts->job);
    if (said->status < 0)
        return pli_fail(err, PLAIT_EMISMATCH, "a checkpoint: rank %d failed: %s", worker,
                        plait_status_text((plait_status)said->status));
    if (said->clock == clock) return add_entry(cuts, said, err);
    return pli_fail(err, PLAIT_EMISMATCH,
                    "a checkpoint is of one clock, but rank %d is in clock %lld and rank %d in clock %lld", worker,
                    (long long)said->clock, plait_comm_rank(plait_job_comm(cuts->job)), (long long)clock);
}

/* all: the workers' entries, one worker after the other. */
static plait_status read_all(pli_cuts *cuts, const entry *all, const size_t *sizes, plait_error *err) {
    const int32_t workers = plait_comm_workers(plait_job_comm(cuts->job));
    size_t        n = 0;
    for (int32_t w = 0; w < workers; w++) n += sizes[w] / sizeof *all;
    cuts->all = pli_calloc(n, sizeof *cuts->all);
    if (cuts->all == NULL) return no_memory(err);
    for (int32_t w = 0; w < workers; w++)
        for (size_t i = 0; i < sizes[w] / sizeof *all; i++) PLI_TRY(read_entry(cuts, w, all++, err));
    return cuts->entries > 0 ? PLAIT_OK : pli_fail(err, PLAIT_EINVAL, "a checkpoint of no table");
}

/* status: whether this worker can take part; its text is kept if it cannot. */
static plait_status agree(pli_cuts *cuts, plait_status status, plait_error *err) {
    plait_comm  *comm = plait_job_comm(cuts->job);
    size_t      *sizes = pli_calloc((size_t)plait_comm_workers(comm), sizeof *sizes);
    entry       *mine = NULL;
    void        *all = NULL;
    int64_t      n = 0;
    plait_error  own = *err;
    plait_status sent = sizes != NULL && say(cuts, status, &mine, &n) ? PLAIT_OK : no_memory(err);
    if (sent >= 0) sent = plait_comm_allgatherv(comm, mine, (size_t)n * sizeof *mine, sizes, &all);
    if (status < 0) *err = own;
    else status = sent < 0 ? sent : read_all(cuts, all, sizes, err);
    plait_comm_free(all);
    pli_free(mine);
    pli_free(sizes);
    return status;
}

/* Everybody learns how far the penalties of all tables go. */
static plait_status share_units(pli_cuts *cuts, plait_error *err) {
    cuts->units = pli_calloc((size_t)cuts->entries, sizeof *cuts->units);
    if (cuts->units == NULL) return no_memory(err);
    for (int64_t e = 0; e < cuts->entries; e++)
        for (int64_t i = 0; i < cuts->n; i++)
            for (int32_t t = 0; t < cuts->cut[i].n; t++) {
                char name[PLI_KEPT_NAME];
                pli_kept_name(cuts->cut[i].table[t], name);
                if (strcmp(name, cuts->all[e].name) == 0)
                    cuts->units[e] = pli_capture_units(cuts->cut[i].capture, t);
            }
    return plait_comm_allreduce(plait_job_comm(cuts->job), cuts->units, cuts->entries, PLAIT_I64, PLAIT_MAX);
}

plait_status pli_cuts_begin(plait_job *job, int32_t n, plait_table *const *tables, pli_cuts **cuts_out,
                            plait_error *err) {
    pli_cuts *cuts = pli_calloc(1, sizeof *cuts);
    if (cuts == NULL) return no_memory(err);
    cuts->job = job;
    plait_status status = sort(cuts, n, tables, err);
    for (int32_t t = 0; status >= 0 && t < n; t++) status = pli_state_check(tables[t], err);
    status = agree(cuts, status, err);
    if (status >= 0) status = begin_all(cuts, err);
    if (status >= 0) status = take_rests(cuts, err);
    if (status >= 0) status = share_units(cuts, err);
    if (status < 0) pli_cuts_end(&cuts);
    *cuts_out = cuts;
    return status;
}

/* --- taking ------------------------------------------------------------------------------------------------------- */

void pli_cuts_plan(const pli_cuts *cuts, pli_part_plan *plan) {
    for (int64_t i = 0; i < cuts->n; i++) pli_kept_plan(cuts->cut[i].capture, cuts->cut[i].table, plan);
    for (int64_t i = 0; i < cuts->rests; i++) pli_kept_rest_plan(&cuts->rest[i], plan);
    for (int64_t i = 0; i < cuts->rests; i++) pli_kept_own_plan(&cuts->own[i], plan);
}

void pli_cuts_units(const pli_cuts *cuts, pli_text *json) {
    pli_json_object(json, "units");
    for (int64_t i = 0; i < cuts->entries; i++) pli_json_i64(json, cuts->all[i].name, cuts->units[i]);
    pli_json_end(json);
}

plait_status pli_cuts_pump(pli_cuts *cuts, int64_t bytes, bool wait, pli_capture_take_fn *take, void *user,
                           bool *done_out, plait_error *err) {
    *done_out = true;
    for (int64_t i = 0; *done_out && i < cuts->n; i++) {
        cut *c = &cuts->cut[i];
        if (c->taken) continue;
        PLI_TRY(pli_capture_pump(c->capture, bytes, wait, take, user, &c->taken, err));
        *done_out = c->taken;
    }
    return *done_out ? give_rests(cuts, take, user, err) : PLAIT_OK;
}

bool pli_cuts_are_torn(const pli_cuts *cuts) {
    for (int64_t i = 0; i < cuts->n; i++)
        if (pli_capture_is_torn(cuts->cut[i].capture)) return true;
    return false;
}

void pli_cuts_end(pli_cuts **cuts_ptr) {
    pli_cuts *cuts = *cuts_ptr;
    *cuts_ptr = NULL;
    if (cuts == NULL) return;
    for (int64_t i = 0; i < cuts->n; i++) {
        pli_capture_end(&cuts->cut[i].capture);
        pli_free((void *)cuts->cut[i].table);
    }
    for (int64_t i = 0; i < cuts->rests; i++) {
        pli_rest_free(&cuts->rest[i].rest);
        pli_own_free(&cuts->own[i].own);
    }
    pli_free(cuts->rest);
    pli_free(cuts->own);
    pli_free(cuts->cut);
    pli_free(cuts->all);
    pli_free(cuts->units);
    pli_free(cuts);
}
