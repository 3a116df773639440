/* comm/callback.h - functions of a program that run inside a machine, as server functions do. They must not call into
 * Plait: the machine's lock is held, and whichever thread brought the message runs them. A call that would is refused
 * there, and named to who runs the function.
 *
 * What a thread is in the middle of is noted only while such a function runs, which never waits: no other rank's code
 * comes between on that thread. */
#ifndef PLI_COMM_CALLBACK_H
#define PLI_COMM_CALLBACK_H

#include <plait/status.h>

/** Around the function's call. end: the public call that it tried, or NULL. */
void        pli_callback_begin(void);
const char *pli_callback_end(void);

/** EINVAL where such a function calls; call is the public one, and outlives the function. Any thread. */
plait_status pli_callback_refuses(const char *call);

#endif
