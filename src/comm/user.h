/* comm/user.h - tagged messages: a machine on PLI_PORT_USER that keeps what came until it is asked for. */
#ifndef PLI_COMM_USER_H
#define PLI_COMM_USER_H

#include "comm/links.h"

typedef struct pli_user {
    pli_links links;
    pli_msg  *first, **last; /* received, in order of arrival */
    bool     *left;          /* [ranks] nothing more will come of it */
    int32_t   present;       /* others that have not left     */
} pli_user;

extern const pli_machine_ops pli_user_ops;

bool pli_user_init(pli_user *user, int32_t ranks, uint64_t resend_after_ns); /* false: no memory */
void pli_user_destroy(pli_user *user);
/** The first message with this tag of rank from (-1: any), not taken, or NULL. */
pli_msg **pli_user_find(pli_user *user, int32_t from, int32_t tag);
pli_msg  *pli_user_take(pli_user *user, pli_msg **at);
/** Will no message of rank from (-1: any) come any more? */
bool pli_user_is_over(const pli_user *user, int32_t from);

#endif
