/* vertex - vertex programs on tables: which worker has which edges, and the order of a superstep. See plait/vertex.h.
 *
 *     neighbors.c  one direction of a graph as compressed rows; its transpose, its union with another
 *     edges.c      a graph: ids, both ends' degrees, loops and doubles
 *     census.c     which ids there are, and their numbers
 *     ingress.c    the part of a graph that a process has, read without the rest of it
 *     reader.c     a part's rows, out of the text
 *     spread.c     what processes tell each other while they load a graph
 *     cut.c        which worker has which edge
 *     stream.c     cuts that take one edge after the other: oblivious, hdrf
 *     metis.c      METIS' cuts
 *     part.c       what a worker has: its edges by local numbers, the vertices that it reads and owns
 *     gather.c     kernels: what arrives at a vertex
 *     run.c        the call: tables, the end
 *     suit.c       may this program run under these settings?
 *     apply.c      supersteps in which vertices gather and apply
 *     active.c     which vertices take part in a superstep: all, or those that are signaled
 *     scope.c      a program's own gather, update and scatter: what they see of a vertex's edges
 *     keep.c       stopping and going on: what a checkpoint needs beside the values
 *     totals.c     sums over all vertices and edges, and what they end
 *     inherit.c    the parts of workers that have died
 *     heirs.c      the same for the synchronous engine
 *     signals.c    whom they had signaled
 *     fold.c       supersteps of a frontier
 *     locks/       locks on scopes: a machine
 *     async/       the asynchronous engine: vertex by vertex, from a queue, under locks
 *     owner.h      who has a vertex;  bits.h sets of vertices;  beside.h tables beside the values
 *     programs.c   the built-in programs by name: als.c, beliefs.c and pagerank.c by this engine; direct.h has those
 *                  that are more than a gather and an apply; by_engine.c has them for it, where a worker may die */
#ifndef PLI_VERTEX_H
#define PLI_VERTEX_H

#include <plait/table.h>
#include <plait/vertex.h>

#include "base/base.h"
#include "base/pool.h"
#include "vertex/async/queue.h"
#include "vertex/census.h"

/* --- neighbors.c -------------------------------------------------------------------------------------------------- */

/* For each of n vertices those on the other end of its edges, in increasing order: near[start[v]] .. */
typedef struct pli_neighbors {
    int64_t   n;
    int64_t  *start;  /* [n + 1]                    */
    uint32_t *near;   /* [start[n]]                 */
    float    *weight; /* [start[n]]; NULL: all 1    */
    bool      lent;   /* the arrays are another's   */
} pli_neighbors;

/** Makes room for m entries. false: no memory. */
bool pli_neighbors_room(int64_t n, int64_t m, bool weighted, pli_neighbors *h);
/** start[v + 2] has how many entries the row of v gets. Then start[v + 1] is where the next entry of v goes, and who
 *  puts one there adds 1 to it: when all are there, it is the row's end. start has room for that. */
void pli_neighbors_begin(pli_neighbors *h);
/** Sorts each row, stably; equal entries by piece [entries], if that is not NULL. false: no memory. */
bool pli_neighbors_sort(pli_neighbors *h, const uint16_t *piece);
/* What is noted of each entry that is dropped: `by` is added to these counts of its row, and of its far end. */
typedef struct pli_row_losses {
    uint32_t *of_row, *of_near; /* [vertices]; NULL: not noted */
    uint32_t  by;
} pli_row_losses;
/** How many entries of sorted rows equal the one before them; drop: they go, in place. Starts of rows in front of the
 *  first entry are not written to, and take no memory. */
int64_t pli_neighbors_doubles(pli_neighbors *h, bool drop, const pli_row_losses *losses);
/** The other direction: each vertex's row lists those in whose rows it stands. They are numbered below `n`. */
bool pli_neighbors_transpose(const pli_neighbors *of, int64_t n, pli_neighbors *out);
/** Rows that have the entries of both, in increasing order. */
bool pli_neighbors_join(const pli_neighbors *a, const pli_neighbors *b, pli_neighbors *out);
/** Rows of the simple graph: what stands in either, once, and no loop. Threads of pool (NULL: none) help. */
bool pli_neighbors_simple(const pli_neighbors *in, const pli_neighbors *out, pli_pool *pool, pli_neighbors *to);
void pli_neighbors_free(pli_neighbors *of);

/* --- edges.c ------------------------------------------------------------------------------------------------------ */

typedef struct pli_edge {
    int64_t from, to;
    float   weight;
} pli_edge;

struct plait_edges {
    int64_t       n, m, loops, doubles;
    bool          weighted;
    uint64_t     *id;  /* [n] increasing; NULL: names has them */
    uint32_t     *out; /* [n] how many edges leave the vertex */
    pli_neighbors in;  /* start NULL: the process has a part alone, and its cut has that (ingress.h) */
    uint64_t      hash; /* of all of it: workers must have the same graph */
    pli_census    names;
    pli_edge      below; /* with start NULL: an edge with a weight below 0; weight 0: there is none */
    uint32_t     *degree; /* with start NULL, of the simple graph: how many neighbors each vertex has; else NULL */
    struct pli_ingress    *again; /* with start NULL: how a part is read; else NULL */
    struct pli_edges_ways *ways;  /* the other direction, once somebody has asked for it */
};

static inline uint64_t pli_edges_id(const plait_edges *e, int64_t v) {
    return e->id != NULL ? e->id[v] : pli_census_id(&e->names, v);
}
/** The first edge with a weight below 0, by rows of edges in. false: there is none. */
bool pli_edges_below(const plait_edges *edges, pli_edge *edge_out);
/* A process that has a part alone does not know how many edges come to a vertex: then `in` is -1. */
static inline plait_vertex pli_vertex_of(const plait_edges *e, int64_t v) {
    return (plait_vertex){ v, pli_edges_id(e, v), e->in.start != NULL ? e->in.start[v + 1] - e->in.start[v] : -1,
                           e->out[v] };
}
/** The rows of edges out, made at the first call and kept with the graph; NULL: no memory. Any thread. */
const pli_neighbors *pli_edges_out(const plait_edges *edges);
/** The simple graph: no loops, no doubles, no direction; kept likewise. Threads of pool (NULL: none) help. */
const pli_neighbors *pli_edges_simple(const plait_edges *edges, pli_pool *pool);
/* As plait_near: rows of the simple graph. Only programs of this room have it. */
#define PLI_NEAR_SIMPLE ((plait_near)3)
/** plait_vertex_cut_create, of PLI_NEAR_SIMPLE as well. */
plait_status pli_cut_create(const plait_edges *edges, plait_near near, const char *method, int32_t parts,
                            plait_vertex_cut **cut_out, plait_error *error_out);
bool pli_edges_ways_make(plait_edges *edges);
void pli_edges_ways_free(plait_edges *edges);
/** The rows along which a program gathers: lent, or made. false: no memory. */
bool pli_edges_near(const plait_edges *edges, plait_near near, pli_neighbors *out);

/* --- cut.c, stream.c ---------------------------------------------------------------------------------------------- */

struct plait_vertex_cut {
    const plait_edges *edges;
    plait_near         near;
    int32_t            parts;
    const char        *method;
    pli_neighbors      rows;  /* along which is gathered */
    int64_t           *first; /* [parts + 1] part p owns vertices first[p] .. first[p + 1] - 1 */
    int64_t           *reads; /* [parts] how many vertices the part has edges of, or owns; NULL beside mine */
    bool               splits; /* a row's edges may lie with others than its owner: */
    uint16_t          *part;  /* [edges of rows]; NULL: an edge lies with the owner of its row, or mine has it */
    struct pli_part   *mine;  /* NULL, or the only part that this process has (ingress.h): rows has n alone then */
    int32_t            mine_is;
    double             replication, imbalance;
};

/** How many edges has row v, whoever has them? Where a process has a part alone, of the simple graph alone. */
static inline int64_t pli_cut_degree(const plait_vertex_cut *cut, int64_t v) {
    return cut->edges->degree != NULL ? cut->edges->degree[v] : cut->rows.start[v + 1] - cut->rows.start[v];
}

/* How many edges does row v have? */
typedef int64_t pli_cut_degree_fn(const void *of, int64_t v);
/** Deals n vertices in order, with equally many of `edges` edges in each part, to first [parts + 1]. A vertex counts as
 *  an edge, so that those without get parts, too. */
void pli_cut_range(int64_t n, int64_t edges, int32_t parts, pli_cut_degree_fn *degree, const void *of, int64_t *first);

/* A cut that a hash of an edge's ends decides. */
typedef struct pli_cut_hash {
    uint64_t parts, rows;
    bool     grid;
} pli_cut_hash;
/** false: the method is another one. */
bool    pli_cut_hash_find(const char *method, int32_t parts, pli_cut_hash *hash);
int32_t pli_cut_hash_part(const pli_cut_hash *hash, int64_t row, int64_t near);

/** The most shards of a table of all vertices' values (plait_table_opts.shards): so many that what a worker reads of
 *  a shard is 1 KiB or more on average. A thousand workers and shards would send a million messages a clock. */
int32_t pli_cut_shards(const plait_vertex_cut *cut, size_t value_bytes);
/** Each gives each edge of cut->rows a part. Errors: ENOMEM; of METIS also EMODULE, and ESHAPE a graph too large. */
plait_status pli_cut_metis(plait_vertex_cut *cut, plait_error *err);
plait_status pli_cut_stream(plait_vertex_cut *cut, bool by_degree, plait_error *err);

/* --- part.c ------------------------------------------------------------------------------------------------------- */

typedef struct pli_part {
    int64_t       n;     /* vertices that the part reads or owns, or all               */
    uint64_t     *key;   /* [n] their numbers, increasing; NULL: all, 0 .. n - 1       */
    int64_t       own, owned; /* local numbers of those that it owns: own .. own + owned - 1 */
    bool          whole; /* every row that a worker owns is whole: nobody else has edges of it */
    pli_neighbors rows;  /* by local numbers */
    int64_t      *start; /* [n + 1] of rows whose entries are the cut's; NULL: rows.start is all theirs or lent */
    pli_neighbors back;  /* rows' transpose, if asked for */
    bool          lent;  /* key is the cut's */
} pli_part;

/** back: with its rows the other way. Where the process has another part alone, this one is read anew. Errors: ENOMEM;
 *  those of reading. */
plait_status pli_part_make(const plait_vertex_cut *cut, int32_t p, bool back, pli_part *part, plait_error *err);
/** The same, without its rows the other way, for who looks at rows of own vertices alone. What stands in those
 *  of others is no matter: a part that reads all has the graph's rows as they are, and no starts of its own. */
plait_status pli_part_make_own(const plait_vertex_cut *cut, int32_t p, pli_part *part, plait_error *err);
void         pli_part_free(pli_part *part);
static inline int64_t pli_part_vertex(const pli_part *part, int64_t local) {
    return part->key != NULL ? (int64_t)part->key[local] : local;
}

/* --- gather.c ----------------------------------------------------------------------------------------------------- */

typedef enum pli_fold { PLI_FOLD_ADD, PLI_FOLD_MIN, PLI_FOLD_MAX } pli_fold;

/* What a run keeps of its program. */
typedef struct pli_gather {
    bool        whole_numbers; /* PLAIT_I64 */
    pli_fold    fold;
    plait_along along;
} pli_gather;

/** What arrives at rows first .. last - 1, to sum [n of rows]; told [n of vertices]. Values are 8 bytes. */
void pli_gather_rows(const pli_gather *g, const pli_neighbors *rows, const void *told, int64_t first, int64_t last,
                     void *sum);
/** Hands what vertex v tells along its row of `back`, to best [n]; was [n] is what best was in the beginning. The
 *  numbers of those that got better for the first time are added to hit [n], at *hits. fold is not ADD. */
void pli_gather_push(const pli_gather *g, const pli_neighbors *back, int64_t v, const void *told, const void *was,
                     void *best, uint64_t *hit, int64_t *hits);
/** What is gathered where nothing arrives; which of two values is better (not ADD). */
void pli_gather_begin(const pli_gather *g, void *value);
bool pli_gather_is_better(const pli_gather *g, const void *a, const void *than);

enum { PLI_VERTEX_MOST = 4096 }; /* numbers of a value */

/* --- run.c, apply.c, fold.c --------------------------------------------------------------------------------------- */

typedef enum pli_vertex_scope { PLI_SCOPE_VERTEX, PLI_SCOPE_EDGE, PLI_SCOPE_FULL } pli_vertex_scope;

typedef struct pli_vertex_run {
    plait_job                  *job;
    plait_error                *err;
    const plait_edges          *edges;
    const plait_vertex_cut     *cut;
    plait_vertex_program        program; /* values, tells, gathers are not 0 any more */
    const struct pli_vertex_loops *loops; /* pagerank.h; NULL: the program is called for each vertex */
    pli_gather                  gather;
    pli_pool                   *pool;
    int32_t                     workers, rank; /* rank: whose part it is */
    int64_t                     limit;
    bool                        async;
    pli_vertex_scope            scope; /* async */
    pli_queue_order             order; /* async */
    size_t                      value_bytes, tell_bytes, gather_bytes; /* of one vertex */
    bool                        owns_are_read; /* a read holds the worker's own updates */
    bool                        all_is_read;   /* and all others' of the clocks before  */
    plait_table                *value, *sum; /* sum NULL: no row is shared */
    pli_part                    part;
    plait_vertex_report         report;
    void                       *read;   /* [n of part] values that were read; NULL: they are borrowed */
    const void                 *values; /* [n of part] */
    const void                 *told;   /* [n of part] what they tell: values, or tells */
    void                       *tells;  /* [n of part]; NULL: the program tells values */
    void                       *data;   /* [edges of part, edge_values]; NULL: none */
    double                     *total;  /* [totals] */
    plait_vertex_opts           opts;
    plait_table                *frontier; /* who takes part next; NULL: no checkpoint needs it */
    double                     *row;      /* [owned, 2] of the frontier; NULL: not needed yet */
    plait_table                *before;   /* signals.c; NULL: no heir needs it */
    bool                        restored;
    void                       *engine; /* what a synchronous engine keeps of the part; NULL: nothing yet */
    struct pli_heirs           *heirs;  /* sync, two replicas: heirs.h; else NULL                         */
    struct pli_rounds          *rounds; /* async, two replicas: async/rounds.h; else NULL                 */
} pli_vertex_run;

static inline const void *pli_run_value(const pli_vertex_run *run, int64_t local) {
    return (const char *)run->values + run->value_bytes * (size_t)local;
}
static inline const void *pli_run_told(const pli_vertex_run *run, int64_t local) {
    return (const char *)run->told + run->tell_bytes * (size_t)local;
}

/** May it be? Fills what run keeps of its program, and what reads hold. */
plait_status pli_vertex_suits(pli_vertex_run *run);
/** Takes worker run->rank's part of the cut, with room for what it reads and tells. Errors: ENOMEM. */
plait_status pli_vertex_take_part(pli_vertex_run *run);
/** Frees the part and its room. */
void         pli_vertex_leave_part(pli_vertex_run *run);
plait_status pli_vertex_apply(pli_vertex_run *run);
plait_status pli_vertex_fold(pli_vertex_run *run);
plait_status pli_vertex_async(pli_vertex_run *run);
/** Gets the values of the part's vertices, to run->values. */
plait_status pli_vertex_read(pli_vertex_run *run);
/** Calls fn(user, first, last, thread) for ranges of rows with about equally many edges, on the pool's threads. */
typedef void pli_rows_fn(void *user, int64_t first, int64_t last, int32_t thread);
void pli_vertex_rows(const pli_vertex_run *run, pli_rows_fn *fn, void *user);
/** The same for the rows of own vertices. */
void pli_vertex_own_rows(const pli_vertex_run *run, pli_rows_fn *fn, void *user);
/** Sets run->told to what the part's vertices tell. */
void pli_vertex_tell(pli_vertex_run *run);

/* --- keep.c ------------------------------------------------------------------------------------------------------ */

/** Makes the table of the frontier, if one is needed, and lets the caller restore the tables; then run->row is filled.
 *  Collective over the workers. */
plait_status pli_vertex_begin(pli_vertex_run *run);
/** Does the caller want to be called behind this superstep? The same on all workers. */
bool         pli_vertex_is_due(const pli_vertex_run *run);
/** Calls it. find fills row with the frontier of the part's own vertices, if there is one; NULL: it is filled.
 *  Collective. */
plait_status pli_vertex_pause(pli_vertex_run *run, plait_status (*find)(pli_vertex_run *part));
/** Room for the part's rows of the frontier, if it has none. Errors: ENOMEM. */
plait_status pli_vertex_make_row(pli_vertex_run *part);
/** Has anybody interrupted this worker? */
bool         pli_vertex_is_interrupted(const pli_vertex_run *run);

/* --- scope.c, totals.c -------------------------------------------------------------------------------------------- */

/* Room for a vertex's edges, as a program sees them. Each thread has its own. */
typedef struct pli_scope_room {
    plait_vertex      *other; /* [the most edges of a row] */
    plait_vertex_edge *edge;
} pli_scope_room;

/** Does the program gather by a function of its own, or update? */
static inline bool pli_vertex_sees_edges(const plait_vertex_program *p) {
    return p->gather != NULL || p->update != NULL;
}
/** Makes the numbers of the part's edges, if the program has some. Errors: ENOMEM. */
plait_status pli_scope_data(pli_vertex_run *run);
/** Edge k of the part's rows as its vertex `at` sees it, which has this value. */
void pli_scope_edge(const pli_vertex_run *run, int64_t k, const plait_vertex *at, const void *value,
                    plait_vertex *other, plait_vertex_edge *edge);
/** What gathered begins with. */
void pli_scope_begin(const pli_vertex_run *run, void *sum);
/** Gathers row v by the program's function, into sum. */
void pli_scope_gather(const pli_vertex_run *run, int64_t v, const void *value, void *sum);
/** Updates vertex v: sets *value, and returns its change. */
double pli_scope_update(const pli_vertex_run *run, int64_t v, const void *value, pli_scope_room *room, void *new_value);
bool   pli_scope_room_make(const pli_vertex_run *run, pli_scope_room *room);
void   pli_scope_room_free(pli_scope_room *room);

/** Adds up the totals of what was read, over all workers; *stop_out: the program ends the run. */
plait_status pli_vertex_total(pli_vertex_run *run, bool *stop_out);

/* --- programs.c --------------------------------------------------------------------------------------------------- */

typedef struct pli_vertex_choice {
    const plait_edges *edges;
    int64_t            source;  /* bfs, sssp, personalised pagerank: a vertex; -1: none given */
    double             damping; /* pagerank */
    double             tolerance;
    uint64_t           seed; /* gcn: of weights and of what is dropped; als: of first factors */
    void              *own;  /* what `prepare` has made: gcn.h, beliefs.h, als.h; NULL: nothing */
} pli_vertex_choice;

/* Options that one program alone has, from which it prepares what it reads. */
typedef struct pli_vertex_asked {
    const char *features, *split; /* gcn: files                                                    */
    const char *priors;           /* beliefs: a file; NULL: not given                              */
    bool        most_probable;    /* beliefs: messages take the largest over labels, not the sum   */
    double      smoothing;        /* beliefs: times an edge's weight, the cost of unequal labels   */
    int64_t     components;       /* als */
    double      l2;               /* als */
} pli_vertex_asked;

/* Runs a program on a worker, as plait_vertex_run does: see direct.h. */
typedef plait_status pli_direct_run(plait_job *job, const pli_vertex_choice *choice, const plait_vertex_cut *cut,
                                    int64_t supersteps, void *values_out, plait_vertex_report *report_out);

/* What a program's values come to, for the summary: one whole or real number. */
typedef struct pli_figure {
    const char *name;
    int64_t     whole;
    double      real;
    bool        is_real;
} pli_figure;

enum { PLI_FIGURES = 4 };
/* Fills figure [PLI_FIGURES], and says how many there are. value: of any type, by their bits. */
typedef int32_t pli_figures_fn(const pli_vertex_choice *choice, const int64_t *value, pli_figure *figure);

typedef struct pli_vertex_named {
    const char *name, *summary;
    bool        ids;     /* a value is a vertex, and is shown by its id */
    bool        sourced; /* it needs a source; else it may have one if `personal` */
    bool        personal;
    bool        ranks;   /* values are PageRank's, which add up to 1: --damping and --tolerance are of them */
    /* Fills the program, whose `user` is the choice. Errors: EINVAL, EREFUSED. NULL: it is no gather and apply. */
    plait_status (*make)(const pli_vertex_choice *choice, plait_vertex_program *program, plait_error *err);
    pli_direct_run *run;     /* a run of its own; NULL: plait_vertex_run of what make has filled */
    plait_near      near;    /* of a run of its own: the edges that its cut is of, and */
    plait_near      gathers; /* of what make fills: the program's near                 */
    bool            is_real; /* its values are doubles */
    pli_figures_fn *figures; /* NULL: none */
    /* Makes the result of all vertices' values, in place, once; NULL: the values are the result. */
    void (*finish)(const pli_vertex_choice *choice, int64_t *value);
    /* Makes choice->own of what was asked, which is lent; release frees it. NULL: it has nothing of its own. */
    plait_status (*prepare)(const pli_vertex_asked *asked, pli_vertex_choice *choice, plait_error *err);
    void (*release)(void **own);
    /* A hash of what was prepared: a checkpoint of a run with another is of another run. NULL with prepare NULL, or
     * where there are no checkpoints. */
    uint64_t (*sign)(const void *own);
    /* How many numbers of a value are the result, its first ones; NULL: all. */
    int32_t (*shown)(const pli_vertex_choice *choice);
    const char *takes[5]; /* options of some programs alone that it has a use for; NULL ends them */
    const char *needs;    /* options that it cannot do without, as a command has them; NULL: none */
    int64_t     most;     /* supersteps, if --supersteps does not say it; 0: no limit */
    /* Which of a graph's other views it reads, so that they can be made before its time is taken. */
    bool out, simple;
    bool at_once; /* it takes one superstep */
    bool in_rounds; /* what it has found in the midst of a round has no meaning, so a limit of supersteps has none */
    bool sync_only; /* what it comes to depends on supersteps, so the asynchronous engine has none of it */
    bool parts;   /* it asks no more of a graph than a process knows that has its own part alone (ingress.h) */
    bool whole;   /* the cut decides nothing: it is not taken */
    bool learns;  /* it needs features and a split; its supersteps are epochs */
    bool draws;   /* random numbers, by --seed */
} pli_vertex_named;

/** All of them; NULL ends the list of their names. */
const pli_vertex_named *pli_vertex_all(int32_t *n_out);
const char *const      *pli_vertex_names(void);
/** NULL: there is none of this name, and err has those that there are. */
const pli_vertex_named *pli_vertex_find(const char *name, plait_error *err);

#endif
