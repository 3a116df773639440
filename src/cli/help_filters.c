/* help filters - what each filter does, and which consistency it goes with. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "table/filter/filter.h"
#include "table/topology/topology.h"

enum { NAME_COLUMNS = 17, POLICIES_MAX = 32 };

/* The number under which a loss's reason not to go with policy p is told; 0: it goes. */
typedef struct reasons {
    int      number[PLAIT_SKIPPED + 1][POLICIES_MAX];
    int      n;
    pli_text text;
} reasons;

static int reason_of(reasons *all, const plait_filter *filter, int p) {
    const plait_consistency *policy = pli_consistencies()[p];
    int                     *number = &all->number[filter->loss][p];
    char                     name[64], spec[64];
    plait_error              err = { 0 };
    snprintf(name, sizeof name, "%s%s", filter->name, filter->parameters[0] != '\0' ? ":0.5" : "");
    snprintf(spec, sizeof spec, "%s%s", policy->name, policy->parameters);
    if (pli_filters_check_pair(name, NULL, pli_topology_find("ps"), spec, false, &err) >= 0) return 0;
    if (*number > 0) return *number;
    *number = ++all->n;
    char mark[16];
    snprintf(mark, sizeof mark, "[%d]", all->n);
    pli_text_add(&all->text, "%-5s", mark);
    pli_cli_wrap(&all->text, err.text, 5, pli_terminal_columns(1));
    return *number;
}

static void row_of(pli_text *text, reasons *all, const plait_filter *filter) {
    pli_text_add(text, "%-*s", NAME_COLUMNS, filter->name);
    for (int p = 0; pli_consistencies()[p] != NULL && p < POLICIES_MAX; p++) {
        char cell[16] = "yes";
        int  number = reason_of(all, filter, p), width = (int)strlen(pli_consistencies()[p]->name) + 2;
        if (number > 0) snprintf(cell, sizeof cell, "[%d]", number);
        pli_text_add(text, "%-*s", pli_consistencies()[p + 1] == NULL ? 0 : width < 6 ? 6 : width, cell);
    }
    pli_text_add(text, "\n");
}

void pli_cli_help_filters(pli_text *text) {
    reasons all = { .n = 0 };
    pli_text_add(text, "--filter A,B: filters on messages between workers and servers, in this order:\n\n");
    for (int f = 0; pli_filters()[f] != NULL; f++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", pli_filters()[f]->name, pli_filters()[f]->parameters);
        pli_text_add(text, "  %-*s", NAME_COLUMNS - 2, name);
        pli_cli_wrap(text, pli_filters()[f]->summary, NAME_COLUMNS, pli_terminal_columns(1));
    }
    pli_text_add(text, "\nWith which consistency, on topology ps:\n\n%-*s", NAME_COLUMNS, "");
    for (int p = 0; pli_consistencies()[p] != NULL && p < POLICIES_MAX; p++) {
        int width = (int)strlen(pli_consistencies()[p]->name) + 2;
        pli_text_add(text, "%-*s", pli_consistencies()[p + 1] == NULL ? 0 : width < 6 ? 6 : width, pli_consistencies()[p]->name);
    }
    pli_text_add(text, "\n");
    for (int f = 0; pli_filters()[f] != NULL; f++) row_of(text, &all, pli_filters()[f]);
    pli_text_add(text, "\n%s", all.text.data != NULL ? all.text.data : "");
    text->failed = text->failed || all.text.failed;
    pli_text_free(&all.text);
}
