/* The registry of topologies. A new one is a file with its pli_topology_ops, and a kind here. What the kind keeps and
 * gives decides which policies and settings go with it (table/pairs/). */
#include <stdio.h>
#include <string.h>

#include "table/table.h"

/* Promises that hold wherever rows have owners, by the reads and pushes of a policy alone. Sums keep fewer, since they
 * take no single push. */
enum {
    OF_SUMS = PLAIT_WHOLE_CLOCKS | PLAIT_BOUNDED_READS | PLAIT_OWN_WRITES | PLAIT_BY_SUMS | PLAIT_CLOCK_SUMS,
    OF_OWNERS = OF_SUMS | PLAIT_VALUES | PLAIT_SKIPS_LATE | PLAIT_ANY_READ | PLAIT_ASKED
};

static const pli_topology_kind local = {
    .name = "local", .parameters = "",
    .summary = "workers are threads of one process and share the table's memory; nothing is sent", .one_process = true,
    .on_servers = true, .keeps = OF_OWNERS,
    .gives = PLAIT_ONE_COPY | PLAIT_MOMENTS | PLAIT_OWNERS | PLAIT_LEAVING | PLAIT_FUNCTIONS,
    .ops = &pli_served_ops, .unlocked = &pli_hogwild_ops
};
static const pli_topology_kind allreduce = {
    .name = "allreduce", .parameters = "",
    .summary = "each worker has a mirror of the table; a clock ends with a sum over all workers (--collective); for "
               "dense tables and equal hosts",
    .keeps = OF_SUMS,
    .gives = PLAIT_ONE_COPY | PLAIT_MOMENTS | PLAIT_HOST_SUMS | PLAIT_FUNCTIONS, .ops = &pli_mirror_ops
};
static const pli_topology_kind ps = {
    .name = "ps", .parameters = "",
    .summary = "servers own the rows; workers pull what they read and push what they add; for sparse tables and uneven "
               "hosts",
    .on_servers = true, .keeps = OF_OWNERS | PLAIT_REPLAYABLE,
    .gives = PLAIT_ONE_COPY | PLAIT_MOMENTS | PLAIT_OWNERS | PLAIT_MESSAGES | PLAIT_HOST_SUMS | PLAIT_LEAVING |
             PLAIT_FUNCTIONS,
    .ops = &pli_served_ops
};
/* Dense tables are summed; of sparse tables only the rows that were touched travel. */
static const pli_topology_kind hybrid = {
    .name = "hybrid", .parameters = "", .summary = "dense tables by allreduce and sparse ones by ps, in one job",
    .dense = &allreduce, .sparse = &ps
};

static const pli_topology_kind gossip = {
    .name = "gossip", .parameters = "ring|torus|exp",
    .summary = "each worker has a mirror of the table and averages it only with its neighbours; the model is the "
               "average of all mirrors",
    .averages = true, .keeps = PLAIT_OWN_WRITES | PLAIT_CLOCK_SUMS | PLAIT_ANY_READ, .ops = &pli_averaged_ops
};

static const pli_topology_kind *const topologies[] = { &local, &allreduce, &ps, &hybrid, &gossip, NULL };

const pli_topology_kind *const *pli_topologies(void) { return topologies; }

static bool is_named(const char *name, const char *text) {
    size_t length = strcspn(text, ":");
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

const pli_topology_kind *pli_topology_find(const char *text) {
    for (size_t i = 0; topologies[i] != NULL; i++)
        if (is_named(topologies[i]->name, text)) return topologies[i];
    return NULL;
}

const pli_topology_kind *pli_topology_default(bool one_process) { return one_process ? &local : &ps; }

static plait_status unknown(const char *text, plait_error *err) {
    const char *names[16];
    char        head[PLI_TOPOLOGY_TEXT]; /* the name before the parameter */
    size_t      n = 0;
    snprintf(head, sizeof head, "%.*s", (int)strcspn(text, ":"), text);
    for (; n < sizeof names / sizeof *names && topologies[n] != NULL; n++) names[n] = topologies[n]->name;
    return pli_fail_unknown(err, "topology", head, names, n);
}

/* The number of the word among a|b|c; -1: it is none of them. */
static int32_t word_of(const char *words, const char *word) {
    for (int32_t i = 0; *words != '\0'; i++) {
        size_t length = strcspn(words, "|");
        if (strlen(word) == length && memcmp(words, word, length) == 0) return i;
        words += length + (words[length] == '|');
    }
    return -1;
}

plait_status pli_topology_make(const char *text, pli_fill fill, pli_topology *topology_out, plait_error *err) {
    pli_topology topology = { .kind = pli_topology_find(text) };
    const char  *colon = strchr(text, ':'), *words = topology.kind == NULL ? "" : topology.kind->parameters;
    if (topology.kind == NULL) return unknown(text, err);
    if (words[0] == '\0' && colon != NULL)
        return pli_fail(err, PLAIT_EINVAL, "topology %s takes no parameters, not '%s'", topology.kind->name, colon);
    if (words[0] != '\0') topology.word = word_of(words, colon == NULL ? "" : colon + 1);
    if (topology.word < 0)
        return pli_fail(err, PLAIT_EINVAL, "topology %s: expected %s:%s", text, topology.kind->name, words);
    if (topology.kind->dense != NULL && fill != PLI_FILL_ANY) {
        topology.kind = fill == PLI_FILL_DENSE ? topology.kind->dense : topology.kind->sparse;
        text = topology.kind->name;
    }
    strncpy(topology.text, text, sizeof topology.text - 1); /* a name and one of its words fit */
    *topology_out = topology;
    return PLAIT_OK;
}

void pli_topology_example(const pli_topology_kind *kind, char text[PLI_TOPOLOGY_TEXT]) {
    bool takes = kind->parameters[0] != '\0';
    snprintf(text, PLI_TOPOLOGY_TEXT, "%s%s%.*s", kind->name, takes ? ":" : "", (int)strcspn(kind->parameters, "|"),
             kind->parameters);
}
