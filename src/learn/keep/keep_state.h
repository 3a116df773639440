/* learn/keep/keep_state.h - what a run knows of the checkpoint that it takes; for this folder. */
#ifndef PLI_LEARN_KEEP_STATE_H
#define PLI_LEARN_KEEP_STATE_H

#include "learn/keep/keep.h"
#include "learn/keep/cuts.h"
#include "table/table.h"

/* How far the checkpoint at hand is. */
typedef enum pli_keep_phase {
    PLI_KEEP_IDLE,
    PLI_KEEP_CUT,       /* pieces go to the writer; the lead makes the folder             */
    PLI_KEEP_TAKEN,     /* the folder is there                                            */
    PLI_KEEP_WRITTEN,   /* this worker's part is complete                                 */
    PLI_KEEP_COMMITTING /* all parts are; the lead writes the manifest                    */
} pli_keep_phase;

enum { PLI_KEEP_VOTES = 8 }; /* of an ask */

struct pli_keep {
    pli_run      *run;
    plait_table  *table[PLI_TABLES];
    int32_t       tables;
    pli_writer   *writer;
    pli_cuts     *cuts;
    pli_keep_phase phase;
    bool          finishing; /* the writer was told that no more comes */
    int32_t       lead, absent;                  /* who led at the cut, and how many were missing (see_deaths) */
    bool          redo;                          /* a checkpoint was dropped: the next is due now */
    plait_error   failed;                        /* why the last one that was due failed; code 0: it did not */
    char          folder[PLI_CHECKPOINT_FOLDER]; /* from PLI_KEEP_TAKEN on */
    char         *meta;               /* the lead's, from the cut to the commit */
    pli_part_plan plan;               /* from the cut until there is a folder   */
    int64_t       clock, bytes, last; /* of the checkpoint at hand; last: the last complete one's clock, -1: none */
    uint64_t      begun_ns, due_ns, stall_ns;
    /* asks */
    double         vote[PLI_KEEP_VOTES]; /* lent to the ask while asked is not NULL */
    plait_request *asked;
    int32_t        asked_lead; /* who led then: a new lead has not voted as the lead */
    int64_t        next_ask, asked_clock;
    int64_t        seen_clock; /* of the last call; a learner may call after some clocks only */
    uint64_t       asked_ns;
    double         clock_ns; /* a clock of the slowest worker, as last heard */
};

/** Does this worker lead the checkpoint at hand? */
static inline bool pli_keep_leads(const pli_keep *k) { return plait_comm_rank(k->run->comm) == k->lead; }

/* keep_says.c */

/** What a checkpoint says of its run, as JSON. The caller frees text, also after an error. */
plait_status pli_keep_describe(const pli_run *run, int64_t epoch, int64_t clock, const pli_total *progressive,
                               pli_text *text);

/* keep_cut.c */

/** Begins a checkpoint of this clock: tables begin a capture, and the writer gets what does not lie in tables. An error
 *  of the writer is heard at the next ask, since the other workers go on to it. Collective over the workers. */
plait_status pli_keep_cut(pli_run *run, int64_t epoch, int64_t clock);
/** Hands pieces to the writer for at most budget_ns; budget_ns 0: until all are handed over. */
plait_status pli_keep_pump(pli_keep *k, double budget_ns);

#endif
