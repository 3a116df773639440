/* The filters of a table's sums; coded.h has the ideas.
 *
 * A worker's part of one table in a message:
 *     head     0: the worker has not touched the table, and nothing follows; else 1 + 2 examples + (keys increase), and
 *     n        keyed tables: how many rows the other end is told
 *     size     of the filtered part (filter.h), which follows
 * An owner's sum: size and the filtered part, if anybody has touched the table. Nothing follows for an empty stripe.
 * All numbers are LEB128. */
#include "table/copies/coded_impl.h"

#include "comm/collective.h"
#include "table/state/updates.h"
#include "table/state/values.h"

/* --- life --------------------------------------------------------------------------------------------------------- */

void pli_coded_stripe(const pli_coded *coded, int32_t stripe, int64_t *first_out, int64_t *n_out) {
    if (!coded->in_stripes) {
        *first_out = 0;
        *n_out = coded->rows;
        return;
    }
    *first_out = pli_slice_first(coded->rows, stripe, coded->stripes);
    *n_out = pli_slice_first(coded->rows, stripe + 1, coded->stripes) - *first_out;
}

static plait_status open_chain(pli_coded *c, int32_t stripe, pli_chain *chain, plait_error *err) {
    const pli_spec    *spec = c->spec;
    plait_filter_table table = { .name = spec->name, .type = c->type, .rows = c->rows, .cols = c->cols,
                                 .keyed = spec->keyed, .rule = spec->ruled ? spec->rule.ops->name : NULL,
                                 .l1 = spec->ruled ? spec->rule.l1 : 0, .workers = c->place.workers,
                                 .servers = c->place.workers };
    pli_coded_stripe(c, stripe, &table.first, &table.count);
    return pli_chain_open(chain, &c->list, &table, err);
}

static plait_status open_chains(pli_coded *c, plait_error *err) {
    const int32_t workers = c->place.workers;
    c->up = pli_calloc((size_t)c->stripes, sizeof *c->up);
    c->from = pli_calloc((size_t)workers, sizeof *c->from);
    c->of = pli_calloc((size_t)c->stripes, sizeof *c->of);
    if (c->up == NULL || c->from == NULL || c->of == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for the filters of table %s", c->spec->name);
    for (int32_t s = 0; s < c->stripes; s++) PLI_TRY(open_chain(c, s, &c->up[s], err));
    for (int32_t w = 0; w < workers; w++)
        if (!c->dead[w]) PLI_TRY(open_chain(c, c->mine, &c->from[w], err));
    for (int32_t s = 0; c->in_stripes && s < c->stripes; s++) PLI_TRY(open_chain(c, s, &c->of[s], err));
    return c->in_stripes ? open_chain(c, c->mine, &c->down, err) : PLAIT_OK;
}

/* Who has which stripe, and how many there are. */
static void cut(pli_coded *c) {
    int32_t mine = 0;
    c->n_living = 0;
    for (int32_t w = 0; w < c->place.workers; w++) {
        if (c->dead[w]) continue;
        if (w == c->place.rank) mine = c->n_living;
        c->living[c->n_living++] = w;
    }
    c->in_stripes = !c->spec->keyed && !c->place.whole && c->n_living > 2;
    c->stripes = c->in_stripes ? c->n_living : 1;
    c->mine = c->in_stripes ? mine : 0;
}

plait_status pli_coded_open(const pli_spec *spec, const pli_coded_place *place, pli_coded **coded_out,
                            plait_error *err) {
    pli_coded *c = pli_calloc(1, sizeof *c);
    if (c == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the filters of table %s", spec->name);
    const int64_t width = pli_value_bytes(spec->exact ? PLAIT_F64 : spec->type);
    c->spec = spec;
    c->place = *place;
    c->type = spec->exact ? PLAIT_F64 : spec->type; /* cells are so many doubles: updates.h */
    c->rows = spec->keyed ? spec->rows : spec->rows * spec->cols;
    c->cols = (spec->keyed ? pli_sum_row_bytes(spec) : spec->sum_width) / width;
    c->dead = pli_calloc((size_t)place->workers, 1);
    c->living = pli_array((size_t)place->workers, sizeof *c->living);
    c->saved = pli_calloc((size_t)place->workers, 1);
    if (c->dead == NULL || c->living == NULL || c->saved == NULL) {
        pli_coded_close(&c);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for the filters of table %s", spec->name);
    }
    cut(c);
    plait_status status = pli_filters_read(spec->filter, &place->scope, &c->list, err);
    if (status >= 0) status = open_chains(c, err);
    if (status < 0) pli_coded_close(&c);
    else *coded_out = c;
    return status;
}

static void close_array(pli_chain **chain, int32_t n) {
    for (int32_t i = 0; *chain != NULL && i < n; i++) pli_chain_close(&(*chain)[i]);
    pli_free(*chain);
    *chain = NULL;
}

static void close_chains(pli_coded *c) {
    close_array(&c->up, c->stripes);
    close_array(&c->from, c->place.workers);
    close_array(&c->of, c->stripes);
    pli_chain_close(&c->down);
}

void pli_coded_close(pli_coded **coded_ptr) {
    pli_coded *c = *coded_ptr;
    *coded_ptr = NULL;
    if (c == NULL) return;
    close_chains(c);
    pli_chain_close(&c->scratch);
    pli_bytes_free(&c->body);
    pli_free(c->dead);
    pli_free(c->living);
    pli_free(c->saved);
    pli_free(c->before);
    pli_free(c);
}

plait_status pli_coded_open_anew(pli_coded *c, const uint8_t *dead, plait_error *err) {
    close_chains(c);
    memcpy(c->dead, dead, (size_t)c->place.workers);
    cut(c);
    return open_chains(c, err);
}

/* --- one filtered part -------------------------------------------------------------------------------------------- */

#define SWAP(type, a, b) \
    do {                 \
        type t = (a);    \
        (a) = (b);       \
        (b) = t;         \
    } while (0)

/* Gives the chain the memory that encoders work in, or takes it back: there is one such memory for all stripes. */
static void swap_scratch(pli_coded *c, pli_chain *chain) {
    pli_chain *s = &c->scratch;
    SWAP(void *, s->values, chain->values);
    SWAP(void *, s->sent, chain->sent);
    SWAP(void *, s->back, chain->back);
    SWAP(unsigned char *, s->fate, chain->fate);
    SWAP(uint64_t *, s->row, chain->row);
    SWAP(int64_t, s->values_capacity, chain->values_capacity);
    SWAP(int64_t, s->sent_capacity, chain->sent_capacity);
    SWAP(int64_t, s->back_capacity, chain->back_capacity);
    SWAP(int64_t, s->fate_capacity, chain->fate_capacity);
    SWAP(int64_t, s->row_capacity, chain->row_capacity);
    SWAP(pli_bytes, s->packed, chain->packed);
}

plait_part pli_coded_part_of(const pli_coded *c, int32_t worker, int32_t stripe, int64_t clock) {
    return (plait_part){ .way = PLAIT_PUSHED, .table = c->spec->id, .worker = worker, .server = stripe,
                         .seed = c->place.seed, .clock = clock, .type = c->type, .cols = c->cols,
                         .l1 = c->spec->ruled ? c->spec->rule.l1 : 0 };
}

static bool put_number(pli_bytes *out, uint64_t x) {
    unsigned char *at = pli_bytes_room(out, PLI_VARINT_MAX);
    if (at == NULL) return false;
    out->n += pli_varint_put(at, x);
    return true;
}

static plait_status malformed(const pli_coded *c, int32_t worker, plait_error *err) {
    return pli_fail(err, PLAIT_EFORMAT, "table %s: what rank %d sent for a filtered sum is cut short or malformed",
                    c->spec->name, worker);
}

/* Appends [n], of keyed parts, size and bytes. */
static plait_status put(pli_coded *c, pli_chain *chain, const plait_part *part, const void *values, pli_bytes *out,
                        plait_error *err) {
    int64_t n = 0;
    c->body.n = 0;
    swap_scratch(c, chain);
    plait_status status = pli_chain_encode(chain, part, values, false, &c->body, &n, err);
    swap_scratch(c, chain);
    if (status < 0) return status;
    return (part->keys == NULL || put_number(out, (uint64_t)n)) && put_number(out, (uint64_t)c->body.n) &&
                   pli_bytes_add(out, c->body.data, c->body.n)
               ? PLAIT_OK
               : pli_coded_no_memory(c, err);
}

/* Reads size and bytes. */
static plait_status take(pli_coded *c, pli_chain *chain, const plait_part *part, int32_t worker,
                         const unsigned char **at, const unsigned char *end, pli_decoded *decoded, plait_error *err) {
    uint64_t size;
    if (!pli_varint_get(at, end, &size) || size > (uint64_t)(end - *at)) return malformed(c, worker, err);
    PLI_TRY(pli_chain_decode(chain, part, c->spec->keyed, *at, (int64_t)size, decoded, err));
    *at += size;
    if (!decoded->missing) return PLAIT_OK;
    return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory was left for a list of keys that rank %d names",
                    c->spec->name, worker);
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

plait_status pli_coded_put(pli_coded *c, int32_t stripe, int64_t clock, const pli_pending *own, pli_bytes *out,
                           plait_error *err) {
    const bool     keyed = c->spec->keyed, increase = keyed && pli_rowset_is_increasing(&own->set);
    plait_part     part = pli_coded_part_of(c, c->place.rank, stripe, clock);
    const uint64_t nothing[1] = { 0 };
    if (!put_number(out, own->touched ? 1 + 2 * (uint64_t)own->examples + increase : 0))
        return pli_coded_no_memory(c, err);
    if (!own->touched) return PLAIT_OK;
    part.examples = own->examples;
    if (keyed) {
        part.n = own->set.n;
        part.keys = own->set.n > 0 ? own->set.keys : nothing;
        PLI_TRY(pli_coded_save(c, &c->up[0], 0, &part, err));
        return put(c, &c->up[0], &part, own->sum, out, err);
    }
    pli_coded_stripe(c, stripe, &part.first, &part.n);
    if (part.n == 0) return PLAIT_OK;
    PLI_TRY(pli_coded_save(c, &c->up[stripe], stripe, &part, err));
    return put(c, &c->up[stripe], &part, pli_at_const(own->sum, part.first * c->spec->sum_width), out, err);
}

static plait_status take_head(const pli_coded *c, int32_t from, const unsigned char **at, const unsigned char *end,
                              pli_coded_push *push, bool *increase, plait_error *err) {
    uint64_t head;
    if (!pli_varint_get(at, end, &head) || head > 2 * (uint64_t)PLI_EXAMPLES_MAX + 2) return malformed(c, from, err);
    *increase = head > 0 && (head - 1) % 2 != 0;
    *push = (pli_coded_push){ .touched = head > 0, .examples = head > 0 ? (int64_t)((head - 1) / 2) : 0 };
    return PLAIT_OK;
}

plait_status pli_coded_add(pli_coded *c, int32_t from, int64_t clock, const unsigned char **at,
                           const unsigned char *end, void *sum, pli_coded_push *push, plait_error *err) {
    const int32_t  stripe = c->mine;
    plait_part     part = pli_coded_part_of(c, from, stripe, clock);
    pli_coded_push theirs;
    pli_decoded    decoded = { 0 };
    bool           increase;
    PLI_TRY(take_head(c, from, at, end, &theirs, &increase, err));
    push->touched = push->touched || theirs.touched;
    push->examples += theirs.examples;
    part.examples = theirs.examples;
    pli_coded_stripe(c, stripe, &part.first, &part.n);
    if (!theirs.touched || part.n == 0) return PLAIT_OK;
    PLI_TRY(take(c, &c->from[from], &part, from, at, end, &decoded, err));
    pli_updates_merge(c->spec, part.n, decoded.values, pli_at(sum, part.first * c->spec->sum_width));
    pli_decoded_free(&decoded);
    return PLAIT_OK;
}

plait_status pli_coded_take_rows(pli_coded *c, int32_t from, int64_t clock, const unsigned char **at,
                                 const unsigned char *end, pli_push_part *rows, pli_decoded *decoded,
                                 plait_error *err) {
    plait_part     part = pli_coded_part_of(c, from, 0, clock);
    pli_coded_push theirs;
    bool           increase;
    uint64_t       n;
    PLI_TRY(take_head(c, from, at, end, &theirs, &increase, err));
    *rows = (pli_push_part){ .touched = theirs.touched, .keyed = true, .increasing = increase,
                             .examples = theirs.examples };
    if (!theirs.touched) return PLAIT_OK;
    if (!pli_varint_get(at, end, &n) || n > PLI_TABLE_VALUES_MAX) return malformed(c, from, err);
    part.n = (int64_t)n;
    part.examples = theirs.examples;
    PLI_TRY(take(c, &c->from[from], &part, from, at, end, decoded, err));
    rows->n = decoded->n;
    rows->keys = decoded->keys;
    rows->values = decoded->values;
    return PLAIT_OK;
}

/* --- sums --------------------------------------------------------------------------------------------------------- */

plait_status pli_coded_put_sum(pli_coded *c, int64_t clock, const pli_coded_push *push, const void *sum,
                               pli_bytes *out, plait_error *err) {
    plait_part part = pli_coded_part_of(c, c->place.rank, c->mine, clock);
    part.examples = push->examples;
    pli_coded_stripe(c, c->mine, &part.first, &part.n);
    if (!push->touched || part.n == 0) return PLAIT_OK;
    PLI_TRY(pli_coded_save(c, &c->down, c->mine, &part, err));
    return put(c, &c->down, &part, pli_at_const(sum, part.first * c->spec->sum_width), out, err);
}

plait_status pli_coded_take_sum(pli_coded *c, int32_t stripe, int64_t clock, const pli_coded_push *push,
                                const unsigned char **at, const unsigned char *end, void *sum, plait_error *err) {
    const int32_t owner = c->living[stripe];
    plait_part    part = pli_coded_part_of(c, owner, stripe, clock);
    pli_decoded   decoded = { 0 };
    part.examples = push->examples;
    pli_coded_stripe(c, stripe, &part.first, &part.n);
    if (!push->touched || part.n == 0) return PLAIT_OK;
    PLI_TRY(take(c, &c->of[stripe], &part, owner, at, end, &decoded, err));
    memcpy(pli_at(sum, part.first * c->spec->sum_width), decoded.values, (size_t)(part.n * c->spec->sum_width));
    pli_decoded_free(&decoded);
    return PLAIT_OK;
}
