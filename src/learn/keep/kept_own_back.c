/* Mirrors that differ, as they are put back. See kept_own.h. */
#include "learn/keep/kept_own.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "table/state/values.h"

typedef struct back {
    const pli_kept_own_back *b;
    char                     kept[PLI_KEPT_NAME]; /* the table, or this piece of it */
    char                     prefix[32];          /* "own.3.", or "": what all had in common */
    pli_own                  own;
} back;

static plait_status no_memory(const pli_kept_own_back *b) {
    return pli_fail(b->err, PLAIT_ENOMEM, "no memory to restore table %s", plait_table_name(b->table));
}

static plait_status not_this(const back *k, const char *what) {
    const pli_kept_own_back *b = k->b;
    return pli_fail(b->err, PLAIT_EMISMATCH,
                    "%s/%s: %s.%s%s is missing, or does not have the shape and type of table %s", b->where,
                    pli_checkpoint_folder(b->from), k->kept, k->prefix, what, plait_table_name(b->table));
}

static void kept_name(const plait_table *table, const char *name, char kept[PLI_KEPT_NAME]) {
    snprintf(kept, PLI_KEPT_NAME, "%s", name);
    if (table->whole.rows > 0) pli_kept_name(table, kept);
}

static const pli_checkpoint_tensor *find(pli_checkpoint *from, const char *kept, const char *prefix, const char *what) {
    char name[PLI_CHECKPOINT_NAME];
    snprintf(name, sizeof name, "%s.%s%s", kept, prefix, what);
    return pli_checkpoint_find(from, name);
}

static bool read_numbers(pli_checkpoint *from, const char *kept, const char *prefix, pli_own_numbers *out) {
    const pli_checkpoint_tensor *tensor = find(from, kept, prefix, "numbers");
    return tensor != NULL && strcmp(tensor->type, "F64") == 0 && tensor->dims == 1 &&
           tensor->shape[0] == PLI_OWN_NUMBERS &&
           pli_checkpoint_read(from, tensor, 0, PLI_OWN_NUMBERS, out, NULL) >= 0;
}

/* A mirror of the same way, of this very worker, among as many; and this very table or piece of it. */
bool pli_kept_own_is_same(pli_checkpoint *from, const char *name, const plait_table *table) {
    char            kept[PLI_KEPT_NAME], prefix[32];
    bool            missing;
    pli_own_numbers numbers;
    if (!pli_own_is(table)) return false;
    kept_name(table, name, kept);
    snprintf(prefix, sizeof prefix, "own.%d.", (int)pli_job_me(table->job));
    const pli_checkpoint_tensor *values = find(from, kept, prefix, "values");
    return pli_kept_own_workers(from, kept, &missing) == table->job->layout.workers && !missing &&
           read_numbers(from, kept, prefix, &numbers) && numbers.way == table->ops->own->way(table) && values != NULL &&
           (plait_table_rows(table) == 0 || values->shape[0] == plait_table_rows(table));
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static const char *name_of(plait_type type) {
    return type == PLAIT_I64 ? "I64" : type == PLAIT_F64 ? "F64" : "F32";
}

/* Whole: one array of the mirror, all its rows. */
static plait_status read_whole(back *k, int32_t array) {
    const pli_kept_own_back     *b = k->b;
    char                         text[64];
    plait_type                   type;
    const char                  *what = pli_state_name(b->table, array, text);
    const int64_t                rows = plait_table_rows(b->table), bytes = pli_state_bytes(b->table, array, &type);
    const pli_checkpoint_tensor *tensor = find(b->from, k->kept, k->prefix, what);
    const char                  *name = array == PLI_STATE_KEYS ? "U64" : name_of(type);
    if (tensor == NULL || strcmp(tensor->type, name) != 0 || pli_checkpoint_row_bytes(tensor) != bytes ||
        (rows > 0 ? tensor->shape[0] != rows : k->own.rows >= 0 && tensor->shape[0] != k->own.rows))
        return not_this(k, what);
    k->own.rows = tensor->shape[0];
    k->own.array[array] = pli_array((size_t)k->own.rows + 1, (size_t)bytes);
    if (k->own.array[array] == NULL) return no_memory(b);
    return pli_checkpoint_read(b->from, tensor, 0, k->own.rows, k->own.array[array], b->err);
}

static plait_status read_held(back *k) {
    const pli_checkpoint_tensor *tensor = find(k->b->from, k->kept, k->prefix, "held");
    if (tensor == NULL) return PLAIT_OK;
    if (strcmp(tensor->type, "U64") != 0 || tensor->dims != 1) return not_this(k, "held");
    k->own.n_held = tensor->shape[0];
    k->own.held = pli_array((size_t)k->own.n_held, sizeof *k->own.held);
    if (k->own.held == NULL && k->own.n_held > 0) return no_memory(k->b);
    PLI_TRY(pli_checkpoint_read(k->b->from, tensor, 0, k->own.n_held, k->own.held, k->b->err));
    for (int64_t i = 0; plait_table_rows(k->b->table) > 0 && i < k->own.n_held; i++)
        if (k->own.held[i] >= (uint64_t)plait_table_rows(k->b->table)) return not_this(k, "held");
    return PLAIT_OK;
}

/* What lies beside: "from.2" and the like. */
static plait_status read_more(back *k) {
    const pli_kept_own_back *b = k->b;
    char                     start[PLI_CHECKPOINT_NAME];
    snprintf(start, sizeof start, "%s.%s", k->kept, k->prefix);
    for (int64_t i = 0; i < pli_checkpoint_tensors(b->from); i++) {
        const pli_checkpoint_tensor *tensor = pli_checkpoint_tensor_at(b->from, i);
        const char                  *what = tensor->name + strlen(start);
        if (strncmp(tensor->name, start, strlen(start)) != 0) continue;
        if (strncmp(what, "to.", 3) != 0 && strncmp(what, "from.", 5) != 0) continue;
        pli_own_more *more = &k->own.more[k->own.n_more];
        if (k->own.n_more == PLI_OWN_MORE || strlen(what) >= sizeof more->name ||
            strcmp(tensor->type, name_of(b->table->spec.type)) != 0 || tensor->shape[0] != k->own.rows ||
            pli_checkpoint_row_bytes(tensor) != pli_row_bytes(&b->table->spec))
            return not_this(k, what);
        *more = (pli_own_more){ .values = pli_array((size_t)k->own.rows, (size_t)pli_checkpoint_row_bytes(tensor)) };
        if (more->values == NULL) return no_memory(b);
        k->own.n_more++;
        snprintf(more->name, sizeof more->name, "%s", what);
        PLI_TRY(pli_checkpoint_read(b->from, tensor, 0, k->own.rows, more->values, b->err));
    }
    return PLAIT_OK;
}

/* All arrays of a mirror, or but the values. */
static plait_status read_arrays(back *k, bool values) {
    int32_t arrays[PLI_STATE_ARRAYS], n = pli_state_arrays(k->b->table, arrays);
    k->own.rows = plait_table_rows(k->b->table) > 0 ? plait_table_rows(k->b->table) : -1;
    for (int32_t i = 0; i < n; i++)
        if (values || arrays[i] != PLI_STATE_VALUES) PLI_TRY(read_whole(k, arrays[i]));
    if (k->own.rows < 0) k->own.rows = 0;
    return PLAIT_OK;
}

/* Dense: out of all pieces that the table was kept in. */
static plait_status read_joined(back *k, const pli_kept_pieces *pieces, int32_t array, const char *what) {
    const pli_kept_own_back *b = k->b;
    plait_type               type;
    char                     name[96];
    const int64_t            bytes = pli_state_bytes(b->table, array, &type), rows = plait_table_rows(b->table);
    k->own.array[array] = pli_array((size_t)rows, (size_t)bytes);
    if (k->own.array[array] == NULL) return no_memory(b);
    snprintf(name, sizeof name, "%s%s", k->prefix, what);
    return pli_kept_pieces_read(pieces, b->table, name, name_of(type), 0, rows, k->own.array[array], b->err);
}

/* values becomes the average: what was kept in common, and what it has moved since. */
static plait_status read_average(back *k, const pli_kept_pieces *pieces) {
    const plait_table *table = k->b->table;
    char               prefix[sizeof k->prefix];
    memcpy(prefix, k->prefix, sizeof prefix);
    k->prefix[0] = '\0';
    plait_status status = read_joined(k, pieces, PLI_STATE_VALUES, "values");
    if (status >= 0 && find(k->b->from, pieces->piece[0].name, "", "moved") != NULL) {
        void *values = k->own.array[PLI_STATE_VALUES];
        status = read_joined(k, pieces, PLI_STATE_VALUES, "moved");
        if (status >= 0)
            pli_values_add_scaled(table->spec.type, plait_table_rows(table) * plait_table_cols(table), 1, values,
                                  k->own.array[PLI_STATE_VALUES]);
        pli_free(values);
    }
    memcpy(k->prefix, prefix, sizeof prefix);
    return status;
}

/* Has the mirror memory of a rule that the table lacks? */
static plait_status check_rule(const back *k, const char *kept) {
    int32_t arrays[PLI_STATE_ARRAYS], n = pli_state_arrays(k->b->table, arrays);
    char    start[PLI_CHECKPOINT_NAME], text[64];
    snprintf(start, sizeof start, "%s.%s", kept, k->prefix);
    for (int64_t i = 0; i < pli_checkpoint_tensors(k->b->from); i++) {
        const char *name = pli_checkpoint_tensor_at(k->b->from, i)->name, *what = name + strlen(start);
        if (strncmp(name, start, strlen(start)) != 0 || strncmp(what, "slot.", 5) != 0) continue;
        bool known = false;
        for (int32_t a = 0; a < n; a++)
            known = known || strcmp(what, pli_state_name(k->b->table, arrays[a], text)) == 0;
        if (!known) return not_this(k, "(its rule's memory)");
    }
    return PLAIT_OK;
}

/* --- another number of workers, or another way -------------------------------------------------------------------- */

/* Chooses the worker whose state of the rule this one takes, in the piece or table of this name. */
static void choose(back *k, const char *kept) {
    const int32_t workers = pli_kept_own_workers(k->b->from, kept, NULL), me = pli_job_me(k->b->table->job);
    k->prefix[0] = '\0';
    for (int32_t i = 0; i < workers; i++) {
        snprintf(k->prefix, sizeof k->prefix, "own.%d.", (int)((me + i) % workers));
        if (find(k->b->from, kept, k->prefix, "numbers") != NULL) return;
    }
}

static plait_status begin_dense(back *k, const pli_kept_pieces *pieces) {
    const pli_kept_own_back *b = k->b;
    int32_t                  arrays[PLI_STATE_ARRAYS], n = pli_state_arrays(b->table, arrays);
    char                     text[64];
    if (pieces->n == 0) return not_this(k, "values");
    choose(k, pieces->piece[0].name);
    k->own.numbers.units = (double)b->units;
    if (k->prefix[0] != '\0' && !read_numbers(b->from, pieces->piece[0].name, k->prefix, &k->own.numbers))
        return not_this(k, "numbers");
    k->own.rows = plait_table_rows(b->table);
    PLI_TRY(check_rule(k, pieces->piece[0].name));
    if (pli_own_common(b->table) == b->table) PLI_TRY(read_average(k, pieces));
    for (int32_t i = 0; i < n; i++)
        if (arrays[i] != PLI_STATE_VALUES)
            PLI_TRY(read_joined(k, pieces, arrays[i], pli_state_name(b->table, arrays[i], text)));
    return PLAIT_OK;
}

static plait_status begin_sparse(back *k) {
    const pli_kept_own_back *b = k->b;
    choose(k, k->kept);
    k->own.numbers.units = (double)b->units;
    if (k->prefix[0] != '\0' && !read_numbers(b->from, k->kept, k->prefix, &k->own.numbers))
        return not_this(k, "numbers");
    if (find(b->from, k->kept, k->prefix, "keys") == NULL) return PLAIT_OK; /* the table was still empty */
    PLI_TRY(check_rule(k, k->kept));
    return read_arrays(k, false);
}

static plait_status begin_anew(back *k) {
    const pli_kept_own_back *b = k->b;
    pli_kept_pieces          pieces;
    plait_status             status;
    if (plait_table_rows(b->table) == 0) status = begin_sparse(k);
    else {
        PLI_TRY(pli_kept_pieces_find(b->from, b->where, b->name, &pieces, b->err));
        status = begin_dense(k, &pieces);
        pli_kept_pieces_free(&pieces);
    }
    k->own.numbers = (pli_own_numbers){ .units = k->own.numbers.units };
    return status;
}

static plait_status go_on(back *k) {
    snprintf(k->prefix, sizeof k->prefix, "own.%d.", (int)pli_job_me(k->b->table->job));
    if (!read_numbers(k->b->from, k->kept, k->prefix, &k->own.numbers)) return not_this(k, "numbers");
    PLI_TRY(check_rule(k, k->kept));
    PLI_TRY(read_arrays(k, true));
    PLI_TRY(read_more(k));
    return read_held(k);
}

plait_status pli_kept_own_put_back(const pli_kept_own_back *b) {
    back k = { .b = b };
    kept_name(b->table, b->name, k.kept);
    plait_status status = b->same ? go_on(&k) : begin_anew(&k);
    if (status >= 0 && !b->looks) status = pli_own_put(b->table, &k.own, b->err);
    pli_own_free(&k.own);
    return status;
}
