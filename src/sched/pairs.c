/* How much candidates interfere. The program is asked once for each pair, for all unknown pairs of a step in one call,
 * since an answer may be a sum over workers. Answers are kept in a cache with one place for each hash: it is bounded,
 * and the same on every worker. */
#include "sched/sched.h"

#include <math.h>

bool pli_pairs_init(pli_pairs *p, int64_t cache) {
    *p = (pli_pairs){ 0 };
    for (int64_t slots = 1; cache > 0 && slots <= cache && slots <= INT64_C(1) << 30; slots *= 2) p->slots = slots;
    p->pair = pli_array((size_t)p->slots, sizeof *p->pair);
    p->value = pli_array((size_t)p->slots, sizeof *p->value);
    if (p->pair == NULL || p->value == NULL) return false;
    pli_pairs_forget(p);
    return true;
}

void pli_pairs_destroy(pli_pairs *p) {
    pli_free(p->pair);
    pli_free(p->value);
    pli_free(p->matrix);
    pli_free(p->missing);
    pli_free(p->answer);
    *p = (pli_pairs){ 0 };
}

void pli_pairs_forget(pli_pairs *p) {
    for (int64_t i = 0; i < p->slots; i++) p->pair[i].a = -1;
}

static int64_t slot_of(const pli_pairs *p, plait_variables pair) {
    const uint64_t hash = pli_hash_u64(pli_hash_u64((uint64_t)pair.a) + (uint64_t)pair.b);
    return (int64_t)(hash & (uint64_t)(p->slots - 1));
}

/* The kept answer, or -1. */
static double find(const pli_pairs *p, plait_variables pair) {
    if (p->slots == 0) return -1;
    const int64_t at = slot_of(p, pair);
    return p->pair[at].a == pair.a && p->pair[at].b == pair.b ? p->value[at] : -1;
}

static void keep(pli_pairs *p, plait_variables pair, double value) {
    if (p->slots == 0) return;
    const int64_t at = slot_of(p, pair);
    p->pair[at] = pair;
    p->value[at] = value;
}

static plait_variables pair_of(int64_t a, int64_t b) {
    return a < b ? (plait_variables){ a, b } : (plait_variables){ b, a };
}

static plait_status ask(plait_schedule *s, int64_t n) {
    pli_pairs *p = &s->pairs;
    if (n == 0) return PLAIT_OK;
    PLI_TRY(s->opts.conflict(s->opts.user, n, p->missing, p->answer));
    p->asked += n;
    for (int64_t i = 0; i < n; i++)
        if (!(p->answer[i] >= 0))
            return pli_fail(s->err, PLAIT_EINVAL, "%s: the conflict function answered %g for variables %lld and %lld: "
                                                  "expected 0 or more", s->name, p->answer[i],
                            (long long)p->missing[i].a, (long long)p->missing[i].b);
    return PLAIT_OK;
}

plait_status pli_pairs_fill(plait_schedule *s, int64_t n, const int64_t *candidate) {
    pli_pairs *p = &s->pairs;
    const bool ok = n < INT64_C(1) << 24 && pli_grow((void **)&p->matrix, &p->matrix_capacity, n * n, sizeof(double)) &&
                    pli_grow((void **)&p->missing, &p->missing_capacity, n * n / 2 + 1, sizeof *p->missing) &&
                    pli_grow((void **)&p->answer, &p->answer_capacity, n * n / 2 + 1, sizeof *p->answer);
    if (!ok) return pli_fail(s->err, PLAIT_ENOMEM, "%s: no memory for pairs of %lld candidates", s->name, (long long)n);
    int64_t missing = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++) {
            const plait_variables pair = pair_of(candidate[i], candidate[j]);
            const double          value = find(p, pair);
            p->matrix[i * n + j] = value;
            if (value < 0) p->missing[missing++] = pair;
        }
    PLI_TRY(ask(s, missing));
    missing = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++) {
            double *value = &p->matrix[i * n + j];
            if (*value < 0) {
                *value = p->answer[missing];
                keep(p, p->missing[missing], *value);
                missing++;
            }
            p->matrix[j * n + i] = *value;
        }
    return PLAIT_OK;
}
