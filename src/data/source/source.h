/* data/source/source.h - where bytes come from: files, directories, patterns, pipes; plain, gzip, zstd.
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
    pli_spill       spill;   /* what temporary files of these sources may take together */
    _Atomic int32_t users;
} pli_sources;

/** The files that the paths stand for, a line each; "-" stands for itself. */
plait_status pli_sources_list(const char *const *paths, int64_t n, pli_text *list, plait_error *err);
/** Opens all of them, in the order given; those of a directory or pattern in order of name. Errors: EIO no such file,
 *  nothing matches; EFORMAT empty, a bad gzip or zstd stream, bytes that are no text; ENOSPACE more temporary files
 *  than spill_limit (0: half of what is free there). */
plait_status pli_sources_open(const char *const *paths, int64_t n, int64_t spill_limit, pli_sources **sources_out,
                              plait_error *err);
void         pli_sources_release(pli_sources **sources);
/** At the end of a pass: is each mapped file still the one that was opened? Errors: EFORMAT it was written to. */
plait_status pli_sources_check(const pli_sources *sources, plait_error *err);

/** The line (from 1) of a byte of a source. */
int64_t pli_source_line(const pli_source *source, size_t at);

/** Says that the bytes [from, to) will hardly be read again. */
static inline void pli_source_drop(const pli_source *source, size_t from, size_t to) {
    if (source->droppable) pli_map_drop(source->data + from, to - from);
}

/** Where to begin when dropping on behind `to`: the page in which a drop ends is kept, and would be for ever (the
 *  largest pages that there are: 64 KiB). */
static inline size_t pli_drop_again(size_t to) { return to & ~(size_t)0xffff; }

/* --- intake.c --------------------------------------------------------------------------------------------- */
enum { PLI_INTAKE_HEAD = 64, PLI_LINE_BYTES_MAX = 64 << 20 };

/* Bytes on their way into a spool. Begins as { .name, .spool }. */
typedef struct pli_intake {
    const char   *name; /* for messages */
    pli_spool    *spool;
    unsigned char head[PLI_INTAKE_HEAD]; /* [held] the first ones */
    size_t        held;
    bool          judged, binary;
} pli_intake;
/** Errors: EFORMAT a NUL in text, or another program's file; those of pli_spool_add. */
plait_status pli_intake_add(pli_intake *in, const unsigned char *data, size_t bytes, plait_error *err);
/** No NUL among the first bytes, if these are not images. Errors: EFORMAT. */
plait_status pli_source_check_text(const char *name, const unsigned char *data, size_t bytes, plait_error *err);
/** Fails with EFORMAT: the byte at a place is NUL. */
plait_status pli_source_found_nul(const pli_source *source, size_t at, plait_error *err);
/** No line is longer than PLI_LINE_BYTES_MAX. Errors: EFORMAT. */
plait_status pli_source_check_lines(const pli_source *source, plait_error *err);

/* --- inflate.c -------------------------------------------------------------------------------------------- */
bool pli_is_packed(const unsigned char *data, size_t bytes);
/** Unpacks gzip (all members) or zstd (all frames). Errors: EFORMAT; those of pli_intake_add. */
plait_status pli_inflate(const unsigned char *data, size_t bytes, pli_intake *in, plait_error *err);

#endif
