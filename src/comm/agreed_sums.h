/* comm/agreed_sums.h - sums over all workers, in steps that all living workers end or none does: collectives that go on
 * without the dead.
 *
 * agreed.h decides which sums may be used. This is the rest: in each attempt the machine runs the collectives of a step
 * (collective.h) among the workers that live, by messages. A death ends the attempt. Then there are other collectives,
 * of the remaining workers, and what comes for the former ones is dropped: head.server of their messages is the number
 * of the dead that they leave out, plus 1. It is 0 in messages of the agreement, which outlast all attempts.
 *
 * A worker stands in for the dead before it takes part in an attempt that leaves them out. From then on it has what
 * falls to it from them (stood), and after another death it gets more (next). So the parts of an attempt are the same
 * whatever a worker heard first, and the workers of a committed attempt have shared out the same dead.
 *
 * The machine goes on while its worker computes, or is in another call: it answers for the last step that the worker
 * has ended. So a worker that is alone in a step learns from the others whether they have ended it.
 *
 * It holds no thread, socket or clock; agreed_run.h drives it for a rank, and tests/comm/agreed_sums_test.c many of
 * them over bad networks. */
#ifndef PLI_COMM_AGREED_SUMS_H
#define PLI_COMM_AGREED_SUMS_H

#include "comm/agreed.h"
#include "comm/collective.h"

/* A part of a step's sums: values; or a list (list not NULL), which is gathered; or messages (gives not NULL), one for
 * each other worker, which are exchanged. */
typedef struct pli_agreed_part {
    plait_type   type; /* may be one of cells */
    plait_reduce op;
    bool         spares_bytes; /* collective.h */
    int64_t      n;
    const void  *given;  /* [n] this worker's values; they are not changed */
    void        *values; /* [n] the sum, once the step has ended           */
    pli_msg     *list;   /* this worker's list; lent, and nobody writes to it any more */
    pli_msg    **gives;  /* [workers] what this worker has for each other; lent likewise. There is one for each that
                          * the caller does not stand in for, save for itself                                        */
    const uint8_t *hears; /* with it, along a graph: [workers] 1: that one has something for this worker. Of gives those
                           * for others are NULL. NULL: all have something for each other                            */
    pli_msg    **piece;  /* [workers] the lists of all, or what the others had for this worker, once the step has ended;
                          * the caller frees them. Of a worker that the step left out: an empty message, as of the
                          * worker itself in an exchange                                                             */
} pli_agreed_part;

typedef struct pli_agreed_sums {
    pli_agreed     agreed;
    pli_links      links;      /* of the agreement's messages */
    pli_collective collective; /* of the workers that live, by their places among them */
    pli_hosts      hosts;      /* of them   */
    int32_t       *host_of;    /* [workers] */
    const pli_coll_form *form; /* of all sums; NULL: the one that suits */
    const int32_t *rank;       /* [workers] how texts name a worker; NULL: by its number; borrowed */
    int32_t        n_living;
    int32_t       *living;     /* [n_living] who lives */
    int32_t       *name;       /* [n_living] and how texts name them */
    uint8_t       *left;       /* [workers] has ended in good order */
    /* the step's parts, while the worker is in the step's end */
    const pli_agreed_part *parts;
    int64_t        n_parts, room;
    pli_coll_run  *run;        /* [n_parts] */
    pli_msg     ***piece;      /* [n_parts] of lists: [n_pieces] what its collective receives; of exchanges
                                * [2 n_pieces], behind them what it sends; else NULL                 */
    int32_t        n_pieces;   /* how many workers take part in the attempt that was begun last      */
    bool           begun;      /* the collectives of this attempt are under way, or over             */
    int64_t        step;       /* how many the worker has ended */
    uint8_t       *stood;      /* [workers] 1: the worker has taken over its share of what this dead one had */
    uint8_t       *next;       /* [workers] what stood will be when it has stood in */
    _Atomic int32_t waits_for; /* relaxed: for the reason of a wait */
} pli_agreed_sums;

extern const pli_machine_ops pli_agreed_sums_ops;

/** host_of [workers] is copied; rank as above. false: no memory. */
bool pli_agreed_sums_init(pli_agreed_sums *s, int32_t me, int32_t workers, const int32_t *rank, const int32_t *host_of,
                          const pli_coll_form *form, uint64_t resend_after_ns);
void pli_agreed_sums_destroy(pli_agreed_sums *s);

/* The worker's calls, between enter and leave of the port. All workers give parts of the same kinds. */

/** The worker ends its step, or comes again after STAND_IN, and has stood in: parts [n] are lent until `end`. Errors:
 *  ENOMEM. */
plait_status pli_agreed_sums_give(pli_agreed_sums *s, int64_t n, const pli_agreed_part *parts, plait_error *err);
/** PLAIT_OK: the step has ended, on all living workers. PLAIT_STAND_IN: no living worker has its sums, and `next` says
 *  for whom the worker stands in before it gives its parts again. PLAIT_PENDING: ask again when the machine has rung.
 *  Errors: ENOMEM; EMISMATCH the workers' parts differ. */
plait_status pli_agreed_sums_go_on(pli_agreed_sums *s, uint64_t now_ns, pli_out *out, plait_error *err);
/** Gives the parts back, whatever go_on has answered: with the sums if that was PLAIT_OK. Else nothing of them is
 *  touched any more, and after a failure why all later collectives fail. Errors: ENOMEM. */
plait_status pli_agreed_sums_end(pli_agreed_sums *s, plait_status status, plait_error *err);

#endif
