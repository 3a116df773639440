/* help filters - what each filter does, and with which consistencies it works. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/reasons.h"
#include "table/filter/filter.h"
#include "table/pairs/pairs.h"

enum { NAME_COLUMNS = 17 };

/* Does the filter work with the pair, for a table with an update rule? This is the check that a run makes. */
static bool goes_with(const plait_filter *filter, const char *topology, const char *consistency, plait_error *err) {
    char name[64];
    snprintf(name, sizeof name, "%s%s", filter->name, filter->parameters[0] != '\0' ? ":0.5" : "");
    return pli_pair_check(
               &(pli_pair){ .topology = topology, .consistency = consistency, .one_process = true, .rule = "adagrad",
                            .filter = name },
               err) >= 0;
}

static bool goes_on(const plait_filter *filter, const char *topology, const plait_consistency *policy,
                    plait_error *err) {
    char spec[48];
    pli_cli_example(policy, spec);
    return goes_with(filter, topology, spec, err);
}

static bool goes(const plait_filter *filter, const plait_consistency *policy, plait_error *err) {
    return goes_on(filter, "ps", policy, err);
}

/* The number of the reason why they do not work together; 0: they do. */
static int reason_of(pli_reasons *all, const plait_filter *filter, const plait_consistency *policy) {
    plait_error err = { 0 };
    char        filter_name[64], is_name[64], spec[56], policy_name[56];
    if (goes(filter, policy, &err)) return 0;
    snprintf(filter_name, sizeof filter_name, "filter %s", filter->name);
    snprintf(is_name, sizeof is_name, "is %s", filter->name);
    snprintf(spec, sizeof spec, " ");
    pli_cli_example(policy, spec + 1);
    snprintf(policy_name, sizeof policy_name, " %s", policy->name);
    const pli_renamed renamed[] = {
        { filter_name, "filter F" }, { is_name, "is F" }, { spec, " C" }, { policy_name, " C" }, { NULL, NULL }
    };
    return pli_reasons_number(all, err.text, renamed);
}

static void row_of(pli_text *text, pli_reasons *all, const plait_filter *filter) {
    pli_text_add(text, "%-*s", NAME_COLUMNS, filter->name);
    for (int p = 0; pli_consistencies()[p] != NULL; p++) {
        const plait_consistency *policy = pli_consistencies()[p];
        char                     cell[16] = "yes";
        int                      number = reason_of(all, filter, policy), columns = (int)strlen(policy->name) + 2;
        if (number > 0) snprintf(cell, sizeof cell, "[%d]", number);
        pli_text_add(text, "%-*s", pli_consistencies()[p + 1] == NULL ? 0 : columns < 6 ? 6 : columns, cell);
    }
    pli_text_add(text, "\n");
}

static void matrix(pli_text *text) {
    pli_reasons *all = pli_calloc(1, sizeof *all);
    if (all == NULL) {
        text->failed = true;
        return;
    }
    pli_text_add(text, "\nWith which consistency, on topology ps:\n\n%-*s", NAME_COLUMNS, "");
    for (int p = 0; pli_consistencies()[p] != NULL; p++) {
        int columns = (int)strlen(pli_consistencies()[p]->name) + 2;
        pli_text_add(text, "%-*s",
                     pli_consistencies()[p + 1] == NULL ? 0
                     : columns < 6                      ? 6
                                                        : columns,
                     pli_consistencies()[p]->name);
    }
    pli_text_add(text, "\n");
    for (int f = 0; pli_filters()[f] != NULL; f++) row_of(text, all, pli_filters()[f]);
    pli_text_add(text, "\nWhy not, where F is the filter of the row and C the consistency of the column:\n\n");
    pli_reasons_tell(all, text);
    pli_free(all);
}

/* Which topologies have messages that the filter works on, with bsp? */
static void topologies(pli_text *text) {
    pli_text_add(text, "\nWith which topology, by consistency bsp:\n\n%-*s", NAME_COLUMNS, "");
    for (int t = 0; pli_topologies()[t] != NULL; t++)
        pli_text_add(text, "%-*s", pli_topologies()[t + 1] == NULL ? 0 : 12, pli_topologies()[t]->name);
    pli_text_add(text, "\n");
    for (int f = 0; pli_filters()[f] != NULL; f++) {
        pli_text_add(text, "%-*s", NAME_COLUMNS, pli_filters()[f]->name);
        for (int t = 0; pli_topologies()[t] != NULL; t++) {
            char name[PLI_TOPOLOGY_TEXT];
            pli_topology_example(pli_topologies()[t], name);
            pli_text_add(text, "%-*s", pli_topologies()[t + 1] == NULL ? 0 : 12,
                         goes_with(pli_filters()[f], name, "bsp", NULL) ? "yes" : "no");
        }
        pli_text_add(text, "\n");
    }
}

static void filters(pli_text *text) {
    pli_text_add(text, "--filter A,B: filters on messages to servers, and on sums, in this order:\n\n");
    for (int f = 0; pli_filters()[f] != NULL; f++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", pli_filters()[f]->name, pli_filters()[f]->parameters);
        pli_text_add(text, "  %-*s", NAME_COLUMNS - 2, name);
        pli_cli_wrap(text, pli_filters()[f]->summary, NAME_COLUMNS, pli_cli_width());
    }
    matrix(text);
    topologies(text);
}

static void add_policies(const plait_filter *filter, const char *topology, pli_text *text) {
    pli_text list = { 0 };
    for (int p = 0; pli_consistencies()[p] != NULL; p++)
        if (goes_on(filter, topology, pli_consistencies()[p], NULL))
            pli_text_add(&list, "%s%s%s", list.length > 0 ? ", " : "", pli_consistencies()[p]->name,
                         pli_consistencies()[p]->parameters);
    pli_cli_wrap(text, list.data != NULL ? list.data : "none", NAME_COLUMNS, pli_cli_width());
    pli_text_free(&list);
}

static void one(const plait_filter *filter, pli_text *text) {
    static const char *const losses[] = { [PLAIT_EXACT] = "nothing",
                                          [PLAIT_ROUNDED] = "rounding errors, which the worker's next push carries",
                                          [PLAIT_KEPT_BACK] = "nothing for good: it keeps rows back until a later push",
                                          [PLAIT_SKIPPED] = "updates that would change nothing" };
    pli_text_add(text, "%s%s: a filter, as --filter %s%s\n", filter->name, filter->parameters, filter->name,
                 filter->parameters[0] != '\0' ? ":0.1" : "");
    pli_text_add(text, "  does           ");
    pli_cli_wrap(text, filter->summary, NAME_COLUMNS, pli_cli_width());
    pli_text_add(text, "  loses          %s\n  consistency    ", losses[filter->loss]);
    add_policies(filter, "ps", text);
    pli_text_add(text, "  on allreduce   ");
    add_policies(filter, "allreduce", text);
    pli_text_add(text, "more: plait help filters\n");
}

bool pli_cli_help_filter(const char *name, pli_text *text) {
    if (strcmp(name, "filters") == 0) {
        filters(text);
        return true;
    }
    for (int f = 0; pli_filters()[f] != NULL; f++) {
        if (strlen(pli_filters()[f]->name) != strcspn(name, ":") ||
            strncmp(pli_filters()[f]->name, name, strcspn(name, ":")) != 0)
            continue;
        one(pli_filters()[f], text);
        return true;
    }
    return false;
}
