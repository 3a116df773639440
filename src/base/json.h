/* base/json.h - JSON, written and read. The one place where Plait does either.
 *
 * Written: value by value onto a text, on one line. Numbers are %.17g and null stands for what is no number: so the
 * contract has it, and jansson, which writes 1.0 for 1 and 1e-7 for 1e-07, does not. A key comes with each value of an
 * object; NULL for a key: the value is an element of a list. The comma before it is written too, save at the beginning
 * of a line, where it is the caller's.
 *
 *     pli_json_begin(&text);
 *     pli_json_i64(&text, "version", 1);
 *     pli_json_list(&text, "ranks");
 *     pli_json_i64(&text, NULL, 3);
 *     pli_json_list_end(&text);
 *     pli_json_end(&text);                        {"version": 1, "ranks": [3]}
 *
 * Read: by jansson. Whoever looks at a json_t includes this header and never jansson's.
 */
#ifndef PLI_BASE_JSON_H
#define PLI_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/* --- written ------------------------------------------------------------------------------------------------------ */

/** The outermost object. */
void pli_json_begin(pli_text *text);
/** Ends it, or an object inside. No newline. */
void pli_json_end(pli_text *text);
/** An object inside, which pli_json_end ends; a list, which pli_json_list_end ends. */
void pli_json_object(pli_text *text, const char *key);
void pli_json_list(pli_text *text, const char *key);
void pli_json_list_end(pli_text *text);

void pli_json_i64(pli_text *text, const char *key, int64_t value);
void pli_json_u64(pli_text *text, const char *key, uint64_t value);
void pli_json_f64(pli_text *text, const char *key, double value);       /* %.17g; null for NaN and infinities   */
void pli_json_short(pli_text *text, const char *key, double value);     /* in the fewest digits that read back    */
void pli_json_text(pli_text *text, const char *key, const char *value); /* escaped; NULL gives null             */
void pli_json_hex(pli_text *text, const char *key, const void *bytes, size_t n); /* "00ff": a byte two digits   */
void pli_json_bool(pli_text *text, const char *key, bool value);
void pli_json_null(pli_text *text, const char *key);
void pli_json_raw(pli_text *text, const char *key, const char *json); /* JSON as it stands; NULL gives null     */
/** What jansson has, as it writes it without spaces. Sets text->failed without memory. */
void pli_json_value(pli_text *text, const char *key, const json_t *value);
/** The same with its keys in their order, and in ASCII alone, for terminals. */
void pli_json_value_sorted(pli_text *text, const char *key, const json_t *value);
void pli_json_value_ascii(pli_text *text, const char *key, const json_t *value);

/* --- read --------------------------------------------------------------------------------------------------------- */

/* Where, and what is wrong. */
typedef json_error_t pli_json_where;

/** The value that text [bytes] is; json_decref is the caller's. NULL: it is none, or a key stands twice; *where_out
 *  (may be NULL) has line and text. */
json_t *pli_json_read(const char *text, size_t bytes, pli_json_where *where_out);

/** The text or number of this key; NULL or instead where it is not there, or something else. */
static inline const char *pli_json_text_of(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}
static inline double pli_json_number_of(const json_t *object, const char *key, double instead) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : instead;
}

#endif
