/* Mirrors that differ, as they are taken. See kept_own.h; kept_own_back.c puts them back. */
#include "learn/keep/kept_own.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN "own."

plait_status pli_kept_own_take(plait_table *table, pli_kept_own *out, plait_error *err) {
    pli_kept_name(table, out->name);
    out->table = table;
    out->worker = pli_job_me(table->job);
    return pli_own_take(table, &out->own, err);
}

static const char *type_of(const plait_table *table, int32_t array) {
    if (array == PLI_STATE_KEYS) return "U64";
    if (array == PLI_STATE_PAID) return "I64";
    return table->spec.type == PLAIT_F64 ? "F64" : "F32";
}

static bool has_common(const pli_own *o) { return o->common != NULL && o->n > 0; }

/* Under gossip the average itself; else what it has moved. */
static void plan_common(const pli_kept_own *kept, pli_part_plan *plan) {
    const pli_own *o = &kept->own;
    const bool     sparse = o->keys != NULL, moved = kept->table->ops->own->common((plait_table *)kept->table) != NULL;
    if (!has_common(o)) return;
    if (sparse) pli_part_plan_add(plan, kept->name, "moved_keys", "U64", 0, o->n, 0, o->n);
    pli_part_plan_add(plan, kept->name, moved ? "moved" : "values", type_of(kept->table, PLI_STATE_VALUES), o->first,
                      o->n, plait_table_cols(kept->table), sparse ? o->n : plait_table_rows(kept->table));
}

void pli_kept_own_plan(const pli_kept_own *kept, pli_part_plan *plan) {
    const pli_own *o = &kept->own;
    char           what[112], name[64];
    if (!o->there) return;
    snprintf(what, sizeof what, OWN "%d.numbers", (int)kept->worker);
    pli_part_plan_add(plan, kept->name, what, "F64", 0, PLI_OWN_NUMBERS, 0, PLI_OWN_NUMBERS);
    for (int32_t a = 0; a < PLI_STATE_ARRAYS; a++) {
        if (o->array[a] == NULL) continue;
        snprintf(what, sizeof what, OWN "%d.%s", (int)kept->worker, pli_state_name(kept->table, a, name));
        pli_part_plan_add(plan, kept->name, what, type_of(kept->table, a), 0, o->rows,
                          a >= PLI_STATE_PAID ? 0 : plait_table_cols(kept->table), o->rows);
    }
    for (int32_t i = 0; i < o->n_more; i++) {
        snprintf(what, sizeof what, OWN "%d.%s", (int)kept->worker, o->more[i].name);
        pli_part_plan_add(plan, kept->name, what, type_of(kept->table, PLI_STATE_VALUES), 0, o->rows,
                          plait_table_cols(kept->table), o->rows);
    }
    snprintf(what, sizeof what, OWN "%d.held", (int)kept->worker);
    if (o->n_held > 0) pli_part_plan_add(plan, kept->name, what, "U64", 0, o->n_held, 0, o->n_held);
    plan_common(kept, plan);
}

typedef struct giving {
    void (*take)(void *user, pli_msg *bytes);
    void        *user;
    plait_error *err;
} giving;

static plait_status give(const giving *g, const void *from, int64_t bytes) {
    pli_msg *msg = pli_msg_new((size_t)bytes);
    if (msg == NULL) return pli_fail(g->err, PLAIT_ENOMEM, "no memory for a mirror in a checkpoint");
    if (bytes > 0) memcpy(pli_msg_body(msg), from, (size_t)bytes);
    g->take(g->user, msg);
    return PLAIT_OK;
}

plait_status pli_kept_own_put(const pli_kept_own *kept, void (*take)(void *user, pli_msg *bytes), void *user,
                              plait_error *err) {
    const giving   g = { .take = take, .user = user, .err = err };
    const pli_own *o = &kept->own;
    if (!o->there) return PLAIT_OK;
    PLI_TRY(give(&g, &o->numbers, sizeof o->numbers));
    for (int32_t a = 0; a < PLI_STATE_ARRAYS; a++)
        if (o->array[a] != NULL)
            PLI_TRY(give(&g, o->array[a], o->rows * pli_state_row_bytes(&kept->table->spec, a)));
    for (int32_t i = 0; i < o->n_more; i++)
        PLI_TRY(give(&g, o->more[i].values, o->rows * pli_row_bytes(&kept->table->spec)));
    if (o->n_held > 0) PLI_TRY(give(&g, o->held, o->n_held * (int64_t)sizeof *o->held));
    if (!has_common(o)) return PLAIT_OK;
    if (o->keys != NULL) PLI_TRY(give(&g, o->keys, o->n * (int64_t)sizeof *o->keys));
    return give(&g, o->common, o->n * pli_row_bytes(&kept->table->spec));
}

/* --- names -------------------------------------------------------------------------------------------------------- */

/* The worker of "own.3.values" and the like; -1: it is none. *end_out: what follows, "values". */
static int32_t worker_of(const char *what, const char **end_out) {
    char *end;
    if (strncmp(what, OWN, strlen(OWN)) != 0) return -1;
    const char *digits = what + strlen(OWN);
    const long  worker = strtol(digits, &end, 10);
    *end_out = end + 1;
    return digits[0] >= '0' && digits[0] <= '9' && *end == '.' && worker <= INT32_MAX ? (int32_t)worker : -1;
}

bool pli_kept_own_is(const char *what) {
    const char *end;
    return worker_of(what, &end) >= 0 || strcmp(what, "moved") == 0 || strcmp(what, "moved_keys") == 0;
}

int32_t pli_kept_own_workers(pli_checkpoint *from, const char *name, bool *missing_out) {
    const size_t length = strlen(name);
    int32_t      there = 0, all = 0;
    for (int64_t i = 0; i < pli_checkpoint_tensors(from); i++) {
        const char *of = pli_checkpoint_tensor_at(from, i)->name, *end;
        if (strncmp(of, name, length) != 0 || of[length] != '.') continue;
        const int32_t worker = worker_of(of + length + 1, &end);
        if (worker < 0 || strcmp(end, "numbers") != 0) continue;
        there++;
        if (worker >= all) all = worker + 1;
    }
    if (missing_out != NULL) *missing_out = there < all;
    return all;
}
