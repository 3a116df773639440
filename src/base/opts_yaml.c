/* base/opts_yaml.c - the configuration file: one flat mapping of option names to values.
 *
 * YAML is read as the events of libyaml (the parser that libcyaml brings), not into a tree: only a mapping of names
 * to scalars or lists of scalars is wanted, and everything else is refused where it begins, with its line. A scalar
 * stays text until the option's row says what it is, so `header: yes` and `consistency: ssp:2` mean what they say.
 * Anchors, tags and further documents have no use here and are refused, so a hostile file can at most be wrong. */
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/error.h"
#include "base/opts_impl.h"

struct reader {
    pli_opts     *opts;
    void         *target;
    const char   *path;
    plait_error  *err;
    yaml_parser_t parser;
    yaml_event_t  event; /* the current one */
};

static size_t line_of(const struct reader *r) { return r->event.start_mark.line + 1; }

/* Moves to the next event. */
static plait_status advance(struct reader *r) {
    yaml_event_delete(&r->event);
    if (yaml_parser_parse(&r->parser, &r->event)) return PLAIT_OK;
    memset(&r->event, 0, sizeof r->event);
    if (r->parser.error == YAML_MEMORY_ERROR)
        return pli_fail(r->err, PLAIT_ENOMEM, "%s: no memory to read it", r->path);
    const char *problem = r->parser.problem != NULL ? r->parser.problem : "not YAML";
    return pli_fail(r->err, PLAIT_EFORMAT, "%s:%zu: %s", r->path, r->parser.problem_mark.line + 1, problem);
}

static plait_status refuse(struct reader *r, const char *why) {
    return pli_fail(r->err, PLAIT_EFORMAT, "%s:%zu: %s", r->path, line_of(r), why);
}

/* The text of the current scalar. */
static plait_status scalar_text(struct reader *r, const char **text_out) {
    if (r->event.type != YAML_SCALAR_EVENT) return refuse(r, "a value is wanted here, or a list of values");
    *text_out = (const char *)r->event.data.scalar.value;
    if (strlen(*text_out) != r->event.data.scalar.length) return refuse(r, "a NUL byte in a text");
    return PLAIT_OK;
}

/* `name:`, `name: ~` and `name: null` leave an option alone; "null" in quotes is a text. */
static bool is_null(const struct reader *r) {
    const char *text = (const char *)r->event.data.scalar.value;
    return r->event.type == YAML_SCALAR_EVENT && r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (*text == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0);
}

static plait_status assign(struct reader *r, const pli_opt *row, const char *text, const char *place) {
    char who[512];
    snprintf(who, sizeof who, "%s: %s", place, row->name);
    return pli_opts_assign(r->opts, row, r->target, text, PLI_FROM_FILE, place, who, r->err);
}

/* Reads a list: the items of a list option; for other options `layers: [512, 256]` means the same as "512,256". */
static plait_status read_list(struct reader *r, const pli_opt *row, const char *place) {
    plait_status status;
    const char  *item = NULL;
    pli_text     joined = { .data = NULL };
    while ((status = advance(r)) == PLAIT_OK && r->event.type != YAML_SEQUENCE_END_EVENT) {
        if ((status = scalar_text(r, &item)) < 0) break;
        if (row->kind == PLI_OPT_LIST)
            status = assign(r, row, item, place);
        else
            pli_text_add(&joined, "%s%s", joined.length > 0 ? "," : "", item);
        if (status < 0) break;
    }
    if (status == PLAIT_OK && joined.failed) status = pli_fail(r->err, PLAIT_ENOMEM, "%s: no memory", r->path);
    if (status == PLAIT_OK && joined.length > 0) status = assign(r, row, joined.data, place);
    pli_text_free(&joined);
    return status;
}

/* Does the name belong to the other table that shares the file? */
static bool is_beside(const pli_opts *opts, const char *name) {
    for (const pli_opt *row = opts->beside; row != NULL && row->name != NULL; row++)
        if (strcmp(row->name, name) == 0) return true;
    return false;
}

/* *row_out NULL: an option of the other table. */
static plait_status find_row(struct reader *r, const char *name, const pli_opt **row_out) {
    char who[512];
    *row_out = pli_opts_row(r->opts, name, strlen(name));
    if (*row_out == NULL && is_beside(r->opts, name)) return PLAIT_OK;
    if (*row_out == NULL) {
        snprintf(who, sizeof who, "%.300s:%zu: unknown option '%.100s'", r->path, line_of(r), name);
        return pli_opts_unknown(r->opts, who, name, "", r->err);
    }
    if (r->opts->where[*row_out - r->opts->rows].origin == PLI_FROM_FILE) return refuse(r, "an option given twice");
    return PLAIT_OK;
}

/* Passes over a value, or a list of them; the other table's reading says what is wrong with it. */
static plait_status skip_value(struct reader *r) {
    int depth = 0;
    do {
        PLI_TRY(advance(r));
        const yaml_event_type_t type = r->event.type;
        depth += type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT;
        depth -= type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT;
    } while (depth > 0);
    return PLAIT_OK;
}

/* The current event is a name; reads it and its value. */
static plait_status read_pair(struct reader *r) {
    const pli_opt *row;
    const char    *text = NULL;
    char           place[512];
    PLI_TRY(scalar_text(r, &text));
    PLI_TRY(find_row(r, text, &row));
    if (row == NULL) return skip_value(r);
    snprintf(place, sizeof place, "%.480s:%zu", r->path, line_of(r));
    const char *kept = pli_opts_keep(r->opts, place);
    if (kept == NULL) return pli_fail(r->err, PLAIT_ENOMEM, "%s: no memory to read it", r->path);
    PLI_TRY(advance(r));
    if (is_null(r)) return PLAIT_OK;
    if (r->event.type == YAML_SEQUENCE_START_EVENT) return read_list(r, row, kept);
    PLI_TRY(scalar_text(r, &text));
    return assign(r, row, text, kept);
}

static plait_status read_stream(struct reader *r) {
    do PLI_TRY(advance(r));
    while (r->event.type == YAML_STREAM_START_EVENT || r->event.type == YAML_DOCUMENT_START_EVENT);
    if (r->event.type == YAML_STREAM_END_EVENT) return PLAIT_OK; /* an empty file */
    if (is_null(r)) return advance(r);
    if (r->event.type != YAML_MAPPING_START_EVENT) return refuse(r, "lines of `option: value` are wanted");
    for (;;) {
        PLI_TRY(advance(r));
        if (r->event.type == YAML_MAPPING_END_EVENT) break;
        PLI_TRY(read_pair(r));
    }
    do PLI_TRY(advance(r));
    while (r->event.type == YAML_DOCUMENT_END_EVENT);
    return r->event.type == YAML_STREAM_END_EVENT ? PLAIT_OK : refuse(r, "a second document");
}

plait_status pli_opts_read_yaml(pli_opts *opts, void *target, const char *path, const void *bytes, size_t n,
                                plait_error *err) {
    struct reader r = { .opts = opts, .target = target, .path = path, .err = err };
    if (!yaml_parser_initialize(&r.parser)) return pli_fail(err, PLAIT_ENOMEM, "%s: no memory to read it", path);
    yaml_parser_set_input_string(&r.parser, n > 0 ? bytes : (const void *)"", n);
    plait_status status = read_stream(&r);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    return status;
}
