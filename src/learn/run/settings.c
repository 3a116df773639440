/* The learner's own options; its memory; and the calls by which it asks its run (plait/learner.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learn/run/run.h"

static const plait_learner_option *option_of(const pli_run *run, const char *name) {
    const plait_learner_option *o = run->learner->options;
    for (; o != NULL && o->name != NULL; o++)
        if (strcmp(o->name, name) == 0) return o;
    return NULL;
}

/* The value as given, else the preset; NULL: there is neither. */
static const char *value_of(const pli_run *run, const plait_learner_option *option) {
    for (int32_t i = run->opts->n_settings - 1; i >= 0; i--)
        if (strcmp(run->opts->settings[i].name, option->name) == 0) return run->opts->settings[i].value;
    return option->preset;
}

/* --- checked ------------------------------------------------------------------------------------------------------ */

static plait_status unknown(const pli_run *run, const char *name) {
    const char                 *names[64];
    size_t                      n = 0;
    const plait_learner_option *o = run->learner->options;
    for (; o != NULL && o->name != NULL && n < 64; o++) names[n++] = o->name;
    if (n > 0) return pli_fail_unknown(run->err, "option of this model", name, names, n);
    return pli_fail(run->err, PLAIT_ENAME, "%s: model %s has no options of its own", name, run->learner->name);
}

/* Is the word among names, which are separated by blanks? */
static bool is_among(const char *names, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = names; *at != '\0'; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == length && length > 0 && memcmp(at, word, length) == 0) return true;
    return false;
}

static plait_status check_value(const pli_run *run, const plait_learner_option *o, const char *value) {
    double  x = 0;
    int64_t n = 0;
    if (o->kind == PLAIT_OPTION_TEXT || o->kind == PLAIT_OPTION_FILE) return PLAIT_OK;
    if (o->kind == PLAIT_OPTION_NAME) {
        if (is_among(o->names, value)) return PLAIT_OK;
        return pli_fail(run->err, PLAIT_EINVAL, "%s is '%s': expected one of: %s", o->name, value, o->names);
    }
    bool ok = o->kind == PLAIT_OPTION_NUMBER ? pli_parse_f64(value, &x) && isfinite(x) : pli_parse_i64(value, &n);
    if (o->kind != PLAIT_OPTION_NUMBER) x = (double)n;
    const double high = o->kind == PLAIT_OPTION_FLAG ? 1 : o->high, low = o->kind == PLAIT_OPTION_FLAG ? 0 : o->low;
    ok = ok && x >= low && (high == 0 || x <= high);
    if (ok) return PLAIT_OK;
    char most[40] = "";
    if (high != 0) snprintf(most, sizeof most, ", at most %g", high);
    return pli_fail(run->err, PLAIT_EINVAL, "%s is '%s': expected %s from %g%s", o->name, value,
                    o->kind == PLAIT_OPTION_NUMBER ? "a number" : "an integer", low, most);
}

plait_status pli_settings_check(const pli_run *run) {
    for (int32_t i = 0; i < run->opts->n_settings; i++) {
        const plait_learner_setting *s = &run->opts->settings[i];
        if (s->name == NULL || s->value == NULL)
            return pli_fail_null(run->err, "plait_train", "a name or value of opts->settings");
        if (option_of(run, s->name) == NULL) return unknown(run, s->name);
    }
    for (const plait_learner_option *o = run->learner->options; o != NULL && o->name != NULL; o++) {
        const char *value = value_of(run, o);
        if (value == NULL)
            return pli_fail(run->err, PLAIT_EINVAL, "model %s needs --%s: %s", run->learner->name, o->name, o->help);
        PLI_TRY(check_value(run, o, value));
    }
    return PLAIT_OK;
}

void pli_run_add_settings(const pli_run *run, pli_text *text) {
    for (const plait_learner_option *o = run->learner->options; o != NULL && o->name != NULL; o++)
        pli_text_add(text, "--%s %s\n", o->name, value_of(run, o));
}

void pli_run_note_unused(const pli_run *run, const char *option, const char *why) {
    bool given = false;
    for (int32_t i = 0; i < run->opts->n_settings; i++)
        given = given || strcmp(run->opts->settings[i].name, option) == 0;
    if (given && pli_comm_leads(run->comm))
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_INFO, -1, "learn", "note: --%s has no effect %s", option, why);
}

void pli_run_took(pli_run *run, const char *option, int64_t n) {
    const size_t most = sizeof run->took / sizeof *run->took;
    size_t       i = 0;
    while (i + 1 < most && run->took[i].name[0] != '\0' && strcmp(run->took[i].name, option) != 0) i++;
    snprintf(run->took[i].name, sizeof run->took[i].name, "%s", option);
    snprintf(run->took[i].value, sizeof run->took[i].value, "%lld", (long long)n);
}

const char *pli_run_shown(const pli_run *run, const char *option) {
    for (size_t i = 0; i < sizeof run->took / sizeof *run->took; i++)
        if (strcmp(run->took[i].name, option) == 0) return run->took[i].value;
    return plait_training_name(run, option);
}

/* --- told --------------------------------------------------------------------------------------------------------- */

const char *plait_training_name(const plait_training *run, const char *name) {
    const plait_learner_option *o = run != NULL && name != NULL ? option_of(run, name) : NULL;
    return o != NULL ? value_of(run, o) : NULL;
}

double plait_training_number(const plait_training *run, const char *name) {
    const char *value = plait_training_name(run, name);
    double      x = NAN;
    return value != NULL && pli_parse_f64(value, &x) ? x : (double)NAN;
}

int64_t plait_training_count(const plait_training *run, const char *name) {
    const char *value = plait_training_name(run, name);
    int64_t     n = 0;
    return value != NULL && pli_parse_i64(value, &n) ? n : 0;
}

plait_status pli_run_make_state(pli_run *run) {
    run->state = pli_calloc(1, run->learner->state_bytes > 0 ? run->learner->state_bytes : 1);
    return run->state != NULL ? PLAIT_OK
                              : pli_fail(run->err, PLAIT_ENOMEM, "no memory for model %s", run->learner->name);
}

void pli_run_free_state(pli_run *run) {
    if (run->state != NULL && run->learner->end != NULL) run->learner->end(run);
    pli_free(run->state);
    run->state = NULL;
}

void        *plait_training_state(plait_training *run) { return run == NULL ? NULL : run->state; }
plait_comm  *plait_training_comm(const plait_training *run) { return run == NULL ? NULL : run->comm; }
plait_job   *plait_training_job(const plait_training *run) { return run == NULL ? NULL : run->job; }
plait_error *plait_training_error(const plait_training *run) { return run == NULL ? NULL : run->err; }
int64_t      plait_training_rows(const plait_training *run) { return run == NULL ? 0 : run->train_rows; }
int64_t      plait_training_features(const plait_training *run) { return run == NULL ? 0 : run->features; }
int64_t      plait_training_classes(const plait_training *run) { return run == NULL ? 0 : run->classes; }
uint64_t     plait_training_seed(const plait_training *run) { return run == NULL ? 0 : run->opts->seed; }
int64_t      plait_training_epochs(const plait_training *run) { return run == NULL ? 0 : run->epochs; }
int64_t      plait_training_clocks(const plait_training *run) { return run == NULL ? 0 : run->clocks; }

plait_status plait_training_fail(plait_training *run, plait_status status, const char *text) {
    if (run == NULL) return PLAIT_EINVAL; /* there is nowhere to put the text */
    PLI_TRY(PLI_GIVEN(run->err, text));
    return pli_fail(run->err, status, "model %s: %s", run->learner->name, text);
}
