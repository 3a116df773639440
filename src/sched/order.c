/* The candidates of a step. Each order is a function of the seed, the step, and what all workers know. */
#include "sched/sched.h"

#include <string.h>

static const char *const names[PLI_ORDERS] = { "round-robin", "random", "priority", "rotate" };

plait_status pli_order_find(const char *name, pli_order *order_out, plait_error *err) {
    *order_out = PLI_ROUND_ROBIN;
    for (int i = 0; i < PLI_ORDERS; i++)
        if (name == NULL || strcmp(names[i], name) == 0) {
            *order_out = (pli_order)i;
            return PLAIT_OK;
        }
    return pli_fail_unknown(err, "order", name, names, PLI_ORDERS);
}

/* Is the variable no candidate of this step yet? It is one from now on. */
static bool is_new(plait_schedule *s, int64_t variable) {
    if (s->stamp[variable] == s->step + 1) return false;
    s->stamp[variable] = s->step + 1;
    return true;
}

static void add(plait_schedule *s, int64_t variable) {
    if (is_new(s, variable)) s->candidate[s->n_candidates++] = variable;
}

/* Those that waited come first. */
static void round_robin(plait_schedule *s, int64_t room) {
    for (int64_t i = 0; i < s->n_waiting && s->n_candidates < room; i++) add(s, s->waiting[i]);
    for (int64_t i = 0; i < s->opts.variables && s->n_candidates < room; i++) {
        add(s, s->cursor);
        s->cursor = (s->cursor + 1) % s->opts.variables;
    }
}

void pli_order_settle(plait_schedule *s) {
    s->n_waiting = 0;
    if (s->order != PLI_ROUND_ROBIN || s->opts.schedule != NULL) return;
    for (int64_t i = 0; i < s->plan.n; i++) s->stamp[s->plan.variable[i]] = 0;
    for (int64_t i = 0; i < s->n_candidates; i++)
        if (s->stamp[s->candidate[i]] == s->step + 1) s->waiting[s->n_waiting++] = s->candidate[i];
}

static void draw(plait_schedule *s, int64_t room) {
    pli_random random = pli_random_at(s->opts.seed, PLI_RANDOM_SCHED, (uint64_t)s->step, 0);
    while (s->n_candidates < room) add(s, (int64_t)pli_random_below(&random, (uint64_t)s->opts.variables));
}

/* A variable that was drawn has weight 0 until all are. */
static void draw_by_weight(plait_schedule *s, int64_t room) {
    pli_random random = pli_random_at(s->opts.seed, PLI_RANDOM_SCHED, (uint64_t)s->step, 0);
    while (s->n_candidates < room) {
        const int64_t variable = pli_fenwick_find(&s->weights, pli_random_f64(&random));
        if (variable < 0) break;
        s->held[s->n_candidates] = s->weights.weight[variable];
        s->candidate[s->n_candidates++] = variable;
        pli_fenwick_set(&s->weights, variable, 0);
    }
    for (int64_t i = 0; i < s->n_candidates; i++) pli_fenwick_set(&s->weights, s->candidate[i], s->held[i]);
}

/* The program's own. */
static plait_status ask(plait_schedule *s, int64_t room) {
    int64_t n = 0;
    PLI_TRY(s->opts.schedule(s->opts.user, s->step, room, s->candidate, &n));
    if (n < 0 || n > room)
        return pli_fail(s->err, PLAIT_EINVAL, "%s: step %lld has %lld candidates, but 0 to %lld are allowed", s->name,
                        (long long)s->step, (long long)n, (long long)room);
    for (int64_t i = 0; i < n; i++) {
        const int64_t variable = s->candidate[i];
        if (variable < 0 || variable >= s->opts.variables || !is_new(s, variable))
            return pli_fail(s->err, PLAIT_EINVAL, "%s: candidate %lld of step %lld is variable %lld, which is not "
                                                  "within 0 .. %lld, or was named before", s->name, (long long)i,
                            (long long)s->step, (long long)variable, (long long)s->opts.variables - 1);
    }
    s->n_candidates = n;
    return PLAIT_OK;
}

plait_status pli_order_candidates(plait_schedule *s) {
    const int64_t most = s->opts.conflict != NULL ? s->room : s->take;
    const int64_t room = most < s->opts.variables ? most : s->opts.variables;
    s->n_candidates = 0;
    if (s->opts.schedule != NULL) return ask(s, room);
    if (s->order == PLI_ROUND_ROBIN) round_robin(s, room);
    if (s->order == PLI_RANDOM_ORDER) draw(s, room);
    if (s->order == PLI_PRIORITY) draw_by_weight(s, room);
    return PLAIT_OK;
}
