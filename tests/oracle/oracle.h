/* oracle.h - tables judged from outside, by what the manual promises.
 *
 * The idea. A seed draws a *program*: a few tables (topology, consistency, shape, rule, options) and, for each
 * worker, a list of calls of plait/table.h. The program is played over threads, over simulated ranks or over
 * processes, while each worker writes down when a call began and ended, and what it read. Then the record is judged.
 * Nothing here looks into src/table: a promise is what plait/table.h, docs/consistency.md and docs/topologies.md
 * say, so a mistake there is not inherited.
 *
 * What makes it possible is that a value tells its own story. All updates are drawn beforehand, so each update of a
 * row can have a digit of its own: it adds unit * base^digit to the row. A value that is read is written in that
 * base, and digit d is how often the value holds the update of digit d: 0 it is missing, 1 it is there, 2 it was
 * applied twice. A value with a fraction holds half an update (an inc that names a row several times gives each a
 * part of the digit). Each column has its digits in another order. A ruled table takes gradients, and its rule
 * subtracts them: the same with the sign turned. Where values are averages (gossip), only what comes after a barrier
 * is a sum of whole updates.
 *
 * A table that keeps the least or the greatest of its updates shows one of them: it must be one that may be there, and
 * none that must be there may lie beyond it.
 *
 *     draw.c, draw_calls.c   seed -> program: tables, calls
 *     play.c                 program -> record, by the public API alone
 *     promise.c              of a read and an update: how often may, and must, the one hold the other?
 *     describe.c             a program in words
 *     judge.c                program and record -> the first promise that was broken, in words
 *     oracle_test.c          seeds, a process each, and what a failure prints; over_mpi.c: over processes
 */
#ifndef ORACLE_H
#define ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <plait/table.h>

enum {
    WORKERS = 6,
    TABLES = 3,
    GROUPS = 16,
    DIGITS = 24,
    COLS = 3,
    CALLS = 240,
    BARRIERS = 32,
    WHY_BYTES = 1000,
    HAMMER = 4096
};

typedef enum carrier { OVER_THREADS, OVER_SIM, OVER_MPI } carrier;

typedef enum policy { BSP, SSP, ESSP, ASP, DELAY, SEQUENTIAL, VAP, DOWNPOUR, LOCAL_SGD, ASYNC, POLICIES } policy;

typedef enum way { LOCAL, SUMS, SERVERS, GOSSIP } way; /* where a table's updates go in the end, so never hybrid */

typedef enum combine { ADD_UP, LEAST, GREATEST, LATEST } combine;

/* One inc of one row; of a dense table, of each row of a group of neighbours that are always updated together. */
typedef struct update {
    int32_t worker, clock, call; /* the worker, its clock, and its call */
    int32_t digit;
} update;

typedef struct group {
    uint64_t first; /* row, or key */
    int64_t  rows;  /* sparse: 1   */
    int32_t  n_updates;
    update   updates[DIGITS];
} group;

typedef struct plan {
    char        name[8], consistency[32];
    const char *topology, *filter;
    way         way;
    policy      policy;
    int64_t     bound, period; /* the policy's numbers: S, T, F, H; W, P */
    double      norm;          /* vap's                                   */
    bool        weak;
    bool        sparse, keyed, wide /* F64 or I64 */, whole /* I64 */, ruled, own_rule, exact, sharded;
    bool        initial;  /* rows begin with values of their own */
    bool        hammered; /* async over shared memory, updates in many pieces: only what all have ended is whole */
    int64_t     rows;
    combine     combine;
    int32_t     zeroed; /* before that clock's first call all zero it; -1: never */
    int32_t     cols, base, digits, n_groups;
    double      unit;
    group       groups[GROUPS];
} plan;

typedef enum verb {
    GET,
    GET_BEGIN,
    RANGE,
    RANGE_BEGIN,
    READ,
    DUMP,
    CALL, /* reads; the last by a server function */
    INC,
    INC_BEGIN,
    ADD,
    ADD_BEGIN, /* updates: by key, by range */
    FLUSH,
    WAIT,
    CLOCK,
    CLOCK_BEGIN,
    BARRIER,
    LEAVE,
    REFUSED, /* an inc behind a flush */
    PAUSE,
    ZERO
} verb;

typedef struct act {
    verb    kind;
    int32_t table;
    int32_t of;       /* WAIT: the call that it ends                   */
    int32_t until;    /* what is begun: the call that ends it          */
    int32_t times;    /* an inc is made so many times, each a part of it */
    int64_t examples; /* of a ruled table's inc; PAUSE: microseconds   */
    int64_t first, n; /* range; n: keys of a list, too                 */
    size_t  at;       /* of its list, in the program's keys            */
} act;

typedef struct program {
    uint64_t    seed;
    carrier     over;
    int32_t     workers, servers, replicas, n_tables, clocks;
    int32_t     cost; /* sim: which cluster */
    const char *collective;
    bool        aggregate, hybrid;
    plan        tables[TABLES];
    int32_t     n_calls[WORKERS];
    act         calls[WORKERS][CALLS];
    uint64_t   *keys; /* of all lists */
    int16_t    *in;   /* their groups */
    size_t      n_keys, room;
} program;

/* What one call did. Its words are its values, as bits of doubles; those of a dump are its keys, then its values. */
typedef struct record {
    uint64_t begun, ended; /* ns, of one clock for all ranks; ended 0: it was not played */
    int64_t  n;            /* rows read */
    size_t   at;           /* of its words */
} record;

typedef struct diary {
    record    calls[CALLS];
    uint64_t *words;
    size_t    n_words, room;
    int32_t   failed; /* the call that failed, or -1; -2: a table was not created */
    char      text[560];
} diary;

/* draw.c, draw_calls.c, describe.c */
uint64_t draw_bits(uint64_t *state);
int64_t  draw_below(uint64_t *state, int64_t n); /* 0 .. n-1 */
bool     draw_one_in(uint64_t *state, int64_t n);
/** workers and servers: as the launcher has them, or 0: drawn. */
program      *draw_program(uint64_t seed, carrier over, int32_t ranks);
void          draw_calls(program *p, uint64_t *state);
void          program_free(program *p);
int32_t       group_of(const plan *t, uint64_t row); /* -1: none */
const update *update_of(const group *g, int32_t worker, int32_t call);
double        weight(const plan *t, int32_t digit, int32_t col);
const char   *name_of(verb kind);
bool          is_read(verb kind);
bool          is_inc(verb kind);
plait_type    type_of(const plan *t);
void          describe(const program *p, FILE *out);
void          describe_calls(const program *p, FILE *out);

/* own.c: what the program brings of its own. */
extern const plait_rule     own_rule;     /* "take": subtracts a gradient as it is */
extern const plait_function own_function; /* "pick": the values of the keys that its arguments name */
double                      initial(const plan *t, uint64_t row, int32_t col);
double                      nothing(const plan *t); /* what a row holds to which nothing has come */
double                      value_at(plait_type type, const void *values, size_t at);

/* play.c */
plait_status play(const program *p, diary *diaries /* [workers] */, const char *cluster, plait_error *error_out);

/* promise.c: what promises need to know of a read. */
typedef struct reading {
    int32_t  worker, table, from, to; /* which calls began and ended it */
    int32_t  clock;
    bool     view;       /* behind a barrier, in the same clock     */
    bool     function;   /* by a server function                    */
    bool     turnless;   /* sequential: and before the next inc     */
    bool     left, last; /* the reader has left; all clocks are over */
    int32_t  barrier;    /* the last, -1: none                       */
    uint64_t begun, ended;
    uint64_t fetched; /* the owner was asked after that; 0: not said */
} reading;

typedef struct limits {
    int32_t     least, most;
    const char *why_least, *why_most;
} limits;

typedef struct facts {
    const program *p;
    const diary   *diaries;
    int32_t        ended[BARRIERS][WORKERS]; /* clocks that each had ended at each barrier */
    int32_t        left_in[WORKERS];         /* the clock that a worker has left in, or INT32_MAX */
} facts;

void   facts_find(facts *f, const program *p, const diary *diaries);
bool   may_lose_steps(const plan *t, const group *g);
bool   is_zeroed(const plan *t, int32_t clock, const update *u); /* at a read of that clock it is gone */
limits promised(const facts *f, const reading *r, const update *u, uint64_t evidence);

/* mass.c: what all copies of a gossip table hold together. */
typedef struct mass mass;
mass               *mass_new(const program *p);
void                mass_add(mass *m, const reading *r, uint64_t row, int32_t col, double value);
bool                mass_judge(const mass *m, char why[WHY_BYTES]);
void                mass_free(mass *m);

/* judge.c */
bool judge(const program *p, const diary *diaries, int64_t *reads_out, char why[WHY_BYTES]); /* true: all was kept */

/* oracle_test.c, over_mpi.c */
void    say_failed(const program *p, const diary *diaries, const plait_error *e, char *why, size_t bytes);
void    tell(const program *p, const char *why, const char *how); /* how: the command that plays it again */
int64_t number(const char *variable, int64_t otherwise);          /* of the environment */
int     over_processes(const char *program_name, int64_t n);      /* main's result      */

#endif
