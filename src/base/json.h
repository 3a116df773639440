/* base/json.h - writing and reading JSON. Plait does both only here.
 *
 * Writing: values are added to a text one by one, on one line. The contract wants numbers in %.17g and null for what is
 * no number; jansson does otherwise and writes 1.0 for 1 and 1e-7 for 1e-07. Each value of an object has a key; with
 * key NULL the value is an element of a list. The comma before a value is written too, except at the beginning of a
 * line, where it is left to the caller.
 *
 *     pli_json_begin(&text);
 *     pli_json_i64(&text, "version", 1);
 *     pli_json_list(&text, "ranks");
 *     pli_json_i64(&text, NULL, 3);
 *     pli_json_list_end(&text);
 *     pli_json_end(&text);                        {"version": 1, "ranks": [3]}
 *
 * Reading: by jansson. A file that looks at a json_t includes this header and never jansson's. */
#ifndef PLI_BASE_JSON_H
#define PLI_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/* --- writing ------------------------------------------------------------------------------------------------------ */

/** Begins the outermost object. */
void pli_json_begin(pli_text *text);
/** Ends it, or an object inside. No newline. */
void pli_json_end(pli_text *text);
/** Begins an object inside, which pli_json_end ends, or a list, which pli_json_list_end ends. */
void pli_json_object(pli_text *text, const char *key);
void pli_json_list(pli_text *text, const char *key);
void pli_json_list_end(pli_text *text);

void pli_json_i64(pli_text *text, const char *key, int64_t value);
void pli_json_u64(pli_text *text, const char *key, uint64_t value);
void pli_json_f64(pli_text *text, const char *key, double value);       /* %.17g; null for NaN and infinities   */
void pli_json_short(pli_text *text, const char *key, double value);     /* in the fewest digits that read back    */
void pli_json_text(pli_text *text, const char *key, const char *value); /* escaped; NULL gives null             */
void pli_json_hex(pli_text *text, const char *key, const void *bytes, size_t n); /* "00ff": two digits for each byte */
void pli_json_bool(pli_text *text, const char *key, bool value);
void pli_json_null(pli_text *text, const char *key);
void pli_json_raw(pli_text *text, const char *key, const char *json); /* JSON as it is; NULL gives null */
/** A value of jansson, as jansson writes it without spaces. Out of memory sets text->failed. */
void pli_json_value(pli_text *text, const char *key, const json_t *value);
/** The same with sorted keys; and with ASCII only, for terminals. */
void pli_json_value_sorted(pli_text *text, const char *key, const json_t *value);
void pli_json_value_ascii(pli_text *text, const char *key, const json_t *value);

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Where a text is wrong, and what is wrong. */
typedef json_error_t pli_json_where;

/** Reads text [bytes] as one value; the caller calls json_decref. NULL: it is no value, or a key appears twice;
 *  *where_out (may be NULL) has line and text. */
json_t *pli_json_read(const char *text, size_t bytes, pli_json_where *where_out);

/** The text or number with this key. If the key is missing or has another type: NULL, or `instead`. */
static inline const char *pli_json_text_of(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}
static inline double pli_json_number_of(const json_t *object, const char *key, double instead) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : instead;
}

#endif
