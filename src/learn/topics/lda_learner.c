/* The learner lda: options, sizes, tables, an epoch's end, the model out of the tables. See topics.h. */
#include <math.h>
#include <string.h>

#include "learn/keep/keep.h"
#include "learn/solve/inherit.h"
#include "learn/topics/topics.h"
#include "table/topology/topology.h"

/* From this epoch on alphas are fitted: before, topics are still near the random ones of the start. */
enum { EPOCHS = 100, FIT_FROM = 10, COUNT_MOST = 1 << 24 };
/* With more topics --sampler auto takes mh: a token takes scan 0.25 microseconds with 1,000 topics, mh 0.7 with any. */
enum { SCAN_MOST = 3000 };
#define KEPT_ALPHA "lda.alpha"
#define KEPT_SEEN "lda.seen"

/* --- options and data --------------------------------------------------------------------------------------------- */

static bool is_trained(pli_run *run, const pli_block *block, int64_t r) {
    return !(run->fraction > 0 && pli_run_holds_back(run, block->first_row + r));
}

static plait_status not_a_count(const pli_run *run, int64_t number, uint64_t word, double x) {
    pli_text name = { 0 };
    pli_schema_feature_name(run->schema, word, &name);
    const plait_status status = pli_fail(
        run->err, PLAIT_EFORMAT, "row %lld of the data has %g of word %s: model %s wants counts, whole numbers from 0",
        (long long)number + 1, x, name.data != NULL ? name.data : "?", run->learner->name);
    pli_text_free(&name);
    return status;
}

/* Is the row a document? Values are counts: whole numbers, not below 0. */
static plait_status check_row(const pli_run *run, const plait_row *row, int64_t number) {
    for (int64_t e = 0; e < row->n; e++) {
        const double x = row->value != NULL ? (double)row->value[e] : 1;
        if (x >= 0 && x < COUNT_MOST && x == floor(x)) continue;
        return not_a_count(run, number, row->column[e], x);
    }
    if (row->weight == 1) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EREFUSED, "row %lld of the data has weight %g: model %s draws a topic for each "
                                              "token, and has no use for weights; leave them out",
                    (long long)number + 1, row->weight, run->learner->name);
}

/* What is found in own rows: tokens, and those of the longest document. */
typedef struct found {
    int64_t tokens, longest;
} found;

static plait_status look_at(pli_run *run, const pli_block *block, found *f) {
    for (int64_t r = 0; r < block->rows; r++) {
        plait_row row;
        pli_block_row(block, r, &row);
        PLI_TRY(check_row(run, &row, block->first_row + r));
        const pli_document d = pli_lda_document(&row);
        if (d.tokens > f->longest) f->longest = d.tokens;
        if (is_trained(run, block, r)) f->tokens += d.tokens;
    }
    return PLAIT_OK;
}

static plait_status look(pli_run *run, found *f) {
    plait_status status = PLAIT_OK;
    for (int32_t b = 0; status >= 0 && b < pli_dataset_own_blocks(run->data); b++)
        status = look_at(run, pli_dataset_block(run->data, b), f);
    return status;
}

static plait_status settle_sizes(pli_run *run) {
    pli_lda     *m = pli_lda_of(run);
    found        f = { 0 };
    m->k = (int32_t)plait_training_count(run, "components");
    m->words = run->features;
    m->beta = plait_training_number(run, "beta");
    m->fits = strcmp(plait_training_name(run, "prior"), "fitted") == 0;
    PLI_TRY(look(run, &f));
    PLI_TRY(plait_comm_allreduce(run->comm, &f.tokens, 1, PLAIT_I64, PLAIT_SUM));
    m->tokens = f.tokens;
    if (m->tokens == 0)
        return pli_fail(run->err, PLAIT_EFORMAT, "the data have no token: each row is a document, each column a word, "
                                                 "and a value counts how often the document has it");
    if (m->tokens > INT32_MAX)
        return pli_fail(run->err, PLAIT_EREFUSED, "model %s is refused on %lld tokens: a worker's counts hold up to %d",
                        run->learner->name, (long long)m->tokens, INT32_MAX);
    return PLAIT_OK;
}

static plait_status check_memory(const pli_run *run) {
    const pli_lda *m = run->state;
    const double   bytes = (double)m->words * (double)m->k * (8.0 * 4 + 4 + 12), there = (double)pli_memory_bytes();
    if (there <= 0 || bytes < there) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_ENOMEM,
                    "%d topics of %lld words need about %.1f GB, but only %.1f GB are free; take fewer --components, "
                    "or leave out rare words", (int)m->k, (long long)m->words, bytes / 1e9, there / 1e9);
}

/* Parts of a dead worker's clock may be lost under other policies, in one table but not in another. */
static plait_status check_replicas(const pli_run *run) {
    static const char *const names[] = { "words", "totals", "tokens", "prior" };
    for (int i = 0; run->opts->replicas > 1 && i < 4; i++) {
        const pli_travel         travel = pli_run_travel(run, names[i]);
        const pli_topology_kind *kind = travel.topology != NULL ? pli_topology_find(travel.topology) : NULL;
        if (kind == NULL || travel.consistency == NULL ||
            (pli_pair_properties(kind, travel.consistency, NULL) & PLAIT_WHOLE_CLOCKS) != 0)
            continue;
        return pli_fail(run->err, PLAIT_EREFUSED,
                        "--replicas with model %s and consistency %s is refused: part of a dead worker's last clock "
                        "may be lost, and the counts would no longer be those of the tokens; the nearest is bsp",
                        run->learner->name, travel.consistency);
    }
    return PLAIT_OK;
}

static plait_status prepare(pli_run *run) {
    PLI_TRY(pli_rows_settle(run));
    if (run->features == 0)
        return pli_fail(run->err, PLAIT_EREFUSED, "model %s is refused on features that grow by key: hash them, as "
                                                  "with --hash-bits 16", run->learner->name);
    PLI_TRY(check_replicas(run));
    PLI_TRY(pli_lda_vocabulary_check(run));
    PLI_TRY(settle_sizes(run));
    PLI_TRY(pli_lda_rotate_settle(run));
    run->batch = run->opts->batch > 0 ? run->opts->batch : run->train_rows;
    run->examples = run->batch;
    run->clocks = (run->train_rows + run->batch - 1) / run->batch;
    run->epochs = run->opts->epochs > 0 ? run->opts->epochs : EPOCHS;
    run->weights = run->features * pli_lda_of(run)->k;
    return check_memory(run);
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

static plait_status no_memory(const pli_run *run) {
    const pli_lda *m = run->state;
    return pli_fail(run->err, PLAIT_ENOMEM, "no memory for %d topics of %lld words", (int)m->k, (long long)m->words);
}

static plait_status make_arrays(pli_run *run) {
    pli_lda     *m = pli_lda_of(run);
    const size_t k = (size_t)m->k, words = (size_t)m->words;
    m->scan = pli_topic_scan_get();
    m->alpha = pli_calloc(k, sizeof *m->alpha);
    m->seen = pli_calloc(k + 1, sizeof *m->seen);
    m->now = pli_calloc(k + 1, sizeof *m->now);
    m->fitted = pli_calloc(k + 1, sizeof *m->fitted);
    m->read = pli_calloc(words * k, sizeof *m->read);
    m->change = pli_calloc(words * k, sizeof *m->change);
    m->read_total = pli_calloc(k, sizeof *m->read_total);
    m->change_total = pli_calloc(k, sizeof *m->change_total);
    m->key = pli_array(words, sizeof *m->key);
    m->in_batch = pli_calloc(words, 1);
    if (m->alpha == NULL || m->seen == NULL || m->now == NULL || m->fitted == NULL || m->read == NULL ||
        m->change == NULL || m->read_total == NULL || m->change_total == NULL || m->key == NULL || m->in_batch == NULL)
        return no_memory(run);
    const double alpha = plait_training_number(run, "alpha");
    if (!pli_topic_counts_begin(&m->counts, m->words, m->k, alpha, m->beta)) return no_memory(run);
    for (int32_t t = 0; t < m->k; t++) m->alpha[t] = alpha;
    const char *sampler = plait_training_name(run, "sampler");
    const bool scans = m->k <= SCAN_MOST || m->blocks > 0;
    if (strcmp(sampler, "scan") == 0 || (strcmp(sampler, "auto") == 0 && scans)) return PLAIT_OK;
    return pli_topic_alias_begin(&m->counts) ? PLAIT_OK : no_memory(run);
}

/* Adds the counts of a block's first topics to change. topic [*room] grows as it must. false: no memory. */
static bool count_block(pli_run *run, const pli_block *block, uint16_t **topic, int64_t *room) {
    pli_lda *m = pli_lda_of(run);
    for (int64_t r = 0; r < block->rows; r++) {
        plait_row row;
        pli_block_row(block, r, &row);
        pli_document d = pli_lda_document(&row);
        if (!is_trained(run, block, r) || d.tokens == 0) continue;
        if (!pli_grow((void **)topic, room, d.tokens, sizeof **topic)) return false;
        d.topic = *topic;
        pli_lda_first(run->opts->seed, block->first_row + r, m->k, &d);
        for (int64_t e = 0; e < d.n; e++)
            for (int64_t i = pli_document_count(&d, e); i > 0; i--)
                m->change[(int64_t)d.word[e] * m->k + *d.topic++]++;
    }
    return true;
}

/* The counts of all tokens' first topics, into change [words, k] and change_total. If a worker dies meanwhile, its
 * blocks are others', and all count again. */
static plait_status count_first(pli_run *run) {
    pli_lda  *m = pli_lda_of(run);
    uint16_t *topic = NULL;
    int64_t   room = 0;
    int32_t   absent = pli_comm_absent(run->comm);
    plait_status status = PLAIT_OK;
    do {
        pli_living held;
        status = pli_living_blocks(run, run->data, &held);
        memset(m->change, 0, (size_t)(m->words * m->k) * sizeof *m->change);
        for (int32_t b = 0; status >= 0 && b < held.n; b++)
            if (!count_block(run, held.block[b], &topic, &room)) status = no_memory(run);
        pli_living_blocks_free(&held);
        if (status >= 0)
            status = plait_comm_allreduce(run->comm, m->change, m->words * m->k, PLAIT_I64, PLAIT_SUM);
    } while (status >= 0 && pli_run_again(run, &absent));
    pli_free(topic);
    for (int64_t i = 0; status >= 0 && i < m->words * m->k; i++) m->change_total[i % m->k] += m->change[i];
    return status;
}

static plait_status begin(pli_run *run) {
    pli_lda *m = pli_lda_of(run);
    PLI_TRY(make_arrays(run));
    PLI_TRY(count_first(run));
    PLI_TRY(pli_run_table(run, "words", PLAIT_I64, m->words, m->k, m->change, &m->word));
    PLI_TRY(pli_run_table(run, "totals", PLAIT_I64, 1, m->k, m->change_total, &m->total));
    if (run->opts->replicas > 1) PLI_TRY(pli_lda_copies_begin(run));
    if (m->fits) PLI_TRY(pli_run_table(run, "prior", PLAIT_I64, 1, m->k + 1, NULL, &m->fit));
    return pli_lda_rotate_begin(run, m->change);
}

static void end(pli_run *run) {
    pli_lda *m = pli_lda_of(run);
    pli_topic_counts_end(&m->counts);
    pli_lda_copies_end(m);
    pli_lda_rotate_end(m);
    void *const all[] = { m->alpha, m->seen, m->now, m->fitted, m->read, m->change, m->read_total, m->change_total,
                          m->key, m->in_batch };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) pli_free(all[i]);
}

/* --- an epoch's end, and the model -------------------------------------------------------------------------------- */

/* Past a barrier all workers read the same, and take the same step. */
static plait_status fit_alphas(pli_run *run, int64_t number) {
    pli_lda *m = pli_lda_of(run);
    PLI_TRY(plait_table_get_range(m->fit, 0, 1, m->now));
    for (int32_t t = 0; t <= m->k; t++) {
        const int64_t all = m->now[t];
        m->now[t] -= m->seen[t];
        m->seen[t] = all;
    }
    if (number + 1 >= FIT_FROM) pli_prior_step(m->k, m->now, m->alpha);
    for (int32_t t = 0; t < m->k; t++) m->counts.alpha[t] = (float)m->alpha[t];
    return PLAIT_OK;
}

static plait_status epoch(pli_run *run, int64_t number, int *done_out) {
    (void)done_out;
    return pli_lda_of(run)->fits ? fit_alphas(run, number) : PLAIT_OK;
}

static plait_status finish(pli_run *run, plait_model *model) {
    pli_lda *m = pli_lda_of(run);
    int64_t  sum = 0;
    PLI_TRY(plait_job_barrier(run->job));
    PLI_TRY(plait_table_get_range(m->word, 0, m->words, m->read));
    for (int64_t i = 0; i < m->words * m->k; i++) {
        sum += m->read[i];
        if (m->read[i] < 0) return pli_fail(run->err, PLAIT_EFORMAT, "lda: a count is below 0");
    }
    if (sum != m->tokens)
        return pli_fail(run->err, PLAIT_EFORMAT, "lda: the counts add up to %lld, but the data have %lld tokens",
                        (long long)sum, (long long)m->tokens);
    PLI_TRY(pli_lda_vocabulary_put(run, model));
    PLI_TRY(plait_model_put(model, "counts", PLAIT_I64, 2, (const int64_t[]){ m->words, m->k }, m->read, run->err));
    PLI_TRY(plait_model_put(model, "alpha", PLAIT_F64, 1, (const int64_t[]){ m->k }, m->alpha, run->err));
    return plait_model_put(model, "beta", PLAIT_F64, 1, (const int64_t[]){ 1 }, &m->beta, run->err);
}

/* --- beside the tables -------------------------------------------------------------------------------------------- */

int64_t pli_lda_row_values(const pli_block *block, int64_t row) {
    plait_row r;
    pli_block_row(block, row, &r);
    return 1 + (pli_lda_document(&r).tokens + 3) / 4;
}

static int32_t kept(const pli_run *run, pli_kept kept_out[PLI_KEPT]) {
    const pli_lda *m = run->state;
    kept_out[0] = (pli_kept){ KEPT_ALPHA, "F64", m->k, 0, m->alpha };
    kept_out[1] = (pli_kept){ KEPT_SEEN, "U64", m->k + 1, 0, m->seen };
    return 2;
}

static plait_status restore(pli_run *run) {
    pli_lda *m = pli_lda_of(run);
    PLI_TRY(pli_resume_array(run, KEPT_ALPHA, m->k, sizeof *m->alpha, m->alpha));
    PLI_TRY(pli_resume_array(run, KEPT_SEEN, m->k + 1, sizeof *m->seen, m->seen));
    for (int32_t t = 0; t < m->k; t++) m->counts.alpha[t] = (float)m->alpha[t];
    return pli_lda_copies_take(run);
}

/* --- the learner -------------------------------------------------------------------------------------------------- */

static const plait_learner_option options[] = {
    { .name = "components", .kind = PLAIT_OPTION_COUNT, .preset = "20", .low = 1, .high = 65535,
      .help = "number of topics" },
    { .name = "alpha",
      .kind = PLAIT_OPTION_NUMBER,
      .preset = "0.1",
      .low = 1e-6,
      .help = "how many tokens of each topic a document is taken to have beforehand; --prior fitted begins with it" },
    { .name = "beta",
      .kind = PLAIT_OPTION_NUMBER,
      .preset = "0.01",
      .low = 1e-6,
      .help = "how many tokens of each word a topic is taken to have beforehand" },
    { .name = "prior",
      .kind = PLAIT_OPTION_NAME,
      .preset = "fitted",
      .names = "fitted fixed",
      .help = "fitted: after ten epochs each topic's alpha is fitted to the documents; fixed: --alpha stays" },
    { .name = "sampler",
      .kind = PLAIT_OPTION_NAME,
      .preset = "auto",
      .names = "auto scan mh",
      .help = "scan: each token's topic is drawn from all topics; mh: from proposals, in a time that does not depend "
              "on the number of topics; auto: scan up to 3000 topics, else mh" },
    { .name = "words",
      .kind = PLAIT_OPTION_NAME,
      .preset = "read",
      .names = "read rotate",
      .help = "read: each worker reads the words of its documents, as stale as the consistency allows; rotate: blocks "
              "of words go from worker to worker, and each has one worker at a time" },
    { .name = "word-blocks",
      .kind = PLAIT_OPTION_COUNT,
      .preset = "0",
      .high = 32768,
      .help = "with --words rotate: in how many blocks; 0: as many as the workers and the staleness need" },
    { .name = "vocabulary",
      .kind = PLAIT_OPTION_FILE,
      .preset = "",
      .help = "a word a line, for data whose words are numbers: 'plait inspect' shows topics with them" },
    { .name = "particles",
      .kind = PLAIT_OPTION_COUNT,
      .preset = "0",
      .high = 100000,
      .help = "report perplexity by the left-to-right estimator, too, with so many particles; 0: leave it out, since a "
              "document takes a time that grows with the square of its length" },
    { .name = NULL },
};

static const plait_learner_table tables[] = {
    { .name = "words", .what = "one row for each word: how many of its tokens have each topic" },
    { .name = "totals", .what = "one row: how many tokens have each topic", .small = 1 },
    { .name = "tokens", .what = "with --replicas 2: the topic of each token" },
    { .name = "prior", .what = "one row: sums over the documents that alphas are fitted with", .small = 1 },
    { .name = NULL },
};

static bool judges_long(const pli_run *run) { return plait_training_count(run, "particles") > 0; }

static const pli_learner_more more = { .each_update = true, .judges_long = judges_long,
                                       .row_values = pli_lda_row_values, .kept = kept, .restore = restore,
                                       .put_back = pli_lda_copies_put,
                                       .inspect = pli_lda_inspect };

const plait_learner pli_lda_learner = {
    .size = sizeof(plait_learner),
    .name = "lda",
    .summary = "topics: each document is a mixture of topics, each topic a distribution of words",
    .help = "topics (latent Dirichlet allocation): each document is a mixture of topics, each topic a distribution of "
            "words.\n"
            "  rows     documents as bags of words: column and count; labels are ignored\n"
            "  steps    whole passes over all tokens (collapsed Gibbs sampling); with --batch several clocks an epoch\n"
            "  reports  perplexity: of the half of each document that its mixture was not found from\n"
            "  inspect  the first words of each topic; transform: a document's mixture; predict: its largest topic\n",
    .labels = PLAIT_LABELS_NONE,
    .needs = PLAIT_ONE_COPY,
    .options = options,
    .tables = tables,
    .state_bytes = sizeof(pli_lda),
    .row_type = PLAIT_I64,
    .row_cols = 1,
    .model_bytes = sizeof(pli_lda_model),
    .check = pli_lda_rotate_check,
    .prepare = prepare,
    .begin = begin,
    .step = pli_lda_step,
    .epoch = epoch,
    .finish = finish,
    .end = end,
    .open = pli_lda_open,
    .close = pli_lda_close,
    .width = pli_lda_width,
    .predict = pli_lda_predict,
    .measure = pli_lda_measure,
    .figures = pli_lda_figures,
    .more = &more,
};
