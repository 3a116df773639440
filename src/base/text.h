/* base/text.h - strings that grow, numbers from text, and the nearest known name for a typo. */
#ifndef PLI_BASE_TEXT_H
#define PLI_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A growing string; one that is zero-initialised is empty. If memory runs out, `failed` is set and further text is
 * dropped, so a caller checks once at the end. */
typedef struct pli_text {
    char  *data; /* NUL-terminated, NULL while empty */
    size_t length, capacity;
    bool   failed;
} pli_text;
/** Is text (NULL: missing) this word? */
static inline bool pli_is(const char *text, const char *word) { return text != NULL && strcmp(text, word) == 0; }
/** "" for one, else "s". */
static inline const char *pli_plural(int64_t n) { return n == 1 ? "" : "s"; }

void pli_text_add(pli_text *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void pli_text_add_bytes(pli_text *text, const void *bytes, size_t n);
/** Are these bytes valid UTF-8? */
bool pli_is_utf8(const void *bytes, size_t n);
/** Adds a string as JSON has it: in quotes, with escapes, also for control characters of both ranges. A byte that is
 *  no UTF-8 becomes U+FFFD. */
void pli_text_add_quoted(pli_text *text, const char *word);
/** Adds bytes as they may stand on a terminal and in a message, whatever file they come from. Valid UTF-8 stays.
 *  Control characters (of both ranges, and those that turn the direction of text) and all other bytes are written as
 *  in C: \n, \t, \x1b. keep: control characters that stay, such as "\n\t"; "": none. A backslash stays single, so
 *  that applying it twice changes nothing. */
void pli_text_add_printable(pli_text *text, const char *bytes, size_t n, const char *keep);
/** The same for a string, into to [room], which it ends with a NUL. Text that does not fit is left out, but never
 *  half of a character. */
void pli_printable(char *to, size_t room, const char *from);
/** Adds a count for people: 16512 -> "16,512". */
void pli_text_add_count(pli_text *text, int64_t count);
void pli_text_free(pli_text *text);

/* Read a number; false unless all of text is one. The locale does not matter. */
bool pli_parse_i64(const char *text, int64_t *out);
bool pli_parse_u64(const char *text, uint64_t *out);
bool pli_parse_f64(const char *text, double *out); /* finite only */

/** The name nearest to `name` by edit distance (swaps count one) among names [n], or NULL if none is near
 *  enough to be meant (distance <= max(2, length/3)). */
const char *pli_nearest(const char *name, const char *const *names, size_t n);

/** Writes the shortest decimal that reads back to the same double ("0.1"), at most 32 bytes. */
void pli_format_f64(double value, char text[32]);

/** Writes a double as JSON needs it: %.17g, null for NaN and infinities. At most 32 bytes. */
void pli_format_json_f64(double value, char text[32]);

#endif
