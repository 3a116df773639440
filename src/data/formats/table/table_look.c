/* Rows of plain numbers are looked at, not parsed, before a single pass.
 *
 * The pass before a stream wants to know where rows begin, which labels there are, and the means of columns, which
 * replace missing numbers. If no number is missing, the pass itself can add up the means for the model's file, and its
 * text is parsed once instead of twice. A missing cell is empty or a word, so it does not begin as a number does; and
 * so it is enough to see how each cell begins, eight bytes at a time. */
#include "data/formats/number.h"
#include "data/formats/table/table.h"

typedef const unsigned char *cursor;

enum { MOST_COLUMNS = 256, LABEL_BYTES = 64 };

#define EACH(x)  (UINT64_C(0x0101010101010101) * (x))
#define HIGH     EACH(0x80)

bool pli_table_may_look(pli_table_rules *t) {
    if (t->fixed || t->has_text || t->decimal_comma || t->labels_optional || t->user >= 0 || t->delimiter == ' ' ||
        t->cells > MOST_COLUMNS)
        return false;
    for (t->label_cell = 0; t->label_cell < t->cells; t->label_cell++)
        if (t->cell[t->label_cell].column >= 0 && t->cell[t->label_cell].role == PLI_ROLE_LABEL) return true;
    return false;
}

/* The bytes of a word that are c, as their highest bits. */
static inline uint64_t equal(uint64_t word, unsigned char c) {
    word ^= EACH(c);
    return ~(((word & EACH(0x7f)) + EACH(0x7f)) | word) & HIGH;
}

/* The bytes with which a number may begin: a digit, a sign or a point. '/' lies between them: the parser refuses it. */
static inline uint64_t begin_numbers(uint64_t word) {
    const uint64_t low = word & EACH(0x7f);
    const uint64_t least = low + EACH(0x80 - '+'), above = low + EACH(0x7f - '9');
    return least & ~above & ~word & ~equal(word, ',') & HIGH;
}

static bool all_begin_as_numbers(cursor p, cursor end, char delimiter) {
    uint64_t first = 0x80, word, ends; /* first: does the word's first byte begin a cell? */
    for (; end - p >= 8; p += 8) {
        memcpy(&word, p, 8); /* little-endian: the first byte is the lowest */
        ends = equal(word, (unsigned char)delimiter);
        if (((ends << 8 | first) & ~begin_numbers(word)) != 0) return false;
        first = ends >> 56;
    }
    word = 0; /* what follows the line is no number */
    memcpy(&word, p, (size_t)(end - p));
    ends = equal(word, (unsigned char)delimiter);
    return ((ends << 8 | first) & ~begin_numbers(word)) == 0;
}

/* The label's cell; NULL: the line has none. */
static cursor find_label(const pli_table_rules *t, cursor p, cursor end) {
    if (t->label_cell > 0 && t->label_cell == t->cells - 1) {
        p = memrchr(p, t->delimiter, (size_t)(end - p));
        return p != NULL ? p + 1 : NULL;
    }
    for (int64_t i = 0; p != NULL && i < t->label_cell; i++) {
        p = memchr(p, t->delimiter, (size_t)(end - p));
        p += p != NULL;
    }
    return p;
}

bool pli_table_look(const void *rules, const unsigned char *p, const unsigned char *end, pli_found *found) {
    const pli_table_rules *t = rules;
    unsigned char          copy[LABEL_BYTES + PLI_PARSE_PAD] = { 0 };
    double                 label;
    if (end > p && end[-1] == '\r') end--;
    const cursor at = find_label(t, p, end);
    if (found->parses || at == NULL || !all_begin_as_numbers(p, end, t->delimiter)) {
        found->parses = true;
        return true;
    }
    memcpy(copy, at, end - at < LABEL_BYTES ? (size_t)(end - at) : LABEL_BYTES);
    const cursor after = pli_number_f64(copy, &label);
    const int64_t length = after != NULL ? after - copy : LABEL_BYTES;
    found->parses = length >= LABEL_BYTES || (at + length != end && at[length] != (unsigned char)t->delimiter);
    return found->parses || pli_found_label(found, label);
}
