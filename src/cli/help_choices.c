/* help topology, help consistency - how updates travel, and what a read may miss. help_pairs.c says which pairs
 * work. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "table/pairs/pairs.h"

void pli_cli_example(const plait_consistency *policy, char spec[PLI_CONSISTENCY_TEXT]) {
    snprintf(spec, PLI_CONSISTENCY_TEXT, "%s", policy->name);
    for (const char *c = policy->parameters; c != NULL && *c != '\0'; c++) {
        if (*c == ':' && strlen(spec) + 3 < PLI_CONSISTENCY_TEXT) strcat(spec, ":2");
    }
}

/* --- help consistency, help topology ------------------------------------------------------------------ */

static void name_of(const pli_topology_kind *kind, char name[64]) {
    snprintf(name, 64, "%s%s%s", kind->name, kind->parameters[0] != '\0' ? ":" : "", kind->parameters);
}

static void consistencies(pli_text *text) {
    const plait_consistency *const *policy = pli_consistencies();
    pli_text_add(text, "--consistency says what a read may miss:\n\n");
    for (int p = 0; policy[p] != NULL; p++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", policy[p]->name, policy[p]->parameters);
        pli_text_add(text, "  %-16s ", name);
        pli_cli_wrap(text, policy[p]->summary, 19, pli_cli_width());
    }
    pli_text_add(text, "\nmore: plait help pairs\n");
}

static void topologies(pli_text *text) {
    pli_text_add(text, "--topology says how updates travel:\n\n");
    for (int t = 0; pli_topologies()[t] != NULL; t++) {
        char name[64];
        name_of(pli_topologies()[t], name);
        pli_text_add(text, "  %-21s ", name);
        pli_cli_wrap(text, pli_topologies()[t]->summary, 24, pli_cli_width());
    }
    pli_text_add(text, "\nmore: plait help pairs\n");
}

/* --- help ssp, help gossip ------------------------------------------------------------------------------ */

static bool goes(const pli_topology_kind *kind, const char *spec, bool one_process) {
    char example[PLI_TOPOLOGY_TEXT];
    pli_topology_example(kind, example);
    return pli_pair_check(&(pli_pair){ .topology = example, .consistency = spec, .one_process = one_process }, NULL) >=
           0;
}

static void add_topologies(const char *spec, bool one_process, pli_text *text) {
    pli_text list = { 0 };
    for (int t = 0; pli_topologies()[t] != NULL; t++) {
        char name[64];
        name_of(pli_topologies()[t], name);
        if (goes(pli_topologies()[t], spec, one_process))
            pli_text_add(&list, "%s%s", list.length > 0 ? ", " : "", name);
    }
    pli_cli_wrap(text, list.data != NULL ? list.data : "none", 27, pli_cli_width());
    pli_text_free(&list);
}

static void consistency(const plait_consistency *policy, pli_text *text) {
    char spec[PLI_CONSISTENCY_TEXT];
    pli_cli_example(policy, spec);
    pli_text_add(text, "%s%s: a consistency, as --consistency %s\n", policy->name, policy->parameters, spec);
    pli_text_add(text, "  means                    ");
    pli_cli_wrap(text, policy->summary, 27, pli_cli_width());
    pli_text_add(text, "  topologies on threads    ");
    add_topologies(spec, true, text);
    pli_text_add(text, "  topologies on mpi, sim   ");
    add_topologies(spec, false, text);
    pli_text_add(text, "more: plait help consistency, plait help pairs\n");
}

static void add_consistencies(const pli_topology_kind *kind, bool one_process, pli_text *text) {
    pli_text list = { 0 };
    for (int p = 0; pli_consistencies()[p] != NULL; p++) {
        const plait_consistency *policy = pli_consistencies()[p];
        char                     spec[48];
        pli_cli_example(policy, spec);
        if (goes(kind, spec, one_process))
            pli_text_add(&list, "%s%s%s", list.length > 0 ? ", " : "", policy->name, policy->parameters);
    }
    pli_cli_wrap(text, list.data != NULL ? list.data : "none", 27, pli_cli_width());
    pli_text_free(&list);
}

static void topology(const pli_topology_kind *kind, pli_text *text) {
    char name[64], example[PLI_TOPOLOGY_TEXT];
    name_of(kind, name);
    pli_topology_example(kind, example);
    pli_text_add(text, "%s: a topology, as --topology %s\n", name, example);
    pli_text_add(text, "  means                    ");
    pli_cli_wrap(text, kind->summary, 27, pli_cli_width());
    pli_text_add(text, "  consistency on threads   ");
    add_consistencies(kind, true, text);
    pli_text_add(text, "  consistency on mpi, sim  ");
    add_consistencies(kind, false, text);
    if (kind->dense != NULL)
        pli_text_add(text, "a dense table takes what goes with %s, a sparse one what goes with %s\n", kind->dense->name,
                     kind->sparse->name);
    pli_text_add(text, "more: plait help topology, plait help pairs\n");
}

/* The policy that a name such as "ssp" or "ssp:2" means; NULL: none. */
static const plait_consistency *find_policy(const char *name) {
    for (int p = 0; pli_consistencies()[p] != NULL; p++) {
        const plait_consistency *policy = pli_consistencies()[p];
        if (strlen(policy->name) == strcspn(name, ":") && strncmp(policy->name, name, strlen(policy->name)) == 0)
            return policy;
    }
    return NULL;
}

bool pli_cli_help_choice(const char *name, pli_text *text) {
    const plait_consistency *policy = find_policy(name);
    const pli_topology_kind *kind = pli_topology_find(name);
    if (strcmp(name, "pairs") == 0) pli_cli_help_pairs(text);
    else if (strcmp(name, "consistency") == 0) consistencies(text);
    else if (strcmp(name, "topology") == 0) topologies(text);
    else if (policy != NULL) consistency(policy, text);
    else if (kind != NULL) topology(kind, text);
    else return false;
    return true;
}
