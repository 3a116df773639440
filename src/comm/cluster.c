/* A simulated cluster: the default cluster, the check that a cluster holds a job's ranks, and where ranks and hosts
 * are. */
#include "comm/cluster.h"

#include <math.h>
#include <string.h>

#include "base/base.h"

/* Figures of one core of the machine that Plait was written on; `plait calibrate` measures them anew. */
const pli_cost pli_cluster_usual_cost = {
    .work_ns = { [PLI_WORK_PARSED] = 20, [PLI_WORK_ENTRIES] = 3, [PLI_WORK_KEYS] = 20, [PLI_WORK_VALUES] = 2,
                 [PLI_WORK_SUMS] = 0.5, [PLI_WORK_FLOPS] = 0.01, [PLI_WORK_TAPS] = 0.03, [PLI_WORK_STEPS] = 0.5,
                 [PLI_WORK_MOVED] = 0.02, [PLI_WORK_NODES] = 100,
                 [PLI_WORK_CLOCKS] = 0 },
    .message_ns = 2000,
    .byte_ns = 0.1,
    .local_ns = 1000,
    .notice = 0.05,
    .resend_after = 0.02,
};

const pli_host_group pli_cluster_usual_host = {
    .count = 1, .cores = 1, .speed = 1, .memory = INFINITY, .rack = -1,
    .link = { .bandwidth = 1.25e9, .latency = 10e-6 }
};

plait_status pli_cluster_default(int32_t ranks, pli_cluster *cluster_out, plait_error *err) {
    *cluster_out = (pli_cluster){ .cost = pli_cluster_usual_cost };
    if (!pli_grow((void **)&cluster_out->group, &cluster_out->group_capacity, 1, sizeof *cluster_out->group))
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a cluster");
    cluster_out->group[0] = pli_cluster_usual_host;
    cluster_out->group[0].count = ranks;
    cluster_out->groups = 1;
    cluster_out->hosts = ranks;
    return PLAIT_OK;
}

/* Is each rank that the event revives dead by then, and does it neither die nor return again? */
static plait_status check_revival(const pli_cluster *c, const pli_mishap *m, int32_t ranks, plait_error *err) {
    const int32_t last = m->last < 0 ? ranks - 1 : m->last;
    for (int32_t r = m->first; r <= last; r++) {
        const char *why = pli_script_death(c, r) > m->from ? "lives at" : NULL;
        for (int64_t i = 0; why == NULL && i < c->mishaps; i++) {
            const pli_mishap *other = &c->mishap[i];
            const bool        names = other->last < 0 || (r >= other->first && r <= other->last);
            if (names && other->kind == PLI_KILL && other->from > m->from) why = "dies again after";
            if (names && other->kind == PLI_REVIVE && other != m) why = "is revived twice, once at";
        }
        if (why != NULL)
            return pli_fail(err, PLAIT_EINVAL, "%.100s:%d: revive: rank %d %s %.9g s", c->path, m->line, r, why,
                            m->from);
    }
    return PLAIT_OK;
}

plait_status pli_cluster_check(const pli_cluster *c, int32_t ranks, plait_error *err) {
    const char *path = c->path != NULL ? c->path : "the cluster";
    int64_t     cores = 0;
    for (int64_t g = 0; g < c->groups; g++) cores += (int64_t)c->group[g].count * c->group[g].cores;
    if (cores < ranks)
        return pli_fail(err, PLAIT_EINVAL,
                        "%s: its %lld hosts have %lld cores, but there are %d ranks (workers and servers): add hosts "
                        "or cores",
                        path, (long long)c->hosts, (long long)cores, ranks);
    for (int64_t i = 0; i < c->mishaps; i++) {
        const pli_mishap *m = &c->mishap[i];
        const int32_t     last = m->kind == PLI_PARTITION ? m->sides.n - 1 : m->last;
        if (last >= ranks)
            return pli_fail(err, PLAIT_EINVAL, "%s:%d: there is no rank %d, the job has %d (workers, then servers)",
                            path, m->line, last, ranks);
        if (m->kind == PLI_REVIVE) PLI_TRY(check_revival(c, m, ranks, err));
    }
    return PLAIT_OK;
}

void pli_cluster_free(pli_cluster *c) {
    pli_free(c->path);
    pli_free(c->group);
    pli_free(c->rack);
    pli_free(c->site);
    for (int64_t i = 0; i < c->mishaps; i++) pli_free(c->mishap[i].sides.side);
    pli_free(c->mishap);
    *c = (pli_cluster){ 0 };
}

/* --- places ------------------------------------------------------------------------------------------------------- */

int32_t pli_cluster_host(const pli_cluster *c, int32_t rank) {
    int32_t host = 0;
    for (int64_t g = 0; g < c->groups; g++) {
        int64_t holds = (int64_t)c->group[g].count * c->group[g].cores;
        if (rank < holds) return host + rank / c->group[g].cores;
        rank -= (int32_t)holds;
        host += c->group[g].count;
    }
    return host - 1;
}

const pli_host_group *pli_cluster_group(const pli_cluster *c, int32_t host) {
    int64_t g = 0;
    for (; g < c->groups - 1 && host >= c->group[g].count; g++) host -= c->group[g].count;
    return &c->group[g];
}

double pli_cluster_latency(const pli_cluster *c, int32_t from_host, int32_t to_host) {
    const pli_host_group *a = pli_cluster_group(c, from_host), *b = pli_cluster_group(c, to_host);
    if (from_host == to_host) return c->cost.local_ns * 1e-9;
    double latency = a->link.latency + b->link.latency;
    if (a->rack == b->rack) return latency;
    int32_t site_a = a->rack >= 0 ? c->rack[a->rack].site : -1, site_b = b->rack >= 0 ? c->rack[b->rack].site : -1;
    if (a->rack >= 0) latency += c->rack[a->rack].link.latency;
    if (b->rack >= 0) latency += c->rack[b->rack].link.latency;
    if (site_a == site_b) return latency;
    if (site_a >= 0) latency += c->site[site_a].link.latency;
    if (site_b >= 0) latency += c->site[site_b].link.latency;
    return latency;
}

double pli_cluster_bandwidth(const pli_cluster *c, int32_t from, int32_t to) {
    const pli_host_group *a = pli_cluster_group(c, from), *b = pli_cluster_group(c, to);
    double                least = c->cost.byte_ns > 0 ? 1e9 / c->cost.byte_ns : 1e18;
    const int32_t         site_a = a->rack >= 0 ? c->rack[a->rack].site : -1;
    const int32_t         site_b = b->rack >= 0 ? c->rack[b->rack].site : -1;
    const pli_link_spec  *links[] = { from != to ? &a->link : NULL,
                                     from != to ? &b->link : NULL,
                                     a->rack >= 0 && a->rack != b->rack ? &c->rack[a->rack].link : NULL,
                                     b->rack >= 0 && a->rack != b->rack ? &c->rack[b->rack].link : NULL,
                                     site_a >= 0 && site_a != site_b ? &c->site[site_a].link : NULL,
                                     site_b >= 0 && site_a != site_b ? &c->site[site_b].link : NULL };
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        if (links[i] != NULL && links[i]->bandwidth < least) least = links[i]->bandwidth;
    return least;
}

bool pli_cluster_is_lossy(const pli_cluster *c) {
    for (int64_t i = 0; i < c->mishaps; i++)
        if (c->mishap[i].kind == PLI_MESSAGES) return true;
    return false;
}

double pli_cluster_speed(const pli_cluster *c, int32_t rank) {
    return pli_cluster_group(c, pli_cluster_host(c, rank))->speed;
}

double pli_cluster_memory(const pli_cluster *c, int32_t rank) {
    const pli_host_group *g = pli_cluster_group(c, pli_cluster_host(c, rank));
    return g->memory / g->cores;
}

void pli_cluster_between(const pli_cluster *c, int32_t from_rank, int32_t to_rank, double *latency_out,
                         double *bandwidth_out) {
    const int32_t from = pli_cluster_host(c, from_rank), to = pli_cluster_host(c, to_rank);
    *latency_out = pli_cluster_latency(c, from, to);
    *bandwidth_out = pli_cluster_bandwidth(c, from, to);
}
