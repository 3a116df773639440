/* Which candidates a step takes, and which worker gets each. A candidate is taken if what it interferes with those
 * taken by others adds up to `allowed` at most, and so does the same sum of each of those. */
#include "sched/sched.h"

#include <string.h>

static bool reserve(pli_plan *plan, int64_t n) {
    if (n <= plan->capacity) return true;
    int64_t *variable = pli_realloc(plan->variable, (size_t)n, sizeof *variable);
    if (variable != NULL) plan->variable = variable;
    int32_t *owner = pli_realloc(plan->owner, (size_t)n, sizeof *owner);
    if (owner != NULL) plan->owner = owner;
    if (variable == NULL || owner == NULL) return false;
    plan->capacity = n;
    return true;
}

/* May candidate c be updated beside those taken, at[] of which are candidates' numbers, by this owner? -1: by all. */
static bool is_free(const plait_schedule *s, const int64_t *at, int64_t c, int32_t owner) {
    double sum = 0;
    if (s->plan.n == 0 || (owner >= 0 && s->homes == 1)) return true;
    const double *row = s->pairs.matrix + c * s->n_candidates;
    for (int64_t i = 0; i < s->plan.n; i++) {
        if (owner >= 0 && s->plan.owner[i] == owner) continue;
        sum += row[at[i]];
        if (s->sum[i] + row[at[i]] > s->opts.allowed) return false;
    }
    return sum <= s->opts.allowed;
}

static void take(plait_schedule *s, int64_t *at, int64_t c, int32_t owner) {
    const int64_t n = s->plan.n;
    s->sum[n] = 0;
    for (int64_t i = 0; i < n && s->opts.conflict != NULL; i++) {
        if (owner >= 0 && s->plan.owner[i] == owner) continue;
        const double value = s->pairs.matrix[c * s->n_candidates + at[i]];
        s->sum[i] += value;
        s->sum[n] += value;
    }
    at[n] = c;
    s->plan.variable[n] = s->candidate[c];
    s->plan.owner[n] = owner;
    s->plan.n++;
    if (owner >= 0) s->count[owner]++;
}

/* With leases: the worker that is done first with one more variable and may take the candidate; -1: none. */
static int32_t fastest_for(const plait_schedule *s, const int64_t *at, int64_t c) {
    double  least = pli_paces_most(s);
    int32_t best = -1;
    for (int32_t w = 0; w < s->homes; w++) {
        const double done = (s->count[w] + 1) * s->pace.known[w];
        if ((best < 0 ? done <= least : done < least) && (s->opts.conflict == NULL || is_free(s, at, c, w))) {
            best = w;
            least = done;
        }
    }
    return best;
}

/* The worker with the fewest variables that may take the candidate; -1: none. */
static int32_t owner_for(const plait_schedule *s, const int64_t *at, int64_t c) {
    if (s->opts.leases) return fastest_for(s, at, c);
    const int64_t most = (s->take + s->homes - 1) / s->homes;
    int32_t       best = -1;
    for (int32_t w = 0; w < s->homes; w++) {
        const bool less = s->count[w] < most && (best < 0 || s->count[w] < s->count[best]);
        if (less && (s->opts.conflict == NULL || is_free(s, at, c, w))) best = w;
    }
    return best;
}

static plait_status ring(plait_schedule *s) {
    s->plan.n = 0;
    const int64_t apart = s->opts.variables / s->homes;
    for (int32_t w = 0; w < s->homes; w++) {
        s->plan.variable[w] = (w * apart + s->step % s->opts.variables) % s->opts.variables;
        s->plan.owner[w] = w;
        s->plan.n++;
    }
    return PLAIT_OK;
}

/* With owners, pairs matter only between workers. */
static bool asks(const plait_schedule *s) {
    return s->opts.conflict != NULL && s->n_candidates > 1 && (s->opts.each || s->homes > 1);
}

plait_status pli_choose(plait_schedule *s) {
    const int64_t room = s->room > s->workers ? s->room : s->workers;
    if (!reserve(&s->plan, room)) return pli_fail(s->err, PLAIT_ENOMEM, "%s: no memory for a plan", s->name);
    if (s->order == PLI_ROTATE && s->opts.schedule == NULL) return ring(s);
    PLI_TRY(pli_order_candidates(s));
    const bool pairs = asks(s);
    if (pairs) PLI_TRY(pli_pairs_fill(s, s->n_candidates, s->candidate));
    int64_t *at = s->own; /* free until the own variables are listed */
    s->plan.n = 0;
    memset(s->count, 0, (size_t)s->workers * sizeof *s->count);
    for (int64_t c = 0; c < s->n_candidates && s->plan.n < s->take; c++) {
        if (s->opts.each) {
            if (!pairs || is_free(s, at, c, -1)) take(s, at, c, -1);
            continue;
        }
        const int32_t owner = owner_for(s, at, c);
        if (owner >= 0) take(s, at, c, owner);
    }
    pli_order_settle(s);
    return PLAIT_OK;
}
