/* The format of a data set: as asked for, as the model's was, or judged by content. */
#include <string.h>

#include "data/dataset/dataset.h"
#include "data/formats/chars.h"
#include "data/formats/foreign.h"
#include "data/formats/idx.h"
#include "data/formats/npy.h"
#include "data/formats/vw/vw.h"

/* Is the row's first index longer than any number in a table? Then it is too large to be read, but it is meant as an
 * index. */
static bool has_endless_index(const unsigned char *p, const unsigned char *end) {
    enum { ENDLESS = 1000 };
    while (p < end && *p > ' ') p++;
    while (p < end && (*p == ' ' || *p == '\t')) p++;
    const unsigned char *digits = p;
    while (p < end && (unsigned)(*p - '0') < 10) p++;
    return p - digits > ENDLESS;
}

/* Does the first line with contents look like "label index:value"? */
static bool looks_like_libsvm(const pli_source *source) {
    const unsigned char *p = source->data + source->begin, *end = source->data + source->bytes;
    if (end - p > 1 << 16) end = p + (1 << 16);
    for (p = pli_libsvm_row(p, end); p < end; p = pli_libsvm_row(p, end)) {
        const unsigned char *newline = memchr(p, '\n', (size_t)(end - p)), *stop = newline != NULL ? newline : end;
        for (const unsigned char *at = p; at < stop; at++) {
            if (*at == ',' || *at == ';' || *at == '"' || *at == '|') return false;
            if (*at == ':')
                return at > p && ((unsigned)(at[-1] - '0') < 10 || (at - p >= 3 && memcmp(at - 3, "qid", 3) == 0));
        }
        if (has_endless_index(p, stop)) return true;
        p = stop;
    }
    return false;
}

static const struct {
    const char     *name;
    pli_data_format format;
} formats[] = { { "auto", PLI_FORMAT_NONE },
                { "libsvm", PLI_FORMAT_LIBSVM },
                { "csv", PLI_FORMAT_TABLE },
                { "tsv", PLI_FORMAT_TABLE },
                { "idx", PLI_FORMAT_IDX },
                { "text", PLI_FORMAT_CHARS },
                { "vw", PLI_FORMAT_VW },
                { "ratings", PLI_FORMAT_TABLE },
                { "npy", PLI_FORMAT_NPY } };
enum { FORMATS = sizeof formats / sizeof *formats };

static plait_status format_by_name(const char *name, pli_data_format *format_out, plait_error *err) {
    const char *names[FORMATS];
    for (int k = 0; k < FORMATS; k++) {
        names[k] = formats[k].name;
        if (strcmp(names[k], name) != 0) continue;
        *format_out = formats[k].format;
        return PLAIT_OK;
    }
    const char *near = pli_nearest(name, names, FORMATS);
    return pli_fail(err, PLAIT_ENAME, "no data format \"%s\"%s%s%s; expected auto, libsvm, csv, tsv, idx, text, vw, "
                    "ratings or npy",
                    name, near != NULL ? ", did you mean " : "", near != NULL ? near : "", near != NULL ? "?" : "");
}

const char *pli_format_text(pli_data_format format) {
    static const char *const texts[] = { [PLI_FORMAT_LIBSVM] = "libsvm",
                                         [PLI_FORMAT_TABLE] = "csv or tsv",
                                         [PLI_FORMAT_IDX] = "idx",
                                         [PLI_FORMAT_CHARS] = "text",
                                         [PLI_FORMAT_VW] = "vw",
                                         [PLI_FORMAT_NPY] = "npy" };
    return texts[format];
}

/* Judges by content; if a text could have several formats, the model's own comes first. */
static pli_data_format judge_format(const pli_source *source, pli_data_format fixed, bool delimited) {
    if (pli_idx_is(source->data, source->bytes)) return PLI_FORMAT_IDX;
    if (pli_npy_is(source->data, source->bytes)) return PLI_FORMAT_NPY;
    if (delimited) return PLI_FORMAT_TABLE;
    if (fixed != PLI_FORMAT_NONE && fixed != PLI_FORMAT_IDX) return fixed;
    if (pli_vw_is(source)) return PLI_FORMAT_VW;
    if (looks_like_libsvm(source)) return PLI_FORMAT_LIBSVM;
    return pli_chars_is(source) ? PLI_FORMAT_CHARS : PLI_FORMAT_TABLE;
}

/* Has the first line commas, but no index:value? */
static bool begins_as_table(const pli_source *source) {
    const unsigned char *newline = source->bytes > 0 ? memchr(source->data, '\n', source->bytes) : NULL;
    const size_t         length = newline != NULL ? (size_t)(newline - source->data) : source->bytes;
    return length > 0 && memchr(source->data, ',', length) != NULL && memchr(source->data, ':', length) == NULL;
}

plait_status pli_format_choose(const plait_data_opts *opts, const pli_sources *sources, const pli_schema *fixed,
                               pli_data_format *format_out, plait_error *err) {
    const pli_data_format known = fixed != NULL ? fixed->format : PLI_FORMAT_NONE;
    pli_data_format       format = PLI_FORMAT_NONE;
    PLI_TRY(format_by_name(opts->format != NULL ? opts->format : "auto", &format, err));
    const bool by_content = format == PLI_FORMAT_NONE && opts->delimiter == NULL && known != PLI_FORMAT_CHARS;
    for (int64_t i = 0; by_content && i < sources->n; i++)
        PLI_TRY(pli_foreign_check_text(&sources->source[i], err));
    if (format == PLI_FORMAT_NONE) format = judge_format(&sources->source[0], known, opts->delimiter != NULL);
    if (format == PLI_FORMAT_CHARS && opts->pairs != 0 && by_content) format = PLI_FORMAT_TABLE;
    if (known == PLI_FORMAT_LIBSVM && by_content && begins_as_table(&sources->source[0]))
        return pli_fail(err, PLAIT_EINVAL,
                        "%s: the model was trained on libsvm rows (label index:value ...), but this looks like a "
                        "table; write it as libsvm rows with the same indices, or train on a table like this one",
                        sources->source[0].path);
    const bool numbered = format == PLI_FORMAT_LIBSVM || (by_content && looks_like_libsvm(&sources->source[0]));
    if (known == PLI_FORMAT_TABLE && opts->pairs != 0 && numbered)
        return pli_fail(err, PLAIT_EINVAL,
                        "%s: these are libsvm rows (label index:value ...), but a factorisation takes a user and an "
                        "item in each line, as \"user item\" or \"user item value\" (--format ratings), with the "
                        "names that its training data had", sources->source[0].path);
    const bool as_table = known == PLI_FORMAT_TABLE && format == PLI_FORMAT_NPY;
    if (known != PLI_FORMAT_NONE && known != format && !as_table)
        return pli_fail(err, PLAIT_EINVAL, "%s: the model was trained on %s, but this is %s", sources->source[0].path,
                        pli_format_text(known), pli_format_text(format));
    *format_out = format;
    return PLAIT_OK;
}
