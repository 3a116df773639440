/* The classes that some rows are scored on by a sampled softmax. See candidates.h. */
#include "learn/net/candidates.h"

#include <math.h>

#include "base/sort.h"
#include "learn/net/net.h"

/* The classes of the labels, each once, increasing; returns how many, -1: no memory. */
static int64_t find_own(const pli_net *net, pli_candidates *c, int64_t labels, const double *label) {
    int64_t n = 0, unique = 0;
    if (!pli_grow((void **)&c->own, &c->own_capacity, labels, sizeof *c->own)) return -1;
    for (int64_t i = 0; i < labels; i++) {
        double y, weight;
        if (pli_goal_target(net->goal, label[i], &y, &weight)) c->own[n++] = (uint64_t)y;
    }
    if (!pli_sort_u64(n, c->own, NULL)) return -1;
    for (int64_t i = 0; i < n; i++)
        if (i == 0 || c->own[i] != c->own[unique - 1]) c->own[unique++] = c->own[i];
    return unique;
}

static bool reserve(const pli_net *net, pli_candidates *c, int64_t n) {
    return pli_grow((void **)&c->row, &c->row_capacity, n, sizeof *c->row) &&
           pli_grow((void **)&c->bonus, &c->bonus_capacity, n, sizeof *c->bonus) &&
           pli_grow((void **)&c->of_part, &c->parts_capacity, net->columns, sizeof *c->of_part);
}

static void put(pli_candidates *c, int64_t row, double bonus) {
    c->row[c->n] = row;
    c->bonus[c->n++] = bonus;
}

/* Merges drawn and own classes below `end`, from places *d and *o on. */
static void merge(pli_candidates *c, int64_t first, int64_t end, int64_t own, int64_t *d, int64_t *o) {
    const pli_draws *drawn = c->draws;
    for (;;) {
        const int64_t a = *d < drawn->n ? drawn->drawn[*d] : INT64_MAX;
        const int64_t b = *o < own ? (int64_t)c->own[*o] : INT64_MAX;
        if (a >= end && b >= end) return;
        put(c, (a < b ? a : b) - first, a <= b ? drawn->bonus[*d] : -(double)INFINITY);
        *d += a <= b;
        *o += b <= a;
    }
}

bool pli_candidates_find(const pli_net *net, pli_candidates *c, int64_t labels, const double *label) {
    const int64_t own = find_own(net, c, labels, label), all = net->goal->columns;
    int64_t       d = 0, o = 0;
    if (own < 0 || !reserve(net, c, c->draws->n + own)) return false;
    c->n = 0;
    for (int32_t p = 0; p < net->columns; p++) {
        const int64_t first = pli_columns_edge(net, all, p), before = c->n;
        merge(c, first, pli_columns_edge(net, all, p + 1), own, &d, &o);
        c->of_part[p] = c->n - before;
    }
    return true;
}

void pli_candidates_free(pli_candidates *c) {
    pli_free(c->of_part);
    pli_free(c->row);
    pli_free(c->bonus);
    pli_free(c->own);
    *c = (pli_candidates){ .n = 0 };
}
