/* What filters have kept of updates, in checkpoints. See kept_rests.h. */
#include "learn/keep/kept_rests.h"

#include <stdio.h>
#include <string.h>

#define REST "rest."
#define KEYS "rest_keys."

/* --- taking ------------------------------------------------------------------------------------------------------- */

plait_status pli_kept_rest_take(plait_table *table, pli_kept_rest *out, plait_error *err) {
    pli_kept_name(table, out->name);
    out->worker = pli_job_me(table->job);
    return pli_rest_take(table, &out->rest, err);
}

void pli_kept_rest_plan(const pli_kept_rest *kept, pli_part_plan *plan) {
    const pli_rest *r = &kept->rest;
    char            what[32];
    if (r->values == NULL) return;
    if (r->keys != NULL) {
        snprintf(what, sizeof what, KEYS "%d", (int)kept->worker);
        pli_part_plan_add(plan, kept->name, what, "U64", 0, r->n, 0, r->n);
    }
    snprintf(what, sizeof what, REST "%d", (int)kept->worker);
    pli_part_plan_add(plan, kept->name, what, r->type == PLAIT_F64 ? "F64" : "F32", 0, r->n, r->cols, r->n);
}

static plait_status put_bytes(const void *from, int64_t bytes, void (*take)(void *user, pli_msg *bytes), void *user,
                              plait_error *err) {
    pli_msg *msg = pli_msg_new((size_t)bytes);
    if (msg == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for what filters have kept");
    if (bytes > 0) memcpy(pli_msg_body(msg), from, (size_t)bytes);
    take(user, msg);
    return PLAIT_OK;
}

plait_status pli_kept_rest_put(const pli_kept_rest *kept, void (*take)(void *user, pli_msg *bytes), void *user,
                               plait_error *err) {
    const pli_rest *r = &kept->rest;
    if (r->values == NULL) return PLAIT_OK;
    if (r->keys != NULL) PLI_TRY(put_bytes(r->keys, r->n * (int64_t)sizeof *r->keys, take, user, err));
    return put_bytes(r->values, r->n * r->cols * pli_value_bytes(r->type), take, user, err);
}

/* --- putting back ------------------------------------------------------------------------------------------------- */

/* The worker of a name's end, "rest.3"; -1: it is none. */
static int32_t worker_of(const char *what) {
    int worker, end = 0;
    if (strncmp(what, REST, strlen(REST)) != 0) return -1;
    return sscanf(what + strlen(REST), "%d%n", &worker, &end) == 1 && worker >= 0 && what[strlen(REST) + end] == '\0'
               ? worker : -1;
}

bool pli_kept_rest_is(const char *what) { return worker_of(what) >= 0 || strncmp(what, KEYS, strlen(KEYS)) == 0; }

typedef struct giving {
    pli_checkpoint *from;
    const char     *where, *name;
    char            kept[PLI_KEPT_NAME]; /* the table, or the piece of it, as the checkpoint names it */
    plait_table    *table;
    bool            looks;
    plait_error    *err;
} giving;

/* A spare gets none while those live who update: what it keeps would travel only when it has taken over. Nor does a
 * worker that is away at first, which may never come. */
static bool is_mine(const plait_table *table, int32_t worker) {
    const plait_job *job = table->job;
    const int32_t    workers = job->layout.workers, spares = job->layout.spares;
    const int32_t    home = worker % (workers - spares - job->layout.slots);
    return pli_heir_of(pli_job_absentees(job), workers, spares, home, (uint64_t)worker) == pli_job_me(job);
}

static plait_status not_this(const giving *g, const char *tensor) {
    return pli_fail(g->err, PLAIT_EMISMATCH, "%s/%s: tensor %s does not have the shape and type that table %s needs",
                    g->where, pli_checkpoint_folder(g->from), tensor, plait_table_name(g->table));
}

static plait_status read(const giving *g, const pli_checkpoint_tensor *tensor, const pli_checkpoint_tensor *keys,
                         pli_rest *rest) {
    rest->values = pli_array((size_t)rest->n, (size_t)pli_checkpoint_row_bytes(tensor));
    rest->keys = keys != NULL ? pli_array((size_t)rest->n, sizeof *rest->keys) : NULL;
    if (rest->values == NULL || (keys != NULL && rest->keys == NULL))
        return pli_fail(g->err, PLAIT_ENOMEM, "no memory to restore table %s", plait_table_name(g->table));
    PLI_TRY(pli_checkpoint_read(g->from, tensor, 0, rest->n, rest->values, g->err));
    return keys != NULL ? pli_checkpoint_read(g->from, keys, 0, rest->n, rest->keys, g->err) : PLAIT_OK;
}

static plait_status give(const giving *g, const pli_checkpoint_tensor *tensor, int32_t worker) {
    const bool                   sparse = g->table->spec.keyed;
    const pli_checkpoint_tensor *keys = NULL;
    char                         name[PLI_CHECKPOINT_NAME];
    pli_rest                     rest;
    if (strcmp(tensor->type, "F32") != 0 && strcmp(tensor->type, "F64") != 0) return not_this(g, tensor->name);
    if (sparse) {
        snprintf(name, sizeof name, "%s." KEYS "%d", g->kept, (int)worker);
        keys = pli_checkpoint_find(g->from, name);
        if (keys == NULL || strcmp(keys->type, "U64") != 0 || keys->dims != 1 || keys->shape[0] != tensor->shape[0])
            return not_this(g, name);
    }
    rest = (pli_rest){ .type = strcmp(tensor->type, "F64") == 0 ? PLAIT_F64 : PLAIT_F32, .n = tensor->shape[0],
                       .cols = tensor->dims > 1 ? tensor->shape[1] : 1 };
    plait_status status = pli_rest_add(g->table, &rest, g->err); /* does it fit? */
    if (g->looks || status < 0) return status;
    status = read(g, tensor, keys, &rest);
    if (status >= 0) status = pli_rest_add(g->table, &rest, g->err);
    pli_rest_free(&rest);
    return status;
}

/* Is the tensor a rest of the table, or of any piece of it? *kept_out: as it was kept. Returns its worker, or -1. */
static int32_t rest_of(const giving *g, const pli_checkpoint_tensor *tensor, size_t *kept_out) {
    const size_t length = strlen(g->name);
    const char  *end = tensor->name + length;
    if (strncmp(tensor->name, g->name, length) != 0) return -1;
    if (*end == '[') end += strcspn(end, "]") + (strchr(end, ']') != NULL);
    *kept_out = (size_t)(end - tensor->name);
    return *end == '.' ? worker_of(end + 1) : -1;
}

/* Was the table kept as it is now, whole or this very piece? */
static bool is_same(const giving *g) {
    char name[PLI_CHECKPOINT_NAME];
    snprintf(name, sizeof name, "%s.values", g->kept);
    const pli_checkpoint_tensor *values = pli_checkpoint_find(g->from, name);
    const int64_t                rows = plait_table_rows(g->table);
    return rows == 0 || (values != NULL && values->shape[0] == rows &&
                         (values->dims > 1 ? values->shape[1] : 1) == plait_table_cols(g->table));
}

static plait_status give_all(const giving *g) {
    const size_t length = strlen(g->kept);
    const bool   same = is_same(g);
    for (int64_t i = 0; i < pli_checkpoint_tensors(g->from); i++) {
        const pli_checkpoint_tensor *tensor = pli_checkpoint_tensor_at(g->from, i);
        size_t                       kept = 0;
        const int32_t                worker = rest_of(g, tensor, &kept);
        if (worker < 0) continue;
        if (!same)
            return pli_fail(g->err, PLAIT_EMISMATCH,
                            "%s/%s: filters have kept updates of pieces of table %s, which cannot be cut anew; go on "
                            "with as many columns as before",
                            g->where, pli_checkpoint_folder(g->from), plait_table_name(g->table));
        if (kept == length && strncmp(tensor->name, g->kept, length) == 0 && is_mine(g->table, worker))
            PLI_TRY(give(g, tensor, worker));
    }
    return PLAIT_OK;
}

plait_status pli_kept_rest_back(pli_checkpoint *checkpoint, const char *where, const char *name, plait_table *table,
                                bool looks, plait_error *err) {
    giving g = { .from = checkpoint, .where = where, .name = name, .table = table, .looks = looks, .err = err };
    if (!pli_rest_is_kept(table)) return PLAIT_OK;
    snprintf(g.kept, sizeof g.kept, "%s", name);
    if (table->whole.rows > 0) pli_kept_name(table, g.kept);
    if (!looks) pli_rest_forget(table);
    return give_all(&g);
}
