/* comm/figures.h - where each rank's time went, and how many bytes it has sent, as any rank may ask at any time.
 *
 * A rank counts for itself; who wants to know reads its counts, or asks its process (comm/sheet.h). So a run at which
 * nobody looks pays nothing. */
#ifndef PLI_COMM_FIGURES_H
#define PLI_COMM_FIGURES_H

#include <plait/comm.h>

#include "base/base.h"

enum { PLI_SENT_KINDS = 9, PLI_TOLD = 7 };
/** Names of the kinds of bytes: "sums", ... */
extern const char *const pli_sent_kinds[PLI_SENT_KINDS];

/* Of a rank, since it began. compute is the rest: lived - wait - network. */
typedef struct pli_figures {
    bool     heard;     /* false: it has not answered, or has ended, and the rest is 0 */
    bool     in_flight; /* false: ranks are processes, so nobody knows when a message set off: it counts as wait */
    uint64_t lived_ns, wait_ns, network_ns; /* a wait that goes on counts up to now */
    uint64_t sent[PLI_SENT_KINDS];          /* bytes to other ranks */
    bool     has_told;
    double   told[PLI_TOLD]; /* what it has told last, by pli_comm_tell_figures */
} pli_figures;

/** Reads the figures of all ranks: *figures_out [size of comm], freed by pli_free. Ranks of other processes have
 *  timeout_ns to answer. Any thread, one call at a time of a process. Errors: ENOMEM. */
plait_status pli_comm_figures(const plait_comm *comm, uint64_t timeout_ns, pli_figures **figures_out,
                              plait_error *err);

/** Tells numbers of a room above, of which comm knows no meaning. The rank's own thread. */
void pli_comm_tell_figures(plait_comm *comm, const double told[PLI_TOLD]);

/** For those who answer for a rank: writes its figures of this moment to its sheet. Any thread. */
void pli_figures_show(plait_comm *comm);

#endif
