/* cli/verdict.h - how the processes of a job tell `plait launch` their exit codes. */
#ifndef PLI_CLI_VERDICT_H
#define PLI_CLI_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

/** Launch: makes the file and names it to the processes to come. NULL: there is no place for it, and the launcher's code
 *  must do. */
char *pli_verdicts_open(void);
/** The code of the first process that did not end with 0, of those that did not end for another's sake where there is
 *  one; 0: none said so. *lost_out: the rank of which nothing more was heard, -1: not known. Removes the file; frees and NULLs the
 *  path. */
int pli_verdicts_close(char **path, int32_t *lost_out);
/** A process has its rank now; and: it was asked to end. */
void pli_verdict_begun(int32_t rank);
void pli_verdict_asked(void);
/** A process of the program ends with this code. Nothing happens where no launch asks for it. */
void pli_verdict_give(int code);

/** Has another process of the job said this line before ranks could speak to each other? Without a file: no. */
bool pli_verdict_was_said(const char *line);

#endif
