/* tests/sim/draw.h - a schedule over simulated ranks, drawn from a seed: how many workers and servers, which tables
 * with which topology and consistency, which options of the job, on which cluster, and what goes wrong there and
 * when. */
#ifndef DRAW_H
#define DRAW_H

#include "base/base.h"
#include "table/marks.h"

enum {
    WORKERS_MAX = 6,
    SERVERS_MAX = 3,
    TABLES_MAX = 3,
    BLOCKS_MAX = 16,
    CLOCKS_MAX = 20,
    HOT = 5 /* rows that are used */,
    ROWS = 520,
    CLUSTER_BYTES = 4096
};

#define FEATURES(X)                                                                                                    \
    X(BSP, "bsp")                                                                                                      \
    X(SSP, "ssp") X(ESSP, "essp") X(ASP, "asp") X(BOUNDED_DELAY, "bounded-delay") X(SEQUENTIAL, "sequential")          \
        X(VAP, "vap") X(DOWNPOUR, "downpour") X(ASYNC, "async") X(LOCAL_SGD, "local-sgd") X(MAJORITY, "majority")      \
            X(PS, "ps") X(ALLREDUCE, "allreduce") X(RULED, "ruled") X(SPARSE, "sparse") X(KEYED, "keyed")              \
                X(STALENESS_AWARE, "staleness-aware") X(BACKUP, "backup") X(LEASES, "balance dynamic")                 \
                    X(LEAVE, "leave") X(MEET, "barriers") X(COLLECTIVES, "collectives") X(SERVERS, "servers apart")    \
                        X(HETEROGENEOUS, "unlike hosts") X(RACKS, "racks") X(WAN, "wide area") X(SLOW, "slow")         \
                            X(BURST, "burst") X(JITTER, "jitter") X(LINK, "link") X(CUT, "cut") X(DELAYED, "delayed")  \
                                X(DOUBLED, "doubled") X(DROPPED, "dropped") X(FREEZE, "freeze") X(KILL, "kill")        \
                                    X(FROZEN, "frozen for good") X(WHOLE, "whole numbers")                             \
                                        X(LEAST, "min") X(GREATEST, "max") X(LATEST, "last")                           \
                                            X(ZEROED, "zeroed") X(ANEW, "created anew")
#define X(name, text) name,
typedef enum feature { FEATURES(X) N_FEATURES } feature;
#undef X
extern const char *const feature_names[N_FEATURES];

typedef struct table_plan {
    const char *topology, *consistency;
    int64_t     bound;        /* a get in clock c has all of clocks < c - bound; CLOCKS_MAX: no such promise */
    bool        exact;        /* and has nothing later */
    bool        ruled, sparse, keyed, staleness_aware;
    bool        whole;        /* it has whole numbers */
    const char *combine;      /* NULL: add                                                                     */
    int64_t     zeroed;       /* the clock before which it is zeroed; -1: none */
    bool        anew;         /* not zeroed, but dropped and created once more */
} table_plan;

typedef struct plan {
    uint64_t   seed, drawn; /* drawn: bits of features */
    int32_t    workers, servers, tables, backup;
    int64_t    clocks;
    table_plan table[TABLES_MAX];
    int64_t    blocks, epoch; /* balance dynamic: blocks, and clocks in an epoch; 0: not used */
    int64_t    leaves[WORKERS_MAX]; /* the clock in which a worker leaves; -1: never */
    bool       loses;               /* a rank is killed or frozen for good: the run may end with an error */
    bool       quiet;               /* nothing can seem dead: no rank warns that it hears nothing of another */
    char       cluster[CLUSTER_BYTES];
} plan;

/** What is not drawn: all tables are of this kind (NULL: any) and have this policy (-1: any), by its number. */
extern const marks_kind *forced_kind;
extern int               forced_policy;
/** NULL: there are no more. */
const char *policy_name(int i);

void draw_plan(uint64_t seed, plan *plan_out);
void print_plan(const plan *p);

static inline bool is_drawn(const plan *p, feature f) { return p->drawn >> f & 1; }

#endif
