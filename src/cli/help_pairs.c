/* help pairs - which topologies and consistencies train together, which pairs each setting works with, and which
 * settings work together. pli_pair_check answers all of it, as it does at the start of a run. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/reasons.h"
#include "learn/learner.h"
#include "learn/solve/solver.h"
#include "table/pairs/pairs.h"

enum { SETTINGS_MAX = 48, POLICIES_MAX = 24, NAME_COLUMNS = 27 };

/* --- topologies and consistencies --------------------------------------------------------------------------------- */

static bool trains_with(pli_pair pair, pli_fill fill) {
    pair.fill = fill;
    return pli_pair_check(&pair, NULL) >= 0;
}

/* The words of the table's cells, and how wide its columns are: a narrow window gets short ones. */
typedef struct form {
    const char *trains, *refused, *sparse, *dense;
    int         width; /* 0: by the topology's name */
} form;

static const form wide = { "trains", "refused", "sparse only", "dense only", 13 };
static const form narrow = { "yes", "no", "sparse", "dense", 0 };

enum { POLICY_COLUMNS = 16, WIDE_COLUMNS = 75 };

static int width_of(const form *f, const char *topology) {
    const int length = (int)strlen(topology);
    return f->width > 0 ? f->width : length < 7 ? 8 : length + 1;
}

/* What the table says of one pair. */
static void cell_of(const pli_pair *pair, const form *f, pli_reasons *all, char cell[32]) {
    plait_error err = { 0 };
    char        own[64];
    snprintf(own, sizeof own, " x %s", pair->consistency);
    const pli_renamed renamed[] = { { own, " x C" }, { NULL, NULL } };
    if (pli_pair_check(pair, &err) < 0)
        snprintf(cell, 32, "%s [%d]", f->refused, pli_reasons_number(all, err.text, renamed));
    else if (!trains_with(*pair, PLI_FILL_DENSE)) snprintf(cell, 32, "%s", f->sparse);
    else if (!trains_with(*pair, PLI_FILL_SPARSE)) snprintf(cell, 32, "%s", f->dense);
    else snprintf(cell, 32, "%s", f->trains);
}

/* Adds a table of topologies (columns) and policies (rows); a refused pair has the number of its reason. */
static void pairs_of(pli_text *text, const form *f, pli_reasons *all, bool one_process) {
    const pli_topology_kind *const *topology = pli_topologies();
    const plait_consistency *const *policy = pli_consistencies();
    pli_text_add(text, "%-*s", POLICY_COLUMNS, "");
    for (int t = 0; topology[t] != NULL; t++)
        pli_text_add(text, "%-*s", topology[t + 1] != NULL ? width_of(f, topology[t]->name) : 0, topology[t]->name);
    pli_text_add(text, "\n");
    for (int p = 0; policy[p] != NULL; p++) {
        char spec[PLI_CONSISTENCY_TEXT], example[PLI_TOPOLOGY_TEXT], cell[32];
        pli_cli_example(policy[p], spec);
        pli_text_add(text, "%-*s", POLICY_COLUMNS, spec);
        for (int t = 0; topology[t] != NULL; t++) {
            pli_topology_example(topology[t], example);
            cell_of(&(pli_pair){ .topology = example, .consistency = spec, .one_process = one_process }, f, all, cell);
            pli_text_add(text, "%-*s", topology[t + 1] != NULL ? width_of(f, topology[t]->name) : 0, cell);
        }
        pli_text_add(text, "\n");
    }
}

/* --- settings ----------------------------------------------------------------------------------------------------- */

/* A setting of the list, a learner with needs, or the solver. */
typedef struct choice {
    const char          *name, *option;
    const pli_setting   *setting;
    const char          *model; /* whose it is: "mlp"; "": any net's; NULL: any model's */
    const pli_solver    *solver;
    char                 text[64]; /* "--model kmeans" */
} choice;

/* Consistencies with parameters. bounded-delay counts as two, because with delay 0 it computes bsp's model. */
typedef struct specs {
    char text[POLICIES_MAX][PLI_CONSISTENCY_TEXT];
    int  n;
} specs;

typedef struct all_settings {
    choice choice[SETTINGS_MAX];
    int    n;
    specs  specs;
} all_settings;

static void list_specs(specs *s) {
    const plait_consistency *const *policy = pli_consistencies();
    for (int p = 0; policy[p] != NULL && s->n + 1 < POLICIES_MAX; p++) {
        if (strcmp(policy[p]->name, "bounded-delay") == 0) strcpy(s->text[s->n++], "bounded-delay:0");
        pli_cli_example(policy[p], s->text[s->n++]);
    }
}

/* Does the learner need anything of the settings that logistic does not need? */
static bool is_choosy(const plait_learner *l) { return l->needs != 0 || l->optimizer == NULL; }

static void list_settings(all_settings *all) {
    for (const pli_setting *s = pli_settings(); s->name != NULL && all->n + 1 < SETTINGS_MAX; s++)
        all->choice[all->n++] = (choice){ .name = s->name, .option = s->option, .setting = s, .model = s->model };
    for (int i = 0; pli_solvers()[i] != NULL && all->n + 1 < SETTINGS_MAX; i++) {
        choice *c = &all->choice[all->n++];
        *c = (choice){ .name = pli_solvers()[i]->name, .solver = pli_solvers()[i] };
        const char *of = "";
        if (c->solver == &pli_solver_cd) { /* two go by the name cd */
            c->model = "hinge";
            of = " (hinge)";
        } else if (c->solver == &pli_solver_coordinates) {
            c->model = "logistic";
            of = " (not hinge)";
        }
        snprintf(c->text, sizeof c->text, "--optimizer %s%s", c->name, of);
        c->option = c->text;
    }
    for (int i = 0; pli_learners()[i] != NULL && all->n < SETTINGS_MAX; i++) {
        if (!is_choosy(pli_learners()[i])) continue;
        choice *c = &all->choice[all->n++];
        *c = (choice){ .model = pli_learners()[i]->name };
        snprintf(c->text, sizeof c->text, "--model %s", c->model);
        c->name = c->text + sizeof "--" - 1;
        c->option = c->text;
    }
    list_specs(&all->specs);
}

/* --- what a run of two settings learns ---------------------------------------------------------------------------- */

static bool is_net(const plait_learner *l) { return l->more != NULL && l->more->graph != NULL; }

static bool has_solver(const plait_learner *l, const pli_solver *solver) {
    const pli_solver *const *of = l->more != NULL ? l->more->solvers : NULL;
    for (int i = 0; of != NULL && of[i] != NULL; i++)
        if (of[i] == solver) return true;
    return false;
}

/* Is the learner one that the choice is about? */
static bool is_about(const choice *c, const plait_learner *l) {
    if (c == NULL) return true;
    if (c->solver != NULL && !has_solver(l, c->solver)) return false;
    if (c->model == NULL) return true;
    return c->model[0] == '\0' ? is_net(l) : strcmp(c->model, l->name) == 0;
}

/* The learner of a run with both (b NULL: with one): logistic if both are about it, else the first. NULL: there is no
 * such run, as the two are values of one option, or a solver of some models and another model. */
static const plait_learner *learner_of(const choice *a, const choice *b) {
    const plait_learner *logistic = pli_learner_find("logistic", NULL, 0);
    if (b != NULL && a->solver != NULL && b->solver != NULL) return NULL;
    if (is_about(a, logistic) && is_about(b, logistic)) return logistic;
    for (int i = 0; pli_learners()[i] != NULL; i++)
        if (is_about(a, pli_learners()[i]) && is_about(b, pli_learners()[i])) return pli_learners()[i];
    return NULL;
}

/* A pair, and the settings that are on. */
typedef struct trial {
    pli_pair    pair;
    pli_above   above;
    plait_error err;
} trial;

static bool trains(trial *t, const char *topology, const char *consistency, bool one_process, const choice *a,
                   const choice *b) {
    const plait_learner *learner = learner_of(a, b);
    const bool           adds = learner->optimizer == NULL || (learner->more != NULL && learner->more->adds);
    t->above = (pli_above){ .model = NULL };
    t->pair = (pli_pair){ .topology = topology, .consistency = consistency, .table = "w", .one_process = one_process,
                          .rule = adds ? NULL : "adagrad", .servers = 2 };
    t->err = (plait_error){ .code = PLAIT_OK };
    const pli_solver *solver = b != NULL && b->solver != NULL ? b->solver : a->solver;
    pli_learner_note(learner, learner->ways, learner->needs, solver, &t->above);
    if (solver != NULL && solver->adds) t->pair.rule = NULL;
    if (a->setting != NULL) a->setting->turn_on(&t->pair, &t->above);
    if (b != NULL && b->setting != NULL) b->setting->turn_on(&t->pair, &t->above);
    t->pair.above = &t->above;
    return pli_pair_check(&t->pair, &t->err) >= 0;
}

/* --- a setting and pairs ------------------------------------------------------------------------------------------ */

/* The consistencies that work with the setting under this topology, on threads or on processes; "": none. */
static void list_policies(trial *t, const all_settings *all, const choice *c, const char *topology, bool one_process,
                          pli_text *list) {
    pli_text_free(list);
    for (int p = 0; p < all->specs.n; p++)
        if (trains(t, topology, all->specs.text[p], one_process, c, NULL))
            pli_text_add(list, "%s%s", list->length > 0 ? ", " : "", all->specs.text[p]);
}

static void add_topology(pli_text *text, const char *names, const char *policies) {
    pli_text_add(text, "   %-*s ", NAME_COLUMNS - 4, names);
    pli_cli_wrap(text, policies[0] != '\0' ? policies : "none", NAME_COLUMNS, pli_cli_width());
}

/* Does the setting work with every pair that trains? */
static bool goes_with_all(trial *t, const all_settings *all, const choice *c) {
    const pli_topology_kind *const *kind = pli_topologies();
    for (int k = 0; kind[k] != NULL; k++)
        for (int p = 0; p < all->specs.n; p++) {
            char           topology[PLI_TOPOLOGY_TEXT];
            const pli_pair alone = { .topology = topology, .consistency = all->specs.text[p], .servers = 2,
                                     .one_process = kind[k]->one_process };
            pli_topology_example(kind[k], topology);
            if (pli_pair_check(&alone, NULL) >= 0 &&
                !trains(t, topology, all->specs.text[p], kind[k]->one_process, c, NULL))
                return false;
        }
    return true;
}

/* Adds the pairs of a setting; topologies with the same consistencies share a line. */
static void pairs_of_setting(pli_text *text, trial *t, const all_settings *all, const choice *c) {
    const pli_topology_kind *const *kind = pli_topologies();
    pli_text                        names = { 0 }, policies = { 0 }, before = { 0 };
    pli_text_add(text, "%s, %s\n", c->name, c->option);
    if (goes_with_all(t, all, c)) {
        pli_text_add(text, "   every pair that trains\n");
        return;
    }
    for (int k = 0; kind[k] != NULL; k++) {
        char example[PLI_TOPOLOGY_TEXT];
        pli_topology_example(kind[k], example);
        list_policies(t, all, c, example, kind[k]->one_process, &policies);
        const char *now = policies.data != NULL ? policies.data : "", *was = before.data != NULL ? before.data : "";
        if (names.length > 0 && strcmp(now, was) != 0) {
            add_topology(text, names.data, was);
            pli_text_free(&names);
        }
        pli_text_add(&names, "%s%s", names.length > 0 ? ", " : "", kind[k]->name);
        pli_text_free(&before);
        pli_text_add(&before, "%s", now);
    }
    if (names.data != NULL) add_topology(text, names.data, before.data != NULL ? before.data : "");
    pli_text_free(&names);
    pli_text_free(&policies);
    pli_text_free(&before);
}

/* --- two settings ------------------------------------------------------------------------------------------------- */

/* Do both settings work together with some pair? If not, t->err says why, for the first pair that works with one of
 * them. */
static bool go_together(trial *t, const all_settings *all, const choice *a, const choice *b) {
    static const char *const orders[] = { "ps", "allreduce", "local", "hybrid", "gossip:ring" };
    plait_error              why = { .code = PLAIT_OK };
    bool                     both_alone = false;
    for (int one_process = 1; one_process >= 0; one_process--)
        for (size_t k = 0; k < sizeof orders / sizeof *orders; k++)
            for (int p = 0; p < all->specs.n; p++) {
                const char *policy = all->specs.text[p];
                const bool  each = trains(t, orders[k], policy, one_process != 0, a, NULL) &&
                                  trains(t, orders[k], policy, one_process != 0, b, NULL);
                if (trains(t, orders[k], policy, one_process != 0, a, b)) return true;
                if (why.code == PLAIT_OK || (each && !both_alone)) why = t->err;
                both_alone = both_alone || each;
            }
    t->err = why;
    return false;
}

/* Columns are in groups of five. */
static const char *gap_before(int i) { return i > 0 && i % 5 == 0 ? " " : ""; }
static char        letter_of(int i) { return (char)(i < 26 ? 'a' + i : 'A' + i - 26); }

/* The reasons why settings do not work together, each with the pairs of settings that it concerns. */
typedef struct whom_apart {
    pli_reasons reasons;
    pli_text    whom[PLI_REASONS_MAX]; /* "b e, c e" */
} whom_apart;

static void keep_apart(whom_apart *a, const char *why, int i, int j) {
    const pli_renamed none[] = { { NULL, NULL } };
    pli_text         *whom = &a->whom[pli_reasons_number(&a->reasons, why, none) - 1];
    pli_text_add(whom, "%s%c %c", whom->length > 0 ? ", " : "", letter_of(j), letter_of(i));
}

static void tell_apart(pli_text *text, whom_apart *a) {
    for (int r = 0; r < a->reasons.n; r++) {
        pli_cli_wrap(text, a->whom[r].data != NULL ? a->whom[r].data : "", 0, pli_cli_width());
        pli_text_add(text, "     ");
        pli_cli_wrap(text, a->reasons.text[r], 5, pli_cli_width());
        pli_text_free(&a->whom[r]);
    }
}

/* How many columns of the matrix fit beside the names: all, or whole groups of five. */
static int columns_that_fit(int width, int all) {
    const int room = width - NAME_COLUMNS - 3;
    if (all + (all - 1) / 5 <= room) return all;
    return room >= 11 ? (room + 1) / 6 * 5 : 5;
}

/* Adds columns [first, end) of the lower half of a matrix: does the setting of the row work with that of the column? */
static void add_columns(pli_text *text, trial *t, const all_settings *all, int first, int end, whom_apart *apart) {
    pli_text_add(text, "%*s", NAME_COLUMNS + 3, "");
    for (int i = first; i < end; i++) pli_text_add(text, "%s%c", i > first ? gap_before(i) : "", letter_of(i));
    pli_text_add(text, "\n");
    for (int i = first > 0 ? first + 1 : 0; i < all->n; i++) {
        pli_text_add(text, "%c  %-*.*s", letter_of(i), i > 0 ? NAME_COLUMNS : 0, NAME_COLUMNS - 1,
                     all->choice[i].option);
        for (int j = first; j < i && j < end; j++) {
            const choice *a = &all->choice[i], *b = &all->choice[j];
            const bool    some = learner_of(a, b) != NULL, together = some && go_together(t, all, a, b);
            pli_text_add(text, "%s%s", j > first ? gap_before(j) : "", together ? "+" : some ? "-" : "=");
            if (some && !together) keep_apart(apart, t->err.text, i, j);
        }
        pli_text_add(text, "\n");
    }
}

/* Adds the matrix; where it is wider than the window, in parts, one below the other. */
static void settings_with_settings(pli_text *text, trial *t, const all_settings *all, whom_apart *apart) {
    const int columns = all->n - 1, fit = columns_that_fit(pli_cli_width(), columns);
    for (int first = 0; first < columns; first += fit) {
        if (first > 0) pli_text_add(text, "\n");
        add_columns(text, t, all, first, first + fit < columns ? first + fit : columns, apart);
    }
}

static void settings(pli_text *text) {
    all_settings *all = pli_calloc(1, sizeof *all);
    trial        *t = pli_calloc(1, sizeof *t);
    whom_apart   *apart = pli_calloc(1, sizeof *apart);
    if (all == NULL || t == NULL || apart == NULL) {
        text->failed = true;
        pli_free(all);
        pli_free(t);
        pli_free(apart);
        return;
    }
    list_settings(all);
    pli_text_add(text, "\n");
    pli_cli_wrap(text, "With which pairs each setting goes, on threads for local:\n", 0, pli_cli_width());
    for (int i = 0; i < all->n; i++) pairs_of_setting(text, t, all, &all->choice[i]);
    pli_text_add(text, "\n");
    pli_cli_wrap(text,
                 "Settings with each other: + some pair goes with both, - none does, = no run has both, as of two "
                 "models:\n",
                 0, pli_cli_width());
    settings_with_settings(text, t, all, apart);
    pli_text_add(text, "\nWhy not:\n\n");
    tell_apart(text, apart);
    pli_free(all);
    pli_free(t);
    pli_free(apart);
}

void pli_cli_help_pairs(pli_text *text) {
    pli_reasons *all = pli_calloc(1, sizeof *all);
    if (all == NULL) {
        text->failed = true;
        return;
    }
    const form *f = pli_cli_width() < WIDE_COLUMNS ? &narrow : &wide;
    pli_text_add(text, "Ranks are threads of one process:\n\n");
    pairs_of(text, f, all, true);
    pli_text_add(text, "\nRanks are processes (mpi), or simulated (sim):\n\n");
    pairs_of(text, f, all, false);
    if (f == &narrow) {
        pli_text_add(text, "\n");
        pli_cli_wrap(text, "yes: it trains; no: it is refused; sparse, dense: it trains with such tables only.", 0,
                     pli_cli_width());
    }
    pli_text_add(text, "\nWhy, where C is the consistency of the row:\n\n");
    pli_reasons_tell(all, text);
    pli_free(all);
    settings(text);
}
