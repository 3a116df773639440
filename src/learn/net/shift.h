/* learn/net/shift.h - layers that move from stage to stage while a run lasts (--cut K with --balance dynamic), and
 * columns from rank to rank (--columns N).
 *
 * The slowest stage sets the pace of all. Each rank measures what a row takes in its stage, without messages and waits.
 * Every PLI_SHIFT_EVERY clocks, a *window*, all ranks tell each other. If two windows agree, so that no passing load
 * decides, each rank looks for the runs of layers that would suit these speeds (suit.c). All have heard the same
 * numbers, so all find the same. If a clock would become shorter by more than a tenth, the layers move before the next
 * clock begins:
 *
 *     tables   go to the ranks of their new stage, with the rule's state (handover.h)
 *     stages   each rank has the nodes of its new part (interleaved: of its new two); groups and the channel stay,
 *              since ranks keep their stages
 *     session  made anew, since a plan has its sends and receives from the cut
 *
 * No micro-batch is under way at a clock's edge, and places change no bit of what is learnt, so a run whose layers move
 * learns the bits of one that had those places from that clock on, or from the beginning. After each move twice as many
 * windows must pass until the next, so noise cannot keep the layers moving.
 *
 * The slowest rank of a net in columns sets the pace, too. There each rank measures in the same way, and all look for
 * the shares of each layer's columns by which they would end together (suit.c). Then the graph is another one, whose
 * pieces have other sizes, and the tables that change are made out of what lies in their places (column_move.c). Sums
 * over columns round in another order, so a move of columns changes bits.
 *
 * Where R replicas train together, --balance dynamic moves rows as well (solve/balance.h): from replica to replica by
 * whole replicas' speeds, while layers and columns follow the mean speed of each stage. */
#ifndef PLI_LEARN_SHIFT_H
#define PLI_LEARN_SHIFT_H

#include "learn/net/stages.h"

enum { PLI_SHIFT_EVERY = 8 };

typedef struct pli_shift {
    int32_t workers; /* 0: layers stay */
    double  seconds, rows; /* of this rank, in the window at hand */
    int64_t clocks;        /* of that window */
    double *told;          /* [2, workers] seconds and rows of all; lent to the ask */
    double *now, *before;  /* [workers] seconds a row in the last two windows that were heard; 0: not known */
    double *looked;        /* [workers] those by which places were last looked for */
    int32_t *place;        /* [nodes] what was found */
    pli_net *pieces;       /* what was found of a net in columns; NULL: nothing */
    int64_t  rest, pause;  /* windows until a move may follow; after the next move */
    plait_request *asked;
} pli_shift;

/** When the run's places are planned: may its layers move? If not, run->shifts ends. Columns get shares that suit what
 *  is known of speeds. Errors: EREFUSED, with the reason, where rows cannot move either. Collective. */
plait_status pli_shift_settle(pli_run *run);

/** When the tables are there. Errors: EREFUSED a table cannot be handed over; ENOMEM. Collective. */
plait_status pli_shift_begin(pli_run *run, pli_shift *shift);
/** Adds what a clock took, and its rows. */
void         pli_shift_add(pli_shift *shift, uint64_t ns, int64_t rows);
/** Before a clock: *moves_out: layers or columns move now. Collective. */
plait_status pli_shift_look(pli_run *run, pli_shift *shift, bool *moves_out);
/** The last clock has ended. Collective. */
plait_status pli_shift_finish(pli_shift *shift);
void         pli_shift_end(pli_shift *shift);

/** Moves the tables of what was found to its ranks, and tells the stages. The store and the sessions are destroyed
 *  before, and made anew afterwards. Collective. */
plait_status pli_shift_move(pli_run *run, pli_shift *shift);
/** column_move.c. The part of it that moves columns: the run trains *pieces from now on, and *pieces is what it had
 *  trained. A barrier must follow. Errors: EFORMAT, ENOMEM. */
plait_status pli_column_move(pli_run *run, pli_net **pieces);

#endif
