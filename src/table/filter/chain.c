/* Takes a part through the filters, and back: rows are chosen, values and keys become bytes, bytes become fewer. See
 * filter.h. */
#include "table/filter/filter.h"

#include "table/state/values.h"

enum { PACKED = 1, PLAIN = 2, SOME = 4, TOKEN = 8, WHOLE = 16, FLAGS_END = 32 }; /* PLAIN: without losses; WHOLE: a list
                                                                                    to learn */
enum { BITMAP = 0, GAPS = 1 };
enum { AWAY = 0, HERE = 1, FORGOTTEN = 2 }; /* a row's fate: stays behind, travels, will never travel */

static const plait_filter *filter_of(const pli_chain *chain, int32_t i) { return chain->list->filter[i]; }

static int64_t row_bytes_of(const plait_part *part) { return part->cols * pli_value_bytes(part->type); }

static plait_status no_memory(const pli_chain *chain, plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory to filter a message", chain->table.name);
}

static plait_status filter_failed(const pli_chain *chain, int32_t i, int64_t status, plait_error *err) {
    return pli_fail(err, (plait_status)status, "table %s: filter %s: %s", chain->table.name, filter_of(chain, i)->name,
                    plait_status_text((plait_status)status));
}

static plait_status malformed(const pli_chain *chain, const char *what, plait_error *err) {
    return pli_fail(err, PLAIT_EFORMAT, "table %s: the %s of a filtered message are malformed", chain->table.name,
                    what);
}

/* --- life ----------------------------------------------------------------------------------------------------- */

plait_status pli_chain_open(pli_chain *chain, const pli_filters_list *list, const plait_filter_table *table,
                            plait_error *err) {
    *chain = (pli_chain){ .list = list, .table = *table };
    pli_residual_init(&chain->residual, table);
    for (int32_t i = 0; i < list->n; i++) {
        const plait_filter *filter = list->filter[i];
        chain->feedback = chain->feedback || filter->loss == PLAIT_ROUNDED || filter->loss == PLAIT_KEPT_BACK;
        chain->state[i] = pli_calloc(1, filter->state_bytes);
        plait_status status = chain->state[i] == NULL ? no_memory(chain, err)
                                                      : filter->parse(chain->state[i], list->parameters[i], table, err);
        if (status < 0) {
            pli_chain_close(chain);
            return status;
        }
    }
    return PLAIT_OK;
}

void pli_chain_close(pli_chain *chain) {
    for (int32_t i = 0; chain->list != NULL && i < chain->list->n; i++) {
        if (chain->state[i] != NULL && filter_of(chain, i)->close != NULL) filter_of(chain, i)->close(chain->state[i]);
        pli_free(chain->state[i]);
    }
    pli_residual_destroy(&chain->residual);
    pli_free(chain->values);
    pli_free(chain->sent);
    pli_free(chain->back);
    pli_free(chain->fate);
    pli_free(chain->row);
    pli_bytes_free(&chain->packed);
    *chain = (pli_chain){ 0 };
}

/* --- rows ------------------------------------------------------------------------------------------------------- */

/* Decides which rows travel; *m_out: how many. */
static plait_status choose(pli_chain *chain, const plait_part *part, const void *values, int64_t *m_out,
                           plait_error *err) {
    unsigned char *fate = chain->fate, *keep = chain->fate + part->n;
    int64_t        m = part->n;
    for (int32_t i = 0; i < chain->list->n; i++) {
        const plait_filter *filter = filter_of(chain, i);
        if (filter->rows.choose == NULL || (part->way == PLAIT_ANSWERED && !filter->answers)) continue;
        for (int64_t r = 0; r < part->n; r++) keep[r] = fate[r] == HERE;
        plait_status status = filter->rows.choose(chain->state[i], part, values, keep);
        if (status < 0) return filter_failed(chain, i, status, err);
        for (int64_t r = 0; r < part->n; r++) {
            if (fate[r] != HERE || keep[r]) continue;
            fate[r] = filter->loss == PLAIT_SKIPPED ? FORGOTTEN : AWAY;
            m--;
        }
    }
    *m_out = m;
    return PLAIT_OK;
}

/* Writes which rows travel: a bit for each row, or the gaps between those that travel, whichever is smaller. */
static bool put_selection(const unsigned char *fate, int64_t n, int64_t m, pli_bytes *out) {
    int64_t        bitmap = (int64_t)(((uint64_t)n + 7) / 8), last = -1;
    unsigned char *at =
        pli_bytes_room(out, 2 * PLI_VARINT_MAX + 1 + (bitmap > m * PLI_VARINT_MAX ? bitmap : m * PLI_VARINT_MAX));
    if (at == NULL) return false;
    unsigned char *begin = at;
    at += pli_varint_put(at, (uint64_t)m);
    unsigned char *form = at++;
    unsigned char *data = at;
    for (int64_t r = 0; r < n && at - data <= bitmap; r++) {
        if (fate[r] != HERE) continue;
        at += pli_varint_put(at, (uint64_t)(r - last - 1));
        last = r;
    }
    *form = GAPS;
    if (at - data > bitmap) {
        *form = BITMAP;
        memset(data, 0, (size_t)bitmap);
        for (int64_t r = 0; r < n; r++)
            if (fate[r] == HERE) data[r / 8] |= (unsigned char)(1 << r % 8);
        at = data + bitmap;
    }
    out->n += at - begin;
    return true;
}

/* Reads which of the n rows travel: row [*m_out], increasing, of pli_malloc. */
static plait_status get_selection(const unsigned char **at, const unsigned char *end, int64_t n, int64_t *m_out,
                                  int64_t **row_out) {
    uint64_t m, gap;
    if (!pli_varint_get(at, end, &m) || m > (uint64_t)n || *at == end) return PLAIT_EFORMAT;
    unsigned char form = *(*at)++;
    int64_t       bitmap = (n + 7) / 8, found = 0;
    if (form > GAPS || (form == BITMAP ? bitmap > end - *at : m > (uint64_t)(end - *at))) return PLAIT_EFORMAT;
    int64_t *row = pli_array((size_t)m, sizeof *row);
    if (row == NULL) return PLAIT_ENOMEM;
    bool good = true;
    if (form == BITMAP) {
        for (int64_t r = 0; r < n && good; r++) {
            if (!((*at)[r / 8] >> r % 8 & 1)) continue;
            good = found < (int64_t)m;
            if (good) row[found++] = r;
        }
        *at += bitmap;
    }
    for (int64_t next = 0; form == GAPS && good && found < (int64_t)m; next = row[found++] + 1) {
        good = pli_varint_get(at, end, &gap) && gap < (uint64_t)(n - next);
        if (good) row[found] = next + (int64_t)gap;
    }
    if (!good || found != (int64_t)m) {
        pli_free(row);
        return PLAIT_EFORMAT;
    }
    *m_out = (int64_t)m;
    *row_out = row;
    return PLAIT_OK;
}

/* --- keys --------------------------------------------------------------------------------------------------------- */

static plait_status put_keys(pli_chain *chain, int64_t n, const uint64_t *keys, pli_bytes *out, plait_error *err) {
    int32_t             i = chain->list->keys;
    const plait_filter *filter = i < 0 ? NULL : filter_of(chain, i);
    int64_t             most = filter == NULL ? n * 8 : filter->keys.bound(chain->state[i], n);
    unsigned char      *at = most < 0 ? NULL : pli_bytes_room(out, most + PLI_VARINT_MAX);
    if (at == NULL) return no_memory(chain, err);
    unsigned char *data = at + PLI_VARINT_MAX;
    int64_t        size = n * 8;
    if (filter != NULL) size = filter->keys.encode(chain->state[i], n, keys, data);
    else memcpy(data, keys, (size_t)size);
    if (size < 0) return filter_failed(chain, i, size, err);
    int64_t head = pli_varint_put(at, (uint64_t)size);
    memmove(at + head, data, (size_t)size);
    out->n += head + size;
    return PLAIT_OK;
}

static plait_status get_keys(pli_chain *chain, const unsigned char **at, const unsigned char *end, int64_t n,
                             uint64_t **keys_out, plait_error *err) {
    int32_t             i = chain->list->keys;
    const plait_filter *filter = i < 0 ? NULL : filter_of(chain, i);
    uint64_t            size;
    if (!pli_varint_get(at, end, &size) || size > (uint64_t)(end - *at) || n > (int64_t)size * 64 ||
        (filter == NULL && size != (uint64_t)n * 8))
        return malformed(chain, "keys", err);
    uint64_t *keys = pli_array((size_t)n, sizeof *keys);
    if (keys == NULL) return no_memory(chain, err);
    plait_status status = PLAIT_OK;
    if (filter != NULL) status = filter->keys.decode(chain->state[i], n, *at, (int64_t)size, keys);
    else memcpy(keys, *at, (size_t)size);
    if (status < 0) {
        pli_free(keys);
        return status == PLAIT_EFORMAT ? malformed(chain, "keys", err) : filter_failed(chain, i, status, err);
    }
    *at += size;
    *keys_out = keys;
    return PLAIT_OK;
}

static void learn(pli_chain *chain, int64_t n, const uint64_t *keys) {
    int32_t i = chain->list->lists;
    if (i >= 0 && n > 0) (void)filter_of(chain, i)->lists.learn(chain->state[i], n, keys);
}

static const uint64_t *recall(pli_chain *chain, const void *token, int64_t *n_out) {
    int32_t i = chain->list->lists;
    return i < 0 ? NULL : filter_of(chain, i)->lists.recall(chain->state[i], token, n_out);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static bool codes_values(const pli_chain *chain, const plait_part *part, bool exact) {
    int32_t i = chain->list->values;
    return i >= 0 && !(exact && filter_of(chain, i)->loss != PLAIT_EXACT) &&
           (part->way != PLAIT_ANSWERED || filter_of(chain, i)->answers);
}

/* Appends values [count]. back receives what the other end will have of them, unless it is NULL. */
static plait_status put_values(pli_chain *chain, const plait_part *part, bool coded, int64_t count, const uint64_t *row,
                               const void *values, void *back, pli_bytes *out, plait_error *err) {
    int64_t width = pli_value_bytes(part->type);
    if (!coded) {
        if (back != NULL) memcpy(back, values, (size_t)(count * width));
        return pli_bytes_add(out, values, count * width) ? PLAIT_OK : no_memory(chain, err);
    }
    int32_t             i = chain->list->values;
    const plait_filter *filter = filter_of(chain, i);
    int64_t             most = filter->values.bound(chain->state[i], part, count);
    unsigned char      *at = most < 0 ? NULL : pli_bytes_room(out, most);
    if (at == NULL) return no_memory(chain, err);
    int64_t size = filter->values.encode(chain->state[i], part, count, row, values, at);
    if (size < 0) return filter_failed(chain, i, size, err);
    out->n += size;
    plait_status status = back == NULL ? PLAIT_OK : filter->values.decode(chain->state[i], part, count, at, size, back);
    return status < 0 ? filter_failed(chain, i, status, err) : PLAIT_OK;
}

static plait_status get_values(pli_chain *chain, const plait_part *part, bool coded, int64_t count,
                               const unsigned char *at, int64_t size, void **values_out, plait_error *err) {
    int64_t width = pli_value_bytes(part->type);
    if (!coded && size != count * width) return malformed(chain, "values", err);
    void *values = pli_array((size_t)count, (size_t)width);
    if (values == NULL) return no_memory(chain, err);
    plait_status status = PLAIT_OK;
    int32_t      i = chain->list->values;
    if (coded) status = filter_of(chain, i)->values.decode(chain->state[i], part, count, at, size, values);
    else memcpy(values, at, (size_t)size);
    if (status < 0) {
        pli_free(values);
        return status == PLAIT_EFORMAT ? malformed(chain, "values", err) : filter_failed(chain, i, status, err);
    }
    *values_out = values;
    return PLAIT_OK;
}

/* --- bytes -------------------------------------------------------------------------------------------------------- */

/* Packs what lies behind out's byte `begin` (the flags), by each bytes filter in turn. If it does not shrink it stays
 * as it is. */
static plait_status pack(pli_chain *chain, int64_t begin, pli_bytes *out, plait_error *err) {
    for (int32_t i = 0; i < chain->list->n; i++) {
        const plait_filter *filter = filter_of(chain, i);
        if (filter->bytes.encode == NULL) continue;
        int64_t raw = out->n - begin - 1, most = filter->bytes.bound(chain->state[i], raw);
        chain->packed.n = 0;
        unsigned char *to = most < 0 ? NULL : pli_bytes_room(&chain->packed, most);
        if (to == NULL) return no_memory(chain, err);
        int64_t size = filter->bytes.encode(chain->state[i], raw, out->data + begin + 1, to);
        if (size < 0) return filter_failed(chain, i, size, err);
        if (size >= raw) return PLAIT_OK;
        memcpy(out->data + begin + 1, to, (size_t)size);
        out->n = begin + 1 + size;
        out->data[begin] |= PACKED;
        return PLAIT_OK; /* there is one at most */
    }
    return PLAIT_OK;
}

/* *memory_out: of pli_malloc, holds what *bytes now is. */
static plait_status unpack(pli_chain *chain, const unsigned char **bytes, int64_t *size, void **memory_out,
                           plait_error *err) {
    for (int32_t i = 0; i < chain->list->n; i++) {
        const plait_filter *filter = filter_of(chain, i);
        if (filter->bytes.encode == NULL) continue;
        int64_t raw = filter->bytes.unpacked(chain->state[i], *bytes, *size);
        if (raw < 0) return malformed(chain, "bytes", err);
        void *memory = pli_malloc((size_t)raw);
        if (memory == NULL) return no_memory(chain, err);
        plait_status status = filter->bytes.decode(chain->state[i], *bytes, *size, memory, raw);
        if (status < 0) {
            pli_free(memory);
            return status == PLAIT_EFORMAT ? malformed(chain, "bytes", err) : filter_failed(chain, i, status, err);
        }
        *memory_out = memory;
        *bytes = memory;
        *size = raw;
        return PLAIT_OK;
    }
    return malformed(chain, "bytes", err);
}

/* --- there -------------------------------------------------------------------------------------------------------- */

static bool reserve(pli_chain *chain, const plait_part *part, bool chooses) {
    int64_t n = part->n, bytes = n * row_bytes_of(part);
    return pli_grow((void **)&chain->fate, &chain->fate_capacity, 2 * n + 1, 1) &&
           pli_grow((void **)&chain->row, &chain->row_capacity, n + 1, sizeof *chain->row) &&
           (!chain->feedback || (pli_grow(&chain->values, &chain->values_capacity, bytes + 1, 1) &&
                                 pli_grow(&chain->back, &chain->back_capacity, bytes + 1, 1))) &&
           (!chooses || pli_grow(&chain->sent, &chain->sent_capacity, bytes + 1, 1));
}

/* Keeps the rest of each row: x less what arrives; x itself if the row stays behind; nothing if it is forgotten.
 * Overwrites x. */
static plait_status keep_rest(pli_chain *chain, const plait_part *part, void *x, plait_error *err) {
    int64_t row_bytes = row_bytes_of(part), next = 0;
    for (int64_t r = 0; r < part->n; r++) {
        void *to = pli_at(x, r * row_bytes);
        if (chain->fate[r] == HERE)
            pli_values_add_scaled(part->type, part->cols, -1, pli_at_const(chain->back, next++ * row_bytes), to);
        else if (chain->fate[r] == FORGOTTEN) memset(to, 0, (size_t)row_bytes);
    }
    return pli_residual_set(&chain->residual, part, x) < 0 ? no_memory(chain, err) : PLAIT_OK;
}

/* Gathers the rows that travel, side by side. */
static const void *gather(pli_chain *chain, const plait_part *part, int64_t m, const void *x) {
    int64_t row_bytes = row_bytes_of(part), next = 0;
    for (int64_t r = 0; r < part->n; r++) {
        if (chain->fate[r] != HERE) continue;
        chain->row[next] = pli_part_row(part, r);
        if (m < part->n)
            memcpy(pli_at(chain->sent, next * row_bytes), pli_at_const(x, r * row_bytes), (size_t)row_bytes);
        next++;
    }
    return m < part->n ? chain->sent : x;
}

/* Writes the keys: a token and which rows of its list travel; or the list, to be learnt; or only the keys that
 * travel. */
static plait_status put_list(pli_chain *chain, const plait_part *part, int64_t m, unsigned char *flags, pli_bytes *out,
                             int64_t *n_out, plait_error *err) {
    int32_t       i = chain->list->lists;
    unsigned char token[PLAIT_TOKEN_BYTES];
    if (i >= 0 && part->n > 0 && filter_of(chain, i)->lists.known(chain->state[i], part->n, part->keys, token)) {
        *flags |= TOKEN | (m < part->n ? SOME : 0);
        if (m < part->n && !put_selection(chain->fate, part->n, m, out)) return no_memory(chain, err);
        return pli_bytes_add(out, token, sizeof token) ? PLAIT_OK : no_memory(chain, err);
    }
    *n_out = m;
    if (m < part->n) return put_keys(chain, m, chain->row, out, err);
    PLI_TRY(put_keys(chain, m, part->keys, out, err));
    if (i >= 0) *flags |= WHOLE;
    learn(chain, m, part->keys);
    return PLAIT_OK;
}

static plait_status encode(pli_chain *chain, const plait_part *part, const void *values, bool exact, pli_bytes *out,
                           int64_t *n_out, plait_error *err) {
    int64_t       m = part->n, begin = out->n;
    unsigned char flags = exact ? PLAIN : 0;
    bool          chooses = part->way != PLAIT_PULLED && !exact;
    bool          rests = part->way == PLAIT_PUSHED && chain->feedback && !exact;
    const void   *x = values;
    *n_out = part->n;
    if (!reserve(chain, part, chooses) || !pli_bytes_add(out, &flags, 1)) return no_memory(chain, err);
    memset(chain->fate, HERE, (size_t)part->n);
    if (rests) {
        if (part->n > 0) memcpy(chain->values, values, (size_t)(part->n * row_bytes_of(part)));
        x = chain->values;
        pli_residual_add_to(&chain->residual, part, chain->values);
        chain->examples = part->examples;
    }
    if (chooses) PLI_TRY(choose(chain, part, x, &m, err));
    const void *sent = part->way == PLAIT_PULLED ? NULL : gather(chain, part, m, x);
    if (part->keys != NULL && part->way != PLAIT_ANSWERED) {
        PLI_TRY(put_list(chain, part, m, &flags, out, n_out, err));
    } else if (m < part->n) {
        flags |= SOME;
        if (!put_selection(chain->fate, part->n, m, out)) return no_memory(chain, err);
    }
    if (part->way != PLAIT_PULLED)
        PLI_TRY(put_values(chain, part, codes_values(chain, part, exact), m * part->cols, chain->row, sent,
                           rests ? chain->back : NULL, out, err));
    if (rests) PLI_TRY(keep_rest(chain, part, chain->values, err));
    out->data[begin] = flags;
    return pack(chain, begin, out, err);
}

plait_status pli_chain_encode(pli_chain *chain, const plait_part *part, const void *values, bool exact, pli_bytes *out,
                              int64_t *n_out, plait_error *err) {
    plait_status status = encode(chain, part, values, exact, out, n_out, err);
    chain->packed.n = 0;
    return status;
}

plait_status pli_chain_encode_list(pli_chain *chain, const void *token, pli_bytes *out, int64_t *n_out,
                                   plait_error *err) {
    const unsigned char flags = WHOLE;
    int64_t             begin = out->n;
    const uint64_t     *keys = recall(chain, token, n_out);
    if (keys == NULL)
        return pli_fail(err, PLAIT_EFORMAT, "table %s: a list of keys was requested that is no longer held",
                        chain->table.name);
    if (!pli_bytes_add(out, &flags, 1)) return no_memory(chain, err);
    PLI_TRY(put_keys(chain, *n_out, keys, out, err));
    return pack(chain, begin, out, err);
}

/* --- and back ----------------------------------------------------------------------------------------------------- */

void pli_decoded_free(pli_decoded *decoded) {
    pli_free(decoded->keys);
    pli_free(decoded->values);
    *decoded = (pli_decoded){ 0 };
}

/* Reads the list of a token; sets *missing if it is not known. */
static plait_status get_token(pli_chain *chain, const unsigned char **at, const unsigned char *end, int64_t n,
                              pli_decoded *d, plait_error *err) {
    int64_t known = 0;
    if (chain->list->lists < 0 || end - *at < PLAIT_TOKEN_BYTES) return malformed(chain, "keys", err);
    const uint64_t *keys = recall(chain, *at, &known);
    if (keys == NULL) {
        memcpy(d->token, *at, sizeof d->token);
        d->missing = true;
        return PLAIT_OK;
    }
    if (known != n) return malformed(chain, "keys", err);
    d->keys = pli_array((size_t)n, sizeof *d->keys);
    if (d->keys == NULL) return no_memory(chain, err);
    memcpy(d->keys, keys, (size_t)n * sizeof *keys);
    *at += PLAIT_TOKEN_BYTES;
    return PLAIT_OK;
}

/* Puts the rows that travelled in their places among n. Keyed pushes keep only those; other parts have zeros between
 * them. */
static plait_status spread(pli_chain *chain, const plait_part *part, const int64_t *row, int64_t m, pli_decoded *d,
                           plait_error *err) {
    int64_t row_bytes = row_bytes_of(part);
    if (d->keys != NULL) {
        for (int64_t i = 0; i < m; i++) d->keys[i] = d->keys[row[i]];
        d->n = m;
        return PLAIT_OK;
    }
    void *all = pli_calloc((size_t)part->n, (size_t)row_bytes);
    if (all == NULL) return no_memory(chain, err);
    for (int64_t i = 0; i < m; i++)
        memcpy(pli_at(all, row[i] * row_bytes), pli_at(d->values, i * row_bytes), (size_t)row_bytes);
    pli_free(d->values);
    d->values = all;
    return PLAIT_OK;
}

static plait_status decode(pli_chain *chain, const plait_part *part, bool keyed, const unsigned char *at, int64_t size,
                           int64_t **row, void **unpacked, pli_decoded *d, plait_error *err) {
    int64_t m = part->n;
    if (size < 1 || part->n < 0 || part->n > INT64_MAX / 16 / row_bytes_of(part)) return malformed(chain, "sizes", err);
    unsigned char flags = *at++;
    size--;
    if (flags >= FLAGS_END) return malformed(chain, "flags", err);
    if (flags & PACKED) PLI_TRY(unpack(chain, &at, &size, unpacked, err));
    const unsigned char *end = at + size;
    if (flags & SOME) {
        plait_status status = get_selection(&at, end, part->n, &m, row);
        if (status < 0) return status == PLAIT_ENOMEM ? no_memory(chain, err) : malformed(chain, "rows", err);
    }
    if (keyed) {
        if ((flags & SOME) && !(flags & TOKEN)) return malformed(chain, "rows", err);
        if (flags & TOKEN) PLI_TRY(get_token(chain, &at, end, part->n, d, err));
        else PLI_TRY(get_keys(chain, &at, end, part->n, &d->keys, err));
        if (d->missing) return PLAIT_OK;
        if (flags & WHOLE) learn(chain, part->n, d->keys);
    }
    d->n = part->n;
    if (part->way == PLAIT_PULLED) return at == end && m == part->n ? PLAIT_OK : malformed(chain, "keys", err);
    PLI_TRY(get_values(chain, part, codes_values(chain, part, (flags & PLAIN) != 0), m * part->cols, at, end - at,
                       &d->values, err));
    return flags & SOME ? spread(chain, part, *row, m, d, err) : PLAIT_OK;
}

plait_status pli_chain_decode(pli_chain *chain, const plait_part *part, bool keyed, const void *bytes, int64_t size,
                              pli_decoded *decoded_out, plait_error *err) {
    int64_t     *row = NULL;
    void        *unpacked = NULL;
    pli_decoded  d = { 0 };
    plait_status status = decode(chain, part, keyed, bytes, size, &row, &unpacked, &d, err);
    pli_free(row);
    pli_free(unpacked);
    if (status < 0) pli_decoded_free(&d);
    *decoded_out = d;
    return status;
}

plait_status pli_chain_seen(pli_chain *chain, const plait_part *part, const void *values, plait_error *err) {
    for (int32_t i = 0; i < chain->list->n; i++) {
        const plait_filter *filter = filter_of(chain, i);
        plait_status status = filter->rows.seen == NULL ? PLAIT_OK : filter->rows.seen(chain->state[i], part, values);
        if (status < 0) return filter_failed(chain, i, status, err);
    }
    return PLAIT_OK;
}
