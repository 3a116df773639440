/* What the features of rows in memory are: columns of numbers and of texts, as in a table (plait_memory_opts.columns).
 *
 * They become the columns of a schema, so that all that knows tables (names, trees' sets of texts, pairs, reading files
 * by a model's columns) knows these rows, too. */
#include <math.h>
#include <string.h>

#include <plait/memory.h>

#include "data/dataset/dataset.h"

/* --- are they right? ---------------------------------------------------------------------------------------------- */

static plait_status check_texts(const plait_memory_column *c, int64_t at, plait_error *err) {
    for (int64_t k = 0; k < c->n_texts; k++)
        if (c->texts[k] == NULL || (k > 0 && strcmp(c->texts[k - 1], c->texts[k]) >= 0))
            return pli_fail(err, PLAIT_EINVAL, "columns[%lld] \"%.60s\", texts[%lld]: expected texts that increase",
                            (long long)at, c->name, (long long)k);
    return PLAIT_OK;
}

plait_status pli_given_check_column(const plait_memory_column *c, int64_t at, plait_error *err) {
    if (c->name == NULL) return pli_fail(err, PLAIT_EINVAL, "columns[%lld]: it has no name", (long long)at);
    if (c->n_texts < 0 || c->n_texts > UINT32_MAX || (c->texts == NULL && c->n_texts > 0))
        return pli_fail(err, PLAIT_EINVAL, "columns[%lld] \"%.60s\": %lld texts: expected as many as texts has",
                        (long long)at, c->name, (long long)c->n_texts);
    return check_texts(c, at, err);
}

plait_status pli_given_check_columns(const plait_memory_opts *g, plait_error *err) {
    int64_t features = 0;
    if (g->columns == NULL) return PLAIT_OK;
    for (int64_t i = 0; i < g->n_columns; i++) {
        PLI_TRY(pli_given_check_column(&g->columns[i], i, err));
        features += g->columns[i].texts == NULL ? 1 : g->columns[i].n_texts;
        if (features > g->features) break;
    }
    if (features == g->features) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL, "%lld columns have %s%lld features, but the rows have %lld",
                    (long long)g->n_columns, features > g->features ? "at least " : "", (long long)features,
                    (long long)g->features);
}

/* --- in the schema ------------------------------------------------------------------------------------------------ */

bool pli_given_copy_texts(const plait_memory_column *from, pli_dict *dict) {
    dict->text = pli_calloc((size_t)from->n_texts, sizeof *dict->text);
    if (dict->text == NULL) return from->n_texts == 0;
    for (; dict->n < from->n_texts; dict->n++)
        if ((dict->text[dict->n] = pli_strdup(from->texts[dict->n])) == NULL) return false;
    pli_dict_index(dict);
    return true;
}

static bool copy_column(const plait_memory_column *from, pli_schema *schema) {
    const pli_role role = from->texts == NULL ? PLI_ROLE_NUMBER : PLI_ROLE_TEXT;
    pli_column    *to = pli_schema_add_column(schema, from->name, strlen(from->name), role);
    return to != NULL && pli_given_copy_texts(from, &to->dict);
}

/* Adds the block's values to sums, and takes those that are missing from counts; both are [features]. */
static void add_values(const pli_block *b, double *sum, int64_t *count) {
    for (int64_t e = 0; e < b->entries; e++) {
        const double value = b->value != NULL ? (double)b->value[e] : 1;
        if (isnan(value)) count[b->col[e]]--;
        else sum[b->col[e]] += value;
    }
}

/* A model replaces missing numbers of files by these means. */
static plait_status find_means(pli_dataset *d, plait_error *err) {
    const size_t n = (size_t)d->schema->features;
    double      *sum = pli_calloc(n + 1, sizeof *sum);
    int64_t     *count = pli_calloc(n + 1, sizeof *count);
    const bool   good = sum != NULL && count != NULL;
    for (size_t j = 0; good && j < n; j++) count[j] = d->schema->rows;
    for (int32_t i = 0; good && i < d->own; i++) add_values(&d->rows[i].b, sum, count);
    for (int64_t i = 0; good && i < d->schema->columns; i++) {
        pli_column *c = &d->schema->column[i];
        if (c->role != PLI_ROLE_NUMBER) continue;
        c->count = count[c->first_key];
        c->mean = c->count > 0 ? (double)(float)(sum[c->first_key] / (double)c->count) : 0;
    }
    pli_free(sum);
    pli_free(count);
    return good ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for the means of columns");
}

plait_status pli_given_columns(const plait_memory_opts *g, pli_dataset *d, plait_error *err) {
    d->schema->format = PLI_FORMAT_TABLE;
    d->schema->has_names = true;
    d->schema->delimiter = ',';
    for (int64_t i = 0; i < g->n_columns; i++)
        if (!copy_column(&g->columns[i], d->schema))
            return pli_fail(err, PLAIT_ENOMEM, "no memory for the names of columns");
    pli_schema_number(d->schema);
    return find_means(d, err);
}
