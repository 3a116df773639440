#include "table/table.h"
static plait_status no_open(plait_table *table, const void *i, const void *p, plait_error *err) { (void)i; (void)p; return pli_job_agree(table->job, "table", 0, pli_fail(err, PLAIT_EREFUSED, "not yet"), err); }
static void no_close(plait_table *table) { (void)table; }
const pli_topology_ops pli_replica_ops = { .open = no_open, .close = no_close };
const pli_topology_ops pli_hogwild_ops = { .open = no_open, .close = no_close };
