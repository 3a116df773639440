/* comm/cluster.h - a simulated cluster as its file describes it: hosts, links, costs of work, and what goes wrong when.
 *
 * cluster_read.c reads the file (docs/simulation.md is its manual); cluster.c tells where ranks and hosts are;
 * script.c and script_turns.c answer what the events mean at a time, as pure functions of (cluster, seed, rank, time),
 * so that a run repeats in whatever order it asks. Times are seconds, speeds are relative to the machine of the cost
 * model, bandwidths are bytes a second. */
#ifndef PLI_COMM_CLUSTER_H
#define PLI_COMM_CLUSTER_H

#include <stdbool.h>

#include "comm/machine.h"

enum { PLI_CLUSTER_NAME = 48, PLI_CLUSTER_HOSTS_MAX = 1 << 17 };

typedef struct pli_link_spec {
    double bandwidth; /* in each direction */
    double latency;   /* in one direction */
} pli_link_spec;

typedef struct pli_host_group {
    int32_t       count, cores; /* a host takes as many ranks as it has cores */
    double        speed;
    double        memory; /* bytes; INFINITY: the file does not say */
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

/* The one machine of which all hosts are parts: network namespaces, containers or virtual machines. */
typedef struct pli_machine_spec {
    int32_t cores; /* which all hosts share; 0: there is no such machine, and each host has its own */
} pli_machine_spec;

/* Costs on a host of speed 1. */
typedef struct pli_cost {
    double work_ns[PLI_WORK_KINDS];
    double message_ns;   /* to take or to send a message, whatever its size */
    double byte_ns;      /* for each byte of a message */
    double kernel_ns;    /* for each byte, while it flows: the work of both ends' operating system, on `machine` */
    double local_ns;     /* latency between two ranks of one host */
    double patience;     /* seconds after which a rank suspects another behind a cut link; 0: the run's heartbeat */
    double notice;       /* seconds until the others notice a death         */
    double resend_after; /* seconds until a message is sent again, if messages may be lost or doubled */
} pli_cost;

typedef enum pli_mishap_kind {
    PLI_SLOW,     /* computing of ranks takes `factor` times as long, from .. until */
    PLI_BURST,    /* the same, in the last `length` of every `every` seconds, on all hosts or on one host drawn anew
                   * each time */
    PLI_JITTER,   /* the computing of each clock takes exp(sigma z) times as long, z normal, drawn anew */
    PLI_LINK,     /* bandwidth of links times `factor`; 0: cut                                          */
    PLI_MESSAGES, /* each message may come later by `delay`, twice or not at all, each with its probability */
    PLI_KILL,     /* ranks end at `from`                                                                */
    PLI_FREEZE,   /* ranks do nothing, from .. until */
    PLI_PARTITION, /* ranks of different sides do not hear each other, from .. until */
    PLI_COMES,    /* ranks are to join a job with slots, from `from` on */
    PLI_GOES,     /* ranks are to leave it */
    PLI_REVIVE    /* ranks that have died are started anew at `from`, and vote again */
} pli_mishap_kind;

/* The sides of a partition: side[rank] for the ranks that are named; all others are on side 0. */
typedef struct pli_sides {
    uint16_t *side; /* [n] from 1 on; 0: not named */
    int32_t   n;
} pli_sides;

typedef struct pli_mishap {
    pli_mishap_kind kind;
    int32_t         line;        /* line of the file */
    int32_t         first, last; /* ranks; last -1: all. PLI_LINK: the hosts of these ranks, if no rack or site is
                                  * given */
    int32_t         rack, site;  /* -1: none */
    double          from, until; /* until INFINITY: for good */
    double          factor, every, length, sigma;
    bool            drawn; /* PLI_BURST: one host, not all */
    double          delay, delay_p, double_p, drop_p;
    pli_sides       sides; /* PLI_PARTITION */
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
    pli_machine_spec machine;
} pli_cluster;

/* Values for what a file leaves out. */
extern const pli_cost       pli_cluster_usual_cost;
extern const pli_host_group pli_cluster_usual_host;

/** One host with one core for each rank, all on one switch: 10 Gb/s and 10 us to the switch, and the costs of a 2.5
 *  GHz core of 2023. */
plait_status pli_cluster_default(int32_t ranks, pli_cluster *cluster_out, plait_error *err);
/** Errors: EIO; EFORMAT with file:line and what was expected; ENOMEM. */
plait_status pli_cluster_read(const char *path, pli_cluster *cluster_out, plait_error *err);
/** The same for a text [bytes]; errors call it path. */
plait_status pli_cluster_parse(const char *path, const void *text, size_t bytes, pli_cluster *cluster_out,
                               plait_error *err);
/** May the text stand for a host's key, such as bandwidth or latency? The option has the same name as the key.
 *  Errors: EINVAL with what was expected. */
plait_status pli_cluster_check_host(const char *key, const char *text, plait_error *err);
/** Do the hosts hold all ranks? Do the ranks exist that events name? Has each rank that is revived died before, once,
 *  and does it live from then on? Errors: EINVAL. */
plait_status pli_cluster_check(const pli_cluster *cluster, int32_t ranks, plait_error *err);
void         pli_cluster_free(pli_cluster *cluster);

/** The host of a rank, and its group. Ranks fill the hosts in order. */
int32_t               pli_cluster_host(const pli_cluster *cluster, int32_t rank);
const pli_host_group *pli_cluster_group(const pli_cluster *cluster, int32_t host);
/** Latency from one host to another, in seconds. */
double pli_cluster_latency(const pli_cluster *cluster, int32_t from_host, int32_t to_host);
/** Bytes a second of the narrowest link between two hosts, or of what a host takes to copy a message. */
double pli_cluster_bandwidth(const pli_cluster *cluster, int32_t from_host, int32_t to_host);
/** The same by ranks: the speed of a rank's host, and what lies between the hosts of two ranks. */
double pli_cluster_speed(const pli_cluster *cluster, int32_t rank);
/** Bytes that a rank may use, an equal share of its host's; INFINITY: the file does not say. */
double pli_cluster_memory(const pli_cluster *cluster, int32_t rank);
void   pli_cluster_between(const pli_cluster *cluster, int32_t from_rank, int32_t to_rank, double *latency_out,
                           double *bandwidth_out);
/** May messages be lost, doubled or overtake one another? */
bool pli_cluster_is_lossy(const pli_cluster *cluster);

/* --- script.c ------------------------------------------------------------------------------------------ */

/** When is work done that the rank begins at `now`, in its clock-th clock, and that takes `seconds` on a host of
 *  speed 1? INFINITY: never. */
double pli_script_finish(const pli_cluster *cluster, uint64_t seed, int32_t rank, int64_t clock, double now,
                         double seconds);
/** When the rank dies; INFINITY: never. */
double pli_script_death(const pli_cluster *cluster, int32_t rank);
/** When a rank that dies is started anew; INFINITY: never. */
double pli_script_revival(const pli_cluster *cluster, int32_t rank);
/** When, after now, a rank is started anew next; INFINITY: never. */
double pli_script_next_revival(const pli_cluster *cluster, double now);
/** When a rank that is frozen at now moves again; now if it is not frozen. */
double pli_script_thaw(const pli_cluster *cluster, int32_t rank, double now);
/** When the rank freezes next, at or after now; INFINITY: never. */
double pli_script_freeze(const pli_cluster *cluster, int32_t rank, double now);

/** Since when observer hears nothing of what rank says, seen at now, because rank is frozen or a link between them
 *  is cut. If observer is the rank itself: since when it is frozen. INFINITY: observer hears it. */
double pli_script_silent(const pli_cluster *cluster, int32_t observer, int32_t rank, double now);

/** Since when a link between observer and rank is cut, or a partition keeps them apart, seen at now; INFINITY: they
 *  reach each other. */
double pli_script_cut(const pli_cluster *cluster, int32_t observer, int32_t rank, double now);
/** How long the longest such cut lasts, in seconds; 0: there is none. */
double pli_script_longest_cut(const pli_cluster *cluster);
/** When, after now, such a cut begins next, has lasted for `patience`, or ends; INFINITY: never. */
double pli_script_next_cut(const pli_cluster *cluster, double patience, double now);

typedef struct pli_fate {
    int32_t copies; /* 0: lost */
    double  delay[2];
} pli_fate;
/** What happens to the n-th message that src sends to dst, sent at now. A cut link holds the message back, or loses
 *  it. */
pli_fate pli_script_fate(const pli_cluster *cluster, uint64_t seed, int32_t src, int32_t dst, uint64_t n, double now);

/** The share of a link's bandwidth that is left at now, for a host, a rack or a site (the other two -1). 1: all.
 *  Cuts do not count here; script_fate applies them to messages. */
double pli_script_width(const pli_cluster *cluster, int32_t host, int32_t rack, int32_t site, double now);
/** When widths next change after now; INFINITY: never. */
double pli_script_next_width(const pli_cluster *cluster, double now);

/* --- script_turns.c: workers that come and go (table/copies/roster.h) ------------------------------------ */

/** Does the file say when workers join or leave? */
bool pli_script_has_turns(const pli_cluster *cluster);
/** Is each of these possible in a job of so many workers, the last `slots` of which are away at first? Nobody joins who
 *  is in, or leaves who is away; who joins or leaves lives; and at least workers - slots are in, counting those who
 *  have died meanwhile. slots 0: the job knows no such workers. Errors: EINVAL with file:line; ENOMEM. */
plait_status pli_script_check_turns(const pli_cluster *cluster, int32_t workers, int32_t slots, plait_error *err);
/** Is the worker to be in at now? first: was it to be at the beginning? */
bool   pli_script_wants(const pli_cluster *cluster, int32_t worker, bool first, double now);
/** When, after now, the worker is to join next; INFINITY: never. */
double pli_script_next_join(const pli_cluster *cluster, int32_t worker, double now);

#endif
