/* Cuts a net in stages by a placement (plait/place.h): by hand, from a file, or found.
 *
 * A node's rank in the placement is its stage. Nodes without a place are placed by simulated time, among those that
 * have one. Stages are a *chain* if no stage reads what a later one computes; then micro-batches may go through them in
 * any order. Where places come from the search alone, stages are numbered anew so that they are a chain, if they can
 * be. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "learn/net/stages.h"

typedef struct placing {
    const pli_run  *run;
    const pli_net  *net;
    int32_t         stages;
    int64_t         n, rows; /* forward nodes; rows of a micro-batch */
    int32_t        *place;   /* [nodes of the graph] */
    pli_stage_hosts hosts;
    int32_t         micro_batches; /* of a simulated step */
    double          seconds;       /* of a step, by simulation */
} placing;

static const char *how_of(const pli_run *run) { return run->opts->place; }
static bool is(const char *how, const char *name) { return how != NULL && strcmp(how, name) == 0; }

static bool has_places(const plait_graph *g) {
    for (int64_t k = 0; k < g->n_nodes; k++)
        if (g->node[k].rank >= 0) return true;
    return false;
}

static bool is_file(const char *how) { return how != NULL && !is(how, "auto") && !is(how, "layers"); }

bool pli_placed_by(const pli_run *run, const pli_net *net) {
    return how_of(run) == NULL ? has_places(net->graph) : !is(how_of(run), "layers");
}

/* --- the search --------------------------------------------------------------------------------------------------- */

static plait_status check_ranks(const placing *p) {
    const plait_graph *g = p->net->graph;
    int64_t            last = 0;
    char               name[80];
    for (int64_t k = 0; k < g->n_nodes; k++)
        if (g->node[k].rank > g->node[last].rank) last = k;
    if (g->node[last].rank < p->stages) return PLAIT_OK;
    pli_value_text(g, g->node[last].value, name);
    return pli_fail(p->run->err, PLAIT_EINVAL,
                    "%s is placed on rank:%d, but --cut %d has stages 0 to %d; take --cut %d, or --place layers", name,
                    g->node[last].rank, p->stages, p->stages - 1, g->node[last].rank + 1);
}

/* The loss lies with the scores. */
static plait_status judge(const placing *p, const char *method, const int32_t *given,
                          plait_placement **placement_out, plait_error *err) {
    const pli_net         *net = p->net;
    const plait_rule      *rule = pli_rule_find(p->run->optimizer, NULL);
    const plait_place_rule loss = { .kind = PLAIT_PLACE_TOGETHER, .a = net->scores, .b = net->sums };
    plait_feed       feeds[PLI_NET_FEEDS + 2];
    plait_value      fetches[PLI_NET_PARAMS + 1];
    plait_place_opts opts;
    pli_net_place_opts(net, p->rows, feeds, fetches, &opts);
    pli_stage_hosts_fill(&p->hosts, &opts);
    opts.ranks = p->stages;
    opts.micro_batches = p->micro_batches;
    opts.state_values = rule != NULL ? rule->slots : 0;
    opts.rules = &loss;
    opts.n_rules = 1;
    opts.method = method;
    opts.given = given;
    opts.seed = p->run->opts->seed;
    return plait_placement_create(net->graph, &opts, placement_out, err);
}

static void take(const placing *p, const plait_placement *placement) {
    const plait_graph *g = p->net->graph;
    const int32_t     *rank = plait_placement_parts(placement);
    for (int64_t k = 0; k < g->n_nodes; k++)
        p->place[k] = k < p->n && strcmp(g->node[k].op->name, "placeholder") != 0 ? rank[k] : -1;
}

static plait_status search(placing *p) {
    plait_placement *placement = NULL;
    PLI_TRY(judge(p, "auto", NULL, &placement, p->run->err));
    take(p, placement);
    p->seconds = plait_placement_seconds(placement);
    plait_placement_destroy(&placement);
    return PLAIT_OK;
}

/* Runs of layers by the hosts' speeds are taken where they are no worse: they are a chain, so that micro-batches may go
 * through them in any order. A net of fewer layers than stages, and runs that the memory does not hold, stay as they
 * are. */
static plait_status try_layers(placing *p) {
    enum { PERCENT = 5 }; /* what a chain may cost more */
    const plait_graph *g = p->net->graph;
    plait_placement   *placement = NULL;
    plait_error        why;
    int32_t           *given = pli_array((size_t)g->n_nodes, 2 * sizeof *given), *chain = given + g->n_nodes;
    if (given == NULL) return pli_fail(p->run->err, PLAIT_ENOMEM, "no memory to cut a net");
    plait_status status = pli_layers_place(p->net, p->stages, p->rows, &p->hosts, chain, &why);
    for (int64_t k = 0; status >= 0 && k < g->n_nodes; k++) {
        const int64_t of = k < p->n ? k : g->node[k].forward;
        given[k] = of >= 0 && of < p->n && chain[of] >= 0 ? chain[of] : 0;
    }
    if (status >= 0) status = judge(p, "given", given, &placement, &why);
    if (status >= 0 && plait_placement_seconds(placement) <= p->seconds * (1 + PERCENT / 100.0)) {
        take(p, placement);
        p->seconds = plait_placement_seconds(placement);
    }
    plait_placement_destroy(&placement);
    pli_free(given);
    return PLAIT_OK;
}

/* --- is it a chain? ----------------------------------------------------------------------------------------------- */

/* The next forward node from *k on that reads from node *from of another stage, by input *i. */
static bool next_edge(const placing *p, int64_t *k, int32_t *i, int64_t *from) {
    const plait_graph *g = p->net->graph;
    for (; *k < p->n; (*k)++, *i = 0)
        while (*i < g->node[*k].n_inputs) {
            *from = g->value[g->input[g->node[*k].input + (*i)++]].node;
            if (p->place[*k] >= 0 && p->place[*from] >= 0 && p->place[*k] != p->place[*from]) return true;
        }
    return false;
}

/* The first edge that leads back; false: the stages are a chain. */
static bool leads_back(const placing *p, int64_t *k, int64_t *from) {
    int32_t i = 0;
    *k = 0;
    while (next_edge(p, k, &i, from))
        if (p->place[*from] > p->place[*k]) return true;
    return false;
}

/* Numbers the stages so that each comes behind those that it reads from; false: some read from each other. */
static bool sort_stages(const placing *p, int32_t *number) {
    for (int32_t next = 0; next < p->stages; next++) {
        int32_t free = 0;
        for (; free < p->stages; free++) {
            int64_t k = 0, from;
            int32_t i = 0;
            bool    waits = number[free] >= 0;
            while (!waits && next_edge(p, &k, &i, &from)) waits = p->place[k] == free && number[p->place[from]] < 0;
            if (!waits) break;
        }
        if (free == p->stages) return false;
        number[free] = next;
    }
    return true;
}

static plait_status make_chain(const placing *p) {
    int32_t *number = pli_array((size_t)p->stages, sizeof *number);
    if (number == NULL) return pli_fail(p->run->err, PLAIT_ENOMEM, "no memory to cut a net");
    for (int32_t s = 0; s < p->stages; s++) number[s] = -1;
    if (sort_stages(p, number))
        for (int64_t k = 0; k < p->n; k++)
            if (p->place[k] >= 0) p->place[k] = number[p->place[k]];
    pli_free(number);
    return PLAIT_OK;
}

/* Names both ends of the edge that leads back. */
static plait_status check_chain(const placing *p, const char **pipeline) {
    const plait_graph *g = p->net->graph;
    int64_t            k, from;
    char               reader[80], producer[80];
    if (!leads_back(p, &k, &from)) return PLAIT_OK;
    const char *wanted = p->run->opts->pipeline;
    pli_value_text(g, g->node[k].value, reader);
    pli_value_text(g, g->node[from].value, producer);
    if (wanted != NULL && !is(wanted, "gpipe"))
        return pli_fail(p->run->err, PLAIT_EINVAL,
                        "pipeline %s with these places is refused: stages are no chain, since %s in stage %d reads %s "
                        "of stage %d; nearest is --pipeline gpipe, or --place layers", wanted, reader, p->place[k],
                        producer, p->place[from]);
    if (wanted == NULL && p->run->opts->micro_batches > 1 && pli_comm_leads(p->run->comm))
        pli_log(pli_comm_log(p->run->comm), PLAIT_LOG_INFO, -1, "learn",
                "pipeline: gpipe, since %s in stage %d reads %s of stage %d", reader, p->place[k], producer,
                p->place[from]);
    *pipeline = "gpipe";
    return PLAIT_OK;
}

/* --- what all see ------------------------------------------------------------------------------------------------- */

/* Each rank read a file of its own. */
static plait_status agree(const placing *p) {
    char text[80];
    snprintf(text, sizeof text, "--place with hash %016" PRIx64,
             pli_hash_bytes(p->place, (size_t)p->n * sizeof *p->place, 0));
    return pli_agree_text(p->run->comm, "places", text, p->run->err);
}

static void tell(const placing *p) {
    pli_text text = { 0 };
    if (!pli_comm_leads(p->run->comm)) return;
    for (int32_t s = 0; s < p->stages; s++) {
        int32_t n = 0;
        pli_text_add(&text, "%sstage %d:", s > 0 ? "; " : "", s);
        for (int32_t i = 0; i < p->net->n_params; i++) {
            const int64_t node = p->net->graph->value[p->net->param[i].value].node;
            if (p->place[node] == s) pli_text_add(&text, "%s %.40s", n++ > 0 ? "," : "", p->net->param[i].name);
        }
        if (n == 0) pli_text_add(&text, " no weights");
    }
    pli_text_add(&text, "; a clock takes %.3g ms by simulation", 1e3 * p->seconds);
    if (p->micro_batches < p->run->opts->micro_batches)
        pli_text_add(&text, " (of %d micro-batches)", p->micro_batches);
    if (!text.failed) pli_log(pli_comm_log(p->run->comm), PLAIT_LOG_INFO, -1, "learn", "place: %s", text.data);
    pli_text_free(&text);
}

static plait_status find(placing *p) {
    PLI_TRY(search(p));
    if (has_places(p->net->graph)) return PLAIT_OK;
    if (p->net->graph->n_place_rules == 0) PLI_TRY(try_layers(p));
    return pli_stage_hosts_alike(&p->hosts) ? make_chain(p) : PLAIT_OK;
}

/* A search may take long, so one rank searches for all. The others hear what it has found, or why it has not. */
static plait_status find_together(placing *p) {
    struct {
        plait_status status;
        double       seconds;
        plait_error  why;
    } found = { .status = PLAIT_OK };
    plait_comm *comm = p->run->comm;
    if (plait_comm_rank(comm) == 0) {
        found.status = find(p);
        found.seconds = p->seconds;
        if (found.status < 0) found.why = *p->run->err;
    }
    PLI_TRY(plait_comm_broadcast(comm, &found, sizeof found, 0));
    if (found.status < 0) {
        *p->run->err = found.why;
        return found.status;
    }
    p->seconds = found.seconds;
    return plait_comm_broadcast(comm, p->place, (size_t)p->net->graph->n_nodes * sizeof *p->place, 0);
}

static plait_status place(placing *p, const char **pipeline) {
    const char *how = how_of(p->run);
    if (is_file(how)) PLI_TRY(plait_graph_place_file(p->net->graph, how, p->run->err));
    PLI_TRY(check_ranks(p));
    PLI_TRY(find_together(p));
    PLI_TRY(check_chain(p, pipeline));
    PLI_TRY(agree(p));
    tell(p);
    return PLAIT_OK;
}

plait_status pli_placed_place(const pli_run *run, const pli_net *net, int32_t stages, int64_t rows, int32_t *place_out,
                              const char **pipeline) {
    const int32_t most = 2 * stages, wanted = run->opts->micro_batches; /* more tell no more of a placement */
    placing p = { .run = run, .net = net, .stages = stages, .rows = rows, .place = place_out,
                  .micro_batches = wanted < 1 ? 1 : wanted < most ? wanted : most };
    while (p.n < net->graph->n_nodes && net->graph->node[p.n].forward < 0) p.n++;
    if (is(run->opts->pipeline, "interleaved"))
        return pli_fail(run->err, PLAIT_EINVAL, "pipeline interleaved with places is refused: a rank has two stages "
                                                "there, and a place names one; nearest is 1f1b, or --place layers");
    PLI_TRY(pli_stage_hosts_make(run, stages, &p.hosts));
    const plait_status status = place(&p, pipeline);
    pli_stage_hosts_free(&p.hosts);
    return status;
}
