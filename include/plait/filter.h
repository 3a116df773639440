/* plait/filter.h - filters on messages: fewer bytes for the same updates and values.
 *
 * A filter is an object that encodes what travels between a worker and the servers of a table, and decodes it at the
 * other end. Several are stacked in the order given, "key-cache,kkt,fixed8"; a message of tables without filters is
 * untouched. What a filter sees is a *part*: the keys and values that one worker and one server exchange about one
 * table in one push, or in one pull and its answer. It may do any of five things, each a group of slots below:
 *
 *     rows    chooses which rows of the part travel
 *     values  turns the values of these rows into bytes
 *     lists   names a list of keys that the other end knows by a token of 16 bytes
 *     keys    turns a list of keys into bytes
 *     bytes   turns all of that into fewer bytes; comes last
 *
 * An order in which a filter would find what an earlier one has turned into bytes already is refused, by name. Every
 * filter that Plait brings is written against this header, and a program registers its own by plait_job_opts.filters,
 * under a name of its own, on every rank:
 *
 *     static const plait_filter quarters = { .name = "quarters", .parse = ..., .loss = PLAIT_ROUNDED,
 *                                            .values = {...} };
 *     opts.filters = &quarters; opts.n_filters = 1; opts.filter = "key-cache,quarters";
 *
 * What a filter may lose is its `loss`. Rows and values of a push that do not arrive are kept by the table at the
 * worker and added to its next push of these rows (*error feedback*: decode(encode(x)) + residual = x; Seide et al.,
 * Interspeech 2014; Stich et al., NeurIPS 2018; Karimireddy et al., ICML 2019): a filter does nothing for that. With
 * which consistency a loss goes: docs/filters.md. Answers of pulls asked between a barrier and the worker's next
 * update come without losses, so that what is saved or measured is what the servers hold.
 *
 * States: each (worker, table, server) has one at the worker and one at the server. Messages arrive once and in
 * order, so what both ends derive from them agrees. All calls about one state come one at a time, in whichever thread;
 * none may block, call into plait, or depend on anything but its arguments and its state, so that a run repeats. Random
 * numbers are functions of part->seed, table, clock and row, and never of the worker. Memory that a state holds comes
 * from anywhere and is given back in close.
 *
 * Sizes: `bound` says how many bytes encode may write at most. decode is given bytes from a wire: it checks their size
 * before it reads, and answers EFORMAT where it is not what the part needs. Between 64 keys at least a word must
 * travel (a list cannot be longer than 64 times its bytes), so that no message can ask for memory out of nothing.
 */
#ifndef PLAIT_FILTER_H
#define PLAIT_FILTER_H

#include <stddef.h>
#include <stdint.h>

#include <plait/comm.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PLAIT_TOKEN_BYTES = 16 };

/* Which way a part goes. */
typedef enum plait_way {
    PLAIT_PUSHED,  /* worker -> server: keys (or a range) and updates */
    PLAIT_PULLED,  /* worker -> server: keys alone                    */
    PLAIT_ANSWERED /* server -> worker: values alone                  */
} plait_way;

/* What may be missing at the other end. */
typedef enum plait_loss {
    PLAIT_EXACT,     /* nothing                                                              */
    PLAIT_ROUNDED,   /* every row travels, its values rounded                                 */
    PLAIT_KEPT_BACK, /* pushed rows may stay behind, whole, for any number of clocks         */
    PLAIT_SKIPPED    /* pushed rows that would change nothing never travel, and are forgotten */
} plait_loss;

/* What a filter may look at. Everything is borrowed for the call. */
typedef struct plait_part {
    plait_way       way;
    int32_t         table, worker, server; /* numbers from 0                                               */
    uint64_t        seed;                  /* plait_job_opts.seed                                          */
    int64_t         clock;                 /* the worker's                                                 */
    int64_t         examples;              /* PUSHED: rows of data that the updates are the sum over       */
    plait_type      type;                  /* PLAIT_F32 or PLAIT_F64; of a filter without loss PLAIT_I64, too */
    int64_t         n, cols;               /* values, where there are some, are [n, cols] of type          */
    int64_t         first;                 /* rows first .. first + n - 1, where keys is NULL              */
    const uint64_t *keys;                  /* [n]                                                          */
    double          l1;                    /* of the table's rule                                          */
    const void     *penalty;               /* at a worker: factors on l1 [rows of the table, cols] of type; NULL: all
                                              1 */
} plait_part;

/* The table that a filter is to work on. */
typedef struct plait_filter_table {
    const char *name;
    plait_type  type;
    int64_t     rows, cols;   /* rows 0: sparse                                     */
    int         keyed;        /* updates travel by key                              */
    const char *rule;         /* NULL: additive                                     */
    double      l1;
    int32_t     workers, servers;
    int64_t     first, count; /* dense: the rows of the shard at the server's end   */
} plait_filter_table;

/* One filter. A group whose first slot is NULL is one that the filter does nothing about. `state` is state_bytes,
 * zeroed before parse; the texts are borrowed while the job lives. Calls that return int64_t answer a number of bytes,
 * or a plait_status below 0. */
typedef struct plait_filter {
    const char *name;       /* "topk" */
    const char *parameters; /* ":F": shown in help and errors; "" for none */
    const char *summary;    /* one line for help */
    size_t      state_bytes;
    plait_loss  loss;
    int         answers;    /* 1: rows and values work on answers too; 0: on pushes only */
    /** Reads the parameters after the name's colon (NULL: none given) into state, and says whether it can work on the
     *  table (NULL: not known yet, only the parameters are checked). EINVAL, EREFUSED with the reason in *err;
     *  ENOMEM. */
    plait_status (*parse)(void *state, const char *parameters, const plait_filter_table *table, plait_error *err);
    /** Gives back what the state holds; also after a failed parse. NULL: nothing. */
    void (*close)(void *state);

    struct {
        /** keep [n] comes filled with ones; a zero lets the row stay behind. Of an answer only rows of zeros may stay:
         *  the reader takes what is missing as zeros. values [n, cols] include what was kept back before. */
        plait_status (*choose)(void *state, const plait_part *part, const void *values, unsigned char *keep);
        /** At the worker: an answer has brought these values. NULL: nothing. */
        plait_status (*seen)(void *state, const plait_part *part, const void *values);
    } rows;

    struct {
        int64_t (*bound)(const void *state, const plait_part *part, int64_t n);
        /** values [n] are those of the rows that travel, whose numbers or keys are row [n / cols]. */
        int64_t (*encode)(void *state, const plait_part *part, int64_t n, const uint64_t *row, const void *values,
                          void *bytes);
        plait_status (*decode)(void *state, const plait_part *part, int64_t n, const void *bytes, int64_t size,
                               void *values);
    } values;

    struct {
        /** At the worker: does the server know this list? 1 with its token, or 0; then the list travels whole, where
         *  it does, and both ends learn it. */
        int (*known)(void *state, int64_t n, const uint64_t *keys, void *token);
        /** Both ends: the list has been sent, or has come. ENOMEM is no failure: it is not known, then. */
        plait_status (*learn)(void *state, int64_t n, const uint64_t *keys);
        /** Both ends: the list of a token, valid until the next call; NULL: not known. A server that does not know it
         *  asks the worker, which sends it again. */
        const uint64_t *(*recall)(void *state, const void *token, int64_t *n_out);
    } lists;

    struct {
        int64_t (*bound)(const void *state, int64_t n);
        int64_t (*encode)(void *state, int64_t n, const uint64_t *keys, void *bytes);
        plait_status (*decode)(void *state, int64_t n, const void *bytes, int64_t size, uint64_t *keys);
    } keys;

    struct {
        int64_t (*bound)(const void *state, int64_t size);
        int64_t (*encode)(void *state, int64_t size, const void *from, void *bytes);
        /** How many bytes decode will write. */
        int64_t (*unpacked)(void *state, const void *bytes, int64_t size);
        plait_status (*decode)(void *state, const void *bytes, int64_t size, void *to, int64_t to_size);
    } bytes;
} plait_filter;

#ifdef __cplusplus
}
#endif
#endif
