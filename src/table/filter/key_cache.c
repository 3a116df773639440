/* key-cache - a list of keys travels once, then its hash of 128 bits does.
 *
 * A batch's keys are pulled, and pushed; an epoch later they are pulled again. Both ends hold the lists that they have
 * seen, the least recently used ones go first. What the worker takes for known and the server does not have (it was
 * started anew, or had no memory) is asked for again, so forgetting is never wrong, only slow.
 *
 * Paper: Li et al., "Scaling Distributed Machine Learning with the Parameter Server", OSDI 2014, section 3.7. */
#include "table/filter/filter.h"

#include <string.h>

enum { ALL_BYTES = 1 << 28, LEAST_BYTES = 1 << 20, BUCKETS = 1024 }; /* of all pairs of a rank together; of one pair */

typedef struct list {
    struct list  *next, *newer, *older; /* of the bucket; in order of use */
    unsigned char token[PLAIT_TOKEN_BYTES];
    int64_t       n;
    uint64_t      keys[];
} list;

typedef struct cache {
    list  **bucket; /* [BUCKETS], NULL while empty */
    list   *newest, *oldest;
    int64_t bytes, most;
} cache;

static plait_status parse(void *state, const char *parameters, const plait_filter_table *table, plait_error *err) {
    cache *c = state;
    PLI_TRY(pli_filter_takes_none("key-cache", parameters, err));
    if (table == NULL) return PLAIT_OK;
    int64_t share = ALL_BYTES / (table->workers > table->servers ? table->workers : table->servers);
    c->most = share > LEAST_BYTES ? share : LEAST_BYTES;
    return PLAIT_OK;
}

static list **bucket_of(cache *c, const void *token) {
    uint32_t hash;
    memcpy(&hash, token, sizeof hash);
    return &c->bucket[hash % BUCKETS];
}

static int64_t bytes_of(int64_t n) { return (int64_t)sizeof(list) + n * 8; }

static void unlink_use(cache *c, list *l) {
    *(l->newer != NULL ? &l->newer->older : &c->newest) = l->older;
    *(l->older != NULL ? &l->older->newer : &c->oldest) = l->newer;
}

static void link_use(cache *c, list *l) {
    l->newer = NULL;
    l->older = c->newest;
    *(c->newest != NULL ? &c->newest->newer : &c->oldest) = l;
    c->newest = l;
}

static void forget_oldest(cache *c) {
    list  *l = c->oldest;
    list **at = bucket_of(c, l->token);
    while (*at != l) at = &(*at)->next;
    *at = l->next;
    unlink_use(c, l);
    c->bytes -= bytes_of(l->n);
    pli_free(l);
}

static void close_cache(void *state) {
    cache *c = state;
    while (c->oldest != NULL) forget_oldest(c);
    pli_free(c->bucket);
    c->bucket = NULL;
}

static list *find(cache *c, const void *token) {
    if (c->bucket == NULL) return NULL;
    list *l = *bucket_of(c, token);
    while (l != NULL && memcmp(l->token, token, sizeof l->token) != 0) l = l->next;
    if (l == NULL) return NULL;
    unlink_use(c, l);
    link_use(c, l);
    return l;
}

static int known(void *state, int64_t n, const uint64_t *keys, void *token) {
    pli_hash128(keys, (size_t)n * 8, token);
    return find(state, token) != NULL;
}

static plait_status learn(void *state, int64_t n, const uint64_t *keys) {
    cache        *c = state;
    unsigned char token[PLAIT_TOKEN_BYTES];
    if (bytes_of(n) > c->most || known(c, n, keys, token)) return PLAIT_OK;
    if (c->bucket == NULL) c->bucket = pli_calloc(BUCKETS, sizeof *c->bucket);
    list *l = c->bucket == NULL ? NULL : pli_malloc((size_t)bytes_of(n));
    if (l == NULL) return PLAIT_ENOMEM;
    while (c->bytes + bytes_of(n) > c->most) forget_oldest(c);
    list **to = bucket_of(c, token);
    l->next = *to;
    *to = l;
    l->n = n;
    memcpy(l->token, token, sizeof token);
    memcpy(l->keys, keys, (size_t)n * 8);
    link_use(c, l);
    c->bytes += bytes_of(n);
    return PLAIT_OK;
}

static const uint64_t *recall(void *state, const void *token, int64_t *n_out) {
    const list *l = find(state, token);
    if (l == NULL) return NULL;
    *n_out = l->n;
    return l->keys;
}

const plait_filter pli_key_cache_filter = {
    .name = "key-cache",
    .parameters = "",
    .summary = "sends a list of keys once, and afterwards only its hash",
    .state_bytes = sizeof(cache),
    .loss = PLAIT_EXACT,
    .parse = parse,
    .close = close_cache,
    .lists = { .known = known, .learn = learn, .recall = recall },
};
