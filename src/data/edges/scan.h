/* data/edges/scan.h - a graph's text line by line, word by word. */
#ifndef PLI_DATA_EDGES_SCAN_H
#define PLI_DATA_EDGES_SCAN_H

#include <inttypes.h>

#include "base/base.h"
#include "data/formats/number.h"

typedef struct pli_scan {
    const char          *name; /* of the file */
    const unsigned char *at, *end;
    int64_t              line; /* that `at` is in, from 1, but for lines between `from` and `to`: */
    plait_error         *err;
    const unsigned char *from, *to; /* what was jumped over; NULL: nothing */
    const unsigned char *piece, *piece_end; /* the lines that are to be read, in front of which a format may want to
                                             * see the file's head; NULL: all */
} pli_scan;

/** Goes from the head of the file, if `at` is still in front of it, to the piece, and ends with it. */
static inline void pli_scan_jump(pli_scan *s) {
    if (s->piece == NULL) return;
    if (s->piece > s->at) {
        s->from = s->at;
        s->at = s->to = s->piece;
    }
    s->end = s->piece_end > s->at ? s->piece_end : s->at;
}

/** The line that `at` is in. What was jumped over is counted now. */
static inline int64_t pli_scan_line_of(const pli_scan *s) {
    int64_t line = s->line;
    for (const unsigned char *p = s->from; p != NULL && p < s->to; line++) {
        p = memchr(p, '\n', (size_t)(s->to - p));
        if (p == NULL) break;
        p++;
    }
    return line;
}

/* Between words stand blanks, tabs, commas and semicolons. */
static inline bool pli_scan_is_gap(unsigned char c) {
    return c == ' ' || c == '\t' || c == ',' || c == ';' || c == '\r';
}

static inline void pli_scan_gap(pli_scan *s) {
    while (s->at < s->end && pli_scan_is_gap(*s->at)) s->at++;
}

/* Is nothing left in this line? */
static inline bool pli_scan_at_end(pli_scan *s) {
    pli_scan_gap(s);
    return s->at >= s->end || *s->at == '\n';
}

/* Goes to the next line. */
static inline void pli_scan_next(pli_scan *s) {
    const unsigned char *newline = memchr(s->at, '\n', (size_t)(s->end - s->at));
    s->at = newline != NULL ? newline + 1 : s->end;
    s->line++;
}

/** Skips empty lines and comments, which begin with one of `marks`. false: the text has ended. */
static inline bool pli_scan_line(pli_scan *s, const char *marks) {
    for (; s->at < s->end; pli_scan_next(s))
        if (!pli_scan_at_end(s) && strchr(marks, *s->at) == NULL) return true;
    return false;
}

/** Fails with EFORMAT and the word at hand: "FILE:LINE: what: 'word'". */
plait_status pli_scan_bad(const pli_scan *s, const char *what);

/** A whole number below 2^64, which a gap or the line's end follows. */
static inline plait_status pli_scan_u64(pli_scan *s, uint64_t *out) {
    const unsigned char *p = s->at;
    uint64_t             value = 0;
    pli_scan_gap(s);
    for (p = s->at; p < s->end && *p >= '0' && *p <= '9'; p++) {
        const uint64_t digit = (uint64_t)(*p - '0');
        if (value > (UINT64_MAX - digit) / 10) return pli_scan_bad(s, "an id is below 2^64");
        value = value * 10 + digit;
    }
    if (p == s->at || (p < s->end && *p != '\n' && !pli_scan_is_gap(*p)))
        return pli_scan_bad(s, "expected a whole number, 0 or more");
    s->at = p;
    *out = value;
    return PLAIT_OK;
}

/** The next word, of *n bytes, 0 < *n < PLI_PARSE_PAD; NULL: there is none so short. Functions of number.h read beyond
 *  a word, so at the text's end it is a copy, which begins as zeros. */
static inline const unsigned char *pli_scan_word(pli_scan *s, unsigned char copy[2 * PLI_PARSE_PAD], size_t *n) {
    pli_scan_gap(s);
    const size_t left = (size_t)(s->end - s->at);
    for (*n = 0; *n < left && *n < PLI_PARSE_PAD && s->at[*n] != '\n' && !pli_scan_is_gap(s->at[*n]);) ++*n;
    if (*n == 0 || *n == PLI_PARSE_PAD) return NULL;
    return left < 2 * PLI_PARSE_PAD ? memcpy(copy, s->at, *n) : s->at;
}

/** A finite weight. */
static inline plait_status pli_scan_f32(pli_scan *s, float *out) {
    unsigned char        copy[2 * PLI_PARSE_PAD] = { 0 };
    size_t               n;
    const unsigned char *word = pli_scan_word(s, copy, &n);
    if (word == NULL) return pli_scan_bad(s, "expected a weight");
    if (pli_number_f32(word, out) != word + n) return pli_scan_bad(s, "expected a finite weight");
    s->at += n;
    return PLAIT_OK;
}

/** A finite number. */
static inline plait_status pli_scan_f64(pli_scan *s, double *out) {
    unsigned char        copy[2 * PLI_PARSE_PAD] = { 0 };
    size_t               n;
    const unsigned char *word = pli_scan_word(s, copy, &n);
    if (word == NULL || pli_number_f64(word, out) != word + n) return pli_scan_bad(s, "expected a finite number");
    s->at += n;
    return PLAIT_OK;
}

#endif
