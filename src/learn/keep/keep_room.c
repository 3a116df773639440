/* Checks, before the run depends on it, that checkpoints can be written where they are to go. See keep.h. */
#include "learn/keep/keep.h"

#include <string.h>

/* All workers hear what the lead has found out. */
static plait_status agree(pli_run *run, plait_error *why) {
    PLI_TRY(plait_comm_broadcast(run->comm, why, sizeof *why, pli_comm_lead(run->comm)));
    if (why->code >= 0) return PLAIT_OK;
    *run->err = *why;
    return why->code;
}

plait_status pli_keep_probe(pli_run *run) {
    plait_error why;
    if (run->opts->checkpoint == NULL) return PLAIT_OK;
    memset(&why, 0, sizeof why);
    if (pli_comm_leads(run->comm)) (void)pli_check_directory(run->opts->checkpoint, " (the checkpoints)", &why);
    return agree(run, &why);
}

plait_status pli_keep_room(pli_run *run) {
    plait_error why;
    if (run->opts->checkpoint == NULL) return PLAIT_OK;
    memset(&why, 0, sizeof why);
    /* The weights alone, without the update rule's memory: a checkpoint takes at least this. */
    const int64_t needed = run->weights * (int64_t)sizeof(float), there = pli_free_bytes(run->opts->checkpoint);
    if (pli_comm_leads(run->comm) && there >= 0 && there < needed)
        pli_fail(
            &why, PLAIT_ENOSPACE,
            "%s: a checkpoint needs at least %.1f MB, but only %.1f MB are free there; free some space, or name "
            "another place",
            run->opts->checkpoint, (double)needed / 1e6, (double)there / 1e6);
    return agree(run, &why);
}
