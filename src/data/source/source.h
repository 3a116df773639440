/* data/source/source.h - where bytes come from: files, directories, patterns, pipes; plain, gzip, zstd. In the end
 * every source is one piece of readable memory. */
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
    bool                 droppable; /* pages of a file, which can be read again */
    float               *weight;    /* [weights] of FILE.weight; NULL: no such file */
    int64_t              weights;
    struct pli_live     *live;         /* more may come (live.c); NULL: data is the whole */
    int64_t              lines_before; /* of a live one: lines that came before data */
} pli_source;

/* Shared by the data sets of the workers in a process. */
typedef struct pli_sources {
    pli_source     *source;
    int64_t         n, capacity;
    bool            is_pipe; /* the standard input or a pipe: one block */
    pli_spill       spill;   /* how much temporary files of these sources may take together */
    _Atomic int32_t users;
} pli_sources;

/** Lists the files that the paths stand for, one on each line; "-" stands for itself. */
plait_status pli_sources_list(const char *const *paths, int64_t n, pli_text *list, plait_error *err);
/** Opens all of them, in the order given; files of a directory or pattern in order of name. live: of a pipe its front
 *  is enough (live.c). Errors: EIO no such file, or nothing matches; EFORMAT empty, a bad gzip or zstd stream, bytes
 *  that are no text; ENOSPACE more temporary files than spill_limit (0: half of what is free there). */
plait_status pli_sources_open(const char *const *paths, int64_t n, int64_t spill_limit, bool live,
                              pli_sources **sources_out, plait_error *err);
/** Makes one source of text in memory, [bytes], which is borrowed; it is one block, as a pipe is. name: for errors.
 *  Errors: EFORMAT it is empty, is no text, or is a file of another program. */
plait_status pli_sources_of_bytes(const char *name, const char *text, size_t bytes, pli_sources **sources_out,
                                  plait_error *err);
void         pli_sources_release(pli_sources **sources);
/** At the end of a pass: is each mapped file still the one that was opened? Errors: EFORMAT it was written to. */
plait_status pli_sources_check(const pli_sources *sources, plait_error *err);

/** The line (counted from 1) that a byte of a source is in. */
int64_t pli_source_line(const pli_source *source, size_t at);

/** Tells the system that the bytes [from, to) will hardly be read again. */
static inline void pli_source_drop(const pli_source *source, size_t from, size_t to) {
    if (source->droppable) pli_map_drop(source->data + from, to - from);
}

/** Where to begin the next drop, behind one that ended at `to`. The page in which a drop ends is kept, so the next
 *  drop must begin with it (pages are at most 64 KiB). */
static inline size_t pli_drop_again(size_t to) { return to & ~(size_t)0xffff; }

/* --- intake.c --------------------------------------------------------------------------------------------- */
enum { PLI_INTAKE_HEAD = 64, PLI_LINE_BYTES_MAX = 64 << 20 };

/* Bytes on their way into a spool. Initialise it as { .name, .spool }. */
typedef struct pli_intake {
    const char   *name; /* for errors */
    pli_spool    *spool;
    unsigned char head[PLI_INTAKE_HEAD]; /* [held] the first bytes */
    size_t        held;
    bool          judged, binary;
} pli_intake;
/** Adds bytes. Errors: EFORMAT a NUL in text, or another program's file; those of pli_spool_add. */
plait_status pli_intake_add(pli_intake *in, const unsigned char *data, size_t bytes, plait_error *err);
/** Checks that the first bytes have no NUL, unless they are images. Errors: EFORMAT. */
plait_status pli_source_check_text(const char *name, const unsigned char *data, size_t bytes, plait_error *err);
/** Fails with EFORMAT: the byte at this place is NUL. */
plait_status pli_source_found_nul(const pli_source *source, size_t at, plait_error *err);
/** Checks that no line is longer than PLI_LINE_BYTES_MAX. Errors: EFORMAT. */
plait_status pli_source_check_lines(const pli_source *source, plait_error *err);

/* --- live.c ----------------------------------------------------------------------------------------------- */
typedef struct pli_live pli_live;
/** Receives the front of a pipe into spool, or all of it if it ends soon. Takes fd in any case. Errors: those of
 *  pli_intake_add, EIO. */
plait_status pli_live_open(int fd, const char *name, pli_spool *spool, pli_live **live_out, plait_error *err);
/** Receives more, until the front is twice as large or the pipe has ended, or with `all` until it has ended. If it has,
 *  the source is as any other: its live becomes NULL. Not once pli_live_next was called. */
plait_status pli_live_more(pli_source *source, bool all, plait_error *err);
/** Makes data the front's whole lines, or what was received if the pipe has ended. */
plait_status pli_live_take_front(pli_source *source, plait_error *err);
/** The next whole lines, [*from_out, *to_out) of source->data: first those of the front from `begin` on, then those
 *  that come; about a MiB if so much is there. It waits for a line. PLAIT_END: the pipe has ended, or *stop (NULL:
 *  never) is not 0. Errors: EIO, ENOMEM, EFORMAT a line without end. */
plait_status pli_live_next(pli_source *source, size_t begin, const int *stop, size_t *from_out, size_t *to_out,
                           plait_error *err);
/** Would pli_live_next wait for longer than `ms` milliseconds? Has the pipe ended, and was all of it taken? */
bool         pli_live_waits(const pli_live *live, int ms);
bool         pli_live_has_ended(const pli_live *live);
/** Makes data the front again. */
void         pli_live_rewind(pli_source *source);
void         pli_live_close(pli_live **live);

/* --- inflate.c -------------------------------------------------------------------------------------------- */
bool pli_is_packed(const unsigned char *data, size_t bytes);
/** Unpacks gzip (all members) or zstd (all frames). Errors: EFORMAT; those of pli_intake_add. */
plait_status pli_inflate(const unsigned char *data, size_t bytes, pli_intake *in, plait_error *err);

#endif
