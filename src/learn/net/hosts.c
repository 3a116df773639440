/* The hosts of a net's stages, as a placement counts them: of a simulated cluster, speeds, links and costs are those of
 * its file; elsewhere hosts are equal, on one switch (plait/place.h).
 *
 * Stage k of R replicas lies on the ranks k R .. k R + R - 1. One cut is made for all replicas, so the slowest of these
 * ranks counts, and the slowest link between two stages. */
#include "comm/cluster.h"
#include "learn/net/stages.h"

static void take_link(const pli_cluster *c, const pli_stage_hosts *h, int32_t from, int32_t to) {
    const int64_t at = (int64_t)from * h->stages + to;
    for (int32_t r = 0; r < h->replicas; r++) {
        double latency, bandwidth;
        pli_cluster_between(c, from * h->replicas + r, to * h->replicas + r, &latency, &bandwidth);
        if (r == 0 || latency > h->latency[at]) h->latency[at] = latency;
        if (r == 0 || bandwidth < h->bandwidth[at]) h->bandwidth[at] = bandwidth;
    }
}

static void take_speed(const pli_cluster *c, const pli_stage_hosts *h, int32_t stage) {
    for (int32_t r = 0; r < h->replicas; r++) {
        const double speed = pli_cluster_speed(c, stage * h->replicas + r);
        if (r == 0 || speed < h->speed[stage]) h->speed[stage] = speed;
    }
}

plait_status pli_stage_hosts_make(const pli_run *run, int32_t stages, pli_stage_hosts *h) {
    const pli_cluster *c = pli_comm_cluster(run->comm);
    const size_t       n = (size_t)stages;
    *h = (pli_stage_hosts){ .stages = stages, .replicas = plait_comm_workers(run->comm) / stages, .cluster = c };
    if (c == NULL) return PLAIT_OK;
    h->speed = pli_array(n, sizeof *h->speed);
    h->latency = pli_array(n * n, sizeof *h->latency);
    h->bandwidth = pli_array(n * n, sizeof *h->bandwidth);
    if (h->speed == NULL || h->latency == NULL || h->bandwidth == NULL) {
        pli_stage_hosts_free(h);
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the links of %d stages", stages);
    }
    for (int32_t k = 0; k < stages; k++) {
        take_speed(c, h, k);
        for (int32_t to = 0; to < stages; to++) take_link(c, h, k, to);
    }
    return PLAIT_OK;
}

void pli_stage_hosts_free(pli_stage_hosts *h) {
    pli_free(h->speed);
    pli_free(h->latency);
    pli_free(h->bandwidth);
    *h = (pli_stage_hosts){ .stages = 0 };
}

plait_status pli_stage_hosts_speeds(pli_stage_hosts *h) {
    if (h->speed != NULL) return PLAIT_OK;
    h->speed = pli_array((size_t)h->stages, sizeof *h->speed);
    for (int32_t k = 0; h->speed != NULL && k < h->stages; k++) h->speed[k] = 1;
    return h->speed != NULL ? PLAIT_OK : PLAIT_ENOMEM;
}

void pli_stage_hosts_fill(const pli_stage_hosts *h, plait_place_opts *o) {
    if (h->speed != NULL) o->speed = h->speed;
    if (h->cluster == NULL) return;
    const pli_cost *cost = &h->cluster->cost;
    o->latency_s = h->latency;
    o->bandwidth = h->bandwidth;
    o->flop_ns = cost->work_ns[PLI_WORK_FLOPS];
    o->tap_ns = cost->work_ns[PLI_WORK_TAPS];
    o->step_ns = cost->work_ns[PLI_WORK_STEPS];
    o->moved_ns = cost->work_ns[PLI_WORK_MOVED];
    o->node_ns = cost->work_ns[PLI_WORK_NODES];
    o->message_ns = cost->message_ns;
    o->byte_ns = cost->byte_ns;
}

bool pli_stage_hosts_alike(const pli_stage_hosts *h) {
    for (int32_t k = 0; h->cluster != NULL && k < h->stages; k++) {
        if (h->speed[k] < h->speed[0] || h->speed[k] > h->speed[0]) return false;
        for (int32_t to = 0; to < h->stages; to++) {
            const int64_t at = (int64_t)k * h->stages + to;
            if (k != to && (h->latency[at] != h->latency[1] || h->bandwidth[at] != h->bandwidth[1])) return false;
        }
    }
    return true;
}
