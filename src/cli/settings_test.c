/* The option table names all entries of the registries: if a new policy, topology, filter, collective, rule or learner
 * is not in the help, these tests fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "cli/settings.h"
#include "comm/comm.h"
#include "learn/solve/solver.h"
#include "learn/learn.h"
#include "optim/optim.h"
#include "table/consistency/consistency.h"
#include "table/filter/filter.h"
#include "table/topology/topology.h"

static pli_opt *train_rows; /* all rows of train, while the tests run */

static int make_rows(void **state) {
    (void)state;
    train_rows = pli_command_rows(&pli_command_train);
    return train_rows == NULL;
}

static int free_rows(void **state) {
    (void)state;
    pli_free(train_rows);
    return 0;
}

static const pli_opt *row_of(const char *name) {
    const pli_opt *row = train_rows;
    while (row->name != NULL && strcmp(row->name, name) != 0) row++;
    assert_non_null(row->name);
    return row;
}

/* The text contains the word, with no letter, digit or hyphen before or after it. */
static void assert_says(const char *text, const char *word) {
    static const char inside[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-:";
    size_t            length = strlen(word);
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        bool begins = at == text || strchr(inside, at[-1]) == NULL,
             ends = at[length] == '\0' || strchr(inside, at[length]) == NULL;
        if (begins && ends) return;
    }
    fail_msg("'%s' is not in '%s'", word, text);
}

static int words_of(const char *choices) {
    int n = 1;
    for (; *choices != '\0'; choices++) n += *choices == '|';
    return n;
}

static void effects_of_all_options_are_known(void **state) {
    (void)state;
    for (const pli_opt *row = pli_train_rows; row->name != NULL; row++)
        if (!pli_train_effect_is_known(row->name))
            fail_msg("effects.c does not say when --%s has an effect", row->name);
    assert_false(pli_train_effect_is_known("no-such-option"));
}

static void topologies_are_in_the_help(void **state) {
    const pli_opt *row = row_of("topology");
    (void)state;
    for (size_t i = 0; pli_topologies()[i] != NULL; i++) {
        const pli_topology_kind *kind = pli_topologies()[i];
        char                     name[64];
        snprintf(name, sizeof name, "%s%s", kind->name, kind->parameters[0] != '\0' ? ":G" : "");
        assert_says(row->argument, name);
        for (const char *word = kind->parameters; *word != '\0'; word += strspn(word, "|")) {
            char text[32];
            snprintf(text, sizeof text, "%.*s", (int)strcspn(word, "|"), word);
            assert_says(row->help, text);
            word += strlen(text);
        }
    }
}

static void policies_are_in_the_help(void **state) {
    (void)state;
    for (size_t i = 0; pli_consistencies()[i] != NULL; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", pli_consistencies()[i]->name, pli_consistencies()[i]->parameters);
        assert_says(row_of("consistency")->help, name);
    }
}

static void filters_are_in_the_help(void **state) {
    (void)state;
    for (size_t i = 0; pli_filters()[i] != NULL; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", pli_filters()[i]->name, pli_filters()[i]->parameters);
        assert_says(row_of("filter")->help, name);
    }
}

static void collectives_rules_and_models_are_the_choices(void **state) {
    const char *collectives = row_of("collective")->argument, *optimizers = row_of("optimizer")->argument,
               *models = row_of("model")->argument;
    int         n = 0;
    (void)state;
    for (int i = 0; i < PLI_COLLECTIVES; i++) assert_says(collectives, pli_collectives[i]);
    assert_int_equal(words_of(collectives), PLI_COLLECTIVES);
    for (; pli_rules()[n] != NULL; n++) assert_says(optimizers, pli_rules()[n]->name);
    int solvers = 0; /* names: one may have two solvers, as cd has, by the loss */
    for (int i = 0; pli_solvers()[i] != NULL; i++) {
        assert_says(optimizers, pli_solvers()[i]->name);
        solvers += pli_solver_find(pli_solvers()[i]->name) == pli_solvers()[i];
    }
    assert_says(optimizers, "auto");
    assert_int_equal(words_of(optimizers), n + solvers + 1);
    for (n = 0; pli_learners()[n] != NULL; n++) assert_says(models, pli_learners()[n]->name);
    assert_int_equal(words_of(models), n);
}

/* Each of the learners' own options has a row, whose name no other option has. */
static void own_options_of_learners_are_rows(void **state) {
    (void)state;
    for (size_t i = 0; pli_learners()[i] != NULL; i++) {
        for (const plait_learner_option *o = pli_learners()[i]->options; o != NULL && o->name != NULL; o++) {
            int n = 0;
            for (const pli_opt *row = train_rows; row->name != NULL; row++) n += strcmp(row->name, o->name) == 0;
            assert_int_equal(n, 1);
            assert_true(pli_row_is_own(row_of(o->name)));
            assert_non_null(strstr(row_of(o->name)->help, pli_learners()[i]->name));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(effects_of_all_options_are_known),
        cmocka_unit_test(topologies_are_in_the_help),
        cmocka_unit_test(policies_are_in_the_help),
        cmocka_unit_test(filters_are_in_the_help),
        cmocka_unit_test(own_options_of_learners_are_rows),
        cmocka_unit_test(collectives_rules_and_models_are_the_choices),
    };
    return cmocka_run_group_tests(tests, make_rows, free_rows);
}
