/* Tables as parts of a checkpoint. See kept_tables.h. */
#include "learn/keep/kept_tables.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "learn/keep/kept_own.h"
#include "learn/keep/kept_rests.h"
#include "table/state/values.h"

enum { READ_BYTES = 4 << 20 };

static const char *type_of(const plait_table *table, int32_t array) {
    plait_type type;
    (void)pli_state_bytes(table, array, &type);
    if (array == PLI_STATE_KEYS) return "U64";
    return type == PLAIT_I64 ? "I64" : type == PLAIT_F64 ? "F64" : "F32";
}

/* --- taking ------------------------------------------------------------------------------------------------------- */

void pli_kept_plan(const pli_capture *capture, plait_table *const *table, pli_part_plan *plan) {
    int64_t               n;
    const pli_state_part *part = pli_capture_parts(capture, &n);
    for (int64_t i = 0; i < n; i++) {
        char               text[64], name[PLI_KEPT_NAME];
        const plait_table *of = table[part[i].table];
        const bool         numbers = part[i].array >= PLI_STATE_PAID;
        pli_kept_name(of, name);
        pli_part_plan_add(plan, name, pli_state_name(of, part[i].array, text),
                          type_of(of, part[i].array), part[i].first, part[i].rows, numbers ? 0 : plait_table_cols(of),
                          part[i].all);
    }
}

/* --- putting back ------------------------------------------------------------------------------------------------- */

typedef struct putting {
    pli_checkpoint *from;
    const char     *where, *name;
    plait_table    *table;
    bool            looks; /* nothing is put: could it be? */
    bool            inner; /* of a table of mirrors, the one that all have in common: the rule's memory is theirs */
    bool            joins; /* what the average of mirrors is ahead of the values is added to them */
    pli_kept_moved *moved; /* of a sparse table, with joins */
    plait_error    *err;
} putting;

static plait_status not_this(const putting *p, const char *what) {
    return pli_fail(p->err, PLAIT_EMISMATCH, "%s/%s: %s.%s is missing, or does not have the shape and type of table %s",
                    p->where, pli_checkpoint_folder(p->from), p->name, what, plait_table_name(p->table));
}

/* Finds the tensor of an array. *rows: how many rows it must have; -1: any, and it receives their number. */
static const pli_checkpoint_tensor *find(const putting *p, int32_t array, int64_t *rows) {
    char          text[64], name[PLI_CHECKPOINT_NAME];
    plait_type    type;
    const int64_t bytes = pli_state_bytes(p->table, array, &type), own = plait_table_rows(p->table);
    snprintf(name, sizeof name, "%s.%s", p->name, pli_state_name(p->table, array, text));
    const pli_checkpoint_tensor *tensor = pli_checkpoint_find(p->from, name);
    if (tensor == NULL || strcmp(tensor->type, type_of(p->table, array)) != 0 ||
        pli_checkpoint_row_bytes(tensor) != bytes || (own > 0 && tensor->shape[0] != own) ||
        (*rows >= 0 && tensor->shape[0] != *rows)) {
        (void)not_this(p, pli_state_name(p->table, array, text));
        return NULL;
    }
    *rows = tensor->shape[0];
    return tensor;
}

/* Has the checkpoint arrays of this table that the table lacks? Its rule has other memory, which would be lost.
 * kept: the name under which the table, or a piece of it, was kept. */
static bool has_more(const putting *p, const char *kept) {
    const size_t length = strlen(kept);
    for (int64_t i = 0; i < pli_checkpoint_tensors(p->from); i++) {
        const char *name = pli_checkpoint_tensor_at(p->from, i)->name;
        bool        known = strncmp(name, kept, length) != 0 || name[length] != '.' ||
                     pli_kept_rest_is(name + length + 1) || pli_kept_own_is(name + length + 1) ||
                     (p->inner && (strncmp(name + length + 1, "slot.", 5) == 0 ||
                                   strcmp(name + length + 1, "paid") == 0));
        int32_t     arrays[PLI_STATE_ARRAYS], n = pli_state_arrays(p->table, arrays);
        char        text[64];
        for (int32_t a = 0; a < n; a++)
            known = known || strcmp(name + length + 1, pli_state_name(p->table, arrays[a], text)) == 0;
        if (!known) return true;
    }
    return false;
}

/* Adds to these rows what has moved of them, if the table was kept whole. */
static plait_status join_rows(const putting *p, int64_t first, int64_t n, const uint64_t *keys, void *rows) {
    const int64_t row_bytes = pli_row_bytes(&p->table->spec);
    char          name[PLI_CHECKPOINT_NAME];
    if (!p->joins) return PLAIT_OK;
    if (keys != NULL) {
        pli_kept_moved_add(p->moved, n, keys, rows);
        return PLAIT_OK;
    }
    snprintf(name, sizeof name, "%s.moved", p->name);
    const pli_checkpoint_tensor *tensor = pli_checkpoint_find(p->from, name);
    if (tensor == NULL) return PLAIT_OK;
    if (tensor->shape[0] != plait_table_rows(p->table) || pli_checkpoint_row_bytes(tensor) != row_bytes)
        return not_this(p, "moved");
    void        *moved = pli_array((size_t)n, (size_t)row_bytes);
    plait_status status = moved != NULL ? pli_checkpoint_read(p->from, tensor, first, n, moved, p->err)
                                        : pli_fail(p->err, PLAIT_ENOMEM, "no memory to restore table %s",
                                                   plait_table_name(p->table));
    if (status >= 0) pli_values_add_scaled(p->table->spec.type, n * plait_table_cols(p->table), 1, moved, rows);
    pli_free(moved);
    return status;
}

/* Puts back rows first .. first + n - 1 of the tensor, a few at a time. */
static plait_status put_rows(const putting *p, int32_t array, const pli_checkpoint_tensor *tensor,
                             const pli_checkpoint_tensor *keys, int64_t first, int64_t n) {
    const int64_t row_bytes = pli_checkpoint_row_bytes(tensor), most = 1 + READ_BYTES / row_bytes;
    void         *rows = pli_array((size_t)most, (size_t)row_bytes);
    uint64_t     *key = keys != NULL ? pli_array((size_t)most, sizeof *key) : NULL;
    plait_status  status = PLAIT_OK;
    if (rows == NULL || (keys != NULL && key == NULL))
        status = pli_fail(p->err, PLAIT_ENOMEM, "no memory to restore table %s", plait_table_name(p->table));
    for (int64_t at = first, m; status >= 0 && at < first + n; at += m) {
        m = first + n - at < most ? first + n - at : most;
        status = pli_checkpoint_read(p->from, tensor, at, m, rows, p->err);
        if (status >= 0 && key != NULL) status = pli_checkpoint_read(p->from, keys, at, m, key, p->err);
        if (status >= 0 && array == PLI_STATE_VALUES) status = join_rows(p, at, m, key, rows);
        if (status >= 0) status = pli_state_put(p->table, array, at, m, key, rows, p->err);
    }
    pli_free(rows);
    pli_free(key);
    return status;
}

static bool read_units(const putting *p, const char *kept, int64_t *units_out) {
    const char   *text = pli_checkpoint_meta(p->from);
    json_t       *meta = pli_json_read(text, strlen(text), NULL);
    const json_t *units = json_object_get(json_object_get(meta, "units"), kept);
    const bool    there = json_is_integer(units);
    *units_out = json_integer_value(units);
    json_decref(meta);
    return there;
}

static plait_status put_units(const putting *p, const char *kept) {
    int64_t number;
    if (!read_units(p, kept, &number)) return not_this(p, "units");
    if (p->looks) return PLAIT_OK;
    if (!pli_state_is_copied(p->table) && !pli_state_leads(p->table)) return PLAIT_OK;
    return pli_state_put_units(p->table, number, p->err);
}

/* A table that was kept as it is. */
static plait_status put_same(const putting *p) {
    const bool                   sparse = plait_table_rows(p->table) == 0;
    int32_t                      arrays[PLI_STATE_ARRAYS], n = pli_state_arrays(p->table, arrays);
    int64_t                      rows = -1;
    const pli_checkpoint_tensor *keys = NULL;
    char                         name[PLI_CHECKPOINT_NAME];
    PLI_TRY(put_units(p, p->name));
    snprintf(name, sizeof name, "%s.values", p->name);
    if (sparse && pli_checkpoint_find(p->from, name) == NULL) return PLAIT_OK; /* the table was still empty */
    if (has_more(p, p->name)) return not_this(p, "(its rule's memory)");
    if (sparse && (keys = find(p, PLI_STATE_KEYS, &rows)) == NULL) return PLAIT_EMISMATCH;
    for (int32_t i = 0; i < n; i++) {
        if (arrays[i] == PLI_STATE_KEYS) continue;
        const pli_checkpoint_tensor *tensor = find(p, arrays[i], &rows);
        if (tensor == NULL) return PLAIT_EMISMATCH;
        int64_t first = 0, share = rows;
        if (!pli_state_is_copied(p->table)) pli_state_share(p->table, rows, &first, &share);
        if (!p->looks) PLI_TRY(put_rows(p, arrays[i], tensor, keys, first, share));
    }
    return PLAIT_OK;
}

/* --- out of pieces ------------------------------------------------------------------------------------------------ */

static plait_status check_pieces(const putting *p, const pli_kept_pieces *pieces) {
    int64_t first, units;
    if (pieces->n == 0) return not_this(p, "values");
    if (!read_units(p, pieces->piece[0].name, &first)) return not_this(p, "units");
    for (int64_t i = 0; i < pieces->n; i++) {
        if (has_more(p, pieces->piece[i].name)) return not_this(p, "(its rule's memory)");
        if (!read_units(p, pieces->piece[i].name, &units)) return not_this(p, "units");
        if (units != first)
            return pli_fail(p->err, PLAIT_EMISMATCH,
                            "%s/%s: the pieces of table %s are of different clocks, so they cannot be joined; go on "
                            "with as many columns as before",
                            p->where, pli_checkpoint_folder(p->from), plait_table_name(p->table));
    }
    return PLAIT_OK;
}

static plait_status join_pieces(const putting *p, const pli_kept_pieces *pieces, int64_t first, int64_t n, void *rows) {
    char name[PLI_CHECKPOINT_NAME];
    snprintf(name, sizeof name, "%s.moved", pieces->piece[0].name);
    if (!p->joins || pli_checkpoint_find(p->from, name) == NULL) return PLAIT_OK;
    void        *moved = pli_array((size_t)n, (size_t)pli_row_bytes(&p->table->spec));
    plait_status status = moved != NULL ? pli_kept_pieces_read(pieces, p->table, "moved",
                                                               type_of(p->table, PLI_STATE_VALUES), first, n, moved,
                                                               p->err)
                                        : pli_fail(p->err, PLAIT_ENOMEM, "no memory to restore table %s",
                                                   plait_table_name(p->table));
    if (status >= 0) pli_values_add_scaled(p->table->spec.type, n * plait_table_cols(p->table), 1, moved, rows);
    pli_free(moved);
    return status;
}

/* Puts back rows first .. first + n - 1 of an array, a few at a time. */
static plait_status put_joined(const putting *p, const pli_kept_pieces *pieces, int32_t array, int64_t first,
                               int64_t n) {
    plait_type    type;
    char          text[64];
    const char   *what = pli_state_name(p->table, array, text);
    const int64_t row_bytes = pli_state_bytes(p->table, array, &type), most = 1 + READ_BYTES / row_bytes;
    void         *rows = pli_array((size_t)most, (size_t)row_bytes);
    plait_status  status = PLAIT_OK;
    if (rows == NULL)
        return pli_fail(p->err, PLAIT_ENOMEM, "no memory to restore table %s", plait_table_name(p->table));
    for (int64_t at = first, m; status >= 0 && at < first + n; at += m) {
        m = first + n - at < most ? first + n - at : most;
        status = pli_kept_pieces_read(pieces, p->table, what, type_of(p->table, array), at, m, rows, p->err);
        if (status >= 0 && array == PLI_STATE_VALUES) status = join_pieces(p, pieces, at, m, rows);
        if (status >= 0 && !p->looks) status = pli_state_put(p->table, array, at, m, NULL, rows, p->err);
    }
    pli_free(rows);
    return status;
}

static plait_status put_pieces(const putting *p, const pli_kept_pieces *pieces) {
    int32_t arrays[PLI_STATE_ARRAYS], n = pli_state_arrays(p->table, arrays);
    int64_t first = 0, share = plait_table_rows(p->table);
    PLI_TRY(check_pieces(p, pieces));
    PLI_TRY(put_units(p, pieces->piece[0].name));
    if (!pli_state_is_copied(p->table)) pli_state_share(p->table, share, &first, &share);
    for (int32_t i = 0; i < n; i++) PLI_TRY(put_joined(p, pieces, arrays[i], first, share));
    return PLAIT_OK;
}

/* Was the table kept as it is: whole, or not yet there? */
static bool is_same(const putting *p) {
    char name[PLI_CHECKPOINT_NAME];
    snprintf(name, sizeof name, "%s.values", p->name);
    return plait_table_rows(p->table) == 0 ||
           (p->table->whole.rows == 0 && pli_checkpoint_find(p->from, name) != NULL);
}

static plait_status put_either(const putting *p) {
    pli_kept_pieces pieces;
    if (is_same(p)) return put_same(p);
    PLI_TRY(pli_kept_pieces_find(p->from, p->where, p->name, &pieces, p->err));
    const plait_status status = put_pieces(p, &pieces);
    pli_kept_pieces_free(&pieces);
    return status;
}

/* --- mirrors that differ ------------------------------------------------------------------------------------------ */

/* One worker puts those moved keys that the values do not have. */
static plait_status put_new_keys(const putting *p) {
    char     name[PLI_CHECKPOINT_NAME];
    int64_t  n = 0;
    snprintf(name, sizeof name, "%s.keys", p->name);
    const pli_checkpoint_tensor *tensor = pli_checkpoint_find(p->from, name);
    if (p->moved->n == 0 || p->looks || !(pli_state_is_copied(p->table) || pli_state_leads(p->table))) return PLAIT_OK;
    if (tensor != NULL) n = tensor->shape[0];
    uint64_t *keys = pli_array((size_t)n + 1, sizeof *keys);
    if (keys == NULL)
        return pli_fail(p->err, PLAIT_ENOMEM, "no memory to restore table %s", plait_table_name(p->table));
    plait_status status = n > 0 ? pli_checkpoint_read(p->from, tensor, 0, n, keys, p->err) : PLAIT_OK;
    if (status >= 0 && !pli_kept_moved_drop(p->moved, n, keys))
        status = pli_fail(p->err, PLAIT_ENOMEM, "no memory to restore table %s", plait_table_name(p->table));
    pli_free(keys);
    if (status < 0 || p->moved->n == 0) return status;
    return pli_state_put(p->table, PLI_STATE_VALUES, 0, p->moved->n, p->moved->keys, p->moved->rows, p->err);
}

/* The values, joined with what the average is ahead of them. */
static plait_status put_average(const putting *p) {
    pli_kept_moved moved;
    putting        q = *p;
    q.joins = true;
    q.moved = &moved;
    if (plait_table_rows(p->table) > 0) return put_either(&q);
    plait_status status = pli_kept_moved_open(p->from, p->where, p->name, p->table, &moved, p->err);
    if (status >= 0) status = put_either(&q);
    if (status >= 0) status = put_new_keys(&q);
    pli_kept_moved_close(&moved);
    return status;
}

/* Each worker has a mirror of its own: what is in common goes into the common table inside, if there is one. */
static plait_status put_mirrors(const putting *p) {
    putting           common = *p;
    char              kept[PLI_KEPT_NAME];
    pli_kept_own_back own = { .from = p->from, .where = p->where, .name = p->name, .table = p->table,
                              .looks = p->looks, .err = p->err };
    own.same = pli_kept_own_is_same(p->from, p->name, p->table);
    snprintf(kept, sizeof kept, "%s", p->name);
    if (p->table->whole.rows > 0) pli_kept_name(p->table, kept);
    if (!read_units(p, kept, &own.units)) own.units = 0;
    common.table = pli_own_common(p->table);
    common.inner = true;
    if (common.table != p->table) PLI_TRY(own.same ? put_either(&common) : put_average(&common));
    return pli_kept_own_put_back(&own);
}

/* The workers had mirrors that differ, each with a state of the rule; now there is one copy. */
static plait_status check_mirrors(const putting *p) {
    const plait_table *table = p->table;
    const int32_t      workers = pli_kept_own_workers(p->from, p->name, NULL);
    if (workers == 0 || !table->spec.ruled || table->spec.rule.ops->slots == 0) return PLAIT_OK;
    return pli_fail(p->err, PLAIT_EMISMATCH,
                    "%s/%s: each of %d workers had a mirror of table %s with its own state of rule %s, from which no "
                    "common one can be made; go on by topology gossip or consistency local-sgd, as before",
                    p->where, pli_checkpoint_folder(p->from), (int)workers, p->name, table->spec.rule.ops->name);
}

static plait_status put_one_copy(const putting *p) {
    PLI_TRY(check_mirrors(p));
    return put_average(p);
}

static plait_status put_all(const putting *p) {
    PLI_TRY(pli_own_is(p->table) ? put_mirrors(p) : put_one_copy(p));
    return pli_kept_rest_back(p->from, p->where, p->name, p->table, p->looks, p->err);
}

plait_status pli_kept_put(pli_checkpoint *checkpoint, const char *where, const char *name, plait_table *table,
                          plait_error *err) {
    return put_all(&(putting){ .from = checkpoint, .where = where, .name = name, .table = table, .err = err });
}

plait_status pli_kept_check(pli_checkpoint *checkpoint, const char *where, const char *name, plait_table *table,
                            plait_error *err) {
    return put_all(&(putting){ .from = checkpoint, .where = where, .name = name, .table = table, .looks = true,
                               .err = err });
}
