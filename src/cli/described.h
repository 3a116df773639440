/* described.h - the tables of a run as text: a line for each rank's part of each table, under a line of titles; fields
 * are separated by tabs. */
#ifndef PLI_CLI_DESCRIBED_H
#define PLI_CLI_DESCRIBED_H

#include <plait/job.h>

#include "base/base.h"

/** Asks all ranks; those of other processes have timeout_ns to answer. */
void pli_described_tell(const plait_comm *comm, uint64_t timeout_ns, pli_text *text);

#endif
