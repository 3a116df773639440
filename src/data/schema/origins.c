/* Origins of columns. See origins.h. */
#include "data/schema/origins.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset/dataset.h"

/* A value keeps 24 bits; 8 of them may go to what all values of the column share. If it is 12, results suffer. */
enum { FAR = 256, LOST = 4096 };

enum { FEW = PLI_RANGE_KEPT / 2 }; /* of fewer kept values none is an outlier */

void pli_range_add(pli_range *range, double x) {
    if (range->n == 0 || x < range->least) range->least = x;
    if (range->n == 0 || x > range->most) range->most = x;
    const uint64_t n = (uint64_t)++range->n;
    if (range->n_kept < PLI_RANGE_KEPT) {
        range->kept[range->n_kept++] = x;
        return;
    }
    const uint64_t at = pli_hash_u64(n) % n; /* each value is kept with the same chance: Vitter 1985, algorithm R */
    if (at < PLI_RANGE_KEPT) range->kept[at] = x;
}

static double origin_between(double least, double most) {
    const double spread = most - least, near = fmin(fabs(least), fabs(most));
    if (!(least * most > 0) || !(spread > 0) || !(near >= FAR * spread)) return 0;
    const double power = floor(log10(spread)), step = pow(10, fabs(power));
    const double origin = power >= 0 ? floor(least / step) * step : floor(least * step) / step;
    return isfinite(origin) ? origin : 0;
}

/* The range of the kept values without `cut` of them at either end. */
static void within(const pli_range *range, int32_t cut, double *least, double *most) {
    double        sorted[PLI_RANGE_KEPT];
    const int32_t n = range->n_kept;
    memcpy(sorted, range->kept, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, pli_order_f64);
    *least = sorted[cut];
    *most = sorted[n - 1 - cut];
}

/* Sets the range without an eighth of the kept values at either end. false: they are too few. */
static bool without_outliers(const pli_range *range, double *least, double *most) {
    if (range->n_kept < FEW) return false;
    within(range, range->n_kept / 8, least, most);
    return true;
}

bool pli_range_may_be_far(const pli_range *range) {
    double least, most;
    if (range->n == 0) return false;
    within(range, range->n_kept < FEW ? (range->n_kept - 1) / 2 : range->n_kept / 4, &least, &most);
    return (least == most && least != 0) || origin_between(least, most) != 0;
}

double pli_range_origin(const pli_range *range) {
    double least, most;
    if (range->n < 2) return 0;
    const double origin = origin_between(range->least, range->most);
    if (origin != 0 || !without_outliers(range, &least, &most)) return origin;
    return origin_between(least, most);
}

int64_t pli_origin_find(const pli_column_origin *origin, int64_t n, uint64_t at) {
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (origin[middle].at < at) low = middle + 1;
        else high = middle;
    }
    return low < n && origin[low].at == at ? low : -1;
}

bool pli_schema_add_origin(pli_schema *schema, uint64_t at, double value) {
    pli_column_origin *all = pli_realloc(schema->origin, (size_t)schema->origins + 1, sizeof *all);
    if (all == NULL) return false;
    all[schema->origins++] = (pli_column_origin){ .at = at, .value = value };
    schema->origin = all;
    return true;
}

int64_t pli_schema_origins(const pli_schema *schema) { return schema->origins; }

double pli_schema_origin(const pli_schema *schema, uint64_t key) {
    for (int64_t i = 0; i < schema->origins; i++) {
        const pli_column_origin *o = &schema->origin[i];
        const uint64_t    at = schema->format == PLI_FORMAT_TABLE ? schema->column[o->at].first_key
                                                                  : o->at - (uint64_t)schema->index_base;
        if (at == key) return o->value;
    }
    return 0;
}

bool pli_schema_same_origins(const pli_schema *a, const pli_schema *b) {
    if (a->origins != b->origins) return false;
    for (int64_t i = 0; i < a->origins; i++)
        if (a->origin[i].at != b->origin[i].at || a->origin[i].value != b->origin[i].value) return false;
    return true;
}

void pli_origins_tell(pli_dataset *d, bool taken, const char *name, const pli_range *range, int64_t n) {
    double     low = range->least, high = range->most;
    const bool outliers = origin_between(low, high) == 0 && without_outliers(range, &low, &high);
    char       origin[32], least[32], most[32], others[64] = "";
    const char *has = outliers ? "has values, but for a few others," : "has values";
    if (!taken && !(fabs(low) >= LOST * (high - low))) return;
    pli_format_f64(pli_range_origin(range), origin);
    pli_format_f64(low, least);
    pli_format_f64(high, most);
    if (n > 1) snprintf(others, sizeof others, "; %lld other%s too", (long long)n - 1, n == 2 ? "" : "s");
    if (taken)
        pli_dataset_note(d, "%.60s %s from %s to %s: they are read less %s, since 32-bit numbers keep 7 "
                            "digits; the model takes rows as they are%s",
                         name, has, least, most, origin, others);
    else
        pli_dataset_note(d, "warning: %.60s %s from %s to %s: 32-bit numbers keep 7 digits, so small "
                            "differences are lost; subtract %s from them before training%s",
                         name, has, least, most, origin, others);
}
