/* What trees split by. A table's column of texts has a feature of the data for each text; trees take the column as one
 * feature. See trees.h. */
#include <string.h>

#include "learn/trees/tree.h"

static bool has_texts(const pli_schema *schema) {
    int64_t features;
    bool    texts;
    for (int64_t i = 0; pli_schema_column(schema, i, &features, &texts) != NULL; i++)
        if (texts && features > 0) return true;
    return false;
}

/* Features follow each other in the order of columns. */
static void group(const pli_schema *schema, pli_fields *fields, int64_t *features_out) {
    int64_t key = 0, n = 0, keys;
    bool    texts;
    for (int64_t i = 0; pli_schema_column(schema, i, &keys, &texts) != NULL; i++) {
        if (keys == 0) continue;
        fields->first[n] = key;
        fields->codes[n] = texts ? (int32_t)keys : 0;
        fields->column[n] = i;
        for (int64_t k = 0; k < keys; k++) fields->of_key[key++] = (int32_t)n;
        n++;
    }
    fields->first[n] = key;
    *features_out = n;
}

/* Do the columns have so many features together? A model file's number of features may be damaged. */
static bool has_keys(const pli_schema *schema, int64_t keys) {
    int64_t sum = 0, features;
    bool    texts;
    for (int64_t i = 0; pli_schema_column(schema, i, &features, &texts) != NULL; i++)
        if (__builtin_add_overflow(sum, features, &sum)) return false;
    return sum == keys && keys <= INT32_MAX;
}

plait_status pli_fields_make(const pli_schema *schema, int64_t keys, pli_fields *fields, int64_t *features_out,
                             plait_error *err) {
    const size_t n = (size_t)keys;
    *fields = (pli_fields){ .keys = keys };
    *features_out = keys;
    if (!has_texts(schema)) return PLAIT_OK;
    if (!has_keys(schema, keys))
        return pli_fail(err, PLAIT_EFORMAT, "%lld features do not match its columns", (long long)keys);
    fields->first = pli_array(n + 1, sizeof *fields->first);
    fields->codes = pli_array(n, sizeof *fields->codes);
    fields->of_key = pli_array(n, sizeof *fields->of_key);
    fields->column = pli_array(n, sizeof *fields->column);
    if (fields->first != NULL && fields->codes != NULL && fields->of_key != NULL && fields->column != NULL) {
        group(schema, fields, features_out);
        return PLAIT_OK;
    }
    pli_fields_free(fields);
    return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld features", (long long)keys);
}

void pli_fields_free(pli_fields *fields) {
    pli_free(fields->first);
    pli_free(fields->codes);
    pli_free(fields->of_key);
    pli_free(fields->column);
    *fields = (pli_fields){ 0 };
}

void pli_fields_name(const pli_fields *fields, const pli_schema *schema, int64_t feature, pli_text *text) {
    int64_t features;
    bool    texts;
    if (!pli_field_is_text(fields, feature)) {
        pli_schema_feature_name(schema, (uint64_t)(fields->first != NULL ? fields->first[feature] : feature), text);
        return;
    }
    pli_text_add(text, "%s", pli_schema_column(schema, fields->column[feature], &features, &texts));
}

/* The data's feature has the name "column=text". */
void pli_fields_code(const pli_fields *fields, const pli_schema *schema, int64_t feature, int32_t code,
                     pli_text *text) {
    int64_t     features;
    bool        texts;
    pli_text    name = { 0 };
    const char *column = pli_schema_column(schema, fields->column[feature], &features, &texts);
    pli_schema_feature_name(schema, (uint64_t)fields->first[feature] + (uint64_t)code, &name);
    if (name.failed) text->failed = true;
    else pli_text_add(text, "%s", name.data + strlen(column) + 1);
    pli_text_free(&name);
}
