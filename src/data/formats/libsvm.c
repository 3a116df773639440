/* LIBSVM text straight into CSR.
 *
 * Most entries are plain, "123456:1 ", and are read by plain.h. The loop over the entries of a line reads what is
 * between them: one branch-free read of up to eight digits, a test for ':', a test for a one-digit value, a store. All
 * rarer cases (long indices, other values, comments, qid, the end of the line) leave it by one branch. No test for the
 * end of the text is needed, since the caller gives whole lines and a newline always comes first. No test for room is
 * needed, since an entry takes at least four bytes of text, and room for a quarter of the text's length is reserved. */
#include "data/formats/libsvm.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "data/dataset/dataset.h"
#include "data/formats/plain.h"

typedef const unsigned char *cursor;

typedef struct parser {
    const pli_libsvm_rules *rules;
    pli_rows               *rows;
    pli_found              *found;
    pli_bad                *bad;
    plait_status            status;
    bool                    unsorted, too_wide; /* of the current line */
    uint64_t                query;              /* of the current line; 0: it names none */
    cursor                  to;                 /* the end of the text */
    int64_t                *given;              /* [origins] the last row that gave the feature; NULL: no origins */
} parser;

plait_status pli_bad_at(pli_bad *bad, const unsigned char *at, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(bad->text, sizeof bad->text, fmt, ap);
    va_end(ap);
    bad->at = at;
    return PLAIT_EFORMAT;
}

/* A few letters of the text for a message. */
static int shown(cursor p) {
    int n = 0;
    while (n < 24 && p[n] > ' ' && p[n] < 0x7f) n++;
    return n;
}

plait_status pli_bad_expected(pli_bad *bad, const unsigned char *at, const char *expected) {
    const int n = shown(at);
    if (n > 0) return pli_bad_at(bad, at, "%s, found \"%.*s\"", expected, n, (const char *)at);
    return pli_bad_at(bad, at, "%s, found %s", expected,
                      *at == '\n' || *at == '\r' ? "the end of the line" : "an unprintable byte");
}

void pli_found_free(pli_found *found) {
    pli_keymap_destroy(&found->labels);
    *found = (pli_found){ 0 };
}

bool pli_found_label(pli_found *found, double label) {
    label += 0.0; /* -0 is 0 */
    if (label < found->least_label) found->least_label = label;
    if (found->real_labels || (found->labels.n > 0 && (label == found->recent[0] || label == found->recent[1])))
        return true;
    if (isnan(label)) return true; /* a row without one */
    if (label != floor(label) || fabs(label) >= 9007199254740992.0 || /* from 2^53 on two integers are one double */
        found->labels.n > PLI_MAX_LABELS) {
        found->real_labels = true;
        return true;
    }
    uint64_t bits;
    memcpy(&bits, &label, 8);
    if (pli_keymap_add(&found->labels, bits) < 0) return false;
    found->recent[1] = found->labels.n == 1 ? label : found->recent[0];
    found->recent[0] = label;
    return true;
}

static bool is_blank(unsigned char c) { return c == ' ' || c == '\t'; }

static cursor skip_blanks(cursor p) {
    while (is_blank(*p)) p++;
    return p;
}
static cursor skip_line(cursor p) {
    while (*p != '\n') p++;
    return p + 1;
}
static bool at_end_of_line(cursor p) { return *p == '\n' || *p == '#' || (*p == '\r' && p[1] == '\n'); }

static cursor fail(parser *s, cursor at, const char *expected) {
    s->status = pli_bad_expected(s->bad, at, expected);
    return NULL;
}

static cursor no_memory(parser *s) {
    s->bad->at = NULL;
    s->status = PLAIT_ENOMEM;
    return NULL;
}

/* Reads the label. If the line begins with an entry and labels are optional, *out is NaN and nothing is read. */
static cursor read_label(parser *s, cursor p, double *out) {
    cursor end = pli_number_f64(p, out);
    if (end != NULL && (*end <= ' ' || *end == '#')) {
        s->found->passed_labels += s->rules->unlabelled;
        if (s->rules->unlabelled) *out = NAN;
        return end;
    }
    if ((end != NULL && *end == ':' && s->rules->label_is_optional) ||
        (s->rules->unlabelled && memcmp(p, "qid:", 4) == 0)) {
        *out = NAN;
        return p;
    }
    if (end != NULL && *end == ':')
        return fail(s, p, "expected a label before the first index:value (--label none reads rows without labels)");
    return fail(s, p, "expected a label (a finite number)");
}

/* Reads an index of any length; NULL: there is no "digits:" here, or it is too large (then s->status is set). */
static cursor read_long_index(parser *s, cursor p, uint64_t *out) {
    uint64_t index = 0;
    cursor   at = p;
    for (; (unsigned)(*at - '0') < 10; at++) {
        if (index > (INT64_MAX - (uint64_t)(*at - '0')) / 10)
            return fail(s, p, "expected an index below 9223372036854775808 (2^63)");
        index = index * 10 + (uint64_t)(*at - '0');
    }
    *out = index;
    return at > p && *at == ':' ? at : NULL;
}

/* Reads the number of a query; 0 is none, so *out is one more. NULL: there is none, or it is too large. */
static cursor read_query(cursor p, uint64_t *out) {
    const cursor from = p;
    uint64_t     id = 0;
    for (; (unsigned)(*p - '0') < 10 && id <= UINT32_MAX; p++) id = id * 10 + (uint64_t)(*p - '0');
    *out = id + 1;
    return p > from && id <= UINT32_MAX && *p <= ' ' ? p : NULL;
}

/* Reads what is no plain entry: the end of the line (*ended is set), or qid:N. Returns the place behind it. */
static cursor read_odd(parser *s, cursor p, bool *ended) {
    if (at_end_of_line(p)) {
        *ended = true;
        return skip_line(p);
    }
    if (memcmp(p, "qid:", 4) == 0) {
        const cursor end = read_query(p + 4, &s->query);
        if (end == NULL) return fail(s, p, "expected qid:number, below 2^32");
        s->found->qids++;
        return end;
    }
    return fail(s, p, "expected index:value with an index that is a whole number");
}

/* Reads the float behind "index:". */
static cursor read_value(parser *s, cursor p, float *out) {
    cursor end = pli_number_f32(p, out);
    if (end == NULL || (*end > ' ' && *end != '#')) return fail(s, p, "expected a finite value after index:");
    return end;
}

/* An index that fits is its own hash, so indices below 2^bits do not collide and rows stay in order. */
static inline uint64_t hashed(uint64_t index, uint64_t bits) {
    return (index ^ pli_hash_u64(index >> bits)) & ((UINT64_C(1) << bits) - 1);
}

/* Adds the entries of a line to the rows, but does not end the row. Returns the start of the next line; NULL:
 * failed, or s->too_wide. */
static inline cursor read_entries(parser *s, cursor p, const bool wide) {
    pli_block     *b = &s->rows->b;
    const uint64_t base = (uint64_t)s->rules->base, hash_bits = (uint64_t)s->rules->hash_bits;
    const uint64_t limit = !wide && s->rules->limit > UINT32_MAX && hash_bits == 0 ? UINT32_MAX : s->rules->limit;
    const bool     may_be_plain = !wide && hash_bits == 0;
    pli_entries    e = { .n = b->entries, .max = s->found->max_index, .least = UINT64_MAX };
    float         *values = b->value;
    bool           plain = may_be_plain;
    for (;;) {
        uint64_t index;
        if (pli_likely(*p == ' ')) p++;
        if (plain && values == NULL) p = pli_plain_read(b, p, base, limit, true, &e);
        else if (plain) p = pli_plain_read(b, p, base, limit, false, &e);
        int    digits = pli_digits8(p, &index);
        cursor colon = p + digits;
        if (pli_unlikely(*colon != ':' || digits == 0)) {
            if (is_blank(*p)) {
                p = skip_blanks(p);
                continue;
            }
            colon = digits == 8 ? read_long_index(s, p, &index) : NULL;
            if (colon == NULL) {
                bool ended = false;
                p = s->status == PLAIT_OK ? read_odd(s, p, &ended) : NULL;
                if (p == NULL) return NULL;
                if (ended) break;
                continue;
            }
        }
        float    value;
        unsigned first = (unsigned)(colon[1] - '0');
        plain = may_be_plain && first < 10;
        if (pli_likely(first < 10 && colon[2] <= ' ')) {
            value = (float)first;
            p = colon + 2;
        } else if ((p = read_value(s, colon + 1, &value)) == NULL) {
            return NULL;
        }
        if (pli_unlikely(index >= limit)) {
            if (index < s->rules->limit) {
                s->too_wide = true;
                return NULL;
            }
            s->found->dropped++;
            continue;
        }
        if (pli_unlikely(values == NULL && value != 1.0f)) {
            b->entries = e.n;
            if (!pli_rows_need_values(s->rows)) return no_memory(s);
            values = b->value;
        }
        uint64_t key = hash_bits > 0 ? hashed(index, hash_bits) : index - base;
        uint64_t order = hash_bits > 0 ? key : index;
        e.backwards |= (uint64_t)(order < e.next);
        e.next = order + 1;
        e.max = index > e.max ? index : e.max;
        e.least = index < e.least ? index : e.least;
        if (wide)
            b->key[e.n] = key;
        else
            b->col[e.n] = (uint32_t)key;
        if (values != NULL) values[e.n] = value;
        e.n++;
    }
    s->found->any_index |= e.n > b->row_start[b->rows];
    s->found->max_index = e.max;
    s->found->zero_index |= e.least == 0;
    s->unsorted = e.backwards != 0;
    b->entries = e.n;
    return p;
}

/* Ends a row whose entries have been read: sorts them, checks for repeats, sets the label. */
static bool end_row(parser *s, cursor line, double label) {
    pli_block *b = &s->rows->b;
    int64_t    from = b->row_start[b->rows], repeat = -1;
    bool       hashed = s->rules->hash_bits > 0;
    uint64_t   bias = hashed ? 0 : (uint64_t)s->rules->base;
    if (s->unsorted) {
        if (!pli_rows_sort_tail(s->rows, from, bias, hashed, &repeat)) return no_memory(s) != NULL;
        if (repeat >= 0 && !hashed) {
            uint64_t width = b->col != NULL ? UINT32_MAX : UINT64_MAX;
            s->status = pli_bad_at(s->bad, line, "expected each index once, found %llu twice",
                                   (unsigned long long)((pli_block_key(b, repeat) + bias) & width));
            return false;
        }
    }
    if (!pli_found_label(s->found, label)) return no_memory(s) != NULL;
    if (b->weight != NULL) b->weight[b->rows] = 1.0f;
    if (s->query != 0 && !pli_rows_need_queries(s->rows)) return no_memory(s) != NULL;
    if (b->query != NULL) b->query[b->rows] = s->query;
    b->label[b->rows++] = label;
    b->row_start[b->rows] = b->entries;
    return true;
}

/* The value of an entry of the row, as the text has it, less its origin. */
static void shift_value(parser *s, cursor value, int64_t entry, uint64_t index) {
    const int64_t i = pli_origin_find(s->rules->origin, s->rules->origins, index);
    double        x;
    if (i < 0 || pli_number_f64(value, &x) == NULL) return;
    s->rows->b.value[entry] = (float)(x - s->rules->origin[i].value);
    s->given[i] = s->rows->b.rows + 1;
}

/* A feature with an origin that the row does not give is 0, less the origin. */
static bool add_absent(parser *s, cursor next) {
    const pli_libsvm_rules *r = s->rules;
    pli_block              *b = &s->rows->b;
    for (int64_t i = 0; i < r->origins; i++) {
        if (s->given[i] == b->rows + 1 || r->origin[i].at >= r->limit) continue;
        if (r->base_is_sure && r->origin[i].at < (uint64_t)r->base) continue; /* no row can give it */
        const uint64_t key = r->origin[i].at - (uint64_t)r->base;
        if (b->col != NULL && key >= UINT32_MAX && !pli_rows_widen(s->rows)) return no_memory(s) != NULL;
        if (!pli_rows_reserve(s->rows, (s->to - next) / 4 + 2)) return no_memory(s) != NULL;
        if (b->col != NULL) b->col[b->entries] = (uint32_t)key;
        else b->key[b->entries] = key;
        b->value[b->entries++] = (float)-r->origin[i].value;
        s->unsorted = true;
    }
    return true;
}

/* Reads the values of features with origins once more, in double: the row's entries are [from, b.entries), their text
 * begins at p, and the next line at `next`. */
static bool shift_row(parser *s, cursor p, cursor next, int64_t from) {
    if (s->given == NULL) return true;
    if (!pli_rows_need_values(s->rows)) return no_memory(s) != NULL;
    p = skip_blanks(p);
    for (int64_t entry = from; p < next && *p != '#' && *p != '\n';) {
        uint64_t index = 0;
        cursor   word = p;
        while ((unsigned)(*p - '0') < 10) index = index * 10 + (uint64_t)(*p++ - '0');
        if (p > word && *p == ':' && index < s->rules->limit) shift_value(s, p + 1, entry++, index);
        while (*p > ' ' && *p != '#') p++;
        while (is_blank(*p) || *p == '\r') p++;
    }
    return add_absent(s, next);
}

/* Reads the row whose label is at p. Returns the start of the next line; NULL: failed. */
static cursor read_row(parser *s, cursor p) {
    double  label;
    cursor  line = p;
    int64_t from = s->rows->b.entries;
    s->query = 0;
    if (s->rows->b.rows == s->rows->row_capacity && !pli_rows_reserve_rows(s->rows, 1)) return no_memory(s);
    if ((p = read_label(s, p, &label)) == NULL) return NULL;
    cursor end = s->rows->b.col != NULL ? read_entries(s, p, false) : read_entries(s, p, true);
    if (s->too_wide) {
        s->too_wide = false;
        s->rows->b.entries = from;
        if (!pli_rows_widen(s->rows)) return no_memory(s);
        end = read_entries(s, p, true);
    }
    if (end == NULL) return NULL;
    if (s->rules->base_is_sure && s->rules->base == 1 && s->found->zero_index && s->rules->hash_bits == 0) {
        s->status = pli_bad_at(s->bad, line, "expected indices from 1, found 0 (--index-base 0 counts from 0)");
        return NULL;
    }
    return shift_row(s, p, end, from) && end_row(s, line, label) ? end : NULL;
}

plait_status pli_libsvm_parse(const void *rules, const unsigned char *from, const unsigned char *to, pli_rows *rows,
                              pli_found *found, pli_bad *bad) {
    parser s = { .rules = rules, .rows = rows, .found = found, .bad = bad, .to = to };
    bad->at = NULL;
    if (!pli_rows_reserve(rows, (to - from) / 4 + 1) || !pli_rows_reserve_rows(rows, 1)) return PLAIT_ENOMEM;
    if (s.rules->origins > 0 && (s.given = pli_calloc((size_t)s.rules->origins, sizeof *s.given)) == NULL)
        return PLAIT_ENOMEM;
    for (cursor p = from; p != NULL && p < to;) {
        p = skip_blanks(p);
        p = at_end_of_line(p) ? skip_line(p) : read_row(&s, p);
    }
    pli_free(s.given);
    return s.status;
}

const unsigned char *pli_libsvm_row(const unsigned char *from, const unsigned char *to) {
    while (from < to) {
        cursor p = from;
        while (p < to && is_blank(*p)) p++;
        if (p < to && *p != '\n' && *p != '#' && !(*p == '\r' && p + 1 < to && p[1] == '\n')) return p;
        cursor newline = memchr(p, '\n', (size_t)(to - p));
        from = newline != NULL ? newline + 1 : to;
    }
    return to;
}

uint64_t pli_libsvm_query(const unsigned char *row, const unsigned char *to) {
    for (int word = 0; word < 2; word++) { /* behind the label, or first if there is no label */
        unsigned char copy[16] = { 0 };
        uint64_t      query;
        const size_t  n = to - row > 15 ? 15 : (size_t)(to - row);
        memcpy(copy, row, n);
        if (memcmp(copy, "qid:", 4) == 0) return read_query(copy + 4, &query) != NULL ? query : 0;
        while (row < to && *row > ' ') row++;
        while (row < to && is_blank(*row)) row++;
    }
    return 0;
}

bool pli_libsvm_has_zero(const unsigned char *from, const unsigned char *to) {
    for (cursor p = pli_libsvm_row(from, to); p < to; p = pli_libsvm_row(p, to)) {
        if (to - p > 1 && *p == '0' && p[1] == ':') return true; /* a row without a label */
        while (p<to && * p> ' ' && *p != ':') p++;
        while (p < to && is_blank(*p)) p++;
        if (to - p > 1 && *p == '0' && p[1] == ':') return true;
        cursor newline = memchr(p, '\n', (size_t)(to - p));
        p = newline != NULL ? newline + 1 : to;
    }
    return false;
}

/* --- without parsing -------------------------------------------------------------------------------------------- */

/* Looks at the label and the first index of the row at p. Malformed rows are left for the parser to refuse. */
static bool look_at_label(const unsigned char *p, const unsigned char *end, bool unlabelled, pli_found *found) {
    unsigned char copy[64 + PLI_PARSE_PAD];
    double        label;
    if (end - p < 64 + PLI_PARSE_PAD) { /* the parser of numbers may read beyond */
        size_t n = (size_t)(end - p) < 64 ? (size_t)(end - p) : 64;
        memcpy(copy, p, n);
        memset(copy + n, 0, sizeof copy - n);
        p = copy;
    }
    const unsigned char *after = pli_number_f64(p, &label);
    if (after == NULL) return true;
    if (*after == ':') { /* there is no label */
        found->zero_index |= p[0] == '0' && p[1] == ':';
        return true;
    }
    while (*after == ' ' || *after == '\t') after++;
    found->zero_index |= after[0] == '0' && after[1] == ':';
    found->passed_labels += unlabelled;
    return unlabelled || pli_found_label(found, label);
}

/* Looks at the last index of the row [p, end), which is the highest, since indices increase. (If they do not, the
 * stream's reader meets an index higher than any announced, and reports it.) */
static void look_at_end(const unsigned char *p, const unsigned char *end, pli_found *found) {
    const unsigned char *colon = end;
    while (colon > p && *--colon != ':' && end - colon < 64) continue;
    const unsigned char *digit = colon;
    uint64_t             index = 0, ten = 1;
    for (; digit > p && digit[-1] >= '0' && digit[-1] <= '9' && colon - digit < 19; ten *= 10)
        index += (uint64_t)(*--digit - '0') * ten;
    if (digit == colon || *colon != ':' || digit == p || (digit[-1] != ' ' && digit[-1] != '\t')) return;
    if (index > INT64_MAX) return; /* the parser will refuse it */
    found->any_index = true;
    if (index > found->max_index) found->max_index = index;
}

bool pli_libsvm_name(const unsigned char *from, const unsigned char *to, int32_t bits, pli_names *names) {
    bool good = true;
    for (cursor p = pli_libsvm_row(from, to); good && p < to; p = pli_libsvm_row(p, to)) {
        for (; good && p < to && *p != '\n' && *p != '#'; p++) {
            uint64_t index = 0;
            cursor   word = p;
            for (; p < to && (unsigned)(*p - '0') < 10; p++) index = index * 10 + (uint64_t)(*p - '0');
            const bool is_index = p > word && p < to && *p == ':' && index <= INT64_MAX;
            if (is_index && pli_names_wants(names, hashed(index, (uint64_t)bits)))
                good = pli_names_give(names, hashed(index, (uint64_t)bits), (const char *)word, (size_t)(p - word));
            while (p < to && *p != ' ' && *p != '\t' && *p != '\n' && *p != '#') p++;
            if (p == to || *p == '\n' || *p == '#') break;
        }
        cursor newline = p < to ? memchr(p, '\n', (size_t)(to - p)) : NULL;
        p = newline != NULL ? newline + 1 : to;
    }
    return good;
}

static bool look(const void *rules, const unsigned char *line, const unsigned char *end, pli_found *found) {
    look_at_end(line, end, found);
    return look_at_label(line, end, ((const pli_libsvm_rules *)rules)->unlabelled, found);
}

const pli_reader pli_libsvm_reader = {
    .name = "libsvm", .parse = pli_libsvm_parse, .row = pli_libsvm_row, .look = look
};
