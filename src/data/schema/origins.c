/* Origins of columns. See origins.h. */
#include "data/schema/origins.h"

#include <math.h>
#include <stdio.h>

#include "data/dataset/dataset.h"

/* A value keeps 24 bits; 8 of them may go to what all values of the column share. If it is 12, results suffer. */
enum { FAR = 256, LOST = 4096 };

double pli_range_origin(const pli_range *range) {
    const double spread = range->most - range->least, near = fmin(fabs(range->least), fabs(range->most));
    if (range->n < 2 || !(range->least * range->most > 0) || !(spread > 0) || !(near >= FAR * spread)) return 0;
    const double power = floor(log10(spread)), step = pow(10, fabs(power));
    const double origin = power >= 0 ? floor(range->least / step) * step : floor(range->least * step) / step;
    return isfinite(origin) ? origin : 0;
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
    const double spread = range->most - range->least;
    char         origin[32], least[32], most[32], others[64] = "";
    if (!taken && !(fabs(range->least) >= LOST * spread)) return;
    pli_format_f64(pli_range_origin(range), origin);
    pli_format_f64(range->least, least);
    pli_format_f64(range->most, most);
    if (n > 1) snprintf(others, sizeof others, "; %lld other%s too", (long long)n - 1, n == 2 ? "" : "s");
    if (taken)
        pli_dataset_note(d, "%.60s has values from %s to %s: they are read less %s, since 32-bit numbers keep 7 "
                            "digits; the model takes rows as they are%s",
                         name, least, most, origin, others);
    else
        pli_dataset_note(d, "warning: %.60s has values from %s to %s: 32-bit numbers keep 7 digits, so small "
                            "differences are lost; subtract %s from them before training%s",
                         name, least, most, origin, others);
}
