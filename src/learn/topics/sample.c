/* A clock of lda: reads the words of the batch, draws the topics of its tokens, and incs what has changed. */
#include <math.h>
#include <string.h>

#include "learn/topics/topics.h"

/* --- documents ---------------------------------------------------------------------------------------------------- */

pli_document pli_lda_document(const plait_row *row) {
    pli_document d = { .n = row->n, .word = row->column, .count = row->value };
    for (int64_t e = 0; e < d.n; e++) d.tokens += pli_document_count(&d, e);
    return d;
}

void pli_lda_first(uint64_t seed, int64_t row, int32_t topics, const pli_document *d) {
    pli_random random = pli_random_at(seed, PLI_RANDOM_TOPICS, 0, (uint64_t)row);
    for (int64_t t = 0; t < d->tokens; t++) d->topic[t] = (uint16_t)pli_random_below(&random, (uint64_t)topics);
}

/* --- reads -------------------------------------------------------------------------------------------------------- */

static void list_words(pli_lda *m, const pli_batch *batch) {
    memset(m->in_batch, 0, (size_t)m->words);
    for (int32_t p = 0; p < batch->parts; p++) {
        const pli_part *part = &batch->part[p];
        for (int64_t i = 0; i < part->rows; i++) {
            plait_row row;
            pli_block_row(part->block, part->order != NULL ? (int64_t)part->order[i] : part->first + i, &row);
            for (int64_t e = 0; e < row.n; e++) m->in_batch[row.column[e]] = 1;
        }
    }
    m->n = 0;
    for (int64_t w = 0; w < m->words; w++)
        if (m->in_batch[w]) m->key[m->n++] = (uint64_t)w;
}

/* Do the words stand side by side? */
static bool is_range(const pli_lda *m) { return m->n == m->words || m->schedule != NULL; }

plait_status pli_lda_read_counts(pli_run *run) {
    pli_lda          *m = pli_lda_of(run);
    pli_topic_counts *c = &m->counts;
    /* Each of several turns in a clock begins with the totals of that clock, whoever has the others. */
    const bool again = m->token != NULL && m->schedule != NULL && m->read_in == run->clocks_done + 1;
    if (!again) PLI_TRY(plait_table_get_range(m->total, 0, 1, m->read_total));
    m->read_in = run->clocks_done + 1;
    if (m->n > 0 && is_range(m)) PLI_TRY(plait_table_get_range(m->word, (int64_t)m->key[0], m->n, m->read));
    else if (m->n > 0) PLI_TRY(plait_table_get(m->word, m->n, m->key, m->read));
    int64_t sum = 0;
    for (int32_t k = 0; k < m->k; k++) {
        sum += m->read_total[k];
        c->total[k] = (int32_t)m->read_total[k];
    }
    if (sum != m->tokens)
        return pli_fail(run->err, PLAIT_EFORMAT, "the topics of lda count %lld tokens, but the data have %lld: the "
                                                 "table or the checkpoint is damaged",
                        (long long)sum, (long long)m->tokens);
    for (int64_t i = 0; i < m->n; i++) {
        int32_t *to = c->word + (int64_t)m->key[i] * c->lanes;
        for (int32_t k = 0; k < m->k; k++) to[k] = (int32_t)m->read[i * m->k + k];
    }
    return PLAIT_OK;
}

/* --- a row -------------------------------------------------------------------------------------------------------- */

/* The loss that a clock tells: of every PLI_LDA_LOOK-th word of a document, in each epoch others, by the counts after
 * its draw. Each document's part is a multiple of 2^-20, so sums are exact in any order. */
void pli_lda_add_loss(const pli_topic_counts *c, const pli_document *d, int64_t all, int64_t first,
                      plait_step_sums *told) {
    double tokens = (double)all, loss = 0, looked = 0;
    for (int32_t k = 0; k < c->topics; k++) tokens += (double)c->alpha[k];
    for (int64_t e = first; e < d->n; e += PLI_LDA_LOOK) {
        const int32_t *word = c->word + (int64_t)d->word[e] * c->lanes;
        const double   n = (double)pli_document_count(d, e);
        double         p = 0;
        for (int32_t k = 0; k < c->topics; k++)
            p += (double)(((float)(word[k] > 0 ? word[k] : 0) + c->beta) *
                          pli_topic_weight(c, (uint32_t)k, c->in_doc[k], c->total[k]));
        loss -= n * log(p / tokens);
        looked += n;
    }
    told->loss += rint(loss * 0x1p20) * 0x1p-20;
    told->weight += looked;
}

/* A row's values: how many tokens it has, plus 1 once their topics are there; then the topics, four in each. */
pli_document pli_lda_hold(pli_run *run, const plait_row *row, int64_t number, int64_t *values) {
    pli_document d = pli_lda_document(row);
    d.topic = (uint16_t *)(values + 1);
    if (values[0] == 0) pli_lda_first(run->opts->seed, number, pli_lda_of(run)->k, &d);
    values[0] = d.tokens + 1;
    return d;
}

static void sample_row(pli_run *run, const plait_row *row, int64_t number, int64_t *values, plait_step_sums *told) {
    pli_lda           *m = pli_lda_of(run);
    const pli_document d = pli_lda_hold(run, row, number, values);
    const int64_t      epoch = run->clocks > 0 ? run->clocks_done / run->clocks : 0;
    if (d.tokens == 0) return;
    pli_random random = pli_random_at(run->opts->seed, PLI_RANDOM_TOPICS, (uint64_t)epoch + 1, (uint64_t)number);
    pli_topic_counts_enter(&m->counts, &d);
    if (m->counts.alias != NULL) pli_topic_mh(&m->counts, &d, &random);
    else m->scan(&m->counts, &d, &random);
    pli_lda_add_loss(&m->counts, &d, d.tokens, (number + epoch) % PLI_LDA_LOOK, told);
    if (m->fits) pli_prior_add(m->k, m->alpha, m->counts.in_doc, d.tokens, m->fitted);
}

/* Adds what has changed since the read; again: the counts become those that were read, for the next block. */
void pli_lda_take_changes(pli_lda *m, bool again) {
    pli_topic_counts *c = &m->counts;
    for (int64_t i = 0; i < m->n; i++) {
        int32_t *now = c->word + (int64_t)m->key[i] * c->lanes;
        for (int32_t k = 0; k < m->k; k++) {
            const int64_t before = m->read[i * m->k + k];
            m->change[i * m->k + k] += now[k] - before;
            if (again) now[k] = (int32_t)before;
        }
    }
    for (int32_t k = 0; k < m->k; k++) {
        m->change_total[k] += c->total[k] - m->read_total[k];
        if (again) c->total[k] = (int32_t)m->read_total[k];
    }
}

static plait_status sample_part(pli_run *run, const pli_batch *batch, const pli_part *part, int64_t first,
                                plait_step_sums *told) {
    if (pli_lda_of(run)->token != NULL) PLI_TRY(pli_lda_copies_read(run, part->block->number));
    for (int64_t i = 0; i < part->rows; i++) {
        const int64_t at = part->order != NULL ? (int64_t)part->order[i] : part->first + i;
        plait_row     row;
        pli_block_row(part->block, at, &row);
        int64_t *values = plait_training_row_values(run, (const plait_batch *)batch, first + i);
        if (values == NULL) return pli_fail(run->err, PLAIT_EINVAL, "lda: a row has no values");
        sample_row(run, &row, part->block->first_row + at, values, told);
    }
    return pli_lda_of(run)->token != NULL ? pli_lda_copies_push(run, part->block->number) : PLAIT_OK;
}

void pli_lda_clear_changes(pli_lda *m) {
    memset(m->change, 0, (size_t)(m->n * m->k) * sizeof *m->change);
    memset(m->change_total, 0, (size_t)m->k * sizeof *m->change_total);
    memset(m->fitted, 0, (size_t)(m->k + 1) * sizeof *m->fitted);
}

plait_status pli_lda_push_changes(pli_run *run) {
    pli_lda *m = pli_lda_of(run);
    if (m->n > 0 && is_range(m)) PLI_TRY(plait_table_inc_range(m->word, (int64_t)m->key[0], m->n, m->change, 0));
    else if (m->n > 0) PLI_TRY(plait_table_inc(m->word, m->n, m->key, m->change, 0));
    PLI_TRY(plait_table_inc_range(m->total, 0, 1, m->change_total, 0));
    return m->fits ? plait_table_inc_range(m->fit, 0, 1, m->fitted, 0) : PLAIT_OK;
}

plait_status pli_lda_step(pli_run *run, const plait_batch *rows, plait_step_sums *told) {
    pli_lda         *m = pli_lda_of(run);
    const pli_batch *batch = (const pli_batch *)rows;
    const bool       apart = run->exact || m->token != NULL; /* blocks do not see each other's changes */
    int64_t          first = 0;
    if (m->schedule != NULL) return pli_lda_rotate_step(run, batch, told);
    list_words(m, batch);
    PLI_TRY(pli_lda_read_counts(run));
    if (batch->rows == 0) return PLAIT_OK;
    pli_run_charge(run, batch, m->counts.alias != NULL ? 16 : m->k, m->n * m->k);
    pli_lda_clear_changes(m);
    if (m->counts.alias != NULL) pli_topic_alias_prepare(&m->counts, m->n, m->key);
    for (int32_t p = 0; p < batch->parts; first += batch->part[p++].rows) {
        if (batch->part[p].rows == 0) continue;
        PLI_TRY(sample_part(run, batch, &batch->part[p], first, told));
        if (apart) pli_lda_take_changes(m, true);
    }
    if (!apart) pli_lda_take_changes(m, false);
    told->rows = (double)batch->rows;
    return pli_lda_push_changes(run);
}
