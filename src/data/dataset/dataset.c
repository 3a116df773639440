/* Opening a data set, loading it, and agreeing on its schema. */
#include "data/dataset/dataset.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/cache/cache.h"
#include "data/formats/chars.h"
#include "data/formats/idx.h"
#include "data/formats/npy.h"
#include "data/formats/table/table.h"
#include "data/formats/vw/vw.h"

void pli_dataset_note(pli_dataset *d, const char *fmt, ...) {
    char    text[400], line[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    pli_printable(line, sizeof line, text);
    pli_text_add(&d->notes, "%s\n", line);
    pli_log(d->log, PLAIT_LOG_INFO, -1, "data", "%s", line);
}

/* --- opening ---------------------------------------------------------------------------------------------- */

/* The parser borrows the schema's origins. */
static void take_origins(pli_dataset *d) {
    d->libsvm.origin = d->schema->origin;
    d->libsvm.origins = d->schema->origins;
}

static plait_status open_libsvm(pli_dataset *d, const plait_data_opts *opts, const pli_schema *fixed,
                                plait_error *err) {
    const char *base = opts->index_base != NULL ? opts->index_base : "auto";
    bool        is_auto = strcmp(base, "auto") == 0;
    if (!is_auto && strcmp(base, "0") != 0 && strcmp(base, "1") != 0)
        return pli_fail(err, PLAIT_EINVAL, "index base \"%s\": expected auto, 0 or 1", base);
    pli_schema *schema = d->schema;
    schema->base_is_sure = !is_auto || (fixed != NULL && fixed->format == PLI_FORMAT_LIBSVM);
    if (!is_auto)
        schema->index_base = base[0] - '0';
    else if (schema->base_is_sure)
        schema->index_base = fixed->index_base;
    else { /* a good guess saves a pass over the keys */
        const pli_source    *source = &d->sources->source[0];
        const unsigned char *from = source->data + source->begin, *end = source->data + source->bytes;
        if (end - from > 1 << 16) end = from + (1 << 16);
        schema->index_base = pli_libsvm_has_zero(from, end) ? 0 : 1;
    }
    if (fixed != NULL && fixed->format == PLI_FORMAT_NONE) { /* the model is of rows in memory: features have numbers */
        schema->base_is_sure = true;
        schema->any_index = fixed->features > 0;
        schema->max_index = (uint64_t)fixed->features - 1 + (uint64_t)schema->index_base;
    }
    d->libsvm = (pli_libsvm_rules){ .base = schema->index_base,
                                    .base_is_sure = schema->base_is_sure,
                                    .hash_bits = schema->hash_bits,
                                    .label_is_optional = fixed != NULL || schema->unlabelled,
                                    .unlabelled = schema->unlabelled,
                                    .limit = UINT64_MAX };
    if (fixed != NULL && schema->hash_bits == 0) d->libsvm.limit = pli_schema_keys(fixed) + (uint64_t)d->libsvm.base;
    d->reader = &pli_libsvm_reader;
    d->rules = &d->libsvm;
    if (fixed == NULL) PLI_TRY(pli_libsvm_origins(d, opts->origins != 0, err));
    take_origins(d);
    return PLAIT_OK;
}

static plait_status open_schema(pli_dataset *d, const plait_data_opts *opts, const pli_schema *fixed,
                                plait_error *err) {
    if (opts->hash_bits < 0 || opts->hash_bits > 31)
        return pli_fail(err, PLAIT_EINVAL, "hash bits %d: expected 1 to 31, or 0 for none", opts->hash_bits);
    d->schema = fixed != NULL ? pli_schema_copy(fixed) : pli_schema_create();
    if (d->schema == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the description of the data");
    d->schema->rows = 0;
    d->schema->whole = false;
    d->schema->unlabelled = d->unlabelled;
    if (fixed == NULL || fixed->format == PLI_FORMAT_NONE) d->schema->hash_bits = opts->hash_bits;
    pli_free(d->schema->segment_rows);
    d->schema->segments = d->segments;
    d->schema->segment_rows = pli_calloc((size_t)d->segments, sizeof(int64_t));
    return d->schema->segment_rows != NULL ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for the list of blocks");
}

/* Is a row a line of text that is parsed? */
static bool has_lines(pli_data_format format) {
    return format == PLI_FORMAT_LIBSVM || format == PLI_FORMAT_TABLE || format == PLI_FORMAT_VW;
}

/* Refuses options that have no meaning for the format; they are not ignored. */
static plait_status check_use(const plait_data_opts *opts, pli_data_format format, const char *path, plait_error *err) {
    const char *what = opts->window > 0 && format != PLI_FORMAT_CHARS           ? "window"
                       : opts->cache && !has_lines(format)                      ? "cache"
                       : opts->interactions != NULL && format != PLI_FORMAT_VW  ? "interactions"
                       : opts->ngram != NULL && format != PLI_FORMAT_VW         ? "ngram"
                       : opts->delimiter != NULL && format != PLI_FORMAT_TABLE  ? "delimiter"
                       : opts->group_column != NULL && format != PLI_FORMAT_TABLE ? "group"
                       : opts->weight_column != NULL && format == PLI_FORMAT_IDX ? "weight-column"
                                                                                : NULL;
    if (what == NULL) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL, "%s: --%s has no meaning for %s data; leave it out", path, what,
                    pli_format_text(format));
}

/* Notes options that have no effect with the format, and do no harm. */
static void note_idle(pli_dataset *d, const plait_data_opts *opts, pli_data_format format) {
    const bool table = format == PLI_FORMAT_TABLE, array = format == PLI_FORMAT_NPY,
               labelled = table || array || format == PLI_FORMAT_IDX;
    const struct {
        const char *option;
        bool        idle;
    } given[] = { { "label", opts->label != NULL && !pli_label_is_none(opts->label) && !labelled },
                  { "weight-column", opts->weight_column != NULL && !table && !array },
                  { "text-columns", opts->text_columns != NULL && !table },
                  { "header", opts->header != NULL && strcmp(opts->header, "auto") != 0 && !table },
                  { "index-base", opts->index_base != NULL && strcmp(opts->index_base, "auto") != 0 &&
                                      format != PLI_FORMAT_LIBSVM } };
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (given[i].idle)
            pli_dataset_note(d, "note: --%s has no effect on %s data", given[i].option, pli_format_text(format));
}

static plait_status open_all(pli_dataset *d, const plait_data_opts *opts, const pli_schema *fixed, plait_error *err) {
    if (d->workers < 1 || d->worker < 0)
        return pli_fail(err, PLAIT_EINVAL, "worker %d of %d", d->worker, d->workers);
    if (opts->blocks != 0 && (opts->blocks < PLI_MIN_BLOCKS || opts->blocks > PLI_MAX_BLOCKS))
        return pli_fail(err, PLAIT_EINVAL, "blocks %d: expected %d to %d, or 0 for as many as suit the data",
                        opts->blocks, (int)PLI_MIN_BLOCKS, (int)PLI_MAX_BLOCKS);
    d->asked = opts->blocks;
    if (d->sources == NULL) PLI_TRY(pli_datacache_plan(opts, fixed, d->dealt, &d->wish, err));
    if (d->wish != NULL && pli_datacache_attach(d, d->wish)) {
        note_idle(d, opts, d->schema->format);
        return PLAIT_OK;
    }
    if (d->sources == NULL)
        PLI_TRY(pli_sources_open(opts->paths, opts->n_paths, opts->spill_limit, d->may_live, &d->sources, err));
    pli_data_format format = PLI_FORMAT_LIBSVM;
    PLI_TRY(pli_format_choose(opts, d->sources, fixed, &format, err));
    if (pli_dataset_is_live(d) && !has_lines(format)) PLI_TRY(pli_live_more(&d->sources->source[0], true, err));
    PLI_TRY(check_use(opts, format, d->sources->source[0].path, err));
    note_idle(d, opts, format);
    d->begin = pli_array((size_t)d->sources->n, sizeof *d->begin);
    if (d->begin == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the list of files");
    for (int64_t i = 0; i < d->sources->n; i++) d->begin[i] = d->sources->source[i].begin;
    for (int64_t i = 0; has_lines(format) && i < d->sources->n; i++)
        PLI_TRY(pli_source_check_lines(&d->sources->source[i], err));
    if (format == PLI_FORMAT_TABLE)
        PLI_TRY(pli_table_begin(d, opts, fixed, err)); /* finds headers, which are no rows */
    if (format == PLI_FORMAT_IDX) PLI_TRY(pli_idx_open(d, opts, fixed, err));
    if (format == PLI_FORMAT_NPY) PLI_TRY(pli_npy_open(d, opts, fixed, err));
    if (format == PLI_FORMAT_CHARS) PLI_TRY(pli_chars_open(d, opts, fixed, err));
    d->by_query = format == PLI_FORMAT_LIBSVM;
    PLI_TRY(pli_dataset_cut(d, err));
    PLI_TRY(open_schema(d, opts, fixed, err));
    d->schema->format = format == PLI_FORMAT_NPY ? PLI_FORMAT_TABLE : format;
    if (format == PLI_FORMAT_LIBSVM) PLI_TRY(open_libsvm(d, opts, fixed, err));
    else if (format == PLI_FORMAT_TABLE) PLI_TRY(pli_table_open(d, opts, fixed, err));
    else if (format == PLI_FORMAT_VW) PLI_TRY(pli_vw_open(d, opts, fixed, err));
    else if (format == PLI_FORMAT_IDX) pli_idx_describe(d);
    else if (format == PLI_FORMAT_NPY) PLI_TRY(pli_npy_describe(d, opts, fixed, err));
    else pli_chars_describe(d);
    for (int64_t i = 0; i < d->sources->n; i++) d->has_weights |= d->sources->source[i].weights > 0;
    d->rows = pli_calloc((size_t)d->own, sizeof *d->rows);
    return d->rows != NULL ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for the list of blocks");
}

static plait_status open_dataset(const plait_data_opts *opts, const pli_schema *fixed, pli_sources *shared, bool dealt,
                                 bool live, int32_t worker, int32_t workers, pli_dataset **dataset_out,
                                 plait_error *err) {
    pli_dataset *d = pli_calloc(1, sizeof *d);
    if (d == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a data set");
    d->worker = worker;
    d->workers = workers;
    d->dealt = dealt;
    d->may_live = live;
    d->log = opts->log;
    d->is_fixed = fixed != NULL;
    d->unlabelled = pli_label_is_none(opts->label) || (fixed != NULL && fixed->unlabelled);
    d->sources = shared;
    if (shared != NULL) atomic_fetch_add(&shared->users, 1);
    plait_status status = open_all(d, opts, fixed, err);
    if (status < 0)
        pli_dataset_destroy(&d);
    else
        *dataset_out = d;
    return status;
}

plait_status pli_dataset_open(const plait_data_opts *opts, const pli_schema *fixed, int32_t worker, int32_t workers,
                              pli_dataset **dataset_out, plait_error *err) {
    return open_dataset(opts, fixed, NULL, false, false, worker, workers, dataset_out, err);
}

plait_status pli_dataset_open_dealt(const plait_data_opts *opts, const pli_schema *fixed, int32_t worker,
                                    int32_t workers, pli_dataset **dataset_out, plait_error *err) {
    return open_dataset(opts, fixed, NULL, true, false, worker, workers, dataset_out, err);
}

plait_status pli_dataset_open_live(const plait_data_opts *opts, const pli_schema *fixed, pli_dataset **dataset_out,
                                   plait_error *err) {
    return open_dataset(opts, fixed, NULL, true, true, 0, 1, dataset_out, err);
}

plait_status pli_dataset_open_beside(const pli_dataset *other, const plait_data_opts *opts, const pli_schema *fixed,
                                     int32_t worker, int32_t workers, pli_dataset **dataset_out, plait_error *err) {
    return open_dataset(opts, fixed, other->sources, other->dealt, false, worker, workers, dataset_out, err);
}

plait_status pli_dataset_open_bytes(const plait_data_opts *opts, const pli_schema *fixed, const char *name,
                                    const char *text, size_t bytes, pli_dataset **dataset_out, plait_error *err) {
    pli_sources *sources = NULL;
    PLI_TRY(pli_sources_of_bytes(name, text, bytes, &sources, err));
    const plait_status status = open_dataset(opts, fixed, sources, false, false, 0, 1, dataset_out, err);
    pli_sources_release(&sources);
    return status;
}

static void free_segments(pli_dataset *d) {
    for (int64_t i = 0; d->marks != NULL && i < d->segments; i++) pli_free(d->marks[i].at);
    pli_free(d->marks);
    d->marks = NULL;
    pli_free(d->segment);
}

void pli_dataset_destroy(pli_dataset **dataset) {
    pli_dataset *d = dataset != NULL ? *dataset : NULL;
    if (d == NULL) return;
    *dataset = NULL;
    if (d->cached != NULL) pli_datacache_detach(d);
    pli_datacache_forget(&d->wish);
    for (int32_t i = 0; d->rows != NULL && !d->of_memory && i < d->own; i++) pli_rows_free(&d->rows[i]);
    pli_free(d->rows);
    pli_table_close(&d->table);
    pli_idx_close(&d->idx);
    pli_npy_close(&d->npy);
    pli_chars_close(&d->chars);
    pli_vw_close(&d->vw);
    pli_schema_destroy(&d->schema);
    pli_text_free(&d->notes);
    free_segments(d);
    pli_free(d->begin);
    pli_free(d->piece_segment);
    pli_free(d->piece);
    pli_sources_release(&d->sources);
    pli_free(d);
}

/* --- loading ---------------------------------------------------------------------------------------------- */

typedef struct load_job {
    pli_dataset  *dataset;
    pli_found    *found;  /* [own] */
    plait_error  *error;  /* [own] */
    plait_status *status; /* [own] */
} load_job;

static void load_one(void *user, int64_t i, int32_t thread) {
    load_job    *job = user;
    pli_dataset *d = job->dataset;
    pli_rows    *rows = &d->rows[i];
    (void)thread;
    rows->b.number = d->first + i;
    job->status[i] =
        pli_rows_reserve_rows(rows, 1) && pli_rows_reserve(rows, 1)
            ? pli_parse_block(d, d->first + (int32_t)i, rows, &job->found[i], d->schema->segment_rows, &job->error[i])
            : pli_fail(&job->error[i], PLAIT_ENOMEM, "no memory for a block of rows");
    pli_rows_shrink(rows);
}

static bool take_labels(pli_schema *schema, const pli_found *found) {
    pli_schema one = { .label_kind = found->real_labels ? PLI_LABEL_REAL : PLI_LABEL_INTEGER,
                       .labels = found->labels.n };
    if (found->labels.n == 0 && !found->real_labels) return true;
    uint64_t *bits = pli_array((size_t)found->labels.n, sizeof *bits);
    one.label = pli_array((size_t)found->labels.n, sizeof *one.label);
    bool good = bits != NULL && one.label != NULL;
    if (good) {
        pli_keymap_keys(&found->labels, bits);
        memcpy(one.label, bits, (size_t)found->labels.n * sizeof *bits);
        good = pli_schema_merge_labels(schema, &one);
    }
    pli_free(bits);
    pli_free(one.label);
    return good;
}

/* Says of how many rows the model knows no user, or no item. */
static void note_cold(pli_dataset *d, const pli_found *found, int64_t n) {
    static const char *const what[] = { "user", "item" };
    for (int k = 0; k < 2; k++) {
        int64_t     rows = 0;
        const char *text = NULL;
        for (int64_t i = 0; i < n; i++) {
            if (text == NULL && found[i].cold[k] > 0) text = found[i].cold_text[k];
            rows += found[i].cold[k];
        }
        if (rows > 0)
            pli_dataset_note(d, "%lld row%s name%s %ss that the model does not know, first \"%s\"; what is not "
                                "known counts 0",
                             (long long)rows, pli_plural(rows), rows == 1 ? "s" : "", what[k], text);
    }
}

static void note_found(pli_dataset *d, const pli_found *found, int64_t n) {
    pli_found all = { 0 };
    for (int64_t i = 0; i < n; i++) {
        all.qids += found[i].qids;
        all.dropped += found[i].dropped;
        all.unknown_texts += found[i].unknown_texts;
        all.unknown_labels += found[i].unknown_labels;
        all.passed_labels += found[i].passed_labels;
    }
    if (all.passed_labels > 0) pli_dataset_note(d, "note: labels in the data are ignored (--label none)");
    if (all.qids > 0)
        pli_dataset_note(d, "%lld rows name queries (qid:), which --loss ndcg and pairwise use",
                         (long long)all.qids);
    if (all.dropped > 0)
        pli_dataset_note(d, "%lld values of features that the model does not know (it has %lld) are ignored",
                         (long long)all.dropped, (long long)d->schema->features);
    note_cold(d, found, n);
    for (int64_t i = 0; i < n; i++) all.unknown_texts -= found[i].cold[0] + found[i].cold[1];
    if (all.unknown_texts > 0)
        pli_dataset_note(d, "%lld cells hold texts that the model does not know; they count as missing",
                         (long long)all.unknown_texts);
    if (all.unknown_labels > 0)
        pli_dataset_note(d, "%lld rows have labels that the model does not know; they count as rows without",
                         (long long)all.unknown_labels);
}

plait_status pli_dataset_join_found(pli_dataset *d, pli_found *found, int64_t n, plait_error *err) {
    pli_schema *schema = d->schema;
    for (int64_t i = 0; i < n; i++) {
        schema->zero_index |= found[i].zero_index;
        if (found[i].least_label < schema->least_label) schema->least_label = found[i].least_label;
        for (int k = 0; k < 4; k++) schema->letters[k] |= found[i].letters[k];
        if (!d->is_fixed) schema->any_index |= found[i].any_index;
        if (!d->is_fixed && found[i].max_index > schema->max_index) schema->max_index = found[i].max_index;
        if (!d->is_fixed && schema->label_kind != PLI_LABEL_TEXT && !take_labels(schema, &found[i]))
            return pli_fail(err, PLAIT_ENOMEM, "no memory for the labels");
    }
    schema->rows = 0;
    for (int64_t i = 0; i < schema->segments; i++) schema->rows += schema->segment_rows[i];
    note_found(d, found, n);
    return PLAIT_OK;
}

/* --- keys ------------------------------------------------------------------------------------------------- */

static void shift_keys(pli_rows *rows, uint64_t by) {
    for (int64_t i = 0; rows->b.col != NULL && i < rows->b.entries; i++) rows->b.col[i] += (uint32_t)by;
    for (int64_t i = 0; rows->b.key != NULL && i < rows->b.entries; i++) rows->b.key[i] += by;
}

static void rebase(pli_dataset *d, int32_t base) {
    if (d->schema->hash_bits == 0 && base != d->libsvm.base)
        for (int32_t i = 0; i < d->own; i++) shift_keys(&d->rows[i], (uint64_t)(int64_t)(d->libsvm.base - base));
    d->libsvm.base = base;
}

static plait_status first_error(const load_job *job, int64_t n, plait_error *err) {
    for (int64_t i = 0; i < n; i++) {
        if (job->status[i] >= 0) continue;
        if (err != NULL) *err = job->error[i];
        return job->status[i];
    }
    return PLAIT_OK;
}

/* Has this worker read all rows? Then no other has to be asked. */
static bool is_alone(const pli_dataset *d) { return d->workers == 1 && d->own == d->blocks; }

static plait_status load_blocks(pli_dataset *d, load_job *job, pli_pool *pool, plait_error *err) {
    if (d->table != NULL) PLI_TRY(pli_table_learn(d, pool, err)); /* dictionaries come first */
    pli_pool_for(pool, d->own, load_one, job);
    PLI_TRY(first_error(job, d->own, err));
    PLI_TRY(pli_dataset_join_found(d, job->found, d->own, err));
    pli_schema_number(d->schema);
    if (d->table != NULL)
        PLI_TRY(pli_table_settle(d, err));
    else
        rebase(d, d->schema->index_base);
    if (d->chars != NULL && is_alone(d)) pli_chars_number(d, d->schema);
    PLI_TRY(pli_sources_check(d->sources, err));
    d->loaded = true;
    if (d->vw != NULL && !d->is_fixed && is_alone(d)) PLI_TRY(pli_vw_check_letters(d->schema, err));
    return is_alone(d) ? pli_number_rows(d, d->schema->segment_rows, true, err) : PLAIT_OK;
}

/* Builds the cache and uses it. false: it cannot be built; then the data is loaded in the ordinary way, which also
 * reports malformed rows. */
static bool load_by_cache(pli_dataset *d, pli_pool *pool) {
    plait_error  err = { .code = PLAIT_OK };
    plait_status status = pli_datacache_build(d, d->wish, pool, &err);
    if (status < 0) {
        if (status == PLAIT_EIO || status == PLAIT_ENOSPACE) pli_dataset_note(d, "no cache: %s", err.text);
        return false;
    }
    pli_dataset fresh = { .worker = d->worker, .workers = d->workers, .log = d->log, .dealt = d->dealt };
    if (!pli_datacache_attach(&fresh, d->wish)) {
        pli_text_free(&fresh.notes);
        return false;
    }
    pli_free(d->rows);
    free_segments(d);
    pli_free(d->piece_segment);
    pli_free(d->piece);
    pli_schema_destroy(&d->schema);
    d->rows = fresh.rows;
    d->segment = fresh.segment;
    d->piece_segment = fresh.piece_segment;
    d->piece = fresh.piece;
    d->schema = fresh.schema;
    d->cached = fresh.cached;
    d->loaded = true;
    return true;
}

plait_status pli_dataset_load(pli_dataset *d, pli_pool *pool, plait_error *err) {
    if (d->loaded) return PLAIT_OK;
    if (d->scanned) return pli_fail(err, PLAIT_EINVAL, "a data set is scanned or loaded, not both");
    if (d->wish != NULL && d->worker == 0 && !d->sources->is_pipe && load_by_cache(d, pool)) return PLAIT_OK;
    size_t       own = (size_t)d->own;
    load_job     job = { .dataset = d,
                         .found = pli_calloc(own, sizeof *job.found),
                         .error = pli_calloc(own, sizeof *job.error),
                         .status = pli_calloc(own, sizeof *job.status) };
    plait_status status = job.found != NULL && job.error != NULL && job.status != NULL
                              ? load_blocks(d, &job, pool, err)
                              : pli_fail(err, PLAIT_ENOMEM, "no memory for the list of blocks");
    for (size_t i = 0; job.found != NULL && i < own; i++) pli_found_free(&job.found[i]);
    pli_free(job.found);
    pli_free(job.error);
    pli_free(job.status);
    return status;
}

/* A cache holds the keys of the whole data set, so the workers must have agreed on exactly these. */
static plait_status agree_cached(pli_dataset *d, const pli_schema *schema, plait_error *err) {
    if (schema->features != d->schema->features || schema->index_base != d->schema->index_base ||
        schema->segments != d->segments || pli_schema_labels(schema) != pli_schema_labels(d->schema))
        return pli_fail(err, PLAIT_EMISMATCH, "%s belongs to other data than the other workers'; remove it",
                        d->wish->path);
    pli_schema *copy = pli_schema_copy(schema);
    if (copy == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the description of the data");
    pli_schema_destroy(&d->schema);
    d->schema = copy;
    d->agreed = true;
    return PLAIT_OK;
}

plait_status pli_dataset_agree(pli_dataset *d, const pli_schema *schema, plait_error *err) {
    if (d->of_memory) return PLAIT_OK; /* its schema is whole and agreed */
    if (d->cached != NULL) return agree_cached(d, schema, err);
    if (schema->segments != d->segments)
        return pli_fail(err, PLAIT_EMISMATCH,
                        "the agreed description of the data is of other files (%lld pieces, but %lld here)",
                        (long long)schema->segments, (long long)d->segments);
    if (d->vw != NULL && !d->is_fixed) PLI_TRY(pli_vw_check_letters(schema, err));
    pli_schema *copy = pli_schema_copy(schema);
    if (copy == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the description of the data");
    plait_status status = PLAIT_OK;
    if (d->table != NULL)
        status = pli_table_renumber(d, copy, err);
    else if (d->loaded)
        rebase(d, copy->index_base);
    if (d->chars != NULL) pli_chars_number(d, copy);
    d->libsvm.base = copy->index_base;
    if (status < 0) {
        pli_schema_destroy(&copy);
        return status;
    }
    pli_schema_destroy(&d->schema);
    d->schema = copy;
    take_origins(d);
    for (int32_t i = 0; d->table != NULL && d->loaded && i < d->own; i++) pli_table_fill(d, &d->rows[i]);
    const bool weigh = d->loaded && !is_alone(d) && !d->agreed;
    if (status == PLAIT_OK) status = pli_number_rows(d, copy->segment_rows, weigh, err);
    d->agreed = true;
    return status;
}

static void pack_one(void *user, int64_t i, int32_t thread) {
    pli_dataset *d = user;
    (void)thread;
    if (d->rows[i].b.col != NULL) pli_rows_pack(&d->rows[i]);
}

void pli_dataset_pack(pli_dataset *d, pli_pool *pool) {
    if (d->loaded && !d->of_memory && d->cached == NULL && d->schema->features <= INT64_C(1) << 24)
        pli_pool_for(pool, d->own, pack_one, d);
}

/* --- asking ----------------------------------------------------------------------------------------------- */

const pli_schema *pli_dataset_schema(const pli_dataset *d) { return d->schema; }
int32_t           pli_dataset_blocks(const pli_dataset *d) { return d->blocks; }
int32_t           pli_dataset_first_block(const pli_dataset *d) { return d->first; }
int32_t           pli_dataset_own_blocks(const pli_dataset *d) { return d->own; }
const pli_block  *pli_dataset_block(const pli_dataset *d, int32_t own) { return &d->rows[own].b; }
const char       *pli_dataset_notes(const pli_dataset *d) { return d->notes.data != NULL ? d->notes.data : ""; }

int64_t pli_dataset_rows(const pli_dataset *d) {
    int64_t rows = 0;
    for (int32_t i = 0; d->of_memory && i < d->own; i++) rows += d->rows[i].b.rows;
    if (d->of_memory) return rows;
    for (int32_t b = 0; b < d->own; b++) {
        const pli_run_of_segments own = pli_segments_of(d, d->first + b);
        for (int64_t i = own.from; i < own.to; i++) rows += d->schema->segment_rows[i];
    }
    return rows;
}

/* Hashes a source: its name without directories, its length, its first and last bytes and some between. */
static uint64_t source_print(const pli_source *source, uint64_t seed) {
    enum { SAMPLE = 4096, SAMPLES = 64 };
    const char *slash = strrchr(source->path, '/'), *name = slash != NULL ? slash + 1 : source->path;
    uint64_t    print = pli_hash_bytes(name, strlen(name), seed ^ source->bytes);
    if (source->bytes <= (size_t)SAMPLE * SAMPLES) return pli_hash_bytes(source->data, source->bytes, print);
    for (size_t i = 0; i < SAMPLES; i++)
        print = pli_hash_bytes(source->data + (source->bytes - SAMPLE) / (SAMPLES - 1) * i, SAMPLE, print);
    return print;
}

bool pli_dataset_has_label_file(const pli_dataset *d) {
    return d->idx != NULL || (d->npy != NULL && !d->unlabelled && pli_schema_label_column(d->schema) == NULL);
}

bool pli_dataset_has_weight_file(const pli_dataset *d) { return d->has_weights; }

uint64_t pli_dataset_fingerprint(const pli_dataset *d) {
    static const uint64_t DEALT = UINT64_C(1) << 32;
    if (d->cached != NULL) return pli_datacache_fingerprint(d);
    uint64_t print = pli_hash_u64((uint64_t)d->blocks ^ (d->dealt ? DEALT : 0)); /* a checkpoint is of blocks */
    for (int64_t i = 0; d->sources != NULL && i < d->sources->n; i++)
        print = source_print(&d->sources->source[i], print);
    return print;
}
