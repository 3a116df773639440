/* The settings that `plait help pairs` tries against pairs and against each other: how each is switched on. rules.c
 * knows what follows from that. */
#include "table/pairs/pairs.h"

static void exact(pli_pair *pair, pli_above *above) {
    (void)above;
    pair->exact = true;
}

/* Filters are a list, and settings add to it: bit 0 without loss, bit 1 that rounds, bit 2 that keeps rows back. */
static void add_filter(pli_pair *pair, size_t bit) {
    static const char *const lists[] = { NULL, "key-cache,key-delta,zstd", "fixed8", "key-cache,key-delta,fixed8,zstd",
                                         "topk:0.1", "key-cache,key-delta,topk:0.1,zstd", "topk:0.1,fixed8",
                                         "key-cache,key-delta,topk:0.1,fixed8,zstd" };
    size_t                   i = 0;
    while (pair->filter != lists[i]) i++;
    pair->filter = lists[i | bit];
}

static void whole_filter(pli_pair *pair, pli_above *above) {
    (void)above;
    add_filter(pair, 1);
}

static void rounding_filter(pli_pair *pair, pli_above *above) {
    (void)above;
    add_filter(pair, 2);
}

static void late_filter(pli_pair *pair, pli_above *above) {
    (void)above;
    add_filter(pair, 4);
}

static void copies(pli_pair *pair, pli_above *above) {
    (void)above;
    pair->replicas = 2;
}

static void spares(pli_pair *pair, pli_above *above) {
    copies(pair, above);
    pair->spares = 1;
}

static void slots(pli_pair *pair, pli_above *above) {
    copies(pair, above);
    pair->slots = 1;
}

static void backups(pli_pair *pair, pli_above *above) {
    static const pli_scope scope = { .setting.backup = 1 };
    (void)above;
    pair->scope = &scope;
}

static void host_sums(pli_pair *pair, pli_above *above) {
    (void)above;
    pair->aggregates = true;
}

static void servers(pli_pair *pair, pli_above *above) {
    (void)above;
    pair->only_servers = 2;
}

static void sharded(pli_pair *pair, pli_above *above) {
    (void)above;
    pair->sharded = true;
}

static void stale_steps(pli_pair *pair, pli_above *above) {
    (void)above;
    pair->staleness_aware = true;
}

static void events(pli_pair *pair, pli_above *above) {
    (void)above;
    pair->logged = true;
}

static void checkpoint(pli_pair *pair, pli_above *above) {
    (void)pair;
    above->checkpoint = true;
}

static void resume(pli_pair *pair, pli_above *above) {
    (void)pair;
    above->resume = true;
}

static void balanced(pli_pair *pair, pli_above *above) {
    (void)pair;
    above->balanced = true;
}

static void streamed(pli_pair *pair, pli_above *above) {
    (void)pair;
    above->single = above->streamed = true;
}

static void standard_input(pli_pair *pair, pli_above *above) {
    above->pipe = "-";
    above->standard_input = true;
    above->processes = !pair->one_process;
}

static void net(pli_pair *pair, pli_above *above) {
    (void)pair;
    above->net = true;
    above->model = "mlp";
}

static void dropout(pli_pair *pair, pli_above *above) {
    net(pair, above);
    above->dropout = true;
}

static void kernels(pli_pair *pair, pli_above *above) {
    net(pair, above);
    above->kernels = "onednn";
}

static void cut(pli_pair *pair, pli_above *above) {
    net(pair, above);
    above->cut = true;
    pair->group = "stage 0";
}

static void micro_batches(pli_pair *pair, pli_above *above) {
    net(pair, above);
    above->micro_batches = true;
}

static void no_intercept(pli_pair *pair, pli_above *above) {
    (void)pair;
    above->no_intercept = true;
}

static void kinked(pli_pair *pair, pli_above *above) {
    (void)pair;
    above->kinked = above->loss_by_option = true;
    above->loss = "quantile";
}

static void schedule(pli_pair *pair, pli_above *above) {
    (void)pair;
    above->schedule = true;
}

static void patience(pli_pair *pair, pli_above *above) {
    (void)pair;
    above->patience = above->validation = true;
}

static void class_balance(pli_pair *pair, pli_above *above) {
    (void)pair;
    above->class_balance = true;
}

static void least(pli_pair *pair, pli_above *above) {
    (void)above;
    pair->combine = "min";
    pair->rule = NULL;
}

static void latest(pli_pair *pair, pli_above *above) {
    least(pair, above);
    pair->combine = "last";
}

const pli_setting *pli_settings(void) {
    static const pli_setting settings[] = {
        { "exact sums", "--reduce exact", exact, NULL },
        { "a filter without loss", "--filter zstd", whole_filter, NULL },
        { "a filter that rounds", "--filter fixed8", rounding_filter, NULL },
        { "a filter that keeps rows back", "--filter topk:F", late_filter, NULL },
        { "replicas", "--replicas 2", copies, NULL },
        { "spares", "--spares N", spares, NULL },
        { "workers that join and leave", "--workers MIN:MAX", slots, NULL },
        { "backup workers", "--backup N", backups, NULL },
        { "sums inside a host", "--aggregate host", host_sums, NULL },
        { "ranks that only serve", "--servers N", servers, NULL },
        { "the rule's state in parts", "--optimizer-state sharded", sharded, NULL },
        { "steps by staleness", "--staleness-aware", stale_steps, NULL },
        { "a table of least values", "combine min", least, NULL },
        { "a table of last values", "combine last", latest, NULL },
        { "a checkpoint", "--checkpoint DIR", checkpoint, NULL },
        { "a resumed run", "--resume DIR", resume, NULL },
        { "an event log", "--events FILE", events, NULL },
        { "blocks that change hands", "--balance dynamic", balanced, NULL },
        { "a stream", "--epochs 1", streamed, NULL },
        { "standard input", "--data -", standard_input, NULL },
        { "a net", "--model mlp", net, "mlp" },
        { "a net with dropout", "--graph FILE", dropout, "graph" },
        { "kernels of a module", "--kernels onednn", kernels, "" },
        { "a net in stages", "--cut 2", cut, "" },
        { "a net in micro-batches", "--micro-batches 4", micro_batches, "" },
        { "no intercept", "--no-intercept", no_intercept, NULL },
        { "a loss with a kink", "--model quantile", kinked, "quantile" },
        { "a schedule", "--schedule cosine", schedule, NULL },
        { "an early end", "--patience N", patience, NULL },
        { "classes of equal weight", "--class-weight balanced", class_balance, NULL },
        { NULL, NULL, NULL, NULL },
    };
    return settings;
}
