/* The rows of a data set as their files wrote them, one after the other: lines of text, in the order in which a model
 * answers them. */
#include <string.h>

#include "data/dataset/dataset.h"
#include "data/formats/table/table.h"

plait_status pli_written_begin(const plait_data *data, pli_written *rows, plait_error *err) {
    const pli_dataset *d = data->dataset;
    *rows = (pli_written){ .dataset = d };
    if (d->sources == NULL)
        return pli_fail(err, PLAIT_EREFUSED, "rows of memory or of a cache have no lines");
    if (d->reader == NULL || d->reader->row == NULL)
        return pli_fail(err, PLAIT_EREFUSED, "%s: %s data are no lines of text", d->sources->source[0].path,
                        d->npy != NULL ? "npy" : pli_format_text(d->schema->format));
    return PLAIT_OK;
}

bool pli_written_next(pli_written *rows, const char **text_out, size_t *bytes_out) {
    const pli_dataset *d = rows->dataset;
    for (; rows->segment < d->segments; rows->segment++, rows->at = 0) {
        const pli_segment   *segment = &d->segment[rows->segment];
        const unsigned char *data = d->sources->source[segment->source].data, *to = data + segment->to;
        const unsigned char *from = d->reader->row(data + (rows->at > 0 ? rows->at : segment->from), to), *next;
        if (from >= to) {
            pli_source_drop(&d->sources->source[segment->source], segment->from, segment->to);
            continue;
        }
        const unsigned char *end = pli_line_end(from, to, &next);
        rows->at = (size_t)(next - data);
        *text_out = (const char *)from;
        *bytes_out = (size_t)(end - from);
        return true;
    }
    return false;
}

char pli_written_delimiter(const pli_written *rows) {
    return rows->dataset->table != NULL ? rows->dataset->table->delimiter : '\0';
}

const char *pli_written_header(const pli_written *rows, size_t *bytes_out) {
    const pli_table_rules *t = rows->dataset->table;
    if (t == NULL || !t->header) return NULL;
    *bytes_out = t->header_line.length;
    return t->header_line.data;
}

bool pli_written_has_column(const pli_written *rows, const char *name) {
    const pli_table_rules *t = rows->dataset->table;
    return t != NULL && pli_table_name(t, name) >= 0;
}
