/* graph run - a vertex program over a file of edges. See graph_run.h. */
#include "cli/graph_stop.h"

#include <inttypes.h>
#include <malloc.h>
#include <plait/events.h>
#include <pthread.h>
#include <stdio.h>

#include "cli/paths.h"
#include "cli/words.h"
#include "comm/comm.h"
#include "comm/launcher.h"
#include "table/table.h"
#include "vertex/ingress.h"

/* What the workers of a process share. The first one cuts the graph, when the number of workers is known. */
typedef struct shared {
    pli_graph_result     result;
    pli_vertex_choice    choice;
    plait_vertex_program program;
    pthread_mutex_t      mutex;
    plait_edges         *edges;
    plait_vertex_cut    *cut;
    pli_graph_stop       stop;
    bool                 found; /* stop.from is known */
    plait_job_opts       job;
    int                  interrupted; /* atomic: written by the process's workers */
    bool                 here;    /* the worker that leads is in this process */
    bool                 written; /* and has written the result, which went so: */
    plait_error          why;
} shared;

/* Does the program run as a whole, and not by an engine? Those that can do both go by the asynchronous one if asked,
 * and by the synchronous one if workers may die. */
static bool runs_itself(const pli_graph_result *r) {
    const bool by_engine = pli_is(r->set->engine, "async") || r->set->replicas > 1;
    return r->named->run != NULL && !(r->named->make != NULL && by_engine);
}

/* The edges along which the run gathers. */
static plait_near near_of(const pli_graph_result *r) { return runs_itself(r) ? r->named->near : r->named->gathers; }

/* By what the graph is cut; NULL: the cut `range`. */
static const char *method_of(const pli_graph_result *r) { return r->named->whole ? NULL : r->set->partition; }

/* --- may it be? --------------------------------------------------------------------------------------------------- */

static bool check(const pli_graph_run *set) {
    const pli_path out = { "--out", set->out, false }, events = { "--events", set->events, true },
                   written[] = { out, events },
                   read[] = { { "--data", set->data, false }, { "--cluster", set->cluster, false },
                              { "--features", set->features, false }, { "--split", set->split, false },
                              { "--priors", set->priors, false } };
    if (set->data == NULL)
        pli_cli_usage("graph run: --data EDGES is missing: the file of the graph");
    else if (pli_is_pipe(set->data) && pli_launcher_find().size > 1)
        pli_cli_usage("graph run: --data %s with several processes is refused: only one process could read the pipe; "
                      "name a file, or take --workers on threads", set->data);
    else if (!pli_is(set->engine, "async") && !pli_is(set->scope, "vertex"))
        pli_cli_usage("graph run: --scope %s needs --engine async: in a superstep all vertices see what was there "
                      "before it",
                      set->scope);
    else if (!pli_is(set->engine, "async") && !pli_is(set->order, "fifo"))
        pli_cli_usage("graph run: --order %s needs --engine async: a superstep has no order", set->order);
    else if (set->cluster != NULL && !pli_is(set->transport, "sim"))
        pli_cli_usage("graph run: --cluster describes a simulated cluster; add --transport sim");
    else if (pli_is(set->engine, "async") && set->consistency != NULL && !pli_is(set->consistency, "bsp"))
        pli_cli_usage("graph run: --engine async reads values under locks, not from tables; leave out --consistency "
                      "%s, or take --engine sync, whose supersteps then wait for nobody", set->consistency);
    else if (set->checkpoint_every > 0 && set->checkpoint == NULL)
        pli_cli_usage("graph run: --checkpoint-every needs --checkpoint DIR: the folder of the checkpoints");
    else if (set->out != NULL && pli_is(set->out, "-"))
        pli_cli_usage("graph run: --out wants a file; without --out values go to standard output");
    else
        return pli_paths_apart("graph run", written, 2, read, 5, &(pli_text_list){ 0 });
    return false;
}

/* Has the program what it asks for, and nothing that it does not know? */
static bool asks(const pli_graph_result *r) {
    const pli_graph_run    *set = r->set;
    const pli_vertex_named *named = r->named;
    uint64_t                id = 0;
    if (pli_is(named->takes[0], "priors") && set->priors == NULL)
        pli_cli_usage("graph run: %s needs --priors FILE: lines with an id and a number for each label", named->name);
    else if (named->learns && (set->features == NULL || set->split == NULL))
        pli_cli_usage("graph run: %s needs --features FILE, a row and a label for each id, and --split FILE, which "
                      "says train, val or test of each", named->name);
    else if (!named->learns && (set->features != NULL || set->split != NULL))
        pli_cli_usage("graph run: %s has no --features and no --split", named->name);
    else if (named->sourced && set->source == NULL)
        pli_cli_usage("graph run: %s needs --source ID: the vertex at which it begins", named->name);
    else if (set->source != NULL && !named->sourced && !named->personal)
        pli_cli_usage("graph run: %s has no --source", named->name);
    else if (set->source != NULL && !pli_parse_u64(set->source, &id))
        pli_cli_usage("graph run: --source '%s' is no id: expected a whole number below 2^64", set->source);
    else if (pli_is(set->engine, "async") && named->sync_only)
        pli_cli_usage("graph run: %s has no --engine async: what it comes to depends on supersteps, in which all "
                      "vertices move at once", named->name);
    else if (pli_is(set->engine, "async") && named->make == NULL)
        pli_cli_usage("graph run: %s has no --engine async: it works on a worker's whole part at once; pagerank, "
                      "components, bfs, sssp, kcore, coloring, beliefs and als go vertex by vertex", named->name);
    else if ((set->checkpoint != NULL || set->resume != NULL) && runs_itself(r))
        pli_cli_usage("graph run: %s has no %s: it works on a worker's whole part at once%s", named->name,
                      set->checkpoint != NULL ? "--checkpoint" : "--resume",
                      named->make != NULL && !named->sync_only ? "; --engine async has" : "");
    else
        return true;
    return false;
}

/* Loading a large graph takes minutes: what is not there, or cannot be written, is told before. The place of the result
 * is looked at by one process. */
static plait_status look_ahead(const pli_graph_run *set, plait_error *err) {
    const char *const read[] = { set->features, set->split, set->priors };
    for (int i = 0; i < 3; i++)
        if (read[i] != NULL) PLI_TRY(pli_paths_check_read(&read[i], 1, err));
    return set->out != NULL && pli_launcher_find().rank <= 0 ? pli_paths_check_write(set->out, err) : PLAIT_OK;
}

/* What the program alone reads. */
static plait_status prepare(shared *s, plait_error *err) {
    const pli_graph_run   *set = s->result.set;
    const pli_vertex_asked asked = { .features = set->features, .split = set->split, .priors = set->priors,
                                     .most_probable = pli_is(set->messages, "max"), .smoothing = set->smoothing,
                                     .components = set->components, .l2 = set->l2 };
    return s->result.named->prepare(&asked, &s->choice, err);
}

/* For values that come out. */
static plait_status make_room(shared *s, plait_error *err) {
    pli_graph_result       *r = &s->result;
    const pli_vertex_named *named = r->named;
    const bool              own = runs_itself(r);
    r->type = !own ? s->program.type : named->is_real ? PLAIT_F64 : PLAIT_I64;
    r->values = !own && s->program.values > 0 ? s->program.values : 1;
    r->shown = named->shown != NULL ? named->shown(&s->choice) : r->values;
    r->value = pli_array((size_t)plait_edges_vertices(r->edges) * (size_t)r->values, sizeof *r->value);
    return r->value != NULL ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for the values of vertices");
}

static plait_status choose(shared *s, plait_error *err) {
    const pli_graph_run    *set = s->result.set;
    const pli_vertex_named *named = s->result.named;
    pli_vertex_choice      *choice = &s->choice;
    *choice = (pli_vertex_choice){ s->result.edges, -1, set->damping, set->tolerance, (uint64_t)set->seed, NULL };
    s->result.choice = choice;
    if (named->prepare != NULL) PLI_TRY(prepare(s, err));
    if (set->source != NULL) {
        uint64_t id = 0;
        (void)pli_parse_u64(set->source, &id); /* asks() has refused what is no id */
        if ((choice->source = plait_edges_find(s->result.edges, id)) < 0)
            return pli_fail(err, PLAIT_EINVAL, "--source %s: the graph has no such vertex", set->source);
    }
    plait_vertex_program_init(&s->program);
    s->program.name = named->name;
    s->program.user = choice;
    if (named->make != NULL) PLI_TRY(named->make(choice, &s->program, err));
    return make_room(s, err);
}

/* A checkpoint goes on with the same priors and the like. */
static void sign(shared *s) {
    const pli_vertex_named *named = s->result.named;
    const size_t            n = strlen(s->stop.note);
    if (named->sign == NULL) return;
    snprintf(s->stop.note + n, sizeof s->stop.note - n, ", options %016" PRIx64, named->sign(s->choice.own));
    s->stop.same = strlen(s->stop.note);
}

/* What follows from the options, once the graph is known. */
static plait_status settle(shared *s, plait_error *err) {
    PLI_TRY(choose(s, err));
    pli_graph_stop_note(&s->stop, s->result.edges);
    sign(s);
    return PLAIT_OK;
}

/* --- on each worker ----------------------------------------------------------------------------------------------- */

static plait_status cut_once(shared *s, int32_t workers, plait_error *err) {
    const pli_graph_result *r = &s->result;
    plait_status            status = PLAIT_OK;
    pthread_mutex_lock(&s->mutex);
    if (s->cut == NULL)
        status = pli_cut_create(r->edges, near_of(r), method_of(r), workers, &s->cut, err);
    pthread_mutex_unlock(&s->mutex);
    return status;
}

/* Notes what has come out: for the worker that leads, whose process alone reads it. */
static void note(shared *s, const plait_comm *comm, const plait_vertex_report *report, double seconds, int64_t bytes,
                 double idle) {
    pli_graph_result *r = &s->result;
    s->here = true;
    r->run_s = seconds;
    r->virtual_s = -1;
    r->report = *report;
    r->workers = plait_comm_workers(comm);
    r->transport = pli_is(plait_comm_transport(comm), "mpi") ? "mpi"
                   : pli_is(plait_comm_transport(comm), "sim") ? "sim" : "threads";
    r->topology = pli_is(r->transport, "threads") ? "local" : "ps";
    if (r->set->topology != NULL) r->topology = r->set->topology;
    r->consistency = r->set->consistency != NULL ? r->set->consistency : "bsp";
    r->bytes_sent = (uint64_t)bytes;
    r->idle = idle;
    r->cut = s->cut;
    r->lost = &s->stop.lost;
    pli_graph_stop_lost(&s->stop, comm);
}

/* In a run that survives dead ranks the result is written before any rank ends; if the worker that leads dies
 * meanwhile, the next one writes it. */
static plait_status write_together(shared *s, plait_comm *comm, const plait_vertex_report *report, double seconds,
                                   int64_t bytes, double idle) {
    int32_t lead;
    do {
        lead = pli_comm_lead(comm);
        if (pli_comm_leads(comm) && !s->here) {
            note(s, comm, report, seconds, bytes, idle);
            s->written = report->interrupted == 0;
            if (s->written) s->why.code = pli_graph_put(&s->result, &s->why);
            fflush(stdout);
        }
        PLI_TRY(plait_comm_barrier(comm));
    } while (pli_comm_lead(comm) != lead);
    return PLAIT_OK;
}

/* Where a worker's time went: all of it, and what it spent waiting. */
typedef struct spent {
    double idle_s, all_s;
} spent;

static spent spend(plait_comm *comm) {
    pli_comm_times times;
    pli_comm_tell_times(comm, &times);
    return (spent){ (double)(times.wait_ns + (times.in_flight ? 0 : times.network_ns)) * 1e-9,
                    (double)pli_comm_now(comm) * 1e-9 };
}

/* The share of the workers' time since then that they waited. Collective. */
static plait_status tell_idle(plait_comm *comm, const spent *since, double *share_out) {
    const spent now = spend(comm);
    double      sum[2] = { now.idle_s - since->idle_s, now.all_s - since->all_s };
    PLI_TRY(plait_comm_allreduce(comm, sum, 2, PLAIT_F64, PLAIT_SUM));
    *share_out = sum[1] > 0 ? sum[0] / sum[1] : 0;
    return PLAIT_OK;
}

/* Where a worker may die, any other may come to lead, and has the values. */
static plait_status run_worker(plait_job *job, shared *s) {
    pli_graph_result   *r = &s->result;
    plait_comm         *comm = plait_job_comm(job);
    const bool          survives = r->set->replicas > 1 && !pli_is(plait_comm_transport(comm), "threads"),
                        alone = !pli_comm_shares_process(comm);
    plait_vertex_report report;
    int64_t             bytes = 0;
    PLI_TRY(cut_once(s, plait_comm_workers(comm), pli_comm_error(comm)));
    if (alone) s->stop.alone = comm;
    const uint64_t    began = pli_now_ns();
    const spent       before = spend(comm);
    double            idle = 0;
    void *const       values = survives || plait_comm_rank(comm) == 0 ? r->value : NULL;
    plait_vertex_opts opts;
    plait_vertex_opts_init(&opts);
    opts.supersteps = r->set->supersteps > 0 ? r->set->supersteps : r->named->most;
    opts.engine = r->set->engine;
    if (pli_is(opts.engine, "async")) {
        opts.scope = r->set->scope;
        opts.order = r->set->order;
    }
    if (!runs_itself(r)) pli_graph_stop_opts(&s->stop, &opts);
    plait_status status =
        runs_itself(r)
            ? r->named->run(job, &s->choice, s->cut, r->set->supersteps, values, &report)
            : plait_vertex_run_with(job, r->edges, s->cut, &s->program, &opts, values, &report);
    const double seconds = (double)(pli_now_ns() - began) * 1e-9;
    if (status == PLAIT_OK) {
        bytes = (int64_t)plait_comm_bytes_sent(comm);
        status = plait_comm_allreduce(comm, &bytes, 1, PLAIT_I64, PLAIT_SUM);
    }
    if (status == PLAIT_OK) status = tell_idle(comm, &before, &idle);
    if (status == PLAIT_OK && report.interrupted) __atomic_store_n(&s->interrupted, 1, __ATOMIC_RELAXED);
    if (status == PLAIT_OK && survives && alone)
        status = write_together(s, comm, &report, seconds, bytes, idle);
    else if (status == PLAIT_OK && pli_comm_leads(comm)) note(s, comm, &report, seconds, bytes, idle);
    if (alone) s->stop.alone = NULL;
    return status;
}

/* --- the graph ---------------------------------------------------------------------------------------------------- */

static plait_edges_opts edges_opts(const pli_graph_run *set) {
    plait_edges_opts opts;
    plait_edges_opts_init(&opts);
    opts.format = set->format;
    opts.undirected = set->undirected;
    opts.drop_loops = set->drop_loops;
    opts.drop_doubles = set->drop_doubles;
    return opts;
}

/* Does each process read its own part, once it knows which that is? */
static bool reads_part(const pli_graph_result *r) {
    const pli_graph_run *set = r->set;
    return (set->transport == NULL || pli_is(set->transport, "mpi")) && pli_launcher_find().size > 1 &&
           r->named->parts && pli_ingress_takes(near_of(r), method_of(r));
}

static plait_status load(shared *s, plait_error *err) {
    const pli_graph_run   *set = s->result.set;
    const plait_edges_opts opts = edges_opts(set);
    const uint64_t         began = pli_now_ns();
    PLI_TRY(plait_edges_read(set->data, &opts, &s->edges, err));
    if ((s->result.named->out && pli_edges_out(s->edges) == NULL) ||
        (s->result.named->simple && pli_edges_simple(s->edges, NULL) == NULL))
        return pli_fail(err, PLAIT_ENOMEM, "no memory for other views of the graph");
    s->result.edges = s->edges;
    s->result.load_s = (double)(pli_now_ns() - began) * 1e-9;
    return PLAIT_OK;
}

/* Each process is one worker here. */
static plait_status load_part(shared *s, plait_comm *comm) {
    const pli_graph_result *r = &s->result;
    const plait_edges_opts  opts = edges_opts(r->set);
    const uint64_t          began = pli_now_ns();
    PLI_TRY(pli_ingress_read(comm, r->set->data, &opts, near_of(r), method_of(r), &s->edges, &s->cut));
    s->result.edges = s->edges;
    s->result.load_s = (double)(pli_now_ns() - began) * 1e-9;
    return settle(s, pli_comm_error(comm));
}

/* The job begins in the clock of the checkpoint from which it goes on. */
static plait_status run_job(shared *s, plait_comm *comm) {
    plait_job     *job = NULL;
    plait_job_opts opts = s->job;
    pli_graph_from from;
    if (s->edges == NULL) PLI_TRY(load_part(s, comm));
    if (pli_comm_leads(comm)) pli_graph_effects(&s->stop.talk, s->result.set, s->result.named, comm);
    PLI_TRY(pli_graph_stop_find(&s->stop, comm, &from));
    pthread_mutex_lock(&s->mutex);
    if (!s->found) s->stop.from = from;
    s->found = true;
    pthread_mutex_unlock(&s->mutex);
    opts.first_clock = from.clock;
    PLI_TRY(plait_job_create(comm, &opts, &job));
    const plait_status status = run_worker(job, s);
    if (status >= 0) return plait_job_destroy(&job);
    pli_job_abandon(&job);
    return status;
}

/* While it works, it can be asked what it waits for. */
static plait_status work(plait_comm *comm, void *user) {
    shared *s = user;
    pli_signals_enter(&s->stop.signals, comm);
    const plait_status status = run_job(s, comm);
    pli_signals_leave(&s->stop.signals, comm);
    return status;
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

static plait_status go(shared *s, plait_error *err) {
    const pli_graph_run *set = s->result.set;
    plait_comm_opts      comm;
    plait_job_opts      *job = &s->job;
    plait_comm_opts_init(&comm);
    plait_job_opts_init(job);
    comm.transport = set->transport;
    comm.workers = (int32_t)set->workers;
    comm.threads = (int32_t)set->threads;
    comm.timeout_ns = set->timeout_ns;
    comm.cluster = set->cluster;
    comm.seed = job->seed = (uint64_t)set->seed;
    comm.simulated = &s->result.simulated;
    job->topology = set->topology;
    job->consistency = set->consistency;
    job->exact = pli_is(set->reduce, "exact");
    job->replicas = (int32_t)set->replicas;
    if (set->events != NULL) PLI_TRY(plait_events_create(set->events, &job->events, err));
    plait_status status = plait_comm_run(&comm, work, s, err);
    if (set->events != NULL) {
        const plait_status closed = plait_events_close(&job->events, status < 0 ? NULL : err);
        if (status == PLAIT_OK) status = closed;
    }
    if (pli_is(set->transport, "sim")) s->result.virtual_s = s->result.simulated.virtual_seconds;
    return status;
}

static plait_status run(shared *s, plait_error *err) {
    plait_status status = look_ahead(s->result.set, err);
    if (status == PLAIT_OK && !reads_part(&s->result)) status = load(s, err);
    if (status == PLAIT_OK && s->edges != NULL) status = settle(s, err);
    if (status == PLAIT_OK) status = go(s, err);
    pli_signals_ended(&s->stop.signals);
    if (status == PLAIT_OK && s->here && s->interrupted)
        pli_graph_stop_say(&s->stop, s->result.report.supersteps, pli_is(s->result.transport, "mpi"));
    else if (status == PLAIT_OK && s->here && !s->written) status = pli_graph_put(&s->result, err);
    else if (status == PLAIT_OK && s->written && (status = s->why.code) < 0) *err = s->why;
    if (s->result.named->release != NULL) s->result.named->release(&s->choice.own);
    plait_vertex_cut_destroy(&s->cut);
    plait_edges_destroy(&s->edges);
    pli_free(s->result.value);
    return status;
}

/* The C library would keep freed blocks at hand, up to twice the largest that it has ever freed: of a large graph some
 * arrays of all vertices, for the whole run. Several workers need such arrays in each superstep anyway, and fresh pages
 * would cost them time. */
static void keep_little(bool alone) {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, alone ? 4 << 20 : 32 << 20);
    mallopt(M_TRIM_THRESHOLD, alone ? 8 << 20 : 64 << 20); /* else what each superstep frees would go back, too */
#else
    (void)alone;
#endif
}

int pli_graph_run_program(const pli_graph_run *set) {
    keep_little(set->workers <= 1);
    shared      s = { .result = { .set = set }, .why = { .rank = -1 } };
    plait_error err = { .rank = -1 };
    s.result.named = pli_vertex_find(set->program, &err);
    if (s.result.named == NULL) {
        const char *say = pli_words_value("program", set->program);
        return say != NULL ? pli_cli_usage("unknown vertex program '%s': %s", set->program, say)
                           : pli_cli_usage("%s", err.text);
    }
    if (!check(set) || !asks(&s.result)) return PLI_EXIT_USAGE;
    if (pli_graph_stop_open(&s.stop, set, &err) < 0) return pli_cli_fail(&err);
    pthread_mutex_init(&s.mutex, NULL);
    const plait_status status = run(&s, &err);
    pthread_mutex_destroy(&s.mutex);
    pli_graph_stop_close(&s.stop);
    if (status >= 0 && s.interrupted) return pli_cli_end(PLI_EXIT_INTERRUPTED);
    if (status >= 0) return pli_cli_end(PLI_EXIT_DONE);
    pli_fail_at(&err, "graph run");
    const int code = pli_cli_fail(&err);
    return status == PLAIT_EINVAL ? PLI_EXIT_USAGE : code;
}
