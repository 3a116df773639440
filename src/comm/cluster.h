/* comm/cluster.h - a simulated cluster as its file describes it: hosts, links, what work costs, what goes wrong when.
 *
 * cluster_read.c reads the file (docs/simulation.md is its manual); cluster.c tells where things are; script.c answers
 * what the events mean at a time, as pure functions of (cluster, seed, rank, time), so that a run repeats whatever
 * order it asks in. Times are seconds, speeds are relative to the machine that the cost model is of, bandwidths are
 * bytes a second.
 */
#ifndef PLI_COMM_CLUSTER_H
#define PLI_COMM_CLUSTER_H

#include <stdbool.h>

#include "comm/machine.h"

enum { PLI_CLUSTER_NAME = 48, PLI_CLUSTER_HOSTS_MAX = 1 << 17 };

typedef struct pli_link_spec {
    double bandwidth; /* each way    */
    double latency;   /* one way     */
} pli_link_spec;

typedef struct pli_host_group {
    int32_t       count, cores; /* a host takes as many ranks as it has cores */
    double        speed;
    int32_t       rack; /* -1: none */
    pli_link_spec link; /* from a host to its switch */
} pli_host_group;

typedef struct pli_rack {
    char          name[PLI_CLUSTER_NAME];
    int32_t       site; /* -1: none */
    pli_link_spec link; /* from the rack's switch to its site's */
} pli_rack;

typedef struct pli_site {
    char          name[PLI_CLUSTER_NAME];
    pli_link_spec link; /* from the site to the wide area */
} pli_site;

/* What things cost on a host of speed 1. */
typedef struct pli_cost {
    double work_ns[PLI_WORK_KINDS];
    double message_ns;   /* to take or to send a message, whatever its size */
    double byte_ns;      /* and each of its bytes                           */
    double local_ns;     /* on the way between two ranks of one host        */
    double notice;       /* seconds until the others notice a death         */
    double resend_after; /* seconds, where messages may be lost or doubled  */
} pli_cost;

typedef enum pli_mishap_kind {
    PLI_SLOW,     /* the computing of ranks takes `factor` times as long, from .. until                */
    PLI_BURST,    /* the same in the last `length` of every `every` seconds; one host drawn anew each time, or all */
    PLI_JITTER,   /* each clock's computing takes exp(sigma z) times as long, z normal, drawn anew     */
    PLI_LINK,     /* bandwidth of links times `factor`; 0: cut                                          */
    PLI_MESSAGES, /* each message: with a probability later by `delay`, twice, or not at all            */
    PLI_KILL,     /* ranks end at `from`                                                                */
    PLI_FREEZE    /* ranks stand still from .. until                                                    */
} pli_mishap_kind;

typedef struct pli_mishap {
    pli_mishap_kind kind;
    int32_t         line;        /* of the file */
    int32_t         first, last; /* ranks; last -1: all. PLI_LINK: hosts of these ranks, unless rack or site */
    int32_t         rack, site;  /* -1: none */
    double          from, until; /* INFINITY: for good */
    double          factor, every, length, sigma;
    bool            drawn; /* PLI_BURST: one host, not all */
    double          delay, delay_p, double_p, drop_p;
} pli_mishap;

typedef struct pli_cluster {
    char           *path; /* NULL: the default */
    pli_host_group *group;
    pli_rack       *rack;
    pli_site       *site;
    pli_mishap     *mishap;
    int64_t         groups, racks, sites, mishaps, hosts;
    int64_t         group_capacity, rack_capacity, site_capacity, mishap_capacity;
    pli_cost        cost;
} pli_cluster;

/* What a file leaves unsaid. */
extern const pli_cost       pli_cluster_usual_cost;
extern const pli_host_group pli_cluster_usual_host;

/** Equal hosts with a core each on one switch, as many as there are ranks: 10 Gb/s and 10 us to the switch, costs of a
 *  2.5 GHz core of 2023. */
plait_status pli_cluster_default(int32_t ranks, pli_cluster *cluster_out, plait_error *err);
/** Errors: EIO; EFORMAT with file:line and what was expected; ENOMEM. */
plait_status pli_cluster_read(const char *path, pli_cluster *cluster_out, plait_error *err);
/** The same of a text [bytes], which is called path. */
plait_status pli_cluster_parse(const char *path, const void *text, size_t bytes, pli_cluster *cluster_out,
                               plait_error *err);
/** Is the text what a host's key may have, as bandwidth or latency? An option has the key's name. Errors: EINVAL with
 *  what was expected. */
plait_status pli_cluster_check_host(const char *key, const char *text, plait_error *err);
/** Do the hosts hold the ranks, and are the ranks that the events name there? Errors: EINVAL. */
plait_status pli_cluster_check(const pli_cluster *cluster, int32_t ranks, plait_error *err);
void         pli_cluster_free(pli_cluster *cluster);

/** The host of a rank, and its group. Ranks fill the hosts in order. */
int32_t               pli_cluster_host(const pli_cluster *cluster, int32_t rank);
const pli_host_group *pli_cluster_group(const pli_cluster *cluster, int32_t host);
/** One way between two hosts, in seconds. */
double pli_cluster_latency(const pli_cluster *cluster, int32_t from_host, int32_t to_host);
/** May messages be lost, doubled or overtake one another? */
bool pli_cluster_is_lossy(const pli_cluster *cluster);

/* --- script.c ------------------------------------------------------------------------------------------ */

/** When is work of `seconds` on a host of speed 1 done that the rank begins at `now`, in its clock-th clock? INFINITY:
 *  never. */
double pli_script_finish(const pli_cluster *cluster, uint64_t seed, int32_t rank, int64_t clock, double now,
                         double seconds);
/** When the rank dies; INFINITY: never. */
double pli_script_death(const pli_cluster *cluster, int32_t rank);
/** When the rank, at now, moves again: now, unless it is frozen. */
double pli_script_thaw(const pli_cluster *cluster, int32_t rank, double now);
/** When the rank freezes next, from now on; INFINITY: never. */
double pli_script_freeze(const pli_cluster *cluster, int32_t rank, double now);

/** Since when nothing that the rank says at now reaches observer, since it is frozen or a link between them is cut. For
 *  itself: since when it is frozen. INFINITY: it is heard. */
double pli_script_silent(const pli_cluster *cluster, int32_t observer, int32_t rank, double now);

typedef struct pli_fate {
    int32_t copies; /* 0: lost */
    double  delay[2];
} pli_fate;
/** What becomes of the n-th message of rank src, to dst, sent at now. Cut links hold it back, or lose it. */
pli_fate pli_script_fate(const pli_cluster *cluster, uint64_t seed, int32_t src, int32_t dst, uint64_t n, double now);

/** The bandwidth of a link at now, as a part of its own: of a host, a rack or a site (the others -1). 1: whole. Cuts do
 *  not count, they are of messages. */
double pli_script_width(const pli_cluster *cluster, int32_t host, int32_t rack, int32_t site, double now);
/** When widths next change after now; INFINITY: never. */
double pli_script_next_width(const pli_cluster *cluster, double now);

#endif
