/* Is a text Vowpal Wabbit's? Its lines are looked at, since names and bars occur elsewhere, too. */
#include <string.h>

#include "data/formats/table/cells.h"
#include "data/formats/vw/vw.h"

enum { LINES = 20, SAMPLE_BYTES = 1 << 16 };

static const unsigned char *skip_blanks(const unsigned char *p, const unsigned char *end) {
    while (p < end && pli_is_space(*p)) p++;
    return p;
}

/* Reads a number, or "class:cost"; returns where it ends; NULL: neither. */
static const unsigned char *vw_number(const unsigned char *p, const unsigned char *end) {
    unsigned char copy[64 + PLI_PARSE_PAD] = { 0 };
    double        value;
    size_t        n = 0;
    while (n < 64 && p + n < end && p[n] != '|' && !pli_is_space(p[n])) n++;
    memcpy(copy, p, n < 63 ? n : 63);
    const unsigned char *to = pli_number_f64(copy, &value);
    if (to != NULL && *to == ':') to = pli_number_f64(to + 1, &value);
    return to == copy + n && n > 0 ? p + n : NULL;
}

typedef struct vw_line {
    bool    is_vw;       /* label [importance [base]] ['tag] | features */
    bool    has_value;   /* a feature is name:value */
    bool    spaced;      /* a blank stands behind each bar */
    bool    named;       /* a name stands right behind each bar, and a blank before it */
    int64_t bars, words; /* words: those behind the bars, without namespaces */
} vw_line;

static void look_behind_the_bar(const unsigned char *p, const unsigned char *end, vw_line *line) {
    while (p < end) {
        p = skip_blanks(p, end);
        const unsigned char *word = p;
        while (p < end && !pli_is_space(*p)) p++;
        line->words += p > word && *word != '|';
        for (const unsigned char *c = word; c < p; c++) {
            line->bars += *c == '|';
            line->spaced = line->spaced && (*c != '|' || c + 1 == p);
            line->named = line->named && (*c != '|' || (c == word && c + 1 < p));
            line->has_value |= *c == ':' && c > word && vw_number(c + 1, p) == p;
        }
    }
}

static vw_line look_at_vw(const unsigned char *p, const unsigned char *end) {
    vw_line              line = { .spaced = true, .named = true };
    const unsigned char *bar = memchr(p, '|', (size_t)(end - p)), *at = skip_blanks(p, end), *next;
    int                  numbers = 0;
    if (bar == NULL) return line;
    for (; at < bar && (next = vw_number(at, bar)) != NULL; at = skip_blanks(next, bar)) numbers++;
    const unsigned char *tag = at;
    while (at < bar && !pli_is_space(*at)) at++;
    const bool tagged = at > tag && (*tag == '\'' || (at == bar && numbers > 0));
    const bool apart = bar == p || pli_is_space(bar[-1]);
    line.is_vw = skip_blanks(at, bar) == bar && (tagged || (at == tag && apart));
    if (line.is_vw) look_behind_the_bar(bar, end, &line);
    return line;
}

/* It may also be a table of cells between bars: that has as many bars in each line, blanks on both sides of them or on
 * none, and no name:value. */
bool pli_vw_is(const pli_source *source) {
    const unsigned char *p = source->data + source->begin, *end = source->data + source->bytes, *next;
    int64_t              lines = 0, values = 0, texts = 0, bars = 0;
    bool                 cells = true;
    if (end - p > SAMPLE_BYTES) end = p + SAMPLE_BYTES;
    for (; p < end && lines < LINES; p = next) {
        const unsigned char *stop = pli_line_end(p, end, &next);
        if (skip_blanks(p, stop) == stop) continue; /* a blank line between examples of several lines */
        const vw_line line = look_at_vw(p, stop);
        if (!line.is_vw) return false;
        cells = cells && line.spaced && line.bars > 1 && (lines == 0 || line.bars == bars);
        bars = line.bars;
        lines++;
        values += line.has_value;
        texts += line.named ? line.words > 0 : line.bars == 1 && line.words > 1;
    }
    return lines > 0 && !cells && (values > 0 || 2 * texts > lines);
}
