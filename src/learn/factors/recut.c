/* --balance dynamic: a slow worker gets fewer users. In a rotation every worker meets every block of items, so how long
 * it takes is decided by how many ratings its users have. Between two epochs, when the tables hold all factors, users
 * are cut anew so that ratings follow the speeds that were measured in the epoch; ratings then move to the worker that
 * has their user.
 *
 * Under als a worker has a share of the items, too, whose ratings take it as long: both sides are cut anew. A row
 * follows from its ratings and the other side, so the bits stay those of any other cut. */
#include <math.h>
#include <string.h>

#include "comm/comm.h"
#include "learn/factors/factors.h"
#include "table/table.h"

/* Users move only if an epoch would be shorter by this share, at least, since all ratings are sorted anew. */
static const double dead_zone = 0.1;

void pli_recut_begin_work(pli_run *run) {
    if (run->balanced) pli_mf_of(run)->began_ns = pli_comm_own_ns(run->comm);
}

void pli_recut_end_work(pli_run *run) {
    if (run->balanced) pli_mf_of(run)->worked_ns += pli_comm_own_ns(run->comm) - pli_mf_of(run)->began_ns;
}

/* Writes to share [workers] each worker's part of all speed; 0: it has no ratings, or its time is not known. Do the
 * shares at hand fit these speeds badly? pace [workers]: ratings and seconds. */
static bool is_uneven(int32_t workers, const double (*pace)[2], double *share) {
    double speed = 0, ratings = 0, longest = 0;
    for (int32_t w = 0; w < workers; w++) {
        if (!(pace[w][0] > 0) || !(pace[w][1] > 0)) return false;
        share[w] = pace[w][0] / pace[w][1];
        speed += share[w];
        ratings += pace[w][0];
        longest = fmax(longest, pace[w][1]);
    }
    for (int32_t w = 0; w < workers; w++) share[w] /= speed;
    return longest > (1 + dead_zone) * ratings / speed;
}

/* Cuts users, and under als items, so that each worker has its share of the ratings. */
static plait_status cut_sides(pli_run *run, const double *share) {
    pli_mf       *m = pli_mf_of(run);
    int64_t      *users = pli_calloc((size_t)m->pair.users, sizeof *users);
    int64_t      *items = pli_calloc((size_t)m->pair.items, sizeof *items);
    plait_status  status = users != NULL && items != NULL ? pli_ratings_count(run, &m->pair, users, items)
                                                          : pli_fail(run->err, PLAIT_ENOMEM, "no memory to cut users");
    if (status >= 0) pli_ratings_cut_by(m->pair.users, users, plait_comm_workers(run->comm), share, m->user_cut);
    if (status >= 0 && m->als)
        pli_ratings_cut_by(m->pair.items, items, plait_comm_workers(run->comm), share, m->item_cut);
    pli_free(users);
    pli_free(items);
    return status;
}

static plait_status move_rows(pli_run *run, const double *share) {
    pli_mf *m = pli_mf_of(run);
    for (int64_t i = pli_mf_staleness(run); i > 0; i--) { /* the audit finds no turn then that misses one before */
        PLI_TRY(plait_job_clock(run->job));
        run->clocks_done++;
    }
    PLI_TRY(plait_job_barrier(run->job)); /* all users are in the table */
    PLI_TRY(cut_sides(run, share));
    pli_ratings_free(&m->own.ratings);
    PLI_TRY(pli_ratings_share(run, &m->pair, false, m->user_cut, &m->own.ratings));
    if (!m->als) return pli_rotate_take_users(run);
    pli_ratings_free(&m->of_items);
    return pli_ratings_share(run, &m->pair, true, m->item_cut, &m->of_items);
}

plait_status pli_recut(pli_run *run) {
    pli_mf       *m = pli_mf_of(run);
    const int32_t workers = plait_comm_workers(run->comm);
    if (!run->balanced || workers < 2) return PLAIT_OK;
    const double ratings = m->als ? (double)(m->own.ratings.ratings + m->of_items.ratings) : m->sums.rows;
    const double own[2] = { ratings, (double)m->worked_ns * 1e-9 };
    double (*pace)[2] = pli_calloc((size_t)workers, sizeof *pace), *share = pli_calloc((size_t)workers, sizeof *share);
    plait_status status = pace != NULL && share != NULL ? plait_comm_allgather(run->comm, own, sizeof own, pace)
                                                        : pli_fail(run->err, PLAIT_ENOMEM, "no memory for shares");
    m->worked_ns = 0;
    if (status >= 0 && run->opts->shares != NULL && pli_comm_leads(run->comm)) {
        int64_t *rows = pli_array((size_t)workers, sizeof *rows);
        for (int32_t w = 0; rows != NULL && w < workers; w++) rows[w] = (int64_t)pace[w][0] / (m->als ? 2 : 1);
        if (rows != NULL)
            run->opts->shares(run->opts->user,
                              &(plait_shares){ .epoch = m->epoch + 1, .workers = workers, .rows = rows });
        pli_free(rows);
    }
    const bool last = m->epoch + 1 >= run->epochs;
    if (status >= 0 && !last && is_uneven(workers, (const double (*)[2])pace, share)) status = move_rows(run, share);
    pli_free(pace);
    pli_free(share);
    return status;
}
