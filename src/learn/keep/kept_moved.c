/* What the average of mirrors is ahead of the values of a sparse table. See kept_own.h. */
#include "learn/keep/kept_own.h"

#include <stdio.h>
#include <string.h>

#include "table/state/values.h"

static plait_status read(pli_checkpoint *from, const pli_checkpoint_tensor *keys, const pli_checkpoint_tensor *rows,
                         pli_kept_moved *m, plait_error *err) {
    m->keys = pli_array((size_t)keys->shape[0], sizeof *m->keys);
    m->rows = pli_array((size_t)keys->shape[0], (size_t)pli_checkpoint_row_bytes(rows));
    if ((m->keys == NULL || m->rows == NULL) && keys->shape[0] > 0)
        return pli_fail(err, PLAIT_ENOMEM, "no memory to restore a table");
    PLI_TRY(pli_checkpoint_read(from, keys, 0, keys->shape[0], m->keys, err));
    PLI_TRY(pli_checkpoint_read(from, rows, 0, keys->shape[0], m->rows, err));
    m->n = keys->shape[0];
    for (int64_t i = 0; i < m->n; i++)
        if (pli_keymap_add(&m->map, m->keys[i]) != i)
            return pli_fail(err, PLAIT_EMISMATCH, "%s names a key twice, or there is no memory for its keys",
                            keys->name);
    return PLAIT_OK;
}

plait_status pli_kept_moved_open(pli_checkpoint *from, const char *where, const char *name, const plait_table *table,
                                 pli_kept_moved *out, plait_error *err) {
    char text[PLI_CHECKPOINT_NAME];
    *out = (pli_kept_moved){ .type = table->spec.type, .cols = plait_table_cols(table) };
    pli_keymap_init(&out->map);
    snprintf(text, sizeof text, "%s.moved_keys", name);
    const pli_checkpoint_tensor *keys = pli_checkpoint_find(from, text);
    snprintf(text, sizeof text, "%s.moved", name);
    const pli_checkpoint_tensor *rows = pli_checkpoint_find(from, text);
    if (keys == NULL) return PLAIT_OK;
    if (rows == NULL || strcmp(keys->type, "U64") != 0 || keys->dims != 1 || rows->shape[0] != keys->shape[0] ||
        strcmp(rows->type, table->spec.type == PLAIT_F64 ? "F64" : "F32") != 0 ||
        pli_checkpoint_row_bytes(rows) != pli_row_bytes(&table->spec))
        return pli_fail(err, PLAIT_EMISMATCH, "%s/%s: %s does not have the shape and type of table %s", where,
                        pli_checkpoint_folder(from), text, plait_table_name(table));
    return read(from, keys, rows, out, err);
}

void pli_kept_moved_add(const pli_kept_moved *m, int64_t n, const uint64_t *keys, void *rows) {
    const int64_t row_bytes = m->cols * pli_value_bytes(m->type);
    for (int64_t i = 0; m->n > 0 && i < n; i++) {
        const int64_t at = pli_keymap_find(&m->map, keys[i]);
        if (at >= 0)
            pli_values_add_scaled(m->type, m->cols, 1, pli_at_const(m->rows, at * row_bytes),
                                  pli_at(rows, i * row_bytes));
    }
}

/* Keys that stay move to the front; the map is not asked again. */
bool pli_kept_moved_drop(pli_kept_moved *m, int64_t n, const uint64_t *keys) {
    const int64_t row_bytes = m->cols * pli_value_bytes(m->type);
    pli_keymap    dropped;
    int64_t       left = 0;
    pli_keymap_init(&dropped);
    bool          known = true; /* else a row would be put twice, the second time without its values */
    for (int64_t i = 0; known && i < n; i++)
        known = pli_keymap_find(&m->map, keys[i]) < 0 || pli_keymap_add(&dropped, keys[i]) >= 0;
    for (int64_t i = 0; known && i < m->n; i++) {
        if (pli_keymap_find(&dropped, m->keys[i]) >= 0) continue;
        m->keys[left] = m->keys[i];
        memmove(pli_at(m->rows, left * row_bytes), pli_at_const(m->rows, i * row_bytes), (size_t)row_bytes);
        left++;
    }
    if (known) m->n = left;
    pli_keymap_destroy(&dropped);
    return known;
}

void pli_kept_moved_close(pli_kept_moved *m) {
    pli_keymap_destroy(&m->map);
    pli_free(m->keys);
    pli_free(m->rows);
    *m = (pli_kept_moved){ 0 };
}
