/* The header of an npy file, and its elements; npy.h says what they are. */
#include "data/formats/npy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAGIC = 6, HEADER_BYTES_MAX = 1 << 20 };

bool pli_npy_is(const unsigned char *data, size_t bytes) {
    return bytes >= MAGIC && memcmp(data, "\x93NUMPY", MAGIC) == 0;
}

/* --- the dictionary --------------------------------------------------------------------------------------------- */

/* A literal of Python is read from left to right; `at` is where it goes on. */
typedef struct literal {
    const char          *name;
    const unsigned char *data, *at, *end;
    plait_error         *err;
} literal;

static plait_status expected(const literal *l, const char *what) {
    return pli_fail(l->err, PLAIT_EFORMAT, "%s: byte %zu: expected %s in the header of an npy file: it is damaged",
                    l->name, (size_t)(l->at - l->data), what);
}

static void skip(literal *l) {
    while (l->at < l->end && (*l->at == ' ' || *l->at == '\n' || *l->at == '\t' || *l->at == '\r')) l->at++;
}

static bool take(literal *l, char sign) {
    skip(l);
    const bool there = l->at < l->end && *l->at == (unsigned char)sign;
    l->at += there;
    return there;
}

static bool take_word(literal *l, const char *word) {
    const size_t n = strlen(word);
    skip(l);
    const bool there = (size_t)(l->end - l->at) >= n && memcmp(l->at, word, n) == 0;
    l->at += there ? n : 0;
    return there;
}

/* 'text' or "text", without escapes; longer ones are cut, since no known word is as long. */
static plait_status take_text(literal *l, char *to, size_t room) {
    skip(l);
    const unsigned char quote = l->at < l->end ? *l->at : 0;
    if (quote != '\'' && quote != '"') return expected(l, "a quoted word");
    const unsigned char *from = ++l->at, *stop = memchr(from, quote, (size_t)(l->end - from));
    if (stop == NULL) return expected(l, "the end of a quoted word");
    snprintf(to, room, "%.*s", (int)((size_t)(stop - from) < room ? (size_t)(stop - from) : room - 1),
             (const char *)from);
    l->at = stop + 1;
    return PLAIT_OK;
}

/* 1000, or 1000L as Python 2 wrote it. */
static plait_status take_length(literal *l, int64_t *length_out) {
    int64_t length = 0;
    skip(l);
    if (l->at >= l->end || (unsigned)(*l->at - '0') >= 10) return expected(l, "a length");
    for (; l->at < l->end && (unsigned)(*l->at - '0') < 10; l->at++) {
        if (length > (INT64_MAX - 9) / 10) return expected(l, "a length below 2^63");
        length = length * 10 + (*l->at - '0');
    }
    if (l->at < l->end && *l->at == 'L') l->at++;
    *length_out = length;
    return PLAIT_OK;
}

/* --- what it says ----------------------------------------------------------------------------------------------- */

typedef struct header {
    char    descr[24];
    bool    is_record, has_descr, has_order, has_shape, fortran;
    int32_t axes;
    int64_t length[2];
    char    shape[80]; /* for errors */
} header;

/* The fields of a record are lists in brackets: read past them. */
static plait_status skip_record(literal *l) {
    int depth = 0;
    char word[2];
    do {
        if (take(l, '[') || take(l, '(')) depth++;
        else if (take(l, ']') || take(l, ')')) depth--;
        else if (l->at < l->end && (*l->at == '\'' || *l->at == '"')) PLI_TRY(take_text(l, word, sizeof word));
        else if (l->at < l->end) l->at++;
        else return expected(l, "the end of a list");
    } while (depth > 0);
    return PLAIT_OK;
}

static plait_status take_shape(literal *l, header *h) {
    if (!take(l, '(')) return expected(l, "a shape in brackets");
    size_t used = 0;
    for (h->axes = 0; !take(l, ')'); h->axes++) {
        int64_t length = 0;
        PLI_TRY(take_length(l, &length));
        if (h->axes < 2) h->length[h->axes] = length;
        if (used + 24 < sizeof h->shape)
            used += (size_t)snprintf(h->shape + used, sizeof h->shape - used, "%s%lld", h->axes > 0 ? ", " : "",
                                     (long long)length);
        if (h->axes == 32) return expected(l, "at most 32 axes");
        if (take(l, ',')) continue;
        if (!take(l, ')')) return expected(l, "a comma or the end of the shape");
        h->axes++;
        break;
    }
    h->has_shape = true;
    return PLAIT_OK;
}

static plait_status take_entry(literal *l, header *h) {
    char key[24];
    PLI_TRY(take_text(l, key, sizeof key));
    if (!take(l, ':')) return expected(l, "a colon");
    skip(l);
    if (strcmp(key, "descr") == 0) {
        h->has_descr = true;
        h->is_record = l->at < l->end && (*l->at == '[' || *l->at == '(');
        return h->is_record ? skip_record(l) : take_text(l, h->descr, sizeof h->descr);
    }
    if (strcmp(key, "fortran_order") == 0) {
        h->has_order = true;
        h->fortran = take_word(l, "True");
        return h->fortran || take_word(l, "False") ? PLAIT_OK : expected(l, "True or False");
    }
    if (strcmp(key, "shape") == 0) return take_shape(l, h);
    return expected(l, "one of the keys descr, fortran_order and shape");
}

static plait_status take_header(literal *l, header *h) {
    if (!take(l, '{')) return expected(l, "{");
    while (!take(l, '}')) {
        PLI_TRY(take_entry(l, h));
        if (take(l, ',')) continue;
        if (!take(l, '}')) return expected(l, "a comma or }");
        break;
    }
    skip(l);
    if (l->at != l->end) return expected(l, "blanks up to the elements");
    return h->has_descr && h->has_order && h->has_shape ? PLAIT_OK
                                                        : expected(l, "the keys descr, fortran_order and shape");
}

/* --- which arrays are read -------------------------------------------------------------------------------------- */

static const char *no_number(char kind) {
    switch (kind) {
    case 'O': return "Python objects";
    case 'U':
    case 'S':
    case 'T': return "texts";
    case 'c': return "complex numbers";
    case 'M':
    case 'm': return "times";
    default: return "records or bytes";
    }
}

static plait_status set_type(const char *name, const header *h, pli_npy_array *a, plait_error *err) {
    static const char sizes[][5] = { "f248", "i1248", "u1248", "b1" };
    const char        order = h->descr[0], digits = h->descr[1] != '\0' ? h->descr[2] : '\0';
    const bool        is_short = h->descr[1] != '\0' && digits != '\0' && h->descr[3] == '\0';
    bool              known = false;
    for (size_t i = 0; !h->is_record && is_short && i < sizeof sizes / sizeof *sizes; i++)
        known = known || (sizes[i][0] == h->descr[1] && memchr(sizes[i] + 1, digits, 4) != NULL);
    if (!known || (order != '<' && order != '>' && order != '|' && order != '='))
        return pli_fail(err, PLAIT_EFORMAT,
                        "%s: it holds %s%s%s%s, and rows are numbers: save them as numbers, as "
                        "`numpy.save(\"rows.npy\", array.astype(\"float32\"))` does, or texts as CSV", name,
                        h->is_record ? "records" : no_number(h->descr[0] != '\0' ? h->descr[1] : '\0'),
                        h->is_record ? "" : " (", h->is_record ? "" : h->descr, h->is_record ? "" : ")");
    a->kind = h->descr[1];
    a->item = (size_t)(digits - '0');
    a->swapped = order == '>' && a->item > 1;
    return PLAIT_OK;
}

static plait_status set_shape(const char *name, const header *h, pli_npy_array *a, plait_error *err) {
    if (h->axes < 1 || h->axes > 2)
        return pli_fail(err, PLAIT_EFORMAT,
                        "%s: it has %d axes (%s), and rows are an array of two: save it as "
                        "`numpy.save(\"rows.npy\", array.reshape(len(array), -1))` does", name, h->axes,
                        h->axes > 0 ? h->shape : "one number");
    for (int32_t i = 0; i < h->axes; i++)
        if (h->length[i] == 0) return pli_fail(err, PLAIT_EFORMAT, "%s: axis %d has a length of 0: no rows", name, i);
    a->axes = h->axes;
    a->rows = h->length[0];
    a->columns = h->axes == 2 ? h->length[1] : 1;
    a->fortran = h->fortran && h->axes == 2;
    return PLAIT_OK;
}

/* Are there as many bytes as the header says? */
static plait_status check_bytes(const char *name, size_t bytes, const pli_npy_array *a, plait_error *err) {
    const uint64_t    there = bytes - a->begin;
    const bool        too_many = (uint64_t)a->rows > there / a->item / (uint64_t)a->columns;
    const uint64_t    needs = too_many ? there : (uint64_t)a->rows * (uint64_t)a->columns * a->item;
    if (too_many)
        return pli_fail(err, PLAIT_EFORMAT,
                        "%s: cut short: its header promises %lld x %lld numbers of %zu bytes from byte %zu on, and "
                        "there are %llu bytes: save it again", name, (long long)a->rows, (long long)a->columns,
                        a->item, a->begin, (unsigned long long)there);
    if (needs < there)
        return pli_fail(err, PLAIT_EFORMAT,
                        "%s: byte %llu: %llu bytes follow the array that the header describes: save each array in a "
                        "file of its own", name, (unsigned long long)(a->begin + needs),
                        (unsigned long long)(there - needs));
    return PLAIT_OK;
}

plait_status pli_npy_read(const char *name, const unsigned char *data, size_t bytes, pli_npy_array *array_out,
                          plait_error *err) {
    if (!pli_npy_is(data, bytes))
        return pli_fail(err, PLAIT_EFORMAT, "%s: expected an npy file, as numpy.save writes (it begins \\x93NUMPY)",
                        name);
    const int    major = bytes > MAGIC + 2 ? data[MAGIC] : 0;
    const size_t field = major == 1 ? 2 : 4, front = MAGIC + 2 + field;
    size_t       length = 0;
    if (bytes < front) return pli_fail(err, PLAIT_EFORMAT, "%s: cut short in its header, at byte %zu", name, bytes);
    if (major < 1 || major > 3)
        return pli_fail(err, PLAIT_EVERSION, "%s: byte %d: npy version %d: versions 1 to 3 are read; save it again by "
                                             "numpy.save", name, MAGIC, major);
    for (size_t i = 0; i < field; i++) length |= (size_t)data[MAGIC + 2 + i] << 8 * i;
    if (length > HEADER_BYTES_MAX || length > bytes - front)
        return pli_fail(err, PLAIT_EFORMAT, "%s: byte %d: a header of %zu bytes, and the file has %zu: cut short or "
                                            "altered", name, MAGIC + 2, length, bytes);
    literal       l = { name, data, data + front, data + front + length, err };
    header        h = { .axes = 0 };
    pli_npy_array a = { .begin = front + length };
    PLI_TRY(take_header(&l, &h));
    PLI_TRY(set_type(name, &h, &a, err));
    PLI_TRY(set_shape(name, &h, &a, err));
    PLI_TRY(check_bytes(name, bytes, &a, err));
    *array_out = a;
    return PLAIT_OK;
}

/* --- elements --------------------------------------------------------------------------------------------------- */

/* IEEE's half: sign, 5 bits of exponent, 10 of fraction. */
static double half(uint16_t x) {
    const int    exponent = x >> 10 & 31, fraction = x & 1023;
    const double size = exponent == 31  ? (fraction != 0 ? (double)NAN : (double)INFINITY)
                        : exponent == 0 ? ldexp(fraction, -24)
                                        : ldexp(1024 + fraction, exponent - 25);
    return (x & 0x8000) != 0 ? -size : size;
}

static double float_of(uint64_t bits, size_t item) {
    const uint32_t low = (uint32_t)bits;
    float          single;
    double         wide;
    if (item == 2) return half((uint16_t)bits);
    memcpy(&single, &low, sizeof single);
    memcpy(&wide, &bits, sizeof wide);
    return item == 4 ? (double)single : wide;
}

double pli_npy_element(const pli_npy_array *a, const unsigned char *at) {
    uint64_t bits = 0;
    for (size_t i = 0; i < a->item; i++) bits |= (uint64_t)at[a->swapped ? a->item - 1 - i : i] << 8 * i;
    if (a->kind == 'f') return float_of(bits, a->item);
    if (a->kind != 'i') return (double)bits;
    const int unused = 64 - 8 * (int)a->item;
    return (double)((int64_t)(bits << unused) >> unused);
}
