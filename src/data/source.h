/* data/source.h - where bytes come from: files, directories, patterns, pipes; plain, gzip, zstd.
 * Whatever it was, a source is one piece of readable memory in the end. */
#ifndef PLI_DATA_SOURCE_H
#define PLI_DATA_SOURCE_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/spool.h"

typedef struct pli_source {
    char                *path;
    const unsigned char *data;
    size_t               bytes; /* unpacked */
    size_t               begin; /* behind a byte-order mark */
    pli_mapped           mapped;
    pli_spool           *spool;
    bool                 droppable; /* pages of a file: they can be had again */
    float               *weight;    /* [weights] of FILE.weight; NULL: no such file */
    int64_t              weights;
} pli_source;

/* Shared by the datasets of one process's workers. */
typedef struct pli_sources {
    pli_source     *source;
    int64_t         n, capacity;
    bool            is_pipe; /* the standard input or a pipe: one block */
    _Atomic int32_t users;
} pli_sources;

/** The files that the paths stand for, a line each; "-" stands for itself. */
plait_status pli_sources_list(const char *const *paths, int64_t n, pli_text *list, plait_error *err);
/** Opens all of them, in the order given; those of a directory or pattern in order of name. Errors: EIO no such file,
 *  nothing matches; EFORMAT empty, a bad gzip or zstd stream. */
plait_status pli_sources_open(const char *const *paths, int64_t n, pli_sources **sources_out, plait_error *err);
void         pli_sources_release(pli_sources **sources);

/** The line (from 1) of a byte of a source. */
int64_t pli_source_line(const pli_source *source, size_t at);

/** Says that the bytes [from, to) will hardly be read again. */
static inline void pli_source_drop(const pli_source *source, size_t from, size_t to) {
    if (source->droppable) pli_map_drop(source->data + from, to - from);
}

/** Where to begin when dropping on behind `to`: the page in which a drop ends is kept, and would be for ever (the
 *  largest pages that there are: 64 KiB). */
static inline size_t pli_drop_again(size_t to) { return to & ~(size_t)0xffff; }

/* --- inflate.c -------------------------------------------------------------------------------------------- */
bool pli_is_packed(const unsigned char *data, size_t bytes);
/** Unpacks gzip (all members) or zstd (all frames) into spool. name is for messages. Errors: EFORMAT. */
plait_status pli_inflate(const char *name, const unsigned char *data, size_t bytes, pli_spool *spool, plait_error *err);

#endif
