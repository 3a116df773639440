/* table/state/state.h - what a checkpoint holds of tables: it is taken while the workers go on, and put back into
 * tables that may be placed differently.
 *
 * Taking: at a barrier, when all updates of the clocks before are applied and none of the next has begun, a *capture*
 * begins: a cut through all tables of the job. From then on each worker takes its share of the rows, a piece at a time,
 * whenever it calls pli_capture_pump, while everybody updates the tables as before (snap.h). Each shard is taken by one
 * worker, the one on the same rank if there is one. Mirrors (allreduce) are equal, so each worker takes a part of the
 * rows. So servers need no files, and a capture costs its worker copies only. Where shards have two replicas
 * (replicas.h) a server may die meanwhile; a worker that dies leaves the capture without its part, and a worker that
 * hears of that (pli_comm_absent) begins another.
 *
 * What is taken is logical: rows by number or key, array by array (PLI_STATE_*), whatever shards there were.
 *
 * Putting back: rows go into new tables, before their job's first clock (plait_job_opts.first_clock: the capture's).
 * Any worker puts any rows, which are sent to their present owners; under mirrors each worker puts all rows into its
 * own. Then comes a barrier.
 *
 * Memory that workers write without a lock is refused. Of tables of which each worker has a copy that differs from the
 * others' (gossip, local-sgd) a capture takes what all have in common; own.h takes the rest. A rule's state that lies
 * in slices (topology/sharded.h) is kept by row as any other. What filters keep of a worker's updates is taken beside
 * (rest.h). */
#ifndef PLI_TABLE_STATE_H
#define PLI_TABLE_STATE_H

#include <plait/table.h>

#include "comm/msg.h"
#include "table/state/snap.h"

/** Can a table be captured? EREFUSED with the reason and the nearest. Not collective. */
plait_status pli_state_check(const plait_table *table, plait_error *err);

/** The arrays of a table's rows, from PLI_STATE_VALUES on; returns how many. */
int32_t pli_state_arrays(const plait_table *table, int32_t arrays[PLI_STATE_ARRAYS]);
/** The array's name: "values", "slot.m", "paid", "keys". */
const char *pli_state_name(const plait_table *table, int32_t array, char text[64]);
/** Bytes of a row of the array. For PAID and KEYS, whose numbers have 8 bytes, *type_out is PLAIT_I64. */
int64_t pli_state_bytes(const plait_table *table, int32_t array, plait_type *type_out);

/** This worker's share, if all living workers, or the members of the table's group, divide the rows among them. */
void pli_state_share(const plait_table *table, int64_t rows, int64_t *first_out, int64_t *n_out);
/** The share of another worker, which is not absent. */
void pli_state_share_of(const plait_table *table, int32_t worker, int64_t rows, int64_t *first_out, int64_t *n_out);
/** Is this worker the one of them that does what one must do? */
bool pli_state_leads(const plait_table *table);

/* --- taking --------------------------------------------------------------------------------------------------- */

typedef struct pli_capture pli_capture;

/* Rows of one array that this worker takes. The parts come one after the other, each from its first row on. */
typedef struct pli_state_part {
    int32_t table, array; /* table: place in the list given to begin                              */
    int64_t first, rows;  /* rows of the table; a sparse table's shards follow one another */
    int64_t all;          /* rows of the whole table                                              */
} pli_state_part;

/** Passes a barrier and begins a capture of tables [n] as they are then; one capture of a job at a time. Gets until the
 *  next inc take no turn, as behind any barrier. job: whose tables all of them are; of a group's, its part. Collective
 *  over its workers, with the same tables. */
plait_status pli_capture_begin(plait_job *job, int32_t n, plait_table *const *tables, pli_capture **capture_out,
                               plait_error *err);
const pli_state_part *pli_capture_parts(const pli_capture *capture, int64_t *n_out);

/* The place in the parts from which the next rows come; zeros at first. */
typedef struct pli_capture_place {
    int64_t part, row;
} pli_capture_place;
/** The part that rows of so many bytes are of, which the capture hands on next; *first_out, *rows_out: which of the
 *  table's rows they are. The place moves behind them. */
const pli_state_part *pli_capture_follow(const pli_capture *capture, pli_capture_place *place, uint64_t bytes,
                                         int64_t *first_out, int64_t *rows_out);
/** Up to where lazy penalties go in table i of the list. */
int64_t pli_capture_units(const pli_capture *capture, int32_t table);

/* Takes the next rows: their bytes are a message's body (taken by the callee, who frees it, in any thread). */
typedef void pli_capture_take_fn(void *user, pli_msg *rows);

/** Asks for pieces and hands on those that have come, in the parts' order: about `bytes` of them, or fewer if they
 *  have not come yet and wait is not set. *done_out: all were handed on. Called by the rank's own thread, at any
 *  time. */
plait_status pli_capture_pump(pli_capture *capture, int64_t bytes, bool wait, pli_capture_take_fn *take, void *user,
                              bool *done_out, plait_error *err);
/** Can the capture not be completed, because a replica made after the cut serves shards now (replicas.h)? Then no more
 *  rows come. Workers that take from it know this, the others do not. */
bool pli_capture_is_torn(const pli_capture *capture);
/** Ends the capture, complete or not, before the job ends. NULL is fine. */
void pli_capture_end(pli_capture **capture);

/* --- putting back ----------------------------------------------------------------------------------------------- */

/** Does each worker put all rows into its own copy? Otherwise any worker may put a row, and exactly one must. */
bool pli_state_is_copied(const plait_table *table);
/** Puts rows of an array back: of a dense table first .. first + n - 1 (keys NULL), of a sparse one keys [n]. Units
 *  come first. Returns when they are where they belong. Errors: EFORMAT. Not collective. */
plait_status pli_state_put(plait_table *table, int32_t array, int64_t first, int64_t n, const uint64_t *keys,
                           const void *rows, plait_error *err);
plait_status pli_state_put_units(plait_table *table, int64_t units, plait_error *err);
/** Zeroes a table on servers, without bringing initial values back; number: the how many-th time. Returns when it is
 *  done. Called behind a barrier by one worker; the others wait. */
plait_status pli_state_zero(plait_table *table, int64_t number, plait_error *err);
/** The same, and the servers free the table. */
plait_status pli_state_drop(plait_table *table, plait_error *err);

#endif
