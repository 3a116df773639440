/* Makes the learners' own options options of train. A learner lists them in its table (plait_learner.options); here
 * they become rows like the others, from which flags, help, man page, completion, variables and the configuration
 * follow. If several learners have an option of the same name, it is one row with the help of each. A row has no
 * default, because the learner supplies its own. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/settings.h"
#include "learn/learn.h"

static const size_t first_offset = offsetof(pli_train_settings, own);

bool pli_row_is_own(const pli_opt *row) {
    return row->kind != PLI_OPT_LATER && row->offset >= first_offset &&
           row->offset < first_offset + sizeof((pli_train_settings *)0)->own;
}

/* --- the learners' options ---------------------------------------------------------------------------------------- */

static const plait_learner_option *option_of(const plait_learner *learner, const char *name) {
    for (const plait_learner_option *o = learner->options; o != NULL && o->name != NULL; o++)
        if (strcmp(o->name, name) == 0) return o;
    return NULL;
}

/* Does an earlier learner have an option with this name? Then the row exists already. */
static bool is_known(const plait_learner *const *learners, const plait_learner *const *end, const char *name) {
    for (; learners != end; learners++)
        if (option_of(*learners, name) != NULL) return true;
    return false;
}

/* Adds "kmeans has" or "kmeans, gmm have". */
static void add_owners(const plait_learner *const *learners, const char *name, pli_text *text) {
    int n = 0;
    for (; *learners != NULL; learners++)
        if (option_of(*learners, name) != NULL) pli_text_add(text, "%s%s", n++ > 0 ? ", " : "", (*learners)->name);
    pli_text_add(text, n == 1 ? " has" : " have");
}

/* --- a row ---------------------------------------------------------------------------------------------------- */

/* Where the texts of a row begin in the block of all texts, of which each ends with a zero byte. */
typedef struct row_texts {
    pli_text *all;
    size_t    argument, help; /* argument SIZE_MAX: none */
} row_texts;

static void end_text(pli_text *all) { pli_text_add_bytes(all, "", 1); }

/* Adds names, which are separated by blanks, to the text from `begin` on, separated by bars; names that are there
 * already are skipped. */
static void add_choices(pli_text *all, size_t begin, const char *names) {
    for (const char *at = names; *at != '\0';) {
        const int   length = (int)strcspn(at, " ");
        const char *had = all->length > begin ? all->data + begin : "";
        bool        is_new = length > 0;
        for (; *had != '\0'; had += strcspn(had, "|"), had += *had == '|')
            is_new = is_new && !((int)strcspn(had, "|") == length && strncmp(had, at, (size_t)length) == 0);
        if (is_new) pli_text_add(all, "%s%.*s", all->length > begin ? "|" : "", length, at);
        at += length;
        at += strspn(at, " ");
    }
}

/* Adds "for kmeans: number of clusters, default 8". */
static void add_help(pli_text *all, const plait_learner *learner, const plait_learner_option *o) {
    pli_text_add(all, "for %s: %s", learner->name, o->help);
    if (o->kind == PLAIT_OPTION_FLAG) return;
    if (pli_is(o->preset, "")) return;
    if (o->preset != NULL) pli_text_add(all, ", default %s", o->preset);
    else pli_text_add(all, ", must be given");
}

static pli_opt_kind kind_of(plait_option_kind kind) {
    switch (kind) {
    case PLAIT_OPTION_COUNT: return PLI_OPT_I64;
    case PLAIT_OPTION_NUMBER: return PLI_OPT_F64;
    case PLAIT_OPTION_NAME: return PLI_OPT_CHOICE;
    case PLAIT_OPTION_FLAG: return PLI_OPT_FLAG;
    default: return PLI_OPT_TEXT;
    }
}

/* Merges another learner's option into the row. The row gets the widest bounds of all learners; the run checks those of
 * its --model again. If learners mean different kinds of value, the row takes any text, and the run reads it. */
static void merge(pli_opt *row, bool first, const plait_learner_option *o) {
    const pli_opt_kind kind = kind_of(o->kind);
    const bool         numeric = kind == PLI_OPT_I64 || kind == PLI_OPT_F64;
    const double       low = o->low, high = o->high == 0 ? (double)INFINITY : o->high;
    if (first) *row = (pli_opt){ .name = o->name, .kind = kind, .min = low, .max = high, .group = "model" };
    if (row->kind != kind) row->kind = PLI_OPT_TEXT;
    if (low < row->min) row->min = low;
    if (high > row->max) row->max = high;
    if (!numeric) row->min = row->max = 0;
}

static void make_row(const plait_learner *const *learners, const char *name, pli_opt *row, row_texts *texts) {
    pli_text *all = texts->all;
    bool      first = true, file = true; /* file: all learners that have it mean a file */
    texts->argument = all->length;
    for (const plait_learner *const *l = learners; *l != NULL; l++) {
        const plait_learner_option *o = option_of(*l, name);
        if (o == NULL) continue;
        merge(row, first, o);
        first = false;
        file = file && o->kind == PLAIT_OPTION_FILE;
        if (o->kind == PLAIT_OPTION_NAME) add_choices(all, texts->argument, o->names);
    }
    if (row->kind == PLI_OPT_FLAG) texts->argument = SIZE_MAX;
    else if (row->kind != PLI_OPT_CHOICE) {
        all->length = texts->argument;
        pli_text_add(all, row->kind == PLI_OPT_I64 ? "N" : file ? "FILE" : "X");
    }
    end_text(all);
    texts->help = all->length;
    for (const plait_learner *const *l = learners; *l != NULL; l++) {
        const plait_learner_option *o = option_of(*l, name);
        if (o == NULL) continue;
        if (all->length > texts->help) pli_text_add(all, "; ");
        add_help(all, *l, o);
    }
    end_text(all);
}

/* --- all rows ------------------------------------------------------------------------------------------------- */

typedef struct own_rows {
    pli_opt   row[PLI_OWN_VALUES];
    row_texts texts[PLI_OWN_VALUES];
    size_t    n;
    pli_text  all;
    size_t    models; /* where "logistic|hinge" begins */
} own_rows;

static void make_own(const plait_learner *const *learners, own_rows *own) {
    for (const plait_learner *const *l = learners; *l != NULL; l++) {
        for (const plait_learner_option *o = (*l)->options; o != NULL && o->name != NULL; o++) {
            if (is_known(learners, l, o->name) || own->n == PLI_OWN_VALUES) continue;
            own->texts[own->n].all = &own->all;
            make_row(l, o->name, &own->row[own->n], &own->texts[own->n]);
            own->row[own->n].offset = first_offset + own->n * sizeof(pli_own_value);
            own->n++;
        }
    }
    own->models = own->all.length;
    for (const plait_learner *const *l = learners; *l != NULL; l++) add_choices(&own->all, own->models, (*l)->name);
    end_text(&own->all);
}

/* The index after the last row of the model's group. */
static size_t place_of(const pli_opt *rows, size_t n) {
    size_t at = n;
    for (size_t i = 0; i < n; i++)
        if (pli_is(rows[i].group, "model")) at = i + 1;
    return at;
}

/* Joins all rows in one block of memory, followed by their texts. */
static pli_opt *join(const pli_opt *rows, size_t n, const own_rows *own, bool any_learner) {
    const size_t at = place_of(rows, n), bytes = (n + own->n + 1) * sizeof(pli_opt);
    pli_opt     *all = pli_malloc(bytes + own->all.length);
    if (all == NULL) return NULL;
    char *texts = (char *)all + bytes;
    memcpy(texts, own->all.data, own->all.length);
    memcpy(all, rows, at * sizeof *all);
    memcpy(all + at, own->row, own->n * sizeof *all);
    memcpy(all + at + own->n, rows + at, (n - at + 1) * sizeof *all);
    for (size_t i = 0; i < own->n; i++) {
        all[at + i].argument = own->texts[i].argument != SIZE_MAX ? texts + own->texts[i].argument : NULL;
        all[at + i].help = texts + own->texts[i].help;
    }
    for (size_t i = 0; any_learner && i < n; i++)
        if (pli_is(all[i].name, "model")) all[i].argument = texts + own->models;
    return all;
}

pli_opt *pli_rows_with_learners(const pli_opt *rows, const plait_learner *const *learners) {
    own_rows *own = pli_calloc(1, sizeof *own);
    size_t    n = 0;
    if (own == NULL) return NULL;
    while (rows[n].name != NULL) n++;
    make_own(learners, own);
    pli_opt *all = own->all.failed ? NULL : join(rows, n, own, *learners != NULL);
    pli_text_free(&own->all);
    pli_free(own);
    return all;
}

pli_opt *pli_command_rows(const pli_command *command) {
    static const plait_learner *const none[] = { NULL };
    return pli_rows_with_learners(command->rows, command->trains ? pli_learners() : none);
}

/* --- what was given ------------------------------------------------------------------------------------------- */

static bool is_given(const pli_opts *opts, const pli_opt *row) {
    return pli_row_is_own(row) && pli_opts_is_given(opts, row->name);
}

static const plait_learner *learner_of(const char *model) {
    const plait_learner *const *l = pli_learners();
    while (*l != NULL && strcmp((*l)->name, model) != 0) l++;
    return *l;
}

const plait_learner_option *pli_own_option_find(const char *model, const char *name) {
    const plait_learner *learner = learner_of(model);
    return learner != NULL ? option_of(learner, name) : NULL;
}

bool pli_own_option_leaves(const plait_learner_option *option, const char *value) {
    const bool may = option->kind == PLAIT_OPTION_COUNT && option->preset != NULL && strcmp(option->preset, "0") == 0;
    return may && strcmp(value, "0") == 0;
}

const char *pli_train_model(const pli_train_settings *s, const pli_opts *opts) {
    const bool named = pli_opts_is_given(opts, "model");
    return s->graph != NULL && !named ? "graph" : s->model;
}

static void refuse(const pli_opts *opts, const pli_opt *row, const char *model) {
    const char *place;
    pli_text    owners = { 0 };
    add_owners(pli_learners(), row->name, &owners);
    const pli_origin origin = pli_opts_origin(opts, row->name, &place);
    const bool       flag = origin == PLI_FROM_FLAG, file = origin == PLI_FROM_FILE;
    pli_cli_usage("train: %s%s%s with model %s: only %s it", flag ? "--" : place, file ? ": " : "",
                  flag || file ? row->name : "", model, owners.data != NULL ? owners.data : "another has");
    pli_text_free(&owners);
}

bool pli_own_options_check(const pli_train_settings *settings, const pli_opts *opts) {
    const char          *model = pli_train_model(settings, opts);
    const plait_learner *learner = learner_of(model);
    for (const pli_opt *row = pli_opts_rows(opts); row->name != NULL; row++) {
        if (!is_given(opts, row) || learner == NULL || option_of(learner, row->name) != NULL) continue;
        refuse(opts, row, model);
        return false;
    }
    return true;
}

void pli_plan_own_options(const pli_train_settings *settings, const pli_opts *opts, pli_train_plan *plan) {
    plait_train_opts *t = &plan->train;
    t->settings = plan->own;
    for (const pli_opt *row = pli_opts_rows(opts); row->name != NULL; row++) {
        if (!is_given(opts, row)) continue;
        const pli_own_value *value = (const pli_own_value *)((const char *)settings + row->offset);
        char                *text = plan->own_text[t->n_settings];
        const char          *as = text;
        switch (row->kind) {
        case PLI_OPT_FLAG: as = value->flag ? "1" : "0"; break;
        case PLI_OPT_I64: snprintf(text, sizeof plan->own_text[0], "%" PRId64, value->count); break;
        case PLI_OPT_F64: pli_format_f64(value->number, text); break;
        default: as = value->name;
        }
        plan->own[t->n_settings++] = (plait_learner_setting){ .name = row->name, .value = as };
    }
}
