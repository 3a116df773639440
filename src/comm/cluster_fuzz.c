/* Feeds any bytes as a cluster's file: it is read, or refused with its line; a cluster that was read answers all
 * questions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "comm/cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
    if (!holds) abort();
}

static void ask(const pli_cluster *c) {
    for (int32_t rank = 0; rank < 4; rank++) {
        double now = 0.75 * rank, finish = pli_script_finish(c, 1, rank, rank, now, 1e-3);
        require(finish >= now && pli_script_thaw(c, rank, now) >= now && pli_script_freeze(c, rank, now) >= now);
        require(pli_cluster_host(c, rank) < c->hosts);
        pli_fate fate = pli_script_fate(c, 1, rank, 3 - rank, 7, now);
        require(fate.copies >= 0 && fate.copies <= 2 && fate.delay[0] >= 0);
    }
    plait_error err;
    const plait_status turns = pli_script_check_turns(c, 3, 2, &err);
    require(turns == PLAIT_OK || turns == PLAIT_EINVAL);
    require(pli_script_next_join(c, 2, 1) > 1);
    require((pli_script_cut(c, 0, 3, 1) <= 1) == !isinf(pli_script_cut(c, 0, 3, 1)));
    require(pli_cluster_latency(c, 0, (int32_t)c->hosts - 1) >= 0 && pli_script_next_width(c, 1) > 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pli_cluster  cluster;
    plait_error  err = { 0 };
    plait_status status = pli_cluster_parse("c.yaml", data, size, &cluster, &err);
    if (status < 0) {
        require(status == err.code && strncmp(err.text, "c.yaml:", 7) == 0 && cluster.path == NULL);
        return 0;
    }
    require(cluster.hosts > 0);
    if (pli_cluster_check(&cluster, 4, &err) == PLAIT_OK) ask(&cluster);
    pli_cluster_free(&cluster);
    return 0;
}
