/* Opens data, lets the workers agree on what it means, and settles what follows from it. */
#include "learn/run/inherit.h"
#include "learn/keep/keep.h"
#include "learn/run/balance.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "table/topology/topology.h"
#include "tensor/exact_cells.h"

bool pli_run_holds_back(void *user, int64_t row) {
    const pli_run *run = user;
    pli_random     random = pli_random_at(run->opts->seed, PLI_RANDOM_SPLIT, 0, (uint64_t)row);
    return pli_random_f64(&random) < run->fraction;
}

bool pli_run_trains(void *user, int64_t row) { return !pli_run_holds_back(user, row); }

/* --- schema ---------------------------------------------------------------------------------------------- */

/* A schema as text. Of another worker it is borrowed. */
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

/* Within a process one worker joins for all: a thousand that join a thousand texts each would read a million. */

/* Lays a text out for the other ranks of this process. It lies there until it is released, or until all ranks have
 * ended: they may still read it when this one has died. */
static plait_status lay_out(const pli_run *run, const char *what, const pli_text *text, schema_text *out) {
    char name[64];
    snprintf(name, sizeof name, "%s of rank %d", what, (int)plait_comm_rank(run->comm));
    char *memory = text->failed ? NULL : pli_comm_shared(run->comm, name, text->length + 1);
    if (memory == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory to agree on a schema");
    memcpy(memory, text->data, text->length);
    *out = (schema_text){ .data = memory, .length = text->length };
    return PLAIT_OK;
}

/* The leading worker's part: joins what all have laid out, and lays out the result. */
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

/* What all workers found, joined; then every dataset is numbered by it. A data set in memory is whole already. */
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

/* --- what follows from the data --------------------------------------------------------------------------- */

static int64_t clamp(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

/* The rate of a run without --learning-rate, measured (docs/models.md); 0: the rule's own. The logistic loss curves by
 * at most 1/4, the others by 1, so rules without a metric of their own take a quarter of the step there. */
static double default_rate(const pli_run *run) {
    static const struct {
        const char *rule;
        double      batch;
        bool        metric;
    } rates[] = {
        { "sgd", 1.0, false },  { "momentum", 0.1, false }, { "adagrad", 1.0, true },
        { "adam", 0.05, true }, { "ftrl", 1.0, true },
    };
    if (run->net != NULL) return strcmp(run->optimizer, "adam") == 0 ? run->net->kind->rate : 0;
    double spread = run->label_spread * (run->start != NULL ? 0.1 : 1); /* what was reached is not thrown away */
    if (run->rowwise) return strcmp(run->optimizer, "adagrad") == 0 ? 0.08 * spread : 0;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        if (strcmp(run->optimizer, rates[i].rule) != 0) continue;
        if (rates[i].metric) return rates[i].batch * spread;
        return strcmp(run->loss, "logistic") == 0 ? rates[i].batch : rates[i].batch / 4;
    }
    return 0;
}

/* Enough clocks for the optimum's neighbourhood; an epoch row by row is worth several by batch. */
static int64_t default_epochs(const pli_run *run) {
    if (run->lbfgs && run->net != NULL) return 100;
    if (run->lbfgs) return run->entries < 1000000 ? 1000 : 200;
    if (run->net != NULL) return 10;
    return clamp((run->rowwise ? 600 : 2400) / run->clocks, 5, 100);
}

/* Defaults that were measured: see docs/models.md. */
static void settle_defaults(pli_run *run) {
    const plait_train_opts *o = run->opts;
    const pli_topology_kind *topology = pli_topology_find(run->topology);
    bool unlocked = pli_pair_is_unlocked(topology, run->consistency, NULL);
    run->rowwise = unlocked && !run->lbfgs && run->net == NULL && o->batch <= 1;
    if (run->net != NULL) run->batch = o->batch > 0 ? o->batch : clamp(run->train_rows / 64, 16, run->net->kind->batch);
    else
        run->batch =
            o->batch > 0 && !run->rowwise ? o->batch : clamp(run->train_rows / 64, 16, run->rowwise ? 8192 : 1024);
    if (run->lbfgs) run->batch = run->train_rows;
    run->clocks = (run->train_rows + run->batch - 1) / run->batch;
    run->epochs = o->epochs > 0 ? o->epochs : default_epochs(run);
    run->rate = o->learning_rate > 0 ? o->learning_rate : default_rate(run);
    run->schedule = o->schedule;
    if (o->schedule == NULL && run->epochs > 1 && strcmp(run->optimizer, "ftrl") != 0) run->schedule = "cosine";
    run->l1 = o->l1;
    run->l2 = isnan(o->l2) ? 1.0 / (double)run->train_labels : o->l2;

    /* What a batch touches decides how weights travel; of many workers each touches little of what they all do. */
    double values = (double)run->linear.features * (double)run->linear.columns;
    double touched = (double)run->entries / (double)run->rows * (double)run->batch * (double)run->linear.columns;
    bool   dense = values <= 4096 || values <= 2 * touched;
    if (values > 4096 && !run->exact && topology->on_servers)
        dense = dense && values <= 16 * touched / pli_run_holders(run);
    if (run->net != NULL) run->form = PLI_NET;
    else if (run->lbfgs) run->form = PLI_DENSE;
    else if (run->linear.features == 0 || values > (double)(INT64_C(1) << 28)) run->form = PLI_SPARSE;
    else run->form = dense ? PLI_DENSE : PLI_KEYED;
    const bool either = run->form == PLI_DENSE || run->form == PLI_KEYED;
    if (either && run->resume != NULL && (run->resume->form == PLI_DENSE || run->resume->form == PLI_KEYED))
        run->form = run->resume->form; /* other workers may have chosen the other */
}

static plait_status load_start(pli_run *run) {
    if (run->opts->init_model == NULL) return PLAIT_OK;
    PLI_TRY(plait_model_load(run->opts->init_model, &run->start, run->err));
    if (strcmp(run->start->name, run->opts->model) != 0)
        return pli_fail(run->err, PLAIT_EMISMATCH, "%s holds a model of kind %s, not %s", run->opts->init_model,
                        run->start->name, run->opts->model);
    return PLAIT_OK;
}

static plait_status check_start(pli_run *run) {
    if (run->start == NULL) return PLAIT_OK;
    const pli_linear *a = &run->start->linear, *b = &run->linear;
    bool              same = a->classes == b->classes && a->features == b->features;
    for (int64_t k = 0; same && k < a->classes; k++) same = a->label[k] == b->label[k];
    if (!same)
        return pli_fail(run->err, PLAIT_EMISMATCH,
                        "%s has %lld features and %lld labels, the data %lld and %lld (or other labels): it cannot be "
                        "started from", run->opts->init_model, (long long)a->features, (long long)a->classes,
                        (long long)b->features, (long long)b->classes);
    if (run->net != NULL && run->net->text != NULL && strcmp(run->net->text, run->start->net->text) != 0)
        return pli_fail(run->err, PLAIT_EMISMATCH, "%s was trained on another graph than that of %s",
                        run->opts->init_model, run->opts->graph_file);
    if (run->net != NULL && strcmp(run->net->layers, run->start->net->layers) != 0)
        return pli_fail(run->err, PLAIT_EMISMATCH, "%s has layers %s, not %s", run->opts->init_model,
                        run->start->net->layers, run->net->layers);
    if (run->form == PLI_SPARSE || run->start->solution.key != NULL)
        return pli_fail(run->err, PLAIT_EREFUSED,
                        "a start from a model whose features grow by key is refused; hash them, "
                        "as --hash-bits 22");
    return PLAIT_OK;
}

static plait_status measure_scale(pli_run *run) {
    const char *how = run->opts->normalize;
    run->scale = (pli_scale){ .features = run->linear.features };
    if ((how != NULL && strcmp(how, "none") == 0) || run->form == PLI_SPARSE || run->file.text != NULL ||
        (run->l1 > 0 && run->l2 > 0))
        return PLAIT_OK;
    pli_scale_rows rows = { .own = pli_dataset_own_blocks(run->data), .blocks = pli_dataset_blocks(run->data),
                            .rows = run->seen_rows, .entries = run->seen_entries, .sampled = run->stream,
                            .skip = run->fraction > 0 ? pli_run_holds_back : NULL, .user = run };
    const pli_block **block = pli_array((size_t)rows.own, sizeof *block);
    if (block == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a list of blocks");
    for (int32_t b = 0; b < rows.own; b++) block[b] = pli_run_block(run, b);
    rows.block = block;
    plait_status status = pli_scale_measure(run->comm, &run->linear, &rows, &run->scale, run->err);
    pli_free(block);
    return status;
}

static plait_status check_memory(pli_run *run) {
    double values =
        run->net != NULL ? (double)run->net->values : ((double)run->linear.features + 1) * (double)run->linear.columns;
    double bytes = values * (run->lbfgs ? 80.0 : 24.0), there = (double)pli_memory_bytes();
    if (run->form == PLI_SPARSE || there <= 0 || bytes < there) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_ENOMEM, "%.0f weights need about %.1f GB, %.1f GB are free; %s", values,
                    bytes / 1e9, there / 1e9,
                    run->net != NULL ? "take smaller --layers" : "hash the features, as --hash-bits 22");
}

static plait_status make_net(pli_run *run) {
    const pli_net_kind *kind = pli_net_kind_find(run->opts->model);
    if (kind == NULL) return PLAIT_OK;
    const bool   of_file = run->file.text != NULL;
    const double density = (double)run->entries / ((double)run->rows * (double)run->linear.features);
    const char  *layers = run->opts->layers == NULL && run->start != NULL ? run->start->net->layers : run->opts->layers;
    plait_status status = pli_net_create(kind, of_file ? run->file.text : layers, run->schema, &run->linear, density,
                                         &run->net, run->err);
    if (status < 0) return of_file ? pli_fail_at(run->err, "%s", run->opts->graph_file) : status;
    run->linear.net = run->net;
    if (run->lbfgs && run->net->calm != NULL)
        return pli_fail(run->err, PLAIT_EREFUSED,
                        "%s: lbfgs with dropout is refused: its line search compares losses of one function; take adam",
                        run->opts->graph_file);
    if (run->exact && run->net->calm != NULL)
        return pli_fail(run->err, PLAIT_EREFUSED,
                        "%s: reduce exact with dropout is refused: what is dropped depends on which worker has a row; "
                        "take --reduce plain, or leave dropout out", run->opts->graph_file);
    return PLAIT_OK;
}

/* Before the data are read. Its file is each rank's own. */
static plait_status read_graph(pli_run *run) {
    char print[40];
    if (run->opts->graph_file == NULL) return PLAIT_OK;
    PLI_TRY(pli_net_file_read(run->opts->graph_file, run->opts->seed, &run->file, run->err));
    const uint64_t hash = pli_hash_bytes(run->file.text, strlen(run->file.text), 0);
    snprintf(
        print, sizeof print, "--graph with hash %016llx",
        (unsigned long long)pli_hash_bytes(run->file.first, (size_t)run->file.values * sizeof *run->file.first, hash));
    return pli_agree_text(run->comm, "graphs", print, run->err);
}

/* The data to train on: of text, windows as the model reads them. */
static plait_status open_data(pli_run *run) {
    const plait_train_opts *o = run->opts;
    const pli_net_kind     *kind = pli_net_kind_find(o->model);
    plait_data_opts         files = o->data != NULL ? *o->data : (plait_data_opts){ 0 };
    files.apart = kind != NULL && kind->sequence;
    const pli_schema *fixed = run->start != NULL ? run->start->schema : NULL;
    PLI_TRY(pli_run_open(run, o->data != NULL ? &files : NULL, o->memory, fixed, run->stream, &run->data));
    if (files.apart || pli_schema_row_labels(pli_dataset_schema(run->data)) == 1) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EREFUSED,
                    "model %s is refused on text whose windows lie apart: it answers once a row; take lstm, or "
                    "read a row for each character (plait_data_opts.apart 0)",
                    o->model);
}

plait_status pli_prepare(pli_run *run) {
    uint64_t begun_ns = pli_comm_now(run->comm);
    PLI_TRY(read_graph(run));
    PLI_TRY(load_start(run));
    run->stream = pli_run_streams(run);
    PLI_TRY(pli_inherit_check(run));
    PLI_TRY(open_data(run));
    if (run->balanced) PLI_TRY(pli_balance_check(run));
    PLI_TRY(pli_run_agree_schema(run, run->data, run->opts->memory != NULL, &run->schema));
    PLI_TRY(pli_labels_settle(run));
    PLI_TRY(make_net(run));
    settle_defaults(run);
    PLI_TRY(pli_tables_settle(run));
    PLI_TRY(check_start(run));
    PLI_TRY(check_memory(run));
    PLI_TRY(pli_run_open_judged(run));
    PLI_TRY(measure_scale(run));
    if (run->net != NULL) pli_net_even_scale(run->net, &run->scale);
    pli_sample_free(run);
    run->load_seconds = (double)(pli_comm_now(run->comm) - begun_ns) * 1e-9;
    return PLAIT_OK;
}

/* --- to and from training's units ------------------------------------------------------------------------- */

static void store(plait_type type, void *values, int64_t i, double x) {
    if (type == PLAIT_F32) ((float *)values)[i] = (float)x;
    else ((double *)values)[i] = x;
}

static int64_t table_rows(const pli_run *run) { return run->linear.features + run->linear.intercept; }

plait_status pli_run_initial(const pli_run *run, plait_type type, void **initial_out) {
    *initial_out = NULL;
    bool from_mean = run->start == NULL && run->linear.intercept && run->label_mean != 0;
    if (run->start == NULL && !from_mean) return PLAIT_OK;
    int64_t      k = run->linear.columns, d = run->linear.features;
    pli_solution scaled;
    void        *values = pli_calloc((size_t)(table_rows(run) * k), plait_type_bytes(type));
    if (values == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the first weights");
    *initial_out = values;
    if (from_mean) {
        store(type, values, d * k, run->label_mean);
        return PLAIT_OK;
    }
    plait_status status = pli_solution_make(d, k, false, &scaled, run->err);
    if (status < 0) {
        pli_free(values);
        *initial_out = NULL;
        return status;
    }
    pli_scale_back(&run->scale, k, run->start->solution.weight, run->start->solution.bias, scaled.weight, scaled.bias);
    for (int64_t i = 0; i < d * k; i++) store(type, values, i, scaled.weight[i]);
    for (int64_t c = 0; c < k && run->linear.intercept; c++) store(type, values, d * k + c, scaled.bias[c]);
    pli_solution_free(&scaled);
    return PLAIT_OK;
}

plait_status pli_run_penalty(const pli_run *run, plait_type type, void **penalty_out) {
    *penalty_out = NULL;
    bool plain = run->scale.factor == NULL || (run->l1 == 0 && run->l2 == 0);
    if (plain && !run->linear.intercept) return PLAIT_OK;
    int64_t k = run->linear.columns, d = run->linear.features;
    void   *values = pli_array((size_t)(table_rows(run) * k), plait_type_bytes(type));
    if (values == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for penalties");
    for (int64_t j = 0; j < d; j++)
        for (int64_t c = 0; c < k; c++)
            store(type, values, j * k + c, pli_scale_penalty(&run->scale, j, run->l1, run->l2));
    for (int64_t c = 0; c < k && run->linear.intercept; c++) store(type, values, d * k + c, 0);
    *penalty_out = values;
    return PLAIT_OK;
}

plait_status pli_run_solution(const pli_run *run, plait_type type, const void *values, pli_solution *solution_out) {
    if (run->net != NULL && type == PLAIT_F32) return pli_net_solution(run, values, solution_out);
    if (run->net != NULL) {
        float *narrow = pli_array((size_t)run->net->values, sizeof *narrow);
        if (narrow == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a net's values");
        for (int64_t i = 0; i < run->net->values; i++) narrow[i] = (float)((const double *)values)[i];
        plait_status status = pli_net_solution(run, narrow, solution_out);
        pli_free(narrow);
        return status;
    }
    int64_t      k = run->linear.columns, d = run->linear.features, n = d * k;
    pli_solution scaled;
    PLI_TRY(pli_solution_make(d, k, false, &scaled, run->err));
    for (int64_t i = 0; i < n; i++)
        scaled.weight[i] = type == PLAIT_F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
    for (int64_t c = 0; c < k && run->linear.intercept; c++)
        scaled.bias[c] = type == PLAIT_F32 ? (double)((const float *)values)[n + c] : ((const double *)values)[n + c];
    pli_scale_weights(&run->scale, k, scaled.weight, scaled.bias);
    *solution_out = scaled;
    return PLAIT_OK;
}

plait_status pli_run_validate(const pli_run *run, const pli_solution *solution, double *loss_out,
                              double *accuracy_out) {
    pli_total total;
    pli_sums  sums;
    bool      split = run->fraction > 0;
    *loss_out = *accuracy_out = NAN;
    if (!split && run->validation == NULL) return PLAIT_OK;
    pli_linear linear = run->linear;
    linear.class_weight = NULL;
    PLI_TRY(pli_run_judge(run, &linear, solution, split ? run->data : run->validation,
                          split ? pli_run_holds_back : NULL, &total, NULL));
    pli_comm_work(run->comm, PLI_WORK_ENTRIES, (uint64_t)(run->own_entries * run->linear.columns));
    PLI_TRY(pli_total_agree(run->comm, &total, &sums));
    PLI_TRY(pli_sums_check(&sums, "the validation", run->err));
    *loss_out = pli_sums_loss(&sums);
    if (run->linear.classes > 0 && sums.weight > 0) *accuracy_out = sums.right / sums.weight;
    return PLAIT_OK;
}
