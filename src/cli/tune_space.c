/* Which options are tried, and a trial's values. A value is a function of seed, trial and option alone, so a search
 * that goes on after a kill draws the same trials again. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/tune.h"

/* What is tried of each model unless --try says otherwise. A range's scale is a logarithm unless it ends in :linear. */
static const struct {
    const char *models, *tried;
} presets[] = {
    { " logistic hinge squared huber quantile poisson ", "l2=1e-8..1" },
    { " gbdt ", "epochs=30..300 learning-rate=0.02..0.3 leaves=4..128 min-rows=1..60 l2=1e-3..30 "
                "subsample=0.5..1:linear colsample=0.3..1:linear" },
    { " forest ", "epochs=50..300 min-rows=1..20 depth=4..40" },
    { " mlp ", "learning-rate=1e-3..0.1 l2=1e-7..1e-2 layers=32|64|128|256|128,64 batch=16..256" },
    { " cnn lstm graph ", "learning-rate=1e-3..0.1 l2=1e-7..1e-2" },
    { " bayes ", "alpha=1e-3..10" },
    { " mf ", "components=4..64 l2=1e-3..1" },
};

/* --- a range ------------------------------------------------------------------------------------------------------ */

static bool parse_words(const char *text, pli_range *out) {
    const char *separator = strchr(text, '|') != NULL ? "|" : ",";
    size_t      used = 0;
    for (const char *at = text; *at != '\0';) {
        const size_t length = strcspn(at, separator);
        if (length == 0 || length >= PLI_TUNE_WORD || used + length + 1 > sizeof out->words) return false;
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
                      "numbers above 0), or NAME=A,B,C, for at most %d options", text, PLI_TUNE_RANGES);
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

static bool add_preset(const pli_tune *tune, const char *tried, pli_space *space) {
    for (const char *at = tried; *at != '\0';) {
        char      text[256];
        const int length = (int)strcspn(at, " ");
        snprintf(text, sizeof text, "%.*s", length, at);
        at += length;
        at += *at == ' ';
        const pli_opt *row = row_of(tune->job_opts, text, strcspn(text, "="));
        if (row == NULL || pli_opts_is_given(tune->job_opts, row->name)) continue;
        if (pli_is(row->name, "epochs") && pli_is(tune->set.halve, "epochs")) continue;
        if (!add(tune, text, space)) return false;
    }
    return true;
}

bool pli_space_make(const pli_tune *tune, pli_space *space) {
    char        name[48];
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
    snprintf(name, sizeof name, " %s ", model);
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        if (strstr(presets[i].models, name) != NULL && !add_preset(tune, presets[i].tried, space)) return false;
    if (space->n > 0) return true;
    pli_cli_usage("tune: no option of model %s is left to try; say which, as in --try l2=1e-6..1", model);
    return false;
}

/* --- values ------------------------------------------------------------------------------------------------------- */

int64_t pli_space_grid(pli_space *space, int64_t trials) {
    double  lists = 1, all = 1;
    int32_t numbers = 0;
    for (int32_t i = 0; i < space->n; i++) {
        if (space->range[i].n > 0) lists *= (double)space->range[i].n;
        else numbers++;
    }
    space->points = numbers > 0 ? (int64_t)floor(pow((double)trials / lists, 1.0 / numbers) + 1e-9) : 1;
    if (space->points < 2) space->points = 2;
    for (int32_t i = 0; i < numbers; i++) all *= (double)space->points;
    all *= lists;
    return all > PLI_TUNE_TRIALS_MAX ? -1 : (int64_t)all;
}

static void number(const pli_range *r, double u, char word[PLI_TUNE_WORD]) {
    const double top = r->whole ? r->high + 1 : r->high;
    double       x = r->log ? exp(log(r->low) + u * (log(top) - log(r->low))) : r->low + u * (top - r->low);
    if (r->whole) x = floor(x);
    if (x > r->high) x = r->high;
    if (x < r->low) x = r->low;
    snprintf(word, PLI_TUNE_WORD, r->whole ? "%.0f" : "%.5g", x);
}

const char *pli_range_word(const pli_range *range, int64_t i) {
    const char *at = range->words;
    while (i-- > 0) at += strlen(at) + 1;
    return at;
}

static void from_list(const pli_range *r, int64_t i, char word[PLI_TUNE_WORD]) {
    snprintf(word, PLI_TUNE_WORD, "%s", pli_range_word(r, i));
}

/* The digit of option i in the trial's number, whose base changes with each option. */
static int64_t digit(const pli_space *space, int64_t trial, int32_t i) {
    for (int32_t before = 0;; before++) {
        const int64_t base = space->range[before].n > 0 ? space->range[before].n : space->points;
        if (before == i) return trial % base;
        trial /= base;
    }
}

void pli_space_value(const pli_space *space, uint64_t seed, int64_t trial, int32_t i, char word[PLI_TUNE_WORD]) {
    const pli_range *r = &space->range[i];
    /* no block has such a number: streams of SPLIT count blocks from 0 */
    pli_random random = pli_random_at(seed, PLI_RANDOM_SPLIT, UINT64_MAX - 1 - (uint64_t)trial, (uint64_t)i);
    if (space->points > 0) {
        const int64_t at = digit(space, trial, i);
        if (r->n > 0) from_list(r, at, word);
        else number(r, (double)at / (double)(space->points - 1), word);
    } else if (r->n > 0) {
        from_list(r, (int64_t)pli_random_below(&random, (uint64_t)r->n), word);
    } else {
        number(r, pli_random_f64(&random), word);
    }
}
