/* csv, tsv. */
#include "data/table.h"

plait_status pli_table_begin(pli_dataset *d, const plait_data_opts *opts, plait_error *err) {
    (void)opts;
    return pli_fail(err, PLAIT_EFORMAT, "%s: expected libsvm lines (label index:value ...)",
                    d->sources->source[0].path);
}
plait_status pli_table_open(pli_dataset *d, const plait_data_opts *opts, const pli_schema *fixed, plait_error *err) {
    (void)fixed;
    return pli_table_begin(d, opts, err);
}
plait_status pli_table_learn(pli_dataset *d, pli_pool *pool, plait_error *err) {
    (void)d;
    (void)pool;
    (void)err;
    return PLAIT_OK;
}
plait_status pli_table_settle(pli_dataset *d, plait_error *err) {
    (void)d;
    (void)err;
    return PLAIT_OK;
}
plait_status pli_table_renumber(pli_dataset *d, const pli_schema *agreed, plait_error *err) {
    (void)d;
    (void)agreed;
    (void)err;
    return PLAIT_OK;
}
void         pli_table_close(pli_table_rules **table) { *table = NULL; }
plait_status pli_table_fill(const pli_dataset *d, pli_rows *rows, plait_error *err) {
    (void)d;
    (void)rows;
    (void)err;
    return PLAIT_OK;
}
