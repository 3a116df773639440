/* vertex/beside.h - tables that stand beside a program's values: frontiers, figures, rounds, values of one superstep
 * before. Their rows are of numbers, and are got and pushed by key. */
#ifndef PLI_VERTEX_BESIDE_H
#define PLI_VERTEX_BESIDE_H

#include <plait/table.h>

typedef struct pli_beside {
    const char *program, *what; /* the table is named PROGRAM.WHAT */
    plait_type  type;
    const char *combine;        /* NULL: add */
    int64_t     rows;
    int32_t     cols;
} pli_beside;

/** Collective over the job's workers. Errors: those of plait_table_create. */
plait_status pli_beside_make(plait_job *job, const pli_beside *beside, plait_table **table_out);

#endif
