/* data/cache/cache.h - FILE.plait-cache: the parsed blocks of a data set, in a file beside its first file, which is
 * read by mapping.
 *
 *     "PLAITBLK", padding to 64
 *     each block's arrays, each at a multiple of 64
 *     index: schema (JSON), segments, blocks (where their arrays lie, and their XXH3)
 *     trailer of 64 bytes: version, stamp, fingerprint, place of the index, XXH3 of the index and of the trailer
 *
 * The stamp hashes all that the blocks depend on: names, sizes and times of the files, options, the model's schema,
 * and whether blocks are dealt.
 * A cache with another stamp is stale; a cache with any other fault is damaged; both are built anew. Numbers are
 * little-endian. */
#ifndef PLI_DATA_CACHE_H
#define PLI_DATA_CACHE_H

#include "data/dataset/dataset.h"

/* What a load must know to build a cache. */
typedef struct pli_datacache_wish {
    plait_data_opts opts; /* texts are owned; no paths */
    pli_schema     *fixed;
    char           *path; /* of the cache */
    uint64_t        stamp;
} pli_datacache_wish;

/** Decides by the options whether and where to cache. *wish_out NULL: no cache is wanted, or none is possible. */
plait_status pli_datacache_plan(const plait_data_opts *opts, const pli_schema *fixed, bool dealt,
                                pli_datacache_wish **wish_out, plait_error *err);
void         pli_datacache_forget(pli_datacache_wish **wish);

/** Fills d from the cache and returns true if the cache exists, is whole and has this stamp. Else returns false,
 *  with a note if it was damaged. */
bool pli_datacache_attach(pli_dataset *d, const pli_datacache_wish *wish);
void pli_datacache_detach(pli_dataset *d);
/** Parses d's whole data set in bounded memory and writes the cache. */
plait_status pli_datacache_build(const pli_dataset *d, const pli_datacache_wish *wish, pli_pool *pool,
                                 plait_error *err);

/** Any block of a data set that lives on a cache, borrowed from it. */
plait_status pli_datacache_block(const pli_dataset *d, int32_t block, pli_rows *rows, plait_error *err);

/** At the end of a pass: if d lives on a cache, is that still the file that was mapped? Errors: EFORMAT. */
plait_status pli_datacache_check(const pli_dataset *d, plait_error *err);

/** The data set's fingerprint as the cache keeps it. */
uint64_t pli_datacache_fingerprint(const pli_dataset *d);

/** Reads the bytes of a cache into d, whose worker, workers and dealt are set. Everything is checked; the arrays'
 *  hashes only if `hashes`. Errors: EFORMAT with the fault. For attach, and for fuzzing. */
plait_status pli_datacache_parse(pli_dataset *d, const unsigned char *bytes, size_t n, uint64_t stamp, bool hashes,
                                 plait_error *err);

#endif
