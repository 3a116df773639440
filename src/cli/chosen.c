#include "cli/chosen.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/foretell.h"
#include "cli/spawn.h"
#include "comm/comm.h"
#include "comm/launcher.h"
#include "data/checkpoint/checkpoint.h"
#include "learn/learn.h"
#include "watch/compare/compare.h"

/* Processor time for all simulations: on a machine at rest ten seconds. By the clock other load would choose. */
#define BUDGET_NS UINT64_C(10000000000)
enum { CLOCKS = 200 /* simulated, at most, of the first pair */, TAG_CHOSEN = 0x7002 };

/* A gain below this share is within what the draw of the stragglers does. */
static const double CLEAR_GAIN = 0.05;
/* If the first pair's job ended while it was simulated, its loss is the lowest there is: others need only come near. */
static const double NEAR = 0.01;

/* The strictest of the pairs that are as good as the best within this share is taken. */
static const double AS_GOOD = 0.03;

/* The strictest first. The first that runs is what the others must beat. */
static const pli_job_pair candidates[] = {
    { "allreduce", "bsp" }, { "ps", "bsp" },   { "allreduce", "bounded-delay:1" }, { "ps", "ssp:2" },
    { "ps", "ssp:4" },      { "ps", "ssp:8" }, { "ps", "async" },
};
enum { CANDIDATES = sizeof candidates / sizeof *candidates };

typedef struct search {
    const pli_train_settings *settings;
    pli_train_plan            plan;
    plait_data               *data;
    int32_t                   workers;
    uint64_t                  left_ns; /* of the budget */
    int32_t                   n, simulated;
    pli_job_pair              pair[CANDIDATES]; /* [n] */
    double                    reached[CANDIDATES]; /* when each reached the loss; INFINITY: it has not */
    pli_foretold              first, last;
    pli_looks                 looks;
    plait_error               refused; /* why the first pair that was refused was */
} search;

/* --- the pairs to try ------------------------------------------------------------------------------------------- */

static bool is_auto(const char *name) { return pli_is(name, "auto"); }

static bool wants_pair(const pli_train_settings *s) { return is_auto(s->topology) || is_auto(s->consistency); }
bool        pli_chosen_is_wanted(const pli_train_settings *s) { return wants_pair(s) || is_auto(s->columns_text); }

const char *pli_chosen_option(const pli_train_settings *s) {
    return is_auto(s->topology) ? "topology" : is_auto(s->consistency) ? "consistency" : "columns";
}

static bool has(const search *s, const pli_job_pair *pair) {
    for (int32_t i = 0; i < s->n; i++)
        if (pli_is(s->pair[i].topology, pair->topology) && pli_is(s->pair[i].consistency, pair->consistency))
            return true;
    return false;
}

/* What was named stays; the rest is that of the candidates. */
static plait_status list_pairs(search *s, plait_error *err) {
    const char *topology = s->settings->topology, *consistency = s->settings->consistency;
    for (int32_t i = 0; i < CANDIDATES; i++) {
        pli_job_pair pair = candidates[i];
        if (!is_auto(topology) && topology != NULL &&
            snprintf(pair.topology, sizeof pair.topology, "%s", topology) >= (int)sizeof pair.topology)
            return pli_fail(err, PLAIT_EINVAL, "topology %s: the name is too long", topology);
        if (!is_auto(consistency) &&
            snprintf(pair.consistency, sizeof pair.consistency, "%s", consistency) >= (int)sizeof pair.consistency)
            return pli_fail(err, PLAIT_EINVAL, "consistency %s: the name is too long", consistency);
        if (!has(s, &pair)) s->pair[s->n++] = pair;
    }
    return PLAIT_OK;
}

/* --- simulating them -------------------------------------------------------------------------------------------- */

static plait_status simulate(search *s, int32_t i, double target, double seconds, plait_error *err) {
    const uint64_t  seed = (uint64_t)s->settings->seed;
    const pli_ahead ahead = { .plan = &s->plan, .data = s->data, .pair = s->pair[i], .workers = s->workers,
                              .seed = seed, .stragglers = pli_hash_u64(seed), .clocks = isnan(target) ? CLOCKS : 0,
                              .half = isnan(target), .target = target, .seconds = seconds,
                              /* The first has half: what it has told until then can be compared. */
                              .cpu_ns = isnan(target) ? s->left_ns / 2 : s->left_ns };
    PLI_TRY(pli_foretell(&ahead, &s->last, &s->looks, err));
    s->left_ns -= s->last.cpu_ns < s->left_ns ? s->last.cpu_ns : s->left_ns;
    if (s->last.status >= 0) s->simulated++;
    else if (s->refused.code == PLAIT_OK) pli_fail(&s->refused, s->last.status, "%s", s->last.why);
    return PLAIT_OK;
}

/* Simulates pairs until one runs, which the others are compared with. */
static plait_status find_first(search *s, int32_t *at_out, plait_error *err) {
    for (int32_t i = 0; i < s->n; i++) {
        PLI_TRY(simulate(s, i, NAN, INFINITY, err));
        s->first = s->last;
        *at_out = i;
        if (s->last.status >= 0 || s->last.late) return PLAIT_OK;
    }
    *err = s->refused;
    return err->code;
}

static void name_of(const pli_job_pair *pair, char name[120]) {
    snprintf(name, 120, "%s x %s", pair->topology, pair->consistency);
}

/* Nothing could be compared: the first pair stands. */
static void keep_first(const search *s, int32_t first, const char *why, pli_chosen *out) {
    out->pair = s->pair[first];
    snprintf(out->why, sizeof out->why, "%s", why);
}

static void tell(const search *s, int32_t first, int32_t best, bool all, pli_chosen *out) {
    char        name[120], a[24], b[24];
    const char *how = all ? "" : " in the ten seconds that there are";
    name_of(&s->pair[first], name);
    pli_compare_seconds(s->reached[first], a);
    pli_compare_seconds(s->reached[best], b);
    out->pair = s->pair[best];
    if (best == first)
        snprintf(out->why, sizeof out->why,
                 "none of %" PRId32 " pairs simulated%s promises to reach its loss of %s more than %.0f %% sooner",
                 s->simulated, how, a, 100 * CLEAR_GAIN);
    else
        snprintf(out->why, sizeof out->why,
                 "it promises a loss in %s that %s reaches in %s, of %" PRId32 " pairs simulated%s", b, name, a,
                 s->simulated, how);
}

/* The strictest of the best, or the first if none is clearly better. */
static int32_t best_of(const search *s, int32_t first, double least) {
    int32_t at = first;
    if (least > (1 - CLEAR_GAIN) * s->reached[first]) return first;
    while (s->reached[at] > (1 + AS_GOOD) * least) at++;
    return at;
}

/* Simulates all others, those that most often win first: the best so far ends the others' simulations. */
static plait_status race(search *s, int32_t first, double target, pli_chosen *out, plait_error *err) {
    double  least = s->reached[first];
    int32_t i = s->n - 1;
    for (; i > first && s->left_ns > 0; i--) {
        PLI_TRY(simulate(s, i, target, (1 + AS_GOOD) * least, err));
        if (s->last.status >= 0) s->reached[i] = pli_looks_until(&s->looks, s->last.window, target);
        if (s->reached[i] < least) least = s->reached[i];
    }
    tell(s, first, best_of(s, first, least), i == first, out);
    return PLAIT_OK;
}

/* Races the others against the first pair, if it has told losses to compare. */
static plait_status compare(search *s, int32_t first, pli_chosen *out, plait_error *err) {
    double target = pli_looks_least(&s->looks, s->first.window);
    for (int32_t i = 0; i < s->n; i++) s->reached[i] = INFINITY;
    if (s->first.status < 0 || !isfinite(target)) {
        keep_first(s, first, s->first.late ? "a simulation of its clocks takes too long to compare others with it"
                                           : "it tells no loss while it trains, so others cannot be compared", out);
        return PLAIT_OK;
    }
    if (s->first.ended) target += NEAR * fabs(target);
    s->reached[first] = pli_looks_until(&s->looks, s->first.window, target);
    return race(s, first, target, out, err);
}

/* --- what must be there ----------------------------------------------------------------------------------------- */

static plait_status check_columns(const pli_train_settings *s, const pli_train_plan *plan, plait_error *err) {
    if (!is_auto(s->columns_text)) return PLAIT_OK;
    if (!pli_is(plan->train.model, "mlp"))
        return pli_fail(err, PLAIT_EINVAL,
                        "--columns auto with model %s is refused: only the dense layers of an mlp lie in columns; of "
                        "another net nearest is --cut 2 --place auto", plan->train.model);
    if (s->cut <= 1) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL, "--columns auto with --cut %lld is refused: a net is cut in one way; take one "
                                       "of the two", (long long)s->cut);
}

static plait_status check(const pli_train_settings *s, plait_error *err) {
    const char *option = pli_chosen_option(s);
    for (int64_t i = 0; i < s->in.data.n; i++)
        if (pli_is_pipe(s->in.data.item[i]))
            return pli_fail(err, PLAIT_EINVAL,
                            "--%s auto is refused: %s can be read only once, and %s are tried on its rows before; "
                            "put it into a file, or name %s", option, s->in.data.item[i],
                            wants_pair(s) ? "the pairs" : "columns",
                            wants_pair(s) ? "a pair (plait help pairs)" : "their number");
    if (s->table.n > 0 && wants_pair(s))
        return pli_fail(err, PLAIT_EINVAL,
                        "--%s auto with --table is refused: it chooses one pair for all tables; leave out one of them",
                        option);
    if (s->cluster == NULL && !pli_is(s->transport, "sim"))
        return pli_fail(err, PLAIT_EINVAL,
                        "--%s auto is refused: nothing is known of the hosts and their links; describe them by "
                        "--cluster FILE ('plait calibrate --out FILE' writes one to edit), or name %s", option,
                        wants_pair(s) ? "a pair (plait help pairs)" : "the number of columns");
    return PLAIT_OK;
}

/* How many workers the job has: under a launcher as many as processes that are no servers. */
static int32_t workers_of(const pli_train_settings *s) {
    const pli_launcher launcher = pli_launcher_find();
    const bool         launched = launcher.name != NULL && (s->transport == NULL || pli_is(s->transport, "mpi"));
    if (launched && launcher.size > 0) return launcher.size - (int32_t)s->servers;
    return s->workers > 0 ? (int32_t)s->workers : 1;
}

static plait_status prepare(search *s, const pli_train_plan *plan, plait_error *err) {
    PLI_TRY(check_columns(s->settings, plan, err));
    PLI_TRY(check(s->settings, err));
    PLI_TRY(list_pairs(s, err));
    s->plan = *plan;
    s->plan.comm.cluster = s->settings->cluster;
    s->plan.comm.threads = 0; /* a simulated rank computes on one core */
    s->plan.comm.timeout_ns = PLI_NEVER / 2;
    s->workers = workers_of(s->settings);
    plait_data_opts files = s->plan.data;
    PLI_TRY(pli_train_reads(&s->plan.train, &files, err));
    files.threads = (int32_t)pli_cores();
    return plait_data_read(&files, &s->data, err);
}

/* --- a resumed run ---------------------------------------------------------------------------------------------- */

/* Takes the value of "--name VALUE\n". */
static bool take_option(const char *options, const char *name, char *value, size_t bytes) {
    const char *at = strstr(options, name);
    if (at == NULL) return false;
    at += strlen(name);
    snprintf(value, bytes, "%.*s", (int)strcspn(at, "\n"), at);
    return value[0] != '\0';
}

/* The pair of the newest good checkpoint. false: there is none to read; a resumed run will say what is wrong. */
static bool take_kept(const pli_train_settings *s, pli_chosen *out) {
    pli_checkpoint *checkpoint = NULL;
    pli_text        passed_over = { 0 };
    plait_error     err = { .rank = -1 };
    bool            taken = false;
    if (s->resume == NULL || pli_checkpoint_open(s->resume, &checkpoint, &passed_over, &err) < 0) {
        pli_text_free(&passed_over);
        return false;
    }
    const char *meta = pli_checkpoint_meta(checkpoint);
    json_t     *of = pli_json_read(meta, strlen(meta), NULL);
    const char *topology = of != NULL ? pli_json_text_of(of, "topology") : NULL;
    const char *options = of != NULL ? pli_json_text_of(of, "options") : NULL;
    if (topology != NULL && options != NULL &&
        take_option(options, "--consistency ", out->pair.consistency, sizeof out->pair.consistency)) {
        snprintf(out->pair.topology, sizeof out->pair.topology, "%s", topology);
        snprintf(out->why, sizeof out->why, "the run that %s resumes had it", s->resume);
        taken = true;
    }
    json_decref(of);
    pli_checkpoint_close(&checkpoint);
    pli_text_free(&passed_over);
    return taken;
}

/* --- choosing --------------------------------------------------------------------------------------------------- */

/* With the pair that was named, or the first that could be. The threads of local have no messages, which a simulation
 * would count: it has the default instead. */
static plait_status find_columns(search *s, pli_chosen *out, plait_error *err) {
    const uint64_t seed = (uint64_t)s->settings->seed;
    if (pli_is(s->plan.train.topology, "local")) s->plan.train.topology = NULL;
    const pli_ahead ahead = { .plan = &s->plan, .data = s->data,
                              .pair = wants_pair(s->settings) ? s->pair[0] : (pli_job_pair){ .topology = "" },
                              .workers = s->workers, .seed = seed, .stragglers = pli_hash_u64(seed) };
    PLI_TRY(pli_columns_choose(&ahead, &s->left_ns, &out->columns, err));
    s->plan.train.columns = out->columns.columns;
    return PLAIT_OK;
}

static plait_status find_pair(search *s, pli_chosen *out, plait_error *err) {
    int32_t first = 0;
    if (s->n == 1 || s->workers == 1) {
        keep_first(s, 0, s->n == 1 ? "it is the only one that could be chosen"
                                   : "a single worker has nobody to wait for", out);
        return PLAIT_OK;
    }
    PLI_TRY(find_first(s, &first, err));
    return compare(s, first, out, err);
}

static plait_status find(search *s, const pli_train_plan *plan, bool pair, pli_chosen *out, plait_error *err) {
    PLI_TRY(prepare(s, plan, err));
    s->left_ns = BUDGET_NS;
    if (is_auto(s->settings->columns_text)) PLI_TRY(find_columns(s, out, err));
    return pair ? find_pair(s, out, err) : PLAIT_OK;
}

void pli_chosen_find(const pli_train_settings *settings, const pli_train_plan *plan, pli_chosen *out) {
    search *s = pli_calloc(1, sizeof *s);
    *out = (pli_chosen){ .err.rank = -1 };
    if (s == NULL) {
        out->status = pli_fail(&out->err, PLAIT_ENOMEM, "out of memory");
        return;
    }
    s->settings = settings;
    const bool pair = wants_pair(settings) && !take_kept(settings, out);
    if (pair || is_auto(settings->columns_text)) {
        pli_spawn_begin();
        out->status = find(s, plan, pair, out, &out->err);
        pli_spawn_end();
    }
    if (out->status == PLAIT_EINTERRUPTED)
        pli_fail(&out->err, PLAIT_EINTERRUPTED, "interrupted while --%s auto was chosen: nothing was learnt",
                 pli_chosen_option(settings));
    plait_data_destroy(&s->data);
    pli_free(s);
}

/* Servers take part in no collective, so each gets a message. */
plait_status pli_chosen_share(plait_comm *comm, pli_chosen *chosen) {
    const int32_t workers = plait_comm_workers(comm), rank = plait_comm_rank(comm);
    size_t        bytes = 0;
    if (rank >= workers) return plait_comm_recv(comm, 0, TAG_CHOSEN, chosen, sizeof *chosen, &bytes, NULL);
    for (int32_t i = workers; rank == 0 && i < plait_comm_size(comm); i++)
        PLI_TRY(plait_comm_send(comm, i, TAG_CHOSEN, chosen, sizeof *chosen));
    return plait_comm_broadcast(comm, chosen, sizeof *chosen, 0);
}
