/* Distinct texts of a column, each known by its place in the order of bytes: users, items, names of categories.
 *
 * Of ratings each row asks for two texts among perhaps a million. A search by halves misses the cache in each of its
 * twenty steps, so there is a hash table beside the sorted texts: a slot has the text's pointer and 32 bits of its
 * hash, and a question costs two misses. Without memory for it the search by halves remains. */
#include "data/schema/schema.h"

#include <stdlib.h>
#include <string.h>

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int compare(const char *text, size_t length, const char *other) {
    int order = strncmp(text, other, length);
    return order != 0 ? order : other[length] != '\0' ? -1 : 0;
}

/* Small dictionaries are searched by halves. */
enum { INDEX_FROM = 16 };
typedef struct pli_dict_slot {
    const char *text; /* NULL: free */
    uint32_t    tag, place;
} dict_slot;

static uint64_t hash_of(const char *text, size_t length) { return pli_hash_bytes(text, length, 0); }

void pli_dict_index(pli_dict *dict) {
    int64_t slots = 2 * INDEX_FROM;
    pli_free(dict->slot);
    dict->slot = NULL;
    dict->slots = 0;
    if (dict->n < INDEX_FROM || dict->n >= UINT32_MAX) return;
    while (slots < 2 * dict->n) slots *= 2;
    dict_slot *slot = pli_calloc((size_t)slots, sizeof *slot);
    if (slot == NULL) return;
    for (int64_t i = 0; i < dict->n; i++) {
        const uint64_t hash = hash_of(dict->text[i], strlen(dict->text[i]));
        int64_t        at = (int64_t)(hash & (uint64_t)(slots - 1));
        while (slot[at].text != NULL) at = (at + 1) & (slots - 1);
        slot[at] = (dict_slot){ .text = dict->text[i], .tag = (uint32_t)(hash >> 32), .place = (uint32_t)i };
    }
    dict->slot = slot;
    dict->slots = slots;
}

static int64_t find_by_hash(const pli_dict *dict, const char *text, size_t length) {
    const uint64_t hash = hash_of(text, length);
    int64_t        at = (int64_t)(hash & (uint64_t)(dict->slots - 1));
    for (; dict->slot[at].text != NULL; at = (at + 1) & (dict->slots - 1)) {
        const dict_slot *s = &dict->slot[at];
        if (s->tag == (uint32_t)(hash >> 32) && compare(text, length, s->text) == 0) return s->place;
    }
    return -1;
}

int64_t pli_dict_find(const pli_dict *dict, const char *text, size_t length) {
    if (dict->slot != NULL) return find_by_hash(dict, text, length);
    int64_t low = 0, high = dict->n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        int     order = compare(text, length, dict->text[middle]);
        if (order == 0) return middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

bool pli_dict_set(pli_dict *dict, char **texts, int64_t n) {
    char **text = pli_array((size_t)n, sizeof *text);
    if (text == NULL) return false;
    if (n > 0) qsort(texts, (size_t)n, sizeof *texts, by_text);
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        if (kept > 0 && strcmp(text[kept - 1], texts[i]) == 0)
            pli_free(texts[i]);
        else
            text[kept++] = texts[i];
    }
    pli_dict_free(dict);
    dict->text = text;
    dict->n = kept;
    pli_dict_index(dict);
    return true;
}

/* Both are sorted, so one pass merges them. */
bool pli_dict_merge(pli_dict *dict, const pli_dict *other) {
    char  **all = pli_array((size_t)(dict->n + other->n), sizeof *all);
    int64_t n = 0, at = 0;
    bool    good = all != NULL;
    for (int64_t i = 0; good && i < other->n; i++) {
        int order = -1;
        while (at < dict->n && (order = strcmp(dict->text[at], other->text[i])) < 0) all[n++] = dict->text[at++];
        if (at < dict->n && order == 0) continue;
        all[n] = pli_strdup(other->text[i]);
        good = all[n] != NULL;
        n += good;
    }
    while (good && at < dict->n) all[n++] = dict->text[at++];
    if (good) {
        pli_free(dict->text);
        pli_free(dict->slot);
        *dict = (pli_dict){ .text = all, .n = n };
        pli_dict_index(dict);
        return true;
    }
    at = 0;
    for (int64_t i = 0; i < n; i++) { /* those that are the dictionary's own stay its own */
        if (at < dict->n && all[i] == dict->text[at]) at++;
        else pli_free(all[i]);
    }
    pli_free(all);
    return false;
}

void pli_dict_free(pli_dict *dict) {
    for (int64_t i = 0; i < dict->n; i++) pli_free(dict->text[i]);
    pli_free(dict->text);
    pli_free(dict->slot);
    *dict = (pli_dict){ 0 };
}
