/* Which options are tried: those of --try, or those for which the table of options has a range for the model. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/tune.h"

/* --- a range ------------------------------------------------------------------------------------------------------ */

static bool is_listed(const pli_range *range, const char *word, size_t length) {
    for (int64_t i = 0; i < range->n; i++) {
        const char *known = pli_range_word(range, i);
        if (strlen(known) == length && strncmp(known, word, length) == 0) return true;
    }
    return false;
}

static bool parse_words(const char *text, pli_range *out) {
    const char *separator = strchr(text, '|') != NULL ? "|" : ",";
    size_t      used = 0;
    for (const char *at = text; *at != '\0';) {
        const size_t length = strcspn(at, separator);
        if (length == 0 || length >= PLI_TUNE_WORD || used + length + 1 > sizeof out->words) return false;
        if (is_listed(out, at, length)) return false;
        memcpy(out->words + used, at, length);
        used += length + 1;
        out->n++;
        at += length;
        if (*at != '\0' && *++at == '\0') return false;
    }
    return out->n > 0;
}

bool pli_range_parse(const char *text, bool whole, pli_range *out) {
    const char *equals = strchr(text, '='), *dots = strstr(text, "..");
    *out = (pli_range){ .whole = whole };
    if (equals == NULL || strlen(text) >= sizeof out->given) return false;
    if ((size_t)(equals - text) >= sizeof out->name) return false;
    snprintf(out->name, sizeof out->name, "%.*s", (int)(equals - text), text);
    snprintf(out->given, sizeof out->given, "%s", text);
    if (dots == NULL) return parse_words(equals + 1, out);
    char        low[48], high[48];
    const char *scale = strchr(dots, ':');
    const int   bytes = scale != NULL ? (int)(scale - dots) - 2 : (int)strlen(dots + 2);
    snprintf(low, sizeof low, "%.*s", (int)(dots - equals) - 1, equals + 1);
    snprintf(high, sizeof high, "%.*s", bytes, dots + 2);
    if (!pli_parse_f64(low, &out->low) || !pli_parse_f64(high, &out->high) || !(out->low < out->high)) return false;
    if (!isfinite(out->low) || !isfinite(out->high)) return false;
    if (whole && (out->low != floor(out->low) || out->high != floor(out->high))) return false;
    out->log = scale == NULL ? out->low > 0 : strcmp(scale, ":log") == 0;
    return scale == NULL || strcmp(scale, ":linear") == 0 || (out->log && out->low > 0);
}

static const pli_opt *row_of(const pli_opts *opts, const char *name, size_t length) {
    for (const pli_opt *row = pli_opts_rows(opts); row->name != NULL; row++)
        if (strlen(row->name) == length && strncmp(row->name, name, length) == 0) return row;
    return NULL;
}

/* --- the space ---------------------------------------------------------------------------------------------------- */

static bool refuse_name(const pli_tune *tune, const char *text) {
    const char *names[256];
    size_t      n = 0;
    char        name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "="), text);
    for (const pli_opt *row = pli_opts_rows(tune->job_opts); row->name != NULL && n < 256; row++)
        if (pli_is(row->group, "model") || pli_is(row->group, "optimizer")) names[n++] = row->name;
    const char *nearest = pli_nearest(name, names, n);
    pli_cli_usage("tune: --try %s: unknown option '%s'; %s%s%s", text, name, nearest != NULL ? "did you mean '" : "",
                  nearest != NULL ? nearest : "'plait help train' lists them", nearest != NULL ? "'?" : "");
    return false;
}

static bool add(const pli_tune *tune, const char *text, pli_space *space) {
    const pli_opt *row = row_of(tune->job_opts, text, strcspn(text, "="));
    pli_range     *range = &space->range[space->n];
    if (row == NULL) return refuse_name(tune, text);
    if ((!pli_is(row->group, "model") && !pli_is(row->group, "optimizer")) || pli_is(row->name, "model") ||
        pli_is(row->name, "seed") || (pli_is(row->name, "epochs") && pli_is(tune->set.halve, "epochs"))) {
        pli_cli_usage("tune: --try %s: only options of a model and of its optimizer are tried, not its name, the seed, "
                      "or what --halve names", text);
        return false;
    }
    if (space->n == PLI_TUNE_RANGES || !pli_range_parse(text, row->kind == PLI_OPT_I64, range)) {
        pli_cli_usage("tune: --try %s: expected NAME=LOW..HIGH with LOW below HIGH, the same with :linear or :log (of "
                      "numbers above 0), or NAME=A,B,C, each value once, for at most %d options", text,
                      PLI_TUNE_RANGES);
        return false;
    }
    if (range->n == 0 && row->kind != PLI_OPT_I64 && row->kind != PLI_OPT_F64) {
        pli_cli_usage("tune: --try %s: %s is no number; list its values: %s=A,B", text, row->name, row->name);
        return false;
    }
    for (int32_t i = 0; i < space->n; i++)
        if (pli_is(space->range[i].name, row->name)) {
            pli_cli_usage("tune: --try %s: %s is tried twice", text, row->name);
            return false;
        }
    space->n++;
    return true;
}

/* Adds what the table of options tries of the model, without the options that are given. */
static bool add_presets(const pli_tune *tune, const char *model, pli_space *space) {
    for (const pli_opt_range *range = pli_train_ranges; range->option != NULL; range++) {
        char           text[256];
        const pli_opt *row = row_of(tune->job_opts, range->option, strlen(range->option));
        if (!pli_opt_range_is_of(range, model) || row == NULL) continue;
        if (pli_opts_is_given(tune->job_opts, row->name)) continue;
        if (pli_is(row->name, "epochs") && pli_is(tune->set.halve, "epochs")) continue;
        snprintf(text, sizeof text, "%s=%s", range->option, range->tried);
        if (!add(tune, text, space)) return false;
    }
    return true;
}

/* Says that nothing is tried, and names an option of the model that counts something and was not given. */
static bool refuse_nothing(const pli_tune *tune, const char *model) {
    const pli_opt *row = pli_opts_rows(tune->job_opts);
    for (; row->name != NULL; row++)
        if (row->kind == PLI_OPT_I64 && pli_own_option_find(model, row->name) != NULL &&
            !pli_opts_is_given(tune->job_opts, row->name))
            break;
    if (row->name != NULL)
        pli_cli_usage("tune: no option of model %s is left to try; say which, as in --try %s=4,8,16", model, row->name);
    else
        pli_cli_usage("tune: no option of model %s is left to try; say which, as in --try NAME=LOW..HIGH: 'plait help "
                      "%s' lists them", model, model);
    return false;
}

bool pli_space_make(const pli_tune *tune, pli_space *space) {
    const char *model = pli_train_model(&tune->job, tune->job_opts);
    for (int64_t i = 0; i < tune->set.tries.n; i++)
        if (!add(tune, tune->set.tries.item[i], space)) return false;
    for (int32_t i = 0; i < space->n; i++) {
        if (pli_opts_origin(tune->job_opts, space->range[i].name, NULL) != PLI_FROM_FLAG) continue;
        pli_cli_usage("tune: --%s and --try %s both say which values it has; give one of them", space->range[i].name,
                      space->range[i].given);
        return false;
    }
    if (space->n > 0) return true;
    if (!add_presets(tune, model, space)) return false;
    return space->n > 0 || refuse_nothing(tune, model);
}
