/* comm/user.h - tagged messages: a machine on PLI_PORT_USER that keeps messages until they are asked for. */
#ifndef PLI_COMM_USER_H
#define PLI_COMM_USER_H

#include "comm/links.h"

typedef struct pli_user {
    pli_links links;
    pli_msg  *first, **last; /* received, in order of arrival */
    bool     *left;          /* [ranks] no more messages will come from it */
    int32_t   present;       /* other ranks that have not left */
} pli_user;

extern const pli_machine_ops pli_user_ops;

bool pli_user_init(pli_user *user, int32_t ranks, uint64_t resend_after_ns); /* false: no memory */
void pli_user_destroy(pli_user *user);
/** The first message with this tag from rank `from` (-1: any), not taken out, or NULL. */
pli_msg **pli_user_find(pli_user *user, int32_t from, int32_t tag);
pli_msg  *pli_user_take(pli_user *user, pli_msg **at);
/** Is it certain that no more messages of rank `from` (-1: any) will come? */
bool pli_user_is_over(const pli_user *user, int32_t from);

#endif
