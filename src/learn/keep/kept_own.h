/* learn/keep/kept_own.h - mirrors that differ from worker to worker (table/state/own.h), as tensors of a checkpoint.
 *
 * Of worker W: TABLE.own.W.numbers, TABLE.own.W.values and the like, TABLE.own.W.held. In common: TABLE.values, and
 * under local-sgd in the middle of a round TABLE.moved (of a sparse table with TABLE.moved_keys), which the average is
 * ahead of TABLE.values. So the average of all mirrors is TABLE.values plus TABLE.moved.
 *
 * A table goes on as it was if as many workers had mirrors of the same way, and none is missing. Else each worker
 * begins with the average; its state of the rule is that of worker W modulo their number, or, where the workers had one
 * state in common, this. Whoever has one copy of the values again (another topology) begins with the average, too, if
 * its rule has no state: of many states nobody could make one. */
#ifndef PLI_LEARN_KEPT_OWN_H
#define PLI_LEARN_KEPT_OWN_H

#include "learn/keep/kept_pieces.h"
#include "learn/keep/writer.h"
#include "table/state/own.h"

/* --- taking ------------------------------------------------------------------------------------------------------- */

typedef struct pli_kept_own {
    const plait_table *table;
    char               name[PLI_KEPT_NAME];
    int32_t            worker;
    pli_own            own;
} pli_kept_own;

/** pli_own_take. The caller frees out->own. */
plait_status pli_kept_own_take(plait_table *table, pli_kept_own *out, plait_error *err);
/** Adds its tensors to this worker's part; none of a table that has no such mirrors. */
void pli_kept_own_plan(const pli_kept_own *kept, pli_part_plan *plan);
/** Hands over the tensors' bytes in the plan's order, in messages. Errors: ENOMEM. */
plait_status pli_kept_own_put(const pli_kept_own *kept, void (*take)(void *user, pli_msg *bytes), void *user,
                              plait_error *err);

/* --- putting back ------------------------------------------------------------------------------------------------- */

/** Is this the end of such a tensor's name, "own.3.slot.m" or "moved"? */
bool    pli_kept_own_is(const char *what);
/** How many workers had mirrors of the table, or the piece, of this name; 0: they had one copy in common. missing_out:
 *  some of them are missing, as after a death. */
int32_t pli_kept_own_workers(pli_checkpoint *from, const char *name, bool *missing_out);
/** Does this worker go on with its own mirror? */
bool    pli_kept_own_is_same(pli_checkpoint *from, const char *name, const plait_table *table);

/** How a table is put back; where: the directory, for errors. looks: nothing is put. */
typedef struct pli_kept_own_back {
    pli_checkpoint *from;
    const char     *where, *name;
    plait_table    *table;
    bool            looks, same;
    int64_t         units; /* of the common copy, if there were no mirrors */
    plait_error    *err;
} pli_kept_own_back;
/** Puts the worker's mirror back; values: those of a table without a common table inside are put as well. Errors:
 *  EMISMATCH, ECHECKSUM, EIO, ENOMEM. Not collective. */
plait_status pli_kept_own_put_back(const pli_kept_own_back *b);

/* What the average is ahead of the values of a sparse table, where both are to be joined. */
typedef struct pli_kept_moved {
    int64_t    n, cols;
    plait_type type;
    uint64_t  *keys; /* [n]       */
    void      *rows; /* [n, cols] */
    pli_keymap map;
} pli_kept_moved;
/** Reads it; n is 0 where nothing has moved. The caller closes it, also after an error. Errors: EMISMATCH, ENOMEM,
 *  ECHECKSUM, EIO. */
plait_status pli_kept_moved_open(pli_checkpoint *from, const char *where, const char *name, const plait_table *table,
                                 pli_kept_moved *out, plait_error *err);
/** Adds it to rows [n] of these keys. */
void         pli_kept_moved_add(const pli_kept_moved *moved, int64_t n, const uint64_t *keys, void *rows);
/** Drops those that are among keys [n]. false: out of memory, and none is dropped. */
bool         pli_kept_moved_drop(pli_kept_moved *moved, int64_t n, const uint64_t *keys);
void         pli_kept_moved_close(pli_kept_moved *moved);

#endif
