/* Feeds any bytes as the JSON of a schema (a model's, or another worker's): it is refused, or it can be asked and
 * joined. */
#include <stdlib.h>
#include <string.h>

#include "data/schema/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const pli_schema *schema) {
    pli_text text = { 0 };
    for (int64_t k = 0; k < pli_schema_labels(schema) && k < 4; k++) {
        (void)pli_schema_label_value(schema, k);
        pli_schema_label_text(schema, k, &text);
    }
    for (uint64_t key = 0; key < 4; key++) pli_schema_feature_name(schema, key, &text);
    pli_text_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pli_schema *schema = NULL, *again = NULL, *joined = NULL;
    pli_text    text = { 0 };
    plait_error err;
    if (pli_schema_read((const char *)data, size, &schema, &err) != PLAIT_OK) return 0;
    ask(schema);
    if (pli_schema_write(schema, &text, &err) != PLAIT_OK) abort();
    if (pli_schema_read(text.data, text.length, &again, &err) != PLAIT_OK) abort();
    const pli_schema *parts[] = { schema, again };
    if (pli_schema_merge(parts, 2, &joined, &err) == PLAIT_OK) ask(joined);
    pli_text_free(&text);
    pli_schema_destroy(&schema);
    pli_schema_destroy(&again);
    pli_schema_destroy(&joined);
    return 0;
}
