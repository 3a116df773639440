/* A block while it is being filled. */
#include "data/dataset/rows.h"

#include <string.h>

void pli_rows_clear(pli_rows *rows) {
    rows->b.rows = rows->b.entries = rows->missings = 0;
    if (rows->b.row_start != NULL) rows->b.row_start[0] = 0;
    pli_free(rows->b.query); /* the next rows may name none */
    rows->b.query = NULL;
    if (rows->b.key != NULL) { /* the next rows may have narrow keys again */
        pli_free(rows->b.key);
        rows->b.key = NULL;
        rows->entry_capacity = 0;
    }
    if (rows->b.value != NULL) {
        pli_free(rows->spare);
        rows->spare = rows->b.value;
        rows->b.value = NULL;
    }
}

void pli_rows_free(pli_rows *rows) {
    pli_free(rows->b.row_start);
    pli_free(rows->b.col);
    pli_free(rows->b.key);
    pli_free(rows->b.packed);
    pli_free(rows->b.value);
    pli_free(rows->spare);
    pli_free(rows->b.label);
    pli_free(rows->b.weight);
    pli_free(rows->b.query);
    pli_free(rows->missing);
    *rows = (pli_rows){ 0 };
}

/* Like realloc, but copies only if `keep`. */
static void *resized(void *memory, bool keep, int64_t count, size_t bytes) {
    if (keep) return pli_realloc(memory, (size_t)count, bytes);
    void *fresh = pli_array((size_t)count, bytes);
    if (fresh != NULL) pli_free(memory);
    return fresh;
}

bool pli_rows_reserve(pli_rows *rows, int64_t more_entries) {
    int64_t need = rows->b.entries + more_entries;
    bool    wide = rows->b.key != NULL, none = rows->b.col == NULL && !wide, keep = rows->b.entries > 0;
    if (none || need > rows->entry_capacity) {
        int64_t capacity = need > 2 * rows->b.entries ? need : 2 * rows->b.entries;
        void   *fresh = wide ? resized(rows->b.key, keep, capacity, 8) : resized(rows->b.col, keep, capacity, 4);
        if (fresh == NULL) return false;
        if (wide)
            rows->b.key = fresh;
        else
            rows->b.col = fresh;
        rows->entry_capacity = capacity;
    }
    if (rows->b.value != NULL && rows->value_capacity < rows->entry_capacity) {
        float *fresh = resized(rows->b.value, keep, rows->entry_capacity, sizeof *fresh);
        if (fresh == NULL) return false;
        rows->b.value = fresh;
        rows->value_capacity = rows->entry_capacity;
    }
    return true;
}

bool pli_rows_reserve_rows(pli_rows *rows, int64_t more_rows) {
    int64_t need = rows->b.rows + more_rows, capacity = rows->row_capacity;
    if (rows->b.row_start != NULL && need <= capacity) return true;
    capacity = need > 2 * capacity ? need : 2 * capacity;
    if (capacity < 64) capacity = 64;
    int64_t *starts = pli_realloc(rows->b.row_start, (size_t)capacity + 1, sizeof *starts);
    if (starts == NULL) return false;
    if (rows->b.row_start == NULL) starts[0] = 0;
    rows->b.row_start = starts;
    double *labels = pli_realloc(rows->b.label, (size_t)capacity, sizeof *labels);
    if (labels == NULL) return false;
    rows->b.label = labels;
    if (rows->b.weight != NULL) {
        float *weights = pli_realloc(rows->b.weight, (size_t)capacity, sizeof *weights);
        if (weights == NULL) return false;
        rows->b.weight = weights;
    }
    if (rows->b.query != NULL) {
        uint64_t *queries = pli_realloc(rows->b.query, (size_t)capacity, sizeof *queries);
        if (queries == NULL) return false;
        rows->b.query = queries;
    }
    rows->row_capacity = capacity;
    return true;
}

bool pli_rows_widen(pli_rows *rows) {
    uint64_t *key = pli_array((size_t)rows->entry_capacity, sizeof *key);
    if (key == NULL) return false;
    for (int64_t i = 0; i < rows->b.entries; i++)
        key[i] = rows->b.col[i] == UINT32_MAX ? UINT64_MAX : rows->b.col[i]; /* -1 stays -1: index 0 in a file with
                                                                              * base 1 */
    pli_free(rows->b.col);
    rows->b.col = NULL;
    rows->b.key = key;
    return true;
}

bool pli_rows_note_missing(pli_rows *rows, int64_t entry) {
    void *memory = rows->missing;
    if (!pli_grow(&memory, &rows->missing_capacity, rows->missings + 1, sizeof *rows->missing)) return false;
    rows->missing = memory;
    rows->missing[rows->missings++] = entry;
    return true;
}

bool pli_rows_need_values(pli_rows *rows) {
    if (rows->b.value != NULL) return true;
    float *value = rows->spare;
    if (value == NULL || rows->value_capacity < rows->entry_capacity) {
        value = pli_array((size_t)rows->entry_capacity, sizeof *value);
        if (value == NULL) return false;
        pli_free(rows->spare);
        rows->value_capacity = rows->entry_capacity;
    }
    rows->spare = NULL;
    for (int64_t i = 0; i < rows->b.entries; i++) value[i] = 1.0f;
    rows->b.value = value;
    return true;
}

bool pli_rows_need_weights(pli_rows *rows) {
    if (rows->b.weight != NULL) return true;
    float *weight = pli_array((size_t)rows->row_capacity, sizeof *weight);
    if (weight == NULL) return false;
    for (int64_t i = 0; i < rows->b.rows; i++) weight[i] = 1.0f;
    rows->b.weight = weight;
    return true;
}

bool pli_rows_need_queries(pli_rows *rows) {
    if (rows->b.query == NULL) rows->b.query = pli_calloc((size_t)rows->row_capacity, sizeof *rows->b.query);
    return rows->b.query != NULL;
}

/* Never fails: memory that cannot be made smaller stays as it is. */
static void *shrunk(void *memory, int64_t count, size_t bytes) {
    void *fresh = memory != NULL ? pli_realloc(memory, (size_t)count, bytes) : NULL;
    return fresh != NULL ? fresh : memory;
}

void pli_rows_shrink(pli_rows *rows) {
    pli_block *b = &rows->b;
    pli_free(rows->spare);
    rows->spare = NULL;
    b->row_start = shrunk(b->row_start, b->rows + 1, sizeof *b->row_start);
    b->label = shrunk(b->label, b->rows, sizeof *b->label);
    b->weight = shrunk(b->weight, b->rows, sizeof *b->weight);
    b->query = shrunk(b->query, b->rows, sizeof *b->query);
    b->col = shrunk(b->col, b->entries, sizeof *b->col);
    b->key = shrunk(b->key, b->entries, sizeof *b->key);
    b->value = shrunk(b->value, b->entries, sizeof *b->value);
    rows->row_capacity = b->rows;
    rows->entry_capacity = rows->value_capacity = b->entries;
}

/* Packs in place: an entry's three bytes end before the next entry's four begin. The extra byte at the end fits,
 * too. */
void pli_rows_pack(pli_rows *rows) {
    pli_block     *b = &rows->b;
    unsigned char *packed = (unsigned char *)b->col;
    if (b->entries == 0) return;
    for (int64_t i = 0; i < b->entries; i++) {
        uint32_t col;
        memcpy(&col, packed + 4 * i, sizeof col);
        packed[3 * i] = (unsigned char)col;
        packed[3 * i + 1] = (unsigned char)(col >> 8);
        packed[3 * i + 2] = (unsigned char)(col >> 16);
    }
    b->packed = shrunk(packed, 3 * b->entries + 1, 1);
    b->col = NULL;
    rows->entry_capacity = rows->value_capacity = b->entries;
}

/* --- order within a row -------------------------------------------------------------------------------- */

static void set_key(pli_block *b, int64_t entry, uint64_t key) {
    if (b->col != NULL)
        b->col[entry] = (uint32_t)key;
    else
        b->key[entry] = key;
}

/* Sorts the biased keys of the tail into keys [n], stably; place [n] says where each was. */
static bool sort_long(int64_t n, uint64_t *keys, uint32_t *place) {
    for (int64_t i = 0; i < n; i++) place[i] = (uint32_t)i;
    if (n > 64) return pli_sort_u64(n, keys, place);
    for (int64_t i = 1; i < n; i++) {
        uint64_t key = keys[i];
        int64_t  at = i;
        for (; at > 0 && keys[at - 1] > key; at--) {
            keys[at] = keys[at - 1];
            place[at] = place[at - 1];
        }
        keys[at] = key;
        place[at] = (uint32_t)i;
    }
    return true;
}

/* Writes the sorted tail back, and joins equal keys if asked to; returns the number of entries written. */
static int64_t write_tail(pli_rows *rows, int64_t from, int64_t n, const uint64_t *keys, const float *values,
                          uint64_t bias) {
    pli_block *b = &rows->b;
    int64_t    at = from - 1;
    for (int64_t i = 0; i < n; i++) {
        if (i > 0 && keys[i] == keys[i - 1]) {
            b->value[at] += values[i];
            continue;
        }
        set_key(b, ++at, keys[i] - bias);
        if (b->value != NULL) b->value[at] = values[i];
    }
    return at + 1 - from;
}

bool pli_rows_sort_tail(pli_rows *rows, int64_t from, uint64_t bias, bool repeats, int64_t *repeat_out) {
    pli_block *b = &rows->b;
    int64_t    n = b->entries - from;
    bool       good = false;
    uint64_t   width = b->col != NULL ? UINT32_MAX : UINT64_MAX, few_keys[64];
    uint32_t   few_places[64];
    float      few_values[64];
    uint64_t  *keys = n <= 64 ? few_keys : pli_array((size_t)n, sizeof *keys);
    uint32_t  *place = n <= 64 ? few_places : pli_array((size_t)n, sizeof *place);
    float     *values = n <= 64 ? few_values : pli_array((size_t)n, sizeof *values);
    *repeat_out = -1;
    if (keys == NULL || place == NULL || values == NULL) goto end;
    for (int64_t i = 0; i < n; i++) keys[i] = (pli_block_key(b, from + i) + bias) & width;
    if (!sort_long(n, keys, place)) goto end;
    for (int64_t i = 1; i < n && *repeat_out < 0; i++)
        if (keys[i] == keys[i - 1]) *repeat_out = from + place[i];
    if (*repeat_out >= 0 && (!repeats || !pli_rows_need_values(rows))) {
        good = !repeats;
        goto end;
    }
    for (int64_t i = 0; i < n; i++) values[i] = b->value != NULL ? b->value[from + place[i]] : 1.0f;
    b->entries = from + write_tail(rows, from, n, keys, values, bias);
    good = true;
end:
    if (n > 64) {
        pli_free(keys);
        pli_free(place);
        pli_free(values);
    }
    return good;
}
