/* comm/callback.h - functions of a program that run inside a machine, such as server functions. They must not call into
 * Plait, because the machine's lock is held and the thread that brought the message runs them. Such a call is refused,
 * and whoever runs the function learns its name.
 *
 * A thread is marked only while such a function runs. The function never waits, so no other rank's code can run on
 * the thread in between. */
#ifndef PLI_COMM_CALLBACK_H
#define PLI_COMM_CALLBACK_H

#include <plait/status.h>

/** Called before and after the function. end returns the public call that the function tried, or NULL. */
void        pli_callback_begin(void);
const char *pli_callback_end(void);

/** EINVAL if such a function makes the call. call is the public call's name and outlives the function. Any thread. */
plait_status pli_callback_refuses(const char *call);

#endif
