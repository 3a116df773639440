/* plait/vertex.h - vertex programs: gather, apply, scatter on parameter tables.
 *
 * A graph's vertices have a value each, and a program says how a vertex's value follows from its neighbors'. A value
 * is a row of a parameter table, an edge lies with the worker that the cut gives it to, gathering is the table's
 * combine, and a superstep is a clock: so topology, consistency, transport, simulation and the audit are settings of
 * the job here as elsewhere, and an algorithm is written once.
 *
 *     plait_edges_read(path) -> plait_edges         vertices 0 .. n-1, in increasing order of their ids
 *     plait_vertex_cut_create(edges, parts) -> plait_vertex_cut   which worker has which edge
 *     plait_vertex_run(job, edges, cut, program)    on each worker; edges and cut are those of its process
 *     plait_vertex_run_with(..., opts)              the same by another engine: vertex by vertex, under locks
 *
 * A superstep: each vertex *tells* its neighbors something that it makes of its value; each edge hands it on, along
 * with its weight; what arrives at a vertex is *gathered* (add, min, max, or by a function of the program); and the
 * vertex *applies* it to its value.
 *
 *     with apply       all vertices take part in every superstep. PageRank: tell rank / degree, add, apply 0.15 / n +
 *                      0.85 sum. It ends when no value changes by more than the tolerance.
 *     with scatter     only *signaled* vertices gather and apply: an edge whose far end was seen to change says whether
 *                      its own end is signaled. It ends when none is.
 *     with update      in place of gather and apply: the function sees all of the vertex's edges at once.
 *     without          a value *folds* in what arrives, by min or max: components, distances. Only vertices that have
 *                      changed tell anything (the *frontier*): by pushing along their edges while they are few, else
 *                      each vertex pulls. It ends when nothing changes. Since min and max are idempotent and monotone,
 *                      the result is the same under every consistency, however stale reads are.
 *
 * Papers: Gonzalez, Low, Gu, Bickson and Guestrin, "PowerGraph: Distributed Graph-Parallel Computation on Natural
 * Graphs", OSDI 2012; Malewicz et al., "Pregel", SIGMOD 2010 (supersteps); Beamer, Asanovic and Patterson,
 * "Direction-Optimizing Breadth-First Search", SC 2012 (push and pull).
 *
 * Threads: edges and a cut do not change once they are made, and all workers of a process may share them. */
#ifndef PLAIT_VERTEX_H
#define PLAIT_VERTEX_H

#include <plait/job.h>
#include <plait/table.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plait_edges      plait_edges;
typedef struct plait_vertex_cut plait_vertex_cut;

/* --- graphs ------------------------------------------------------------------------------------------------------ */

typedef struct plait_edges_opts {
    size_t      size;       /* set by plait_edges_opts_init                                                           */
    const char *format;     /* "auto" | "snap" | "matrix-market" | "metis" | "adjacency"; NULL: auto, which takes
                               what has no MatrixMarket banner for SNAP's list                                        */
    int         undirected; /* 1: each edge also goes back, as those of a symmetric matrix and of METIS' file do      */
    int         drop_loops; /* 1: edges from a vertex to itself are left out                                          */
    int         drop_doubles; /* 1: of edges between the same two vertices, the same way, the first is kept           */
} plait_edges_opts;

PLAIT_API void plait_edges_opts_init(plait_edges_opts *opts);
/** The same for a struct of `size` bytes: that of a program that was compiled for an older or newer version. */
PLAIT_API void plait_edges_opts_init_sized(plait_edges_opts *opts, size_t size);
#define plait_edges_opts_init(opts) plait_edges_opts_init_sized(opts, sizeof(plait_edges_opts))

/** Reads a graph: SNAP's edge lists (FROM TO [WEIGHT] a line), Matrix Market, METIS, adjacency lists; plain, gzip or
 *  zstd. Ids are any 64-bit numbers. opts may be NULL. The whole graph is held in memory: 4 bytes an edge, 8 with
 *  weights, and 20 a vertex; while it is read, 28 a vertex. Errors: EIO; EFORMAT, with file and line; ENAME
 *  the format; ESHAPE more than 2^32 - 2 edges; ENOMEM. Not collective, any thread. */
PLAIT_API plait_status plait_edges_read(const char *path, const plait_edges_opts *opts, plait_edges **edges_out,
                                        plait_error *error_out);

/** The same of n edges in memory, from[i] to to[i] by weight[i] (NULL: all 1), which are copied. */
PLAIT_API plait_status plait_edges_from_memory(int64_t n, const uint64_t *from, const uint64_t *to,
                                               const float *weight, const plait_edges_opts *opts,
                                               plait_edges **edges_out, plait_error *error_out);
PLAIT_API void plait_edges_destroy(plait_edges **edges);

PLAIT_API int64_t plait_edges_vertices(const plait_edges *edges);
PLAIT_API int64_t plait_edges_count(const plait_edges *edges);    /* an undirected edge counts twice        */
PLAIT_API int64_t plait_edges_loops(const plait_edges *edges);    /* that the graph had when it was read    */
PLAIT_API int64_t plait_edges_doubles(const plait_edges *edges);  /* edges that an earlier one equals       */
PLAIT_API int     plait_edges_weighted(const plait_edges *edges); /* 0: all weights are 1                   */

/** The number of the vertex with this id; -1: there is none. The id of vertex 0 .. vertices - 1. */
PLAIT_API int64_t  plait_edges_find(const plait_edges *edges, uint64_t id);
PLAIT_API uint64_t plait_edges_id(const plait_edges *edges, int64_t vertex);

/* --- programs ----------------------------------------------------------------------------------------------------- */

typedef struct plait_vertex {
    int64_t  index;   /* 0 .. vertices - 1                     */
    uint64_t id;      /* as in the file                        */
    int64_t  in, out; /* how many edges come to it, leave it   */
} plait_vertex;

/* From which neighbors a vertex gathers: from those with an edge to it, from those that it has an edge to, or both. */
typedef enum plait_near { PLAIT_NEAR_IN = 0, PLAIT_NEAR_OUT = 1, PLAIT_NEAR_BOTH = 2 } plait_near;

/* What an edge hands on of what its neighbor tells: that, that times the edge's weight, or that plus the weight. */
typedef enum plait_along { PLAIT_ALONG_VALUE = 0, PLAIT_ALONG_TIMES = 1, PLAIT_ALONG_PLUS = 2 } plait_along;

/* An edge, as the vertex `at` sees it, which gathers along it. Pointers are lent for the call. */
typedef struct plait_vertex_edge {
    const plait_vertex *at, *other;
    float       weight;
    const void *value; /* of `at`                                                                                   */
    void       *told;  /* what `other` tells; without `tell` its value. Read-only, save under scope full            */
    const void *was;   /* in scatter: what other told when it was last seen to change; else NULL                    */
    void       *data;  /* [edge_values] the edge's own numbers, kept with the worker that gathers along it; `at`
                          alone sees them. NULL: it has none                                                        */
} plait_vertex_edge;

/* Its functions may run on several threads of the worker at once, and must depend on their arguments alone. A value,
 * what is told and what is gathered are `values`, `tells` and `gathers` numbers of the program's type. */
typedef struct plait_vertex_program {
    size_t      size;    /* set by plait_vertex_program_init                                                        */
    const char *name;    /* of the job's tables: NAME.value, NAME.sum                                              */
    plait_type  type;    /* PLAIT_F64 (default), PLAIT_I64, or PLAIT_F32 with gather or update                      */
    const char *combine; /* "add" (default) | "min" | "max"; without apply not add. What is gathered where no edge
                            comes is 0, or for min the largest value (infinity, INT64_MAX), for max the least        */
    plait_near  near;
    plait_along along;   /* TIMES and PLUS of PLAIT_I64 take the weight rounded to a whole number                  */
    void (*init)(void *user, const plait_vertex *v, void *value);                   /* its first value; NULL: 0    */
    void (*tell)(void *user, const plait_vertex *v, const void *value, void *told); /* NULL: the value             */
    /* Sets *value, which is the one before, and says how much it has changed, 0 or more. NULL: it folds. */
    double (*apply)(void *user, const plait_vertex *v, const void *gathered, void *value);
    double      tolerance; /* with apply: it ends after a superstep in which no apply has said more than this      */
    void       *user;

    /* Values of several numbers, and edges with numbers of their own. More than one need gather or update.        */
    int32_t     values, tells, gathers; /* 0: 1, `values`, `tells`; each at most 4096                               */
    int32_t     edge_values;            /* 0: edges have their weight alone                                         */
    void (*edge_init)(void *user, const plait_vertex_edge *edge); /* fills edge->data, which is 0; value, told NULL  */
    /* Adds what an edge gives to gathered, which begins as combine says. With it `along` says nothing, and several
     * workers' parts of a sum are combined by `combine`. NULL: what is told, by along and combine. */
    void (*gather)(void *user, const plait_vertex_edge *edge, void *gathered);
    /* In place of gather and apply: edge [n] are all edges along which v gathers. The cut is range then. */
    double (*update)(void *user, const plait_vertex *v, int64_t n, const plait_vertex_edge *edge, void *value);
    /* Which vertices take part. scatter: edge->other has been seen to change, from `was` to `told`: is edge->at
     * signaled? It may change edge->data. starts: who takes part in the first superstep; NULL: all. again: 1: one whose
     * change is over the tolerance also takes part in the next. With scatter the cut is range. */
    int (*scatter)(void *user, const plait_vertex_edge *edge);
    int (*starts)(void *user, const plait_vertex *v);
    int         again;
    /* Sums over all vertices and edges, in each superstep, of the values that it read, and what ends the run. total
     * adds a vertex's part to sum [totals], total_edge an edge's; stop gets the sums: 1 ends the run. */
    int32_t     totals; /* at most 4096 */
    void (*total)(void *user, const plait_vertex *v, const void *value, double *sum);
    void (*total_edge)(void *user, const plait_vertex_edge *edge, double *sum);
    int (*stop)(void *user, int64_t superstep, const double *sum);
    /* Cached gathers, with gather and scatter: what a vertex has gathered is kept, and where edge->other is seen to
     * change, from `was` to `told`, post_delta changes *gathered [gathers] by what that changes of the edge's part. 1:
     * it has; 0: it cannot, and the vertex gathers along all its edges when it takes part next. So a vertex gathers
     * once, and then looks at the edges that change. gather must not use edge->value. A sum of many changes may differ
     * from a gather in its last bits. Engine sync. NULL: a vertex that takes part gathers. */
    int (*post_delta)(void *user, const plait_vertex_edge *edge, void *gathered);
} plait_vertex_program;

PLAIT_API void plait_vertex_program_init(plait_vertex_program *program);
/** The same for a struct of `size` bytes: that of a program that was compiled for an older or newer version. */
PLAIT_API void plait_vertex_program_init_sized(plait_vertex_program *program, size_t size);
#define plait_vertex_program_init(program) plait_vertex_program_init_sized(program, sizeof(plait_vertex_program))

/* --- cuts --------------------------------------------------------------------------------------------------------- */

/** Says which of `parts` workers has which edge of those that a program gathers along (near). method:
 *
 *   range      vertices 0 .. a-1, a .. b-1, ... with equally many edges each: an edge lies with the vertex that gathers
 *              along it, so a superstep is one clock, and the values' bits do not depend on the number of workers. An
 *              edge cut
 *   random     each edge by a hash of its ends. This and the following are vertex cuts: a vertex's edges lie with
 *              several workers, whose sums meet in a table, and a superstep of a program with apply takes two clocks
 *   grid       by a hash of both ends onto a grid of workers, so a vertex's edges lie with the workers of one row and
 *              one column (Jain, Liao and Willke, "GraphBuilder", GRADES 2013)
 *   oblivious  one edge after the other, to a worker that has both ends already, or one, or to the least loaded
 *              (Gonzalez et al. 2012, section 5.1)
 *   hdrf       the same, but it prefers to replicate the end with the higher degree (Petroni et al., "HDRF:
 *              Stream-Based Partitioning for Power-Law Graphs", CIKM 2015, with lambda 1.1)
 *
 *   metis      METIS cuts the graph, whose edges go both ways for it, so that few join two parts, and an edge lies with
 *              the part of the vertex that gathers along it (Karypis and Kumar, SIAM J. Sci. Comput. 1998). A vertex's
 *              edges lie with one worker, though seldom with the one that has its row of the table: a superstep of a
 *              program with apply takes two clocks
 *
 *  NULL: range. The cut depends on the arguments alone. Errors: EINVAL parts is not 1 .. 65535; ENAME the method;
 *  ENOMEM; metis: EMODULE, ESHAPE 2^31 edges or more. Not collective, any thread. */
PLAIT_API plait_status plait_vertex_cut_create(const plait_edges *edges, plait_near near, const char *method,
                                               int32_t parts, plait_vertex_cut **cut_out, plait_error *error_out);
PLAIT_API void plait_vertex_cut_destroy(plait_vertex_cut **cut);

/** In how many parts a vertex that has edges occurs, on average: each but one costs a message a superstep. */
PLAIT_API double plait_vertex_cut_replication(const plait_vertex_cut *cut);
/** The edges of the part that has the most, over the mean. */
PLAIT_API double plait_vertex_cut_imbalance(const plait_vertex_cut *cut);

/* --- runs --------------------------------------------------------------------------------------------------------- */

typedef struct plait_vertex_report {
    int64_t supersteps;
    int64_t pushed, pulled; /* folding: supersteps in which this worker pushed, pulled                          */
    int     still;          /* 1: it ended because nothing changed (by more than the tolerance), 0: by its limit */
    int     stopped;        /* 1: the program's stop ended it                                                     */
    int     interrupted;    /* 1: the options' interrupted ended it, before it was still or at its limit          */
    int64_t updates;        /* how many vertices have applied, of all workers; 0: sync, and it folds              */
    int64_t lock_waits;     /* async: how often a request found a lock taken, of all workers                      */
} plait_vertex_report;

typedef struct plait_vertex_opts {
    size_t      size;       /* set by plait_vertex_opts_init                                                       */
    int64_t     supersteps; /* the most supersteps; 0: no limit                                                    */
    const char *engine;     /* "sync" (default): superstep by superstep; "async": vertex by vertex, from a queue,
                               until no vertex is left to update. A superstep is then as many updates as each worker
                               has vertices or, without a limit and `every`, the whole run. It needs the cut range.
                               All vertices, or those that `starts` says, are in the queue at first; later those that
                               are signaled: without scatter all that gather from one that changed by more than the
                               tolerance                                                                           */
    const char *scope;      /* async: which neighbors a vertex locks while it is updated, of those that it gathers from:
                               "vertex" (default): none; values that it sees are whole, but may be of different times.
                               "edge": nobody changes them. Updates are as if one came after the other.
                               "full": nobody reads them either, and update may change what edge->told points to, the
                               neighbor's value, if there is no tell                                                */
    const char *order;      /* async: which vertex comes next: "fifo" (default) | "priority": the one whose neighbors
                               have changed most | "sweep": the next higher number, round and round                 */
    /* To stop and to go on. `begin` is called when the tables are there. It may restore them, as
     * plait_checkpoint_restore does; then it sets *restored_out to 1, and values, and who takes part next, are those.
     * `pause` is called behind every `every` supersteps (0: none), and behind the last one if the run was interrupted:
     * it may save them (plait_checkpoint_save). Both are collective, at a clock's edge; tables [n] are NAME.value and,
     * where a program has scatter or the engine is async, NAME.frontier, and lent for the call. interrupted is asked
     * between supersteps, on each worker: 1 on any of them ends the run behind the superstep. Each may be NULL. Edges
     * with numbers of their own are in no table: EREFUSED. */
    int64_t     every;
    plait_status (*begin)(void *user, plait_job *job, plait_table *const *tables, int32_t n, int *restored_out);
    plait_status (*pause)(void *user, plait_job *job, plait_table *const *tables, int32_t n);
    int (*interrupted)(void *user);
    void *user;
} plait_vertex_opts;

PLAIT_API void plait_vertex_opts_init(plait_vertex_opts *opts);
/** The same for a struct of `size` bytes: that of a program that was compiled for an older or newer version. */
PLAIT_API void plait_vertex_opts_init_sized(plait_vertex_opts *opts, size_t size);
#define plait_vertex_opts_init(opts) plait_vertex_opts_init_sized(opts, sizeof(plait_vertex_opts))

/** Runs the program until it is still, or for `supersteps` (0: no limit), and copies all vertices' values to values_out
 *  [vertices, values] (NULL: this worker does not want them). It begins and ends at a clock's edge; its tables,
 *  NAME.value and NAME.sum, are there meanwhile, and after an error until the job ends. In a job with two replicas
 *  (plait_job_opts.replicas) it goes on when a worker dies: others take over its part, with the same values. Then the
 *  tables, and others of NAME, stay until the job ends, which runs one program; the consistency is bsp; there are no
 *  edge_values; engine async has no begin and no pause (else EREFUSED). Errors: EINVAL, also that
 *  apply says a change that is no finite number; ENAME; EREFUSED the program and the job's settings do not go together
 *  (the text has the nearest); EMISMATCH the workers' graphs or programs differ; those of tables. The text is in
 *  plait_comm_error(). Collective over the workers; report_out may be NULL. */
PLAIT_API plait_status plait_vertex_run(plait_job *job, const plait_edges *edges, const plait_vertex_cut *cut,
                                        const plait_vertex_program *program, int64_t supersteps, void *values_out,
                                        plait_vertex_report *report_out);
/** The same with options. opts NULL: the defaults. */
PLAIT_API plait_status plait_vertex_run_with(plait_job *job, const plait_edges *edges, const plait_vertex_cut *cut,
                                             const plait_vertex_program *program, const plait_vertex_opts *opts,
                                             void *values_out, plait_vertex_report *report_out);

#ifdef __cplusplus
}
#endif
#endif
