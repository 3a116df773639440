/* A column of an Arrow record batch: which type it has, whether its parts hold what they promise, and its cells.
 *
 * The layouts are those of https://arrow.apache.org/docs/format/Columnar.html. A cell's place is the array's offset and
 * its number; buffers[0] has a bit for each place: is there a value? NULL: there is one everywhere. */
#include <math.h>
#include <string.h>

#include "data/dataset/arrow.h"

/* --- types -------------------------------------------------------------------------------------------------------- */

static bool is_number(const char *format) { return strlen(format) == 1 && strchr("nbcCsSiIlLfg", *format) != NULL; }
static bool is_index(const char *format) { return strlen(format) == 1 && strchr("cCsSiIlL", *format) != NULL; }
static bool is_view(const char *format) { return strcmp(format, "vu") == 0; }
static bool is_text(const char *format) { return !strcmp(format, "u") || !strcmp(format, "U") || is_view(format); }

static const char *name_of(const struct ArrowSchema *schema) { return schema->name != NULL ? schema->name : ""; }

plait_status pli_arrow_kind_of(const struct ArrowSchema *schema, pli_arrow_kind *kind_out, plait_error *err) {
    const char               *format = schema->format != NULL ? schema->format : "";
    const struct ArrowSchema *words = schema->dictionary;
    if (words != NULL && words->format != NULL && is_text(words->format) && words->dictionary == NULL &&
        is_index(format))
        *kind_out = PLI_ARROW_TEXTS;
    else if (words == NULL && is_text(format)) *kind_out = PLI_ARROW_TEXTS;
    else if (words == NULL && is_number(format)) *kind_out = PLI_ARROW_NUMBERS;
    else
        return pli_fail(err, PLAIT_EINVAL,
                        "column \"%.60s\" has Arrow's type \"%.20s\"%s: expected numbers, truth values or texts",
                        name_of(schema), format, words != NULL ? " with a dictionary of another type" : "");
    return PLAIT_OK;
}

/* --- are its parts right? ----------------------------------------------------------------------------------------- */

static plait_status wrong(const struct ArrowSchema *schema, const char *what, plait_error *err) {
    return pli_fail(err, PLAIT_EINVAL, "column \"%.60s\": the Arrow array is wrong: %s", name_of(schema), what);
}

static int64_t buffers_of(const char *format) {
    return strcmp(format, "n") == 0 ? 0 : is_view(format) ? 3 : is_text(format) ? 3 : 2;
}

/* Views have their texts' buffers and, in the last one, the sizes of those, so more buffers than 3 are right. */
static plait_status check_buffers(const struct ArrowSchema *schema, const struct ArrowArray *array, plait_error *err) {
    const int64_t want = buffers_of(schema->format);
    if (is_view(schema->format) ? array->n_buffers < want : array->n_buffers != want)
        return wrong(schema, "it has another number of buffers than its type", err);
    if (want > 0 && (array->buffers == NULL || (array->length > 0 && array->buffers[1] == NULL)))
        return wrong(schema, "a buffer is NULL", err);
    const int64_t last = array->n_buffers - 1;
    if (is_view(schema->format) && last > 2 && array->buffers[last] == NULL)
        return wrong(schema, "the sizes of its texts are NULL", err);
    return PLAIT_OK;
}

static plait_status check_counts(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t from,
                                 int64_t rows, plait_error *err) {
    int64_t end;
    if (array->length < 0 || array->offset < 0 || __builtin_add_overflow(array->length, array->offset, &end) ||
        end > INT64_MAX / 32 || from > array->length || array->length - from < rows)
        return wrong(schema, "its length or offset is out of range", err);
    return PLAIT_OK;
}

plait_status pli_arrow_check(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t from,
                             int64_t rows, plait_error *err) {
    if (array == NULL) return wrong(schema, "it is NULL", err);
    PLI_TRY(check_counts(schema, array, from, rows, err));
    PLI_TRY(check_buffers(schema, array, err));
    if (schema->dictionary == NULL) return PLAIT_OK;
    if (array->dictionary == NULL) return wrong(schema, "it has no dictionary", err);
    return pli_arrow_check(schema->dictionary, array->dictionary, 0, 0, err);
}

/* --- cells -------------------------------------------------------------------------------------------------------- */

static bool bit_of(const void *bits, int64_t at) { return (((const uint8_t *)bits)[at >> 3] >> (at & 7) & 1) != 0; }

static bool is_missing(const struct ArrowArray *array, int64_t at) {
    return array->n_buffers == 0 || (array->buffers[0] != NULL && !bit_of(array->buffers[0], at));
}

static double value_at(char format, const void *values, int64_t at) {
    switch (format) {
    case 'b': return bit_of(values, at);
    case 'c': return ((const int8_t *)values)[at];
    case 'C': return ((const uint8_t *)values)[at];
    case 's': return ((const int16_t *)values)[at];
    case 'S': return ((const uint16_t *)values)[at];
    case 'i': return ((const int32_t *)values)[at];
    case 'I': return ((const uint32_t *)values)[at];
    case 'l': return (double)((const int64_t *)values)[at];
    case 'L': return (double)((const uint64_t *)values)[at];
    case 'f': return (double)((const float *)values)[at];
    case 'g': return ((const double *)values)[at];
    default: return (double)NAN;
    }
}

double pli_arrow_number(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t i) {
    const int64_t at = array->offset + i;
    return is_missing(array, at) ? (double)NAN : value_at(*schema->format, array->buffers[1], at);
}

/* A view has a length and, up to 12 bytes, the text itself; of longer ones the buffer and the place that has it. */
static bool view_at(const struct ArrowArray *array, int64_t at, pli_arrow_text *out) {
    const uint8_t *view = (const uint8_t *)array->buffers[1] + 16 * at;
    int32_t        length, place[2];
    memcpy(&length, view, sizeof length);
    memcpy(place, view + 8, sizeof place);
    *out = (pli_arrow_text){ (const char *)view + 4, length };
    if (length >= 0 && length <= 12) return true;
    const int64_t texts = array->n_buffers - 3;
    if (length < 0 || place[0] < 0 || place[0] >= texts || place[1] < 0 || array->buffers[2 + place[0]] == NULL)
        return false;
    out->data = (const char *)array->buffers[2 + place[0]] + place[1];
    return ((const int64_t *)array->buffers[array->n_buffers - 1])[place[0]] - place[1] >= length;
}

static bool text_between(const struct ArrowArray *array, int64_t from, int64_t to, pli_arrow_text *out) {
    const char *texts = array->buffers[2];
    *out = (pli_arrow_text){ texts != NULL ? texts + (from > 0 ? from : 0) : "", to - from };
    return from >= 0 && to >= from && (texts != NULL || to == from);
}

static plait_status plain_text_at(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t i,
                                  pli_arrow_text *out, plait_error *err) {
    const int64_t  at = array->offset + i;
    const int32_t *small = array->buffers[1];
    const int64_t *large = array->buffers[1];
    *out = (pli_arrow_text){ NULL, 0 };
    if (is_missing(array, at)) return PLAIT_OK;
    const bool good = is_view(schema->format)  ? view_at(array, at, out)
                      : *schema->format == 'u' ? text_between(array, small[at], small[at + 1], out)
                                               : text_between(array, large[at], large[at + 1], out);
    if (!good) return wrong(schema, "a text lies outside of its buffer", err);
    if (out->length > 0 && memchr(out->data, 0, (size_t)out->length) != NULL)
        return pli_fail(err, PLAIT_EINVAL, "column \"%.60s\": a text has a byte 0", name_of(schema));
    return PLAIT_OK;
}

plait_status pli_arrow_text_at(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t i,
                               pli_arrow_text *text_out, plait_error *err) {
    if (schema->dictionary == NULL) return plain_text_at(schema, array, i, text_out, err);
    const double index = pli_arrow_number(schema, array, i);
    *text_out = (pli_arrow_text){ NULL, 0 };
    if (isnan(index)) return PLAIT_OK;
    if (!(index >= 0 && index < (double)array->dictionary->length))
        return wrong(schema, "an index is outside of its dictionary", err);
    return plain_text_at(schema->dictionary, array->dictionary, (int64_t)index, text_out, err);
}
