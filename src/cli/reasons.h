/* cli/reasons.h - the reasons for the refusals in a matrix: each is printed once, below the matrix, with a number. */
#ifndef PLI_CLI_REASONS_H
#define PLI_CLI_REASONS_H

#include "base/base.h"

enum { PLI_REASONS_MAX = 200, PLI_REASON_BYTES = sizeof((plait_error *)0)->text };

typedef struct pli_reasons {
    char text[PLI_REASONS_MAX][PLI_REASON_BYTES];
    int  n;
} pli_reasons;

/* Replaces the names of a cell by general ones, so that cells with the same reason share its number. */
typedef struct pli_renamed {
    const char *from, *to; /* " x ssp:2" becomes " x C"; from ends at the end of a word. from NULL ends the list */
} pli_renamed;

/** The number, from 1, of a reason, whose names are replaced by general ones. */
int  pli_reasons_number(pli_reasons *all, const char *why, const pli_renamed *renamed);
/** Adds a paragraph for each reason: "[1]  why". */
void pli_reasons_tell(const pli_reasons *all, pli_text *text);

#endif
