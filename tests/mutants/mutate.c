/* mutate SEED FILE OTHER: writes a mutant of FILE to standard output, the same for the same seed. OTHER is spliced in.
 *
 * One to four changes of kinds that files suffer, or that somebody crafts: bits that flip, ends that are cut off, spans
 * that are there twice or missing, numbers that grow long or huge, NUL and control bytes, lines that change places,
 * pieces of another file. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 22 };

typedef struct piece {
    unsigned char *data;
    size_t         n;
} piece;

static uint64_t state;

/* splitmix64. */
static uint64_t draw(void) {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static size_t below(size_t n) { return n > 0 ? (size_t)(draw() % n) : 0; }

/* Most spans are short; some are not. */
static size_t span(size_t n) {
    const size_t most = draw() % 4 > 0 ? 16 : n;
    return 1 + below(most < n ? most : n);
}

/* The bytes [at, at + gone) give way to those of with [n]. */
static void replace(piece *p, size_t at, size_t gone, const void *with, size_t n) {
    if (gone > p->n - at) gone = p->n - at;
    if (p->n - gone + n > MOST_BYTES) return;
    memmove(p->data + at + n, p->data + at + gone, p->n - at - gone);
    memcpy(p->data + at, with, n);
    p->n += n - gone;
}

static void flip(piece *p) {
    if (p->n > 0) p->data[below(p->n)] ^= (unsigned char)(1u << below(8));
}

static void put_byte(piece *p) {
    static const unsigned char odd[] = { 0,    0,   1,   0x1b, 0x7f, 0x80, 0xff, '\n', '\r',
                                         '\t', ' ', ',', ':',  '"',  '{',  '-',  '0' };
    const unsigned char        byte = draw() % 3 > 0 ? odd[below(sizeof odd)] : (unsigned char)draw();
    replace(p, below(p->n + 1), draw() % 2, &byte, 1);
}

static void truncate_it(piece *p) { p->n = below(p->n); }

static void duplicate(piece *p) {
    unsigned char *copy = malloc(MOST_BYTES);
    const size_t   at = below(p->n), n = span(p->n - at);
    if (copy != NULL && p->n > 0) {
        memcpy(copy, p->data + at, n);
        replace(p, draw() % 2 > 0 ? at : below(p->n), 0, copy, n);
    }
    free(copy);
}

static void leave_out(piece *p) {
    const size_t at = below(p->n);
    if (p->n > 0) replace(p, at, span(p->n - at), "", 0);
}

/* A run of digits, where there is one behind a place, becomes another number. */
static void put_number(piece *p) {
    static const char *const numbers[] = { "0", "-1", "1e999", "-0", "nan", "inf", "9223372036854775807",
                                           "9223372036854775808", "18446744073709551615", "4294967296", "2147483648",
                                           "1e-400", "00000000000000000000000000001", "65537", "-9223372036854775808" };
    size_t                   at = below(p->n + 1), end;
    while (at < p->n && (p->data[at] < '0' || p->data[at] > '9')) at++;
    for (end = at; end < p->n && p->data[end] >= '0' && p->data[end] <= '9';) end++;
    const char *number = numbers[below(sizeof numbers / sizeof numbers[0])];
    if (draw() % 4 > 0) {
        replace(p, at, end - at, number, strlen(number));
        return;
    }
    const size_t n = 1 + below(draw() % 8 > 0 ? 60 : 70000); /* long ones */
    char        *digits = malloc(n);
    if (digits != NULL) {
        for (size_t i = 0; i < n; i++) digits[i] = (char)('0' + below(10));
        replace(p, at, end - at, digits, n);
    }
    free(digits);
}

/* A binary count, of 2, 4 or 8 bytes, little or big end first. */
static void put_count(piece *p) {
    static const uint64_t counts[] = { 0,         1,        UINT64_MAX,        INT64_MAX, UINT32_MAX,
                                       INT32_MAX, 1u << 31, UINT64_C(1) << 40, 65535 };
    unsigned char         bytes[8];
    const uint64_t        count = counts[below(sizeof counts / sizeof counts[0])];
    const size_t          n = (size_t)2 << below(3), aligned = draw() % 2;
    const size_t big = below(2);
    for (size_t i = 0; i < n; i++) bytes[big ? n - 1 - i : i] = (unsigned char)(count >> (8 * i));
    size_t at = below(p->n + 1);
    if (aligned) at -= at % n;
    if (at + n <= p->n) memcpy(p->data + at, bytes, n);
}

/* The line that holds a place: from its first byte to behind its newline. */
static size_t line_of(const piece *p, size_t at, size_t *end_out) {
    size_t end = at;
    while (at > 0 && p->data[at - 1] != '\n') at--;
    while (end < p->n && p->data[end] != '\n') end++;
    *end_out = end < p->n ? end + 1 : end;
    return at;
}

static void swap_lines(piece *p) {
    size_t         end, to_end;
    size_t         from = line_of(p, below(p->n), &end);
    unsigned char *line = malloc(end - from + 1);
    if (line != NULL && p->n > 0) {
        const size_t n = end - from;
        memcpy(line, p->data + from, n);
        replace(p, from, n, "", 0);
        replace(p, line_of(p, below(p->n), &to_end), 0, line, n);
    }
    free(line);
}

static void splice(piece *p, const piece *other) {
    const size_t from = below(other->n);
    if (other->n > 0)
        replace(p, below(p->n + 1), draw() % 2 > 0 ? span(p->n + 1) : 0, other->data + from, span(other->n - from));
}

static void zero_span(piece *p) {
    const size_t at = below(p->n);
    if (p->n > 0) memset(p->data + at, 0, span(p->n - at));
}

static int read_file(const char *path, piece *p) {
    FILE *file = fopen(path, "rb");
    p->data = malloc(MOST_BYTES);
    if (file == NULL || p->data == NULL) return 0;
    p->n = fread(p->data, 1, MOST_BYTES / 2, file);
    return fclose(file) == 0;
}

int main(int argc, char **argv) {
    piece p, other;
    if (argc != 4 || !read_file(argv[2], &p) || !read_file(argv[3], &other)) {
        fprintf(stderr, "usage: mutate SEED FILE OTHER\n");
        return 2;
    }
    state = strtoull(argv[1], NULL, 10);
    for (size_t changes = 1 + below(4); changes > 0; changes--) {
        switch (below(12)) {
        case 0:
        case 1: flip(&p); break;
        case 2:
        case 3: put_byte(&p); break;
        case 4: truncate_it(&p); break;
        case 5: duplicate(&p); break;
        case 6: leave_out(&p); break;
        case 7:
        case 8: put_number(&p); break;
        case 9: put_count(&p); break;
        case 10: draw() % 2 > 0 ? swap_lines(&p) : zero_span(&p); break;
        default: splice(&p, &other); break;
        }
    }
    return fwrite(p.data, 1, p.n, stdout) == p.n && fflush(stdout) == 0 ? 0 : 1;
}
