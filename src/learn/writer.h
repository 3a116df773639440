/* learn/writer.h - a thread beside a rank's own that writes one part of a checkpoint after the other, and commits it, so
 * that the rank trains on meanwhile. What is to be written is handed over piece by piece; who hands over faster than the
 * disk takes is told to wait with more. Where ranks are no threads (sim) everything is done at once by the caller.
 *
 * Each call is the rank's own thread's. */
#ifndef PLI_LEARN_WRITER_H
#define PLI_LEARN_WRITER_H

#include <plait/comm.h>

#include "comm/msg.h"
#include "data/checkpoint.h"

typedef struct pli_writer pli_writer;

/** by_thread false: the caller does the work. Errors: ENOMEM, EIO no thread. */
plait_status pli_writer_open(bool by_thread, pli_writer **writer_out, plait_error *err);
/** Gives up what is not written yet. NULL is fine. */
void pli_writer_close(pli_writer **writer);

/** The next part. Nothing of an earlier one is under way. part: taken; NULL: of a rank that has none, why says the reason. */
void pli_writer_begin(pli_writer *writer, pli_partfile *part, const plait_error *why);
/** More bytes of the part: a message's body (taken). */
void pli_writer_put(pli_writer *writer, pli_msg *bytes);
/** How many bytes wait to be written. */
int64_t pli_writer_behind(pli_writer *writer);
/** No more comes: the part is to be ended. */
void pli_writer_finish(pli_writer *writer);
/** The lead: all parts are there. digests [n], taken; meta, taken. Keeps so many. */
void pli_writer_commit(pli_writer *writer, const char *dir, const char *folder, char *meta, void *digests,
                       const char *const *digest, int32_t n, int32_t keep);

/** Is what was asked for last (finish, commit) done? Waits for it, if wait is set. */
bool pli_writer_is_done(pli_writer *writer, bool wait);
/** What went wrong since begin; PLAIT_OK: nothing. When it is done. */
plait_status pli_writer_status(pli_writer *writer, plait_error *err);
/** Of the part that was finished: plain text, NUL-terminated, until the next begins. */
const char *pli_writer_digest(const pli_writer *writer);

#endif
