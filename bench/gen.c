/* bench/gen.c - writes a large sparse classification problem as text.
 *
 *   gen [--rows N] [--features N] [--per-row N] [--seed N] [--values] [--form libsvm|vw] > FILE
 *
 * A row has `per-row` distinct features, 1-based and increasing, index = floor(exp(U ln features)). This is
 * log-uniform: a few features are in most rows, and most features are in few rows. Values are 1, or with --values real
 * numbers. A fifth of the features have a hidden normal weight; the label is drawn by the logistic function of the
 * row's weighted sum. Every number comes from Philox, keyed by seed and row. So a row depends on nothing else, and a
 * longer file begins with the shorter one. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

typedef struct problem {
    int64_t  rows, features, per_row;
    uint64_t seed;
    bool     values, vw;
    float   *weight; /* [features] */
    int64_t *index;  /* [per_row]  */
    double  *value;  /* [per_row]  */
} problem;

static int usage(void) {
    fputs("gen [--rows N] [--features N] [--per-row N] [--seed N] [--values] [--form libsvm|vw] > FILE\n", stderr);
    return 2;
}

static bool read_number(const char *text, int64_t least, int64_t *out) {
    return text != NULL && pli_parse_i64(text, out) && *out >= least;
}

static bool read_options(int argc, char **argv, problem *p) {
    int64_t seed = 1;
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        bool        ok = true;
        if (strcmp(argv[i], "--values") == 0) {
            p->values = true;
            continue;
        }
        if (strcmp(argv[i], "--rows") == 0) {
            ok = read_number(next, 1, &p->rows);
        } else if (strcmp(argv[i], "--features") == 0) {
            ok = read_number(next, 2, &p->features);
        } else if (strcmp(argv[i], "--per-row") == 0) {
            ok = read_number(next, 1, &p->per_row);
        } else if (strcmp(argv[i], "--seed") == 0) {
            ok = read_number(next, 0, &seed);
        } else if (strcmp(argv[i], "--form") == 0) {
            ok = next != NULL && (strcmp(next, "vw") == 0 || strcmp(next, "libsvm") == 0);
            p->vw = ok && next[0] == 'v';
        } else {
            ok = false;
        }
        if (!ok) return false;
        i++;
    }
    p->seed = (uint64_t)seed;
    return p->per_row <= p->features / 2;
}

static void hide_weights(problem *p) {
    for (int64_t j = 0; j < p->features; j++) {
        pli_random r = pli_random_at(p->seed, PLI_RANDOM_DATA, (uint64_t)j, 1);
        p->weight[j] = pli_random_below(&r, 5) == 0 ? (float)pli_random_normal(&r) : 0.0F;
    }
}

/* Inserts a feature in its place; false: the row has it already. */
static bool insert(problem *p, int64_t n, int64_t feature) {
    int64_t at = n;
    while (at > 0 && p->index[at - 1] > feature) at--;
    if (at > 0 && p->index[at - 1] == feature) return false;
    memmove(p->index + at + 1, p->index + at, (size_t)(n - at) * sizeof *p->index);
    p->index[at] = feature;
    return true;
}

/* Fills index and value; returns the label. */
static bool draw_row(problem *p, int64_t row) {
    pli_random   r = pli_random_at(p->seed, PLI_RANDOM_DATA, (uint64_t)row, 0);
    const double range = log((double)p->features);
    double       margin = 0.0;
    for (int64_t n = 0; n < p->per_row;) {
        const int64_t feature = (int64_t)exp(pli_random_f64(&r) * range);
        if (feature >= 1 && feature <= p->features && insert(p, n, feature)) n++;
    }
    for (int64_t k = 0; k < p->per_row; k++) {
        p->value[k] = p->values ? round((0.1 + 0.5 * fabs(pli_random_normal(&r))) * 1e4) / 1e4 : 1.0;
        margin += (double)p->weight[p->index[k] - 1] * p->value[k];
    }
    return pli_random_f64(&r) < 1.0 / (1.0 + exp(-margin));
}

static char *put_number(char *at, int64_t number) {
    char digits[24];
    int  n = 0;
    do {
        digits[n++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    while (n > 0) *at++ = digits[--n];
    return at;
}

static char *put_value(char *at, double value) {
    const int64_t parts = (int64_t)round(value * 1e4);
    at = put_number(at, parts / 10000);
    *at++ = '.';
    for (int64_t unit = 1000; unit > 0; unit /= 10) *at++ = (char)('0' + parts / unit % 10);
    return at;
}

static char *put_row(const problem *p, bool positive, char *at) {
    memcpy(at, positive ? "+1" : "-1", 2);
    at += 2;
    if (p->vw) at = memcpy(at, " |", 2), at += 2;
    for (int64_t k = 0; k < p->per_row; k++) {
        *at++ = ' ';
        at = put_number(at, p->index[k]);
        if (p->vw && !p->values) continue;
        *at++ = ':';
        if (p->values) {
            at = put_value(at, p->value[k]);
        } else {
            *at++ = '1';
        }
    }
    *at++ = '\n';
    return at;
}

int main(int argc, char **argv) {
    problem p = { .rows = 500000, .features = 1000000, .per_row = 40 };
    if (!read_options(argc, argv, &p)) return usage();
    p.weight = pli_array((size_t)p.features, sizeof *p.weight);
    p.index = pli_array((size_t)p.per_row + 1, sizeof *p.index);
    p.value = pli_array((size_t)p.per_row, sizeof *p.value);
    char *line = pli_array((size_t)p.per_row + 1, 48);
    int   code = 1;
    if (p.weight == NULL || p.index == NULL || p.value == NULL || line == NULL) goto done;
    hide_weights(&p);
    for (int64_t row = 0; row < p.rows; row++) {
        const bool  positive = draw_row(&p, row);
        const char *end = put_row(&p, positive, line);
        if (fwrite(line, 1, (size_t)(end - line), stdout) != (size_t)(end - line)) goto done;
    }
    code = fflush(stdout) == 0 ? 0 : 1;
done:
    if (code != 0) fputs("gen: out of memory, or the output could not be written\n", stderr);
    pli_free(line);
    pli_free(p.value);
    pli_free(p.index);
    pli_free(p.weight);
    return code;
}
