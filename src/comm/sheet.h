/* comm/sheet.h - what a rank shows to all others: a *sheet* with rows of plain numbers, such as one for each table.
 *
 * The rank's own threads write a row's numbers at any time, each by one atomic store. Others read them when they want
 * to know: at once where the rank is of their process, else by a question to port 0, which the thread that drives the
 * transport answers, even while the rank computes. Numbers of a row are read one after the other, so they may be of
 * moments that are a little apart. A row lives until the communicator ends; one that was freed is used again. */
#ifndef PLI_COMM_SHEET_H
#define PLI_COMM_SHEET_H

#include <pthread.h>
#include <stdatomic.h>

#include <plait/comm.h>

#include "base/base.h"

enum { PLI_SHEET_WORDS = 48 };

typedef enum pli_sheet_kind {
    PLI_SHEET_FREE, /* in word 0: what the row is; the other kinds are the writer's */
    PLI_SHEET_HIDDEN,
    PLI_SHEET_FIGURES, /* comm/figures.h */
    PLI_SHEET_OWN
} pli_sheet_kind;

typedef struct pli_sheet_row {
    struct pli_sheet_row *next;
    _Atomic uint64_t      word[PLI_SHEET_WORDS]; /* relaxed, but for word 0: release, pairs with the reader's acquire */
} pli_sheet_row;

typedef struct pli_sheet {
    pthread_mutex_t lock; /* guards the list */
    pli_sheet_row  *row;
} pli_sheet;

void pli_sheet_init(pli_sheet *sheet);
void pli_sheet_destroy(pli_sheet *sheet);
/** This rank's. */
pli_sheet *pli_comm_sheet(plait_comm *comm);

/** Adds a row with these words, whose first is PLI_SHEET_OWN or more. NULL: no memory, so nothing is shown. */
pli_sheet_row *pli_sheet_add(pli_sheet *sheet, const uint64_t word[PLI_SHEET_WORDS]);
/** Nobody sees it from now on; whoever has it may still write to it. */
void pli_sheet_hide(pli_sheet_row *row);
/** Nobody writes to it any more. */
void pli_sheet_free(pli_sheet_row *row);

/** Sets a number, if it is another: a row that does not change stays in all caches. row NULL: nothing. */
static inline void pli_sheet_set(pli_sheet_row *row, int32_t at, int64_t number) {
    if (row != NULL && atomic_load_explicit(&row->word[at], memory_order_relaxed) != (uint64_t)number)
        atomic_store_explicit(&row->word[at], (uint64_t)number, memory_order_relaxed);
}

/** Copies the rows of a sheet that are shown: *rows_out [*n_out, PLI_SHEET_WORDS], by pli_malloc. false: no memory. */
bool pli_sheet_copy(pli_sheet *sheet, uint64_t **rows_out, int64_t *n_out);

/* The sheet of a rank as it was read. */
typedef struct pli_sheet_read {
    uint64_t *row; /* [n, PLI_SHEET_WORDS] */
    int64_t   n;
    bool      heard; /* false: the rank has not answered in time, or has ended */
} pli_sheet_read;

/** Reads the sheets of all ranks: *reads_out [size of comm]. Ranks of other processes have timeout_ns to answer. Any
 *  thread, one at a time of a process. Errors: ENOMEM. */
plait_status pli_sheets_read(const plait_comm *comm, uint64_t timeout_ns, pli_sheet_read **reads_out, plait_error *err);
void         pli_sheets_free(pli_sheet_read **reads, int32_t n);

#endif
