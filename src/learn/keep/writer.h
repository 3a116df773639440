/* learn/writer.h - a thread beside a rank's own that writes one part of a checkpoint after the other, makes its folder
 * and commits it, so that the rank trains on meanwhile: each of these calls may wait for a disk. What is to be written
 * is handed over piece by piece, also before the part is begun. Where ranks are no threads (sim) the caller does all at
 * once.
 *
 * Each call is the rank's own thread's. */
#ifndef PLI_LEARN_WRITER_H
#define PLI_LEARN_WRITER_H

#include <plait/comm.h>

#include "comm/msg.h"
#include "data/checkpoint/checkpoint.h"

typedef struct pli_writer pli_writer;

/* What a part will hold: grown by add, handed to the writer. */
typedef struct pli_part_plan {
    pli_checkpoint_tensor *tensor; /* [n], whose names are name [n] */
    char (*name)[PLI_CHECKPOINT_NAME];
    int64_t n, capacity, name_capacity;
    bool    failed; /* out of memory */
} pli_part_plan;
/** The rows first .. first + rows - 1 of `all` of tensor PREFIX.NAME (NAME "": PREFIX). cols 0: a row is one number. */
void pli_part_plan_add(pli_part_plan *plan, const char *prefix, const char *name, const char *type, int64_t first,
                       int64_t rows, int64_t cols, int64_t all);
void pli_part_plan_free(pli_part_plan *plan);

/** by_thread false: the caller does the work. Errors: ENOMEM, EIO no thread. */
plait_status pli_writer_open(const char *dir, bool by_thread, pli_writer **writer_out, plait_error *err);
/** Gives up what is not written yet. NULL is fine. */
void pli_writer_close(pli_writer **writer);

/** A new checkpoint, of which nothing has failed yet; all that was asked for before is done. */
void pli_writer_start(pli_writer *writer);
/** Gives up the checkpoint at hand: what is not written yet never is. Waits for what is under way. */
void pli_writer_drop(pli_writer *writer);
/** The lead: makes the folder of a checkpoint of this clock. */
void pli_writer_make_folder(pli_writer *writer, int64_t clock);
bool pli_writer_folder_is_made(pli_writer *writer);
/** Its name, then; "": it could not be made. */
const char *pli_writer_folder(const pli_writer *writer);
/** More bytes of the part: a message's body (taken). */
void pli_writer_put(pli_writer *writer, pli_msg *bytes);
/** How many bytes wait to be written. */
int64_t pli_writer_behind(pli_writer *writer);
/** Begins the part in this folder. plan: taken. */
void pli_writer_begin(pli_writer *writer, const char *folder, int32_t part, int32_t parts, pli_part_plan *plan);
/** No more comes: the part is to be ended. */
void pli_writer_finish(pli_writer *writer);
/** All parts are there: their digests go to the lead, whose writer commits them with *meta (the lead's; taken, if it
 *  succeeds). The newest `keep` stay. absent: how many workers have no part (pli_comm_absent at the cut); where more
 *  are missing by now, *whole_out is false on all and nothing is committed. Collective over the workers. Errors:
 *  ENOMEM, and those of an allgather. */
plait_status pli_writer_commit(pli_writer *writer, plait_comm *comm, int32_t absent, char **meta, int32_t keep,
                               bool *whole_out, plait_error *err);

/** Is all done that was asked for? Waits for it, if wait is set. */
bool pli_writer_is_done(pli_writer *writer, bool wait);
/** What went wrong since start; PLAIT_OK: nothing yet. Does not wait. err may be NULL. */
plait_status pli_writer_status(pli_writer *writer, plait_error *err);

#endif
