/* Maps a cache, and checks that everything in it is possible; cache.h has its layout. */
#include "data/cache/cache.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "data/cache/layout.h"

struct pli_datacache {
    pli_mapped              mapped;
    const char             *path; /* borrowed from the wish, which outlives it */
    uint64_t                fingerprint;
    const pli_cache_record *record; /* [blocks], in the mapping */
};

typedef struct view {
    const unsigned char *bytes;
    size_t               n;
} view;

static plait_status damaged(plait_error *err, const char *what) { return pli_fail(err, PLAIT_EFORMAT, "%s", what); }

/* A run of count items of `bytes` each at a place of the file; NULL: it is not inside the file, or not aligned. */
static const void *piece(const view *v, uint64_t at, uint64_t count, size_t bytes) {
    uint64_t length;
    if (at == 0 || at % 8 != 0 || at > v->n || __builtin_mul_overflow(count, bytes, &length) || length > v->n - at)
        return NULL;
    return v->bytes + at;
}

/* Are the keys features, and do they increase within each row? They do if there are no more places where they fall
 * than there are beginnings of rows. (Counting these needs no branch in the loop over entries.) */
static bool has_sound_keys(const pli_block *b, int64_t features) {
    int64_t falls = 0;
    for (int64_t i = 1; b->col != NULL && i < b->entries; i++) falls += b->col[i] <= b->col[i - 1];
    for (int64_t i = 1; b->key != NULL && i < b->entries; i++) falls += b->key[i] <= b->key[i - 1];
    for (int64_t row = 0; row < b->rows; row++) {
        const int64_t from = b->row_start[row], to = b->row_start[row + 1];
        if (to == from) continue;
        if (from > 0) falls -= pli_block_key(b, from) <= pli_block_key(b, from - 1);
        if (pli_block_key(b, to - 1) >= (uint64_t)features) return false;
    }
    return falls == 0;
}

static bool is_sound_value(float value, const pli_schema *schema) {
    return fabsf(value) <= FLT_MAX || (isnan(value) && schema->keeps_missing);
}

/* Are the numbers as a parser would accept them? Values and weights must be finite, labels NaN (none) or finite;
 * text labels must be places in the dictionary. */
static bool has_sound_numbers(const pli_block *b, const pli_schema *schema) {
    const pli_column *column = pli_schema_label_column(schema);
    const bool        texts = schema->label_kind == PLI_LABEL_TEXT && column != NULL;
    const double      top = texts ? (double)column->dict.n : INFINITY;
    int64_t           bad = 0;
    for (int64_t i = 0; b->value != NULL && i < b->entries; i++) bad += !is_sound_value(b->value[i], schema);
    for (int64_t i = 0; b->weight != NULL && i < b->rows; i++) bad += !(b->weight[i] >= 0 && b->weight[i] <= FLT_MAX);
    for (int64_t i = 0; i < b->rows; i++) bad += fabs(b->label[i]) >= top || (texts && b->label[i] < 0);
    return bad == 0;
}

/* Are the arrays consistent: rows follow one another, and keys are features? */
static bool is_sound(const pli_block *b, const pli_schema *schema) {
    if (b->row_start[0] != 0 || b->row_start[b->rows] != b->entries) return false;
    for (int64_t i = 0; i < b->rows; i++)
        if (b->row_start[i + 1] < b->row_start[i]) return false;
    return has_sound_keys(b, schema->features) && has_sound_numbers(b, schema);
}

static plait_status take_block(const view *v, const pli_cache_record *r, bool hashes, const pli_schema *schema,
                               pli_rows *rows, plait_error *err) {
    const void *array[PLI_CACHE_ARRAYS] = { NULL };
    uint64_t    hash = 0;
    if (r->rows < 0 || r->entries < 0 || r->rows == INT64_MAX) return damaged(err, "a block has impossible sizes");
    for (int k = 0; k < PLI_CACHE_ARRAYS; k++) {
        array[k] = r->at[k] != 0 ? piece(v, r->at[k], pli_cache_count(r, k), pli_cache_fields[k].bytes) : NULL;
        if (r->at[k] != 0 && array[k] == NULL) return damaged(err, "a block leaves the file");
        if (array[k] != NULL && hashes)
            hash = pli_hash_bytes(array[k], pli_cache_count(r, k) * pli_cache_fields[k].bytes, hash);
    }
    if (hashes && hash != r->hash) return damaged(err, "the checksum of a block does not fit");
    if (array[0] == NULL || array[4] == NULL || (array[1] == NULL) == (array[2] == NULL))
        return damaged(err, "a block lacks an array");
    rows->b = (pli_block){ .number = r->number,
                           .first_row = r->first_row,
                           .rows = r->rows,
                           .entries = r->entries,
                           .row_start = (int64_t *)(uintptr_t)array[0],
                           .col = (uint32_t *)(uintptr_t)array[1],
                           .key = (uint64_t *)(uintptr_t)array[2],
                           .value = (float *)(uintptr_t)array[3],
                           .label = (double *)(uintptr_t)array[4],
                           .weight = (float *)(uintptr_t)array[5] };
    return is_sound(&rows->b, schema) ? PLAIT_OK : damaged(err, "a block is not consistent");
}

/* Do the arrays of a record lie behind those of the record before, so that no two blocks share any? *end: the end so
 * far. */
static bool takes_its_turn(const pli_cache_record *r, uint64_t *end) {
    for (int k = 0; k < PLI_CACHE_ARRAYS; k++) {
        if (r->at[k] == 0) continue;
        if (r->at[k] < *end) return false;
        *end = r->at[k] + pli_cache_count(r, k) * pli_cache_fields[k].bytes;
    }
    return true;
}

/* Each record must be that of the block in its place, with as many rows as its segments have, behind the rows of the
 * pieces before its own: a worker's use of a block (its permutation, the rows that are held back) depends on these
 * numbers. */
static plait_status check_records(const pli_dataset *d, const pli_cache_record *record, plait_error *err) {
    uint64_t end = sizeof pli_cache_magic;
    for (int32_t b = 0; b < d->blocks; b++) {
        const pli_cache_record *r = &record[b];
        const pli_run_of_segments own = pli_segments_of(d, b);
        const int64_t             row = pli_first_row_of(d, b, d->schema->segment_rows);
        int64_t                   rows = 0;
        for (int64_t i = own.from; i < own.to; i++) rows += d->schema->segment_rows[i];
        if (r->number != b)
            return pli_fail(err, PLAIT_EFORMAT, "in the place of block %d stands block %lld", b, (long long)r->number);
        if (r->first_row != row || r->rows != rows)
            return pli_fail(err, PLAIT_EFORMAT, "block %d has rows %lld and %lld more, not %lld and %lld more", b,
                            (long long)r->first_row, (long long)r->rows, (long long)row, (long long)rows);
        if (r->entries < 0) return pli_fail(err, PLAIT_EFORMAT, "block %d has an impossible size", b);
        if (!takes_its_turn(r, &end))
            return pli_fail(err, PLAIT_EFORMAT, "block %d lies among the arrays of another", b);
    }
    return PLAIT_OK;
}

/* Takes the schema as one part of several: it counts rows of the own blocks only, so that the workers' parts add up. */
static plait_status take_schema(pli_dataset *d, const view *v, uint64_t at, uint64_t bytes,
                                const pli_cache_record *record, plait_error *err) {
    const char *text = piece(v, at, bytes, 1);
    if (text == NULL) return damaged(err, "the schema leaves the file");
    PLI_TRY(pli_schema_read(text, (size_t)bytes, &d->schema, err));
    if (d->schema->segments != d->segments) return damaged(err, "the schema does not fit the blocks");
    PLI_TRY(check_records(d, record, err));
    int64_t *mine = pli_calloc((size_t)d->segments + 1, sizeof *mine);
    if (mine == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a cache");
    d->schema->rows = 0;
    for (int32_t b = d->first; b < d->first + d->own; b++) {
        const pli_run_of_segments own = pli_segments_of(d, b);
        for (int64_t i = own.from; i < own.to; i++) d->schema->rows += mine[i] = d->schema->segment_rows[i];
    }
    pli_free(d->schema->segment_rows);
    d->schema->segment_rows = mine;
    return PLAIT_OK;
}

static plait_status take_segments(pli_dataset *d, const pli_segment *segment, plait_error *err) {
    d->segment = pli_array((size_t)d->segments, sizeof *d->segment);
    d->piece_segment = pli_array((size_t)d->blocks + 1, sizeof *d->piece_segment);
    if (d->segment == NULL || d->piece_segment == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a cache");
    if (d->segments > 0) memcpy(d->segment, segment, (size_t)d->segments * sizeof *segment);
    for (int64_t i = 0; i < d->segments; i++)
        if (segment[i].piece < (i > 0 ? segment[i - 1].piece : 0) || segment[i].piece >= d->blocks)
            return damaged(err, "segments are out of order");
    int64_t at = 0;
    for (int32_t p = 0; p <= d->blocks; p++) {
        while (at < d->segments && d->segment[at].piece < p) at++;
        d->piece_segment[p] = at;
    }
    return pli_dataset_deal(d, err);
}

plait_status pli_datacache_parse(pli_dataset *d, const unsigned char *bytes, size_t n, uint64_t stamp, bool hashes,
                                 plait_error *err) {
    view    v = { bytes, n };
    pli_cache_trailer t;
    if (n < 128 || n % 8 != 0 || memcmp(bytes, pli_cache_magic, sizeof pli_cache_magic) != 0)
        return damaged(err, "it is no cache");
    memcpy(&t, bytes + n - sizeof t, sizeof t);
    if (memcmp(t.magic, pli_cache_magic, sizeof pli_cache_magic) != 0) return damaged(err, "it is cut short");
    if (t.version != PLI_CACHE_VERSION) return damaged(err, "it has another version");
    if (t.stamp != stamp) return PLAIT_END; /* the cache is stale */
    const unsigned char *index = piece(&v, t.index_at, t.index_bytes, 1);
    pli_cache_index           head;
    if (index == NULL || t.index_bytes < sizeof head || t.index_bytes % 8 != 0)
        return damaged(err, "its index leaves the file");
    if (hashes && pli_cache_index_hash(&t, index) != t.index_hash)
        return damaged(err, "the checksum of its index does not fit");
    memcpy(&head, index, sizeof head);
    uint64_t schema_at = t.index_at + sizeof head, room = t.index_bytes;
    if (head.schema_bytes > room || head.segments > room || head.blocks > room || head.blocks != t.n_blocks ||
        head.blocks < 1 || head.blocks > INT32_MAX)
        return damaged(err, "its index has impossible sizes");
    uint64_t            segments_at = schema_at + (head.schema_bytes + 7) / 8 * 8;
    uint64_t            blocks_at = segments_at + head.segments * sizeof(pli_segment);
    const pli_segment  *segment = piece(&v, segments_at, head.segments, sizeof *segment);
    const pli_cache_record *record = piece(&v, blocks_at, head.blocks, sizeof *record);
    if (segment == NULL || record == NULL) return damaged(err, "its index is cut short");
    d->blocks = (int32_t)head.blocks;
    d->segments = (int64_t)head.segments;
    pli_dataset_own(d);
    PLI_TRY(take_segments(d, segment, err));
    PLI_TRY(take_schema(d, &v, schema_at, head.schema_bytes, record, err));
    d->rows = pli_calloc((size_t)d->own, sizeof *d->rows);
    d->cached = pli_calloc(1, sizeof *d->cached);
    if (d->rows == NULL || d->cached == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a cache");
    d->cached->fingerprint = t.fingerprint;
    d->cached->record = record;
    for (int32_t i = 0; i < d->own; i++)
        PLI_TRY(take_block(&v, &record[d->first + i], hashes, d->schema, &d->rows[i], err));
    d->loaded = true;
    return PLAIT_OK;
}

bool pli_datacache_attach(pli_dataset *d, const pli_datacache_wish *wish) {
    pli_mapped  mapped;
    plait_error err = { .code = PLAIT_OK };
    if (!pli_file_exists(wish->path) || pli_map_file(wish->path, &mapped, &err) != PLAIT_OK) return false;
    plait_status status = pli_datacache_parse(d, mapped.data, mapped.bytes, wish->stamp, true, &err);
    if (status == PLAIT_OK) {
        d->cached->mapped = mapped;
        d->cached->path = wish->path;
        return true;
    }
    pli_unmap_file(&mapped);
    pli_datacache_detach(d);
    if (status == PLAIT_END)
        pli_dataset_note(d, "%s: the cache belongs to other data or options, and is written anew", wish->path);
    else
        pli_dataset_note(d, "%s: the cache is damaged (%s), and is written anew", wish->path, err.text);
    return false;
}

plait_status pli_datacache_block(const pli_dataset *d, int32_t block, pli_rows *rows, plait_error *err) {
    const view v = { d->cached->mapped.data, d->cached->mapped.bytes };
    return take_block(&v, &d->cached->record[block], true, d->schema, rows, err);
}

plait_status pli_datacache_check(const pli_dataset *d, plait_error *err) {
    if (d->cached == NULL) return PLAIT_OK;
    plait_status status = pli_map_check(d->cached->path, &d->cached->mapped, err);
    return status < 0 ? pli_fail_at(err, "cache of the data") : PLAIT_OK;
}

/* Makes d again a data set for which nothing was opened. */
void pli_datacache_detach(pli_dataset *d) {
    if (d->cached != NULL && d->cached->mapped.data != NULL) pli_unmap_file(&d->cached->mapped);
    pli_free(d->cached);
    pli_free(d->rows);
    pli_free(d->segment);
    pli_free(d->piece_segment);
    pli_free(d->piece);
    pli_schema_destroy(&d->schema);
    d->cached = NULL;
    d->rows = NULL;
    d->segment = NULL;
    d->piece_segment = NULL;
    d->piece = NULL;
    d->segments = 0;
    d->loaded = false;
}

uint64_t pli_datacache_fingerprint(const pli_dataset *d) { return d->cached->fingerprint; }
