/* plait/checkpoint.h - tables on disk: saved at a moment, listed, looked into, and put back into tables of a later job.
 *
 *     opts.dir = "run.ckpt";                                            each worker, at the same clock:
 *     plait_checkpoint_save(job, tables, n, &opts);                     all tables as they are there
 *
 *     plait_checkpoint_open("run.ckpt", NULL, &checkpoint, &error);     later, in any number of workers:
 *     job_opts.first_clock = plait_checkpoint_clock(checkpoint);
 *     ... plait_job_create, plait_table_create with the same options ...
 *     plait_checkpoint_restore(checkpoint, table, NULL);                each table that is wanted
 *
 * A checkpoint holds a table's values, its update rule's state and up to where lazy penalties are paid, by row or key:
 * so the tables that it is put back into may have other topologies, shards and numbers of workers. docs/checkpoints.md
 * says what lies where, and what is promised when something fails. plait_train writes and reads its own
 * (plait/model.h); their tables may be read and restored from here, too. */
#ifndef PLAIT_CHECKPOINT_H
#define PLAIT_CHECKPOINT_H

#include <plait/table.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- saving -------------------------------------------------------------------------------------- */

typedef struct plait_checkpoint_opts {
    size_t      size; /* set by plait_checkpoint_opts_init                                              */
    const char *dir;  /* made where it is missing; all workers must see it                              */
    const char *note; /* the program's own, UTF-8, as it is on worker 0: plait_checkpoint_note; NULL: "" */
    int32_t     keep; /* complete checkpoints of dir that are kept; default 2                           */
} plait_checkpoint_opts;

PLAIT_API void plait_checkpoint_opts_init(plait_checkpoint_opts *opts);

/** Passes a barrier, saves tables [n] as they are then, and returns when the checkpoint is on disk: whole, or not at
 *  all. Errors: EINVAL; EREFUSED a table of which workers have copies that differ, or that they write without a lock
 *  (async over local), or whose filters round; EIO, ENOSPACE: the checkpoints before are as they were; ENOMEM. The text
 *  is in plait_comm_error of the job's communicator. Where the job has two replicas (plait_job_opts.replicas) and a
 *  worker dies meanwhile, those who live save once more. Collective over the workers, with the same tables and dir. */
PLAIT_API plait_status plait_checkpoint_save(plait_job *job, plait_table *const *tables, int32_t n,
                                             const plait_checkpoint_opts *opts);

/* --- looking ------------------------------------------------------------------------------------- */

typedef struct plait_checkpoint_entry {
    char    folder[40]; /* "checkpoint-000000000500"                              */
    int64_t clock, bytes;
    int32_t parts;
    int     complete; /* 0: cut off while it was written, or damaged: not to be restored */
} plait_checkpoint_entry;

/** What lies in dir, the oldest first: *entries_out [n], freed with plait_comm_free. Errors: EIO; ENOMEM. */
PLAIT_API plait_status plait_checkpoint_list(const char *dir, int64_t *n_out, plait_checkpoint_entry **entries_out,
                                             plait_error *error_out);

typedef struct plait_checkpoint plait_checkpoint;

/** Opens a checkpoint of dir: the one in this folder, or (NULL) the newest that is good, of which every byte is looked
 *  at. Of a named one a tensor's bytes are looked at when they are first read. Errors: ENAME there is none; ECHECKSUM,
 *  EFORMAT damaged (file and tensor are named); EVERSION written by a newer version; EIO; ENOMEM. Not collective: each
 *  worker opens its own, of one folder. */
PLAIT_API plait_status plait_checkpoint_open(const char *dir, const char *folder, plait_checkpoint **checkpoint_out,
                                             plait_error *error_out);
PLAIT_API void         plait_checkpoint_close(plait_checkpoint **checkpoint); /* *checkpoint may be NULL */

PLAIT_API const char *plait_checkpoint_folder(const plait_checkpoint *checkpoint);
PLAIT_API int64_t     plait_checkpoint_clock(const plait_checkpoint *checkpoint);
PLAIT_API const char *plait_checkpoint_note(const plait_checkpoint *checkpoint);

/* A tensor of a checkpoint: "w.values", "w.slot.m", "w.paid", "w.keys". */
typedef struct plait_checkpoint_tensor {
    const char *name, *type; /* type: "F32", "F64", "I64", "U64"; borrowed from the checkpoint */
    int64_t     rows, row_bytes;
} plait_checkpoint_tensor;

/** Tensor i = 0, 1, ..., in order of their names. ENAME: no further one. */
PLAIT_API plait_status plait_checkpoint_tensor_at(const plait_checkpoint *checkpoint, int64_t i,
                                                  plait_checkpoint_tensor *tensor_out);
/** Rows first .. first + rows - 1 of the tensor of this name, into out [rows, row_bytes]. Errors: ENAME; EINVAL rows
 *  outside; ECHECKSUM, EIO. One thread at a time. */
PLAIT_API plait_status plait_checkpoint_read(plait_checkpoint *checkpoint, const char *name, int64_t first,
                                             int64_t rows, void *out, plait_error *error_out);

/* --- putting back -------------------------------------------------------------------------------- */

/** Puts what was saved of a table (of `name`; NULL: of the table's own) back into a table of the same shape, type and
 *  rule, whose job begins at the checkpoint's clock and has not ticked. Returns when all workers have put their part.
 *  Errors: EMISMATCH no such table is in the checkpoint, or of another shape or rule; EINVAL the job has begun at
 *  another clock, or has ticked; ECHECKSUM, EIO; ENOMEM. The text is in plait_comm_error of the job's communicator.
 *  Collective over the workers. */
PLAIT_API plait_status plait_checkpoint_restore(plait_checkpoint *checkpoint, plait_table *table, const char *name);

#ifdef __cplusplus
}
#endif
#endif
