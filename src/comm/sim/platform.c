/* Describes the cluster in SimGrid's own format. It has only bandwidths: latency is counted before (sim.h). */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "comm/sim/sim.h"

/* Adds two links, one for each direction. */
static void add_link(pli_text *xml, const char *name, int64_t number, const pli_link_spec *spec) {
    pli_text_add(xml, "<link id='%s%lld' bandwidth='%.17gBps' latency='0' sharing_policy='SPLITDUPLEX'/>\n", name,
                 (long long)number, spec->bandwidth);
}

/* Adds a zone with the hosts of one rack; -1: with the hosts that are in no rack. */
static void add_rack(const pli_cluster *c, int32_t rack, pli_text *xml) {
    int32_t host = 0;
    pli_text_add(xml, "<zone id='rack%d' routing='Cluster'>\n", rack);
    for (int64_t g = 0; g < c->groups; g++)
        for (int32_t i = 0; i < c->group[g].count; i++, host++) {
            if (c->group[g].rack != rack) continue;
            pli_text_add(xml, "<host id='h%d' speed='1Gf'/>\n", host);
            add_link(xml, "host", host, &c->group[g].link);
            pli_text_add(xml, "<host_link id='h%d' up='host%d_UP' down='host%d_DOWN'/>\n", host, host, host);
        }
    pli_text_add(xml, "<router id='switch%d'/>\n</zone>\n", rack);
}

static void add_hop(const pli_cluster *c, int32_t rack, int32_t site, bool up, pli_text *xml) {
    const char *direction = up ? "UP" : "DOWN";
    if (rack >= 0 && up) pli_text_add(xml, "<link_ctn id='uplink%d' direction='%s'/>", rack, direction);
    if (site >= 0) pli_text_add(xml, "<link_ctn id='wan%d' direction='%s'/>", site, direction);
    if (rack >= 0 && !up) pli_text_add(xml, "<link_ctn id='uplink%d' direction='%s'/>", rack, direction);
    (void)c;
}

static int32_t site_of(const pli_cluster *c, int32_t rack) { return rack >= 0 ? c->rack[rack].site : -1; }

static void add_route(const pli_cluster *c, int32_t a, int32_t b, pli_text *xml) {
    int32_t site_a = site_of(c, a), site_b = site_of(c, b);
    bool    far = site_a != site_b;
    pli_text_add(xml, "<zoneRoute src='rack%d' dst='rack%d' gw_src='switch%d' gw_dst='switch%d' symmetrical='NO'>", a,
                 b, a, b);
    add_hop(c, a, far ? site_a : -1, true, xml);
    add_hop(c, b, far ? site_b : -1, false, xml);
    pli_text_add(xml, "</zoneRoute>\n");
}

/* Has the rack any hosts? SimGrid takes no empty zone. */
static bool is_used(const pli_cluster *c, int32_t rack) {
    for (int64_t g = 0; g < c->groups; g++)
        if (c->group[g].rack == rack) return true;
    return false;
}

static void write_platform(const pli_cluster *c, pli_text *xml) {
    pli_text_add(xml, "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                      "<platform version='4.1'>\n<zone id='all' routing='Full'>\n");
    for (int32_t rack = -1; rack < c->racks; rack++)
        if (is_used(c, rack)) add_rack(c, rack, xml);
    for (int64_t i = 0; i < c->racks; i++) add_link(xml, "uplink", i, &c->rack[i].link);
    for (int64_t i = 0; i < c->sites; i++) add_link(xml, "wan", i, &c->site[i].link);
    if (c->machine.cores > 0)
        pli_text_add(xml, "<zone id='parts' routing='None'><host id='machine' speed='1Gf' core='%d'/></zone>\n",
                     (int)c->machine.cores);
    for (int32_t a = -1; a < c->racks; a++)
        for (int32_t b = -1; b < c->racks; b++)
            if (a != b && is_used(c, a) && is_used(c, b)) add_route(c, a, b, xml);
    pli_text_add(xml, "</zone>\n</platform>\n");
}

/* SimGrid reads a file; this one has no name and disappears with its descriptor. */
static plait_status load(const pli_text *xml, plait_error *err) {
    if (xml->failed) return pli_fail(err, PLAIT_ENOMEM, "no memory to describe the cluster to SimGrid");
    int fd = memfd_create("plait-cluster", MFD_CLOEXEC);
    if (fd < 0) return pli_fail_errno(err, errno, "cannot describe the cluster to SimGrid");
    size_t done = 0;
    for (ssize_t n = 1; n > 0 && done<xml->length; done += n> 0 ? (size_t)n : 0)
        n = write(fd, xml->data + done, xml->length - done);
    int why = errno;
    if (done == xml->length) {
        char path[48];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        simgrid_load_platform(path);
    }
    close(fd);
    return done == xml->length ? PLAIT_OK : pli_fail_errno(err, why, "cannot describe the cluster to SimGrid");
}

plait_status pli_sim_platform(pli_transport *sim, plait_error *err) {
    pli_text xml = { 0 };
    write_platform(&sim->cluster, &xml);
    plait_status status = load(&xml, err);
    pli_text_free(&xml);
    if (status < 0) return status;
    if (sim->cluster.machine.cores > 0) sim->machine = sg_host_by_name("machine");
    for (int32_t r = 0; r < sim->size; r++) {
        char name[32];
        snprintf(name, sizeof name, "h%d", sim->rank[r].host);
        sim->rank[r].place = sg_host_by_name(name);
        if (sim->rank[r].place == NULL) return pli_fail(err, PLAIT_EIO, "SimGrid knows no host %s", name);
    }
    return PLAIT_OK;
}
