/* table/topology/coded_sums.h - makes the filtered sums of a clock: those of all tables under allreduce that have
 * filters, and that the next clock waits for. What one worker has for another is one message for all tables, so a clock
 * of many small tables costs two messages for each pair of workers (copies/coded.h), not two a table. */
#ifndef PLI_TABLE_TOPOLOGY_CODED_SUMS_H
#define PLI_TABLE_TOPOLOGY_CODED_SUMS_H

#include "table/table.h"

/** Makes all sums that are to_code (copies/mirror.h). Every other collective of the clock is begun before. Collective
 *  over the job's workers. Errors: ENOMEM, EFORMAT, those of a collective. */
plait_status pli_coded_sums(plait_job *job, plait_error *err);

#endif
