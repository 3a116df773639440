/* Blocks that change hands where all workers meet. See settled.h. */
#include "learn/solve/settled.h"

#include <string.h>

#include "learn/solve/balance.h"
#include "learn/solve/solver.h"

struct pli_settled {
    pli_balance balance;
    int64_t     meetings; /* at which all have asked the book                              */
    int64_t     rests, rest; /* meetings until they ask again; so many follow the next move */
    int32_t    *before; /* [blocks] whose they were before a meeting */
};

bool pli_settles(const pli_run *run) {
    const pli_learner_more *more = run->learner->more;
    if (!run->balanced) return false;
    if (run->solver != NULL) return run->solver->settles;
    return run->learner->row_cols > 0 || (more != NULL && more->settles);
}

plait_status pli_settled_begin(pli_run *run, pli_batches *batches) {
    if (!pli_settles(run) || run->settled != NULL) return PLAIT_OK;
    run->settled = pli_calloc(1, sizeof *run->settled);
    if (run->settled == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for leases");
    run->settled->before = pli_array((size_t)pli_dataset_blocks(run->data), sizeof *run->settled->before);
    if (run->settled->before == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for leases");
    PLI_TRY(pli_balance_begin(&run->settled->balance, run, batches));
    run->homes = run->settled->balance.copies.home;
    return PLAIT_OK;
}

void pli_settled_end(pli_run *run) {
    pli_settled *s = run->settled;
    if (s == NULL) return;
    run->settled = NULL;
    run->homes = NULL;
    pli_balance_end(&s->balance);
    pli_free(s->before);
    pli_free(s);
}

const int32_t *pli_settled_before(const pli_run *run) {
    return run->settled != NULL && run->settled->meetings > 0 ? run->settled->before : NULL;
}

void pli_settled_begin_work(pli_run *run) {
    if (run->settled != NULL) pli_balance_begin_work(&run->settled->balance);
}

void pli_settled_end_work(pli_run *run, int64_t rows) {
    if (run->settled == NULL) return;
    run->settled->balance.batch_rows = rows;
    pli_balance_end_work(&run->settled->balance, 0);
}

/* A newcomer does not know how often the others have met, nor whose blocks were whose. */
plait_status pli_settled_anew(pli_run *run) {
    pli_settled *s = run->settled;
    if (s == NULL) return PLAIT_OK;
    s->meetings = s->rests = s->rest = 0;
    return pli_balance_copies_anew(&s->balance, 0);
}

plait_status pli_settled_meet(pli_run *run, bool *moved_out) {
    pli_settled *s = run->settled;
    *moved_out = false;
    if (s == NULL) return PLAIT_OK;
    if (s->rests > 0) {
        s->rests--;
        return PLAIT_OK;
    }
    const size_t bytes = (size_t)pli_dataset_blocks(run->data) * sizeof *s->before;
    memcpy(s->before, run->homes, bytes);
    PLI_TRY(pli_balance_copies_agree(&s->balance, s->meetings++));
    *moved_out = memcmp(s->before, run->homes, bytes) != 0;
    if (*moved_out) s->rests = s->rest = 2 * s->rest + 1;
    int32_t moved = 0;
    for (int32_t b = 0; b < pli_dataset_blocks(run->data); b++) moved += s->before[b] != run->homes[b];
    if (moved > 0 && pli_comm_leads(run->comm))
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_INFO, -1, "learn",
                "balance: %d block%s change%s hands after epoch %lld", (int)moved, pli_plural(moved),
                moved == 1 ? "s" : "", (long long)run->epochs_done);
    return PLAIT_OK;
}
