/* learn/keep/writer.h - a thread beside a rank's own that writes the rank's parts of checkpoints, one after the other,
 * and on the lead makes their folders and commits them. The rank trains on meanwhile, since each of these may wait for
 * a disk. The rank hands over the bytes piece by piece, and may do so before the part is begun. Under sim, where ranks
 * are no threads, the caller does the work at once.
 *
 * The rank's own thread makes all these calls. */
#ifndef PLI_LEARN_WRITER_H
#define PLI_LEARN_WRITER_H

#include <plait/comm.h>

#include "comm/msg.h"
#include "data/checkpoint/checkpoint.h"

typedef struct pli_writer pli_writer;

/* The tensors that a part will hold: filled by add, then handed to the writer. */
typedef struct pli_part_plan {
    pli_checkpoint_tensor *tensor; /* [n], whose names are name [n] */
    char (*name)[PLI_CHECKPOINT_NAME];
    int64_t n, capacity, name_capacity;
    bool    failed; /* out of memory */
} pli_part_plan;
/** Adds rows first .. first + rows - 1, of `all` rows, of tensor PREFIX.NAME (NAME "": PREFIX). cols 0: a row is one
 *  number. */
void pli_part_plan_add(pli_part_plan *plan, const char *prefix, const char *name, const char *type, int64_t first,
                       int64_t rows, int64_t cols, int64_t all);
void pli_part_plan_free(pli_part_plan *plan);

/** by_thread false: the caller does the work. Errors: ENOMEM, EIO no thread. */
plait_status pli_writer_open(const char *dir, bool by_thread, pli_writer **writer_out, plait_error *err);
/** Ends the writer; drops what is not written yet. NULL is fine. */
void pli_writer_close(pli_writer **writer);

/** Begins a new checkpoint: waits until everything asked for before is done, and forgets its error. */
void pli_writer_start(pli_writer *writer);
/** Drops the checkpoint at hand: what is not written yet never will be. Waits for the write under way. */
void pli_writer_drop(pli_writer *writer);
/** The lead: makes the folder of a checkpoint of this clock. */
void pli_writer_make_folder(pli_writer *writer, int64_t clock);
bool pli_writer_folder_is_made(pli_writer *writer);
/** Once it is made, its name; "": it could not be made. */
const char *pli_writer_folder(const pli_writer *writer);
/** Adds a message's body to the bytes of the part; takes the message. */
void pli_writer_put(pli_writer *writer, pli_msg *bytes);
/** How many bytes wait to be written. */
int64_t pli_writer_behind(pli_writer *writer);
/** Begins the part in this folder. plan: taken. */
void pli_writer_begin(pli_writer *writer, const char *folder, int32_t part, int32_t parts, pli_part_plan *plan);
/** No more bytes come: the writer ends the part. */
void pli_writer_finish(pli_writer *writer);
/** All parts are there: the lead gets their digests, and its writer commits them with *meta (the lead's; taken, if the
 *  call succeeds). The newest `keep` checkpoints stay. absent: how many workers have no part (pli_comm_absent at the
 *  cut). If more are missing by now, *whole_out is false on all and nothing is committed. Collective over the workers.
 *  Errors: ENOMEM, and those of an allgather. */
plait_status pli_writer_commit(pli_writer *writer, plait_comm *comm, int32_t absent, char **meta, int32_t keep,
                               bool *whole_out, plait_error *err);

/** Is everything done that was asked for? wait: waits until it is. */
bool pli_writer_is_done(pli_writer *writer, bool wait);
/** The first error since start; PLAIT_OK: none yet. Does not wait. err may be NULL. */
plait_status pli_writer_status(pli_writer *writer, plait_error *err);

#endif
