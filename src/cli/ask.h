/* ask.h - asks a running train who waits for what, over a Unix socket in Linux's abstract namespace, whose name has the
 * process's number.
 *
 * The socket is no file, so nothing is left behind however the process ends. The kernel tells each end who the other
 * is: the train answers only the same user, or root, and the caller accepts an answer only from the process that it
 * asked.
 */
#ifndef PLI_CLI_ASK_H
#define PLI_CLI_ASK_H

#include <stdint.h>

#include "base/base.h"

typedef enum pli_question {
    PLI_ASK_WAITS = 'w', /* who waits for what      */
    PLI_ASK_TABLES = 't', /* who has what of a table */
    PLI_ASK_SAMPLE = 's'  /* what a dashboard shows of all ranks (watch/dashboard/dashboard.h) */
} pli_question;

/** Opens a listening socket for this process; -1: that failed, so nobody can ask. */
int pli_ask_listen(void);
/** Accepts one caller. -1: there is none, or the caller may not ask, and has been told so. */
int pli_ask_accept(int listening);
/** Reads the caller's question; a caller that asks nothing within a moment asks for waits. */
pli_question pli_ask_question(int caller);
/** Sends the whole text and hangs up. */
void pli_ask_answer(int caller, const char *text);

/** Asks the process. Errors: EINVAL there is no such process, or it cannot be asked; EREFUSED it is another user's;
 *  ETIMEOUT no answer within timeout_ns; EIO. */
plait_status pli_ask(int64_t pid, pli_question question, uint64_t timeout_ns, pli_text *answer, plait_error *err);

#endif
