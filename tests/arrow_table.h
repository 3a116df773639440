/* Arrow tables in memory, of static arrays, for tests: two batches of the columns a (float64), n (int32 with missing
 * cells), city (texts), kind (a dictionary's indices). */
#ifndef TESTS_ARROW_TABLE_H
#define TESTS_ARROW_TABLE_H

#include <stdbool.h>
#include <string.h>

#include <plait/arrow.h>

enum { ARROW_COLUMNS = 4, ARROW_BATCHES = 2, ARROW_ROWS = 3 };

typedef struct arrow_table {
    struct ArrowArrayStream stream;
    struct ArrowSchema      column[ARROW_COLUMNS], words, *columns[ARROW_COLUMNS];
    struct ArrowArray       cells[ARROW_COLUMNS], dictionary, *children[ARROW_COLUMNS];
    const void             *buffers[ARROW_COLUMNS][3], *word_buffers[3], *none[1];
    int                     given, released, fail_at; /* fail_at: the call of get_next that fails, from 1; 0: none */
    int64_t                 children_said;
} arrow_table;

static inline void arrow_end_schema(struct ArrowSchema *schema) { schema->release = NULL; }
static inline void arrow_end_array(struct ArrowArray *array) {
    ((arrow_table *)array->private_data)->released++;
    array->release = NULL;
}
static inline void arrow_end_stream(struct ArrowArrayStream *stream) { stream->release = NULL; }

static inline int arrow_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    arrow_table *t = stream->private_data;
    *out = (struct ArrowSchema){ .format = "+s", .n_children = ARROW_COLUMNS, .children = t->columns,
                                 .release = arrow_end_schema };
    return 0;
}

static inline int arrow_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    arrow_table *t = stream->private_data;
    if (++t->given == t->fail_at) return 5;
    if (t->given > ARROW_BATCHES) return 0; /* out has no release: the end */
    *out = (struct ArrowArray){ .length = ARROW_ROWS, .n_buffers = 1, .buffers = t->none, .children = t->children,
                                .n_children = t->children_said, .release = arrow_end_array, .private_data = t };
    return 0;
}

static inline const char *arrow_error(struct ArrowArrayStream *stream) { return (void)stream, "the disk is gone"; }

static inline void arrow_table_make(arrow_table *t) {
    static const double  a[] = { 0.5, 0, -2 };
    static const int32_t n[] = { 1, 99, 3 }, city_at[] = { 0, 4, 4, 9 }, word_at[] = { 0, 1, 3 };
    static const uint8_t given[] = { 5 }; /* cells 0 and 2 */
    static const int8_t  kind[] = { 1, 0, 1 };
    static const char    cities[] = "RomeTokyo", words[] = "xyy";
    static const char *const names[] = { "a", "n", "city", "kind" }, *const formats[] = { "g", "i", "u", "c" };
    memset(t, 0, sizeof *t);
    t->children_said = ARROW_COLUMNS;
    t->stream = (struct ArrowArrayStream){ arrow_schema, arrow_next, arrow_error, arrow_end_stream, t };
    for (int k = 0; k < ARROW_COLUMNS; k++) {
        t->column[k] = (struct ArrowSchema){ .format = formats[k], .name = names[k] };
        t->columns[k] = &t->column[k];
        t->cells[k] = (struct ArrowArray){ .length = ARROW_ROWS, .n_buffers = k == 2 ? 3 : 2,
                                           .buffers = t->buffers[k] };
        t->children[k] = &t->cells[k];
    }
    t->buffers[0][1] = a, t->buffers[1][1] = n, t->buffers[1][0] = given, t->buffers[3][1] = kind;
    t->buffers[2][1] = city_at, t->buffers[2][2] = cities;
    t->words = (struct ArrowSchema){ .format = "u" };
    t->dictionary = (struct ArrowArray){ .length = 2, .n_buffers = 3, .buffers = t->word_buffers };
    t->word_buffers[1] = word_at, t->word_buffers[2] = words;
    t->column[3].dictionary = &t->words, t->cells[3].dictionary = &t->dictionary;
}

#endif
