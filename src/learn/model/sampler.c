/* Continues a text by a model of text, one character after the other: it asks the model what may follow the last
 * window of characters, and draws one (Graves, "Generating Sequences With Recurrent Neural Networks", 2013).
 *
 * The temperature t makes a probability p the weight p^(1/t): 1 draws as the model says, less makes the likely
 * characters likelier, and 0 takes the likeliest. Any model of text by characters can be asked, not an lstm alone. */
#include "learn/model/model.h"

#include <math.h>
#include <string.h>

enum { BYTES = 256 };

struct pli_sampler {
    const plait_model *model;
    int64_t            window;
    int32_t            symbols;
    int32_t            id[BYTES]; /* of each byte; -1: training never saw it */
    int32_t           *before;    /* [window] the last characters, the newest last */
    int64_t            n;         /* how many there are, at most window */
    uint32_t          *column;    /* [window] */
    double            *chance;    /* [symbols] */
};

void pli_sampler_close(pli_sampler **sampler) {
    if (*sampler == NULL) return;
    pli_free((*sampler)->before);
    pli_free((*sampler)->column);
    pli_free((*sampler)->chance);
    pli_free(*sampler);
    *sampler = NULL;
}

/* Is class k of the model symbol k of the text? A model of text always has it so, unless its file was altered. */
static bool take_symbols(pli_sampler *s) {
    for (int i = 0; i < BYTES; i++) s->id[i] = -1;
    for (int32_t k = 0; k < s->symbols; k++) {
        const double value = pli_schema_label_value(s->model->schema, k);
        if (!(value >= 0 && value < BYTES) || value != floor(value)) return false;
        s->id[(int)value] = k;
    }
    return true;
}

plait_status pli_sampler_open(const plait_model *model, pli_sampler **sampler_out, plait_error *err) {
    int64_t       length[4] = { 0 };
    const int32_t symbols = pli_schema_symbols(model->schema);
    if (symbols <= 0 || model->classes != symbols || pli_schema_row_shape(model->schema, length) < 1 || length[0] < 1)
        return pli_fail(err, PLAIT_EREFUSED,
                        "model %s was not trained on text by characters, so it has none to write; 'plait train --model "
                        "lstm --format text --data FILE' makes one that has", model->name);
    pli_sampler *s = pli_calloc(1, sizeof *s);
    if (s == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to sample");
    s->model = model;
    s->window = length[0];
    s->symbols = symbols;
    s->before = pli_array((size_t)s->window, sizeof *s->before);
    s->column = pli_array((size_t)s->window, sizeof *s->column);
    s->chance = pli_array((size_t)symbols, sizeof *s->chance);
    plait_status status = PLAIT_OK;
    if (s->before == NULL || s->column == NULL || s->chance == NULL)
        status = pli_fail(err, PLAIT_ENOMEM, "no memory to sample");
    else if (!take_symbols(s))
        status = pli_fail(err, PLAIT_EFORMAT, "model %s: its symbols are no bytes", model->name);
    if (status < 0) pli_sampler_close(&s);
    *sampler_out = s;
    return status;
}

bool pli_sampler_add(pli_sampler *s, unsigned char byte) {
    if (s->n == s->window) memmove(s->before, s->before + 1, (size_t)(s->window - 1) * sizeof *s->before);
    else s->n++;
    s->before[s->n - 1] = s->id[byte] >= 0 ? s->id[byte] : s->symbols;
    return s->id[byte] >= 0;
}

/* The row that text by characters has before its next character: the places behind the text's beginning, which is a
 * symbol of its own. */
static int64_t make_row(const pli_sampler *s) {
    const uint32_t width = (uint32_t)s->symbols + 1;
    int64_t        entries = 0;
    if (s->n < s->window)
        s->column[entries++] = (uint32_t)(s->window - s->n - 1) * width + (uint32_t)s->symbols;
    for (int64_t i = 0; i < s->n; i++)
        s->column[entries++] = (uint32_t)(s->window - s->n + i) * width + (uint32_t)s->before[i];
    return entries;
}

static plait_status ask(pli_sampler *s, plait_error *err) {
    const int64_t row[] = { 0, make_row(s) }, features = s->window * ((int64_t)s->symbols + 1);
    plait_data   *data = NULL;
    PLI_TRY(plait_data_from_csr(1, features, row, s->column, NULL, NULL, NULL, &data, err));
    const plait_status status = plait_model_predict(s->model, data, 1, s->chance, err);
    plait_data_destroy(&data);
    return status;
}

/* The symbol at place `at` (0 .. 1) of all weights. */
static int32_t draw(const pli_sampler *s, double temperature, double at) {
    int32_t best = 0, last = 0;
    double  sum = 0, before = 0;
    for (int32_t k = 1; k < s->symbols; k++)
        if (s->chance[k] > s->chance[best]) best = k;
    if (temperature == 0) return best;
    const double most = s->chance[best];
    for (int32_t k = 0; k < s->symbols; k++) {
        s->chance[k] = s->chance[k] > 0 ? exp(log(s->chance[k] / most) / temperature) : 0;
        sum += s->chance[k];
    }
    for (int32_t k = 0; k < s->symbols; k++) {
        if (s->chance[k] <= 0) continue;
        last = k;
        before += s->chance[k];
        if (before > at * sum) return k;
    }
    return last;
}

plait_status pli_sampler_next(pli_sampler *s, double temperature, double at, unsigned char *byte_out,
                              plait_error *err) {
    PLI_TRY(ask(s, err));
    const int32_t symbol = draw(s, temperature, at);
    *byte_out = (unsigned char)pli_schema_label_value(s->model->schema, symbol);
    pli_sampler_add(s, *byte_out);
    return PLAIT_OK;
}
