/* Placements to begin with: all on one rank; a chain of units cut into runs; HEFT. */
#include <math.h>
#include <string.h>

#include "graph/place/place.h"

void pli_start_one(const pli_placing *l, int32_t rank, int32_t *part) {
    for (int32_t u = 0; u < l->units; u++) {
        part[u] = rank;
        for (int32_t r = 0; r < l->parts && !pli_place_allows(l, u, part[u]); r++) part[u] = r;
    }
}

/* --- a chain ------------------------------------------------------------------------------------------------------ */

/* Bytes that cross the place before each unit, if the units are cut there. */
static void count_crossing(const pli_placing *l, double *cross) {
    for (int32_t u = 0; u <= l->units; u++) cross[u] = 0;
    for (int32_t k = 0; k < l->nodes; k++)
        for (int32_t v = l->out[k]; v < l->out[k] + l->outs[k]; v++) {
            int32_t low = l->unit[k], high = low;
            for (int32_t i = l->first[v]; i < l->first[v + 1]; i++) {
                const int32_t u = l->unit[l->reader[i]];
                if (u < low) low = u;
                if (u > high) high = u;
            }
            if (low == high) continue;
            cross[low + 1] += l->bytes[v];
            cross[high + 1] -= l->bytes[v];
        }
    for (int32_t u = 1; u <= l->units; u++) cross[u] += cross[u - 1];
}

/* Seconds of units [from, to) on a rank; INFINITY: they do not fit, or may not be there. */
static double stage_time(const pli_placing *l, const double *cross, int32_t rank, int32_t before, int32_t from,
                         int32_t to, double ns, double held) {
    const plait_place_opts *o = l->opts;
    if (o->memory_bytes != NULL && held > (double)o->memory_bytes[rank % o->ranks]) return INFINITY;
    const bool   own = before % o->ranks == rank % o->ranks;
    const double comes = from > 0 && from < to && !own ? cross[from] / pli_place_bandwidth(o, before, rank) : 0;
    return ns * 1e-9 / pli_place_speed(o, rank) + comes;
}

bool pli_start_chain(pli_placing *l, const int32_t *order, int32_t stages, int32_t *part) {
    const size_t n = (size_t)l->units + 1;
    double      *best = pli_array(n * (size_t)stages, sizeof *best), *cross = pli_array(n + 1, sizeof *cross);
    int32_t     *cut = pli_array(n * (size_t)stages, sizeof *cut);
    const bool   room = best != NULL && cross != NULL && cut != NULL;
    if (room) count_crossing(l, cross);
    for (int32_t s = 0; room && s < stages; s++)
        for (int32_t to = 0; to <= l->units; to++) {
            const size_t at = (size_t)s * n + (size_t)to;
            double       ns = 0, held = 0;
            best[at] = INFINITY;
            cut[at] = to;
            for (int32_t from = to; from >= 0; from--) {
                if (from < to && !pli_place_allows(l, from, order[s])) break;
                if (from < to) ns += l->load_ns[from];
                if (from < to) held += l->held[from];
                const double earlier = s > 0 ? best[at - n - (size_t)(to - from)] : from == 0 ? 0 : INFINITY;
                const double own = stage_time(l, cross, order[s], s > 0 ? order[s - 1] : order[s], from, to, ns, held);
                const double longest = earlier > own ? earlier : own;
                if (longest >= best[at]) continue;
                best[at] = longest;
                cut[at] = from;
            }
        }
    bool fits = room && best[n * (size_t)stages - 1] < INFINITY;
    for (int32_t s = stages - 1, to = l->units; fits && s >= 0; s--) {
        const int32_t from = cut[(size_t)s * n + (size_t)to];
        for (int32_t u = from; u < to; u++) part[u] = order[s];
        to = from;
    }
    pli_free(best);
    pli_free(cross);
    pli_free(cut);
    if (room && !fits) pli_start_one(l, order[0], part);
    return room;
}

/* --- HEFT --------------------------------------------------------------------------------------------------------- */

/* When the inputs of node k are on a rank, if its makers are placed; ends [nodes]. */
static double inputs_at(const pli_placing *l, const int32_t *maker, const int32_t *input, int32_t n,
                        const int32_t *part, const double *ends, int32_t rank) {
    double at = 0;
    for (int32_t i = 0; i < n; i++) {
        const int32_t from = maker[input[i]], other = part[l->unit[from]];
        double        comes = ends[from];
        if (other % l->opts->ranks != rank % l->opts->ranks)
            comes += l->bytes[input[i]] / pli_place_bandwidth(l->opts, other, rank) +
                     pli_place_latency(l->opts, other, rank) + 2e-9 * l->opts->message_ns;
        if (comes > at) at = comes;
    }
    return at;
}

typedef struct heft {
    int32_t *maker, *input, *first; /* maker of a value; inputs of a node: input[first[k]] .. */
    double  *ends, *free_at;
    double  *held;
} heft;

static void list_inputs(const pli_placing *l, heft *h) {
    int32_t at = 0;
    for (int32_t k = 0; k < l->nodes; k++) {
        h->first[k] = at;
        at += l->inputs[k];
        for (int32_t v = l->out[k]; v < l->out[k] + l->outs[k]; v++) h->maker[v] = k;
    }
    h->first[l->nodes] = at;
    for (int32_t k = 0; k < l->nodes; k++)
        for (int32_t v = l->out[k]; v < l->out[k] + l->outs[k]; v++)
            for (int32_t i = l->first[v]; i < l->first[v + 1]; i++) h->input[h->first[l->reader[i]]++] = v;
    for (int32_t k = l->nodes; k > 0; k--) h->first[k] = h->first[k - 1];
    h->first[0] = 0;
}

/* Gives the node's unit the rank where the node ends first, among those that have room for its variables. */
static void give_rank(const pli_placing *l, heft *h, int32_t k, int32_t *part) {
    const plait_place_opts *o = l->opts;
    const int32_t           u = l->unit[k], fixed = part[u];
    double                  least = INFINITY;
    for (int32_t round = 0; least == INFINITY; round++)
        for (int32_t r = 0; r < l->parts; r++) {
            if (fixed >= 0 ? r != fixed : !pli_place_allows(l, u, r)) continue;
            const double holds = h->held[r] + l->held[u];
            const bool   full = o->memory_bytes != NULL && holds > (double)o->memory_bytes[r % o->ranks];
            if (fixed < 0 && round == 0 && full) continue;
            double at = inputs_at(l, h->maker, h->input + h->first[k], l->inputs[k], part, h->ends, r);
            if (h->free_at[r % o->ranks] > at) at = h->free_at[r % o->ranks];
            at += l->ns[k] * 1e-9 / pli_place_speed(o, r);
            if (at >= least) continue;
            least = at;
            part[u] = r;
        }
    if (fixed < 0) h->held[part[u]] += l->held[u];
    h->ends[k] = h->free_at[part[u] % o->ranks] = least;
}

/* Nodes are taken in the plan's order, which has makers first, not by upward rank: units decide for many nodes at once,
 * and backward nodes follow their forward ones. */
bool pli_start_heft(pli_placing *l, int32_t *part) {
    heft h = { .maker = pli_array((size_t)l->values + 1, sizeof *h.maker),
               .input = pli_array((size_t)l->first[l->values] + 1, sizeof *h.input),
               .first = pli_array((size_t)l->nodes + 1, sizeof *h.first),
               .ends = pli_calloc((size_t)l->nodes + 1, sizeof *h.ends),
               .free_at = pli_calloc((size_t)l->opts->ranks, sizeof *h.free_at),
               .held = pli_calloc((size_t)l->parts, sizeof *h.held) };
    bool room =
        h.maker != NULL && h.input != NULL && h.first != NULL && h.ends != NULL && h.free_at != NULL && h.held != NULL;
    pli_start_one(l, 0, part);
    for (int32_t k = 0; room && k < l->nodes; k++) part[l->unit[k]] = -1;
    if (room) list_inputs(l, &h);
    for (int32_t k = 0; room && k < l->nodes; k++) give_rank(l, &h, k, part);
    pli_free(h.maker);
    pli_free(h.input);
    pli_free(h.first);
    pli_free(h.ends);
    pli_free(h.free_at);
    pli_free(h.held);
    return room;
}
