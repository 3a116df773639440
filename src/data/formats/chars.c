/* Reads text by characters; chars.h says what its rows are. */
#include "data/formats/chars.h"

#include <math.h>
#include <string.h>

enum {
    BYTES = 256,
    BEGINNING = BYTES, /* before symbols are numbered */
    UNNUMBERED = BYTES + 1
};

struct pli_chars {
    const pli_sources *sources;
    int64_t            window, step;
    bool               apart, unlabelled;
    uint32_t           symbols;   /* width of a step: the symbols, and the beginning, which comes last */
    uint32_t           id[BYTES]; /* of each byte; an unknown byte has the beginning's */
    bool               numbered;
};

/* --- is it text? ------------------------------------------------------------------------------------------------ */

enum { LINES = 200, LINES_MIN = 4, SAMPLE_BYTES = 64 << 10, CELLS = 64 };

static bool is_letter(unsigned char c) { return c >= 0x80 || (unsigned)((c | 32) - 'a') < 26; }

/* How many cells a line has; a delimiter in double quotes does not count. */
static int64_t cells_of(const unsigned char *p, const unsigned char *end, unsigned char delimiter) {
    bool    quoted = false;
    int64_t n = 1;
    for (; p < end; p++) {
        if (*p == '"') quoted = !quoted;
        n += *p == delimiter && !quoted;
    }
    return n < CELLS ? n : CELLS - 1;
}

typedef struct look {
    int64_t lines, many[5][CELLS]; /* for each delimiter: how many lines have so many cells */
    int64_t bytes, letters, blanks;
    bool    binary;
} look;

/* It is a table if one of these delimiters gives so many of four lines the same number of cells. Blanks need more,
 * since short lines of a text may agree by chance. */
static const unsigned char delimiters[] = { ',', '\t', ';', '|', ' ' };
static const int64_t       of_four[] = { 2, 2, 2, 2, 3 };

static void look_at_line(const unsigned char *p, const unsigned char *end, look *l) {
    const unsigned char *from = p;
    while (end > p && end[-1] <= ' ') end--;
    if (p == end) return;
    l->lines++;
    for (size_t d = 0; d < sizeof delimiters; d++) l->many[d][cells_of(from, end, delimiters[d])]++;
    for (; p < end; p++) {
        l->bytes++;
        l->letters += is_letter(*p);
        l->blanks += *p == ' ';
        l->binary = l->binary || (*p < ' ' && *p != '\t' && *p != '\r' && *p != '\f');
    }
}

bool pli_chars_is(const pli_source *source) {
    const unsigned char *p = source->data + source->begin, *end = source->data + source->bytes;
    look                 l = { 0 };
    if (end - p > SAMPLE_BYTES) end = p + SAMPLE_BYTES;
    while (p < end && l.lines < LINES) {
        const unsigned char *newline = memchr(p, '\n', (size_t)(end - p));
        look_at_line(p, newline != NULL ? newline : end, &l);
        p = newline != NULL ? newline + 1 : end;
    }
    if (l.binary || l.lines < LINES_MIN || 2 * l.letters < l.bytes || 16 * l.blanks < l.bytes) return false;
    for (size_t d = 0; d < sizeof delimiters; d++)
        for (int64_t n = 2; n < CELLS; n++)
            if (4 * l.many[d][n] >= of_four[d] * l.lines) return false;
    return true;
}

/* --- opening ---------------------------------------------------------------------------------------------------- */

static plait_status check_options(const pli_dataset *d, const plait_data_opts *opts, const pli_schema *fixed,
                                  plait_error *err) {
    const char *path = d->sources->source[0].path;
    if (opts->hash_bits > 0)
        return pli_fail(err, PLAIT_EINVAL, "%s: there are few different characters, so they are not hashed; leave out "
                                           "--hash-bits", path);
    const bool has_label = opts->label != NULL && !pli_label_is_none(opts->label);
    if (has_label || opts->weight_column != NULL)
        return pli_fail(err, PLAIT_EINVAL,
                        "%s: text has no columns, and each label is the next character; leave out --%s, or name the "
                        "format, such as --format csv",
                        path, has_label ? "label" : "weight-column");
    if (opts->window < 0 || opts->window > PLI_WINDOW_MAX)
        return pli_fail(err, PLAIT_EINVAL, "window %d: expected 1 to %d characters", opts->window, PLI_WINDOW_MAX);
    if (fixed == NULL) return PLAIT_OK;
    if (fixed->format != PLI_FORMAT_CHARS)
        return pli_fail(err, PLAIT_EMISMATCH, "%s: the model was not trained on text", path);
    if (opts->window > 0 && opts->window != fixed->window)
        return pli_fail(err, PLAIT_EMISMATCH,
                        "%s: the model was trained on windows of %lld characters, not %d; leave out --window", path,
                        (long long)fixed->window, opts->window);
    return PLAIT_OK;
}

/* Plain text has no labels. A model of sequences learns which character comes next; every other model is given text
 * by mistake more often than not. */
static plait_status check_text(pli_dataset *d, const plait_data_opts *opts, const pli_schema *fixed, plait_error *err) {
    const char *path = d->sources->source[0].path;
    if (fixed != NULL || (opts->format != NULL && strcmp(opts->format, "text") == 0)) return PLAIT_OK;
    if (!opts->apart && !d->unlabelled)
        return pli_fail(err, PLAIT_EFORMAT,
                        "%s: plain text: its lines have no labels (\"label index:value ...\", or cells with a column "
                        "of labels); --model lstm learns the text by characters, and --format text lets every model",
                        path);
    pli_dataset_note(d, "%s: read as text, by characters; --format says otherwise", path);
    return PLAIT_OK;
}

plait_status pli_chars_open(pli_dataset *d, const plait_data_opts *opts, const pli_schema *fixed, plait_error *err) {
    PLI_TRY(check_options(d, opts, fixed, err));
    PLI_TRY(check_text(d, opts, fixed, err));
    struct pli_chars *c = d->chars = pli_calloc(1, sizeof *c);
    if (c == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the description of the data");
    c->sources = d->sources;
    c->unlabelled = d->unlabelled;
    c->apart = fixed != NULL ? fixed->apart : opts->apart != 0;
    c->window = fixed != NULL      ? fixed->window
                : opts->window > 0 ? opts->window
                : c->apart         ? PLI_CHARS_APART
                                   : PLI_CHARS_WINDOW;
    c->step = !c->apart ? 1 : opts->apart != 0 ? c->window : (c->window + 1) / 2;
    c->symbols = UNNUMBERED;
    for (uint32_t i = 0; i < BYTES; i++) c->id[i] = i;
    d->row_bytes = (size_t)c->step;
    return PLAIT_OK;
}

void pli_chars_describe(pli_dataset *d) {
    d->schema->window = d->chars->window;
    d->schema->apart = d->chars->apart;
    d->reader = &pli_chars_reader;
    d->rules = d->chars;
    if (d->is_fixed) pli_chars_number(d, d->schema);
}

void pli_chars_close(struct pli_chars **chars) {
    pli_free(*chars);
    *chars = NULL;
}

/* --- symbols ---------------------------------------------------------------------------------------------------- */

void pli_chars_number(pli_dataset *d, const pli_schema *schema) {
    struct pli_chars *c = d->chars;
    const uint32_t    beginning = (uint32_t)schema->labels;
    if (c->numbered) return;
    for (int i = 0; i < BYTES; i++) c->id[i] = beginning;
    for (int64_t k = 0; k < schema->labels; k++) c->id[(unsigned char)schema->label[k]] = (uint32_t)k;
    for (int32_t b = 0; d->rows != NULL && b < d->own; b++) {
        pli_block *block = &d->rows[b].b;
        for (int64_t e = 0; e < block->entries; e++) {
            const uint32_t step = block->col[e] / UNNUMBERED, byte = block->col[e] % UNNUMBERED;
            block->col[e] = step * (beginning + 1) + (byte == BEGINNING ? beginning : c->id[byte]);
        }
    }
    c->symbols = beginning + 1;
    c->numbered = true;
}

/* --- rows ------------------------------------------------------------------------------------------------------- */

/* The source in which `from` lies. */
static const pli_source *source_of(const struct pli_chars *c, const unsigned char *from) {
    int64_t i = 0;
    while (i + 1 < c->sources->n &&
           !(from >= c->sources->source[i].data && from < c->sources->source[i].data + c->sources->source[i].bytes))
        i++;
    return &c->sources->source[i];
}

/* Adds the window before the character text[label]; its last `places` places are filled. Places before the text's
 * beginning get no entry. */
static void add_window(const struct pli_chars *c, const unsigned char *text, int64_t label, int64_t places,
                       pli_block *b) {
    for (int64_t at = label - places < -1 ? -1 : label - places; at < label; at++) {
        const uint32_t symbol = at < 0 ? c->symbols - 1 : c->id[text[at]];
        b->col[b->entries++] = (uint32_t)(c->window - (label - at)) * c->symbols + symbol;
    }
    b->label[b->rows++] = c->unlabelled ? NAN : text[label];
    b->row_start[b->rows] = b->entries;
}

static bool note_labels(const unsigned char *from, const unsigned char *to, pli_found *found) {
    bool seen[BYTES] = { false };
    for (const unsigned char *p = from; p < to; p++) seen[*p] = true;
    for (int i = 0; i < BYTES; i++)
        if (seen[i] && !pli_found_label(found, i)) return false;
    return true;
}

static plait_status parse(const void *rules, const unsigned char *from, const unsigned char *to, pli_rows *rows,
                          pli_found *found, pli_bad *bad) {
    const struct pli_chars *c = rules;
    const pli_source       *source = source_of(c, from);
    const unsigned char    *text = source->data + source->begin;
    const int64_t           n = (to - from + c->step - 1) / c->step;
    bad->at = NULL;
    if (!pli_rows_reserve_rows(rows, n) || !pli_rows_reserve(rows, n * c->window) || !note_labels(from, to, found))
        return PLAIT_ENOMEM;
    rows->b.earlier = c->unlabelled ? 0 : (int32_t)c->step - 1;
    for (const unsigned char *p = from; p < to;) {
        const int64_t fresh = to - p < c->step ? to - p : c->step;
        add_window(c, text, p + fresh - 1 - text, fresh < c->step ? fresh : c->window, &rows->b);
        if (rows->b.weight != NULL) rows->b.weight[rows->b.rows - 1] = 1;
        p += fresh;
    }
    return PLAIT_OK;
}

const pli_reader pli_chars_reader = { .name = "text", .parse = parse };
