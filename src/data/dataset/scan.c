/* The pass before a stream: how many rows each segment has, which labels there are, and where indices begin.
 *
 * Readers with `look` see only the start of each line (libsvm also its end) and the next is found by memchr; that is
 * some times faster than parsing. Pages are given back once they were passed. */
#include <string.h>

#include "data/formats/table/table.h"

enum { CHUNK = 1 << 20 };

typedef struct scan_job {
    pli_dataset    *dataset;
    bool            features, looks; /* looks: at the lines of a table */
    pli_rows       *scratch; /* [threads] */
    pli_table_sums *sums;    /* [threads] */
    pli_found      *found;   /* [own] */
    plait_error    *error;   /* [own] */
    plait_status   *status;  /* [own] */
} scan_job;

/* Notes that a multiple of PLI_MARK rows ends here. */
static bool mark(pli_marks *marks, size_t at) {
    if (!pli_grow((void **)&marks->at, &marks->capacity, marks->n + 1, sizeof *marks->at)) return false;
    marks->at[marks->n++] = at;
    return true;
}

static plait_status scan_lines(const pli_dataset *d, const pli_segment *segment, pli_marks *marks, pli_found *found,
                               int64_t *rows_out, plait_error *err) {
    const pli_source    *source = &d->sources->source[segment->source];
    const unsigned char *p = source->data + segment->from, *to = source->data + segment->to, *dropped = p;
    int64_t              rows = 0;
    bool (*look)(const void *, const unsigned char *, const unsigned char *, pli_found *) =
        d->table != NULL ? pli_table_look : d->reader->look;
    for (p = d->reader->row(p, to); p < to; p = d->reader->row(p, to)) {
        const unsigned char *newline = memchr(p, '\n', (size_t)(to - p));
        if (!look(d->rules, p, newline != NULL ? newline : to, found))
            return pli_fail(err, PLAIT_ENOMEM, "no memory for the labels");
        if (found->parses) return PLAIT_OK;
        p = newline != NULL ? newline + 1 : to;
        if (++rows % PLI_MARK == 0 && !mark(marks, (size_t)(p - source->data)))
            return pli_fail(err, PLAIT_ENOMEM, "no memory for the places of rows");
        if (p - dropped > CHUNK) {
            pli_source_drop(source, (size_t)(dropped - source->data), (size_t)(p - source->data));
            dropped = source->data + pli_drop_again((size_t)(p - source->data));
        }
    }
    *rows_out = rows;
    return PLAIT_OK;
}

/* The end of the last row that begins before `from + CHUNK`. */
static size_t chunk_end(const pli_dataset *d, const pli_source *source, size_t from, size_t to) {
    if (to - from <= CHUNK) return to;
    if (d->row_bytes > 0) {
        const size_t rows = (CHUNK + d->row_bytes - 1) / d->row_bytes;
        return rows * d->row_bytes < to - from ? from + rows * d->row_bytes : to;
    }
    const unsigned char *newline = memchr(source->data + from + CHUNK, '\n', to - from - CHUNK);
    return newline != NULL ? (size_t)(newline + 1 - source->data) : to;
}

/* Parses a chunk at a time and forgets the rows. */
static plait_status scan_by_parsing(const pli_dataset *d, const pli_segment *segment, pli_rows *scratch,
                                    pli_table_sums *sums, pli_found *found, int64_t *rows_out, plait_error *err) {
    const pli_source *source = &d->sources->source[segment->source];
    int64_t           rows = 0;
    for (size_t from = segment->from; from < segment->to;) {
        size_t to = chunk_end(d, source, from, segment->to);
        pli_rows_clear(scratch);
        PLI_TRY(pli_parse_bytes(d, segment, from, to, scratch, found, err));
        rows += scratch->b.rows;
        if (d->table != NULL && !pli_table_add_sums(d, sums, scratch))
            return pli_fail(err, PLAIT_ENOMEM, "no memory for means");
        pli_source_drop(source, pli_drop_again(from), to);
        from = to;
    }
    *rows_out = rows;
    return PLAIT_OK;
}

static void scan_one(void *user, int64_t i, int32_t thread) {
    scan_job    *job = user;
    pli_dataset *d = job->dataset;
    int32_t      block = d->first + (int32_t)i;
    const pli_run_of_segments own = pli_segments_of(d, block);
    for (int64_t k = own.from; k < own.to && job->status[i] == PLAIT_OK; k++) {
        const pli_segment *segment = &d->segment[k];
        int64_t           *rows = &d->schema->segment_rows[k];
        if (job->features || (d->reader->look == NULL && !job->looks))
            job->status[i] = scan_by_parsing(d, segment, &job->scratch[thread], &job->sums[thread], &job->found[i],
                                             rows, &job->error[i]);
        else
            job->status[i] = scan_lines(d, segment, &d->marks[k], &job->found[i], rows, &job->error[i]);
    }
}

static bool must_parse(const scan_job *job) {
    bool parses = false;
    for (int32_t i = 0; i < job->dataset->own; i++) parses |= job->found[i].parses;
    return parses;
}

/* Parses what was looked at. */
static void scan_anew(scan_job *job, pli_pool *pool) {
    pli_dataset *d = job->dataset;
    job->looks = false;
    for (int32_t i = 0; i < d->own; i++) pli_found_free(&job->found[i]);
    for (int32_t i = 0; i < d->own; i++) job->status[i] = PLAIT_OK;
    for (int64_t k = 0; k < d->segments; k++) d->marks[k].n = 0;
    pli_pool_for(pool, d->own, scan_one, job);
}

static plait_status scan_blocks(scan_job *job, pli_pool *pool, plait_error *err) {
    pli_dataset *d = job->dataset;
    if (d->table != NULL) PLI_TRY(pli_table_learn(d, pool, err));
    job->looks = d->adds_means && d->table != NULL && d->npy == NULL && pli_table_may_look(d->table);
    pli_pool_for(pool, d->own, scan_one, job);
    d->adds_means = job->looks && !must_parse(job);
    if (job->looks && !d->adds_means) scan_anew(job, pool);
    for (int32_t i = 0; i < d->own; i++) {
        if (job->status[i] >= 0) continue;
        if (err != NULL) *err = job->error[i];
        return job->status[i];
    }
    PLI_TRY(pli_dataset_join_found(d, job->found, d->own, err));
    if (d->table != NULL) PLI_TRY(pli_table_take_sums(d, job->sums, pli_pool_threads(pool), err));
    pli_schema_number(d->schema);
    d->libsvm.base = d->schema->index_base;
    d->scanned = true;
    return pli_sources_check(d->sources, err);
}

void pli_dataset_adds_means(pli_dataset *d) { d->adds_means = true; }

plait_status pli_dataset_scan(pli_dataset *d, bool features, pli_pool *pool, plait_error *err) {
    if (d->cached != NULL) return PLAIT_OK; /* the cache knows everything */
    if (d->loaded || d->scanned) return pli_fail(err, PLAIT_EINVAL, "a data set is scanned or loaded, once");
    size_t   own = (size_t)d->own, threads = (size_t)pli_pool_threads(pool);
    scan_job job = { .dataset = d,
                     .features = features,
                     .scratch = pli_calloc(threads, sizeof *job.scratch),
                     .sums = pli_calloc(threads, sizeof *job.sums),
                     .found = pli_calloc(own, sizeof *job.found),
                     .error = pli_calloc(own, sizeof *job.error),
                     .status = pli_calloc(own, sizeof *job.status) };
    if (d->marks == NULL) d->marks = pli_calloc((size_t)d->segments + 1, sizeof *d->marks);
    bool good = job.scratch != NULL && job.sums != NULL && job.found != NULL && job.error != NULL &&
                job.status != NULL && d->marks != NULL;
    plait_status status =
        good ? scan_blocks(&job, pool, err) : pli_fail(err, PLAIT_ENOMEM, "no memory for the list of blocks");
    for (size_t i = 0; job.found != NULL && i < own; i++) pli_found_free(&job.found[i]);
    for (size_t i = 0; job.scratch != NULL && i < threads; i++) pli_rows_free(&job.scratch[i]);
    for (size_t i = 0; job.sums != NULL && i < threads; i++) pli_table_free_sums(&job.sums[i]);
    pli_free(job.sums);
    pli_free(job.scratch);
    pli_free(job.found);
    pli_free(job.error);
    pli_free(job.status);
    return status;
}
