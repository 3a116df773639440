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
#include "graph/pipeline.h"
#include "learn/net/placed.h"

static const char *how_of(const pli_run *run) { return run->opts->place; }

static bool has_places(const plait_graph *g) {
    for (int64_t k = 0; k < g->n_nodes; k++)
        if (g->node[k].rank >= 0) return true;
    return false;
}

static bool is_file(const char *how) { return how != NULL && !pli_is(how, "auto") && !pli_is(how, "layers"); }

bool pli_placed_by(const pli_run *run, const pli_net *net) {
    return how_of(run) == NULL ? has_places(net->graph) : !pli_is(how_of(run), "layers");
}

/* --- the search --------------------------------------------------------------------------------------------------- */

static plait_status check_ranks(const pli_staging *p) {
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

/* Judges in the order that will run. The loss lies with the scores. Where a pipeline is asked for that only a chain can
 * take, and the search alone places, nothing else is looked at. */
static plait_status judge(const pli_staging *p, const char *method, const int32_t *given,
                          plait_placement **placement_out, plait_error *err) {
    const pli_net         *net = p->net;
    const char            *wanted = p->run->opts->pipeline;
    const plait_rule      *rule = pli_rule_find(p->run->optimizer, NULL);
    const plait_place_rule loss = { .kind = PLAIT_PLACE_TOGETHER, .a = net->scores, .b = net->sums };
    plait_feed       feeds[PLI_NET_TRAIN_FEEDS];
    plait_value      fetches[PLI_NET_PARAMS + 1];
    plait_place_opts opts;
    pli_net_place_opts(net, p->rows, feeds, fetches, &opts);
    pli_stage_hosts_fill(&p->hosts, &opts);
    opts.ranks = p->ranks;
    opts.chunks = p->stages / p->ranks;
    opts.schedule = pli_run_pipeline(p->run);
    opts.chain = wanted != NULL && !pli_is(wanted, pli_pipelines[PLI_GPIPE]) && !has_places(net->graph);
    opts.micro_batches = p->micro_batches;
    opts.state_values = rule != NULL ? rule->slots : 0;
    opts.rules = &loss;
    opts.n_rules = net->scores >= 0; /* a softmax by classes has its loss in parts */
    opts.method = method;
    opts.given = given;
    opts.seed = p->run->opts->seed;
    return plait_placement_create(net->graph, &opts, placement_out, err);
}

static void take(const pli_staging *p, const plait_placement *placement, int32_t *place) {
    const plait_graph *g = p->net->graph;
    const int32_t     *part = plait_placement_parts(placement);
    for (int64_t k = 0; k < g->n_nodes; k++)
        place[k] = k < p->n && strcmp(g->node[k].op->name, "placeholder") != 0 ? part[k] : -1;
}

/* By the places of its forward nodes. given [nodes]: room. */
plait_status pli_staging_given(const pli_staging *p, const int32_t *place, int32_t *given,
                               plait_placement **placement_out, plait_error *err) {
    const plait_graph *g = p->net->graph;
    for (int64_t k = 0; k < g->n_nodes; k++) {
        const int64_t of = k < p->n ? k : g->node[k].forward;
        given[k] = of >= 0 && of < p->n && place[of] >= 0 ? place[of] : 0;
    }
    return judge(p, "given", given, placement_out, err);
}

plait_status pli_staging_seconds(const pli_staging *p, const int32_t *place, int32_t *given, double *seconds_out,
                                 plait_error *err) {
    plait_placement *placement = NULL;
    PLI_TRY(pli_staging_given(p, place, given, &placement, err));
    *seconds_out = plait_placement_seconds(placement);
    plait_placement_destroy(&placement);
    return PLAIT_OK;
}

/* --- is it a chain? ----------------------------------------------------------------------------------------------- */

/* The next forward node from *k on that reads from node *from of another stage, by input *i. */
static bool next_edge(const pli_staging *p, int64_t *k, int32_t *i, int64_t *from) {
    const plait_graph *g = p->net->graph;
    for (; *k < p->n; (*k)++, *i = 0)
        while (*i < g->node[*k].n_inputs) {
            *from = g->value[g->input[g->node[*k].input + (*i)++]].node;
            if (p->place[*k] >= 0 && p->place[*from] >= 0 && p->place[*k] != p->place[*from]) return true;
        }
    return false;
}

/* The first edge that leads back; false: the stages are a chain. */
static bool leads_back(const pli_staging *p, int64_t *k, int64_t *from) {
    int32_t i = 0;
    *k = 0;
    while (next_edge(p, k, &i, from))
        if (p->place[*from] > p->place[*k]) return true;
    return false;
}

/* Numbers the stages so that each comes behind those that it reads from; false: some read from each other. */
static bool sort_stages(const pli_staging *p, int32_t *number) {
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

static plait_status make_chain(const pli_staging *p) {
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
static plait_status check_chain(const pli_staging *p, const char **pipeline) {
    const plait_graph *g = p->net->graph;
    int64_t            k, from;
    char               reader[80], producer[80];
    if (!leads_back(p, &k, &from)) return PLAIT_OK;
    const char *wanted = p->run->opts->pipeline;
    pli_value_text(g, g->node[k].value, reader);
    pli_value_text(g, g->node[from].value, producer);
    if (wanted != NULL && !pli_is(wanted, pli_pipelines[PLI_GPIPE]))
        return pli_fail(p->run->err, PLAIT_EINVAL,
                        "pipeline %s with these places is refused: stages are no chain, since %s in stage %d reads %s "
                        "of stage %d; nearest is --pipeline gpipe, or --place layers", wanted, reader, p->place[k],
                        producer, p->place[from]);
    if (wanted == NULL && p->run->opts->micro_batches > 1 && pli_comm_leads(p->run->comm))
        pli_log(pli_comm_log(p->run->comm), PLAIT_LOG_INFO, -1, "learn",
                "pipeline: gpipe, since %s in stage %d reads %s of stage %d", reader, p->place[k], producer,
                p->place[from]);
    *pipeline = pli_pipelines[PLI_GPIPE];
    return PLAIT_OK;
}

/* --- what all see ------------------------------------------------------------------------------------------------- */

/* Each rank read a file of its own. */
static plait_status agree(const pli_staging *p) {
    char text[80];
    snprintf(text, sizeof text, "--place with hash %016" PRIx64,
             pli_hash_bytes(p->place, (size_t)p->n * sizeof *p->place, 0));
    return pli_agree_text(p->run->comm, "places", text, p->run->err);
}

/* The weights of each stage. */
void pli_staging_list(const pli_staging *p, const int32_t *place, pli_text *text) {
    for (int32_t s = 0; s < p->stages; s++) {
        int32_t n = 0;
        pli_text_add(text, "%sstage %d:", s > 0 ? "; " : "", s);
        for (int32_t i = 0; i < p->net->n_params; i++) {
            const int64_t node = p->net->graph->value[p->net->param[i].value].node;
            if (place[node] == s) pli_text_add(text, "%s %.40s", n++ > 0 ? "," : "", p->net->param[i].name);
        }
        if (n == 0) pli_text_add(text, " no weights");
    }
}

static void tell(const pli_staging *p) {
    pli_text text = { 0 };
    if (!pli_comm_leads(p->run->comm)) return;
    pli_staging_list(p, p->place, &text);
    pli_text_add(&text, "; a clock takes %.3g ms by simulation", 1e3 * p->seconds);
    if (!text.failed) pli_log(pli_comm_log(p->run->comm), PLAIT_LOG_INFO, -1, "learn", "place: %s", text.data);
    pli_text_free(&text);
}

/* --- the best of several ------------------------------------------------------------------------------------------ */

/* By layers, as --place layers cuts, and by layers that suit the hosts' speeds. */
enum { BY_LAYERS, BY_SPEED, GIVEN, ROOMS };

static int32_t *room(const pli_staging *p, int32_t *rooms, int32_t which) {
    return rooms + which * p->net->graph->n_nodes;
}

/* Searches with few micro-batches, since more tell no more of a placement; memory must hold all. */
static plait_status search(pli_staging *p, const int32_t *begin, int32_t *found) {
    const int32_t    all = p->micro_batches, few = 2 * p->ranks;
    plait_placement *placement = NULL;
    if (p->net->graph->n_place_memory == 0 && few < all) p->micro_batches = few;
    const plait_status status = judge(p, "auto", begin, &placement, p->run->err);
    p->micro_batches = all;
    PLI_TRY(status);
    take(p, placement, found);
    plait_placement_destroy(&placement);
    return PLAIT_OK;
}

/* The faster one by layers; -1: fewer layers than stages, or they do not fit. */
static int32_t judge_layers(const pli_staging *p, int32_t *rooms, double *seconds_out) {
    const bool speeds = p->hosts.speed != NULL && p->stages == p->ranks;
    int32_t    best = -1;
    for (int32_t which = BY_LAYERS; which <= (speeds ? BY_SPEED : BY_LAYERS); which++) {
        int32_t    *place = room(p, rooms, which);
        double      seconds;
        plait_error why;
        const pli_stage_hosts *hosts = which == BY_SPEED ? &p->hosts : NULL;
        if (pli_layers_place(p->net, p->stages, p->rows, hosts, place, &why) < 0 ||
            pli_staging_seconds(p, place, room(p, rooms, GIVEN), &seconds, &why) < 0 ||
            (best >= 0 && seconds >= *seconds_out))
            continue;
        best = which;
        *seconds_out = seconds;
    }
    return best;
}

/* The search begins with the runs of layers, too, and they are taken where they cost little more than what it finds:
 * they are a chain, so that micro-batches may go through them in any order. */
static plait_status find_best(pli_staging *p, int32_t *rooms) {
    enum { PERCENT = 5 };
    const bool     own = has_places(p->net->graph);
    double         layers = 0;
    const int32_t  runs = own || p->net->graph->n_place_rules > 0 ? -1 : judge_layers(p, rooms, &layers);
    const int32_t *begin = NULL;
    int32_t       *given = room(p, rooms, GIVEN);
    if (runs >= 0) {
        PLI_TRY(pli_staging_seconds(p, room(p, rooms, runs), given, &layers, p->run->err));
        begin = given;
    }
    PLI_TRY(search(p, begin, p->place));
    if (!own && pli_stage_hosts_alike(&p->hosts)) PLI_TRY(make_chain(p));
    PLI_TRY(pli_staging_seconds(p, p->place, given, &p->seconds, p->run->err));
    if (runs < 0 || layers > p->seconds * (1 + PERCENT / 100.0)) return PLAIT_OK;
    memcpy(p->place, room(p, rooms, runs), (size_t)p->net->graph->n_nodes * sizeof *p->place);
    p->seconds = layers;
    return PLAIT_OK;
}

static plait_status find(pli_staging *p) {
    int32_t *rooms = pli_array((size_t)p->net->graph->n_nodes, ROOMS * sizeof *rooms);
    if (rooms == NULL) return pli_fail(p->run->err, PLAIT_ENOMEM, "no memory to cut a net");
    const plait_status status = find_best(p, rooms);
    pli_free(rooms);
    return status;
}

/* A search may take long, so one rank searches for all. The others hear what it has found, or why it has not. */
static plait_status find_together(pli_staging *p) {
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

static plait_status place(pli_staging *p, const char **pipeline) {
    const char *how = how_of(p->run);
    if (is_file(how)) PLI_TRY(plait_graph_place_file(p->net->graph, how, p->run->err));
    PLI_TRY(check_ranks(p));
    PLI_TRY(find_together(p));
    PLI_TRY(check_chain(p, pipeline));
    PLI_TRY(agree(p));
    tell(p);
    return PLAIT_OK;
}

pli_staging pli_staging_make(const pli_run *run, const pli_net *net, int32_t ranks, int32_t chunks, int64_t rows) {
    const int32_t wanted = run->opts->micro_batches;
    pli_staging   p = { .run = run, .net = net, .ranks = ranks, .stages = ranks * chunks, .rows = rows,
                        .micro_batches = wanted < 1 ? 1 : wanted };
    while (p.n < net->graph->n_nodes && net->graph->node[p.n].forward < 0) p.n++;
    return p;
}

plait_status pli_placed_place(const pli_run *run, const pli_net *net, int32_t ranks, int32_t chunks, int64_t rows,
                              int32_t *place_out, const char **pipeline) {
    pli_staging p = pli_staging_make(run, net, ranks, chunks, rows);
    p.place = place_out;
    if (chunks > 1 && (!pli_is(how_of(run), "auto") || has_places(net->graph)))
        return pli_fail(run->err, PLAIT_EINVAL, "pipeline interleaved with places is refused: a rank has two stages "
                                                "there, and a place names one; nearest is 1f1b, or --place layers");
    PLI_TRY(pli_stage_hosts_make(run, ranks, &p.hosts));
    const plait_status status = place(&p, pipeline);
    pli_stage_hosts_free(&p.hosts);
    return status;
}
