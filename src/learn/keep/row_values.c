/* Values of rows, in memory and in checkpoints. See row_values.h. */
#include "learn/keep/row_values.h"

#include <inttypes.h>
#include <stdio.h>

#include "learn/keep/keep.h"
#include "learn/keep/row_values_impl.h"

void pli_row_values_name(int32_t block, char name[PLI_ROW_VALUES_NAME]) {
    snprintf(name, PLI_ROW_VALUES_NAME, "row_values.%d", (int)block);
}

static int64_t bytes_of(plait_type type) { return type == PLAIT_F32 ? 4 : 8; }
static const char *type_of(plait_type type) {
    return type == PLAIT_F32 ? "F32" : type == PLAIT_F64 ? "F64" : "I64";
}

static plait_status no_memory(const pli_run *run) {
    return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the values that model %s keeps for each row",
                    run->learner->name);
}

void pli_row_values_end(pli_run *run) {
    pli_row_values *v = run->row_values;
    run->row_values = NULL;
    if (v == NULL) return;
    for (int32_t b = 0; v->values != NULL && b < v->blocks; b++) pli_free(v->values[b]);
    for (int32_t b = 0; v->start != NULL && b < v->blocks; b++) pli_free(v->start[b]);
    pli_free(v->values);
    pli_free(v->start);
    pli_free(v->rows);
    pli_free(v);
}

plait_status pli_row_values_begin_with(pli_run *run, plait_type type, int64_t cols) {
    pli_row_values *v = run->row_values = pli_calloc(1, sizeof *v);
    if (v == NULL) return no_memory(run);
    v->type = type;
    v->cols = cols;
    v->row_bytes = cols * bytes_of(type);
    v->blocks = pli_dataset_blocks(run->data);
    v->rows = pli_calloc((size_t)v->blocks, sizeof *v->rows);
    v->start = pli_calloc((size_t)v->blocks, sizeof *v->start);
    v->values = pli_calloc((size_t)v->blocks, sizeof *v->values);
    return v->rows != NULL && v->start != NULL && v->values != NULL ? PLAIT_OK : no_memory(run);
}

plait_status pli_row_values_begin(pli_run *run) {
    const plait_learner *learner = run->learner;
    return learner->row_cols == 0 ? PLAIT_OK : pli_row_values_begin_with(run, learner->row_type, learner->row_cols);
}

/* How many values a row has, of a learner whose rows have different numbers; NULL: all have row_cols. */
static int64_t (*own_count(const pli_run *run))(const pli_block *block, int64_t row) {
    return run->learner->more != NULL ? run->learner->more->row_values : NULL;
}

/* Where each row's values begin. */
static plait_status place_rows(pli_run *run, const pli_block *block) {
    int64_t (*count)(const pli_block *, int64_t) = own_count(run);
    if (count == NULL) return PLAIT_OK;
    int64_t *start = run->row_values->start[block->number] = pli_calloc((size_t)block->rows + 1, sizeof *start);
    if (start == NULL) return no_memory(run);
    for (int64_t r = 0; r < block->rows; r++) start[r + 1] = start[r] + count(block, r);
    return PLAIT_OK;
}

/* How many rows the tensor of a block has. */
static int64_t tensor_rows(const pli_row_values *v, int32_t b) {
    return v->start[b] != NULL ? v->start[b][v->rows[b]] : v->rows[b];
}

static plait_status hold(pli_run *run, const pli_block *block) {
    pli_row_values *v = run->row_values;
    if (v->values[block->number] != NULL) return PLAIT_OK;
    if (v->start[block->number] == NULL) PLI_TRY(place_rows(run, block));
    v->rows[block->number] = block->rows;
    const size_t rows = (size_t)tensor_rows(v, (int32_t)block->number);
    v->values[block->number] = pli_calloc(rows + 1, (size_t)v->row_bytes);
    return v->values[block->number] != NULL ? PLAIT_OK : no_memory(run);
}

plait_status pli_row_values_hold(pli_run *run, const pli_batch *batch) {
    for (int32_t p = 0; run->row_values != NULL && p < batch->parts; p++) PLI_TRY(hold(run, batch->part[p].block));
    return PLAIT_OK;
}

void pli_row_values_keep(pli_run *run, const pli_batch *batch) {
    pli_row_values *v = run->row_values;
    for (int32_t b = 0; v != NULL && b < v->blocks; b++) {
        bool held = false;
        for (int32_t p = 0; p < batch->parts; p++) held = held || batch->part[p].block->number == b;
        if (held) continue;
        pli_free(v->values[b]);
        v->values[b] = NULL;
    }
}

void *plait_training_row_values(plait_training *run, const plait_batch *batch, int64_t i) {
    const pli_batch *b = (const pli_batch *)batch;
    if (run == NULL || run->row_values == NULL || b == NULL || i < 0 || i >= b->rows) return NULL;
    int32_t p = 0;
    while (i >= b->part[p].rows) i -= b->part[p++].rows;
    const pli_part *part = &b->part[p];
    const int64_t   row = part->order != NULL ? (int64_t)part->order[i] : part->first + i;
    const int64_t  *start = run->row_values->start[part->block->number];
    return run->row_values->values[part->block->number] +
           (start != NULL ? start[row] : row) * run->row_values->row_bytes;
}

void pli_row_values_lie_elsewhere(pli_run *run) { run->row_values->elsewhere = true; }

void *pli_row_values_of_block(const pli_run *run, int64_t block) { return run->row_values->values[block]; }

/* --- in checkpoints ----------------------------------------------------------------------------------------------- */

/* The values that checkpoints keep; NULL: none. */
static pli_row_values *kept(const pli_run *run) {
    return run->row_values == NULL || run->row_values->elsewhere ? NULL : run->row_values;
}

void pli_row_values_plan(const pli_run *run, pli_part_plan *plan) {
    const pli_row_values *v = kept(run);
    char                  name[PLI_ROW_VALUES_NAME];
    for (int32_t b = 0; v != NULL && b < v->blocks; b++) {
        if (v->values[b] == NULL) continue;
        pli_row_values_name(b, name);
        const int64_t rows = tensor_rows(v, b);
        pli_part_plan_add(plan, name, "", type_of(v->type), 0, rows, v->cols, rows);
    }
}

bool pli_row_values_put(const pli_run *run, bool (*put)(void *user, const void *bytes, int64_t n), void *user) {
    const pli_row_values *v = kept(run);
    bool                  done = true;
    for (int32_t b = 0; v != NULL && done && b < v->blocks; b++)
        if (v->values[b] != NULL) done = put(user, v->values[b], tensor_rows(v, b) * v->row_bytes);
    return done;
}

plait_status pli_row_values_restore(pli_run *run) {
    pli_row_values *v = kept(run);
    for (int32_t i = 0; v != NULL && i < pli_dataset_own_blocks(run->data); i++) {
        const pli_block *block = pli_dataset_block(run->data, i);
        char             name[PLI_ROW_VALUES_NAME];
        pli_row_values_name((int32_t)block->number, name);
        if (!pli_resume_has(run, name, NULL)) continue; /* no clock so far had a row of the block */
        PLI_TRY(hold(run, block));
        PLI_TRY(pli_resume_array(run, name, tensor_rows(v, (int32_t)block->number), v->row_bytes,
                                 v->values[block->number]));
    }
    return PLAIT_OK;
}
