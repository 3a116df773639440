/* base/spool.h - bytes of unknown number, collected once and then read as one piece. A few bytes stay in memory;
 * more go to a file without a name (in $TMPDIR, /var/tmp or /tmp), which is mapped and disappears with the process. */
#ifndef PLI_BASE_SPOOL_H
#define PLI_BASE_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <plait/status.h>

typedef struct pli_spool pli_spool;

/* How much temporary files may take together, for the spools that share it. One thread at a time. */
typedef struct pli_spill {
    int64_t limit_bytes; /* 0: at most as much as stays free on their disk, so that several runs fit */
    int64_t used_bytes;
} pli_spill;

/** More than memory_bytes go to a file. spill is borrowed; NULL: no limit. */
plait_status pli_spool_create(size_t memory_bytes, pli_spill *spill, pli_spool **spool_out, plait_error *err);
/** Errors: ENOMEM, EIO, ENOSPACE. */
plait_status pli_spool_add(pli_spool *spool, const void *data, size_t bytes, plait_error *err);
/** Ends the adding. The bytes stay where they are until destroy, or until more are added. Errors: EIO, ENOSPACE. */
plait_status pli_spool_end(pli_spool *spool, const unsigned char **data_out, size_t *bytes_out, plait_error *err);
bool         pli_spool_is_file(const pli_spool *spool);
void         pli_spool_destroy(pli_spool **spool);

/** A stream that is read once, from front to end: a pipe, or "-", the standard input. read sets *got_out to 0 at its
 *  end. */
plait_status pli_pipe_open(const char *path, int *fd_out, plait_error *err);
plait_status pli_pipe_read(int fd, void *data, size_t bytes, size_t *got_out, plait_error *err);
/** Waits at most `ms` milliseconds (-1: without end) for bytes, or for the end of the stream. A signal may cut it
 *  short. */
bool         pli_pipe_is_ready(int fd, int ms);
void         pli_pipe_close(int fd);

#endif
