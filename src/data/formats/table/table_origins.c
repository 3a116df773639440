/* Origins of a table's columns (schema/origins.h): which columns of numbers lie far from 0 for their spread in the
 * sample of every block? */
#include "data/formats/table/table.h"

#include <stdio.h>

plait_status pli_table_origins(pli_dataset *d, bool wanted, plait_error *err) {
    const pli_table_rules *t = d->table;
    const pli_table_cell  *example = NULL;
    int64_t                n = 0, place = 0;
    char                   name[80];
    wanted &= d->schema->hash_bits == 0;
    for (int64_t i = 0; i < t->cells; i++) { /* columns of the schema come in the file's order */
        const pli_table_cell *cell = &t->cell[i];
        const double          origin = pli_range_origin(&cell->range);
        if (cell->column < 0 || cell->role != PLI_ROLE_NUMBER || origin == 0) continue;
        if (n++ == 0) {
            example = cell;
            place = i;
        }
        if (wanted && !pli_schema_add_origin(d->schema, (uint64_t)cell->column, origin))
            return pli_table_no_memory(err);
    }
    if (example == NULL) return PLAIT_OK;
    snprintf(name, sizeof name, "column \"%.40s\"", t->name[place]);
    pli_origins_tell(d, wanted, name, &example->range, n);
    return PLAIT_OK;
}
