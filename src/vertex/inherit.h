/* vertex/inherit.h - parts of a run that fall to others when their worker dies.
 *
 * A part is what one worker alone has of a run: its share of a graph, and what it keeps in memory between two clocks. A
 * dead worker's part falls to one living worker as a whole, its heir (plait_job_holder; the item is the part). heirs.h
 * says why no update is lost. A program that is not of an engine's form says here how a part is made again, and does
 * each step of a clock for all parts that a worker has:
 *
 *     each(read)           what the part sees: all of its reads of this clock
 *     each(push)           what it makes of them
 *     clock(again, push)   ends the clock. For parts that have become this worker's in it: again, then push
 *
 * `again` may see the next clock's values: the clock may have ended everywhere, though this worker has not heard that.
 * What is pushed then counts nowhere. So a part must not keep what `again` has found, and begins from tables in the
 * next clock.
 *
 * Figures are whole numbers of each part that go with a clock: in the table NAME.figures, which cannot get lost between
 * the clock and a collective. Without replicas a collective adds them up. */
#ifndef PLI_VERTEX_INHERIT_H
#define PLI_VERTEX_INHERIT_H

#include <plait/job.h>
#include <plait/table.h>

typedef struct pli_inherit pli_inherit;
typedef plait_status pli_inherit_fn(void *user, void *part);

typedef struct pli_inherit_opts {
    plait_job   *job;
    plait_error *err;
    const char  *name; /* of the program; lent            */
    void        *own;  /* the worker's own part; lent     */
    int32_t      figures; /* of each part, at most PLI_INHERIT_FIGURES */
    /* Makes the part of worker home, as own was made; release frees it. */
    plait_status (*make)(void *own, int32_t home, void **part_out);
    void (*release)(void *part);
} pli_inherit_opts;

enum { PLI_INHERIT_FIGURES = 9 };

/** Makes, in a job with two replicas, the table of figures. Errors: ENOMEM; those of tables. Collective over the
 *  workers. */
plait_status pli_inherit_create(const pli_inherit_opts *opts, pli_inherit **inherit_out);
/** Releases all parts but the own one. *inherit may be NULL. */
void pli_inherit_destroy(pli_inherit **inherit);

/** Worker home's part, made now if need be. */
plait_status pli_inherit_part(pli_inherit *h, int32_t home, void **part_out);
/** The same, if it is there; else NULL. */
void *pli_inherit_made(const pli_inherit *h, int32_t home);
/** Calls fn for the own part, and for those of the dead that are this worker's in this clock. */
plait_status pli_inherit_each(pli_inherit *h, pli_inherit_fn *fn, void *user);
/** Ends the clock. If workers have died in it whose parts come to this one, it first calls again for each of them, then
 *  push. */
plait_status pli_inherit_clock(pli_inherit *h, pli_inherit_fn *again, pli_inherit_fn *push, void *user);

/** Pushes the figures of home's part, in the clock that ends the superstep. */
plait_status pli_inherit_tell(pli_inherit *h, int32_t home, const int64_t *figure);
/** Behind the clock: figure [workers, figures], lent until the next call. Collective. */
plait_status pli_inherit_hear(pli_inherit *h, const int64_t **figure_out);
/** Behind the clock: sum [figures] over all parts. Collective. */
plait_status pli_inherit_sum(pli_inherit *h, int64_t *sum);

#endif
