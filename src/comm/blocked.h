/* comm/blocked.h - what a blocked rank waits for, as data. From these the doctor makes its graph (comm/doctor.h). */
#ifndef PLI_COMM_BLOCKED_H
#define PLI_COMM_BLOCKED_H

#include <stdbool.h>
#include <stdint.h>

/* Which public call a rank is in: the outermost, where one calls another. */
typedef struct pli_call_site {
    const char *call;    /* "plait_comm_recv"; NULL: none                             */
    const char *file;    /* of the caller; NULL where it was compiled without sites   */
    int32_t     line;
    uint64_t    ordinal; /* of this rank's calls that may wait: 1, 2, ...             */
} pli_call_site;

typedef enum pli_wait_kind {
    PLI_WAIT_OTHER,      /* of which the graph knows nothing: it may end any time             */
    PLI_WAIT_RECV,       /* a message of peer, or (-1) of any other rank                       */
    PLI_WAIT_COLLECTIVE, /* every worker that has not come to call `number`                    */
    PLI_WAIT_TABLE,      /* an answer of servers, who say that peer (-1: not said) holds it up */
    PLI_WAIT_WORKERS,    /* every worker that has not ended                                    */
    PLI_WAIT_KINDS
} pli_wait_kind;

/* Fixed-width and without padding: it travels as it lies here. */
typedef struct pli_wait {
    uint64_t number;          /* COLLECTIVE: which of the workers' calls                                */
    uint64_t asked, answered; /* TABLE: how often the servers were asked who holds it up, and the last
                               * time that was answered                                                 */
    int64_t  n;               /* COLLECTIVE: its shape, as pli_coll has it                              */
    int32_t  peer, root;
    int32_t  first_server, servers; /* TABLE: the ranks that may have to answer                         */
    uint8_t  kind;            /* pli_wait_kind                                                          */
    uint8_t  coll_kind, coll_type, coll_op;
    uint8_t  joins;           /* COLLECTIVE: for whom has not begun to wait for the call, too           */
    uint8_t  any;             /* TABLE: any other worker might end it; peer is but the slowest               */
    uint8_t  coll_form;
    uint8_t  zero[1];
} pli_wait;

#endif
