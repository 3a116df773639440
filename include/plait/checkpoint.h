/* plait/checkpoint.h - checkpoints: save tables to disk, list and read what is there, restore tables in a later job.
 *
 *     opts.dir = "run.ckpt";                                            each worker, at the same clock:
 *     plait_checkpoint_save(job, tables, n, &opts);                     saves all tables as they are then
 *
 *     plait_checkpoint_open("run.ckpt", NULL, &checkpoint, &error);     later, in any number of workers:
 *     job_opts.first_clock = plait_checkpoint_clock(checkpoint);
 *     ... plait_job_create, plait_table_create with the same options ...
 *     plait_checkpoint_restore(checkpoint, table, NULL);                each table that is wanted
 *
 *     plait_checkpoint_load(checkpoint, table, NULL);                   or, in a job that goes on, at any clock
 *
 * A checkpoint holds, by row or key, a table's values, its update rule's state, and the clock up to which lazy
 * penalties are applied. So the tables restored from it may have other topologies, shards and numbers of workers.
 * docs/checkpoints.md describes the files, and what is promised when something fails. plait_train writes and reads its
 * own checkpoints (plait/train.h); their tables, too, can be read and restored by these calls. */
#ifndef PLAIT_CHECKPOINT_H
#define PLAIT_CHECKPOINT_H

#include <plait/session.h>
#include <plait/table.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- saving -------------------------------------------------------------------------------------- */

typedef struct plait_checkpoint_opts {
    size_t      size; /* set by plait_checkpoint_opts_init                                              */
    const char *dir;  /* created if it is missing; all workers must see it                              */
    const char *note; /* any UTF-8 text, taken from worker 0, for plait_checkpoint_note; NULL: ""       */
    int32_t     keep; /* how many complete checkpoints of dir are kept; default 2                       */
} plait_checkpoint_opts;

PLAIT_API void plait_checkpoint_opts_init(plait_checkpoint_opts *opts);
/** The same for a struct of `size` bytes: that of a program that was compiled for an older or newer version. */
PLAIT_API void plait_checkpoint_opts_init_sized(plait_checkpoint_opts *opts, size_t size);
#define plait_checkpoint_opts_init(opts) plait_checkpoint_opts_init_sized(opts, sizeof(plait_checkpoint_opts))

/** Passes a barrier, saves tables [n] as they are then, and returns when the checkpoint is on disk: whole, or not at
 *  all. Errors: EINVAL; EREFUSED workers have copies of a table that differ, or write it without a lock (async over
 *  local); EIO, ENOSPACE: earlier checkpoints are unchanged; ENOMEM. The text is in
 *  plait_comm_error of the job's communicator. If the job has two replicas (plait_job_opts.replicas) and a
 *  worker dies meanwhile, the living workers save again. Collective over the workers, with the same tables and dir; but
 *  of groups' tables each worker gives those in which it takes part, so n may be 0. Then also EINVAL: two groups have
 *  tables of one name; EMISMATCH: the workers are in different clocks. */
PLAIT_API plait_status plait_checkpoint_save(plait_job *job, plait_table *const *tables, int32_t n,
                                             const plait_checkpoint_opts *opts);

/* --- reading ------------------------------------------------------------------------------------- */

typedef struct plait_checkpoint_entry {
    char    folder[40]; /* "checkpoint-000000000500"                              */
    int64_t clock, bytes;
    int32_t parts;
    int     complete; /* 0: it was cut off while it was written, or is damaged: it cannot be restored */
} plait_checkpoint_entry;

/** Lists the checkpoints in dir, the oldest first: *entries_out [n], freed with plait_comm_free. Errors: EIO;
 *  ENOMEM. */
PLAIT_API plait_status plait_checkpoint_list(const char *dir, int64_t *n_out, plait_checkpoint_entry **entries_out,
                                             plait_error *error_out);

typedef struct plait_checkpoint plait_checkpoint;

/** Opens the checkpoint in this folder of dir; a tensor's bytes are checked when they are first read. folder NULL:
 *  opens the newest checkpoint that is good, and checks all its bytes now. Errors: ENAME there is none; ECHECKSUM,
 *  EFORMAT damaged (file and tensor are named); EVERSION written by a newer version; EIO; ENOMEM. Not collective: each
 *  worker opens the same folder for itself. */
PLAIT_API plait_status plait_checkpoint_open(const char *dir, const char *folder, plait_checkpoint **checkpoint_out,
                                             plait_error *error_out);
PLAIT_API void         plait_checkpoint_close(plait_checkpoint **checkpoint); /* *checkpoint may be NULL */

PLAIT_API const char *plait_checkpoint_folder(const plait_checkpoint *checkpoint);
PLAIT_API int64_t     plait_checkpoint_clock(const plait_checkpoint *checkpoint);
PLAIT_API const char *plait_checkpoint_note(const plait_checkpoint *checkpoint);

/* A tensor of a checkpoint: "w.values", "w.slot.m", "w.paid", "w.keys"; what filters have kept of worker 3's updates:
 * "w.rest.3", "w.rest_keys.3". */
typedef struct plait_checkpoint_tensor {
    const char *name, *type; /* type: "F32", "F64", "I64", "U64"; borrowed from the checkpoint */
    int64_t     rows, row_bytes;
} plait_checkpoint_tensor;

/** Tensor i = 0, 1, ..., in order of names. ENAME: there are no more. */
PLAIT_API plait_status plait_checkpoint_tensor_at(const plait_checkpoint *checkpoint, int64_t i,
                                                  plait_checkpoint_tensor *tensor_out);
/** Reads rows first .. first + rows - 1 of the tensor of this name into out [rows, row_bytes]. Errors: ENAME; EINVAL
 *  rows out of range; ECHECKSUM, EIO. One thread at a time. */
PLAIT_API plait_status plait_checkpoint_read(plait_checkpoint *checkpoint, const char *name, int64_t first,
                                             int64_t rows, void *out, plait_error *error_out);

/* --- restoring ----------------------------------------------------------------------------------- */

/** Restores a table from the saved table called `name` (NULL: the table's own name), which has the same shape, type and
 *  rule. The job begins at the checkpoint's clock, and has not ended a clock yet. Returns when all workers have
 *  restored their part. What filters had kept of updates goes to the workers again, unless the table's filters keep
 *  nothing: then it is lost. Errors: EMISMATCH no such table is in the checkpoint, or it has another shape or rule;
 *  EINVAL the job began at another clock, or has ended a clock; ECHECKSUM, EIO; ENOMEM. The text is in plait_comm_error
 *  of the job's communicator. Collective over the workers, or over the members of the table's group; the saved table
 *  may have belonged to any group, or to all workers. */
PLAIT_API plait_status plait_checkpoint_restore(plait_checkpoint *checkpoint, plait_table *table, const char *name);

/** The same into a job that goes on, at any clock: zeroes the table (plait_table_zero) and restores what was saved of
 *  it, the rule's state included. The job keeps its clock, and with it what rules take from that: a schedule's step
 *  sizes, adam's corrections. At a clock's edge: before the caller's first inc to the table in its clock, by all
 *  workers in the same clock. Errors: those of restore,
 *  but for the clocks, and of plait_table_zero. After EMISMATCH, EREFUSED and EINVAL the table is as it was; after
 *  ECHECKSUM and EIO parts of it are zeros (plait_checkpoint_open without a folder checks all bytes beforehand).
 *  Collective like restore. */
PLAIT_API plait_status plait_checkpoint_load(plait_checkpoint *checkpoint, plait_table *table, const char *name);

/* --- variables in a session's own memory --------------------------------------------------------- */

/** Saves variables [n] of a session (plait/session.h) as they are then, and returns when the checkpoint is on disk. A
 *  variable W of shape [n, rest] is saved as a table is that has no rule: its values are the tensor "W.values" of n
 *  rows, so each may be read and loaded as the other. clock: the program's count, which names the folder. variables
 *  NULL: all, and n is ignored. No run that calls inc is under way. Errors: EINVAL no such variable, or one that is
 *  given twice, or clock < 0, or all of a cut session, which has those of its own part alone; EIO, ENOSPACE: earlier
 *  checkpoints are unchanged; ENOMEM. Not collective: one process writes. */
PLAIT_API plait_status plait_checkpoint_save_session(plait_session *session, int32_t n, const int32_t *variables,
                                                     int64_t clock, const plait_checkpoint_opts *opts,
                                                     plait_error *error_out);
/** Sets variable k in a session's own memory to the values that were saved of the variable, or table, called `name`
 *  (NULL: the variable's own name). Errors: EMISMATCH no such values are in the checkpoint, or of another type or
 *  number; ECHECKSUM, EIO; those of plait_session_set_variable. After an error the variable is as it was. */
PLAIT_API plait_status plait_checkpoint_load_session(plait_checkpoint *checkpoint, plait_session *session, int32_t k,
                                                     const char *name, plait_error *error_out);

#ifdef __cplusplus
}
#endif
#endif
