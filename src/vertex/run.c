/* A vertex program's run: what must agree, its tables, and how it ends. See plait/vertex.h. */
#include <stdio.h>

#include "base/hash.h"
#include "base/sized.h"
#include "comm/comm.h"
#include "table/table.h"
#include "vertex/async/rounds.h"
#include "vertex/heirs.h"
#include "vertex/pagerank.h"
#include "vertex/signals.h"
#include "vertex/vertex.h"

void (plait_vertex_program_init)(plait_vertex_program *program) {
    if (program != NULL) *program = (plait_vertex_program){ .size = sizeof *program, .type = PLAIT_F64 };
}

void plait_vertex_program_init_sized(plait_vertex_program *program, size_t size) {
    plait_vertex_program all;
    (plait_vertex_program_init)(&all);
    pli_sized_give(program, size, &all, sizeof all);
}

void (plait_vertex_opts_init)(plait_vertex_opts *opts) {
    if (opts != NULL) *opts = (plait_vertex_opts){ .size = sizeof *opts };
}

void plait_vertex_opts_init_sized(plait_vertex_opts *opts, size_t size) {
    plait_vertex_opts all;
    (plait_vertex_opts_init)(&all);
    pli_sized_give(opts, size, &all, sizeof all);
}

/* --- what a run shares with its engines --------------------------------------------------------------------------- */

plait_status pli_vertex_read(pli_vertex_run *run) {
    if (run->part.key == NULL) return plait_table_read(run->value, 0, run->part.n, &run->values);
    run->values = run->read;
    return plait_table_get(run->value, run->part.n, run->part.key, run->read);
}

typedef struct chunked {
    const pli_neighbors *rows;
    int64_t              first, last, chunks;
    pli_rows_fn         *fn;
    void                *user;
} chunked;

/* The first row of chunk i of `chunks` with equally many edges and vertices each, of rows first .. last - 1. */
static int64_t chunk_begin(const chunked *c, int64_t i) {
    const pli_neighbors *h = c->rows;
    const int64_t        begin = h->start[c->first] + c->first, all = h->start[c->last] + c->last - begin;
    const double         want = (double)begin + (double)all * (double)i / (double)c->chunks;
    int64_t              low = c->first, high = c->last;
    if (i >= c->chunks) return c->last;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if ((double)(h->start[middle] + middle) < want) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void run_chunk(void *user, int64_t i, int32_t thread) {
    const chunked *c = user;
    c->fn(c->user, chunk_begin(c, i), chunk_begin(c, i + 1), thread);
}

static void in_chunks(const pli_vertex_run *run, int64_t first, int64_t last, pli_rows_fn *fn, void *user) {
    const pli_neighbors *h = &run->part.rows;
    const int64_t        work = h->start[last] + last - h->start[first] - first;
    int64_t              chunks = 16 * (int64_t)pli_pool_threads(run->pool);
    if (chunks > work / 4096 + 1) chunks = work / 4096 + 1;
    pli_pool_for(run->pool, chunks, run_chunk, &(chunked){ h, first, last, chunks, fn, user });
}

void pli_vertex_rows(const pli_vertex_run *run, pli_rows_fn *fn, void *user) {
    in_chunks(run, 0, run->part.rows.n, fn, user);
}

void pli_vertex_own_rows(const pli_vertex_run *run, pli_rows_fn *fn, void *user) {
    in_chunks(run, run->part.own, run->part.own + run->part.owned, fn, user);
}

static void tell_rows(void *user, int64_t first, int64_t last, int32_t thread) {
    pli_vertex_run *run = user;
    (void)thread;
    for (int64_t v = first; v < last; v++) {
        const plait_vertex vertex = pli_vertex_of(run->edges, pli_part_vertex(&run->part, v));
        run->program.tell(run->program.user, &vertex, pli_run_value(run, v),
                          (char *)run->tells + run->tell_bytes * (size_t)v);
    }
}

void pli_vertex_tell(pli_vertex_run *run) {
    run->told = run->program.tell != NULL ? run->tells : run->values;
    if (run->program.tell != NULL) pli_vertex_rows(run, tell_rows, run);
}

/* --- do all mean the same? ---------------------------------------------------------------------------------------- */

static plait_status agree(const pli_vertex_run *run) {
    const plait_vertex_program *p = &run->program;
    const double numbers[] = { (double)p->type, (double)run->gather.fold, (double)p->near, (double)p->along,
                               p->apply != NULL, p->tell != NULL, p->tolerance, (double)run->limit,
                               p->update != NULL, p->gather != NULL, p->scatter != NULL, p->post_delta != NULL,
                               p->again != 0, p->values,
                               p->tells, p->gathers, p->edge_values, p->totals, run->async, run->scope,
                               (double)run->opts.every, run->opts.begin != NULL, run->opts.pause != NULL };
    int64_t      hash[2];
    hash[0] = (int64_t)(pli_hash_bytes(numbers, sizeof numbers, run->edges->hash) >> 1);
    hash[0] ^= (int64_t)(pli_hash_bytes(run->cut->method, strlen(run->cut->method), 0) >> 1);
    hash[1] = -hash[0];
    PLI_TRY(plait_comm_allreduce(run->job->comm, hash, 2, PLAIT_I64, PLAIT_MAX));
    if (hash[0] == -hash[1]) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EMISMATCH, "%s: the workers' graphs, cuts or programs differ", p->name);
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

typedef struct first_values {
    const pli_vertex_run *run;
    char                 *value;
} first_values;

enum { FIRST = 4096 };

static void fill_first(void *user, int64_t i, int32_t thread) {
    const first_values *f = user;
    const int64_t       n = f->run->edges->n, last = (i + 1) * FIRST < n ? (i + 1) * FIRST : n;
    (void)thread;
    for (int64_t v = i * FIRST; v < last; v++) {
        const plait_vertex vertex = pli_vertex_of(f->run->edges, v);
        char *value = f->value + f->run->value_bytes * (size_t)v;
        memset(value, 0, f->run->value_bytes);
        if (f->run->program.init != NULL) f->run->program.init(f->run->program.user, &vertex, value);
    }
}

/* Does each worker change all values that it owns in each superstep, and read most of all? Then a table without keys is
 * less to send, to add and to sum up, and its room at each worker is no more than that for what is read. Not beside
 * filters or survivors, which may want keys, nor where reads are stale, since a topology may send slabs another way. */
static bool changes_all(const pli_vertex_run *run) {
    const plait_vertex_program *p = &run->program;
    return (p->apply != NULL || p->update != NULL) && p->scatter == NULL && !run->async && run->all_is_read &&
           !run->cut->splits && run->cut->replication * 2 > run->cut->parts && run->job->filter[0] == '\0' &&
           run->job->layout.replicas < 2;
}

static plait_status make_table(pli_vertex_run *run, const char *what, const char *combine, int32_t cols,
                               const void *initial, plait_table **out) {
    plait_table_opts t;
    char             name[64];
    plait_table_opts_init(&t);
    snprintf(name, sizeof name, "%s.%s", run->program.name, what);
    t.name = name;
    t.type = run->program.type;
    t.combine = combine;
    t.rows = run->edges->n;
    t.cols = cols;
    t.keyed = (run->workers > 1 && !changes_all(run)) || run->async;
    t.shards = pli_cut_shards(run->cut, run->value_bytes);
    /* An heir that hears of a death before it hears that its clock is safe reads the next clock's values, by which a
     * frontier is another. What it pushes counts nowhere then, but of keyed tables rows would be compared. */
    if (run->job->layout.replicas > 1 && combine != NULL && !pli_is(combine, "add")) t.keyed = 0;
    t.initial = initial;
    return plait_table_create(run->job, &t, out);
}

static plait_status make_tables(pli_vertex_run *run) {
    const int64_t n = run->edges->n;
    const bool    applies = run->program.apply != NULL || run->program.update != NULL;
    char         *first = pli_array((size_t)n, run->value_bytes);
    if (first == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "%s: no memory for values", run->program.name);
    pli_pool_for(run->pool, (n + FIRST - 1) / FIRST, fill_first, &(first_values){ run, first });
    const char *combine = run->async ? "last" : applies ? "add" : run->program.combine; /* owners push whole values */
    plait_status status = make_table(run, "value", combine, run->program.values, first, &run->value);
    pli_free(first);
    if (status == PLAIT_OK && applies && !run->async && !run->part.whole)
        status = make_table(run, "sum", "add", run->program.gathers, NULL, &run->sum);
    return status;
}

/* The job may run another program, of the same name too. With two replicas tables stay (plait_table_drop). */
static plait_status drop_tables(pli_vertex_run *run) {
    if (run->heirs != NULL || run->rounds != NULL) return PLAIT_OK;
    if (run->sum != NULL) PLI_TRY(plait_table_drop(&run->sum));
    if (run->frontier != NULL) PLI_TRY(plait_table_drop(&run->frontier));
    return plait_table_drop(&run->value);
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

plait_status pli_vertex_take_part(pli_vertex_run *run) {
    const plait_vertex_program *p = &run->program;
    const bool back = run->async || (p->apply == NULL && p->update == NULL);
    const bool own = !back && p->gather == NULL && p->update == NULL && p->scatter == NULL && p->totals == 0;
    PLI_TRY(own ? pli_part_make_own(run->cut, run->rank, &run->part, run->err)
                : pli_part_make(run->cut, run->rank, back, &run->part, run->err));
    if (run->async) return pli_scope_data(run);
    run->loops = run->part.key == NULL ? pli_vertex_loops_of(p) : NULL;
    if (run->part.key != NULL) run->read = pli_array((size_t)run->part.n, run->value_bytes);
    if (p->tell != NULL) run->tells = pli_array((size_t)run->part.n, run->tell_bytes);
    if ((run->part.key != NULL && run->read == NULL) || (p->tell != NULL && run->tells == NULL))
        return pli_fail(run->err, PLAIT_ENOMEM, "%s: no memory for the values of %lld vertices", p->name,
                        (long long)run->part.n);
    return pli_scope_data(run);
}

void pli_vertex_leave_part(pli_vertex_run *run) {
    pli_part_free(&run->part);
    pli_free(run->read);
    pli_free(run->tells);
    pli_free(run->data);
    run->read = run->tells = run->data = NULL;
}

/* Sums of all are made of the workers' parts, one beside the other where a worker may die. */
static plait_status make_totals(pli_vertex_run *run) {
    const size_t parts = run->job->layout.replicas > 1 ? (size_t)run->workers : 1;
    if (run->program.totals == 0) return PLAIT_OK;
    run->total = pli_array((size_t)run->program.totals * parts, sizeof *run->total);
    if (run->total != NULL) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_ENOMEM, "%s: no memory for totals", run->program.name);
}

static plait_status make(pli_vertex_run *run) {
    PLI_TRY(pli_vertex_suits(run));
    PLI_TRY(agree(run));
    PLI_TRY(pli_vertex_take_part(run));
    PLI_TRY(make_totals(run));
    const bool survives = run->job->layout.replicas > 1;
    if (survives && run->async) return pli_rounds_make(run);
    PLI_TRY(make_tables(run));
    if (survives && run->program.scatter != NULL) PLI_TRY(pli_signals_make(run));
    return survives ? pli_heirs_make(run) : PLAIT_OK;
}

/* The options, as the engines know them. */
static plait_status take_opts(pli_vertex_run *run, const plait_vertex_opts *given) {
    static const char *const engines[] = { "sync", "async" }, *const scopes[] = { "vertex", "edge", "full" };
    plait_vertex_opts        opts;
    int                      engine = 0, scope = 0;
    plait_vertex_opts_init(&opts);
    PLI_TRY(pli_sized_take(&opts, sizeof opts, PLI_SIZED_END(plait_vertex_opts, order), given, "plait_vertex_opts",
                           run->err));
    if (opts.supersteps < 0)
        return pli_fail(run->err, PLAIT_EINVAL, "plait_vertex_run: %lld supersteps: expected 1 or more, or 0 for no "
                        "limit", (long long)opts.supersteps);
    while (opts.engine != NULL && engine < 2 && !pli_is(opts.engine, engines[engine])) engine++;
    if (engine == 2) return pli_fail_unknown(run->err, "engine of a vertex program", opts.engine, engines, 2);
    while (opts.scope != NULL && scope < 3 && !pli_is(opts.scope, scopes[scope])) scope++;
    if (scope == 3) return pli_fail_unknown(run->err, "scope of a vertex program", opts.scope, scopes, 3);
    PLI_TRY(pli_queue_find(opts.order, &run->order, run->err));
    if (engine == 0 && (scope > 0 || opts.order != NULL))
        return pli_fail(run->err, PLAIT_EREFUSED, "plait_vertex_run: %s needs engine async: in a superstep all "
                        "vertices see what was there before it", scope > 0 ? "a scope of locks" : "an order");
    if (opts.every < 0)
        return pli_fail(run->err, PLAIT_EINVAL, "plait_vertex_run: a pause behind every %lld supersteps: expected 1 or "
                        "more, or 0 for none", (long long)opts.every);
    run->opts = opts;
    run->limit = opts.supersteps;
    run->async = engine == 1;
    run->scope = (pli_vertex_scope)scope;
    return PLAIT_OK;
}

static plait_status go(pli_vertex_run *run) {
    if (run->async) return pli_vertex_async(run);
    const bool folds_in = run->program.apply == NULL && run->program.update == NULL;
    return folds_in ? pli_vertex_fold(run) : pli_vertex_apply(run);
}

plait_status plait_vertex_run_with(plait_job *job, const plait_edges *edges, const plait_vertex_cut *cut,
                                   const plait_vertex_program *program, const plait_vertex_opts *opts,
                                   void *values_out, plait_vertex_report *report_out) {
    if (job == NULL) return PLAIT_EINVAL;
    plait_error   *err = pli_comm_error(job->comm);
    pli_vertex_run run = { .job = job, .err = err, .edges = edges, .cut = cut, .pool = pli_comm_pool(job->comm),
                           .workers = plait_comm_workers(job->comm), .rank = plait_comm_rank(job->comm) };
    PLI_TRY(PLI_GIVEN(err, edges));
    PLI_TRY(PLI_GIVEN(err, cut));
    PLI_TRY(PLI_GIVEN(err, program));
    if (cut->edges != edges)
        return pli_fail(err, PLAIT_EINVAL, "plait_vertex_run: the cut is of another graph");
    plait_vertex_program_init(&run.program);
    PLI_TRY(pli_sized_take(&run.program, sizeof run.program, PLI_SIZED_END(plait_vertex_program, user), program,
                           "plait_vertex_program", err));
    PLI_TRY(take_opts(&run, opts));
    plait_status status = make(&run);
    if (status == PLAIT_OK) status = pli_vertex_begin(&run);
    if (status == PLAIT_OK) status = go(&run);
    if (run.limit > 0 && run.report.supersteps >= run.limit) run.report.interrupted = 0; /* its limit has ended it */
    if (status == PLAIT_OK) status = plait_job_barrier(job);
    if (status == PLAIT_OK && values_out != NULL)
        status = run.rounds != NULL ? pli_rounds_values(&run, values_out)
                                    : plait_table_get_range(run.value, 0, edges->n, values_out);
    if (status == PLAIT_OK) status = drop_tables(&run);
    if (report_out != NULL) *report_out = run.report;
    pli_heirs_free(&run);
    pli_rounds_free(&run);
    pli_vertex_leave_part(&run);
    pli_free(run.total);
    pli_free(run.row);
    return status;
}

plait_status plait_vertex_run(plait_job *job, const plait_edges *edges, const plait_vertex_cut *cut,
                              const plait_vertex_program *program, int64_t supersteps, void *values_out,
                              plait_vertex_report *report_out) {
    plait_vertex_opts opts;
    plait_vertex_opts_init(&opts);
    opts.supersteps = supersteps;
    return plait_vertex_run_with(job, edges, cut, program, &opts, values_out, report_out);
}
