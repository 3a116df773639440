/* The list of passes, in the order in which they run, and the reader of a text that names some of them. */
#include "graph/passes/passes.h"

#include <string.h>

const pli_pass *const pli_passes[PLI_PASSES] = { &pli_pass_fold, &pli_pass_merge, &pli_pass_sparse, &pli_pass_fuse,
                                                 &pli_pass_memory };

static plait_status add_one(const char *name, size_t length, uint32_t *passes, plait_error *err) {
    const char *names[PLI_PASSES];
    char        given[64];
    for (int32_t k = 0; k < PLI_PASSES; k++) {
        names[k] = pli_passes[k]->name;
        if (strlen(names[k]) != length || strncmp(names[k], name, length) != 0) continue;
        *passes |= UINT32_C(1) << k;
        return PLAIT_OK;
    }
    if (length >= sizeof given) length = sizeof given - 1;
    memcpy(given, name, length);
    given[length] = '\0';
    return pli_fail_unknown(err, "pass", given, names, PLI_PASSES);
}

plait_status pli_passes_parse(const char *text, uint32_t *passes_out, plait_error *err) {
    uint32_t passes = 0;
    if (text == NULL) passes = (UINT32_C(1) << PLI_PASSES) - 1;
    if (text == NULL || strcmp(text, "none") == 0) text = "";
    while (*text != '\0') {
        const size_t length = strcspn(text, ",");
        PLI_TRY(add_one(text, length, &passes, err));
        text += length + (text[length] == ',');
    }
    *passes_out = passes;
    return PLAIT_OK;
}

int32_t *pli_pass_identity(pli_plan *p) {
    int32_t *to = pli_arena_take(&p->work, (size_t)p->n_values * sizeof *to);
    for (int64_t v = 0; to != NULL && v < p->n_values; v++) to[v] = (int32_t)v;
    return to;
}

void pli_pass_redirect(pli_plan *p, const int32_t *to) {
    for (int64_t i = 0; i < p->n_inputs; i++) p->input[i] = to[p->input[i]];
    for (int64_t v = 0; v < p->n_values; v++)
        if (p->value[v].place == PLI_PLACE_VIEW) p->value[v].number = to[p->value[v].number];
    for (int32_t i = 0; i < p->key.n_fetches; i++)
        if (p->fetch[i] >= 0) p->fetch[i] = to[p->fetch[i]];
}
