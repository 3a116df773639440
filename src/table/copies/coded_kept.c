/* What the filters of a table's sums keep: when a sum is put back, and when a worker has died. See coded.h. */
#include "table/copies/coded_impl.h"

#include "table/state/values.h"

/* The chain that puts a stripe: the owner puts its sum. */
static pli_chain *putter(pli_coded *c, int32_t stripe) {
    return c->in_stripes && stripe == c->mine ? &c->down : &c->up[stripe];
}

/* --- a sum that may be put back ----------------------------------------------------------------------------------- */

static int64_t width_of(const pli_coded *c) { return c->cols * pli_value_bytes(c->type); }

static void *before_of(const pli_coded *c, const plait_part *part) {
    return pli_at(c->before, part->keys != NULL ? 0 : part->first * width_of(c));
}

plait_status pli_coded_save(pli_coded *c, pli_chain *chain, int32_t stripe, const plait_part *part, plait_error *err) {
    const int64_t rows = part->keys != NULL ? part->n : c->rows;
    if (!c->place.holds || !chain->feedback) return PLAIT_OK;
    if (!pli_grow(&c->before, &c->before_bytes, rows * width_of(c), 1)) return pli_coded_no_memory(c, err);
    if (part->n > 0) memset(before_of(c, part), 0, (size_t)(part->n * width_of(c)));
    pli_residual_add_to(&chain->residual, part, before_of(c, part));
    c->saved[stripe] = 1;
    return PLAIT_OK;
}

plait_status pli_coded_put_back(pli_coded *c, const pli_pending *own, plait_error *err) {
    for (int32_t s = 0; s < c->stripes; s++) {
        plait_part part = pli_coded_part_of(c, c->place.rank, s, 0);
        if (c->spec->keyed) {
            part.n = own->set.n;
            part.keys = own->set.keys;
        } else {
            pli_coded_stripe(c, s, &part.first, &part.n);
        }
        if (c->saved[s] && pli_residual_set(&putter(c, s)->residual, &part, before_of(c, &part)) < 0)
            return pli_coded_no_memory(c, err);
    }
    pli_coded_settle(c);
    return PLAIT_OK;
}

void pli_coded_settle(pli_coded *c) { memset(c->saved, 0, (size_t)c->place.workers); }

/* --- what is kept ------------------------------------------------------------------------------------------------- */

static void add_kept(const pli_coded *c, pli_chain *chain, int32_t stripe, void *values) {
    plait_part part = pli_coded_part_of(c, 0, stripe, 0);
    pli_coded_stripe(c, stripe, &part.first, &part.n);
    pli_residual_add_to(&chain->residual, &part, pli_at(values, part.first * c->spec->sum_width));
}

void pli_coded_kept(const pli_coded *c, bool of_sums, void *values) {
    memset(values, 0, (size_t)(c->rows * c->spec->sum_width));
    for (int32_t s = 0; !of_sums && s < c->stripes; s++) add_kept(c, &c->up[s], s, values);
    if (of_sums && c->in_stripes) add_kept(c, (pli_chain *)&c->down, c->mine, values);
}

static plait_status keep(pli_coded *c, pli_chain *chain, int32_t stripe, const void *values) {
    plait_part part = pli_coded_part_of(c, 0, stripe, 0);
    pli_coded_stripe(c, stripe, &part.first, &part.n);
    return pli_residual_add(&chain->residual, &part, pli_at_const(values, part.first * c->spec->sum_width));
}

plait_status pli_coded_keep(pli_coded *c, bool of_sums, const void *values, plait_error *err) {
    plait_status status = PLAIT_OK;
    for (int32_t s = 0; !of_sums && status >= 0 && s < c->stripes; s++) /* up[me] would never be sent */
        status = keep(c, putter(c, s), s, values);
    if (of_sums) status = keep(c, putter(c, c->mine), c->mine, values);
    return status < 0 ? pli_coded_no_memory(c, err) : PLAIT_OK;
}

plait_status pli_coded_spend(pli_coded *c, void *sum, plait_error *err) {
    plait_part part = pli_coded_part_of(c, c->place.rank, c->mine, 0);
    if (!c->in_stripes || c->down.residual.values == NULL) return PLAIT_OK;
    pli_coded_stripe(c, c->mine, &part.first, &part.n);
    PLI_TRY(pli_coded_save(c, &c->down, c->mine, &part, err));
    add_kept(c, &c->down, c->mine, sum);
    pli_residual_clear(&c->down.residual);
    return PLAIT_OK;
}

void pli_coded_forget(pli_coded *c) {
    for (int32_t s = 0; s < c->stripes; s++) pli_residual_clear(&c->up[s].residual);
    if (c->in_stripes) pli_residual_clear(&c->down.residual);
}

/* --- in checkpoints ----------------------------------------------------------------------------------------------- */

plait_status pli_coded_rest(const pli_coded *c, pli_rest *rest) {
    if (!c->up[0].feedback) return PLAIT_OK;
    if (c->spec->keyed) return pli_residual_copy(&c->up[0].residual, rest);
    bool kept = c->in_stripes && c->down.residual.values != NULL;
    for (int32_t s = 0; s < c->stripes; s++) kept = kept || c->up[s].residual.values != NULL;
    if (!kept) return PLAIT_OK;
    *rest = (pli_rest){ .type = c->type, .n = c->spec->rows, .cols = c->spec->cols * c->cols,
                        .values = pli_calloc((size_t)c->rows, (size_t)c->spec->sum_width) };
    if (rest->values == NULL) return PLAIT_ENOMEM;
    for (int32_t s = 0; s < c->stripes; s++) add_kept(c, putter((pli_coded *)c, s), s, rest->values);
    return PLAIT_OK;
}

plait_status pli_coded_rest_add(pli_coded *c, const pli_rest *rest) {
    if (!c->up[0].feedback) return PLAIT_OK;
    const int64_t cols = c->spec->keyed ? c->cols : c->spec->cols * c->cols;
    if (rest->type != c->type || rest->cols != cols || (!c->spec->keyed && rest->n != c->spec->rows))
        return PLAIT_EMISMATCH;
    if (rest->values == NULL) return PLAIT_OK;
    if (!c->spec->keyed) return pli_coded_keep(c, false, rest->values, NULL);
    const plait_part part = { .n = rest->n, .keys = rest->keys, .type = c->type, .cols = c->cols };
    return pli_residual_add(&c->up[0].residual, &part, rest->values);
}

/* --- those who live ----------------------------------------------------------------------------------------------- */

/* A keyed table has one chain that keeps rows, whatever the cut is. */
static plait_status recut_keyed(pli_coded *c, const uint8_t *dead, plait_error *err) {
    const plait_filter_table table = c->up[0].table;
    pli_residual             kept = c->up[0].residual;
    pli_residual_init(&c->up[0].residual, &table);
    const plait_status status = pli_coded_open_anew(c, dead, err);
    if (status < 0) {
        pli_residual_destroy(&kept);
        return status;
    }
    pli_residual_destroy(&c->up[0].residual);
    c->up[0].residual = kept;
    return PLAIT_OK;
}

static plait_status recut_dense(pli_coded *c, const uint8_t *dead, plait_error *err) {
    void *kept = c->up[0].feedback ? pli_calloc((size_t)c->rows, (size_t)c->spec->sum_width) : NULL;
    if (c->up[0].feedback && kept == NULL) return pli_coded_no_memory(c, err);
    for (int32_t s = 0; kept != NULL && s < c->stripes; s++) add_kept(c, putter(c, s), s, kept);
    plait_status status = pli_coded_open_anew(c, dead, err);
    if (status >= 0 && kept != NULL) status = pli_coded_keep(c, false, kept, err);
    pli_free(kept);
    return status;
}

plait_status pli_coded_recut(pli_coded *c, const uint8_t *dead, plait_error *err) {
    if (memcmp(c->dead, dead, (size_t)c->place.workers) == 0) return PLAIT_OK;
    return c->spec->keyed ? recut_keyed(c, dead, err) : recut_dense(c, dead, err);
}
