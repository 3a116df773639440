/* vertex/heirs.h - a run of two replicas that goes on when a worker dies: others have its part of the graph.
 *
 * Tables outlive any rank (table/copies/replicas.h), and each process holds the graph and its cut. So of what a worker
 * alone has only its part of a superstep is lost, and that follows from what tables hold: the values of the vertices
 * that it reads. A dead worker's part falls to one living worker as a whole, its *heir*, as an item does
 * (plait_job_holder): the item is the part.
 *
 *     the superstep in which it died   plait_job_clock answers PLAIT_STAND_IN. The heir reads what the dead worker had
 *                                      read, since gets still show this superstep's values, and pushes what the dead
 *                                      worker had pushed: the same rows with the same values. Each shard counts the one
 *                                      or the other.
 *     those behind it                  the heir does the part's superstep beside its own.
 *
 * That is inherit.h's, for parts of any form; here a part is an engine's run.
 *
 * What a superstep came to (the largest change, how many have applied, has anybody interrupted it) must not get lost
 * between the clock and a collective behind it, in which the dead have no part. So these figures go with the clock, in
 * a table of a row for each part, NAME.figures: whole numbers whose changes are pushed, a double by its bits. All
 * workers read the same of it.
 *
 * Sums over all vertices and edges (totals.c) are made before the clock ends, by a collective, and made again if a
 * worker is missing in it: pli_heirs_living says whose part is whose by the collectives' list of the dead. */
#ifndef PLI_VERTEX_HEIRS_H
#define PLI_VERTEX_HEIRS_H

#include "vertex/vertex.h"

/* What a superstep came to: over a part, or over all of them. */
typedef struct pli_outcome {
    double  most;    /* the largest change      */
    int64_t applied; /* how many vertices have  */
    bool    interrupted;
} pli_outcome;

/* Does something with a part: the worker's own, or one that it has inherited. */
typedef plait_status pli_part_fn(pli_vertex_run *part);

/** Makes the table of figures. Errors: those of tables. Collective over the workers. */
plait_status pli_heirs_make(pli_vertex_run *run);
/** Frees the parts of others; what engines keep of them was freed by pli_heirs_each_made. run->heirs may be NULL. */
void pli_heirs_free(pli_vertex_run *run);

/** Is it the part of a worker that has died? */
bool pli_heirs_is_inherited(const pli_vertex_run *part);
/** Calls fn for the own part, and for those of the dead that are this worker's in this clock. */
plait_status pli_heirs_each(pli_vertex_run *run, pli_part_fn *fn);
/** Calls fn for the own part, and for all that this worker has ever had. */
void pli_heirs_each_made(pli_vertex_run *run, void (*fn)(pli_vertex_run *part));
/** Ends the clock. If workers have died in it whose parts come to this one, it first calls read for each of them, then
 *  push. read sees the values that this clock has begun with. */
plait_status pli_heirs_clock(pli_vertex_run *run, pli_part_fn *read, pli_part_fn *push);
/** Worker home's part, read and told in this clock, if it is this worker's by the collectives' list; else NULL. */
plait_status pli_heirs_living(pli_vertex_run *run, int32_t home, pli_vertex_run **part_out);

/** Pushes what a part's superstep came to: behind its reads, in the clock that ends the superstep. */
plait_status pli_heirs_tell(pli_vertex_run *part, double most, int64_t applied);
/** What it came to over all parts, behind the clock: the same on all workers. */
plait_status pli_heirs_hear(pli_vertex_run *run, pli_outcome *o);

#endif
