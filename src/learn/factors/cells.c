/* Ratings in the order in which stochastic gradient goes through them. See factors.h. */
#include <string.h>

#include "learn/factors/factors.h"

/* A tile's rows of users and items are to lie in the second cache together. */
enum { TILE_BYTES = 512 << 10, STRIPS_MOST = 64, STRIPS_SHARED = 8, SHARED_FROM = 1 << 14 };

void pli_factor_cells_free(pli_factor_cells *c) {
    pli_free(c->start);
    pli_free(c->item_cut);
    pli_free(c->rating);
    *c = (pli_factor_cells){ 0 };
}

/* How many strips: enough for the cache; and some where there is work for several threads. It depends neither on the
 * threads nor on the cache of this processor, so that the order, and the bits, do not. */
static int64_t strips_for(const pli_ratings *r, int64_t blocks, int64_t items, int64_t row_bytes) {
    const int64_t most = r->n > items / blocks ? r->n : items / blocks;
    int64_t       strips = (2 * most * row_bytes + TILE_BYTES - 1) / TILE_BYTES;
    if (r->ratings / blocks >= SHARED_FROM && strips < STRIPS_SHARED) strips = STRIPS_SHARED;
    return strips < 1 ? 1 : strips > STRIPS_MOST ? STRIPS_MOST : strips;
}

/* part [n]: the strip of each row, by counts; cut [strips + 1]. */
static void strip_rows(int64_t n, const int64_t *count, int64_t strips, int64_t *cut, uint8_t *part) {
    pli_ratings_cut(n, count, strips, cut);
    for (int64_t s = 0; s < strips; s++)
        for (int64_t i = cut[s]; i < cut[s + 1]; i++) part[i] = (uint8_t)s;
}

typedef struct plan {
    const uint32_t *place;
    uint8_t        *user_strip, *item_strip; /* [users], [places] */
    uint16_t       *block;                   /* [places]          */
    int64_t        *count;                   /* [users], then [places] */
} plan;

static uint32_t place_of(const plan *p, const pli_rating *a) {
    return p->place != NULL ? p->place[a->item] : a->item;
}

static bool make_plan(const pli_ratings *r, const int64_t *cut, pli_factor_cells *c, plan *p) {
    const int64_t blocks = c->blocks, strips = c->strips;
    const int64_t items = cut[blocks], most = r->n > items ? r->n : items;
    p->user_strip = pli_array((size_t)r->n, 1);
    p->item_strip = pli_array((size_t)items, 1);
    p->block = pli_array((size_t)items, sizeof *p->block);
    p->count = pli_calloc((size_t)most, sizeof *p->count);
    c->item_cut = pli_array((size_t)(blocks * (strips + 1)), sizeof *c->item_cut);
    if (c->item_cut == NULL || p->user_strip == NULL || p->item_strip == NULL || p->block == NULL ||
        p->count == NULL)
        return false;
    for (int64_t u = 0; u < r->n; u++) p->count[u] = r->start[u + 1] - r->start[u];
    strip_rows(r->n, p->count, strips, c->item_cut, p->user_strip);
    memset(p->count, 0, (size_t)most * sizeof *p->count);
    for (int64_t i = 0; i < r->ratings; i++) p->count[place_of(p, &r->rating[i])]++;
    for (int64_t b = 0; b < blocks; b++) {
        for (int64_t i = cut[b]; i < cut[b + 1]; i++) p->block[i] = (uint16_t)b;
        strip_rows(cut[b + 1] - cut[b], p->count + cut[b], strips, c->item_cut + b * (strips + 1),
                   p->item_strip + cut[b]);
    }
    return true;
}

static void free_plan(plan *p) {
    pli_free(p->user_strip);
    pli_free(p->item_strip);
    pli_free(p->block);
    pli_free(p->count);
}

/* Block, t, s, and then chance. */
static uint64_t key_of(const plan *p, const pli_ratings *r, const pli_rating *a, int64_t strips, uint64_t seed) {
    const uint32_t place = place_of(p, a);
    const int64_t  s = p->user_strip[a->user], t = (p->item_strip[place] - s + strips) % strips;
    const uint64_t pair = ((uint64_t)(r->first + a->user) << 32 | a->item) + seed * UINT64_C(0x9e3779b97f4a7c15);
    return (uint64_t)((p->block[place] * strips + t) * strips + s) << 32 | pli_hash_u64(pair) >> 32;
}

static bool arrange(const pli_ratings *r, const plan *p, const int64_t *cut, uint64_t seed, pli_factor_cells *c) {
    const size_t n = (size_t)r->ratings;
    uint64_t    *key = pli_array(n, sizeof *key);
    uint32_t    *from = pli_array(n, sizeof *from);
    c->rating = pli_array(n, sizeof *c->rating);
    c->start = pli_calloc((size_t)(c->blocks * c->strips * c->strips) + 1, sizeof *c->start);
    bool good = key != NULL && from != NULL && c->rating != NULL && c->start != NULL;
    for (size_t i = 0; good && i < n; i++) {
        key[i] = key_of(p, r, &r->rating[i], c->strips, seed);
        from[i] = (uint32_t)i;
        c->start[(key[i] >> 32) + 1]++;
    }
    good = good && pli_sort_u64(r->ratings, key, from);
    for (size_t i = 0; good && i < n; i++) {
        c->rating[i] = r->rating[from[i]];
        const uint32_t place = place_of(p, &c->rating[i]);
        c->rating[i].item = place - (uint32_t)cut[p->block[place]];
    }
    for (int64_t i = 0; good && i < c->blocks * c->strips * c->strips; i++) c->start[i + 1] += c->start[i];
    pli_free(key);
    pli_free(from);
    return good;
}

plait_status pli_factor_cells_make(const pli_ratings *ratings, int64_t blocks, const int64_t *block_cut,
                                   const uint32_t *place, int64_t row_bytes, uint64_t seed, pli_factor_cells *out,
                                   plait_error *err) {
    plan p = { .place = place };
    *out = (pli_factor_cells){ .blocks = blocks,
                               .strips = strips_for(ratings, blocks, block_cut[blocks], row_bytes) };
    const bool good = make_plan(ratings, block_cut, out, &p) &&
                      arrange(ratings, &p, block_cut, seed, out);
    free_plan(&p);
    return good ? PLAIT_OK
                : pli_fail(err, PLAIT_ENOMEM, "no memory to arrange %lld ratings", (long long)ratings->ratings);
}
