/* Pieces of tensors: each is checked by itself, and then those of one name together, which must cover its rows once.
 * Sizes are computed from shapes with checked products. */
#include <stdlib.h>
#include <string.h>

#include "data/checkpoint/manifest.h"
#include "base/json.h"
#include "data/data.h"

/* --- a piece by itself ------------------------------------------------------------------------------------ */

int64_t pli_checkpoint_row_bytes(const pli_checkpoint_tensor *tensor) {
    int64_t bytes = (int64_t)pli_safetensors_type_bytes(tensor->type);
    if (bytes == 0 || tensor->dims < 1 || tensor->dims > PLI_CHECKPOINT_DIMS) return -1;
    for (int32_t i = 1; i < tensor->dims; i++)
        if (tensor->shape[i] < 0 || __builtin_mul_overflow(bytes, tensor->shape[i], &bytes)) return -1;
    return bytes;
}

static bool good_name(const char *name) {
    size_t  length = name != NULL ? strlen(name) : 0;
    json_t *utf8 = length > 0 && length <= PLI_CHECKPOINT_NAME ? json_string(name) : NULL;
    bool    good = utf8 != NULL;
    json_decref(utf8);
    for (size_t i = 0; good && i < length; i++) good = (unsigned char)name[i] >= ' ' && name[i] != 0x7f;
    return good;
}

plait_status pli_piece_check(const pli_checkpoint_tensor *tensor, plait_status code, plait_error *err) {
    int64_t bytes, end;
    if (!good_name(tensor->name))
        return pli_fail(err, code, "a tensor's name: expected 1 to %d bytes of UTF-8 without control characters",
                        PLI_CHECKPOINT_NAME);
    if (pli_safetensors_type_bytes(tensor->type) == 0)
        return pli_fail(err, code,
                        "tensor %s: unknown type '%s'; known are F64, F32, F16, BF16, I64 to I8, U64 to U8 "
                        "and BOOL",
                        tensor->name, tensor->type != NULL ? tensor->type : "");
    if (tensor->dims < 1 || tensor->dims > PLI_CHECKPOINT_DIMS)
        return pli_fail(err, code, "tensor %s: expected 1 to %d dimensions", tensor->name, PLI_CHECKPOINT_DIMS);
    int64_t row_bytes = pli_checkpoint_row_bytes(tensor);
    if (row_bytes < 0 || tensor->shape[0] < 0 || __builtin_mul_overflow(row_bytes, tensor->shape[0], &bytes))
        return pli_fail(err, code, "tensor %s: a shape with a negative length, or of too many bytes", tensor->name);
    if (tensor->first == PLI_CHECKPOINT_LOOSE) return PLAIT_OK;
    if (tensor->first < 0 || __builtin_add_overflow(tensor->first, tensor->shape[0], &end) || end > tensor->rows ||
        __builtin_mul_overflow(row_bytes, tensor->rows, &bytes))
        return pli_fail(err, code, "tensor %s: %lld rows from row %lld on do not lie among %lld", tensor->name,
                        (long long)tensor->shape[0], (long long)tensor->first, (long long)tensor->rows);
    return PLAIT_OK;
}

bool pli_piece_copy(const pli_checkpoint_tensor *tensor, pli_piece *piece) {
    piece->bytes = pli_checkpoint_row_bytes(tensor) * tensor->shape[0];
    piece->tensor = *tensor;
    piece->tensor.name = pli_strdup(tensor->name);
    piece->tensor.type = pli_strdup(tensor->type);
    return piece->tensor.name != NULL && piece->tensor.type != NULL;
}

void pli_manifest_part_free(pli_manifest_part *part) {
    for (int64_t i = 0; part->piece != NULL && i < part->n; i++) {
        pli_free((void *)(uintptr_t)part->piece[i].tensor.name);
        pli_free((void *)(uintptr_t)part->piece[i].tensor.type);
    }
    pli_free(part->piece);
}

/* --- tensors of pieces ------------------------------------------------------------------------------------ */

/* Sorts by name, then by place; of pieces at the same row those without rows come first. */
static int by_place(const void *a, const void *b) {
    const pli_piece *x = *(const pli_piece *const *)a, *y = *(const pli_piece *const *)b;
    int              names = strcmp(x->tensor.name, y->tensor.name);
    if (names != 0) return names;
    if (x->tensor.first != y->tensor.first) return x->tensor.first < y->tensor.first ? -1 : 1;
    if (x->tensor.shape[0] != y->tensor.shape[0]) return x->tensor.shape[0] < y->tensor.shape[0] ? -1 : 1;
    if (x->part != y->part) return x->part < y->part ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static bool same_kind(const pli_checkpoint_tensor *a, const pli_checkpoint_tensor *b) {
    bool same = strcmp(a->type, b->type) == 0 && a->dims == b->dims && a->rows == b->rows;
    for (int32_t i = 1; same && i < a->dims; i++) same = a->shape[i] == b->shape[i];
    return same;
}

/* Checks that the pieces [n] of one name cover rows 0 .. rows - 1 once. */
static plait_status check_rows(const pli_piece *const *piece, int64_t n, plait_status code, plait_error *err) {
    const pli_checkpoint_tensor *first = &piece[0]->tensor;
    int64_t                      at = 0;
    for (int64_t i = 0; i < n; i++) {
        const pli_checkpoint_tensor *tensor = &piece[i]->tensor;
        if (!same_kind(tensor, first))
            return pli_fail(err, code, "tensor %s: its pieces disagree on type, shape or rows (parts %d and %d)",
                            first->name, piece[0]->part, piece[i]->part);
        if (tensor->shape[0] == 0) continue;
        if (tensor->first > at)
            return pli_fail(err, code, "tensor %s: rows %lld to %lld are missing", first->name, (long long)at,
                            (long long)tensor->first - 1);
        if (tensor->first < at)
            return pli_fail(err, code, "tensor %s: rows from %lld on are there twice (part %d)", first->name,
                            (long long)tensor->first, piece[i]->part);
        at += tensor->shape[0];
    }
    if (at < first->rows)
        return pli_fail(err, code, "tensor %s: rows %lld to %lld are missing", first->name, (long long)at,
                        (long long)first->rows - 1);
    return PLAIT_OK;
}

static plait_status gather_pieces(pli_manifest *manifest, int64_t *n_out, plait_error *err) {
    int64_t n = 0;
    for (int32_t p = 0; p < manifest->parts; p++) n += manifest->part[p].n;
    manifest->piece = pli_array((size_t)n, sizeof *manifest->piece);
    manifest->tensor = pli_calloc((size_t)n, sizeof *manifest->tensor);
    manifest->first_piece = pli_calloc((size_t)n + 1, sizeof *manifest->first_piece);
    if (manifest->piece == NULL || manifest->tensor == NULL || manifest->first_piece == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for the manifest");
    *n_out = n, n = 0;
    for (int32_t p = 0; p < manifest->parts; p++)
        for (int64_t i = 0; i < manifest->part[p].n; i++) manifest->piece[n++] = &manifest->part[p].piece[i];
    return PLAIT_OK;
}

plait_status pli_manifest_find_tensors(pli_manifest *manifest, plait_status code, plait_error *err) {
    int64_t n = 0;
    PLI_TRY(gather_pieces(manifest, &n, err));
    if (n > 0) qsort(manifest->piece, (size_t)n, sizeof *manifest->piece, by_place);
    for (int64_t from = 0, to; from < n; from = to) {
        const char *name = manifest->piece[from]->tensor.name;
        for (to = from + 1; to < n && strcmp(manifest->piece[to]->tensor.name, name) == 0;) to++;
        PLI_TRY(check_rows(manifest->piece + from, to - from, code, err));
        pli_checkpoint_tensor *tensor = &manifest->tensor[manifest->tensors];
        *tensor = manifest->piece[from]->tensor;
        tensor->shape[0] = tensor->rows;
        tensor->first = 0;
        manifest->first_piece[manifest->tensors++] = from;
        manifest->first_piece[manifest->tensors] = to;
    }
    return PLAIT_OK;
}
