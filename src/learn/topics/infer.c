/* A fitted model of topics: what it makes of documents, and how well it predicts their words.
 *
 * The mixture of a document is a fixed point: each word is shared among the topics by the mixture, and the mixture
 * follows from the shares, theta_k ~ alpha_k + sum of the word counts times their shares (Asuncion et al., "On
 * Smoothing and Inference for Topic Models", UAI 2009). It has no random numbers.
 *
 * Perplexity by document completion (Wallach et al., "Evaluation Methods for Topic Models", ICML 2009): a coin decides
 * for each token in which half it is. The mixture is found from one half, and perplexity is exp(-mean log probability)
 * of the other half's tokens. Coins are a function of the row's words, so every model is judged by the same halves,
 * wherever a row lies. */
#include <math.h>
#include <string.h>

#include "data/data.h"
#include "learn/model/model.h"
#include "learn/topics/topics.h"

enum { ROUNDS = 100, TOP = 10 };
#define ENOUGH 1e-3 /* of a token: no topic's share of the document moves by more */

/* --- opened ------------------------------------------------------------------------------------------------------- */

static bool has_values(plait_model *model) {
    pli_lda_model *m = model->own;
    int64_t        shape[2] = { 0 }, k = 0, one = 0;
    m->count = plait_model_value(model, "counts", PLAIT_I64, 2, shape);
    m->alpha = plait_model_value(model, "alpha", PLAIT_F64, 1, &k);
    const double *beta = plait_model_value(model, "beta", PLAIT_F64, 1, &one);
    m->words = shape[0];
    m->k = (int32_t)shape[1];
    if (m->count == NULL || m->alpha == NULL || beta == NULL || shape[1] < 1 || shape[1] > UINT16_MAX ||
        k != shape[1] || one != 1 || m->words != model->features || !(beta[0] > 0))
        return false;
    m->beta = beta[0];
    m->particles = (int32_t)plait_model_number(model, "particles");
    for (int64_t i = 0; i < m->words * m->k; i++)
        if (m->count[i] < 0) return false;
    for (int32_t t = 0; t < m->k; t++)
        if (!(m->alpha[t] > 0) || !isfinite(m->alpha[t])) return false;
    return true;
}

plait_status pli_lda_open(plait_model *model, plait_error *err) {
    pli_lda_model *m = model->own;
    if (!has_values(model))
        return pli_fail(err, PLAIT_EFORMAT, "a model lda needs counts [features, topics], none below 0, alpha [topics] "
                                            "and beta [1], above 0");
    double *total = pli_calloc((size_t)m->k, sizeof *total);
    m->phi = pli_array((size_t)(m->words * m->k), sizeof *m->phi);
    if (total == NULL || m->phi == NULL) {
        pli_free(total);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for %d topics of %lld words", (int)m->k, (long long)m->words);
    }
    for (int64_t i = 0; i < m->words * m->k; i++) total[i % m->k] += (double)m->count[i];
    for (int64_t i = 0; i < m->words * m->k; i++)
        m->phi[i] = (float)(((double)m->count[i] + m->beta) / (total[i % m->k] + m->beta * (double)m->words));
    for (int32_t t = 0; t < m->k; t++) m->alpha_sum += m->alpha[t];
    pli_free(total);
    return PLAIT_OK;
}

void pli_lda_close(plait_model *model) { pli_free(((pli_lda_model *)model->own)->phi); }

/* --- a document --------------------------------------------------------------------------------------------------- */

/* Memory for one thread: of topics, and of a document's words that the model knows. */
typedef struct scratch {
    double   *theta, *next, *share; /* [k]: counts and alphas, up to the sum */
    int64_t   n, room;
    uint32_t *word; /* [n] */
    double   *count, *other; /* [n] tokens that the mixture is found from; the others */
} scratch;

static void scratch_end(scratch *s) {
    pli_free(s->theta);
    pli_free(s->word);
    pli_free(s->count);
}

static bool scratch_begin(scratch *s, int32_t k) {
    *s = (scratch){ .theta = pli_array((size_t)k, 3 * sizeof *s->theta) };
    if (s->theta == NULL) return false;
    s->next = s->theta + k;
    s->share = s->next + k;
    return true;
}

static bool scratch_room(scratch *s, int64_t n) {
    if (n <= s->room) return true;
    pli_free(s->word);
    pli_free(s->count);
    s->room = 2 * n;
    s->word = pli_array((size_t)s->room, sizeof *s->word);
    s->count = pli_array((size_t)s->room, 2 * sizeof *s->count);
    s->other = s->count + s->room;
    if (s->word != NULL && s->count != NULL) return true;
    s->room = 0;
    return false;
}

/* The words that the model knows; halves: a coin for each token (NULL: all are known). Negative counts are no words. */
static bool take_row(const pli_lda_model *m, const plait_row *row, pli_random *halves, scratch *s) {
    if (!scratch_room(s, row->n + 1)) return false;
    s->n = 0;
    for (int64_t e = 0; e < row->n; e++) {
        const uint64_t w = row->column != NULL ? row->column[e] : row->key[e];
        const double   n = row->value != NULL ? (double)row->value[e] : 1;
        if (w >= (uint64_t)m->words || !(n > 0)) continue;
        s->word[s->n] = (uint32_t)w;
        s->count[s->n] = n;
        s->other[s->n] = 0;
        for (int64_t i = 0; halves != NULL && i < (int64_t)n; i++) s->other[s->n] += pli_random_u32(halves) & 1;
        s->count[s->n] -= s->other[s->n];
        s->n++;
    }
    return true;
}

/* A number made of the row's words and counts, as FNV-1a makes it of bytes. */
static uint64_t number_of(const plait_row *row) {
    uint64_t h = 0xcbf29ce484222325u;
    for (int64_t e = 0; e < row->n; e++) {
        h = (h ^ (row->column != NULL ? row->column[e] : row->key[e])) * 0x100000001b3u;
        h = (h ^ (row->value != NULL && row->value[e] > 0 ? (uint64_t)row->value[e] : 1)) * 0x100000001b3u;
    }
    return h;
}

/* One round: the shares of each word, and the mixture that follows from them. Returns the largest change. */
static double turn(const pli_lda_model *m, scratch *s) {
    double most = 0;
    for (int32_t t = 0; t < m->k; t++) s->next[t] = m->alpha[t];
    for (int64_t e = 0; e < s->n; e++) {
        const float *phi = m->phi + (int64_t)s->word[e] * m->k;
        double       sum = 0;
        if (s->count[e] == 0) continue;
        for (int32_t t = 0; t < m->k; t++) sum += s->share[t] = s->theta[t] * (double)phi[t];
        const double scale = s->count[e] / sum;
        for (int32_t t = 0; t < m->k; t++) s->next[t] += s->share[t] * scale;
    }
    for (int32_t t = 0; t < m->k; t++) most = fmax(most, fabs(s->next[t] - s->theta[t]));
    memcpy(s->theta, s->next, (size_t)m->k * sizeof *s->theta);
    return most;
}

/* theta: tokens of each topic and alphas; returns their sum. */
static double find_mixture(const pli_lda_model *m, scratch *s) {
    double n = 0;
    for (int64_t e = 0; e < s->n; e++) n += s->count[e];
    for (int32_t t = 0; t < m->k; t++) s->theta[t] = m->alpha[t] + n / m->k;
    for (int round = 0; round < ROUNDS && n > 0; round++)
        if (turn(m, s) < ENOUGH) break;
    return n + m->alpha_sum;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

int64_t pli_lda_width(const plait_model *model, plait_answer answer) {
    const pli_lda_model *m = model->own;
    return answer == PLAIT_ANSWER_LABEL ? 1 : answer == PLAIT_ANSWER_TRANSFORM ? m->k : 0;
}

static void answer_row(const pli_lda_model *m, plait_answer answer, scratch *s, double *out) {
    const double sum = find_mixture(m, s);
    int32_t      best = 0;
    for (int32_t t = 0; t < m->k; t++) {
        if (answer == PLAIT_ANSWER_TRANSFORM) out[t] = s->theta[t] / sum;
        if (s->theta[t] > s->theta[best]) best = t;
    }
    if (answer == PLAIT_ANSWER_LABEL) out[0] = best;
}

static plait_status no_memory(plait_error *err) { return pli_fail(err, PLAIT_ENOMEM, "no memory for a document"); }

plait_status pli_lda_predict(const plait_model *model, plait_answer answer, const plait_rows *rows, double *out,
                             plait_error *err) {
    const pli_lda_model *m = model->own;
    const int64_t        width = pli_lda_width(model, answer);
    scratch              s;
    if (!scratch_begin(&s, m->k)) return no_memory(err);
    plait_status status = PLAIT_OK;
    for (int64_t i = 0; status >= 0 && i < plait_rows_count(rows); i++) {
        plait_row row;
        status = plait_rows_row(rows, i, &row);
        if (status >= 0 && !take_row(m, &row, NULL, &s)) status = no_memory(err);
        if (status >= 0) answer_row(m, answer, &s, out + i * width);
    }
    scratch_end(&s);
    return status;
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

enum { LOGS, TOKENS, WHOLE_LOGS, WHOLE_TOKENS };

static void add_row(const pli_lda_model *m, scratch *s, double *sums) {
    const double sum = find_mixture(m, s);
    for (int64_t e = 0; e < s->n; e++) {
        const float *phi = m->phi + (int64_t)s->word[e] * m->k;
        double       p = 0;
        if (s->other[e] == 0) continue;
        for (int32_t t = 0; t < m->k; t++) p += s->theta[t] * (double)phi[t];
        sums[LOGS] += s->other[e] * log(p / sum);
        sums[TOKENS] += s->other[e];
    }
}

/* The whole document, by the left-to-right estimator. */
static bool add_whole(const pli_lda_model *m, const scratch *s, uint64_t number, const int *stop, double *sums) {
    int64_t n = 0;
    double  log_all = 0;
    for (int64_t e = 0; e < s->n; e++) n += (int64_t)(s->count[e] + s->other[e]);
    uint32_t *word = pli_array((size_t)n + 1, sizeof *word), *to = word;
    if (word == NULL) return false;
    for (int64_t e = 0; e < s->n; e++)
        for (int64_t i = (int64_t)(s->count[e] + s->other[e]); i > 0; i--) *to++ = s->word[e];
    const bool done = pli_left_to_right(m, n, word, m->particles, number, stop, &log_all);
    sums[WHOLE_LOGS] += log_all;
    sums[WHOLE_TOKENS] += (double)n;
    pli_free(word);
    return done;
}

plait_status pli_lda_measure(const plait_model *model, const plait_rows *rows, double *sums, plait_error *err) {
    const pli_lda_model *m = model->own;
    scratch              s;
    if (!scratch_begin(&s, m->k)) return no_memory(err);
    plait_status status = PLAIT_OK;
    for (int64_t i = 0; status >= 0 && i < plait_rows_count(rows) && !pli_lda_stopped(model->stop); i++) {
        plait_row row;
        status = plait_rows_row(rows, i, &row);
        if (status < 0) break;
        const uint64_t number = number_of(&row);
        pli_random     halves = pli_random_at(0, PLI_RANDOM_HALVES, 0, number);
        bool           done = take_row(m, &row, &halves, &s);
        if (done) add_row(m, &s, sums);
        if (done && m->particles > 0) done = add_whole(m, &s, number, model->stop, sums);
        if (!done) status = no_memory(err);
    }
    scratch_end(&s);
    return status;
}

int32_t pli_lda_figures(const plait_model *model, const double *sums, plait_figure *figures) {
    const pli_lda_model *m = model->own;
    const double         loss = sums[TOKENS] > 0 ? -sums[LOGS] / sums[TOKENS] : (double)NAN;
    figures[0] = (plait_figure){ "loss", loss };
    figures[1] = (plait_figure){ "perplexity", exp(loss) };
    if (m->particles == 0) return 2;
    figures[2] = (plait_figure){ "left_to_right", exp(-sums[WHOLE_LOGS] / fmax(sums[WHOLE_TOKENS], 1)) };
    return 3;
}

/* --- inspect ------------------------------------------------------------------------------------------------------ */

/* The words that the topic has most often, at most TOP; returns how many. */
static int top_words(const pli_lda_model *m, int32_t t, int64_t *word) {
    int n = 0;
    for (int64_t w = 0; w < m->words; w++) {
        const int64_t count = m->count[w * m->k + t];
        int           at = n;
        if (count == 0) continue;
        while (at > 0 && m->count[word[at - 1] * m->k + t] < count) at--;
        if (at == TOP) continue;
        const int last = n < TOP ? n++ : TOP - 1;
        for (int i = last; i > at; i--) word[i] = word[i - 1];
        word[at] = w;
    }
    return n;
}

plait_status pli_lda_inspect(const plait_model *model, pli_text *text, plait_error *err) {
    const pli_lda_model *m = model->own;
    for (int32_t t = 0; t < m->k; t++) {
        int64_t   word[TOP];
        const int n = top_words(m, t, word);
        pli_text_add(text, "topic\t%d %.4g", (int)t, m->alpha[t] / m->alpha_sum);
        for (int i = 0; i < n; i++) {
            const char *name = plait_model_feature(model, word[i]);
            pli_text_add(text, " ");
            pli_text_add_printable(text, name, strlen(name), "");
        }
        pli_text_add(text, "\n");
    }
    return text->failed ? pli_fail(err, PLAIT_ENOMEM, "no memory to list topics") : PLAIT_OK;
}
