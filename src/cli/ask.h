/* ask.h - asking a running train who waits for what: a Unix socket in Linux's abstract space, by the process's number.
 *
 * It is no file, so nothing is left behind however the process ends. Both ends see by the kernel who the other is: only
 * the same user, or root, is answered, and only the process asked for is believed. */
#ifndef PLI_CLI_ASK_H
#define PLI_CLI_ASK_H

#include <stdint.h>

#include "base/base.h"

/** A socket that listens for this process, or -1: then nobody can ask. */
int pli_ask_listen(void);
/** Takes one caller. -1: none, or one who may not ask (who is told so). */
int pli_ask_accept(int listening);
/** Sends the whole text and hangs up. */
void pli_ask_answer(int caller, const char *text);

/** Asks the process. Errors: EINVAL no such process, or none that can be asked; EREFUSED another user's; ETIMEOUT no
 *  answer within timeout_ns; EIO. */
plait_status pli_ask(int64_t pid, uint64_t timeout_ns, pli_text *answer, plait_error *err);

#endif
