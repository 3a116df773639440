/* See census.h. */
#include "vertex/census.h"

#include "base/hash.h"
#include "base/sort.h"
#include "vertex/bits.h"

enum { SLOTS = 1024 /* at first */ };

void pli_census_begin(pli_census *c, uint64_t limit) { *c = (pli_census){ .limit = limit }; }

void pli_census_free(pli_census *c) {
    pli_free(c->small);
    pli_free(c->other);
    pli_free(c->other_id);
    pli_free(c->bit);
    pli_free(c->before);
    pli_free(c->far);
    *c = (pli_census){ 0 };
}

bool pli_census_give(pli_census *c, int64_t n) {
    c->limit = (uint64_t)n + 1;
    c->small = pli_calloc((size_t)n + 1, sizeof *c->small);
    if (c->small == NULL) return false;
    c->smalls = n + 1;
    for (int64_t id = 1; id <= n; id++) c->small[id].in = 1;
    return true;
}

/* --- small ids ---------------------------------------------------------------------------------------------------- */

bool pli_census_reach(pli_census *c, int64_t n) {
    int64_t room = c->smalls;
    if (n <= room) return true;
    if (!pli_grow((void **)&c->small, &room, n, sizeof *c->small)) return false;
    memset(c->small + c->smalls, 0, (size_t)(room - c->smalls) * sizeof *c->small);
    c->smalls = room;
    return true;
}

/* --- others ------------------------------------------------------------------------------------------------------- */

/* The id's slot, or the empty one where it would go. */
static int64_t slot_of(const pli_census *c, uint64_t id) {
    int64_t at = (int64_t)(pli_hash_u64(id) & (uint64_t)(c->slots - 1));
    while (c->other[at].in != 0 && c->other_id[at] != id) at = (at + 1) & (c->slots - 1);
    return at;
}

static bool make_slots(pli_census *c) {
    pli_census wider = { .slots = c->slots > 0 ? 2 * c->slots : SLOTS };
    wider.other = pli_calloc((size_t)wider.slots, sizeof *wider.other);
    wider.other_id = pli_array((size_t)wider.slots, sizeof *wider.other_id);
    const bool made = wider.other != NULL && wider.other_id != NULL;
    for (int64_t i = 0; made && i < c->slots; i++) {
        if (c->other[i].in == 0) continue;
        const int64_t at = slot_of(&wider, c->other_id[i]);
        wider.other[at] = c->other[i];
        wider.other_id[at] = c->other_id[i];
    }
    pli_free(made ? c->other : wider.other);
    pli_free(made ? c->other_id : wider.other_id);
    if (!made) return false;
    c->other = wider.other;
    c->other_id = wider.other_id;
    c->slots = wider.slots;
    return true;
}

bool pli_census_add(pli_census *c, uint64_t id, uint32_t in, uint32_t out) {
    pli_counted *of;
    if (id < c->limit) {
        if (!pli_census_reach(c, (int64_t)id + 1)) return false;
        of = &c->small[id];
    } else {
        if (2 * c->others >= c->slots && !make_slots(c)) return false;
        const int64_t at = slot_of(c, id);
        of = &c->other[at];
        c->other_id[at] = id;
        c->others += of->in == 0;
    }
    of->in += in + (of->in == 0);
    of->out += out;
    return true;
}

/* --- numbers ------------------------------------------------------------------------------------------------------ */

int64_t pli_census_count(const pli_census *c) {
    int64_t n = c->others;
    for (int64_t id = 0; id < c->smalls; id++) n += c->small[id].in != 0;
    return n;
}

/* Of small ids: a bit each, up to the largest that is there, and how many are before each word. */
static bool pack(pli_census *c, int64_t *in, uint32_t *out) {
    int64_t next = 0;
    while (c->smalls > 0 && c->small[c->smalls - 1].in == 0) c->smalls--;
    c->words = (int64_t)pli_bit_words(c->smalls);
    c->bit = pli_calloc((size_t)c->words + 1, sizeof *c->bit);
    c->before = pli_array((size_t)c->words + 1, sizeof *c->before);
    if (c->bit == NULL || c->before == NULL) return false;
    for (int64_t id = 0; id < c->smalls; id++) {
        if (c->small[id].in == 0) continue;
        pli_bit_set(c->bit, (size_t)id);
        in[next] = c->small[id].in - 1;
        out[next++] = c->small[id].out;
    }
    c->nears = pli_bits_count(c->bit, (size_t)c->words, c->before);
    pli_free(c->small);
    c->small = NULL;
    return true;
}

bool pli_census_number(pli_census *c, int64_t n, int64_t *in, uint32_t *out) {
    int64_t next = 0;
    if (!pack(c, in, out)) return false;
    c->far = pli_array((size_t)c->others + 1, sizeof *c->far);
    if (c->far == NULL) return false;
    for (int64_t i = 0; i < c->slots; i++)
        if (c->other[i].in != 0) c->far[next++] = c->other_id[i];
    if (!pli_sort_u64(c->others, c->far, NULL)) return false;
    for (int64_t i = c->nears; i < n; i++) {
        pli_counted *of = &c->other[slot_of(c, c->far[i - c->nears])];
        in[i] = of->in - 1;
        out[i] = of->out;
        of->in = (uint32_t)i + 1;
    }
    return true;
}

void pli_census_slim(pli_census *c) {
    pli_free(c->other);
    pli_free(c->other_id);
    c->other = NULL;
    c->other_id = NULL;
    c->slots = 0;
}

/* Among the sorted ones. */
static int64_t find_far(const pli_census *c, uint64_t id) {
    int64_t low = 0, high = c->others;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (c->far[middle] < id) low = middle + 1;
        else high = middle;
    }
    return low < c->others && c->far[low] == id ? c->nears + low : -1;
}

int64_t pli_census_find(const pli_census *c, uint64_t id) {
    if (id >= c->limit) return c->slots > 0 ? (int64_t)c->other[slot_of(c, id)].in - 1 : find_far(c, id);
    if ((int64_t)(id / 64) >= c->words || !pli_bit_is(c->bit, (size_t)id)) return -1;
    return pli_bits_rank(c->bit, c->before, (size_t)id);
}

uint64_t pli_census_id(const pli_census *c, int64_t number) {
    if (number >= c->nears) return c->far[number - c->nears];
    int64_t low = 0, high = c->words - 1; /* the last word before which are so many or fewer */
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        if ((int64_t)c->before[middle] <= number) low = middle;
        else high = middle - 1;
    }
    uint64_t bits = c->bit[low];
    for (int64_t i = c->before[low]; i < number; i++) bits &= bits - 1;
    return (uint64_t)low * 64 + (uint64_t)__builtin_ctzll(bits);
}

void pli_census_ids(const pli_census *c, uint64_t *id) {
    int64_t next = pli_bits_list(c->bit, (size_t)c->words, id);
    for (int64_t i = 0; i < c->others; i++) id[next++] = c->far[i];
}
