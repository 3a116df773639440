/* See estimates.h. To filters a table is one column, as in sums (coded.h): a value is a row of it. */
#include "table/copies/estimates.h"

#include <math.h>
#include <string.h>

#include "table/state/values.h"

#define ALL_THERE 1e-9 /* less than this is left of the square: the smallest numbers that a filter knows come next */
enum { PROBE = 1024, PROBES = 64 }; /* values, and how many times they are sent */

static plait_status no_memory(const pli_spec *spec, plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory for filters between neighbours", spec->name);
}

/* --- what a filter lets through ----------------------------------------------------------------------------------- */

static plait_status open_chain(const pli_estimates *e, int64_t n, pli_chain *chain, plait_error *err) {
    const pli_spec          *spec = &e->spec;
    const plait_filter_table table = { .name = spec->name, .type = spec->type, .rows = n, .cols = 1,
                                       .rule = spec->ruled ? spec->rule.ops->name : NULL,
                                       .workers = e->place.workers, .servers = e->place.workers, .count = n };
    PLI_TRY(pli_chain_open(chain, &e->list, &table, err));
    chain->feedback = false; /* the estimate does that */
    return PLAIT_OK;
}

static plait_part part_of(const pli_estimates *e, int32_t worker, int64_t clock, int64_t n) {
    return (plait_part){ .way = PLAIT_PUSHED, .table = e->spec.id, .worker = worker, .seed = e->place.seed,
                         .clock = clock, .examples = 1, .type = e->spec.type, .n = n, .cols = 1 };
}

/* Normally distributed numbers; heavy: their cubes, of which few are much larger than the rest, as gradients are. */
static void draw(plait_type type, bool heavy, void *values) {
    pli_random random = pli_random_at(1, PLI_RANDOM_ROUND, heavy, 0);
    for (int64_t i = 0; i < PROBE; i++) {
        const double x = pli_random_normal(&random);
        pli_value_put(type, values, i, heavy ? x * x * x : x);
    }
}

static double square_of(plait_type type, const void *values) {
    double sum = 0;
    for (int64_t i = 0; i < PROBE; i++) sum += pli_value_at(type, values, i) * pli_value_at(type, values, i);
    return sum;
}

static plait_status pass(pli_chain *put, pli_chain *take, const plait_part *part, const void *values,
                         pli_decoded *decoded, plait_error *err) {
    pli_bytes    bytes = { 0 };
    int64_t      n;
    plait_status status = pli_chain_encode(put, part, values, false, &bytes, &n, err);
    if (status >= 0) status = pli_chain_decode(take, part, false, bytes.data, bytes.n, decoded, err);
    pli_bytes_free(&bytes);
    return status;
}

/* Sends what is missing, again and again. What a filter leaves of a vector may be what it is worst at: so *let_out is
 * the least of what the first message lets through, and of what messages let through on average. */
static plait_status measure(const pli_estimates *e, pli_chain *put, pli_chain *take, bool heavy, double *let_out,
                            plait_error *err) {
    double missing[PROBE]; /* or floats */
    draw(e->spec.type, heavy, missing);
    const double whole = square_of(e->spec.type, missing);
    for (int64_t probe = 0; probe < PROBES; probe++) {
        const plait_part part = part_of(e, 0, probe, PROBE);
        pli_decoded      decoded = { 0 };
        PLI_TRY(pass(put, take, &part, missing, &decoded, err));
        pli_values_add_scaled(part.type, PROBE, -1, decoded.values, missing);
        pli_decoded_free(&decoded);
        const double left = square_of(part.type, missing) / whole, let = 1 - pow(left, 1.0 / (double)(probe + 1));
        const bool   last = probe == PROBES - 1 || left < ALL_THERE;
        if ((probe == 0 || last) && !(let >= *let_out)) *let_out = let;
        if (last) break;
    }
    return PLAIT_OK;
}

/* A worker that has sent to each of its n neighbours has moved away from what they know by (1 + f)^n, while a message
 * leaves sqrt(1 - let) of what is missing: a quarter of the f that keeps this below 1, for mirrors also move by steps
 * of their own. In rounds of exp a link is used in each n-th round only. */
static double share_of(const pli_estimates *e, double let) {
    const pli_estimates_place *p = &e->place;
    int32_t                    peer[PLI_NEIGHBOURS_MAX], n = 1;
    if (!e->shared) n = pli_among_ever_to(p->graph, &p->among, p->rank, peer);
    if (p->rounds) return let > 0.99 ? 1 : let * 2 / (n > 4 ? n : 4);
    const double f = (pow(1 - (let < 1 - 1e-12 ? let : 1 - 1e-12), -0.5 / (n > 0 ? n : 1)) - 1) / 4;
    return f < 1 ? 2 * f / (1 + f) : 1;
}

static plait_status find_share(pli_estimates *e, plait_error *err) {
    pli_chain    put = { 0 }, take = { 0 };
    double       let = 1;
    plait_status status = open_chain(e, PROBE, &put, err);
    if (status >= 0) status = open_chain(e, PROBE, &take, err);
    if (status >= 0) status = measure(e, &put, &take, false, &let, err);
    if (status >= 0) status = measure(e, &put, &take, true, &let, err);
    if (status >= 0) e->share = share_of(e, let > 1.0 / PROBE ? let : 1.0 / PROBE);
    pli_chain_close(&put);
    pli_chain_close(&take);
    return status;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static size_t bytes_of(const pli_estimates *e) { return (size_t)(e->n * e->spec.width); }

/* puts: a neighbour to whom this worker speaks. If the filters lose nothing, there is nothing to keep of these. */
static plait_status open_estimate(const pli_estimates *e, int32_t peer, bool puts, pli_estimate *of, plait_error *err) {
    of->peer = peer;
    if (!puts || !e->exact) of->values = pli_aligned(bytes_of(e));
    if (of->values == NULL && !(puts && e->exact)) return no_memory(&e->spec, err);
    if (puts) PLI_TRY(open_chain(e, e->n, &of->put, err));
    return puts && e->exact ? PLAIT_OK : open_chain(e, e->n, &of->take, err);
}

static plait_status open_all(pli_estimates *e, plait_error *err) {
    const pli_estimates_place *p = &e->place;
    int32_t                    peer[PLI_NEIGHBOURS_MAX], n;
    n = pli_among_ever_to(p->graph, &p->among, p->rank, peer);
    if (e->shared && n > 1) n = 1;
    for (int32_t i = 0; i < n; i++) PLI_TRY(open_estimate(e, peer[i], true, &e->to[e->n_to++], err));
    n = pli_among_ever_from(p->graph, &p->among, p->rank, peer);
    for (int32_t i = 0; i < n; i++) PLI_TRY(open_estimate(e, peer[i], false, &e->from[e->n_from++], err));
    if (e->exact) return PLAIT_OK;
    e->difference = pli_aligned(bytes_of(e));
    return e->difference != NULL ? PLAIT_OK : no_memory(&e->spec, err);
}

plait_status pli_estimates_open(const pli_spec *spec, const pli_estimates_place *place, const void *values,
                                pli_estimates **estimates_out, plait_error *err) {
    pli_estimates *e = pli_calloc(1, sizeof *e);
    if (e == NULL) return no_memory(spec, err);
    e->spec = *spec;
    e->place = *place;
    if (place->among.n == 0) e->place.among.n = place->workers;
    e->n = spec->rows * spec->cols;
    e->shared = place->rounds && place->graph != PLI_EXP;
    e->share = 1;
    plait_status status = pli_filters_read(spec->filter, &place->scope, &e->list, err);
    e->exact = status >= 0 && !pli_filters_have(&e->list, PLAIT_ROUNDED) &&
               !pli_filters_have(&e->list, PLAIT_KEPT_BACK) && !pli_filters_have(&e->list, PLAIT_SKIPPED);
    if (status >= 0 && !e->exact) status = find_share(e, err);
    if (status >= 0) status = open_all(e, err);
    if (status < 0) {
        pli_estimates_close(&e);
        return status;
    }
    pli_estimates_reset(e, values);
    *estimates_out = e;
    return PLAIT_OK;
}

static void close_all(pli_estimate *of, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        pli_free(of[i].values);
        pli_chain_close(&of[i].put);
        pli_chain_close(&of[i].take);
    }
}

void pli_estimates_close(pli_estimates **estimates) {
    pli_estimates *e = *estimates;
    *estimates = NULL;
    if (e == NULL) return;
    close_all(e->to, e->n_to);
    close_all(e->from, e->n_from);
    pli_free(e->difference);
    pli_free(e);
}

static void set(const pli_estimates *e, pli_estimate *of, const void *values) {
    if (of->values == NULL) return;
    if (values != NULL) memcpy(of->values, values, bytes_of(e));
    else memset(of->values, 0, bytes_of(e));
}

void pli_estimates_reset(pli_estimates *e, const void *values) {
    for (int32_t i = 0; i < e->n_to; i++) set(e, &e->to[i], values);
    for (int32_t i = 0; i < e->n_from; i++) set(e, &e->from[i], values);
}

/* --- messages ----------------------------------------------------------------------------------------------------- */

static pli_estimate *find(pli_estimate *of, int32_t n, int32_t peer) {
    for (int32_t i = 0; i < n; i++)
        if (of[i].peer == peer) return &of[i];
    return NULL;
}

static pli_estimate *to_whom(pli_estimates *e, int32_t to) { return e->shared ? e->to : find(e->to, e->n_to, to); }

/* Adds what the message carries to an estimate; if the filters lose nothing, it is the mirror. */
static plait_status improve(const pli_estimates *e, pli_estimate *of, const plait_part *part, const void *bytes,
                            int64_t size, plait_error *err) {
    pli_decoded decoded = { 0 };
    PLI_TRY(pli_chain_decode(&of->take, part, false, bytes, size, &decoded, err));
    if (e->exact) memcpy(of->values, decoded.values, bytes_of(e));
    else pli_values_add_scaled(e->spec.type, e->n, 1, decoded.values, of->values);
    pli_decoded_free(&decoded);
    return PLAIT_OK;
}

plait_status pli_estimates_put(pli_estimates *e, int32_t to, int64_t clock, const void *mirror, pli_bytes *out,
                               plait_error *err) {
    pli_estimate    *of = to_whom(e, to);
    const plait_part part = part_of(e, e->place.rank, clock, e->n);
    const int64_t    before = out->n;
    const void      *values = mirror;
    int64_t          n;
    if (!e->exact) {
        memcpy(e->difference, mirror, bytes_of(e));
        pli_values_add_scaled(e->spec.type, e->n, -1, of->values, e->difference);
        values = e->difference;
    }
    PLI_TRY(pli_chain_encode(&of->put, &part, values, false, out, &n, err));
    return e->exact ? PLAIT_OK : improve(e, of, &part, out->data + before, out->n - before, err);
}

plait_status pli_estimates_take(pli_estimates *e, int32_t from, int64_t clock, const void *bytes, int64_t size,
                                const void **known_out, plait_error *err) {
    pli_estimate    *of = find(e->from, e->n_from, from);
    const plait_part part = part_of(e, from, clock, e->n);
    if (of == NULL)
        return pli_fail(err, PLAIT_EFORMAT, "table %s: rank %d, which is no neighbour, sent a mirror", e->spec.name,
                        from);
    PLI_TRY(improve(e, of, &part, bytes, size, err));
    *known_out = of->values;
    return PLAIT_OK;
}

const void *pli_estimates_of(const pli_estimates *e, int32_t from) {
    const pli_estimate *of = find(((pli_estimates *)e)->from, e->n_from, from);
    return of != NULL ? of->values : NULL;
}

const void *pli_estimates_own(const pli_estimates *e, int32_t to) {
    const pli_estimate *of = to_whom((pli_estimates *)e, to);
    return of != NULL ? of->values : NULL;
}
