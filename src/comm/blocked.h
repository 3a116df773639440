/* comm/blocked.h - what a blocked rank waits for, as data. The doctor builds its graph from it (comm/doctor.h). */
#ifndef PLI_COMM_BLOCKED_H
#define PLI_COMM_BLOCKED_H

#include <stdbool.h>
#include <stdint.h>

/* The public call that a rank is in; if one public call makes another, the outer one. */
typedef struct pli_call_site {
    const char *call;    /* "plait_comm_recv"; NULL: none                             */
    const char *file;    /* of the caller; NULL if it was compiled without call sites */
    int32_t     line;
    uint64_t    ordinal; /* number of the call among this rank's calls that may wait: 1, 2, ... */
} pli_call_site;

typedef enum pli_wait_kind {
    PLI_WAIT_OTHER,      /* the graph knows nothing of it: it may end any time */
    PLI_WAIT_RECV,       /* for a message of peer, or (-1) of any other rank */
    PLI_WAIT_COLLECTIVE, /* for every worker that has not come to call `number` */
    PLI_WAIT_TABLE,      /* for servers' answers; they say that peer (-1: not said) holds it up */
    PLI_WAIT_WORKERS,    /* for every worker that has not ended */
    PLI_WAIT_KINDS
} pli_wait_kind;

/* Fixed-width and without padding: it is sent as it lies in memory. */
typedef struct pli_wait {
    uint64_t number;          /* COLLECTIVE: which of the workers' calls */
    uint64_t asked, answered; /* TABLE: how often the servers were asked who holds the wait up, and the number of the
                               * last question that was answered */
    int64_t  n;               /* COLLECTIVE: its shape, as in pli_coll */
    int32_t  peer, root;
    int32_t  first_server, servers; /* TABLE: the ranks that may have to answer                         */
    uint8_t  kind;            /* pli_wait_kind                                                          */
    uint8_t  coll_kind, coll_type, coll_op;
    uint8_t  joins;           /* COLLECTIVE: it also waits for workers that have not begun to wait for the call */
    uint8_t  any;             /* TABLE: any other worker might end it, too; peer is only the slowest */
    uint8_t  coll_form;
    uint8_t  zero[1];
} pli_wait;

#endif
