/* cli/reasons.h - why what a matrix refuses is refused: each reason is told once, below, under a number. */
#ifndef PLI_CLI_REASONS_H
#define PLI_CLI_REASONS_H

#include "base/base.h"

enum { PLI_REASONS_MAX = 200, PLI_REASON_BYTES = sizeof((plait_error *)0)->text };

typedef struct pli_reasons {
    char text[PLI_REASONS_MAX][PLI_REASON_BYTES];
    int  n;
} pli_reasons;

/* What a cell's own name becomes, so that cells refused for the same reason share it. */
typedef struct pli_renamed {
    const char *from, *to; /* " x ssp:2" -> " x C"; from ends where a word ends. NULL: the last */
} pli_renamed;

/** The number, from 1, of a reason whose names are made general. */
int  pli_reasons_number(pli_reasons *all, const char *why, const pli_renamed *renamed);
/** "[1]  why", a paragraph each. */
void pli_reasons_tell(const pli_reasons *all, pli_text *text);

#endif
