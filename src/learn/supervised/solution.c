/* Solutions as memory. See solution.h. */
#include "learn/supervised/solution.h"

#include "learn/solve/block.h"

plait_status pli_solution_make(int64_t rows, int64_t columns, bool keyed, pli_solution *solution_out,
                               plait_error *err) {
    pli_solution s = { .rows = rows };
    s.weight = rows <= INT64_MAX / columns ? pli_calloc((size_t)(rows * columns), sizeof *s.weight) : NULL;
    s.bias = pli_calloc((size_t)columns, sizeof *s.bias);
    s.key = keyed ? pli_calloc((size_t)rows, sizeof *s.key) : NULL;
    *solution_out = s;
    if (s.weight != NULL && s.bias != NULL && (!keyed || s.key != NULL)) return PLAIT_OK;
    pli_solution_free(solution_out);
    return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld x %lld weights", (long long)rows, (long long)columns);
}

plait_status pli_solution_make_flat(int64_t values, pli_solution *solution_out, plait_error *err) {
    *solution_out = (pli_solution){ .rows = values, .flat = pli_array((size_t)values, sizeof(float)) };
    if (solution_out->flat != NULL) return PLAIT_OK;
    *solution_out = (pli_solution){ 0 };
    return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld values", (long long)values);
}

void pli_solution_free(pli_solution *solution) {
    pli_free(solution->key);
    pli_free(solution->weight);
    pli_free(solution->bias);
    if (solution->spool == NULL) pli_free(solution->flat);
    pli_spool_destroy(&solution->spool);
    *solution = (pli_solution){ 0 };
}

/* --- rows by key -------------------------------------------------------------------------------------------------- */

plait_status pli_solution_map(const pli_solution *solution, pli_keymap **map_out, plait_error *err) {
    *map_out = NULL;
    if (solution->key == NULL) return PLAIT_OK;
    pli_keymap *map = pli_calloc(1, sizeof *map);
    bool        ok = map != NULL;
    if (ok) pli_keymap_init(map);
    ok = ok && pli_keymap_reserve(map, solution->rows);
    for (int64_t j = 0; ok && j < solution->rows; j++) ok = pli_keymap_add(map, solution->key[j]) >= 0;
    *map_out = map;
    if (ok) return PLAIT_OK;
    pli_solution_unmap(map);
    *map_out = NULL;
    return pli_fail(err, PLAIT_ENOMEM, "no memory to look up %lld keys", (long long)solution->rows);
}

void pli_solution_unmap(pli_keymap *map) {
    if (map != NULL) pli_keymap_destroy(map);
    pli_free(map);
}

plait_status pli_solution_find(const pli_solution *solution, const pli_keymap *map, const pli_block *block,
                               uint32_t **rows_out, plait_error *err) {
    uint32_t *local = pli_array((size_t)block->entries, sizeof *local);
    if (local == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory to look up %lld entries", (long long)block->entries);
    for (int64_t e = 0; e < block->entries; e++) {
        uint64_t key = pli_block_column(block, e);
        int64_t  row = map != NULL ? pli_keymap_find(map, key) : key < (uint64_t)solution->rows ? (int64_t)key : -1;
        local[e] = row >= 0 ? (uint32_t)row : UINT32_MAX;
    }
    *rows_out = local;
    return PLAIT_OK;
}
