/* See census.h. */
#include "vertex/census.h"

#include "base/hash.h"
#include "base/sort.h"

enum { SLOTS = 1024 /* at first */ };

void pli_census_begin(pli_census *c, uint64_t limit) { *c = (pli_census){ .limit = limit }; }

void pli_census_free(pli_census *c) {
    pli_free(c->small);
    pli_free(c->other);
    pli_free(c->other_id);
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

static bool reach(pli_census *c, uint64_t id) {
    int64_t room = c->smalls;
    if ((int64_t)id < room) return true;
    if (!pli_grow((void **)&c->small, &room, (int64_t)id + 1, sizeof *c->small)) return false;
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
        if (!reach(c, id)) return false;
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

static void number(pli_counted *of, int64_t n, int64_t *in, uint32_t *out) {
    in[n] = of->in - 1;
    out[n] = of->out;
    of->in = (uint32_t)n + 1;
}

bool pli_census_number(pli_census *c, int64_t n, uint64_t *id, int64_t *in, uint32_t *out) {
    int64_t next = 0;
    for (int64_t i = 0; i < c->smalls; i++)
        if (c->small[i].in != 0) {
            id[next] = (uint64_t)i;
            number(&c->small[i], next++, in, out);
        }
    const int64_t first = next;
    for (int64_t i = 0; i < c->slots; i++)
        if (c->other[i].in != 0) id[next++] = c->other_id[i];
    if (!pli_sort_u64(n - first, id + first, NULL)) return false;
    for (int64_t i = first; i < n; i++) number(&c->other[slot_of(c, id[i])], i, in, out);
    return true;
}

int64_t pli_census_find(const pli_census *c, uint64_t id) {
    if (id < c->limit) return (int64_t)id < c->smalls ? (int64_t)c->small[id].in - 1 : -1;
    return c->slots > 0 ? (int64_t)c->other[slot_of(c, id)].in - 1 : -1;
}
