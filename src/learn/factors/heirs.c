/* --replicas 2: what becomes of the users and items of a worker that has died. Both ways of training make of a worker's
 * rows an item that anybody can compute (plait_job_inherits), with the same bits, whoever does:
 *
 *     als   A row of one side follows from its ratings and from the other side's table. A dead worker's share of the
 *           rows falls to one heir as a whole.
 *     sgd   A step on a block of items follows from these, from the ratings of a worker's users there, and from the
 *           users' factors. So with two replicas users are pushed in each step, not once an epoch, and the table has
 *           them. A dead worker still has its blocks in the plan (plait/schedule.h), and each falls to an heir, which
 *           gets users and items, moves both, and pushes both.
 *
 * An heir reads all blocks of the data once more, since they are not cut by users, and keeps the dead worker's ratings.
 * Their order, and with it the order of steps, follows from the ratings alone. */
#include <string.h>

#include "learn/factors/factors.h"

static plait_status read_share(pli_run *run, int32_t home, pli_mf_share *s) {
    const pli_mf *m = pli_mf_of(run);
    s->users.worker = home;
    s->users.epoch = -1;
    PLI_TRY(pli_ratings_read(run, &m->pair, false, m->user_cut + home, &s->users.ratings));
    if (m->als) PLI_TRY(pli_ratings_read(run, &m->pair, true, m->item_cut + home, &s->items));
    s->known = true;
    return PLAIT_OK;
}

static plait_status know(pli_run *run, int32_t home) {
    pli_mf       *m = pli_mf_of(run);
    const int32_t workers = plait_comm_workers(run->comm);
    if (m->heir == NULL) m->heir = pli_calloc((size_t)workers, sizeof *m->heir);
    if (m->heir == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a list of workers");
    return m->heir[home].known ? PLAIT_OK : read_share(run, home, &m->heir[home]);
}

plait_status pli_mf_heirs_each(pli_run *run, bool of_items, bool inherited,
                               plait_status (*solve)(pli_run *run, const pli_ratings *share)) {
    pli_mf       *m = pli_mf_of(run);
    const int32_t workers = plait_comm_workers(run->comm), me = plait_comm_rank(run->comm);
    for (int32_t w = 0; run->opts->replicas > 1 && w < workers; w++) {
        const bool mine = inherited ? plait_job_inherits(run->job, w, 0) != 0
                                    : w != me && plait_job_holder(run->job, w, 0) == me;
        if (!mine) continue;
        PLI_TRY(know(run, w));
        PLI_TRY(solve(run, of_items ? &m->heir[w].items : &m->heir[w].users.ratings));
    }
    return PLAIT_OK;
}

pli_mf_users *pli_mf_heirs_users(pli_run *run, int32_t home) {
    return know(run, home) < 0 ? NULL : &pli_mf_of(run)->heir[home].users;
}

void pli_mf_heirs_end(pli_mf *m, int32_t workers) {
    for (int32_t w = 0; m->heir != NULL && w < workers; w++) {
        pli_rotate_free_users(&m->heir[w].users);
        pli_ratings_free(&m->heir[w].users.ratings);
        pli_ratings_free(&m->heir[w].items);
    }
    pli_free(m->heir);
    m->heir = NULL;
}
