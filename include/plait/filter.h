/* plait/filter.h - filters on messages: they carry the same updates and values in fewer bytes.
 *
 * A filter encodes what travels between a worker and the servers of a table, and decodes it at the other end. Several
 * filters are stacked in the order given, "key-cache,kkt,fixed8"; messages of tables without filters are untouched. A
 * filter sees one *part* at a time: the keys and values that one worker and one server exchange about one table in one
 * push, or in one pull and its answer. It may do any of five things, each a group of slots below:
 *
 *     rows    chooses which rows of the part travel
 *     values  turns the values of these rows into bytes
 *     lists   names a list of keys that the other end knows by a token of 16 bytes
 *     keys    turns a list of keys into bytes
 *     bytes   turns the bytes of all that into fewer bytes; comes last
 *
 * An order in which an earlier filter has already turned into bytes what a later one needs is refused, by name. Every
 * filter that Plait brings is written against this header. A program registers its own by plait_job_opts.filters, under
 * a new name, on every rank:
 *
 *     static const plait_filter quarters = { .name = "quarters", .parse = ..., .loss = PLAIT_ROUNDED,
 *                                            .values = {...} };
 *     opts.filters = &quarters; opts.n_filters = 1; opts.filter = "key-cache,quarters";
 *
 * The field `loss` says what a filter may lose. The worker's table keeps the rows and values of a push that do not
 * arrive, and adds them to its next push of these rows (*error feedback*: decode(encode(x)) + residual = x; Seide et
 * al., Interspeech 2014; Stich et al., NeurIPS 2018; Karimireddy et al., ICML 2019): a filter does nothing for that.
 * docs/filters.md says which loss goes with which consistency. Pulls between a barrier and the worker's next update are
 * answered without loss, so that what is saved or measured is what the servers hold.
 *
 * States: each (worker, table, server) has one at the worker and one at the server. Messages arrive once and in order,
 * so what both ends derive from them agrees. Calls with the same state come one at a time, on any thread. None may
 * block, call into plait, or depend on anything but its arguments and its state, so that a run can be repeated. Random
 * numbers are functions of part->seed, table, clock and row, and never of the worker. A state may allocate memory,
 * which close must free.
 *
 * Sizes: `bound` is the most bytes that encode may write. decode is given bytes from the network: it checks their size
 * before it reads, and answers EFORMAT if the part needs another size. A list of keys may be at most 64 times as long
 * as its bytes, so that a short message cannot make its receiver allocate much memory.
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

/* What may be lost on the way. */
typedef enum plait_loss {
    PLAIT_EXACT,     /* nothing                                                               */
    PLAIT_ROUNDED,   /* all rows travel, with rounded values                                  */
    PLAIT_KEPT_BACK, /* pushed rows may be kept at the worker for any number of clocks        */
    PLAIT_SKIPPED    /* pushed rows that would change nothing never travel, and are forgotten */
} plait_loss;

/* What a filter may look at. Everything is borrowed for the call. */
typedef struct plait_part {
    plait_way       way;
    int32_t         table, worker, server; /* numbers from 0                                               */
    uint64_t        seed;                  /* plait_job_opts.seed                                          */
    int64_t         clock;                 /* the worker's                                                 */
    int64_t         examples;              /* PUSHED: the updates are sums over so many rows of data       */
    plait_type      type;                  /* PLAIT_F32 or PLAIT_F64; also PLAIT_I64 for a filter without loss */
    int64_t         n, cols;               /* values, if the part has any, are [n, cols] of type           */
    int64_t         first;                 /* if keys is NULL: rows first .. first + n - 1                 */
    const uint64_t *keys;                  /* [n]                                                          */
    double          l1;                    /* the rule's l1                                                */
    const void     *penalty;               /* at a worker: factors on l1 [rows of the table, cols] of type; NULL: all
                                              1 */
} plait_part;

/* The table whose messages a filter encodes. */
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

/* One filter. If the first slot of a group is NULL, the filter does not do what the group is for. `state` has
 * state_bytes, zeroed before parse. The texts are borrowed while the job lives. Calls that return int64_t return a
 * number of bytes, or a plait_status below 0. */
typedef struct plait_filter {
    const char *name;       /* "topk" */
    const char *parameters; /* ":F": shown in help and errors; "" for none */
    const char *summary;    /* one line for help */
    size_t      state_bytes;
    plait_loss  loss;
    int         answers;    /* 1: rows and values are called for answers too; 0: for pushes only */
    /** Reads the parameters after the name's colon (NULL: none given) into state, and checks that the filter can work
     *  on the table (NULL: not known yet, only the parameters are checked). EINVAL, EREFUSED with the reason in *err;
     *  ENOMEM. */
    plait_status (*parse)(void *state, const char *parameters, const plait_filter_table *table, plait_error *err);
    /** Frees what the state holds; also called after a failed parse. NULL: nothing. */
    void (*close)(void *state);

    struct {
        /** keep [n] is all ones at first; choose sets those of rows that stay behind to zero. In an answer only rows of
         *  zeros may stay behind: the reader takes missing rows as zeros. values [n, cols] include what was kept back
         *  before. */
        plait_status (*choose)(void *state, const plait_part *part, const void *values, unsigned char *keep);
        /** At the worker: called with the values that an answer has brought. NULL: nothing. */
        plait_status (*seen)(void *state, const plait_part *part, const void *values);
    } rows;

    struct {
        int64_t (*bound)(const void *state, const plait_part *part, int64_t n);
        /** values [n] are the values of the rows that travel; row [n / cols] has their numbers or keys. */
        int64_t (*encode)(void *state, const plait_part *part, int64_t n, const uint64_t *row, const void *values,
                          void *bytes);
        plait_status (*decode)(void *state, const plait_part *part, int64_t n, const void *bytes, int64_t size,
                               void *values);
    } values;

    struct {
        /** At the worker: does the server know this list? 1: fills token. 0: the list travels whole, and both ends
         *  learn it. */
        int (*known)(void *state, int64_t n, const uint64_t *keys, void *token);
        /** Both ends: called when a list has been sent, or has come. ENOMEM is no failure: the list stays unknown. */
        plait_status (*learn)(void *state, int64_t n, const uint64_t *keys);
        /** Both ends: the list of a token, valid until the next call; NULL: the list is not known. A server that does
         *  not know it asks the worker, which sends it again. */
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
        /** The number of bytes that decode will write. */
        int64_t (*unpacked)(void *state, const void *bytes, int64_t size);
        plait_status (*decode)(void *state, const void *bytes, int64_t size, void *to, int64_t to_size);
    } bytes;
} plait_filter;

#ifdef __cplusplus
}
#endif
#endif
