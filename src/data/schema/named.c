/* Names for features that are known by their numbers alone, given by a file beside the data. */
#include "data/schema/schema.h"

bool pli_schema_has_numbers(const pli_schema *schema) {
    const bool named = schema->format == PLI_FORMAT_TABLE || schema->format == PLI_FORMAT_CHARS ||
                       (schema->format == PLI_FORMAT_IDX && schema->axes > 0);
    return !named && schema->hash_bits == 0 && schema->names == 0;
}

bool pli_schema_name_all(pli_schema *schema, int64_t n, char *const *name) {
    if (!pli_schema_has_numbers(schema)) return false;
    char    **own = pli_array((size_t)n, sizeof *own);
    uint64_t *key = pli_array((size_t)n, sizeof *key);
    if (own == NULL || key == NULL) {
        pli_free(own);
        pli_free(key);
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        own[i] = name[i];
        key[i] = (uint64_t)i;
    }
    schema->name = own;
    schema->name_key = key;
    schema->names = n;
    return true;
}
