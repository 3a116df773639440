/* base/text.c - strings that grow, numbers as text, and typos.
 *
 * Numbers written by one machine are read by another, so the locale of the host program must not matter: conversions
 * run under the C locale, which is installed for this thread only and for one call only. A double is written with the
 * fewest of 15, 16 or 17 digits that read back to the same bits (17 always do; Steele and White, "How to Print
 * Floating-Point Numbers Accurately", PLDI 1990). The nearest name is by optimal string alignment: edits and swaps of
 * neighbours count one (Damerau, "A Technique for Computer Detection and Correction of Spelling Errors", CACM 1964). */
#include "base/text.h"

#include <ctype.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* --- growing text -------------------------------------------------------------------------------------- */

/* Makes room for n more bytes and the NUL. */
static bool make_room(pli_text *text, size_t n) {
    if (text->failed) return false;
    if (n < text->capacity - text->length) return true;
    size_t need = text->length + n + 1, doubled = 2 * text->capacity;
    size_t want = need > doubled ? need : doubled;
    if (want < 64) want = 64;
    char *moved = need <= n || want > SIZE_MAX / 2 ? NULL : pli_realloc(text->data, want, 1);
    if (moved == NULL) {
        text->failed = true;
        return false;
    }
    text->data = moved;
    text->capacity = want;
    return true;
}

void pli_text_add_bytes(pli_text *text, const void *bytes, size_t n) {
    if (!make_room(text, n)) return;
    if (n > 0) memcpy(text->data + text->length, bytes, n);
    text->length += n;
    text->data[text->length] = '\0';
}

void pli_text_add(pli_text *text, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0) text->failed = true;
    if (n < 0 || !make_room(text, (size_t)n)) return;
    va_start(ap, fmt);
    vsnprintf(text->data + text->length, (size_t)n + 1, fmt, ap);
    va_end(ap);
    text->length += (size_t)n;
}

/* --- what may be shown ----------------------------------------------------------------------------------- */

/* The character at p [n > 0]; *bytes_out is its length. If the bytes are no UTF-8 the answer is -1 and the length 1.
 * (RFC 3629: no forms longer than needed, no surrogates.) */
static int32_t character_at(const unsigned char *p, size_t n, size_t *bytes_out) {
    static const int32_t least[] = { 0, 0x80, 0x800, 0x10000 };
    const size_t more = p[0] < 0x80 ? 0 : p[0] < 0xc0 ? 4 : p[0] < 0xe0 ? 1 : p[0] < 0xf0 ? 2 : p[0] < 0xf8 ? 3 : 4;
    *bytes_out = 1;
    if (more == 0) return p[0];
    if (more >= n || more > 3) return -1;
    int32_t c = p[0] & (0x3f >> more);
    for (size_t i = 1; i <= more; i++) {
        if ((p[i] & 0xc0) != 0x80) return -1;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (c < least[more] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return -1;
    *bytes_out = more + 1;
    return c;
}

bool pli_is_utf8(const void *bytes, size_t n) {
    const unsigned char *p = bytes;
    size_t               took;
    for (size_t i = 0; i < n; i += took)
        if (character_at(p + i, n - i, &took) < 0) return false;
    return true;
}

/* Does the character move a cursor, end a line, or turn the direction of the text behind it? */
static bool is_control(int32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* Writes the next character of from [n > 0] to out as it may be shown, and returns the length; *took_out is how many
 * bytes of from it took. */
static size_t show(const unsigned char *from, size_t n, const char *keep, char out[16], size_t *took_out) {
    static const char plain[] = "\n\t\r", named[] = "ntr";
    const int32_t     c = character_at(from, n, took_out);
    if (!is_control(c) || (c > 0 && c < 0x80 && strchr(keep, c) != NULL)) {
        memcpy(out, from, *took_out);
        return *took_out;
    }
    const char *at = c > 0 && c < 0x80 ? strchr(plain, c) : NULL;
    if (at != NULL) return (size_t)snprintf(out, 16, "\\%c", named[at - plain]);
    size_t used = 0;
    for (size_t i = 0; i < *took_out; i++)
        used += (size_t)snprintf(out + used, 16 - used, "\\x%02x", (unsigned)from[i]);
    return used;
}

/* How many bytes at the front are plain characters, which can be shown as they are. */
static size_t plain_length(const char *bytes, size_t n) {
    size_t i = 0;
    while (i < n && bytes[i] >= ' ' && bytes[i] < 0x7f) i++;
    return i;
}

void pli_text_add_printable(pli_text *text, const char *bytes, size_t n, const char *keep) {
    for (size_t i = 0; i < n;) {
        const size_t plain = plain_length(bytes + i, n - i);
        char         out[16];
        size_t       took = 0;
        pli_text_add_bytes(text, bytes + i, plain);
        if ((i += plain) == n) break;
        const size_t used = show((const unsigned char *)bytes + i, n - i, keep, out, &took);
        pli_text_add_bytes(text, out, used);
        i += took;
    }
}

void pli_printable(char *to, size_t room, const char *from) {
    size_t at = 0, n = strlen(from);
    for (size_t i = 0, took = 0; i < n; i += took) {
        char         out[16];
        const size_t used = show((const unsigned char *)from + i, n - i, "", out, &took);
        if (at + used >= room) break;
        memcpy(to + at, out, used);
        at += used;
    }
    to[at] = '\0';
}

void pli_text_add_quoted(pli_text *text, const char *word) {
    const size_t n = strlen(word);
    pli_text_add_bytes(text, "\"", 1);
    for (size_t i = 0, took = 0; i < n; i += took) {
        const int32_t c = character_at((const unsigned char *)word + i, n - i, &took);
        if (c == '"' || c == '\\') pli_text_add_bytes(text, "\\", 1);
        if (c < 0)
            pli_text_add(text, "\\ufffd");
        else if (is_control(c))
            pli_text_add(text, "\\u%04x", (unsigned)c);
        else
            pli_text_add_bytes(text, word + i, took);
    }
    pli_text_add_bytes(text, "\"", 1);
}

void pli_text_add_count(pli_text *text, int64_t count) {
    char digits[24];
    int  n = snprintf(digits, sizeof digits, "%lld", (long long)count);
    for (int i = 0; i < n; i++)
        pli_text_add(text, i > 0 && digits[i - 1] != '-' && (n - i) % 3 == 0 ? ",%c" : "%c", digits[i]);
}

void pli_text_free(pli_text *text) {
    pli_free(text->data);
    *text = (pli_text){ .data = NULL };
}

/* --- numbers ------------------------------------------------------------------------------------------- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool pli_parse_u64(const char *text, uint64_t *out) {
    uint64_t value = 0;
    if (*text == '+') text++;
    if (*text == '\0') return false;
    for (; *text != '\0'; text++) {
        if (!is_digit(*text) || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return false;
    }
    *out = value;
    return true;
}

bool pli_parse_i64(const char *text, int64_t *out) {
    bool     negative = *text == '-';
    uint64_t size;
    if (negative && !is_digit(text[1])) return false;
    if (!pli_parse_u64(text + negative, &size) || size > (uint64_t)INT64_MAX + negative) return false;
    *out = (int64_t)(negative ? 0 - size : size);
    return true;
}

static const char *skip_digits(const char *at) {
    while (is_digit(*at)) at++;
    return at;
}

/* [+-] digits [. digits] [e [+-] digits], with a digit on one side of the point at least. No hexadecimal, no inf. */
static bool is_decimal(const char *at) {
    if (*at == '+' || *at == '-') at++;
    const char *whole = at;
    at = skip_digits(at);
    bool any = at > whole;
    if (*at == '.') {
        const char *fraction = ++at;
        at = skip_digits(at);
        any = any || at > fraction;
    }
    if (!any) return false;
    if (*at == 'e' || *at == 'E') {
        at++;
        if (*at == '+' || *at == '-') at++;
        const char *exponent = at;
        at = skip_digits(at);
        if (at == exponent) return false;
    }
    return *at == '\0';
}

/* In glibc the C locale is a constant: this takes no memory and freelocale does nothing. */
static locale_t c_locale(void) { return newlocale(LC_ALL_MASK, "C", (locale_t)0); }

bool pli_parse_f64(const char *text, double *out) {
    if (!is_decimal(text)) return false;
    locale_t locale = c_locale();
    if (locale == (locale_t)0) return false;
    double value = strtod_l(text, NULL, locale);
    freelocale(locale);
    if (!isfinite(value)) return false;
    *out = value;
    return true;
}

static void format_digits(double value, int digits, char text[32]) {
    locale_t locale = c_locale();
    locale_t before = uselocale(locale);
    snprintf(text, 32, "%.*g", digits, value);
    uselocale(before);
    if (locale != (locale_t)0) freelocale(locale);
}

void pli_format_f64(double value, char text[32]) {
    double back;
    if (!isfinite(value)) {
        snprintf(text, 32, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return;
    }
    int digits = fabs(value) < DBL_MIN ? 1 : 15; /* subnormals hold fewer digits */
    for (; digits <= 17; digits++) {
        format_digits(value, digits, text);
        if (pli_parse_f64(text, &back) && back == value) return;
    }
}

void pli_format_json_f64(double value, char text[32]) {
    if (isfinite(value))
        format_digits(value, 17, text);
    else
        snprintf(text, 32, "null");
}

/* --- typos --------------------------------------------------------------------------------------------- */

enum { NAME_MAX_BYTES = 63 };

static size_t min3(size_t a, size_t b, size_t c) {
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* Three rows of the table of distances between prefixes: row i needs i-1, and i-2 for swaps. */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length) {
    size_t row[3][NAME_MAX_BYTES + 1];
    for (size_t j = 0; j <= b_length; j++) row[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *now = row[i % 3], *last = row[(i + 2) % 3], *second = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            bool same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]);
            now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + !same);
            bool swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swap && second[j - 2] + 1 < now[j]) now[j] = second[j - 2] + 1;
        }
    }
    return row[a_length % 3][b_length];
}

const char *pli_nearest(const char *name, const char *const *names, size_t n) {
    size_t length = strlen(name);
    if (length > NAME_MAX_BYTES) return NULL;
    size_t      allowed = length / 3 > 2 ? length / 3 : 2;
    const char *nearest = NULL;
    if (allowed >= length) allowed = length > 0 ? length - 1 : 0; /* at least one letter must agree */
    for (size_t i = 0; i < n; i++) {
        size_t other = strlen(names[i]);
        if (other > NAME_MAX_BYTES) continue;
        size_t away = distance(name, length, names[i], other);
        if (away > allowed || (nearest != NULL && away == allowed)) continue;
        allowed = away;
        nearest = names[i];
    }
    /* If none is near: the name that begins with it, as --model-file for --model. */
    for (size_t i = 0; i < n && nearest == NULL && length > 2; i++)
        if (strncmp(names[i], name, length) == 0) nearest = names[i];
    return nearest;
}
