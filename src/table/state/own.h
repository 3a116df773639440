/* table/state/own.h - what a worker alone knows of a table of which it has a mirror that differs from the others'
 * (gossip, local-sgd), as a checkpoint takes it and puts it back.
 *
 * Beside the values that all workers have in common, a checkpoint holds for each worker its mirror as it is: the rows'
 * values, its own state of the update rule, how far it has paid penalties, and a few numbers that say how it goes on.
 * With as many workers as before each gets its own back, and goes on to the same bits where the pair promises bits.
 * With another number, or where the table travels another way now, each begins with the average of all mirrors, and
 * with the state that one worker before had of the rule.
 *
 * In common: under gossip the average of all mirrors. Under local-sgd the common table (topology/local_sgd.c), which
 * is the average as of the last round and is captured as any other table (state.h), and beside it what the average
 * has *moved* since.
 *
 * All of it is copied at the cut: mirrors change as a whole soon after. */
#ifndef PLI_TABLE_OWN_H
#define PLI_TABLE_OWN_H

#include "table/state/state.h"

struct pli_shard;

/* How a mirror goes on. In a checkpoint: doubles, in this order. */
typedef struct pli_own_numbers {
    double way;    /* how mirrors meet; one that met another way is put back as the average */
    double weight; /* gossip: of the mirror, among all */
    double rounds; /* gossip: how many it has made, which tells the next neighbours */
    double units;  /* up to where penalties go */
    double met;    /* reads return the average until the clock ends */
    double fresh;  /* local-sgd: the round has begun, and the mirror has nothing of it */
    double keys;   /* local-sgd by sums: how many keys the last one had, which tells the form of the next */
} pli_own_numbers;
enum { PLI_OWN_NUMBERS = sizeof(pli_own_numbers) / sizeof(double) };

/* Something as large as the mirror's values beside them, as an estimate (copies/estimates.h). */
typedef struct pli_own_more {
    char  name[24]; /* "from.2" */
    void *values;   /* [rows, cols] */
} pli_own_more;
enum { PLI_OWN_MORE = 64 };

typedef struct pli_own {
    bool            there; /* the table has such mirrors */
    pli_own_numbers numbers;
    int64_t         rows;                    /* of the mirror */
    void           *array[PLI_STATE_ARRAYS]; /* [rows, ...] each that the table has; on the way back NULL: as it is */
    pli_own_more    more[PLI_OWN_MORE];
    int32_t         n_more;
    int64_t         n_held;
    uint64_t       *held; /* local-sgd, by key: rows of the round, which the mirror has moved on its own */
    /* what all have in common; this worker's share of it */
    int64_t         first, n; /* rows of the average (gossip), or of what it has moved (local-sgd) */
    uint64_t       *keys;     /* [n] of a sparse table */
    void           *common;   /* [n, cols]; NULL: nothing has moved */
} pli_own;

/* What a topology does for it. */
typedef struct pli_own_ops {
    double (*way)(const plait_table *table); /* of its numbers */
    struct pli_shard *(*mirror)(const plait_table *table);
    /** The table inside it that all have in common; NULL: there is none. */
    plait_table *(*common)(plait_table *table);
    /** Fills numbers, more, held and the worker's share of what is in common. Behind a barrier. Errors: ENOMEM. */
    plait_status (*take)(plait_table *table, pli_own *own, plait_error *err);
    /** The mirror's rows are there; takes over numbers, more and held. way is another where it begins with the average.
     *  Errors: ENOMEM; EMISMATCH something of `more` is missing. */
    plait_status (*put)(plait_table *table, const pli_own *own, plait_error *err);
} pli_own_ops;

/** Has each worker a mirror of its own? */
bool         pli_own_is(const plait_table *table);
/** The table whose rows captures take, and are put back into: the one inside that all have in common, or the table. */
plait_table *pli_own_common(plait_table *table);
/** Copies what this worker has; nothing of a table that has no such mirrors. Behind a barrier, before the worker
 *  updates anything. Errors: ENOMEM. Not collective. */
plait_status pli_own_take(plait_table *table, pli_own *own_out, plait_error *err);
/** Puts it into a new table, or one that was zeroed. Errors: ENOMEM; EMISMATCH it lacks something. Not collective; what
 *  is in common comes apart. */
plait_status pli_own_put(plait_table *table, const pli_own *own, plait_error *err);
void         pli_own_free(pli_own *own);

#endif
