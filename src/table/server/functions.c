/* Server functions: a shard's rows shown to a user's function. See functions.h.
 *
 * Paper: Li et al., OSDI 2014, section 4.4 (user-defined functions on the server). Sandblaster's idea: the vectors of
 * an optimiser never leave the shards, only coefficients travel (Dean et al., NIPS 2012). */
#include "table/server/functions.h"

#include <string.h>

#include "comm/callback.h"
#include "table/state/snap.h"
#include "table/state/values.h"

/* The part of the call's range that the shard owns, as rows of the table. */
static int64_t owned_part(const pli_function_call *call, const pli_shard *shard, int64_t *first_out) {
    const int64_t first = call->first > shard->first ? call->first : shard->first;
    const int64_t call_end = call->first + call->rows, shard_end = shard->first + shard->rows;
    const int64_t end = call_end < shard_end ? call_end : shard_end;
    *first_out = first;
    return end > first ? end - first : 0;
}

bool pli_function_concerns(const pli_function_call *call, const pli_shard *shard) {
    int64_t first;
    return shard->spec.rows == 0 || owned_part(call, shard, &first) > 0;
}

/* Dense: shows the values themselves. What penalties they owe is applied in place, which changes nothing for
 * readers. */
static plait_status show_dense(const pli_function_call *call, pli_shard *shard, plait_slice *slice,
                               plait_error *err) {
    const plait_function *fn = call->fn;
    pli_store            *store = &shard->store;
    slice->rows = owned_part(call, shard, &slice->first);
    const int64_t at = slice->first - shard->first; /* number of the first row within the shard */
    if ((fn->updates || shard->spec.lazy) && !pli_store_own(store))
        return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory for function %s", shard->spec.name, fn->name);
    if (fn->updates && store->snap != NULL) pli_snap_range_changes(store->snap, at, slice->rows);
    pli_store_pay_all(store);
    slice->values = pli_at(store->slab->memory, at * pli_row_bytes(&shard->spec));
    return PLAIT_OK;
}

/* Sparse: shows a contiguous copy of keys and values, in one piece of memory. */
static plait_status show_sparse(const plait_function *fn, pli_shard *shard, plait_slice *slice, plait_error *err) {
    pli_store *store = &shard->store;
    int64_t    n = store->rows;
    uint64_t  *keys = pli_array((size_t)n, (size_t)(8 + pli_row_bytes(&shard->spec)));
    if (keys == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory for function %s", shard->spec.name, fn->name);
    if (fn->updates && store->snap != NULL) pli_snap_range_changes(store->snap, 0, n);
    pli_store_pay_all(store);
    if (n > 0) {
        pli_keymap_keys(&store->map, keys);
        pli_store_get_rows(store, 0, n, keys + n);
    }
    slice->rows = n;
    slice->first = -1;
    slice->keys = keys;
    slice->values = keys + n;
    return PLAIT_OK;
}

static void take_back(const plait_function *fn, pli_shard *shard, const plait_slice *slice) {
    int64_t row_bytes = pli_row_bytes(&shard->spec);
    for (int64_t row = 0; fn->updates && row < slice->rows; row++)
        memcpy(pli_store_row(&shard->store, row, row_bytes), pli_at_const(slice->values, row * row_bytes),
               (size_t)row_bytes);
}

static plait_status show(const pli_function_call *call, pli_shard *shard, plait_slice *slice, plait_error *err) {
    slice->type = shard->spec.type;
    slice->cols = shard->spec.cols;
    return shard->spec.rows > 0 ? show_dense(call, shard, slice, err) : show_sparse(call->fn, shard, slice, err);
}

/* --- digests for the event log ------------------------------------------------------------------------------------ */

uint32_t pli_function_asked(const pli_function_call *call) {
    const int64_t  range[] = { call->first, call->rows };
    const uint64_t name = pli_hash_bytes(call->fn->name, strlen(call->fn->name), 0);
    return (uint32_t)pli_hash_bytes(call->args, call->args_bytes, pli_hash_bytes(range, sizeof range, name));
}

uint32_t pli_function_answered(const void *answer, size_t bytes) {
    return bytes == 0 ? 0 : (uint32_t)pli_hash_bytes(answer, bytes, 0);
}

/* Two replicas may have a sparse table's rows in different orders, so the digests of its rows are added. */
static uint64_t digest_of(const plait_slice *slice) {
    const int64_t row_bytes = slice->cols * (int64_t)plait_type_bytes(slice->type);
    uint64_t      sum = 0;
    if (slice->keys == NULL) return pli_hash_bytes(slice->values, (size_t)(slice->rows * row_bytes), 0);
    for (int64_t row = 0; row < slice->rows; row++)
        sum += pli_hash_bytes(pli_at_const(slice->values, row * row_bytes), (size_t)row_bytes, slice->keys[row] + 1);
    return sum;
}

static uint32_t wrote(const plait_slice *slices, int32_t n) {
    uint64_t digest = 0;
    for (int32_t i = 0; i < n; i++) {
        const uint64_t of = digest_of(&slices[i]);
        digest = pli_hash_bytes(&of, sizeof of, digest);
    }
    return (uint32_t)digest;
}

static plait_status called_plait(const plait_function *fn, const char *called, plait_error *err) {
    if (called == NULL) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL, "server function %s called %s: a server function must not call into Plait",
                    fn->name, called);
}

static plait_status run(const pli_function_call *call, const plait_slice *slices, int32_t n, void *answer,
                        plait_error *err) {
    const plait_function *fn = call->fn;
    pli_callback_begin();
    plait_status status = fn->run(fn->user, slices, n, call->args, call->args_bytes, answer, call->answer_bytes);
    const char  *called = pli_callback_end();
    PLI_TRY(called_plait(fn, called, err));
    return status < 0 ? pli_fail(err, status, "server function %s: %s", fn->name, plait_status_text(status)) : status;
}

plait_status pli_function_run(const pli_function_call *call, pli_shard *const *shards, int32_t n, void *answer,
                              plait_error *err) {
    plait_status status = PLAIT_OK;
    if (call->answer_bytes > 0) memset(answer, 0, call->answer_bytes);
    if (call->wrote_out != NULL) *call->wrote_out = 0;
    if (!pli_function_concerns(call, shards[0])) return PLAIT_OK;
    plait_slice *slices = pli_calloc((size_t)n, sizeof *slices);
    if (slices == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for function %s", call->fn->name);
    for (int32_t i = 0; status >= 0 && i < n; i++) status = show(call, shards[i], &slices[i], err);
    if (status >= 0) status = run(call, slices, n, answer, err);
    if (status >= 0 && call->wrote_out != NULL) *call->wrote_out = wrote(slices, n);
    for (int32_t i = 0; i < n; i++) {
        if (slices[i].keys == NULL) continue;
        if (status >= 0) take_back(call->fn, shards[i], &slices[i]);
        pli_free((void *)slices[i].keys);
    }
    pli_free(slices);
    return status;
}

static void add_doubles(size_t n, const double *x, double *y) {
    for (size_t i = 0; i < n; i++) y[i] += x[i];
}

plait_status pli_function_merge(const plait_function *fn, void *answer, const void *other, size_t answer_bytes,
                                plait_error *err) {
    if (fn->merge == NULL) {
        add_doubles(answer_bytes / sizeof(double), other, answer);
        return PLAIT_OK;
    }
    pli_callback_begin();
    fn->merge(fn->user, answer, other, answer_bytes);
    return called_plait(fn, pli_callback_end(), err);
}
