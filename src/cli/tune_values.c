/* A trial's values. They are a function of the seed and of the trials before it, so a search that goes on after a kill
 * draws the same trials again. A draw that equals an earlier trial is drawn again: nothing is trained twice. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/tune.h"

enum { DRAWS = 1000 }; /* so many draws that equal earlier trials: there are hardly others */

/* --- a grid and a draw -------------------------------------------------------------------------------------------- */

/* Whole numbers of a range; a range of others has no end of values. */
static double count_of(const pli_range *r) { return r->whole ? r->high - r->low + 1 : (double)INFINITY; }

int64_t pli_space_grid(pli_space *space, int64_t trials) {
    double  lists = 1, all = 1;
    int32_t numbers = 0;
    for (int32_t i = 0; i < space->n; i++) {
        if (space->range[i].n > 0) lists *= (double)space->range[i].n;
        else numbers++;
    }
    space->points = numbers > 0 ? (int64_t)floor(pow((double)trials / lists, 1.0 / numbers) + 1e-9) : 1;
    if (space->points < 2) space->points = 2;
    for (int32_t i = 0; i < space->n; i++) {
        pli_range *r = &space->range[i];
        if (r->n > 0) continue;
        r->points = (double)space->points < count_of(r) ? space->points : (int64_t)count_of(r);
        all *= (double)r->points;
    }
    all *= lists;
    return all > PLI_TUNE_TRIALS_MAX ? -1 : (int64_t)all;
}

static void number(const pli_range *r, double u, char word[PLI_TUNE_WORD]) {
    const double top = r->whole ? r->high + 1 : r->high;
    double       x = r->log ? exp(log(r->low) + u * (log(top) - log(r->low))) : r->low + u * (top - r->low);
    if (r->whole) x = floor(x);
    if (x > r->high) x = r->high;
    if (x < r->low) x = r->low;
    snprintf(word, PLI_TUNE_WORD, r->whole ? "%.0f" : "%.5g", x);
}

/* Value j of the range in a grid. Whole numbers that lie close together are moved up, so that each is another. */
static void in_grid(const pli_range *r, int64_t j, char word[PLI_TUNE_WORD]) {
    number(r, r->points > 1 ? (double)j / (double)(r->points - 1) : 0, word);
    if (r->whole && strtod(word, NULL) < r->low + (double)j) snprintf(word, PLI_TUNE_WORD, "%.0f", r->low + (double)j);
}

const char *pli_range_word(const pli_range *range, int64_t i) {
    const char *at = range->words;
    while (i-- > 0) at += strlen(at) + 1;
    return at;
}

static void from_list(const pli_range *r, int64_t i, char word[PLI_TUNE_WORD]) {
    snprintf(word, PLI_TUNE_WORD, "%s", pli_range_word(r, i));
}

/* The digit of option i in the trial's number, whose base changes with each option. */
static int64_t digit(const pli_space *space, int64_t trial, int32_t i) {
    for (int32_t before = 0;; before++) {
        const int64_t base = space->range[before].n > 0 ? space->range[before].n : space->range[before].points;
        if (before == i) return trial % base;
        trial /= base;
    }
}

/* The value of option i in draw `draw` of a trial. No block has such a number: streams of SPLIT count blocks from 0. */
static void value(const pli_space *space, uint64_t seed, int64_t trial, int32_t draw, int32_t i,
                  char word[PLI_TUNE_WORD]) {
    const pli_range *r = &space->range[i];
    pli_random       random = pli_random_at(seed, PLI_RANDOM_SPLIT, UINT64_MAX - 1 - (uint64_t)trial,
                                            (uint64_t)draw * PLI_TUNE_RANGES + (uint64_t)i);
    if (r->n > 0) from_list(r, (int64_t)pli_random_below(&random, (uint64_t)r->n), word);
    else number(r, pli_random_f64(&random), word);
}

void pli_space_value(const pli_space *space, uint64_t seed, int64_t trial, int32_t i, char word[PLI_TUNE_WORD]) {
    const pli_range *r = &space->range[i];
    if (space->points == 0) value(space, seed, trial, space->draw != NULL ? space->draw[trial] : 0, i, word);
    else if (r->n > 0) from_list(r, digit(space, trial, i), word);
    else in_grid(r, digit(space, trial, i), word);
}

/* --- draws that equal no earlier one ------------------------------------------------------------------------------ */

/* A set of hashes: open addressing; 0 is an empty place. */
typedef struct hashes {
    uint64_t *at;
    size_t    mask;
} hashes;

/* false: it was there already. */
static bool insert(hashes *set, uint64_t hash) {
    hash += hash == 0;
    for (size_t i = hash & set->mask;; i = (i + 1) & set->mask) {
        if (set->at[i] == hash) return false;
        if (set->at[i] != 0) continue;
        set->at[i] = hash;
        return true;
    }
}

static uint64_t hash_draw(const pli_space *space, uint64_t seed, int64_t trial, int32_t draw) {
    uint64_t hash = 0;
    char     word[PLI_TUNE_WORD];
    for (int32_t i = 0; i < space->n; i++) {
        value(space, seed, trial, draw, i, word);
        hash = pli_hash_bytes(word, strlen(word) + 1, hash);
    }
    return hash;
}

int64_t pli_space_draw(pli_space *space, uint64_t seed, int64_t trials) {
    hashes  known = { .mask = 1 };
    int64_t n = 0;
    while (known.mask < 2 * (size_t)trials) known.mask = 2 * known.mask + 1;
    known.at = pli_calloc(known.mask + 1, sizeof *known.at);
    space->draw = pli_calloc((size_t)trials, sizeof *space->draw);
    for (bool found = known.at != NULL && space->draw != NULL; found && n < trials; n += found) {
        found = false;
        for (int32_t draw = 0; draw < DRAWS && !found; draw++) {
            found = insert(&known, hash_draw(space, seed, n, draw));
            space->draw[n] = draw;
        }
    }
    const bool memory = known.at != NULL && space->draw != NULL;
    pli_free(known.at);
    return memory ? n : -1;
}

void pli_space_free(pli_space *space) {
    pli_free(space->draw);
    space->draw = NULL;
}
