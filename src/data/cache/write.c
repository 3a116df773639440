/* Builds a cache: all blocks are parsed in turn and written one behind the other, then the index. */
#include <string.h>

#include "data/cache/layout.h"
#include "data/dataset/batches.h"

typedef struct writer {
    pli_outfile  *file;
    uint64_t      at;
    pli_cache_record *record; /* [blocks] */
} writer;

static plait_status put(writer *w, const void *data, size_t bytes, plait_error *err) {
    w->at += bytes;
    return bytes > 0 ? pli_outfile_write(w->file, data, bytes, err) : PLAIT_OK;
}

static plait_status pad(writer *w, size_t to, plait_error *err) {
    static const char zeros[PLI_CACHE_ALIGN];
    return put(w, zeros, (to - w->at % to) % to, err);
}

static plait_status put_block(writer *w, const pli_block *b, pli_cache_record *r, plait_error *err) {
    const void *array[PLI_CACHE_ARRAYS] = { b->row_start, b->col, b->key, b->value, b->label, b->weight };
    *r = (pli_cache_record){ .number = b->number, .first_row = b->first_row, .rows = b->rows, .entries = b->entries };
    for (int k = 0; k < PLI_CACHE_ARRAYS; k++) {
        if (array[k] == NULL) continue;
        size_t bytes = (size_t)pli_cache_count(r, k) * pli_cache_fields[k].bytes;
        PLI_TRY(pad(w, PLI_CACHE_ALIGN, err));
        r->at[k] = w->at;
        r->hash = pli_hash_bytes(array[k], bytes, r->hash);
        PLI_TRY(put(w, array[k], bytes, err));
    }
    return PLAIT_OK;
}

static plait_status put_index(writer *w, const pli_dataset *d, const pli_datacache_wish *wish, plait_error *err) {
    pli_text   index = { 0 }, schema = { 0 };
    pli_cache_trailer    t = { .version = PLI_CACHE_VERSION,
                     .stamp = wish->stamp,
                     .fingerprint = pli_dataset_fingerprint(d),
                     .n_blocks = (uint64_t)d->blocks };
    pli_cache_index head = { .segments = (uint64_t)d->segments, .blocks = (uint64_t)d->blocks };
    memcpy(t.magic, pli_cache_magic, sizeof pli_cache_magic);
    plait_status status = pli_schema_write(d->schema, &schema, err);
    if (status == PLAIT_OK) {
        head.schema_bytes = schema.length;
        pli_text_add_bytes(&index, &head, sizeof head);
        pli_text_add_bytes(&index, schema.data, schema.length);
        pli_text_add_bytes(&index, "\0\0\0\0\0\0\0", (8 - schema.length % 8) % 8);
        pli_text_add_bytes(&index, d->segment, (size_t)d->segments * sizeof *d->segment);
        pli_text_add_bytes(&index, w->record, (size_t)d->blocks * sizeof *w->record);
        if (index.failed) status = pli_fail(err, PLAIT_ENOMEM, "no memory for a cache");
    }
    if (status == PLAIT_OK) status = pad(w, PLI_CACHE_ALIGN, err);
    t.index_at = w->at;
    t.index_bytes = index.length;
    if (status == PLAIT_OK) t.index_hash = pli_cache_index_hash(&t, index.data);
    if (status == PLAIT_OK) status = put(w, index.data, index.length, err);
    if (status == PLAIT_OK) status = put(w, &t, sizeof t, err);
    pli_text_free(&index);
    pli_text_free(&schema);
    return status;
}

/* Opens the whole data set, scans it, and agrees it with itself. */
static plait_status open_whole(const pli_dataset *beside, const pli_datacache_wish *wish, pli_pool *pool,
                               pli_dataset **out, plait_error *err) {
    pli_schema *joined = NULL;
    PLI_TRY(pli_dataset_open_beside(beside, &wish->opts, wish->fixed, 0, 1, out, err));
    PLI_TRY(pli_dataset_scan(*out, true, pool, err));
    const pli_schema *part = pli_dataset_schema(*out);
    PLI_TRY(pli_schema_merge(&part, 1, &joined, err));
    plait_status status = pli_dataset_agree(*out, joined, err);
    pli_schema_destroy(&joined);
    return status;
}

/* Parses the blocks, each as a stream of one clock, and writes them. Parsing one block while another is written
 * would gain little: the disk is slower. */
static plait_status put_blocks(writer *w, pli_dataset *all, const pli_datacache_wish *wish, pli_pool *pool,
                               plait_error *err) {
    pli_batches *stream = NULL;
    plait_status status = pli_batches_stream(all, all->schema->rows, pool, &stream, err);
    for (int32_t b = 0; status == PLAIT_OK && b < all->blocks; b++) {
        pli_part part;
        status = pli_stream_part(stream, 0, b, 0, &part, err);
        if (status == PLAIT_OK) status = put_block(w, part.block, &w->record[b], err);
    }
    if (status == PLAIT_OK) status = put_index(w, all, wish, err);
    pli_batches_destroy(&stream);
    return status;
}

static plait_status write_cache(pli_dataset *all, const pli_datacache_wish *wish, pli_pool *pool, plait_error *err) {
    writer w = { .record = pli_calloc((size_t)all->blocks, sizeof *w.record) };
    if (w.record == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a cache");
    plait_status status = pli_outfile_open(wish->path, &w.file, err);
    if (status == PLAIT_OK) {
        status = put(&w, pli_cache_magic, sizeof pli_cache_magic, err);
        if (status == PLAIT_OK) status = put_blocks(&w, all, wish, pool, err);
        if (status == PLAIT_OK)
            status = pli_outfile_commit(&w.file, err);
        else
            pli_outfile_abandon(&w.file);
    }
    pli_free(w.record);
    return status;
}

plait_status pli_datacache_build(const pli_dataset *d, const pli_datacache_wish *wish, pli_pool *pool,
                                 plait_error *err) {
    pli_dataset *all = NULL;
    plait_status status = open_whole(d, wish, pool, &all, err);
    if (status == PLAIT_OK) status = write_cache(all, wish, pool, err);
    pli_dataset_destroy(&all);
    return status;
}
