/* JSON as the contract wants it: numbers in %.17g, null for values that do not apply, never NaN. See json.h. */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- writing ------------------------------------------------------------------------------------------------------ */

/* Writes what stands before a value: a comma, unless the value is the first of its object or list, and its key. */
static void add_key(pli_text *text, const char *key) {
    const char last = text->length > 0 ? text->data[text->length - 1] : '\0';
    if (strchr("{[\n", last) == NULL) pli_text_add_bytes(text, ", ", 2);
    if (key == NULL) return;
    pli_text_add_quoted(text, key);
    pli_text_add_bytes(text, ": ", 2);
}

void pli_json_begin(pli_text *text) { pli_text_add_bytes(text, "{", 1); }
void pli_json_end(pli_text *text) { pli_text_add_bytes(text, "}", 1); }

void pli_json_object(pli_text *text, const char *key) {
    add_key(text, key);
    pli_json_begin(text);
}

void pli_json_list(pli_text *text, const char *key) {
    add_key(text, key);
    pli_text_add_bytes(text, "[", 1);
}

void pli_json_list_end(pli_text *text) { pli_text_add_bytes(text, "]", 1); }

void pli_json_raw(pli_text *text, const char *key, const char *json) {
    add_key(text, key);
    pli_text_add(text, "%s", json != NULL ? json : "null");
}

void pli_json_null(pli_text *text, const char *key) { pli_json_raw(text, key, NULL); }
void pli_json_bool(pli_text *text, const char *key, bool value) { pli_json_raw(text, key, value ? "true" : "false"); }

void pli_json_i64(pli_text *text, const char *key, int64_t value) {
    add_key(text, key);
    pli_text_add(text, "%" PRId64, value);
}

void pli_json_u64(pli_text *text, const char *key, uint64_t value) {
    add_key(text, key);
    pli_text_add(text, "%" PRIu64, value);
}

void pli_json_f64(pli_text *text, const char *key, double value) {
    char number[32];
    pli_format_json_f64(value, number);
    pli_json_raw(text, key, number);
}

void pli_json_short(pli_text *text, const char *key, double value) {
    char number[32];
    pli_format_f64(value, number);
    pli_json_raw(text, key, isfinite(value) ? number : NULL);
}

void pli_json_text(pli_text *text, const char *key, const char *value) {
    add_key(text, key);
    if (value == NULL) pli_text_add(text, "null");
    else pli_text_add_quoted(text, value);
}

void pli_json_hex(pli_text *text, const char *key, const void *bytes, size_t n) {
    add_key(text, key);
    pli_text_add_bytes(text, "\"", 1);
    for (size_t i = 0; i < n; i++) pli_text_add(text, "%02x", ((const unsigned char *)bytes)[i]);
    pli_text_add_bytes(text, "\"", 1);
}

static void add_value(pli_text *text, const char *key, const json_t *value, size_t flags) {
    char *dump = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | flags);
    pli_json_raw(text, key, dump);
    text->failed |= dump == NULL;
    free(dump);
}

void pli_json_value(pli_text *text, const char *key, const json_t *value) { add_value(text, key, value, 0); }
void pli_json_value_sorted(pli_text *text, const char *key, const json_t *value) {
    add_value(text, key, value, JSON_SORT_KEYS);
}
void pli_json_value_ascii(pli_text *text, const char *key, const json_t *value) {
    add_value(text, key, value, JSON_ENSURE_ASCII);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

json_t *pli_json_read(const char *text, size_t bytes, pli_json_where *where_out) {
    return json_loadb(text, bytes, JSON_REJECT_DUPLICATES, where_out);
}
