#include "comm/user.h"

#include <string.h>

#include "comm/comm.h"

static void on_message(void *state, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_user *user = state;
    int32_t   src = msg->head.src;
    for (msg = pli_links_take(&user->links, now_ns, msg, out); msg != NULL; msg = pli_links_next(&user->links, src)) {
        msg->next = NULL;
        *user->last = msg;
        user->last = &msg->next;
        pli_out_ring(out);
    }
}

static void on_wakeup(void *state, uint64_t now_ns, pli_out *out) {
    pli_user *user = state;
    pli_links_wakeup(&user->links, now_ns, out);
}

static void on_member(void *state, uint64_t now_ns, const pli_member_event *event, pli_out *out) {
    (void)now_ns;
    pli_user *user = state;
    if (event->kind == PLI_MEMBER_JOINED || user->left[event->rank]) return;
    user->left[event->rank] = true;
    user->present--;
    pli_links_forget(&user->links, event->rank);
    pli_out_ring(out);
}

const pli_machine_ops pli_user_ops = {
    .name = "user", .on_message = on_message, .on_wakeup = on_wakeup, .on_member = on_member
};

bool pli_user_init(pli_user *user, int32_t ranks, uint64_t resend_after_ns) {
    memset(user, 0, sizeof *user);
    user->last = &user->first;
    user->present = ranks - 1;
    user->left = pli_calloc((size_t)ranks, sizeof *user->left);
    if (user->left != NULL && pli_links_init(&user->links, ranks, PLI_PORT_USER, resend_after_ns)) return true;
    pli_free(user->left);
    user->left = NULL;
    return false;
}

void pli_user_destroy(pli_user *user) {
    if (user->left == NULL) return;
    while (user->first != NULL) {
        pli_msg *msg = pli_user_take(user, &user->first);
        pli_msg_free(&msg);
    }
    pli_links_destroy(&user->links);
    pli_free(user->left);
    user->left = NULL;
}

pli_msg **pli_user_find(pli_user *user, int32_t from, int32_t tag) {
    for (pli_msg **at = &user->first; *at != NULL; at = &(*at)->next)
        if ((*at)->head.arg32 == (uint32_t)tag && (from < 0 || (*at)->head.src == from)) return at;
    return NULL;
}

pli_msg *pli_user_take(pli_user *user, pli_msg **at) {
    pli_msg *msg = *at;
    *at = msg->next;
    if (*at == NULL) user->last = at;
    msg->next = NULL;
    return msg;
}

bool pli_user_is_over(const pli_user *user, int32_t from) {
    return from < 0 ? user->present == 0 : user->left[from];
}
