/* Workers take turns in the dual method (dual.h); this file decides whose turn it is.
 *
 * A pass over all rows has TURNS turns (of more workers more, of few rows fewer), in each of which one worker goes over
 * some of its rows. They come in an order that the seed decides anew for each pass, and so do a worker's rows.
 * Coordinate ascent needs that (Lee and Wright, "Random permutations fix a worst case for cyclic coordinate descent",
 * IMA J. Numerical Analysis 2019): if the workers had one turn each, always in the same order, texts of 10^6 words
 * would take 368 passes instead of the 32 of one worker. With 64 turns they take 36. */
#include "learn/linear/dual.h"
#include "table/topology/topology.h"

enum { TURNS = 64, LEAST_ROWS = 64 /* of a turn; a clock costs more than fewer are worth */ };

static bool reads_whole_clocks(const pli_run *run) {
    const pli_topology_kind *topology = pli_topology_find(run->topology);
    return (pli_pair_properties(topology, run->consistency, NULL) & PLAIT_WHOLE_CLOCKS) != 0;
}

static plait_status count_holders(const pli_run *run, pli_dual_turns *t) {
    const int32_t workers = plait_comm_workers(run->comm), me = plait_comm_rank(run->comm);
    const int32_t own = pli_dataset_own_blocks(run->data) > 0;
    int32_t      *has = pli_calloc((size_t)workers, sizeof *has);
    if (has == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for %d workers", workers);
    plait_status status = plait_comm_allgather(run->comm, &own, sizeof own, has);
    for (int32_t w = 0; w < workers; w++) {
        t->holders += has[w];
        t->home += w < me ? has[w] : 0;
    }
    if (!own) t->home = -1;
    pli_free(has);
    return status;
}

static int32_t shares_of(int64_t rows, int32_t holders) {
    const int64_t turns = rows / LEAST_ROWS < TURNS ? rows / LEAST_ROWS : TURNS;
    return (int32_t)((turns + holders - 1) / holders > 1 ? (turns + holders - 1) / holders : 1);
}

plait_status pli_dual_turns_make(pli_run *run, pli_dual_turns *t) {
    *t = (pli_dual_turns){ .pass = -1, .of = 1, .seed = run->opts->seed };
    PLI_TRY(count_holders(run, t));
    if (t->holders < 1) t->holders = 1;
    t->shares = t->holders > 1 ? shares_of(run->train_rows, t->holders) : 1;
    t->turns = t->holders * t->shares;
    t->lags = t->holders > 1 && !reads_whole_clocks(run);
    t->order = pli_calloc((size_t)t->turns, sizeof *t->order);
    t->share = pli_calloc((size_t)t->turns, sizeof *t->share);
    if (t->order != NULL && t->share != NULL) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_ENOMEM, "no memory for %d turns", t->turns);
}

void pli_dual_turns_free(pli_dual_turns *t) {
    pli_free(t->order);
    pli_free(t->share);
    *t = (pli_dual_turns){ .order = NULL };
}

/* Which places have workers with rows? home [workers]: 1 + the place of each of these, holders + 1: it had none; 0: it
 * has no rows. Writes the others to vacant; returns how many there are. */
static int32_t find_vacant(const pli_dual_turns *t, int32_t workers, const int64_t *home, int32_t *vacant) {
    int32_t n = 0;
    for (int32_t p = 0; p < t->holders; p++) {
        bool taken = false;
        for (int32_t w = 0; w < workers; w++) taken = taken || home[w] == p + 1;
        if (!taken) vacant[n++] = p;
    }
    return n;
}

/* The workers that have come to have rows are dealt to the vacant places, one after the other; if none is vacant (the
 * one that died was never counted), to all, beside those that have them. */
static void deal(pli_dual_turns *t, int32_t me, int32_t workers, const int64_t *home, int32_t vacancies,
                 const int32_t *vacant) {
    const int32_t n = vacancies > 0 ? vacancies : t->holders, beside = vacancies > 0 ? 0 : 1;
    int32_t       comers = 0, mine = -1;
    for (int32_t w = 0; w < workers; w++) {
        if (w == me && home[w] == t->holders + 1) mine = comers;
        comers += home[w] == t->holders + 1;
    }
    if (mine < 0 && t->place >= 0 && beside == 1) t->of = 1 + (comers - t->place + n - 1) / n;
    if (mine < 0) return;
    t->place = vacancies > 0 ? vacant[mine % n] : mine % n;
    t->nth = beside + mine / n;
    t->of = beside + (comers - mine % n + n - 1) / n;
}

plait_status pli_dual_turns_share_out(pli_run *run, pli_dual_turns *t, bool has_rows) {
    const int32_t workers = plait_comm_workers(run->comm), me = plait_comm_rank(run->comm);
    int64_t      *home = pli_calloc((size_t)workers, sizeof *home);
    int32_t      *vacant = pli_calloc((size_t)t->holders, sizeof *vacant);
    plait_status  status = home != NULL && vacant != NULL ? PLAIT_OK
                                                          : pli_fail(run->err, PLAIT_ENOMEM, "no memory for turns");
    if (status >= 0) home[me] = !has_rows ? 0 : t->home >= 0 ? t->home + 1 : t->holders + 1;
    if (status >= 0) status = plait_comm_allreduce(run->comm, home, workers, PLAIT_I64, PLAIT_SUM);
    t->place = has_rows ? t->home : -1;
    t->nth = 0;
    t->of = 1;
    if (status >= 0) deal(t, me, workers, home, find_vacant(t, workers, home, vacant), vacant);
    pli_free(home);
    pli_free(vacant);
    return status;
}

/* Draws the order of a pass, and with it which of its worker's shares comes in each turn. */
static void draw(pli_dual_turns *t, int64_t pass) {
    pli_random random = pli_random_at(t->seed, PLI_RANDOM_DUAL, UINT64_MAX, (uint64_t)pass);
    t->pass = pass;
    pli_random_permutation(&random, t->turns, t->order);
    for (int32_t i = 0; i < t->turns; i++) {
        t->share[i] = (int32_t)t->order[i] / t->holders;
        t->order[i] %= (uint32_t)t->holders;
    }
}

int32_t pli_dual_turns_share(pli_dual_turns *t, int64_t turn) {
    const int64_t pass = turn / t->turns, i = turn % t->turns;
    if (pass != t->pass) draw(t, pass);
    return (int32_t)t->order[i] == t->place && pass % t->of == t->nth ? t->share[i] : -1;
}
