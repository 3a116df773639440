/* The learner: options, its table, a clock, an epoch's end, what is learnt. */
#include "learn/kmeans/kmeans.h"

#include <math.h>
#include <string.h>

#include "learn/keep/keep.h"

static const plait_learner_option options[] = {
    { .name = "clusters", .kind = PLAIT_OPTION_COUNT, .preset = "8", .low = 1, .help = "number of clusters" },
    { .name = "centres", .kind = PLAIT_OPTION_FILE, .preset = "",
      .help = "start from the rows of this file, which has the format of the data" },
    { .name = NULL },
};

static const plait_learner_table tables[] = {
    { .name = "sums", .what = "one row for each cluster: sums of its data rows, weights and squared distances" },
    { .name = NULL },
};

enum { EPOCHS = 300, EPOCHS_MINI = 20 };
#define KEPT "kmeans"
#define ANCHOR "kmeans.anchor"

/* --- what follows from options and data --------------------------------------------------------------------------- */

static plait_status check(pli_run *run) {
    pli_kmeans *m = run->state;
    m->mini = run->opts->batch > 0;
    if (m->mini) return PLAIT_OK;
    run->ways |= PLAIT_LEARNER_PASSES;
    run->needs = PLAIT_WHOLE_CLOCKS | PLAIT_ONE_COPY;
    return PLAIT_OK;
}

static plait_status check_memory(const pli_run *run) {
    const pli_kmeans *m = run->state;
    const double values = (double)m->k * (double)(m->d + PLI_KMEANS_MORE), there = (double)pli_memory_bytes();
    const double bytes = (values < 1e15 ? pli_kmeans_pass_bytes(m->k, m->d) : values * 100) + values * 40;
    if (there <= 0 || bytes < there) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_ENOMEM,
                    "%lld clusters of %lld features need about %.1f GB, but only %.1f GB are free; hash the features, "
                    "as with --hash-bits 16, or take fewer clusters",
                    (long long)m->k, (long long)m->d, bytes / 1e9, there / 1e9);
}

static plait_status prepare(pli_run *run) {
    pli_kmeans *m = run->state;
    PLI_TRY(pli_rows_settle(run));
    m->k = plait_training_count(run, "clusters");
    m->d = run->features;
    if (m->d == 0)
        return pli_fail(run->err, PLAIT_EREFUSED, "model %s is refused on features that grow by key: hash them, as "
                                                  "with --hash-bits 16", run->learner->name);
    if (m->k > run->train_rows)
        return pli_fail(run->err, PLAIT_EINVAL,
                        "clusters is %lld, but there are %lld rows: expected no more clusters than rows",
                        (long long)m->k,
                        (long long)run->train_rows);
    m->dense = (double)run->entries >= PLI_NEAREST_DENSE * (double)run->rows * (double)m->d;
    if (run->epochs <= 0) run->epochs = m->mini ? EPOCHS_MINI : EPOCHS;
    return check_memory(run);
}

/* A run that goes on has sums. */
static plait_status measured(pli_run *run) {
    pli_kmeans *m = run->state;
    m->kept[PLI_KMEANS_LAST] = -1;
    m->centre = pli_calloc((size_t)(m->k * m->d), sizeof *m->centre);
    m->anchor = pli_calloc((size_t)m->d, sizeof *m->anchor);
    m->sums = pli_calloc((size_t)m->k, (size_t)(m->d + PLI_KMEANS_MORE) * sizeof *m->sums);
    if (m->centre == NULL || m->anchor == NULL || m->sums == NULL)
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for %lld centres", (long long)m->k);
    return run->resume != NULL ? PLAIT_OK : pli_kmeans_given(run, &m->given);
}

/* --- training ----------------------------------------------------------------------------------------------------- */

/* Mini-batches begin as if each first centre were a row. */
static void lay_first(pli_kmeans *m) {
    const int64_t width = m->d + PLI_KMEANS_MORE;
    for (int64_t j = 0; j < m->k; j++) {
        for (int64_t l = 0; l < m->d; l++) m->sums[j * width + l] = (double)m->centre[j * m->d + l];
        m->sums[j * width + m->d + PLI_KMEANS_MASS] = 1;
    }
}

/* The job must be there, so that the drawing survives a death; but its time is still counted as loading. */
static plait_status draw_first(pli_run *run) {
    const uint64_t begun = pli_comm_now(run->comm);
    PLI_TRY(pli_kmeans_draw(run));
    const uint64_t took = pli_comm_now(run->comm) - begun;
    run->load_seconds += (double)took * 1e-9;
    run->training_ns += took;
    run->training_bytes = plait_comm_bytes_sent(run->comm);
    return PLAIT_OK;
}

static plait_status begin(pli_run *run) {
    pli_kmeans      *m = run->state;
    if (run->resume == NULL && !m->given) PLI_TRY(draw_first(run));
    if (m->mini) lay_first(m);
    PLI_TRY(pli_run_table(run, tables[0].name, PLAIT_F64, m->k, m->d + PLI_KMEANS_MORE, m->mini ? m->sums : NULL,
                          &m->table));
    PLI_TRY(pli_kmeans_pass_begin(&m->pass, run, m->k, m->dense));
    pli_kmeans_pass_centres(&m->pass, m->centre);
    memcpy(m->anchor, m->centre, (size_t)m->d * sizeof *m->anchor);
    return m->mini ? PLAIT_OK : pli_kmeans_pass_anchor(&m->pass, run, m->anchor);
}

/* The centres that the table's sums say; *empty [k]: of which clusters they say nothing. */
static plait_status read_centres(pli_kmeans *m, bool *empty) {
    const int64_t width = m->d + PLI_KMEANS_MORE;
    PLI_TRY(plait_table_get_range(m->table, 0, m->k, m->sums));
    for (int64_t j = 0; j < m->k; j++) {
        const double *sum = m->sums + j * width, mass = sum[m->d + PLI_KMEANS_MASS];
        if (empty != NULL) empty[j] = !(mass > 0);
        for (int64_t l = 0; mass > 0 && l < m->d; l++) m->centre[j * m->d + l] = (float)(sum[l] / mass);
    }
    return PLAIT_OK;
}

static plait_status step(pli_run *run, const plait_batch *batch, plait_step_sums *said) {
    pli_kmeans *m = run->state;
    if (m->mini) {
        PLI_TRY(read_centres(m, NULL));
        pli_kmeans_pass_centres(&m->pass, m->centre);
    }
    m->taken = false;
    return pli_kmeans_pass_run(run, &m->pass, (const pli_batch *)batch, m->table, said);
}

/* Past a barrier. Collective. */
static plait_status take(pli_run *run) {
    pli_kmeans *m = run->state;
    int64_t     refilled = 0;
    bool       *empty = pli_calloc((size_t)m->k, sizeof *empty);
    if (empty == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory to look for empty clusters");
    plait_status status = read_centres(m, empty);
    if (status >= 0) status = pli_kmeans_refill(run, empty, &refilled);
    m->taken = status >= 0;
    pli_free(empty);
    if (status >= 0 && refilled > 0 && pli_comm_leads(run->comm))
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_INFO, -1, "learn", "%lld clusters were empty, and start again at "
                                                                      "the farthest rows", (long long)refilled);
    m->kept[PLI_KMEANS_REFILLED] = refilled > 0 ? m->kept[PLI_KMEANS_REFILLED] + 1 : 0;
    return status;
}

/* The epoch's inertia, and whether it is near enough to the last one's. A cluster that was refilled has not been moved
 * yet, so that is no end; but clusters that are emptied again and again are. */
static bool is_enough(pli_run *run) {
    pli_kmeans *m = run->state;
    const double tolerance = isnan(run->opts->tolerance) ? 1e-5 : run->opts->tolerance, last = m->kept[PLI_KMEANS_LAST];
    double       cost = 0;
    for (int64_t j = 0; j < m->k; j++) cost += m->sums[j * (m->d + PLI_KMEANS_MORE) + m->d + PLI_KMEANS_COST];
    if (m->mini) {
        const double total = cost;
        cost -= m->kept[PLI_KMEANS_TOTAL];
        m->kept[PLI_KMEANS_TOTAL] = total;
    }
    if (cost < 0) cost = 0;
    m->kept[PLI_KMEANS_LAST] = cost;
    return last >= 0 && last - cost <= tolerance * last && m->kept[PLI_KMEANS_REFILLED] != 1;
}

/* Where copies are averaged, what workers read differs by a rounding: one of them decides. */
static plait_status epoch(pli_run *run, int64_t number, int *done_out) {
    pli_kmeans *m = run->state;
    PLI_TRY(take(run));
    *done_out = is_enough(run);
    PLI_TRY(plait_comm_broadcast(run->comm, done_out, sizeof *done_out, pli_comm_lead(run->comm)));
    if (m->mini || *done_out || number + 1 == run->epochs) return PLAIT_OK;
    pli_kmeans_pass_centres(&m->pass, m->centre);
    return plait_table_zero(m->table);
}

/* A run that was asked to stop has not ended its epoch. */
static plait_status finish(pli_run *run, plait_model *model) {
    pli_kmeans   *m = run->state;
    const int64_t shape[2] = { m->k, m->d };
    if (!m->taken) PLI_TRY(plait_job_barrier(run->job));
    if (!m->taken) PLI_TRY(take(run));
    for (int64_t i = 0; i < m->k * m->d; i++)
        if (!isfinite(m->centre[i]))
            return pli_fail(run->err, PLAIT_EDIVERGED, "centres are not finite: look for huge values in the data");
    return plait_model_put(model, "centres", PLAIT_F32, 2, shape, m->centre, run->err);
}

static void end(pli_run *run) {
    pli_kmeans *m = run->state;
    pli_kmeans_pass_end(&m->pass);
    pli_free(m->centre);
    pli_free(m->anchor);
    pli_free(m->sums);
}

/* --- beside the table --------------------------------------------------------------------------------------------- */

static int32_t kept(const pli_run *run, pli_kept kept_out[PLI_KEPT]) {
    const pli_kmeans *m = run->state;
    kept_out[0] = (pli_kept){ KEPT, "F64", PLI_KMEANS_KEPT, 0, m->kept };
    kept_out[1] = (pli_kept){ ANCHOR, "F32", m->d, 0, m->anchor };
    return 2;
}

static plait_status restore(pli_run *run) {
    pli_kmeans *m = run->state;
    PLI_TRY(pli_resume_array(run, KEPT, PLI_KMEANS_KEPT, sizeof *m->kept, m->kept));
    PLI_TRY(pli_resume_array(run, ANCHOR, m->d, sizeof *m->anchor, m->anchor));
    return m->mini ? PLAIT_OK : pli_kmeans_pass_anchor(&m->pass, run, m->anchor);
}

static void report(const pli_run *run, plait_report *report) {
    report->converged = run->interrupted ? -1 : run->converged;
}

static const pli_learner_more more = { .kept = kept, .restore = restore, .report = report };

const plait_learner pli_kmeans_learner = {
    .size = sizeof(plait_learner), .name = "kmeans",
    .summary = "clusters: each row belongs to its nearest centre",
    .help = "clusters: k centres that minimise the rows' squared distances to the nearest centre.\n"
            "  rows     dense or sparse, with weights; labels are ignored\n"
            "  start    centres by k-means||, from a file (--centres) or from a model (--init-model)\n"
            "  steps    whole passes over all rows (Lloyd); with --batch mini-batches, under every consistency\n"
            "  reports  inertia: the sum of weight times squared distance; loss: its mean; empty: clusters without "
            "rows\n"
            "  predict  the number of the nearest centre, from 0; transform: the distances to all centres\n",
    .labels = PLAIT_LABELS_NONE, .ways = PLAIT_LEARNER_STARTS, .options = options, .tables = tables,
    .state_bytes = sizeof(pli_kmeans), .model_bytes = sizeof(pli_clusters), .check = check, .prepare = prepare,
    .measured = measured, .begin = begin, .step = step, .epoch = epoch, .finish = finish, .end = end,
    .open = pli_clusters_open, .close = pli_clusters_close, .width = pli_clusters_width,
    .predict = pli_clusters_predict, .measures = pli_clusters_measures, .measure = pli_clusters_measure,
    .figures = pli_clusters_figures, .export_onnx = pli_clusters_export, .more = &more
};
