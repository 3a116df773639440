/* The slow way from text to a number, and the powers of ten. */
#include "data/formats/number.h"

#include <stdlib.h>

#include "base/base.h"

const double pli_pow10[23] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                               1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };

const uint64_t pli_pow10_u64[20] = { 1u,
                                     10u,
                                     100u,
                                     1000u,
                                     10000u,
                                     100000u,
                                     1000000u,
                                     10000000u,
                                     100000000u,
                                     1000000000u,
                                     10000000000u,
                                     100000000000u,
                                     1000000000000u,
                                     10000000000000u,
                                     100000000000000u,
                                     1000000000000000u,
                                     10000000000000000u,
                                     100000000000000000u,
                                     1000000000000000000u,
                                     10000000000000000000u };

static bool is_digit(unsigned char c) { return (unsigned)(c - '0') < 10; }

/* Where the number at text ends by the grammar [+-] digits [. digits] [e [+-] digits]; NULL: no number. */
static const unsigned char *number_end(const unsigned char *text) {
    const unsigned char *p = text + (*text == '-' || *text == '+');
    int64_t              digits = 0;
    for (; is_digit(*p); p++) digits++;
    if (*p == '.') {
        p++;
        for (; is_digit(*p); p++) digits++;
    }
    if (digits == 0) return NULL;
    if ((*p | 0x20) == 'e') {
        const unsigned char *e = p + 1 + (p[1] == '-' || p[1] == '+');
        if (!is_digit(*e)) return NULL;
        while (is_digit(*e)) e++;
        p = e;
    }
    return p;
}

const unsigned char *pli_number_slow(const unsigned char *text, double *out) {
    const unsigned char *end = number_end(text);
    if (end == NULL) return NULL;
    const char *from = (const char *)text + (*text == '+');
    size_t      n = (size_t)((const char *)end - from);
    char        local[128], *copy = n < sizeof local ? local : pli_malloc(n + 1);
    if (copy == NULL) return NULL; /* a number of over a hundred digits, and no memory */
    memcpy(copy, from, n);
    copy[n] = '\0';
    bool good = pli_parse_f64(copy, out);
    if (copy != local) pli_free(copy);
    return good ? end : NULL;
}
