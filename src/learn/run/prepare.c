/* Everything between options and tables: opens the data, lets the workers agree on a schema, and lets the learner
 * settle what follows from the data. */
#include <stdio.h>
#include <string.h>

#include "learn/keep/keep.h"
#include "learn/learn.h"
#include "learn/model/model.h"
#include "learn/run/run.h"
#include "learn/solve/balance.h"
#include "learn/solve/inherit.h"

bool pli_run_holds_back(void *user, int64_t row) {
    const pli_run *run = user;
    pli_random     random = pli_random_at(run->opts->seed, PLI_RANDOM_SPLIT, 0, (uint64_t)row);
    return pli_random_f64(&random) < run->fraction;
}

bool pli_run_trains(void *user, int64_t row) { return !pli_run_holds_back(user, row); }

/* --- schema ---------------------------------------------------------------------------------------------- */

/* A worker's schema as text, borrowed. */
typedef struct schema_text {
    const char *data;
    size_t      length;
} schema_text;

static plait_status merge_texts(const schema_text *text, int32_t workers, pli_schema **schema_out, plait_error *err) {
    pli_schema **part = pli_calloc((size_t)workers, sizeof *part);
    if (part == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to join schemas");
    plait_status status = PLAIT_OK;
    for (int32_t w = 0; status == PLAIT_OK && w < workers; w++)
        status = pli_schema_read(text[w].data, text[w].length, &part[w], err);
    if (status == PLAIT_OK) status = pli_schema_merge((const pli_schema *const *)part, workers, schema_out, err);
    for (int32_t w = 0; w < workers; w++) pli_schema_destroy(&part[w]);
    pli_free(part);
    return status;
}

static plait_status join_apart(const pli_run *run, const pli_text *mine, pli_schema **schema_out) {
    int32_t      workers = plait_comm_workers(run->comm);
    void        *all = NULL;
    size_t      *sizes = pli_array((size_t)workers, sizeof *sizes);
    schema_text *text = pli_array((size_t)workers, sizeof *text);
    plait_status status = sizes != NULL && text != NULL
                              ? plait_comm_allgatherv(run->comm, mine->data, mine->length, sizes, &all)
                              : pli_fail(run->err, PLAIT_ENOMEM, "no memory to agree on a schema");
    const char *at = all;
    for (int32_t w = 0; status == PLAIT_OK && w < workers; at += sizes[w], w++)
        text[w] = (schema_text){ .data = at, .length = sizes[w] };
    if (status == PLAIT_OK) status = merge_texts(text, workers, schema_out, run->err);
    plait_comm_free(all);
    pli_free(sizes);
    pli_free(text);
    return status;
}

/* Within a process one worker joins for all: if a thousand workers joined a thousand texts each, they would read a
 * million. */

/* Lays out a text for the other ranks of this process. It stays until it is released, or until all ranks have ended,
 * since they may still read it when this rank has died. */
static plait_status lay_out(const pli_run *run, const char *what, const pli_text *text, schema_text *out) {
    char name[64];
    snprintf(name, sizeof name, "%s of rank %d", what, (int)plait_comm_rank(run->comm));
    char *memory = text->failed ? NULL : pli_comm_shared(run->comm, name, text->length + 1);
    if (memory == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory to agree on a schema");
    memcpy(memory, text->data, text->length);
    *out = (schema_text){ .data = memory, .length = text->length };
    return PLAIT_OK;
}

/* The leading worker joins the texts that all have laid out, and lays out the result. */
static plait_status join_laid_out(const pli_run *run, const schema_text *all, pli_schema **schema_out,
                                  schema_text *joined_out) {
    pli_text     text = { 0 };
    plait_status status = merge_texts(all, plait_comm_workers(run->comm), schema_out, run->err);
    if (status == PLAIT_OK) status = pli_schema_write(*schema_out, &text, run->err);
    if (status == PLAIT_OK) status = lay_out(run, "the joined schema", &text, joined_out);
    pli_text_free(&text);
    return status;
}

static plait_status join_beside(const pli_run *run, const pli_text *mine, pli_schema **schema_out) {
    const bool   joins = pli_comm_leads(run->comm);
    schema_text  own = { 0 }, joined = { 0 };
    schema_text *all = pli_array((size_t)plait_comm_workers(run->comm), sizeof *all);
    if (all == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory to agree on a schema");
    plait_status status = lay_out(run, "the schema", mine, &own);
    if (status == PLAIT_OK) status = plait_comm_allgather(run->comm, &own, sizeof own, all);
    if (status == PLAIT_OK && joins) status = join_laid_out(run, all, schema_out, &joined);
    pli_free(all);
    if (status == PLAIT_OK)
        status = plait_comm_broadcast(run->comm, &joined, sizeof joined, pli_comm_lead(run->comm));
    if (status == PLAIT_OK && !joins) status = pli_schema_read(joined.data, joined.length, schema_out, run->err);
    if (status == PLAIT_OK) status = plait_comm_barrier(run->comm);
    if (status != PLAIT_OK) return status; /* others may still read: it goes when all have ended */
    pli_comm_shared_release(run->comm, (void *)(uintptr_t)own.data);
    if (joins) pli_comm_shared_release(run->comm, (void *)(uintptr_t)joined.data);
    return PLAIT_OK;
}

static plait_status join(const pli_run *run, const pli_text *mine, pli_schema **schema_out) {
    return pli_comm_shares_process(run->comm) ? join_beside(run, mine, schema_out)
                                              : join_apart(run, mine, schema_out);
}

plait_status pli_run_agree_schema(const pli_run *run, pli_dataset *data, bool whole, pli_schema **schema_out) {
    pli_text     mine = { 0 };
    plait_status status = pli_schema_write(pli_dataset_schema(data), &mine, run->err);
    if (status == PLAIT_OK && mine.failed)
        status = pli_fail(run->err, PLAIT_ENOMEM, "no memory to agree on a schema");
    if (status == PLAIT_OK && whole) {
        status = pli_schema_read(mine.data, mine.length, schema_out, run->err);
    } else if (status == PLAIT_OK) {
        status = join(run, &mine, schema_out);
        if (status == PLAIT_OK) status = pli_dataset_agree(data, *schema_out, run->err);
    }
    pli_text_free(&mine);
    return status;
}

/* --- the order ------------------------------------------------------------------------------------------------ */

static plait_status load_start(pli_run *run) {
    const plait_train_opts *o = run->opts;
    if (o->init_model == NULL) return PLAIT_OK;
    PLI_TRY(pli_run_stages(run) > 1
                ? pli_model_load_bare(o->init_model, o->learners, o->n_learners, &run->start, run->err)
                : plait_model_load_with(o->init_model, o->learners, o->n_learners, &run->start, run->err));
    if (strcmp(plait_model_name(run->start), o->model) == 0) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EMISMATCH, "%s holds a model of kind %s, not %s", o->init_model,
                    plait_model_name(run->start), o->model);
}

static void settle_files(const pli_run *run, plait_data_opts *files) {
    files->apart = 0;
    if (run->learner->more != NULL && run->learner->more->reads != NULL) run->learner->more->reads(run, files);
}

plait_status pli_train_reads(const plait_train_opts *opts, plait_data_opts *files, plait_error *err) {
    const plait_learner *learner = pli_learner_find(opts->model, opts->learners, opts->n_learners);
    if (learner == NULL) return pli_learner_unknown(opts->model, opts->learners, opts->n_learners, err);
    settle_files(&(pli_run){ .opts = opts, .learner = learner }, files);
    return PLAIT_OK;
}

/* Blocks follow from the data, so there may be workers without any. They take part in all clocks. */
static void tell_idle(const pli_run *run) {
    const int32_t blocks = pli_dataset_blocks(run->data), workers = pli_run_holders(run);
    if (blocks > 1 && workers > blocks && pli_comm_leads(run->comm))
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_WARN, -1, "data",
                "%d of %d workers have no rows, since the data have %d blocks; --blocks %d gives each one",
                workers - blocks, workers, blocks, workers);
}

/* The data to train on, as the learner reads them. */
static plait_status open_data(pli_run *run) {
    const plait_train_opts *o = run->opts;
    plait_data_opts         files = o->data != NULL ? *o->data : (plait_data_opts){ 0 };
    settle_files(run, &files);
    if (files.blocks == 0 && run->resume != NULL) files.blocks = run->resume->blocks;
    run->blocks = files.blocks;
    const pli_schema *fixed = run->start != NULL ? pli_model_schema(run->start) : NULL;
    PLI_TRY(pli_run_open(run, o->data != NULL ? &files : NULL, o->memory, fixed, run->stream, &run->data));
    if (!files.keep_missing && o->memory != NULL && pli_schema_keeps_missing(pli_dataset_schema(run->data)))
        return pli_fail(run->err, PLAIT_EINVAL, "the data lack numbers (NaN), and model %s needs all; take gbdt or "
                                                "forest, or fill them in", run->learner->name);
    if (!files.origins && pli_schema_origins(pli_dataset_schema(run->data)) > 0)
        return pli_fail(run->err, PLAIT_EREFUSED,
                        "model %s%s is refused on rows that were read for another model: columns that lie far from 0 "
                        "are read less a constant there; read the rows by themselves, and start without a model",
                        o->model, o->no_intercept ? " without an intercept" : "");
    if (files.apart || pli_schema_row_labels(pli_dataset_schema(run->data)) == 1) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EREFUSED,
                    "model %s is refused on text whose windows do not overlap: it gives one answer for each row; take "
                    "lstm, or read one row for each character (plait_data_opts.apart 0)",
                    o->model);
}

/* Sets batches and clocks if the learner leaves them to the run. */
static void settle_clocks(pli_run *run) {
    const plait_train_opts *o = run->opts;
    int64_t                 batch = o->batch > 0 ? o->batch : run->train_rows / 64;
    if (run->clocks > 0) return; /* the learner has done so */
    if (o->batch <= 0) batch = batch < 16 ? 16 : batch > 1024 ? 1024 : batch;
    run->batch = (run->ways & PLAIT_LEARNER_PASSES) != 0 ? run->train_rows : batch;
    run->clocks = (run->train_rows + run->batch - 1) / run->batch;
    if (o->epochs > 0) run->epochs = o->epochs;
    else if (run->epochs <= 0) run->epochs = (run->ways & PLAIT_LEARNER_ONE_EPOCH) != 0 ? 1 : 100;
    run->examples = run->batch;
    run->rate = o->learning_rate;
    run->schedule = o->schedule;
    run->l1 = o->l1;
    run->l2 = o->l2 > 0 ? o->l2 : 0;
}

/* A learner that names its tables beforehand, and plans none in prepare, has dense ones. */
static plait_status settle_tables(pli_run *run) {
    pli_planned planned[PLI_TABLES] = { { 0 } };
    int32_t     n = 0;
    if (run->n_tables > 0) return PLAIT_OK; /* the learner has planned them */
    for (const plait_learner_table *t = run->learner->tables; t != NULL && t->name != NULL && n < PLI_TABLES; t++)
        planned[n++].name = t->name;
    return pli_tables_settle(run, planned, n);
}

plait_status pli_prepare(pli_run *run) {
    const plait_learner    *learner = run->learner;
    const pli_learner_more *more = learner->more;
    uint64_t                begun_ns = pli_comm_now(run->comm);
    if (more != NULL && more->open_files != NULL) PLI_TRY(more->open_files(run));
    PLI_TRY(pli_tables_check(run)); /* again: it now knows what is in those files */
    PLI_TRY(load_start(run));
    PLI_TRY(open_data(run));
    tell_idle(run);
    if (run->balanced) PLI_TRY(pli_balance_check(run));
    PLI_TRY(pli_run_agree_schema(run, run->data, run->opts->memory != NULL, &run->schema));
    if (more == NULL) PLI_TRY(pli_rows_settle(run));
    run->resume_layout = run->resume != NULL ? run->resume->layout : -1;
    if (learner->prepare != NULL) PLI_TRY(learner->prepare(run));
    settle_clocks(run);
    PLI_TRY(settle_tables(run));
    PLI_TRY(pli_run_open_judged(run));
    if (learner->measured != NULL) PLI_TRY(learner->measured(run));
    pli_sample_free(run);
    run->load_seconds = (double)(pli_comm_now(run->comm) - begun_ns) * 1e-9;
    return PLAIT_OK;
}
