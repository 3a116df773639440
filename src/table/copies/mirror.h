/* table/copies/mirror.h - a *mirror*, a worker's own whole copy of a table under allreduce, and the sums that change
 * it. There is no message, wait or thread in here: its driver (topology/allreduce.c, a test) moves the sums between the
 * workers.
 *
 * At the end of a clock the worker's updates are taken as a *sum*, to which every worker adds its own; when it is
 * complete, the rule is applied to it once. The policy says when a clock may start: under bsp when the sum of the clock
 * before is applied; under bounded-delay:T up to T sums are under way while the workers go on. Sums are applied when
 * the next clock could not start without them, and no sooner, so what a clock reads does not depend on how fast
 * anything was: the copies are equal, clock by clock, and a run repeats. The worker's own part of what is under way is
 * laid over what it reads, on ruled tables as plain steps of the table's rate.
 *
 * Papers: Agarwal et al., "A Reliable Effective Terascale Linear Learning System", JMLR 2014; Renggli et al.,
 * "SparCML", SC 2019 (sums that turn dense); Li et al., "Pipe-SGD", NeurIPS 2018 (sums under way). */
#ifndef PLI_TABLE_MIRROR_H
#define PLI_TABLE_MIRROR_H

#include "base/event.h"
#include "comm/comm.h"
#include "table/client/pending.h"
#include "table/copies/coded.h"
#include "table/copies/keepers.h"
#include "table/state/shard.h"

enum { PLI_SUM_EXTRA = 3 }; /* values at the end of a sum: what is known of the whole push */

/* How the sum of a table travels. DENSE: values in place. Keyed tables use LISTS, a list of rows from each worker; or,
 * if these would fill much of a dense table, MARKED: values of all rows, and for each row how many have touched it, so
 * that the result is the same. With filters (coded.h) lists are filtered, and a dense sum that flies is CODED: each
 * worker's filtered part is gathered. A DENSE sum that does not fly is then made of filtered parts, too: its driver
 * makes it (topology/coded_sums.c), and it looks as a plain one does. */
typedef enum pli_sum_form { PLI_SUM_DENSE, PLI_SUM_LISTS, PLI_SUM_MARKED, PLI_SUM_CODED } pli_sum_form;

typedef struct pli_sum {
    struct pli_sum *next; /* of a later clock                                                         */
    int64_t        clock;
    pli_sum_form   form;
    pli_pending    own;   /* this worker's part                                                       */
    pli_pending    stood; /* where rows are replaced: what it has added in dead ones' stead ...       */
    int32_t        stead; /* ... the highest of which has this number                                 */
    bool           pushed; /* the worker has a part in it                                             */
    uint64_t       incs;   /* how many incs are in the own part                                       */
    bool           flies;  /* its own part is added to reads until it is applied                      */
    bool           travels; /* it is or was in buckets; one that is in none any more has landed        */
    void          *values; /* DENSE, MARKED, CODED: [n], to be summed over all workers; may lie in own       */
    int64_t        n;
    int64_t        rest;   /* values [rest, n) are complete                                           */
    int64_t        touched, examples; /* DENSE, once the last values are complete: those of the whole push */
    bool           made;    /* of a mirror that holds its sums: it is there, and may be applied     */
    bool           decoded; /* with it: its lists are plain                                         */
    bool           to_code; /* DENSE: its driver has yet to make it of filtered parts                */
    pli_msg       *list;  /* LISTS, CODED: this worker's, to be gathered (the driver takes it) into ... */
    pli_msg      **piece; /* ... [workers] all workers'                                               */
} pli_sum;

/** Is the sum applied part by part, as its values land? It may be if nothing is read before its end. */
static inline bool pli_sum_in_parts(const pli_sum *sum) { return sum->form == PLI_SUM_DENSE && !sum->flies; }

typedef struct pli_mirror {
    const pli_spec *spec; /* borrowed */
    int32_t         rank, workers;
    const pli_event_sink *sink;
    pli_policy      policy;
    pli_shard       shard;
    pli_pending     pending, spare; /* of the current clock; for the next clock */
    pli_sum        *first, **last;  /* taken and not yet applied, in order of clocks */
    uint64_t        incs;           /* how many are pending                      */
    uint64_t        pushes, landed; /* own pushes taken; and how many of them are applied */
    uint64_t        sums;           /* how many are applied                      */
    pli_sum_form    form;           /* of the next sum, once others count on it; set by the driver   */
    int64_t         taken;          /* how many clocks have their sum taken: no update of theirs follows */
    int64_t         keys;           /* in all workers' parts of the sum that was applied last */
    pli_coded      *coded;          /* the filters of its sums; NULL: none */
    pli_slab       *lists[2];       /* memory of earlier clocks' lists, in turns: others may still read the last */
    bool            holds;          /* a sum may be put back until it is applied, as the clock may have to be done
                                     * again (below); set by the driver, before the first sum */
    bool            keeps;          /* with it: one was put back, and this is ... */
    pli_pending     kept;           /* ... the worker's part so far, which reads do not show */
    uint64_t        kept_incs;
    pli_pending     stood;          /* of which this, where rows are replaced, is of dead ones; ... */
    int32_t         stead;          /* ... the highest of their numbers; -1: it stands in for none in this clock */
    void           *result;         /* memory for a sum, ... */
    size_t          result_bytes;   /* ... and how much */
    pli_keepers     *keepers;         /* spec->sharded, with `holds`: who has which slice of the state; else NULL */
} pli_mirror;

/** spec and sink are borrowed. initial, penalty as in plait_table_opts. */
plait_status pli_mirror_open(const pli_spec *spec, const pli_scope *scope, int32_t rank, const pli_event_sink *sink,
                              const void *initial, const void *penalty, pli_mirror **mirror_out, plait_error *err);
void         pli_mirror_close(pli_mirror **mirror); /* no sum's memory may be lent any more */
/** From now on sums pass through the filters that spec->filter names. Before the first update. Errors: as
 *  pli_coded_open. */
plait_status pli_mirror_filter(pli_mirror *mirror, const pli_filter_scope *scope, uint64_t seed, plait_error *err);

/** Own updates to keys [n], or (keys NULL) to the rows first .. first + n - 1. */
plait_status pli_mirror_inc(pli_mirror *mirror, int64_t n, const uint64_t *keys, int64_t first, const void *delta,
                             int64_t examples, plait_error *err);
/** What the worker reads in this clock. Of the sums that are taken, it reads its part of those of earlier clocks. */
void pli_mirror_get(const pli_mirror *mirror, int64_t clock, int64_t n, const uint64_t *keys, int64_t first,
                     void *values);
/** The rows where they lie, or NULL if own updates must be added to them. */
const void  *pli_mirror_read(const pli_mirror *mirror, int64_t clock, int64_t first, int64_t n);
/** As pli_topology_ops.dump. */
plait_status pli_mirror_dump(const pli_mirror *mirror, int64_t clock, int64_t *n_out, uint64_t **keys_out,
                              void **values_out, plait_error *err);

/** The table was not there in this clock: its sum is of nothing. In order of clocks, before any other. */
void pli_mirror_skip(pli_mirror *mirror, int64_t clock);
/** May `clock` start when the sums of all clocks below `applied` are applied? */
bool pli_mirror_may_start(const pli_mirror *mirror, int64_t clock, int64_t applied);
/** The form of the next sum, which flies or not. A keyed table goes by its last sum, so that nobody has to ask how many
 *  keys the others have. */
pli_sum_form pli_mirror_form(const pli_mirror *mirror, bool flies);
/** Does the sum travel as one message of each worker, which all gather? */
static inline bool pli_sum_is_gathered(pli_sum_form form) { return form == PLI_SUM_LISTS || form == PLI_SUM_CODED; }
/** Has the next sum, which does not fly, to be made of filtered parts by its driver? */
static inline bool pli_mirror_is_coded(const pli_mirror *mirror) {
    return mirror->coded != NULL && !mirror->spec->keyed;
}
/** The first sum, which was to_code, is there in its values: for a push of so many examples. */
void         pli_mirror_was_coded(pli_mirror *mirror, const pli_coded_push *push);
/** How many values a sum of this form has; 0: lists. */
int64_t      pli_mirror_sum_values(const pli_mirror *mirror, pli_sum_form form);
/** Takes what is pending as the worker's part of the clock's sum, which goes to the end of the list. flies: the part
 *  is added to reads until the sum is applied; otherwise (nothing is read before) its values may be summed where they
 *  lie. */
plait_status pli_mirror_take(pli_mirror *mirror, int64_t clock, pli_sum_form form, bool flies, pli_sum **sum_out,
                              plait_error *err);
/** The values from `first` on are complete: applies them if the sum is applied in parts. */
plait_status pli_mirror_land(pli_mirror *mirror, pli_sum *sum, int64_t first, plait_error *err);
/** Applies the first sum of the list, which is complete, as far as it is not applied yet, and frees it. */
plait_status pli_mirror_apply(pli_mirror *mirror, plait_error *err);

/* If the mirror holds its sums (mirror_held.c), the driver sums a copy, and the worker's own part stays as it is. All
 * this is about the newest sum, the last that was taken; those before it are made: */

static inline pli_sum *pli_mirror_newest(const pli_mirror *mirror) {
    pli_sum *sum = mirror->first;
    while (sum != NULL && sum->next != NULL) sum = sum->next;
    return sum;
}
/** Where its values [sum->n] are to be summed. Errors: ENOMEM. */
plait_status pli_mirror_result(pli_mirror *mirror, void **values_out, plait_error *err);
/** It is there, at that place (or, of lists, in piece): its values are these from now on. It is applied when the next
 *  clock could not start without it. Filtered lists are decoded now, as filters may know less after a death. Does
 *  nothing if that was said before. Errors: EFORMAT, ENOMEM. */
plait_status pli_mirror_made(pli_mirror *mirror, plait_error *err);
/** It is not made: the next take is of the same clock, and adds what comes until then to what the worker had in it.
 *  Reads show what they showed as the clock began, without that. What filters keep is as it was before. Errors:
 *  ENOMEM. */
plait_status pli_mirror_put_back(pli_mirror *mirror, plait_error *err);

/** The worker now pushes in dead ones' stead, until the next take; the highest of them has this number. If rows are
 *  replaced, these pushes have that one's turn among the pushes of the clock (combine/last.c). */
void pli_mirror_stand_in(pli_mirror *mirror, int32_t highest);
/** No sum is taken yet: what is pending is kept, as if a sum of it had been put back. */
void         pli_mirror_set_aside(pli_mirror *mirror);

/** For spec->sharded, with `holds`: the first sum is made. Has anybody pushed, and of how many examples? */
bool         pli_mirror_is_touched(const pli_mirror *mirror, int64_t *examples_out);
/** For spec->sharded: the first sum is complete in the values first .. first + n - 1, whose states begin with number
 *  `state`, for a push of so many examples. Only these values are updated. */
plait_status pli_mirror_apply_slice(pli_mirror *mirror, int64_t examples, int64_t first, int64_t n, int64_t state,
                                     plait_error *err);
/** All slices of the first sum are applied, here and elsewhere: frees it. */
void         pli_mirror_end_slices(pli_mirror *mirror);

#endif
