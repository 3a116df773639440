/* The registry of combines. A new one is a file, and a line here. */
#include "table/combine/combine.h"

static const pli_combine *const combines[] = { &pli_add_combine, &pli_min_combine, &pli_max_combine, &pli_last_combine,
                                             NULL };

const pli_combine *const *pli_combines(void) { return combines; }

plait_status pli_combine_find(const char *name, const pli_combine **combine_out, plait_error *err) {
    const char *names[16];
    size_t      n = 0;
    if (name == NULL) name = PLI_COMBINE_DEFAULT;
    for (; combines[n] != NULL && n < sizeof names / sizeof *names; n++) {
        names[n] = combines[n]->name;
        if (strcmp(name, names[n]) != 0) continue;
        *combine_out = combines[n];
        return PLAIT_OK;
    }
    return pli_fail_unknown(err, "combine", name, names, n);
}

bool pli_combine_replaces(const char *name) {
    const pli_combine *combine = NULL;
    return pli_combine_find(name, &combine, NULL) >= 0 && combine->replaces;
}
