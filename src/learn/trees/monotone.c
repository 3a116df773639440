/* Monotone constraints: the user knows that scores may only rise, or only fall, as a feature grows. A split by such a
 * feature is taken only if its children's values are in that order, and all leaves below stay on their side of the
 * middle between them; so the order holds for the whole tree, and for a sum of trees. A missing value is no place on
 * the feature's axis, and is not bound by it.
 *
 * Papers: XGBoost and LightGBM do the same (LightGBM's method "basic"); Auguste, Malory and Smirnov, "A better method
 * to enforce monotonic constraints in regression and classification trees", 2020, describe it, and better ones. */
#include <stdio.h>
#include <string.h>

#include "learn/trees/sums.h"

enum { NAMES = 1000, NAME_BYTES = 64 }; /* what an error looks through for the nearest name */

/* Fails, since the data have no feature of the given name [n bytes], and names the nearest. */
static plait_status refuse_name(const pli_schema *schema, const pli_bins *bins, const char *given, size_t n,
                                plait_error *err) {
    const int64_t features = bins->features;
    const size_t count = features < NAMES ? (size_t)features : NAMES;
    char(*name)[NAME_BYTES] = pli_array(count + 1, sizeof *name);
    const char **list = pli_array(count + 1, sizeof *list);
    pli_text     text = { 0 };
    bool         made = name != NULL && list != NULL;
    for (size_t f = 0; made && f < count; f++) {
        text.length = 0;
        pli_fields_name(bins->fields, schema, (int64_t)f, &text);
        made = !text.failed;
        if (made) snprintf(name[f], sizeof name[f], "%.*s", (int)text.length, text.data);
        list[f] = name[f];
    }
    if (made) snprintf(name[count], sizeof name[count], "%.*s", (int)(n < NAME_BYTES ? n : NAME_BYTES), given);
    if (made) pli_fail_unknown(err, "feature", name[count], list, count);
    else pli_fail(err, PLAIT_ENOMEM, "no memory for names of features");
    pli_text_free(&text);
    pli_free(list);
    pli_free(name);
    return pli_fail_at(err, "monotone");
}

/* One word: a sign and a name. */
static plait_status read_word(const pli_schema *schema, const pli_bins *bins, const char *word, size_t n, int8_t *sign,
                              plait_error *err) {
    pli_text     name = { 0 };
    plait_status status = PLAIT_ENAME;
    if (n < 2 || (word[0] != '+' && word[0] != '-'))
        return pli_fail(err, PLAIT_EINVAL, "monotone: '%.*s': expected names of features with signs, as in +age,-price",
                        (int)(n < 100 ? n : 100), word);
    for (int64_t f = 0; f < bins->features && status == PLAIT_ENAME; f++) {
        name.length = 0;
        pli_fields_name(bins->fields, schema, f, &name);
        if (name.failed) status = pli_fail(err, PLAIT_ENOMEM, "no memory for names of features");
        else if (name.length == n - 1 && memcmp(name.data, word + 1, n - 1) == 0) status = PLAIT_OK;
        if (status == PLAIT_OK && pli_field_is_text(bins->fields, f))
            status = pli_fail(err, PLAIT_EREFUSED, "monotone: '%.*s' is refused: a column of texts has no order; take "
                                                   "--categories apart, and the name of one text",
                              (int)(n < 100 ? n - 1 : 99), word + 1);
        if (status != PLAIT_OK || bins->place[f] < 0) continue;
        const int8_t given = word[0] == '+' ? 1 : -1;
        if (sign[bins->place[f]] == -given)
            status = pli_fail(err, PLAIT_EINVAL, "monotone: '%.*s' is to rise and to fall; name it once",
                              (int)(n < 100 ? n - 1 : 99), word + 1);
        else sign[bins->place[f]] = given;
    }
    pli_text_free(&name);
    if (status != PLAIT_ENAME) return status;
    return refuse_name(schema, bins, word + 1, n - 1, err);
}

plait_status pli_monotone_read(const pli_schema *schema, const pli_bins *bins, const char *text, int8_t *sign,
                               plait_error *err) {
    memset(sign, 0, (size_t)bins->used * sizeof *sign);
    for (const char *at = text; *at != '\0';) {
        const size_t n = strcspn(at, ",");
        PLI_TRY(read_word(schema, bins, at, n, sign, err));
        at += n;
        if (*at == ',' && *++at == '\0')
            return pli_fail(err, PLAIT_EINVAL, "monotone: '%.100s' ends with a comma", text);
    }
    return PLAIT_OK;
}
