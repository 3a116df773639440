/* JSON as the contract wants it: numbers in %.17g, null for what does not apply, never NaN. */
#include "watch/watch.h"

#include <inttypes.h>

void pli_json_begin(pli_text *text) { pli_text_add(text, "{"); }
void pli_json_end(pli_text *text) { pli_text_add(text, "}"); }

static void add_key(pli_text *text, const char *key) {
    bool first = text->length > 0 && text->data[text->length - 1] == '{';
    pli_text_add(text, first ? "" : ", ");
    pli_text_add_quoted(text, key);
    pli_text_add(text, ": ");
}

void pli_json_raw(pli_text *text, const char *key, const char *json) {
    add_key(text, key);
    pli_text_add(text, "%s", json);
}

void pli_json_null(pli_text *text, const char *key) { pli_json_raw(text, key, "null"); }
void pli_json_bool(pli_text *text, const char *key, bool value) { pli_json_raw(text, key, value ? "true" : "false"); }

void pli_json_i64(pli_text *text, const char *key, int64_t value) {
    add_key(text, key);
    pli_text_add(text, "%" PRId64, value);
}

void pli_json_f64(pli_text *text, const char *key, double value) {
    char number[32];
    pli_format_json_f64(value, number);
    pli_json_raw(text, key, number);
}

void pli_json_text(pli_text *text, const char *key, const char *value) {
    if (value == NULL) {
        pli_json_null(text, key);
        return;
    }
    add_key(text, key);
    pli_text_add_quoted(text, value);
}
