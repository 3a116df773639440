/* See keepers.h. */
#include "table/copies/keepers.h"

#include <string.h>

#include "comm/collective.h"

bool pli_keepers_init(pli_keepers *keepers, int32_t workers, int32_t copies, int64_t values, const uint8_t *dead) {
    *keepers = (pli_keepers){ .workers = workers, .copies = copies, .values = values };
    keepers->dead = pli_calloc((size_t)workers, 1);
    keepers->living = pli_array((size_t)workers, sizeof *keepers->living);
    if (keepers->dead == NULL || keepers->living == NULL) {
        pli_keepers_free(keepers);
        return false;
    }
    memcpy(keepers->dead, dead, (size_t)workers);
    for (int32_t w = 0; w < workers; w++)
        if (!dead[w]) keepers->living[keepers->n_living++] = w;
    return true;
}

void pli_keepers_free(pli_keepers *keepers) {
    pli_free(keepers->dead);
    pli_free(keepers->living);
    *keepers = (pli_keepers){ 0 };
}

pli_stretch pli_keepers_range(const pli_keepers *keepers, int32_t slice) {
    const int64_t first = pli_slice_first(keepers->values, slice, keepers->n_living);
    return (pli_stretch){ first, pli_slice_first(keepers->values, slice + 1, keepers->n_living) - first };
}

int32_t pli_keepers_held(const pli_keepers *keepers) {
    return keepers->copies < keepers->n_living ? keepers->copies : keepers->n_living;
}

static int32_t slice_of(const pli_keepers *keepers, int32_t worker) {
    int32_t slice = 0;
    while (slice < keepers->n_living && keepers->living[slice] != worker) slice++;
    return slice < keepers->n_living ? slice : -1;
}

int32_t pli_keepers_at(const pli_keepers *keepers, int32_t worker, int32_t i) {
    return (slice_of(keepers, worker) + keepers->n_living - i) % keepers->n_living;
}

int64_t pli_keepers_state(const pli_keepers *keepers, int32_t worker, int32_t i) {
    int64_t state = 0;
    for (int32_t j = 0; j < i; j++) state += pli_keepers_range(keepers, pli_keepers_at(keepers, worker, j)).n;
    return state;
}

int32_t pli_keepers_place(const pli_keepers *keepers, int32_t worker, int32_t slice) {
    const int32_t own = slice_of(keepers, worker);
    const int32_t behind = (own + keepers->n_living - slice) % keepers->n_living;
    return own >= 0 && behind < pli_keepers_held(keepers) ? behind : -1;
}

int32_t pli_keepers_speaker(const pli_keepers *keepers, int32_t slice, const uint8_t *dead) {
    for (int32_t i = 0; i < pli_keepers_held(keepers); i++) {
        const int32_t holder = keepers->living[(slice + i) % keepers->n_living];
        if (!dead[holder]) return holder;
    }
    return -1;
}

int32_t pli_keepers_lost(const pli_keepers *keepers, const uint8_t *dead) {
    for (int32_t s = 0; s < keepers->n_living; s++)
        if (pli_keepers_speaker(keepers, s, dead) < 0) return s;
    return -1;
}

/* --- cut anew ----------------------------------------------------------------------------------------------------- */

/* What the worker needs of one old slice for its i-th new one. */
static void move_slice(const pli_keepers *from, const pli_keepers *to, int32_t worker, int32_t i, int32_t slice,
                       pli_keepers_fn *fn, void *user) {
    const pli_stretch had = pli_keepers_range(from, slice);
    const pli_stretch has = pli_keepers_range(to, pli_keepers_at(to, worker, i));
    const pli_stretch both = pli_stretch_common(had, has);
    pli_keepers_moved moved = { .from = worker, .n = both.n };
    if (both.n == 0) return;
    if (pli_keepers_place(from, worker, slice) < 0) moved.from = pli_keepers_speaker(from, slice, to->dead);
    const int32_t place = pli_keepers_place(from, moved.from, slice);
    moved.to = pli_keepers_state(to, worker, i) + both.first - has.first;
    moved.state = pli_keepers_state(from, moved.from, place) + both.first - had.first;
    fn(&moved, user);
}

void pli_keepers_move(const pli_keepers *from, const pli_keepers *to, int32_t worker, pli_keepers_fn *fn, void *user) {
    for (int32_t i = 0; i < pli_keepers_held(to); i++)
        for (int32_t s = 0; s < from->n_living; s++) move_slice(from, to, worker, i, s, fn, user);
}
