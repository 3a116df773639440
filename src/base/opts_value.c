/* base/opts_value.c - one value, between text and the field of a struct.
 *
 * The row says what the field is and which values it takes; an error says what was wanted and what was given, so
 * that the user can mend it without the manual. A value is written as the configuration file would have it, so that
 * the record of a run can be run again. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/opts_impl.h"

static void *field(const pli_opt *row, void *target) { return (char *)target + row->offset; }
static const void *field_of(const pli_opt *row, const void *target) { return (const char *)target + row->offset; }

static size_t field_bytes(pli_opt_kind kind) {
    switch (kind) {
    case PLI_OPT_FLAG: return sizeof(bool);
    case PLI_OPT_I64: return sizeof(int64_t);
    case PLI_OPT_F64: return sizeof(double);
    case PLI_OPT_TEXT:
    case PLI_OPT_CHOICE: return sizeof(const char *);
    case PLI_OPT_LIST: return sizeof(pli_text_list);
    case PLI_OPT_DURATION: return sizeof(uint64_t);
    case PLI_OPT_BYTES: return sizeof(int64_t);
    case PLI_OPT_LATER: return 0;
    }
    return 0;
}

void pli_opts_clear(const pli_opt *rows, void *target) {
    for (const pli_opt *row = rows; row->name != NULL; row++) memset(field(row, target), 0, field_bytes(row->kind));
}

const char *pli_opts_keep(pli_opts *opts, const char *text) {
    size_t bytes = strlen(text) + 1;
    char  *copy = pli_arena_take(&opts->arena, bytes);
    return copy != NULL ? memcpy(copy, text, bytes) : NULL;
}

/* The array doubles whenever it holds a power of two of items; the old array stays in the arena. */
bool pli_opts_append(pli_opts *opts, pli_text_list *list, const char *text) {
    const char *copy = pli_opts_keep(opts, text);
    if (copy == NULL) return false;
    if ((list->n & (list->n - 1)) == 0) {
        const char **item = pli_arena_take(&opts->arena, (size_t)(list->n > 0 ? 2 * list->n : 1) * sizeof *item);
        if (item == NULL) return false;
        if (list->n > 0) memcpy(item, list->item, (size_t)list->n * sizeof *item);
        list->item = item;
    }
    list->item[list->n++] = copy;
    return true;
}

/* --- text to value: each parser returns NULL, or what was wanted ----------------------------------------- */

static const char *parse_flag(const char *text, bool *out) {
    static const char *const yes[] = { "true", "yes", "on", "1" }, *const no[] = { "false", "no", "off", "0" };
    for (int i = 0; i < 4; i++) {
        if (strcasecmp(text, yes[i]) != 0 && strcasecmp(text, no[i]) != 0) continue;
        *out = strcasecmp(text, yes[i]) == 0;
        return NULL;
    }
    return "true or false";
}

static bool within(const pli_opt *row, double value) {
    return (row->min == 0 && row->max == 0) || (value >= row->min && value <= row->max);
}

static const char *parse_i64(const pli_opt *row, const char *text, int64_t *out) {
    int64_t value;
    if (!pli_parse_i64(text, &value) || !within(row, (double)value)) return "a whole number";
    *out = value;
    return NULL;
}

static const char *parse_f64(const pli_opt *row, const char *text, double *out) {
    double value;
    if (!pli_parse_f64(text, &value) || !within(row, value)) return "a number";
    *out = value;
    return NULL;
}

/* row: its bounds are seconds; NULL: there are none. */
static const char *parse_duration(const pli_opt *row, const char *text, uint64_t *out) {
    static const struct {
        const char *suffix;
        double      ns;
    } units[] = {
        { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { "m", 60e9 }, { "h", 3600e9 }, { "", 1e9 }
    };
    char   number[64];
    double value;
    size_t digits = strspn(text, "0123456789.+eE");
    if (digits >= sizeof number) return "a time, such as 30s";
    snprintf(number, sizeof number, "%.*s", (int)digits, text);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(text + digits, units[i].suffix) != 0) continue;
        if (!pli_parse_f64(number, &value) || value * units[i].ns > 0x1p63) break;
        if (row != NULL && !within(row, value * units[i].ns * 1e-9)) return "a time in seconds";
        *out = (uint64_t)nearbyint(value * units[i].ns);
        return NULL;
    }
    return "a time, such as 500ms, 30s, 2m or 1.5h";
}

/* Powers of 1024, by their letters. */
static const char size_units[] = "KMGT";

static const char *parse_bytes(const pli_opt *row, const char *text, int64_t *out) {
    const size_t digits = strspn(text, "0123456789");
    const char  *unit = text[digits] != '\0' ? strchr(size_units, text[digits]) : NULL;
    const int    shift = unit != NULL ? 10 * (int)(unit - size_units + 1) : 0;
    char         number[32];
    int64_t      value;
    if (digits == 0 || digits >= sizeof number || text[digits + (unit != NULL)] != '\0')
        return "bytes, such as 500M or 4G";
    snprintf(number, sizeof number, "%.*s", (int)digits, text);
    if (!pli_parse_i64(number, &value) || value > INT64_MAX >> shift) return "bytes below 2^63, such as 500M or 4G";
    if (!within(row, (double)(value << shift))) return "a number of bytes";
    *out = value << shift;
    return NULL;
}

bool pli_parse_duration(const char *text, uint64_t *out) { return parse_duration(NULL, text, out) == NULL; }

static bool is_choice(const char *choices, const char *text) {
    size_t length = strlen(text);
    while (length > 0 && choices != NULL) {
        size_t here = strcspn(choices, "|");
        if (here == length && memcmp(choices, text, here) == 0) return true;
        choices = choices[here] == '|' ? choices + here + 1 : NULL;
    }
    return false;
}

/* --- errors -------------------------------------------------------------------------------------------- */

/* "from 1 to 8", "of at least 0", "above 0", "of at most 1", or nothing. */
static void describe_bounds(const pli_opt *row, char text[96]) {
    char low[32], high[32];
    pli_format_f64(row->min, low);
    pli_format_f64(row->max, high);
    text[0] = '\0';
    const bool number = row->kind == PLI_OPT_I64 || row->kind == PLI_OPT_F64 || row->kind == PLI_OPT_BYTES ||
                        row->kind == PLI_OPT_DURATION;
    if (!number || (row->min == 0 && row->max == 0)) return;
    if (isfinite(row->min) && isfinite(row->max))
        snprintf(text, 96, " from %s to %s", low, high);
    else if (row->min > 0 && row->min < 1e-100)
        snprintf(text, 96, " above 0");
    else if (isfinite(row->min))
        snprintf(text, 96, " of at least %s", low);
    else if (isfinite(row->max))
        snprintf(text, 96, " of at most %s", high);
}

static plait_status refuse_value(const pli_opt *row, const char *who, const char *wanted, const char *text,
                                 plait_error *err) {
    char bounds[96];
    describe_bounds(row, bounds);
    return pli_fail(err, PLAIT_EINVAL, "%s wants %s%s, not '%s'", who, wanted, bounds, text);
}

static plait_status refuse_choice(const pli_opt *row, const char *who, const char *text, plait_error *err) {
    enum { MOST = 64 };
    const char *names[MOST], *nearest = NULL;
    size_t      n = 0;
    char       *next = NULL, *copy = pli_strdup(row->argument != NULL ? row->argument : "");
    if (copy == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for options");
    for (char *name = strtok_r(copy, "|", &next); name != NULL && n < MOST; name = strtok_r(NULL, "|", &next))
        names[n++] = name;
    nearest = pli_nearest(text, names, n);
    plait_status status = nearest != NULL
                              ? pli_fail(err, PLAIT_EINVAL, "%s wants one of %s, not '%s'; did you mean %s?", who,
                                         row->argument, text, nearest)
                              : pli_fail(err, PLAIT_EINVAL, "%s wants one of %s, not '%s'", who, row->argument, text);
    pli_free(copy);
    return status;
}

/* --- assignment ---------------------------------------------------------------------------------------- */

static plait_status set_text(pli_opts *opts, const char **out, const char *text, plait_error *err) {
    const char *copy = pli_opts_keep(opts, text);
    if (copy == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for options");
    *out = copy;
    return PLAIT_OK;
}

static plait_status add_item(pli_opts *opts, pli_text_list *list, bool afresh, const char *text, plait_error *err) {
    if (afresh) *list = (pli_text_list){ .item = NULL };
    if (!pli_opts_append(opts, list, text)) return pli_fail(err, PLAIT_ENOMEM, "no memory for options");
    return PLAIT_OK;
}

/* Writes the field. */
static plait_status set_value(pli_opts *opts, const pli_opt *row, void *at, bool afresh, const char *text,
                              const char *who, plait_error *err) {
    const char *wanted = NULL;
    switch (row->kind) {
    case PLI_OPT_FLAG: wanted = parse_flag(text, at); break;
    case PLI_OPT_I64: wanted = parse_i64(row, text, at); break;
    case PLI_OPT_F64: wanted = parse_f64(row, text, at); break;
    case PLI_OPT_DURATION: wanted = parse_duration(row, text, at); break;
    case PLI_OPT_BYTES: wanted = parse_bytes(row, text, at); break;
    case PLI_OPT_TEXT: return set_text(opts, at, text, err);
    case PLI_OPT_LIST: return add_item(opts, at, afresh, text, err);
    case PLI_OPT_CHOICE:
        return is_choice(row->argument, text) ? set_text(opts, at, text, err) : refuse_choice(row, who, text, err);
    case PLI_OPT_LATER: return pli_fail(err, PLAIT_EREFUSED, "%s: %s", who, row->help);
    }
    return wanted == NULL ? PLAIT_OK : refuse_value(row, who, wanted, text, err);
}

/* Does the option take the name of a file or directory? Such a name is never empty; other texts may be. */
static bool names_file(const pli_opt *row) {
    static const char *const names[] = { "FILE", "DIR", "D" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (row->argument != NULL && strcmp(row->argument, names[i]) == 0) return true;
    return false;
}

plait_status pli_opts_assign(pli_opts *opts, const pli_opt *row, void *target, const char *text, pli_origin origin,
                             const char *place, const char *who, plait_error *err) {
    struct pli_opts_where *where = &opts->where[row - opts->rows];
    bool                   afresh = where->origin != origin;
    if (text[0] == '\0' && names_file(row))
        return pli_fail(err, PLAIT_EINVAL, "%s is empty: expected %s, or leave it out", who, row->argument);
    PLI_TRY(set_value(opts, row, field(row, target), afresh, text, who, err));
    *where = (struct pli_opts_where){ .origin = origin, .place = place };
    return PLAIT_OK;
}

/* --- value to text ------------------------------------------------------------------------------------- */

/* May the text stand in YAML without quotes? It must have only letters, digits and a few signs that mean nothing
 * there. */
static bool is_plain(const char *text) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=";
    return text[0] != '\0' && strchr("-=", text[0]) == NULL && text[strspn(text, plain)] == '\0' &&
           strcmp(text, "null") != 0;
}

static void add_scalar(pli_text *text, const char *value) {
    if (is_plain(value)) {
        pli_text_add(text, "%s", value);
        return;
    }
    pli_text_add(text, "\"");
    for (const char *c = value; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            pli_text_add(text, "\\%c", *c);
        else if ((unsigned char)*c < ' ' || *c == 0x7f)
            pli_text_add(text, "\\x%02X", (unsigned)(unsigned char)*c);
        else
            pli_text_add_bytes(text, c, 1);
    }
    pli_text_add(text, "\"");
}

static void add_list(pli_text *text, const pli_text_list *list) {
    pli_text_add(text, "[");
    for (int64_t i = 0; i < list->n; i++) {
        if (i > 0) pli_text_add(text, ", ");
        add_scalar(text, list->item[i]);
    }
    pli_text_add(text, "]");
}

static void add_duration(pli_text *text, uint64_t ns) {
    static const struct {
        const char *suffix;
        uint64_t    ns;
    } units[] = { { "s", 1000000000 }, { "ms", 1000000 }, { "us", 1000 }, { "ns", 1 } };
    size_t i = 0;
    while (ns % units[i].ns != 0) i++;
    pli_text_add(text, "%llu%s", (unsigned long long)(ns / units[i].ns), units[i].suffix);
}

static void add_size(pli_text *text, int64_t bytes) {
    int unit = -1;
    while (bytes > 0 && bytes % 1024 == 0 && size_units[unit + 1] != '\0') {
        bytes /= 1024;
        unit++;
    }
    pli_text_add(text, unit < 0 ? "%lld" : "%lld%c", (long long)bytes, unit < 0 ? ' ' : size_units[unit]);
}

void pli_opts_value(const pli_opt *row, const void *target, pli_text *text) {
    const void *at = field_of(row, target);
    char        number[32];
    switch (row->kind) {
    case PLI_OPT_FLAG: pli_text_add(text, "%s", *(const bool *)at ? "true" : "false"); break;
    case PLI_OPT_I64: pli_text_add(text, "%lld", (long long)*(const int64_t *)at); break;
    case PLI_OPT_F64:
        pli_format_f64(*(const double *)at, number);
        pli_text_add(text, "%s", number);
        break;
    case PLI_OPT_TEXT:
    case PLI_OPT_CHOICE:
        if (*(const char *const *)at != NULL) add_scalar(text, *(const char *const *)at);
        break; /* an unset text is written as nothing, which YAML reads as unset */
    case PLI_OPT_LIST: add_list(text, at); break;
    case PLI_OPT_DURATION: add_duration(text, *(const uint64_t *)at); break;
    case PLI_OPT_BYTES: add_size(text, *(const int64_t *)at); break;
    case PLI_OPT_LATER: break;
    }
}
