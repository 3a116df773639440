/* Tables beside a program's values. See beside.h. */
#include "vertex/beside.h"

#include <stdio.h>

plait_status pli_beside_make(plait_job *job, const pli_beside *beside, plait_table **table_out) {
    plait_table_opts t;
    char             name[64];
    plait_table_opts_init(&t);
    snprintf(name, sizeof name, "%s.%s", beside->program, beside->what);
    t.name = name;
    t.type = beside->type;
    if (beside->combine != NULL) t.combine = beside->combine;
    t.rows = beside->rows;
    t.cols = beside->cols;
    t.keyed = 1;
    return plait_table_create(job, &t, table_out);
}
