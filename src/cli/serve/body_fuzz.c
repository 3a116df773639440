/* Bodies of requests, as JSON and as text, for a model of a table and one of libsvm rows: whatever they hold, they are
 * read or refused; and a text has as many rows as were counted, since the answers of joined requests are parted by
 * that. */
#include <stdlib.h>

#include "cli/serve/body.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static pli_dataset *schema_of(const char *text, const char *format, plait_data **data_out) {
    pli_dataset    *set = NULL;
    plait_data_opts opts;
    plait_data_opts_init(&opts);
    opts.format = format;
    if (pli_data_read_bytes(&opts, NULL, "rows", text, strlen(text), data_out, NULL) < 0 ||
        pli_dataset_of_memory(*data_out, 0, 1, &set, NULL) < 0)
        abort();
    return set;
}

static void read_rows(const pli_schema *schema, const pli_body_rows *rows, const char *text, size_t bytes) {
    plait_data     *data = NULL;
    plait_data_opts opts;
    plait_error     err = { .rank = -1 };
    plait_data_opts_init(&opts);
    opts.format = rows->format;
    opts.index_base = rows->index_base;
    if (rows->head > 0) opts.header = "yes";
    if (pli_data_read_bytes(&opts, schema, "body", text, bytes, &data, &err) < 0) pli_body_place(rows, &err);
    else if (rows->rows >= 0 && !rows->json && rows->rows != plait_data_rows(data)) abort();
    plait_data_destroy(&data);
}

static void try_all(const char *made_of, const char *format, const char *body, size_t size) {
    plait_data       *data = NULL;
    pli_dataset      *set = schema_of(made_of, format, &data);
    const pli_schema *schema = pli_dataset_schema(set);
    pli_body_rows     rows;
    plait_error       err = { .rank = -1 };
    if (pli_body_json(schema, body, size, &rows, &err) >= 0) read_rows(schema, &rows, rows.text.data, rows.text.length);
    pli_body_free(&rows);
    pli_body_text(schema, body, size, &rows);
    if (size > 0) read_rows(schema, &rows, body, size);
    pli_body_free(&rows);
    pli_dataset_destroy(&set);
    plait_data_destroy(&data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    try_all("a,b,c,label\n1,x,2,no\n2,y,3,yes\n4,z,1,no\n", "csv", (const char *)data, size);
    try_all("1 1:2 3:0.5\n-1 2:1 4:1\n", "libsvm", (const char *)data, size);
    return 0;
}
