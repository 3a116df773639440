/* table/shown.h - what a rank shows of a table on its sheet (comm/sheet.h): rows of metadata that any rank may read.
 *
 * A worker shows one row for each of its tables: its clock, when it last read and pushed, and the copy that it has of
 * the table, if any. A server shows one for each shard: the rows that it has, and up to which clock they are; so does
 * the second replica of a shard (copies/replicas.h), which says whose it is and whether it serves. describe.c joins
 * what a worker and its rank's own server say, for plait_job_describe. */
#ifndef PLI_TABLE_SHOWN_H
#define PLI_TABLE_SHOWN_H

#include "comm/sheet.h"
#include "table/state/spec.h"

enum { PLI_SHOWN_WORKER = PLI_SHEET_OWN, PLI_SHOWN_SHARD, PLI_SHOWN_REPLICA };

/* Words of a row. A clock is kept + 1, so 0 says never, or none. */
enum {
    PLI_SHOWN_KIND,
    PLI_SHOWN_TYPE,
    PLI_SHOWN_MEMBERS,
    PLI_SHOWN_ROWS,
    PLI_SHOWN_COLS,
    PLI_SHOWN_FIRST,
    PLI_SHOWN_HELD,
    PLI_SHOWN_COPY, /* 1: a worker's own copy of the table */
    PLI_SHOWN_ROW_BYTES,
    PLI_SHOWN_VERSION,
    PLI_SHOWN_CLOCK,
    PLI_SHOWN_GET,
    PLI_SHOWN_PUSH,
    PLI_SHOWN_OF,     /* of a replica: the rank whose shard it is */
    PLI_SHOWN_SERVES, /* 1: it serves, since that rank is dead    */
    PLI_SHOWN_TEXTS /* name [64], group [64], topology [32], consistency [48] */
};

struct pli_server;
struct pli_server_table;

/** A shard is there, its rows or its version have changed, or it is gone. Called by the server's machine. */
void pli_shown_shard(struct pli_server *server, struct pli_server_table *table);
void pli_shown_change(struct pli_server *server);
void pli_shown_server_hide(struct pli_server *server);
/** A worker's table is there; its clock has ended; nobody is to see it any more. */
void pli_shown_table(plait_table *table);
void pli_shown_clock(plait_job *job);
void pli_shown_hide(plait_job *job);

#endif
