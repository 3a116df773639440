/* table/topology/coded_making.h - the messages of a clock's filtered sums, as one worker puts and reads them: one for
 * all tables that are summed in the same form (copies/coded.h). Who sends them is not said here: coded_sums.c does
 * where everybody lives, agreed_coded.c where the sums go on without the dead. */
#ifndef PLI_TABLE_TOPOLOGY_CODED_MAKING_H
#define PLI_TABLE_TOPOLOGY_CODED_MAKING_H

#include "table/copies/mirror.h"
#include "table/table.h"

/* A clock's filtered sums, while they are made. */
typedef struct pli_making {
    plait_job      *job;
    bool            in_stripes;
    int64_t         clock;
    int32_t         workers, me;
    plait_error    *err;
    pli_mirror    **mirror; /* [n], in the order of the job's tables: the same on all workers          */
    void          **sum;    /* [n] where their values are added up                                     */
    pli_coded_push *push;   /* [n] of all workers, as far as it is known                               */
    int64_t         n;
    const pli_coded *cut;   /* of one of them: all are cut alike; NULL: there is none                  */
    pli_msg       **given, **came; /* [workers] */
} pli_making;

/** Lists the sums that are to_code and have this form. Errors: ENOMEM; pli_making_close follows in any case. */
plait_status pli_making_open(pli_making *m, plait_job *job, bool in_stripes, plait_error *err);
void         pli_making_close(pli_making *m);
void         pli_making_free_messages(pli_making *m);

/** The worker's part of a stripe (whole: of everything, stripe 0). Errors: ENOMEM; what a filter says. */
plait_status pli_making_put_parts(pli_making *m, int32_t stripe, pli_msg **msg_out);
/** Adds the part of worker w, came[w], to the sums. Errors: EFORMAT, ENOMEM. */
plait_status pli_making_add_parts(pli_making *m, int32_t w);
/** Whole: clears the sums, and adds the parts of all that live in order. */
plait_status pli_making_add_all(pli_making *m);
/** In stripes: puts the parts of the others' stripes into given. */
plait_status pli_making_put_stripes(pli_making *m);
/** In stripes: adds what the others have for the own stripe to the own part, which lies in the sums. */
plait_status pli_making_add_stripes(pli_making *m);
/** In stripes: do sums go back to all? Not those of tables whose owners apply their slices themselves (sharded.h). */
bool         pli_making_gathers(const pli_making *m);
/** In stripes: the sums of the own stripe. */
plait_status pli_making_put_sums(pli_making *m, pli_msg **msg_out);
/** In stripes: reads the sums of all stripes, which have come from their owners. */
plait_status pli_making_take_sums(pli_making *m);

/* In stripes, of tables whose slices have several holders (agreed_slices.h): */

/** The sums of the own stripe, as they are. */
plait_status pli_making_put_held(const pli_making *m, pli_msg **msg_out);
/** Reads those of another's stripe, which this worker holds, too. Errors: EFORMAT. */
plait_status pli_making_take_held(const pli_making *m, int32_t stripe, const pli_msg *msg);

#endif
