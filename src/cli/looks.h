/* looks.h - the losses that a run has told, and when it reached a loss. A run tells now and then the mean loss since it
 * last did (plait_progress). Over single batches that mean jumps, so a loss counts over a window of clocks: a pass over
 * the data, which all settings read alike. */
#ifndef PLI_CLI_LOOKS_H
#define PLI_CLI_LOOKS_H

#include <stdbool.h>
#include <stdint.h>

enum { PLI_LOOKS = 1024 };

typedef struct pli_look {
    double clock, seconds;
    double sum; /* of the losses of all clocks so far */
} pli_look;

/* At [0] nothing has happened. If there is no room for more, every second one is left out. */
typedef struct pli_looks {
    int32_t  n;
    pli_look at[PLI_LOOKS];
} pli_looks;

void pli_looks_begin(pli_looks *looks);
/** loss: the mean since the look before. A NaN, or a clock that is not later, is left out. */
void pli_looks_add(pli_looks *looks, int64_t clock, double seconds, double loss);
/** The mean loss of the last `window` clocks, and the time in their middle. false: there are not so many. */
bool pli_looks_last(const pli_looks *looks, double window, double *seconds_out, double *loss_out);
/** The least loss of a window; INFINITY: there is none. */
double pli_looks_least(const pli_looks *looks, double window);
/** When the window's loss came down to `loss`; INFINITY: it has not. */
double pli_looks_until(const pli_looks *looks, double window, double loss);

#endif
