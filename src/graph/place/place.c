/* Placements: the options are checked, some placements to begin with are judged and refined, and the best is kept. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "graph/pipeline.h"
#include "graph/place/place.h"

enum { JUDGEMENTS = 20000, TASKS = 20000000, DRAWN = 4 };

struct plait_placement {
    int32_t           *part; /* [nodes of the graph] */
    plait_place_share *share;
    int32_t            ranks;
    double             seconds;
};

void (plait_place_opts_init)(plait_place_opts *opts) {
    if (opts == NULL) return;
    *opts = (plait_place_opts){ .size = sizeof *opts,
                                .ranks = 1,
                                .flop_ns = 0.01,
                                .tap_ns = 0.03,
                                .step_ns = 0.5,
                                .moved_ns = 0.02,
                                .node_ns = 100,
                                .message_ns = 2000,
                                .byte_ns = 0.1,
                                .micro_batches = 1,
                                .chunks = 1,
                                .method = "auto" };
}

void plait_place_opts_init_sized(plait_place_opts *opts, size_t size) {
    plait_place_opts all;
    (plait_place_opts_init)(&all);
    pli_sized_give(opts, size, &all, sizeof all);
}

double pli_place_latency(const plait_place_opts *o, int32_t from, int32_t to) {
    return o->latency_s != NULL ? o->latency_s[(int64_t)from * o->ranks + to] : 20e-6;
}

double pli_place_bandwidth(const plait_place_opts *o, int32_t from, int32_t to) {
    return o->bandwidth != NULL ? o->bandwidth[(int64_t)from * o->ranks + to] : 1.25e9;
}

/* --- options ------------------------------------------------------------------------------------------------------ */

static const char *const methods[] = { "auto", "chain", "heft", "metis", "given" };

static bool good_links(const plait_place_opts *o) {
    for (int64_t i = 0; i < (int64_t)o->ranks * o->ranks; i++) {
        if (i / o->ranks == i % o->ranks) continue;
        if (o->latency_s != NULL && !(o->latency_s[i] >= 0 && isfinite(o->latency_s[i]))) return false;
        if (o->bandwidth != NULL && !(o->bandwidth[i] > 0)) return false;
    }
    return true;
}

static plait_status check_rules(const plait_graph *g, const plait_place_opts *o, plait_error *err) {
    for (int32_t i = 0; i < o->n_rules; i++) {
        const plait_place_rule *r = &o->rules[i];
        const bool              both = r->kind != PLAIT_PLACE_NEVER;
        if (r->a < 0 || r->a >= g->n_values || (both && (r->b < 0 || r->b >= g->n_values)))
            return pli_fail(err, PLAIT_EINVAL, "rule %d of a placement names no value of this graph", i);
        if (!both && (r->rank < 0 || r->rank >= o->ranks))
            return pli_fail(err, PLAIT_EINVAL, "rule %d of a placement: there is no rank %d of %d", i, r->rank,
                            o->ranks);
    }
    for (int64_t k = 0; o->given != NULL && k < g->n_nodes; k++)
        if (o->given[k] < 0 || o->given[k] >= o->ranks * o->chunks)
            return pli_fail(err, PLAIT_EINVAL, "the given placement has node %lld on rank %d; there are %d ranks",
                            (long long)k, o->given[k], o->ranks * o->chunks);
    return PLAIT_OK;
}

static bool searches(const plait_place_opts *o) {
    return strcmp(o->method, "auto") == 0 || strcmp(o->method, "metis") == 0;
}

static plait_status check_schedule(const plait_place_opts *o, plait_error *err) {
    pli_pipeline pipeline;
    if (o->schedule == NULL && (o->chunks != 1 || o->chain != 0))
        return pli_fail(err, PLAIT_EINVAL, "several parts a rank, and parts that must be a chain, go with a schedule");
    if (o->chunks > 1 && strcmp(o->method, "metis") == 0)
        return pli_fail(err, PLAIT_EINVAL, "metis has one part a rank, not %d; take auto", o->chunks);
    if (o->chunks < 1 || o->chunks > PLI_PLACE_RANKS_MAX / o->ranks)
        return pli_fail(err, PLAIT_EINVAL, "%d ranks of %d parts each: expected 1 to %d parts in all", o->ranks,
                        o->chunks, PLI_PLACE_RANKS_MAX);
    if (o->schedule == NULL) return PLAIT_OK;
    return pli_pipeline_init(&pipeline, o->schedule, o->ranks, o->chunks, o->micro_batches, 0, err);
}

static plait_status check(const plait_graph *g, const plait_place_opts *o, plait_error *err) {
    enum { RANKS_MAX = PLI_PLACE_RANKS_MAX, MICRO_MAX = 4096, KNOWN = sizeof methods / sizeof *methods };
    PLI_TRY(plait_graph_check(g, err));
    size_t m = 0;
    while (o->method != NULL && m < KNOWN && strcmp(o->method, methods[m]) != 0) m++;
    if (o->method == NULL || m == KNOWN)
        return pli_fail_unknown(err, "method of placement", o->method != NULL ? o->method : "", methods, KNOWN);
    if (o->ranks < 1 || o->ranks > RANKS_MAX || o->micro_batches < 1 || o->micro_batches > MICRO_MAX)
        return pli_fail(err, PLAIT_EINVAL, "a placement over %d ranks of %d micro-batches: expected 1 to %d of each",
                        o->ranks, o->micro_batches, RANKS_MAX);
    if (o->n_feeds < 0 || o->n_fetches < 1 || o->n_rules < 0 || o->state_values < 0 || o->fetches == NULL ||
        (o->n_feeds > 0 && o->feeds == NULL) || (o->n_rules > 0 && o->rules == NULL))
        return pli_fail(err, PLAIT_EINVAL, "a placement needs fetches, and no count below 0");
    PLI_TRY(check_schedule(o, err));
    if (strcmp(o->method, "given") == 0 ? o->given == NULL : o->given != NULL && !searches(o))
        return pli_fail(err, PLAIT_EINVAL, "`given` goes with the methods \"given\", which needs it, \"auto\" and "
                                           "\"metis\", which begin with it");
    for (int32_t r = 0; o->speed != NULL && r < o->ranks; r++)
        if (!(o->speed[r] > 0 && isfinite(o->speed[r])))
            return pli_fail(err, PLAIT_EINVAL, "rank %d has speed %g; expected a number above 0", r, o->speed[r]);
    if (!good_links(o))
        return pli_fail(err, PLAIT_EINVAL, "a link's latency is to be 0 or more, and its bandwidth above 0");
    const double costs[] = { o->flop_ns, o->tap_ns, o->step_ns, o->moved_ns, o->node_ns, o->message_ns, o->byte_ns };
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++)
        if (!(costs[i] >= 0 && isfinite(costs[i])))
            return pli_fail(err, PLAIT_EINVAL, "a cost of %g ns; expected 0 or more", costs[i]);
    return check_rules(g, o, err);
}

/* --- the search --------------------------------------------------------------------------------------------------- */

typedef struct contest {
    pli_placing *load;
    pli_judge   *judge;
    int32_t     *part, *best; /* [units] */
    int32_t     *order;       /* [parts] */
    pli_judged   judged;
    bool         any;
    int64_t      each; /* judgements for the refinement of one start */
} contest;

/* Refines the placement in part, and keeps it if it is the best. */
static void enter(contest *c, bool refine) {
    pli_judged judged = pli_judge_run(c->judge, c->part, NULL);
    int64_t    budget = c->each;
    if (refine) pli_refine(c->load, c->judge, c->load->opts->seed, &budget, c->part, &judged);
    if (c->any && !pli_judged_better(&judged, &c->judged)) return;
    memcpy(c->best, c->part, (size_t)c->load->units * sizeof *c->best);
    c->judged = judged;
    c->any = true;
}

static void draw(contest *c, uint64_t number) {
    const int32_t ranks = c->load->parts;
    pli_random    random = pli_random_at(c->load->opts->seed, PLI_RANDOM_GRAPH, number, 2);
    for (int32_t u = 0; u < c->load->units; u++) {
        int32_t r = (int32_t)pli_random_below(&random, (uint64_t)ranks);
        while (!pli_place_allows(c->load, u, r)) r = (r + 1) % ranks; /* some rank is allowed: pin_units */
        c->part[u] = r;
    }
}

/* Parts as they are, then those of the fastest ranks first. */
static void set_order(contest *c, bool fastest_first) {
    const plait_place_opts *o = c->load->opts;
    for (int32_t r = 0; r < c->load->parts; r++) {
        int32_t at = r;
        for (; fastest_first && at > 0 && pli_place_speed(o, c->order[at - 1]) < pli_place_speed(o, r); at--)
            c->order[at] = c->order[at - 1];
        c->order[at] = r;
    }
}

static bool enter_chains(contest *c, bool refine) {
    for (int32_t way = 0; way < 2; way++) {
        set_order(c, way == 1);
        for (int32_t stages = c->load->parts; stages >= 1; stages /= 2) {
            if (!pli_start_chain(c->load, c->order, stages, c->part)) return false;
            enter(c, refine);
        }
    }
    return true;
}

static plait_status no_memory(const pli_placing *l, plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory to place a graph of %d nodes", l->nodes);
}

/* Cuts by METIS for all ranks, for half of them, and so on. */
static plait_status enter_metis(contest *c, bool refine, plait_error *err) {
    set_order(c, true);
    for (int32_t parts = c->load->opts->ranks; parts >= 2; parts /= 2) {
        PLI_TRY(pli_start_metis(c->load, c->order, parts, c->part, err));
        enter(c, refine);
    }
    return PLAIT_OK;
}

/* What is given, where rules allow it, and refined. */
static void enter_given(contest *c, bool refine) {
    const pli_placing *l = c->load;
    for (int64_t k = l->graph_nodes - 1; k >= 0; k--) c->part[l->of_node[k]] = l->opts->given[k];
    for (int32_t u = 0; refine && u < l->units; u++)
        for (int32_t p = 0; p < l->parts && !pli_place_allows(l, u, c->part[u]); p++) c->part[u] = p;
    enter(c, refine);
}

static plait_status run_contest(contest *c, plait_error *err) {
    const plait_place_opts *o = c->load->opts;
    const bool              metis = strcmp(o->method, "metis") == 0, all = metis || strcmp(o->method, "auto") == 0;
    if (o->given != NULL) enter_given(c, metis || all);
    if (strcmp(o->method, "given") == 0) return PLAIT_OK;
    if (metis) PLI_TRY(enter_metis(c, true, err));
    if (strcmp(o->method, "chain") == 0) return enter_chains(c, false) ? PLAIT_OK : no_memory(c->load, err);
    if (!pli_start_heft(c->load, c->part)) return no_memory(c->load, err);
    enter(c, all);
    if (!all) return PLAIT_OK;
    set_order(c, true);
    pli_start_one(c->load, c->order[0], c->part);
    enter(c, true);
    for (uint64_t i = 0; i < DRAWN; i++) {
        draw(c, i);
        enter(c, true);
    }
    return enter_chains(c, true) ? PLAIT_OK : no_memory(c->load, err);
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

/* Names ranks with what they need, as many as the text holds: first those that lack memory, then the others that have a
 * bound. */
static plait_status refuse_memory(const plait_place_opts *o, const plait_place_share *share, plait_error *err) {
    char    text[160] = "";
    size_t  at = 0;
    int32_t more = 0;
    for (int round = 0; round < 2; round++)
        for (int32_t r = 0; r < o->ranks; r++) {
            const double needs = share[r].variable_bytes + share[r].activation_bytes, has = (double)o->memory_bytes[r];
            if ((needs <= has) != (round == 1) || o->memory_bytes[r] == UINT64_MAX) continue;
            if (at + 56 >= sizeof text)
                more++;
            else
                at += (size_t)snprintf(text + at, sizeof text - at, "%srank %d needs %.0f of %.0f",
                                       at > 0 ? ", " : "", r, needs, has);
        }
    if (more > 0) snprintf(text + at, sizeof text - at, ", and %d more", more);
    return pli_fail(err, PLAIT_EREFUSED,
                    "the graph does not fit into the ranks' memory: %s bytes; take more ranks or a smaller batch",
                    text);
}

static plait_status answer(contest *c, plait_placement *p, plait_error *err) {
    const pli_placing *l = c->load;
    pli_judge_run(c->judge, c->best, p->share);
    p->seconds = c->judged.seconds;
    for (int64_t k = 0; k < l->graph_nodes; k++) p->part[k] = c->best[l->of_node[k]];
    if (c->judged.broken > 0 && (l->opts->chain != 0 || l->opts->chunks > 1) && l->n_apart == 0)
        return pli_fail(err, PLAIT_EREFUSED, "parts are no chain: one reads in the forward pass what a later one "
                        "makes, which only the schedule gpipe can run");
    if (c->judged.broken > 0)
        return pli_fail(err, PLAIT_EREFUSED, "no placement over %d ranks was found that keeps all nodes apart that are "
                        "to be apart; take more ranks, or the method auto", l->opts->ranks);
    return c->judged.excess > 0 ? refuse_memory(l->opts, p->share, err) : PLAIT_OK;
}

static plait_status place(pli_placing *l, plait_placement *p, plait_error *err) {
    const size_t  units = ((size_t)l->units + 1) * sizeof(int32_t);
    contest       c = { .load = l,
                        .judge = pli_judge_make(l),
                        .part = pli_arena_take(&l->arena, units),
                        .best = pli_arena_take(&l->arena, units),
                        .order = pli_arena_take(&l->arena, ((size_t)l->parts + 1) * sizeof(int32_t)) };
    const int64_t tasks = (int64_t)l->nodes * l->opts->micro_batches + 1;
    if (c.judge == NULL || c.part == NULL || c.best == NULL || c.order == NULL || tasks > INT32_MAX / 2)
        return no_memory(l, err);
    c.each = TASKS / tasks < JUDGEMENTS ? TASKS / tasks : JUDGEMENTS;
    PLI_TRY(run_contest(&c, err));
    return answer(&c, p, err);
}

static plait_status create(const plait_graph *graph, const plait_place_opts *opts, plait_placement **placement_out,
                           plait_error *error_out) {
    pli_placing load;
    PLI_TRY(pli_placing_make(graph, opts, &load, error_out));
    plait_placement *p = pli_calloc(1, sizeof *p);
    plait_status     status = PLAIT_OK;
    if (p != NULL) {
        *p = (plait_placement){ .part = pli_calloc((size_t)graph->n_nodes, sizeof *p->part),
                                .share = pli_calloc((size_t)opts->ranks, sizeof *p->share),
                                .ranks = opts->ranks };
    }
    if (p == NULL || p->part == NULL || p->share == NULL)
        status = pli_fail(error_out, PLAIT_ENOMEM, "no memory for a placement");
    if (status == PLAIT_OK) status = place(&load, p, error_out);
    pli_placing_free(&load);
    if (status == PLAIT_OK)
        *placement_out = p;
    else
        plait_placement_destroy(&p);
    return status;
}

/* Adds the rules and the memory that the graph keeps to those of the options. */
static bool add_kept(const plait_graph *g, plait_place_opts *o, plait_place_rule **rules, uint64_t **memory) {
    if (strcmp(o->method, "given") == 0) return true; /* it is judged as it is */
    const size_t given = (size_t)o->n_rules, kept = (size_t)g->n_place_rules;
    *rules = pli_array(given + kept + 1, sizeof **rules);
    *memory = pli_array((size_t)o->ranks, sizeof **memory);
    if (*rules == NULL || *memory == NULL || given + kept > INT32_MAX) return false;
    if (given > 0) memcpy(*rules, o->rules, given * sizeof **rules);
    if (kept > 0) memcpy(*rules + given, g->place_rule, kept * sizeof **rules);
    o->rules = *rules;
    o->n_rules += (int32_t)kept;
    for (int32_t r = 0; r < o->ranks; r++)
        (*memory)[r] = r < g->n_place_memory && g->place_memory[r] > 0 ? g->place_memory[r] : UINT64_MAX;
    if (o->memory_bytes == NULL && g->n_place_memory > 0) o->memory_bytes = *memory;
    return true;
}

plait_status plait_placement_create(const plait_graph *graph, const plait_place_opts *opts,
                                    plait_placement **placement_out, plait_error *error_out) {
    plait_place_rule *rules = NULL;
    uint64_t         *memory = NULL;
    PLI_TRY(PLI_GIVEN(error_out, graph));
    PLI_TRY(PLI_GIVEN(error_out, opts));
    PLI_TRY(PLI_GIVEN(error_out, placement_out));
    plait_place_opts all;
    plait_place_opts_init(&all);
    PLI_TRY(pli_sized_take(&all, sizeof all, PLI_SIZED_END(plait_place_opts, seed), opts, "plait_place_opts",
                           error_out));
    PLI_TRY(check(graph, &all, error_out));
    plait_status status = add_kept(graph, &all, &rules, &memory)
                                  ? create(graph, &all, placement_out, error_out)
                                  : pli_fail(error_out, PLAIT_ENOMEM, "no memory for the rules of a placement");
    pli_free(rules);
    pli_free(memory);
    return status;
}

void plait_placement_destroy(plait_placement **placement) {
    plait_placement *p = placement == NULL ? NULL : *placement;
    if (p == NULL) return;
    pli_free(p->part);
    pli_free(p->share);
    pli_free(p);
    *placement = NULL;
}

const int32_t *plait_placement_parts(const plait_placement *p) { return p != NULL ? p->part : NULL; }
double         plait_placement_seconds(const plait_placement *p) { return p != NULL ? p->seconds : 0; }

plait_status plait_placement_share(const plait_placement *placement, int32_t rank, plait_place_share *share_out,
                                   plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, placement));
    PLI_TRY(PLI_GIVEN(error_out, share_out));
    if (rank < 0 || rank >= placement->ranks)
        return pli_fail(error_out, PLAIT_EINVAL, "a placement over %d ranks has no rank %d", placement->ranks, rank);
    *share_out = placement->share[rank];
    return PLAIT_OK;
}
