/* The classes that a sampled softmax scores at a clock. See draws.h. */
#include "learn/net/draws.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/sort.h"

/* --- made --------------------------------------------------------------------------------------------------------- */

static double weight_of(const double *rows, int64_t c) { return rows != NULL ? rows[c] + 1 : 1; }

/* Orders the classes, those with most rows first, and classes with equally many by number. key [classes]: room. */
static bool order_classes(const double *rows, int64_t classes, uint64_t *key, uint32_t *order) {
    for (int64_t c = 0; c < classes; c++) {
        key[c] = ~(uint64_t)weight_of(rows, c);
        order[c] = (uint32_t)c;
    }
    return pli_sort_u64(classes, key, order);
}

/* Takes the first classes of the order as certain, until no other one would be drawn more than once. */
static void take_certain(pli_draws *d, int64_t wanted, const double *rows, const uint32_t *order) {
    double rest = 0;
    for (int64_t c = 0; c < d->classes; c++) rest += weight_of(rows, c);
    d->strata = wanted;
    while (d->strata > 0 && (double)d->strata * weight_of(rows, order[d->certain]) >= rest) {
        rest -= weight_of(rows, order[d->certain]);
        d->always[d->certain] = order[d->certain];
        d->certain++;
        d->strata--;
    }
}

static int by_number(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void add_up(pli_draws *d, const double *rows) {
    double  sum = 0;
    int64_t i = 0;
    for (int64_t c = 0; c < d->classes; c++) {
        const bool certain = i < d->certain && d->always[i] == c;
        i += certain;
        sum += certain ? 0 : weight_of(rows, c);
        d->upto[c] = sum;
    }
}

static bool make(pli_draws *d, int64_t wanted, const double *rows, uint64_t *key, uint32_t *order) {
    d->upto = pli_array((size_t)d->classes, sizeof *d->upto);
    d->always = pli_array((size_t)wanted, sizeof *d->always);
    d->drawn = pli_array((size_t)wanted, sizeof *d->drawn);
    d->bonus = pli_array((size_t)wanted, sizeof *d->bonus);
    if (d->upto == NULL || d->always == NULL || d->drawn == NULL || d->bonus == NULL || key == NULL || order == NULL ||
        !order_classes(rows, d->classes, key, order))
        return false;
    take_certain(d, wanted, rows, order);
    qsort(d->always, (size_t)d->certain, sizeof *d->always, by_number);
    add_up(d, rows);
    return true;
}

plait_status pli_draws_create(int64_t classes, int64_t wanted, uint64_t seed, const double *rows, pli_draws **draws_out,
                              plait_error *err) {
    pli_draws *d = pli_calloc(1, sizeof *d);
    uint64_t  *key = pli_array((size_t)classes, sizeof *key);
    uint32_t  *order = pli_array((size_t)classes, sizeof *order);
    bool       made = false;
    if (d != NULL) {
        d->classes = classes;
        d->seed = seed;
        made = make(d, wanted, rows, key, order);
    }
    pli_free(key);
    pli_free(order);
    if (!made) {
        pli_draws_destroy(&d);
        return pli_fail(err, PLAIT_ENOMEM, "no memory to draw from %lld classes", (long long)classes);
    }
    *draws_out = d;
    return PLAIT_OK;
}

void pli_draws_destroy(pli_draws **draws) {
    pli_draws *d = *draws;
    if (d == NULL) return;
    pli_free(d->upto);
    pli_free(d->always);
    pli_free(d->drawn);
    pli_free(d->bonus);
    pli_free(d);
    *draws = NULL;
}

/* --- drawn -------------------------------------------------------------------------------------------------------- */

static double all_of(const pli_draws *d) { return d->upto[d->classes - 1]; }

/* Of a class that is not certain. */
static double expected(const pli_draws *d, int64_t c) {
    return (double)d->strata * (d->upto[c] - (c > 0 ? d->upto[c - 1] : 0)) / all_of(d);
}

/* The class at a place 0 <= at < all_of: the first one that ends behind it. */
static int64_t class_at(const pli_draws *d, double at) {
    int64_t low = 0, high = d->classes - 1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (d->upto[middle] > at) high = middle;
        else low = middle + 1;
    }
    return low;
}

/* Adds a class, which is no less than those that are there: `times` so far, if it is the last of them. */
static void put(pli_draws *d, int64_t c, int64_t *times) {
    if (d->n > 0 && d->drawn[d->n - 1] == c) ++*times;
    else {
        d->drawn[d->n++] = c;
        *times = 1;
    }
    d->bonus[d->n - 1] = log((double)*times / expected(d, c));
}

static void put_certain(pli_draws *d, int64_t c) {
    d->drawn[d->n] = c;
    d->bonus[d->n++] = 0;
}

void pli_draws_clock(pli_draws *d, int64_t clock) {
    pli_random    random = pli_random_at(d->seed, PLI_RANDOM_CLASSES, (uint64_t)clock, 0);
    const double  all = all_of(d);
    int64_t       i = 0, times = 0;
    d->n = 0;
    for (int64_t s = 0; s < d->strata; s++) {
        const double  at = ((double)s + pli_random_f64(&random)) / (double)d->strata * all;
        const int64_t c = class_at(d, fmin(at, nextafter(all, 0)));
        while (i < d->certain && d->always[i] < c) put_certain(d, d->always[i++]);
        put(d, c, &times);
    }
    while (i < d->certain) put_certain(d, d->always[i++]);
}

double pli_draws_expected(const pli_draws *d, int64_t c) {
    return bsearch(&c, d->always, (size_t)d->certain, sizeof c, by_number) != NULL ? 1 : expected(d, c);
}
