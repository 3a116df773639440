/* vertex/direct.h - programs that are more than a gather and an apply, on the same tables, parts and clocks.
 *
 * plait_vertex_run knows one program: what a neighbor tells, how it is combined, what is made of it. Some algorithms
 * are far faster, or only possible, if a worker sees its part of the graph as a whole between two clocks: it joins
 * vertices into trees, looks for a vertex's *first* neighbor in a set, or intersects two lists. Such a program is one
 * file with a `run` of its own. It computes on its part, pushes what it found to the value table, ends the clock, and
 * reads what the other workers found: so topology, consistency, transport, simulation and the audit stay settings.
 *
 *     direct.c      begin, read, push, the end: what all of them share
 *     bfs.c         breadth-first search, direction-optimising
 *     components.c  weakly connected components by trees; forest.c joins a part's vertices
 *     strong.c      strongly connected components by colors forward and marks back
 *     simple.c      the simple graph, which triangles.c, kcore.c and coloring.c are about
 *     ranked.c      the same by ranks, for triangles.c
 *     triangles.c   triangles; triangles_parts.c where each process has a part of the graph alone
 *     labels.c      label propagation
 *     gcn.c         a graph convolution that learns */
#ifndef PLI_VERTEX_DIRECT_H
#define PLI_VERTEX_DIRECT_H

#include "comm/comm.h"
#include "table/table.h"
#include "vertex/bits.h"
#include "vertex/vertex.h"

/* What a worker has while such a program runs. Values are one int64_t or one double a vertex. */
typedef struct pli_direct {
    plait_job               *job;
    plait_comm              *comm;
    plait_error             *err;
    const char              *name;
    const plait_edges       *edges;
    const plait_vertex_cut  *cut;
    const pli_vertex_choice *choice;
    pli_pool                *pool;
    int32_t                  workers, rank;
    int64_t                  limit;       /* of supersteps; 0: none                                             */
    bool                     all_is_read; /* a read holds all updates of the clocks before: by all workers      */
    pli_part                 part;
    bool                     back;        /* with its rows the other way                                         */
    bool                     own;         /* it looks at rows of own vertices alone                              */
    bool                     by_bits;     /* see pli_direct_opts                                                 */
    plait_table             *value;
    int64_t                 *read;        /* [n of part] a copy; NULL: values are borrowed                      */
    const int64_t           *values;      /* [n of part] as they were read last                                 */
    uint64_t                *hit;         /* [n of part] local numbers of what is pushed, increasing            */
    int64_t                 *better;      /* [n of part] and their values                                       */
    int64_t                  hits;
    plait_vertex_report      report;
} pli_direct;

typedef struct pli_direct_opts {
    const char *name, *combine;
    plait_type  type;
    bool        back;  /* the part's rows the other way, too                                                     */
    bool        own;   /* where rows are whole, it looks at those of own vertices alone                          */
    bool        whole; /* refused by name where reads may miss what others pushed in the clocks before           */
    bool        survives; /* with replicas 2 others count in place of a dead worker; else refused by name there      */
    bool        rows;  /* refused by name if a row's edges lie with several workers                              */
    /* Up to so many workers it may go by bits: d->by_bits. It does if each worker reads the values of all vertices, at
     * whole clocks, has all edges of those that it owns, and no filter wants keys. Parts have no numbers of their own
     * then. Several workers have tables of their own instead of d->value, which is NULL, and fill values_out. */
    int32_t     bits;
    /* The first value of a vertex; NULL: what the combine begins with. */
    int64_t (*first)(const pli_direct *d, int64_t vertex);
} pli_direct_opts;

/** Do reads hold all updates of the clocks before? */
bool pli_direct_reads_all(const plait_job *job);
/** Checks the settings, takes the worker's part of the cut, and creates the table NAME.value. Collective over the
 *  workers. After an error pli_direct_end frees what there is. */
plait_status pli_direct_begin(pli_direct *d, plait_job *job, const pli_vertex_choice *choice,
                              const plait_vertex_cut *cut, int64_t limit, const pli_direct_opts *opts);
/** Sets part to d with worker home's part of the cut in place of its own: for who takes it over (inherit.h).
 *  pli_direct_leave frees it, after an error, too. */
plait_status pli_direct_inherit(const pli_direct *d, int32_t home, pli_direct *part);
void         pli_direct_leave(pli_direct *part);
/** Reads the values of the part's vertices to d->values. */
plait_status pli_direct_read(pli_direct *d);
/** Pushes hit [hits] and better [hits], ends the clock and counts a superstep. */
plait_status pli_direct_clock(pli_direct *d);
/** Pushes a value of each vertex that the worker owns, better [owned]. */
plait_status pli_direct_push_own(pli_direct *d);
/** The sum of a number of each worker. Collective. */
plait_status pli_direct_sum(pli_direct *d, int64_t *number);
/** Copies all values to values_out [vertices] (NULL: not wanted) behind a barrier, drops the table, fills report_out
 *  and frees. status: how the run went; the first error is returned. */
plait_status pli_direct_end(pli_direct *d, plait_status status, void *values_out, plait_vertex_report *report_out);

static inline bool pli_direct_may_go_on(const pli_direct *d) {
    return d->limit == 0 || d->report.supersteps < d->limit;
}

/* --- the programs ------------------------------------------------------------------------------------------------- */

/** plait_vertex_run of the program that `make` of the name fills. */
plait_status pli_run_made(const char *name, plait_job *job, const pli_vertex_choice *choice,
                          const plait_vertex_cut *cut, int64_t supersteps, void *values_out,
                          plait_vertex_report *report_out);
pli_direct_run pli_run_bfs, pli_run_components, pli_run_strong, pli_run_triangles, pli_run_clustering, pli_run_kcore,
    pli_run_coloring, pli_run_labels, pli_run_gcn;
pli_figures_fn pli_figures_components, pli_figures_bfs, pli_figures_triangles, pli_figures_clustering,
    pli_figures_kcore, pli_figures_coloring, pli_figures_labels, pli_figures_gcn;

#endif
