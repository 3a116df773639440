/* How far owned variables have changed, told by their owners to all workers, whose plans depend on it (order priority).
 *
 * Changes travel in a table. An owner incs those of step s in step s + 1, and all read them in step s + 2, when they
 * are whole. With two replicas they go by a sum of all workers before step s + 1: nobody could inc in place of a dead
 * worker what only its pull has found. A variable whose owner died before that sum keeps the change that was known. If
 * the owner ended the step, told its change and then died, its heir may have stood in for it in the same step and tell
 * the same change once more: so a change is the mean of what was told. */
#include "sched/sched.h"

#include <math.h>
#include <string.h>

#include "table/table.h"

/* Do changes go by sums? */
static bool is_summed(const plait_schedule *s) { return s->copied && s->order == PLI_PRIORITY && s->opts.pull != NULL; }

/* value: of each variable of the last plan its change, behind them how many workers have told it. */
static plait_status sum(plait_schedule *s) {
    const int64_t n = s->was.n;
    memset(s->value, 0, 2 * (size_t)n * sizeof *s->value);
    for (int64_t i = 0; i < s->n_told; i++) {
        s->value[s->told_at[i]] = s->told_change[i];
        s->value[n + s->told_at[i]] = 1;
    }
    s->n_told = 0;
    PLI_TRY(plait_comm_allreduce(s->job->comm, s->value, 2 * n, PLAIT_F64, PLAIT_SUM));
    for (int64_t i = 0; i < n; i++)
        if (s->value[n + i] > 0) pli_schedule_weigh(s, s->was.variable[i], s->value[i] / s->value[n + i]);
    return PLAIT_OK;
}

plait_status pli_changes_hear(plait_schedule *s) {
    const int64_t n = s->before.n;
    if (is_summed(s)) return s->was.n > 0 ? sum(s) : PLAIT_OK;
    if (s->table == NULL || n == 0) return PLAIT_OK;
    for (int64_t i = 0; i < n; i++) s->key[i] = (uint64_t)s->before.variable[i];
    PLI_TRY(plait_table_get(s->table, n, s->key, s->value));
    for (int64_t i = 0; i < n; i++) {
        const double change = fmax(s->value[i], 0);
        s->known[s->key[i]] = s->value[i];
        pli_schedule_weigh(s, (int64_t)s->key[i], change);
    }
    return PLAIT_OK;
}

/* As differences from what the table holds. */
plait_status pli_changes_tell(plait_schedule *s) {
    const int64_t n = s->n_told;
    if (s->table == NULL) return PLAIT_OK;
    s->n_told = 0;
    if (n == 0) return PLAIT_OK;
    for (int64_t i = 0; i < n; i++) {
        s->key[i] = (uint64_t)s->told[i];
        s->value[i] = s->told_change[i] - s->known[s->told[i]];
    }
    return plait_table_inc(s->table, n, s->key, s->value, 0);
}

void pli_changes_take(plait_schedule *s) {
    const bool told = s->table != NULL || is_summed(s);
    for (int64_t i = 0; i < s->n_own; i++) {
        if (!told) pli_schedule_weigh(s, s->own[i], s->change[i]);
        s->told[i] = s->own[i];
        s->told_at[i] = s->own_at[i];
        s->told_change[i] = s->change[i];
    }
    s->n_told = told ? s->n_own : 0;
}
