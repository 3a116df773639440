/* The table of forms, and which of them a call takes. */
#include "comm/forms/forms.h"

#include <string.h>

#include "comm/comm.h"

const pli_coll_form *const pli_forms[PLI_FORMS] = {
    &pli_form_hierarchical, &pli_form_recursive, &pli_form_tree, &pli_form_rabenseifner, &pli_form_ring,
};

const pli_coll_form *pli_form_find(const char *name) {
    for (int i = 0; i < PLI_FORMS; i++)
        if (strcmp(pli_forms[i]->name, name) == 0) return pli_forms[i];
    return NULL;
}

const pli_coll_form *pli_form_numbered(unsigned id) {
    for (int i = 0; i < PLI_FORMS; i++)
        if (pli_forms[i]->id == id) return pli_forms[i];
    return NULL;
}

const char *const pli_collectives[PLI_COLLECTIVES] = { "auto",         "ring",         "tree",    "recursive",
                                                       "rabenseifner", "hierarchical", "messages" };

plait_status pli_collective_find(const char *name, int32_t *at_out, plait_error *err) {
    int32_t at = 0;
    while (at < PLI_COLLECTIVES && name != NULL && strcmp(pli_collectives[at], name) != 0) at++;
    if (at == PLI_COLLECTIVES) return pli_fail_unknown(err, "collective", name, pli_collectives, PLI_COLLECTIVES);
    if (at_out != NULL) *at_out = at;
    return PLAIT_OK;
}

bool pli_form_scatters(const pli_coll_form **form) {
    if (*form == &pli_form_recursive) *form = &pli_form_rabenseifner; /* the same sums, in the same order */
    return (*form)->scatter_step != NULL;
}

/* scatters: only forms that have a reduce-scatter count. */
static const pli_coll_form *that_suits(const pli_coll *call, int32_t workers, const pli_hosts *hosts, bool scatters) {
    int i = 0;
    while (i < PLI_FORMS - 1 &&
           ((scatters && pli_forms[i]->scatter_step == NULL) || !pli_forms[i]->suits(call, workers, hosts)))
        i++;
    return pli_forms[i];
}

void pli_coll_choose(pli_coll *call, const pli_coll_form *named, int32_t workers, const pli_hosts *hosts) {
    if (!pli_coll_reduces(call)) return;
    call->form = named != NULL ? named : that_suits(call, workers, hosts, false);
    if (call->kind == PLI_REDUCE_SCATTER && !pli_form_scatters(&call->form))
        call->form = that_suits(call, workers, hosts, true);
    call->hosts = hosts;
}

void pli_form_whole(const pli_coll *call, int32_t to, int32_t from, bool reduce, pli_coll_move *m) {
    size_t bytes = pli_coll_buffer_bytes(call);
    *m = (pli_coll_move){ .to = to, .from = from, .reduce = reduce && from >= 0 };
    if (to >= 0) m->send_bytes = bytes;
    if (from >= 0) m->recv_bytes = bytes;
}
