/* The meaning of a cluster's events at a time. Every drawn value is a function of the seed, the event, and the thing
 * it is drawn for, so the order of questions does not matter. No two things share a stream: the stream's number has
 * the event's number above, and below it a rank (for its clocks), BURSTS, or MESSAGES and a rank. */
#include <math.h>

#include "base/base.h"
#include "comm/cluster.h"

enum { BURSTS = 1 << 30 };
#define MESSAGES (UINT32_C(1) << 31)

static uint64_t stream_of(int64_t event, uint32_t whose) { return (uint64_t)event << 32 | whose; }

static bool is_on(const pli_mishap *m, double now) { return now >= m->from && now < m->until; }

static bool is_of(const pli_mishap *m, int32_t rank) { return m->last < 0 || (rank >= m->first && rank <= m->last); }

/* --- computing ------------------------------------------------------------------------------------------- */

/* The host that the k-th burst of an event hits. */
static int32_t burst_host(const pli_cluster *c, uint64_t seed, int64_t event, int64_t k) {
    pli_random random = pli_random_at(seed, PLI_RANDOM_CLUSTER, stream_of(event, BURSTS), (uint64_t)k);
    return (int32_t)pli_random_below(&random, (uint64_t)c->hosts);
}

/* The factor by which things are slowed at now under one event; it holds at least until *next_out. */
static double slowness(const pli_cluster *c, uint64_t seed, int64_t event, int32_t rank, double now, double *next_out) {
    const pli_mishap *m = &c->mishap[event];
    *next_out = INFINITY;
    if (m->kind != PLI_SLOW && m->kind != PLI_BURST && m->kind != PLI_FREEZE) return 1;
    if (!is_of(m, rank) || now >= m->until) return 1;
    if (now < m->from) {
        *next_out = m->from;
        return 1;
    }
    *next_out = m->until;
    if (m->kind == PLI_FREEZE) return INFINITY;
    if (m->kind == PLI_SLOW) return m->factor;
    double k = floor((now - m->from) / m->every), end = m->from + (k + 1) * m->every, begin = end - m->length;
    if (!(end > now)) end = now + m->every; /* only rounding can get here */
    bool inside = now >= begin;
    double next = inside ? end : begin;
    *next_out = next < m->until ? next : m->until;
    if (!inside || (m->drawn && burst_host(c, seed, event, (int64_t)k) != pli_cluster_host(c, rank))) return 1;
    return m->factor;
}

static double jitter(const pli_cluster *c, uint64_t seed, int32_t rank, int64_t clock, double now) {
    double factor = 1;
    for (int64_t i = 0; i < c->mishaps; i++) {
        const pli_mishap *m = &c->mishap[i];
        if (m->kind != PLI_JITTER || !is_of(m, rank) || !is_on(m, now)) continue;
        pli_random random = pli_random_at(seed, PLI_RANDOM_CLUSTER, stream_of(i, (uint32_t)rank), (uint64_t)clock);
        factor *= exp(m->sigma * pli_random_normal(&random));
    }
    return factor;
}

double pli_script_finish(const pli_cluster *c, uint64_t seed, int32_t rank, int64_t clock, double now, double seconds) {
    double left = seconds * jitter(c, seed, rank, clock, now) / pli_cluster_group(c, pli_cluster_host(c, rank))->speed;
    while (left > 0) {
        double factor = 1, until = INFINITY, next;
        for (int64_t i = 0; i < c->mishaps; i++) {
            double slow = slowness(c, seed, i, rank, now, &next);
            if (isinf(slow) && isinf(next)) return INFINITY; /* frozen for good, whatever other events come and go */
            factor *= slow;
            if (next < until) until = next;
        }
        double ends = isinf(factor) ? INFINITY : now + left * factor;
        if (ends <= until) return ends;
        if (!isinf(factor)) left -= (until - now) / factor;
        now = until;
    }
    return now;
}

double pli_script_death(const pli_cluster *c, int32_t rank) {
    double at = INFINITY;
    for (int64_t i = 0; i < c->mishaps; i++) {
        const pli_mishap *m = &c->mishap[i];
        if (m->kind == PLI_KILL && is_of(m, rank) && m->from < at) at = m->from;
    }
    return at;
}

double pli_script_revival(const pli_cluster *c, int32_t rank) {
    double at = INFINITY;
    for (int64_t i = 0; i < c->mishaps; i++) {
        const pli_mishap *m = &c->mishap[i];
        if (m->kind == PLI_REVIVE && is_of(m, rank) && m->from < at) at = m->from;
    }
    return at;
}

double pli_script_next_revival(const pli_cluster *c, double now) {
    double next = INFINITY;
    for (int64_t i = 0; i < c->mishaps; i++) {
        const pli_mishap *m = &c->mishap[i];
        if (m->kind == PLI_REVIVE && m->from > now && m->from < next) next = m->from;
    }
    return next;
}

double pli_script_thaw(const pli_cluster *c, int32_t rank, double now) {
    for (int64_t i = 0; i < c->mishaps; i++) {
        const pli_mishap *m = &c->mishap[i];
        if (m->kind != PLI_FREEZE || !is_of(m, rank) || !is_on(m, now)) continue;
        now = m->until;
        i = -1; /* an event earlier in the list may still hold it */
    }
    return now;
}

double pli_script_freeze(const pli_cluster *c, int32_t rank, double now) {
    double at = INFINITY;
    for (int64_t i = 0; i < c->mishaps; i++) {
        const pli_mishap *m = &c->mishap[i];
        if (m->kind != PLI_FREEZE || !is_of(m, rank) || now >= m->until) continue;
        double from = m->from > now ? m->from : now;
        if (from < at) at = from;
    }
    return at;
}

/* --- messages -------------------------------------------------------------------------------------------- */

static bool touches(const pli_cluster *c, const pli_mishap *m, int32_t rank) {
    int32_t rack = pli_cluster_group(c, pli_cluster_host(c, rank))->rack;
    if (m->rack >= 0) return rack == m->rack;
    if (m->site >= 0) return rack >= 0 && c->rack[rack].site == m->site;
    return is_of(m, rank);
}

static uint16_t side_of(const pli_mishap *m, int32_t rank) { return rank < m->sides.n ? m->sides.side[rank] : 0; }

/* Does the event's link lie between two ranks? A message uses the link of a rack or site only if it leaves it. A
 * partition parts ranks wherever they are. */
static bool is_between(const pli_cluster *c, const pli_mishap *m, int32_t a, int32_t b) {
    if (m->kind == PLI_PARTITION) return side_of(m, a) != side_of(m, b);
    if (pli_cluster_host(c, a) == pli_cluster_host(c, b)) return false;
    bool of_a = touches(c, m, a), of_b = touches(c, m, b);
    return m->rack >= 0 || m->site >= 0 ? of_a != of_b : of_a || of_b;
}

static bool is_cut(const pli_mishap *m) {
    return m->kind == PLI_PARTITION || (m->kind == PLI_LINK && m->factor == 0);
}

double pli_script_silent(const pli_cluster *c, int32_t observer, int32_t rank, double now) {
    double since = INFINITY;
    for (int64_t i = 0; i < c->mishaps; i++) {
        const pli_mishap *m = &c->mishap[i];
        bool              frozen = m->kind == PLI_FREEZE && is_of(m, rank);
        bool              cut = is_cut(m) && is_between(c, m, observer, rank);
        if ((frozen || cut) && is_on(m, now) && m->from < since) since = m->from;
    }
    return since;
}

double pli_script_cut(const pli_cluster *c, int32_t observer, int32_t rank, double now) {
    double since = INFINITY;
    for (int64_t i = 0; i < c->mishaps; i++) {
        const pli_mishap *m = &c->mishap[i];
        if (is_cut(m) && is_on(m, now) && m->from < since && is_between(c, m, observer, rank)) since = m->from;
    }
    return since;
}

double pli_script_longest_cut(const pli_cluster *c) {
    double longest = 0;
    for (int64_t i = 0; i < c->mishaps; i++)
        if (is_cut(&c->mishap[i]) && c->mishap[i].until - c->mishap[i].from > longest)
            longest = c->mishap[i].until - c->mishap[i].from;
    return longest;
}

double pli_script_next_cut(const pli_cluster *c, double patience, double now) {
    double next = INFINITY;
    for (int64_t i = 0; i < c->mishaps; i++) {
        const pli_mishap *m = &c->mishap[i];
        const double      at[] = { m->from, m->from + patience, m->until };
        for (int k = 0; is_cut(m) && k < 3; k++)
            if (at[k] > now && at[k] < next) next = at[k];
    }
    return next;
}

pli_fate pli_script_fate(const pli_cluster *c, uint64_t seed, int32_t src, int32_t dst, uint64_t n, double now) {
    pli_fate fate = { .copies = 1 };
    for (int64_t i = 0; i < c->mishaps; i++) {
        const pli_mishap *m = &c->mishap[i];
        if (!is_on(m, now)) continue;
        if (is_cut(m) && is_between(c, m, src, dst)) {
            if (isinf(m->until)) return (pli_fate){ 0 };
            double hold = m->until - now;
            for (int copy = 0; copy < 2; copy++)
                if (fate.delay[copy] < hold) fate.delay[copy] = hold;
        }
        if (m->kind != PLI_MESSAGES || !(is_of(m, src) || is_of(m, dst))) continue;
        pli_random random = pli_random_at(seed, PLI_RANDOM_CLUSTER, stream_of(i, MESSAGES | (uint32_t)src), n);
        if (pli_random_f64(&random) < m->drop_p) return (pli_fate){ 0 };
        if (pli_random_f64(&random) < m->double_p) fate.copies = 2;
        for (int copy = 0; copy < 2; copy++)
            if (pli_random_f64(&random) < m->delay_p) fate.delay[copy] += m->delay;
    }
    return fate;
}

/* --- links ----------------------------------------------------------------------------------------------- */

double pli_script_width(const pli_cluster *c, int32_t host, int32_t rack, int32_t site, double now) {
    double width = 1;
    for (int64_t i = 0; i < c->mishaps; i++) {
        const pli_mishap *m = &c->mishap[i];
        if (m->kind != PLI_LINK || m->factor == 0 || !is_on(m, now)) continue;
        bool hit = m->rack >= 0 ? m->rack == rack : m->site >= 0 ? m->site == site : false;
        if (host >= 0 && m->rack < 0 && m->site < 0)
            hit = m->last < 0 || (host >= pli_cluster_host(c, m->first) && host <= pli_cluster_host(c, m->last));
        if (hit) width *= m->factor;
    }
    return width;
}

double pli_script_next_width(const pli_cluster *c, double now) {
    double next = INFINITY;
    for (int64_t i = 0; i < c->mishaps; i++) {
        const pli_mishap *m = &c->mishap[i];
        if (m->kind != PLI_LINK || m->factor == 0) continue;
        if (m->from > now && m->from < next) next = m->from;
        if (m->until > now && m->until < next) next = m->until;
    }
    return next;
}
