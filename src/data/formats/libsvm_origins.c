/* Origins of libsvm features (schema/origins.h): which features lie far from 0 for their spread?
 *
 * A row that does not give a feature has a 0 there: it counts as one value among the others, and is an outlier among
 * times. The first rows of the first file say which features might have an origin; most data have none, and nothing
 * more is read. Else the first rows of each block decide. */
#include <stdio.h>
#include <stdlib.h>

#include "data/dataset/dataset.h"
#include "data/formats/libsvm.h"

enum { SAMPLE_BYTES = 64 << 10, MOST = 1 << 16 };
enum { FIRST = 8 }; /* rows whose features are looked at; then most of them are known to lie near 0 */

typedef struct candidate {
    uint64_t  index;
    pli_range range;
    int64_t   row; /* the last row that gave it */
} candidate;

typedef struct candidates {
    candidate *c; /* [n] by index */
    int64_t    n, rows;
} candidates;

typedef const unsigned char *cursor;

/* The next "index:value" of the line behind p; false: there is none. */
static bool next_entry(cursor *p, cursor end, uint64_t *index, double *value) {
    cursor at = *p;
    while (at < end && *at != '#') {
        while (at < end && (*at == ' ' || *at == '\t')) at++;
        cursor word = at;
        for (*index = 0; at < end && (unsigned)(*at - '0') < 10; at++) *index = *index * 10 + (uint64_t)(*at - '0');
        if (at > word && at < end && *at == ':') {
            at = pli_number_f64(at + 1, value);
            *p = at;
            return at != NULL && at <= end;
        }
        while (at < end && *at != ' ' && *at != '\t' && *at != '#') at++;
        if (at == word) break;
    }
    return false;
}

static candidate *find(candidates *all, uint64_t index) {
    int64_t low = 0, high = all->n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (all->c[middle].index < index) low = middle + 1;
        else high = middle;
    }
    return low < all->n && all->c[low].index == index ? &all->c[low] : NULL;
}

static int by_index(const void *a, const void *b) {
    const uint64_t x = ((const candidate *)a)->index, y = ((const candidate *)b)->index;
    return (x > y) - (x < y);
}

/* The features of the rows behind p, up to FIRST rows. 0 and 1 are marks, not measures. */
static void begin(candidates *all, cursor p, cursor stop) {
    int64_t kept = 0;
    for (int row = 0; row < FIRST && p < stop; row++) {
        uint64_t index;
        double   value;
        p = pli_libsvm_row(p, stop);
        cursor end = p < stop ? memchr(p, '\n', (size_t)(stop - p)) : NULL;
        if (end == NULL) break;
        while (all->n < MOST && next_entry(&p, end, &index, &value))
            if (value != 0 && value != 1) all->c[all->n++] = (candidate){ .index = index, .row = -1 };
        p = end + 1;
    }
    qsort(all->c, (size_t)all->n, sizeof *all->c, by_index);
    for (int64_t i = 0; i < all->n; i++)
        if (kept == 0 || all->c[kept - 1].index != all->c[i].index) all->c[kept++] = all->c[i];
    all->n = kept;
}

/* Outliers are known by many values, so this looks now and then. */
static bool may_be_far(const pli_range *range) {
    return (range->n != FIRST && range->n % PLI_RANGE_KEPT != 0) || pli_range_may_be_far(range);
}

/* Takes a row in, and drops candidates that are not far from 0. */
static void add_row(candidates *all, cursor p, cursor end) {
    uint64_t index;
    double   value;
    int64_t  kept = 0;
    while (next_entry(&p, end, &index, &value)) {
        candidate *c = find(all, index);
        if (c == NULL || c->row == all->rows) continue;
        pli_range_add(&c->range, value);
        c->row = all->rows;
    }
    for (int64_t i = 0; i < all->n; i++) {
        candidate *c = &all->c[i];
        if (c->row != all->rows) pli_range_add(&c->range, 0);
        if (may_be_far(&c->range)) all->c[kept++] = *c;
    }
    all->n = kept;
    all->rows++;
}

/* Takes in the first rows of [from, to). PLI_PARSE_PAD bytes behind a row must be readable, so the last rows of a
 * source are left out. */
static void add_rows(candidates *all, const pli_source *source, size_t from, size_t to) {
    const size_t safe = source->bytes > PLI_PARSE_PAD ? source->bytes - PLI_PARSE_PAD : 0;
    cursor       p = source->data + from, stop = source->data + (to < safe ? to : safe);
    if (stop > p && stop - p > SAMPLE_BYTES) stop = p + SAMPLE_BYTES;
    if (all->rows == 0) begin(all, p, stop);
    while (p < stop && all->n > 0) {
        p = pli_libsvm_row(p, stop);
        cursor end = p < stop ? memchr(p, '\n', (size_t)(stop - p)) : NULL;
        if (end == NULL) return;
        add_row(all, p, end);
        p = end + 1;
    }
}

static plait_status take(pli_dataset *d, const candidates *all, bool wanted, plait_error *err) {
    int64_t          n = 0;
    const candidate *example = NULL;
    char             name[48];
    for (int64_t i = 0; i < all->n; i++) {
        const double origin = pli_range_origin(&all->c[i].range);
        if (origin == 0) continue;
        if (n++ == 0) example = &all->c[i];
        if (wanted && !pli_schema_add_origin(d->schema, all->c[i].index, origin))
            return pli_fail(err, PLAIT_ENOMEM, "no memory for the description of the data");
    }
    if (example == NULL) return PLAIT_OK;
    snprintf(name, sizeof name, "feature %llu", (unsigned long long)example->index);
    pli_origins_tell(d, wanted, name, &example->range, n);
    return PLAIT_OK;
}

plait_status pli_libsvm_origins(pli_dataset *d, bool wanted, plait_error *err) {
    candidates   all = { .c = pli_calloc(MOST, sizeof *all.c) };
    plait_status status = PLAIT_OK;
    if (all.c == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the description of the data");
    add_rows(&all, &d->sources->source[0], d->sources->source[0].begin, d->sources->source[0].bytes);
    for (int64_t i = 0; all.n > 0 && i < d->segments; i++)
        add_rows(&all, &d->sources->source[d->segment[i].source], d->segment[i].from, d->segment[i].to);
    status = take(d, &all, wanted && d->schema->hash_bits == 0, err);
    pli_free(all.c);
    return status;
}
