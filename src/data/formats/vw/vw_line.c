/* A line of Vowpal Wabbit text, and the names of its features.
 *
 * The loop over the features of a line needs no test for the end of the text, since the caller gives whole lines and a
 * newline always comes first; it needs no test for room, since a feature takes at least two bytes of the line. */
#include "data/formats/vw/vw.h"

#include <math.h>
#include <string.h>

typedef const unsigned char *cursor;

typedef struct reader {
    const pli_vw_rules *rules;
    pli_vw_row         *row;
    pli_found          *found;
    pli_bad            *bad;
    plait_status        status;
} reader;

/* The namespace being read. */
typedef struct space {
    uint64_t hash, unnamed; /* unnamed: features without a name so far; they are numbered from 0 */
    float    scale;
} space;

/* --- characters ----------------------------------------------------------------------------------------------- */

/* What ends a word: 1 a blank, 2 the end of the line, 4 ':' or '|'. */
static const unsigned char ends[256] = { [' '] = 1, ['\t'] = 1, ['\r'] = 2, ['\n'] = 2, [':'] = 4, ['|'] = 4 };

static cursor skip_blanks(cursor p) {
    while (ends[*p] == 1) p++;
    return p;
}
static bool ends_value(unsigned char c) { return ends[c] != 0 && c != ':'; }

static cursor fail(reader *s, cursor at, const char *expected) {
    s->status = pli_bad_expected(s->bad, at, expected);
    return NULL;
}

static cursor no_memory(reader *s) {
    s->bad->at = NULL;
    s->status = PLAIT_ENOMEM;
    return NULL;
}

/* --- before the first bar --------------------------------------------------------------------------------------- */

/* Takes the number at p as the n-th in front of the bar: label, importance, base. Returns false if it may not be. */
static bool take_number(reader *s, cursor p, double number, int n) {
    if (n == 0) {
        s->found->passed_labels += s->rules->unlabelled;
        s->row->label = s->rules->unlabelled ? (double)NAN : number;
    } else if (n == 1) {
        s->row->weight = (float)number;
        if (!(number >= 0 && isfinite(s->row->weight))) return fail(s, p, "expected an importance of 0 or more"), false;
    } else if (n == 2 && number != 0) {
        return fail(s, p, "expected no base (a third number in front of |, where a prediction begins): only 0 is read"),
               false;
    } else if (n > 2) {
        return fail(s, p, "expected at most a label, an importance and a base in front of |"), false;
    }
    return true;
}

/* Says what is wrong with a word in front of the bar that is neither a number nor a tag. */
static cursor refuse_word(reader *s, cursor p, cursor end) {
    if (end != NULL && *end == ':')
        return fail(s, p, "expected one number as the label; labels with costs (class:cost) are not read");
    return fail(s, p, "expected a label (a finite number), an importance or a 'tag in front of |");
}

/* Reads what stands in front of the first bar, and returns the bar. A word that begins with ' or touches the bar is a
 * tag. */
static cursor read_head(reader *s, cursor p) {
    int numbers = 0;
    s->row->label = NAN;
    s->row->weight = 1;
    for (p = skip_blanks(p); *p != '|'; p = skip_blanks(p), numbers++) {
        double number;
        cursor end = pli_number_f64(p, &number);
        if (ends[*p] == 2) return fail(s, p, "expected | in front of the features");
        if (end == NULL || ends[*end] != 1) {
            cursor tag = p;
            while (ends[*tag] == 0 || *tag == ':') tag++;
            const bool touches = *tag == '|' && (numbers > 0 || end != tag || s->rules->label_is_optional);
            if (*p != '\'' && end == tag && *tag == '|' && !touches)
                return fail(s, p, "expected a blank between the label and | (a word that touches the bar is a tag)");
            if (*p != '\'' && ends[*tag] == 2) return fail(s, tag, "expected | behind the label");
            if (*p != '\'' && !touches) return refuse_word(s, p, end);
            p = skip_blanks(tag);
            return *p == '|' ? p : fail(s, p, "expected | behind the tag");
        }
        if (!take_number(s, p, number, numbers)) return NULL;
        p = end;
    }
    return p;
}

/* --- features --------------------------------------------------------------------------------------------------- */

/* A number of 9 to 18 digits; false: it is none. */
static bool is_long_number(cursor p, cursor end, uint64_t *out) {
    *out = 0;
    if (end - p > 18) return false;
    for (; p < end; p++) {
        if ((unsigned)(*p - '0') >= 10) return false;
        *out = *out * 10 + (uint64_t)(*p - '0');
    }
    return true;
}

/* The bytes of a word that are 0, as their highest bits; those above the first such may be wrong. */
static inline uint64_t zeros(uint64_t word) {
    return (word - UINT64_C(0x0101010101010101)) & ~word & UINT64_C(0x8080808080808080);
}

/* The end of the word at p. Eight bytes are looked at together: blanks and what else is below '!', ':' and '|'. */
static cursor end_of_word(cursor p) {
    for (;;) {
        uint64_t text;
        memcpy(&text, p, sizeof text); /* little-endian: the first byte is the lowest */
        const uint64_t low = (text - UINT64_C(0x2121212121212121)) & ~text & UINT64_C(0x8080808080808080);
        const uint64_t colon = text ^ UINT64_C(0x3a3a3a3a3a3a3a3a), bar = text ^ UINT64_C(0x7c7c7c7c7c7c7c7c);
        const uint64_t found = low | zeros(colon) | zeros(bar);
        if (found == 0) {
            p += 8;
            continue;
        }
        p += __builtin_ctzll(found) >> 3;
        if (pli_likely(ends[*p] != 0)) return p;
        p++; /* a control character is a part of the word */
    }
}

static cursor read_name(cursor p, uint64_t in, uint64_t *hash_out) {
    uint64_t number;
    cursor   end = p;
    if ((unsigned)(*p - '0') < 10) {
        const int digits = pli_digits8(p, &number);
        end += digits;
        if (pli_likely(ends[*end] != 0)) {
            *hash_out = in + number;
            return end;
        }
    }
    end = end_of_word(end);
    if (end - p > 8 && is_long_number(p, end, &number)) *hash_out = in + number;
    else *hash_out = pli_hash_bytes(p, (size_t)(end - p), in);
    return end;
}

static cursor read_value(reader *s, cursor p, float *out) {
    const unsigned first = (unsigned)(*p - '0');
    if (pli_likely(first < 10 && ends_value(p[1]))) {
        *out = (float)first;
        return p + 1;
    }
    cursor end = pli_number_f32(p, out);
    if (end == NULL || !ends_value(*end)) return fail(s, p, "expected a finite value after name:");
    return end;
}

static void note_origin(pli_vw_row *row, cursor name, cursor end, uint64_t number) {
    row->origin[row->n] = (pli_vw_origin){ .kind = end > name ? PLI_VW_NAME : PLI_VW_NUMBER, .name = name,
                                           .bytes = end - name, .span = row->spans - 1,
                                           .part = { (int64_t)number } };
}

/* Reads a feature. One of value 0 is as good as absent. */
static cursor read_feature(reader *s, cursor p, space *in) {
    pli_vw_row *row = s->row;
    uint64_t    hash, number = in->unnamed;
    float       value = 1;
    cursor      name = p;
    if (*p == ':') hash = in->hash + in->unnamed++;
    else p = read_name(p, in->hash, &hash);
    cursor end = p;
    if (*p == ':' && (p = read_value(s, p + 1, &value)) == NULL) return NULL;
    value *= in->scale;
    if (value == 0) return p;
    if (pli_unlikely(!isfinite(value))) return fail(s, name, "expected a finite value, also times its namespace's");
    if (pli_unlikely(row->with_names)) note_origin(row, name, end, number);
    row->feature[row->n++] = (pli_vw_feature){ .hash = hash, .value = value };
    return p;
}

/* Reads "|name:scale" at the bar. */
static cursor read_space(reader *s, cursor p, space *in) {
    pli_vw_row *row = s->row;
    cursor      name = ++p;
    *in = (space){ .scale = 1 };
    if (!pli_grow((void **)&row->span, &row->span_capacity, row->spans + 1, sizeof *row->span)) return no_memory(s);
    while (ends[*p] == 0) p++;
    if (p > name) in->hash = pli_hash_bytes(name, (size_t)(p - name), 0);
    const unsigned char letter = p > name ? *name : PLI_VW_DEFAULT_SPACE;
    row->span[row->spans++] = (pli_vw_span){ .letter = letter, .first = row->n, .name = name, .bytes = p - name };
    s->found->letters[letter >> 6] |= UINT64_C(1) << (letter & 63);
    if (*p != ':') return p;
    if (p == name) return fail(s, p, "expected a blank or the name of a namespace behind |");
    return read_value(s, p + 1, &in->scale);
}

static cursor too_many(reader *s, cursor at, plait_status status) {
    if (status == PLAIT_ENOMEM) return no_memory(s);
    (void)pli_bad_at(s->bad, at, "expected at most %d features in a row, with its n-grams and products",
                     (int)PLI_VW_ROW_MAX);
    s->status = status;
    return NULL;
}

/* Reads the namespaces of a line from the first bar on; returns the end of the line. */
static cursor read_spaces(reader *s, cursor p) {
    pli_vw_row *row = s->row;
    while (*p == '|') {
        space  in;
        cursor bar = p;
        if ((p = read_space(s, p, &in)) == NULL) return NULL;
        for (p = skip_blanks(p); *p != '|' && ends[*p] != 2; p = skip_blanks(p))
            if ((p = read_feature(s, p, &in)) == NULL) return NULL;
        pli_vw_span *span = &row->span[row->spans - 1];
        span->n = row->n - span->first;
        const uint8_t      longest = s->rules->cross.gram[span->letter];
        const plait_status status = longest > 1 ? pli_vw_add_grams(row, longest) : PLAIT_OK;
        if (status < 0) return too_many(s, bar, status);
    }
    return p;
}

static cursor read_line(reader *s, cursor line) {
    pli_vw_row *row = s->row;
    cursor      end = line;
    row->n = row->spans = 0;
    row->with_names = s->found->names != NULL;
    end = rawmemchr(line, '\n');
    if (!pli_vw_row_reserve(row, (end - line) / 2 + 1)) return no_memory(s);
    cursor p = read_head(s, line);
    if (p == NULL || (p = read_spaces(s, p)) == NULL) return NULL;
    if (isnan(row->label) && !s->rules->label_is_optional)
        return fail(s, line, "expected a label in front of | (--label none reads rows without labels)");
    const plait_status status = pli_vw_add_products(row, &s->rules->cross);
    if (status < 0) return too_many(s, line, status);
    if (*p == '\r') p++;
    return p == end ? end + 1 : fail(s, p, "expected the end of the line behind a carriage return");
}

plait_status pli_vw_line(const pli_vw_rules *rules, const unsigned char *line, pli_vw_row *row, pli_found *found,
                         pli_bad *bad, const unsigned char **next_out) {
    reader s = { .rules = rules, .row = row, .found = found, .bad = bad };
    cursor next = read_line(&s, line);
    if (next != NULL) *next_out = next;
    return s.status;
}

/* --- a row's memory --------------------------------------------------------------------------------------------- */

bool pli_vw_row_reserve(pli_vw_row *row, int64_t more) {
    const bool names = row->with_names;
    return pli_grow((void **)&row->feature, &row->capacity, row->n + more, sizeof *row->feature) &&
           (!names || pli_grow((void **)&row->origin, &row->origin_capacity, row->n + more, sizeof *row->origin));
}

void pli_vw_row_free(pli_vw_row *row) {
    pli_free(row->feature);
    pli_free(row->span);
    pli_free(row->origin);
    *row = (pli_vw_row){ 0 };
}

/* --- names ------------------------------------------------------------------------------------------------------ */

/* The features of an n-gram are names of one namespace, which is said once. */
static void add_word(const pli_vw_origin *o, pli_text *text) {
    if (o->kind == PLI_VW_NUMBER) pli_text_add(text, "%lld", (long long)o->part[0]);
    else pli_text_add_bytes(text, o->name, (size_t)o->bytes);
}

static void add_words(const pli_vw_row *row, int64_t first, int64_t n, pli_text *text) {
    const pli_vw_span *span = &row->span[row->origin[first].span];
    if (span->bytes > 0) {
        pli_text_add_bytes(text, span->name, (size_t)span->bytes);
        pli_text_add(text, "^");
    }
    for (int64_t i = 0; i < n; i++) {
        if (i > 0) pli_text_add(text, "^");
        add_word(&row->origin[first + i], text);
    }
}

void pli_vw_feature_name(const pli_vw_row *row, int64_t feature, pli_text *text) {
    const pli_vw_origin *o = &row->origin[feature];
    if (o->kind == PLI_VW_GRAMS) add_words(row, o->part[0], o->parts, text);
    else if (o->kind != PLI_VW_PRODUCT) add_words(row, feature, 1, text);
    for (int32_t i = 0; o->kind == PLI_VW_PRODUCT && i < o->parts; i++) {
        const pli_vw_origin *part = &row->origin[o->part[i]];
        if (i > 0) pli_text_add(text, "*");
        if (part->kind == PLI_VW_GRAMS) add_words(row, part->part[0], part->parts, text);
        else add_words(row, o->part[i], 1, text);
    }
}
