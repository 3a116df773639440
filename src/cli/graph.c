/* graph - what can be asked of a graph's file. `graph place` says which rank computes which node of a dataflow graph;
 * `graph run` runs a vertex program over a file of edges (graph_run.h). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/graph_place.h"
#include "cli/graph_run.h"
#include "cli/paths.h"
#include "graph/graph.h"
#include "vertex/als.h"

/* Both words' settings; a row of both sets the first's, and `run` copies it. */
typedef struct graph_settings {
    pli_place_settings place;
    pli_graph_run      run;
} graph_settings;

#define AT(field)  offsetof(graph_settings, place.field)
#define RUN(field) offsetof(graph_settings, run.field)
#define MANY      1e15

static const pli_opt rows[] = {
    { "ranks", PLI_OPT_I64, AT(ranks), NULL, "N", "how many ranks; default: the cores of --cluster", 1, 4096,
      "placement" },
    { "cluster", PLI_OPT_TEXT, AT(cluster), NULL, "FILE",
      "the ranks' speeds, links and costs; default: equal hosts on one switch", 0, 0, "placement" },
    { "place", PLI_OPT_TEXT, AT(place), "auto", "auto|chain|heft|metis|FILE",
      "how nodes are placed; FILE has places and rules, and auto does the rest", 0, 0, "placement" },
    { "forbid", PLI_OPT_LIST, AT(forbid), NULL, "NODE:RANK", "keep a node off a rank", 0, 0, "placement" },
    { "together", PLI_OPT_LIST, AT(together), NULL, "A:B", "place two nodes on one rank", 0, 0, "placement" },
    { "apart", PLI_OPT_LIST, AT(apart), NULL, "A:B", "place two nodes on two ranks", 0, 0, "placement" },
    { "memory", PLI_OPT_BYTES, AT(memory), "0", "BYTES", "what each rank may use; 0: what the file says, or no bound",
      0, 0, "placement" },
    { "fetch", PLI_OPT_LIST, AT(fetch), NULL, "NODE",
      "what a step computes; default: scores, or all nodes that no other reads", 0, 0, "step" },
    { "forward", PLI_OPT_FLAG, AT(forward), NULL, NULL, "only the forward pass, without gradients", 0, 0, "step" },
    { "batch", PLI_OPT_I64, AT(batch), "64", "N", "rows of a step: the length of open first axes", 1, 1e9, "step" },
    { "length", PLI_OPT_I64, AT(length), "32", "N", "the length of other open axes", 1, 1e9, "step" },
    { "micro-batches", PLI_OPT_I64, AT(micro_batches), "1", "M", "parts of the batch that follow one another", 1, 4096,
      "step" },
    { "optimizer", PLI_OPT_TEXT, AT(optimizer), "auto", "RULE",
      "the update rule, whose state takes memory beside the variables; auto: adagrad", 0, 0, "step" },
    { "seed", PLI_OPT_I64, AT(seed), "0", "N", "of the search, and of random first values", 0, MANY, "step" },
    { "data", PLI_OPT_LIST, RUN(files), NULL, "EDGES", "the file of the graph's edges, also packed by gzip or zstd", 0,
      0, "edges" },
    { "format", PLI_OPT_CHOICE, RUN(format), "auto", "auto|snap|matrix-market|metis|adjacency",
      "what the file is; auto knows Matrix Market by its banner, and takes all else for lines FROM TO [WEIGHT]", 0, 0,
      "edges" },
    { "undirected", PLI_OPT_FLAG, RUN(undirected), NULL, NULL, "each edge also goes back", 0, 0, "edges" },
    { "drop-loops", PLI_OPT_FLAG, RUN(drop_loops), NULL, NULL, "leave out edges from a vertex to itself", 0, 0,
      "edges" },
    { "drop-doubles", PLI_OPT_FLAG, RUN(drop_doubles), NULL, NULL,
      "of edges between the same two vertices keep the first", 0, 0, "edges" },
    { "source", PLI_OPT_TEXT, RUN(source), NULL, "ID",
      "the vertex at which bfs and sssp begin, or that pagerank favors", 0, 0, "program" },
    { "priors", PLI_OPT_TEXT, RUN(priors), NULL, "FILE",
      "beliefs: lines ID NUMBER NUMBER ..., how probable each label of a vertex is by itself", 0, 0, "program" },
    { "messages", PLI_OPT_CHOICE, RUN(messages), "sum", "sum|max",
      "beliefs: sum: each label's probability; max: the most probable labeling", 0, 0, "program" },
    { "smoothing", PLI_OPT_F64, RUN(smoothing), "1", "X",
      "beliefs: the cost of unequal labels at the ends of an edge, times its weight", -1e6, 1e6, "program" },
    { "components", PLI_OPT_I64, RUN(components), "32", "K", "als: factors of a user or an item", 1, PLI_ALS_RANK,
      "program" },
    { "l2", PLI_OPT_F64, RUN(l2), "0.1", "X", "als: the penalty, once for each rating; above 0", 0, 1e15, "program" },
    { "damping", PLI_OPT_F64, RUN(damping), "0.85", "X", "pagerank: the chance to follow an edge", 0, 1, "program" },
    { "tolerance", PLI_OPT_F64, RUN(tolerance), "1e-10", "X",
      "pagerank, beliefs, als: it ends when no number changes by more in a superstep", 0, 1, "program" },
    { "supersteps", PLI_OPT_I64, RUN(supersteps), "0", "N",
      "end after N supersteps of this start, of gcn after N epochs; 0: when nothing changes, or as the program does by "
      "default", 0, MANY, "program" },
    { "features", PLI_OPT_TEXT, RUN(features), NULL, "FILE",
      "gcn: a row of features and a label for each vertex, in the order of ids 0, 1, ...", 0, 0, "program" },
    { "split", PLI_OPT_TEXT, RUN(split), NULL, "FILE",
      "gcn: a line for each row: train, val, test, or none of these", 0, 0, "program" },
    { "engine", PLI_OPT_CHOICE, RUN(engine), "sync", "sync|async",
      "sync: superstep by superstep; async: vertex by vertex, from a queue", 0, 0, "distribution" },
    { "scope", PLI_OPT_CHOICE, RUN(scope), "vertex", "vertex|edge|full",
      "async: which neighbors a vertex locks while it is updated: none; against changes; against reads, too", 0, 0,
      "distribution" },
    { "order", PLI_OPT_CHOICE, RUN(order), "fifo", "fifo|priority|sweep",
      "async: which vertex comes next: by waiting time, by its neighbors' changes, by number", 0, 0, "distribution" },
    { "partition", PLI_OPT_CHOICE, RUN(partition), "range", "range|random|grid|oblivious|hdrf|metis",
      "which worker has which edge: range and metis keep a vertex's edges together, the others cut vertices", 0, 0,
      "distribution" },
    { "workers", PLI_OPT_I64, RUN(workers), NULL, "N", "workers; default 1; under a launcher: its processes", 1, 65535,
      "distribution" },
    { "threads", PLI_OPT_I64, RUN(threads), NULL, "N", "compute threads of one worker", 1, 4096, "distribution" },
    { "transport", PLI_OPT_CHOICE, RUN(transport), NULL, "threads|mpi|sim",
      "what carries the bytes; default: mpi under an MPI launcher, else threads", 0, 0, "distribution" },
    { "topology", PLI_OPT_TEXT, RUN(topology), NULL, "local|allreduce|ps",
      "how updates travel; default local; ps if ranks are processes", 0, 0, "distribution" },
    { "consistency", PLI_OPT_TEXT, RUN(consistency), NULL, "C",
      "what a read may miss: bsp (default), ssp:S, async, ...", 0, 0, "distribution" },
    { "reduce", PLI_OPT_CHOICE, RUN(reduce), "plain", "plain|exact",
      "exact: sums have the same bits in any order", 0, 0, "distribution" },
    { "replicas", PLI_OPT_I64, RUN(replicas), "1", "K",
      "replicas of each shard, 1 to 3; with 2 a run goes on when a rank dies; "
      "it needs ps x bsp", 1, 65535, "distribution" },
    { "checkpoint", PLI_OPT_TEXT, RUN(checkpoint), NULL, "DIR",
      "keep checkpoints here, from which --resume goes on; one when a signal ends the run", 0, 0, "run" },
    { "checkpoint-every", PLI_OPT_I64, RUN(checkpoint_every), "0", "N",
      "a checkpoint behind every N supersteps; 0: only when a signal ends the run", 0, MANY, "run" },
    { "resume", PLI_OPT_TEXT, RUN(resume), NULL, "DIR", "go on from the newest checkpoint of this folder", 0, 0,
      "run" },
    { "events", PLI_OPT_TEXT, RUN(events), NULL, "FILE", "write an event log for 'plait audit'", 0, 0, "run" },
    { "timeout", PLI_OPT_DURATION, RUN(timeout_ns), "300s", "S", "longest wait for another rank", 0, 0, "run" },
    { "quiet", PLI_OPT_FLAG, RUN(quiet), NULL, NULL, "print errors only", 0, 0, "run" },
    { "out", PLI_OPT_TEXT, AT(out), NULL, "FILE",
      "place: write the placed graph here; run: the values, as a NumPy array if it ends in .npy", 0, 0, "output" },
    { "json", PLI_OPT_FLAG, AT(json), NULL, NULL, "print one JSON object", 0, 0, "output" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

static const char *const words[] = { "place", "run", NULL };

static const char *const *more(const char *word) { return pli_is(word, "run") ? pli_vertex_names() : NULL; }

/* What is printed. */
typedef struct result {
    const pli_place_settings *set;
    const pli_place_step     *step;
    const plait_placement    *placement;
    double                    whole; /* seconds on the fastest rank alone; below 0: not known */
} result;

/* --- output ------------------------------------------------------------------------------------------------------- */

static uint64_t memory_of(const result *r, int32_t rank) {
    const plait_graph *g = r->step->graph;
    return rank < g->n_place_memory ? g->place_memory[rank] : 0;
}

static const char *name_of(const plait_graph *g, const char *const *names, int64_t k, char made[80]) {
    const char *name = names[g->node[k].value];
    if (name == NULL) pli_node_name(g, k, made);
    return name != NULL ? name : made;
}

static void rank_json(const result *r, int32_t rank, pli_text *text) {
    plait_place_share share;
    if (plait_placement_share(r->placement, rank, &share, NULL) < 0) return;
    pli_json_object(text, NULL);
    pli_json_i64(text, "rank", rank);
    pli_json_i64(text, "nodes", share.nodes);
    pli_json_f64(text, "flops", share.operations);
    pli_json_f64(text, "variable_bytes", share.variable_bytes);
    pli_json_f64(text, "activation_bytes", share.activation_bytes);
    if (memory_of(r, rank) > 0)
        pli_json_u64(text, "memory_bytes", memory_of(r, rank));
    else
        pli_json_null(text, "memory_bytes");
    pli_json_f64(text, "sent_bytes", share.sent_bytes);
    pli_json_f64(text, "busy_seconds", share.busy_s);
    pli_json_f64(text, "idle_seconds", share.idle_s);
    pli_json_end(text);
}

static void show_json(const result *r, const char *const *names, pli_text *text) {
    const plait_graph *g = r->step->graph;
    const int32_t     *rank = plait_placement_parts(r->placement);
    char               made[80], where[32];
    pli_json_begin(text);
    pli_json_text(text, "graph", r->set->file);
    pli_json_text(text, "method", r->step->opts.method);
    pli_json_i64(text, "ranks", r->step->opts.ranks);
    pli_json_i64(text, "batch", r->set->batch);
    pli_json_i64(text, "micro_batches", r->set->micro_batches);
    pli_json_bool(text, "backward", !r->set->forward);
    pli_json_f64(text, "step_seconds", plait_placement_seconds(r->placement));
    if (r->whole >= 0)
        pli_json_f64(text, "whole_seconds", r->whole);
    else
        pli_json_null(text, "whole_seconds");
    pli_json_list(text, "by_rank");
    for (int32_t k = 0; k < r->step->opts.ranks; k++) rank_json(r, k, text);
    pli_json_list_end(text);
    pli_json_object(text, "place");
    for (int64_t k = 0; k < r->step->own_nodes; k++) {
        snprintf(where, sizeof where, "rank:%d/cpu:0", rank[k]);
        pli_json_text(text, name_of(g, names, k, made), where);
    }
    pli_json_end(text);
    pli_json_end(text);
    pli_text_add(text, "\n");
}

static void show_rank(const result *r, int32_t rank, pli_text *text) {
    plait_place_share share;
    char              memory[32] = "-";
    if (plait_placement_share(r->placement, rank, &share, NULL) < 0) return;
    if (memory_of(r, rank) > 0) snprintf(memory, sizeof memory, "%" PRIu64, memory_of(r, rank));
    pli_text_add(text, "rank:%d\t%d\t%.0f\t%.0f\t%.0f\t%s\t%.0f\t%.3g\t%.3g\n", rank, share.nodes, share.operations,
                 share.variable_bytes, share.activation_bytes, memory, share.sent_bytes, share.busy_s * 1e3,
                 share.idle_s * 1e3);
}

static void show(const result *r, const char *const *names, pli_text *text) {
    const plait_graph *g = r->step->graph;
    const int32_t     *rank = plait_placement_parts(r->placement);
    char               made[80];
    pli_text_add(text, "step_ms\t%.4g\n", plait_placement_seconds(r->placement) * 1e3);
    if (r->whole >= 0) pli_text_add(text, "whole_ms\t%.4g\n", r->whole * 1e3);
    pli_text_add(text, "\nrank\tnodes\tflops\tvariable_bytes\tactivation_bytes\tmemory_bytes\tsent_bytes\tbusy_ms\t"
                       "idle_ms\n");
    for (int32_t k = 0; k < r->step->opts.ranks; k++) show_rank(r, k, text);
    pli_text_add(text, "\nnode\tplace\n");
    for (int64_t k = 0; k < r->step->own_nodes; k++)
        pli_text_add(text, "%s\trank:%d/cpu:0\n", name_of(g, names, k, made), rank[k]);
}

/* --- place -------------------------------------------------------------------------------------------------------- */

/* Seconds of a step that the fastest rank computes alone, with all the memory that it needs; below 0: no memory to tell
 * it. */
static double time_alone(const pli_place_step *step) {
    plait_place_opts opts = step->opts;
    plait_placement *p = NULL;
    int32_t          fastest = 0;
    double           seconds = -1;
    int32_t         *all = pli_array((size_t)step->graph->n_nodes, sizeof *all);
    uint64_t        *memory = pli_array((size_t)opts.ranks, sizeof *memory);
    for (int32_t r = 1; r < opts.ranks; r++)
        if (step->speed[r] > step->speed[fastest]) fastest = r;
    for (int64_t k = 0; all != NULL && k < step->graph->n_nodes; k++) all[k] = fastest;
    for (int32_t r = 0; memory != NULL && r < opts.ranks; r++) memory[r] = UINT64_MAX;
    opts.method = "given";
    opts.given = all;
    opts.memory_bytes = memory;
    if (all != NULL && memory != NULL && plait_placement_create(step->graph, &opts, &p, NULL) == PLAIT_OK)
        seconds = plait_placement_seconds(p);
    plait_placement_destroy(&p);
    pli_free(memory);
    pli_free(all);
    return seconds;
}

static plait_status print(const result *r, plait_error *err) {
    pli_text     text = { 0 };
    const char **names = pli_value_names(r->step->graph);
    if (names == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for names");
    if (r->set->json)
        show_json(r, names, &text);
    else
        show(r, names, &text);
    pli_free(names);
    return pli_cli_print(&text) ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory to print the placement");
}

static plait_status place(const pli_place_settings *set, plait_error *err) {
    pli_place_step   step;
    plait_placement *placement = NULL;
    plait_status     status = pli_place_step_make(set, &step, err);
    if (status == PLAIT_OK) status = plait_placement_create(step.graph, &step.opts, &placement, err);
    if (status == PLAIT_OK && set->out != NULL)
        status = pli_place_write(set, step.opts.ranks, plait_placement_parts(placement), err);
    if (status == PLAIT_OK) status = print(&(result){ set, &step, placement, time_alone(&step) }, err);
    plait_placement_destroy(&placement);
    pli_place_step_free(&step);
    return status < 0 ? pli_fail_at(err, "graph place") : PLAIT_OK;
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static bool check(const pli_place_settings *set) {
    const pli_path out = { "--out", set->out, false },
                   read[] = { { "the graph", set->file, false }, { "--cluster", set->cluster, false } };
    if (set->out != NULL && strcmp(set->out, "-") == 0)
        pli_cli_usage("graph place: --out wants a file; standard output has the placement");
    else if (set->micro_batches > set->batch)
        pli_cli_usage("graph place: --micro-batches %" PRId64 " of --batch %" PRId64 ": each micro-batch needs a row; "
                      "take fewer",
                      set->micro_batches, set->batch);
    else if (pli_place_method(set) == NULL && !pli_file_exists(set->place))
        pli_cli_usage("graph place: --place '%s' is no file, and none of auto, chain, heft, metis", set->place);
    else
        return pli_paths_apart("graph place", &out, 1, read, 2, &(pli_text_list){ 0 });
    return false;
}

static bool takes(const char *word, const pli_opt *row) {
    static const char *const of_place[] = { "placement", "step" },
                             *const of_run[] = { "edges", "program", "distribution", "run" };
    const bool         runs = pli_is(word, "run");
    const char *const *foreign = runs ? of_place : of_run;
    if (runs && (pli_is(row->name, "cluster") || pli_is(row->name, "seed"))) return true;
    for (size_t i = 0; i < (runs ? 2 : 4); i++)
        if (pli_is(row->group, foreign[i])) return false;
    return true;
}

/* Is an option given that the other word has? */
static bool is_foreign(const pli_opts *opts, bool runs) {
    const char *word = runs ? "run" : "place";
    for (const pli_opt *row = rows; row->name != NULL; row++) {
        if (takes(word, row) || !pli_opts_is_given(opts, row->name)) continue;
        pli_cli_usage("graph %s: --%s belongs to 'plait graph %s'", word, row->name, runs ? "place" : "run");
        return true;
    }
    return false;
}

static int place_word(pli_place_settings *set) {
    plait_error err = { .rank = -1 };
    if (!check(set)) return PLI_EXIT_USAGE;
    return place(set, &err) < 0 ? pli_cli_fail(&err) : pli_cli_end(PLI_EXIT_DONE);
}

/* Is the option one of some programs alone, and of this one? */
static bool takes_own(const pli_vertex_named *named, const char *option) {
    const size_t most = sizeof named->takes / sizeof *named->takes;
    for (size_t i = 0; i < most && named->takes[i] != NULL; i++)
        if (pli_is(named->takes[i], option)) return true;
    return false;
}

/* Adds whose the option is, "pagerank's or beliefs'", and returns how many there are; 0: it is no one's alone. */
static int32_t list_users(const char *option, pli_text *text) {
    int32_t                 n, found = 0;
    const pli_vertex_named *is = pli_vertex_all(&n);
    for (int32_t i = 0; i < n; i++) {
        if (!takes_own(&is[i], option)) continue;
        const bool plural = is[i].name[strlen(is[i].name) - 1] == 's';
        pli_text_add(text, "%s%s'%s", found++ > 0 ? " or " : "", is[i].name, plural ? "" : "s");
    }
    return found;
}

/* Is an option given of which the program has no use? */
static bool is_in_vain(const pli_opts *opts, const char *program) {
    const pli_vertex_named *named = pli_vertex_find(program, NULL);
    if (named == NULL) return false;
    for (const pli_opt *row = rows; row->name != NULL; row++) {
        pli_text users = { 0 };
        if (!pli_opts_is_given(opts, row->name)) continue;
        const bool vain = !takes_own(named, row->name) && list_users(row->name, &users) > 0;
        if (vain) pli_cli_usage("graph run: %s has no use for --%s: it is %s", program, row->name, users.data);
        pli_text_free(&users);
        if (vain) return true;
    }
    if (named->at_once && pli_opts_is_given(opts, "supersteps")) {
        pli_cli_usage("graph run: %s has no use for --supersteps: it takes one", program);
        return true;
    }
    if (named->in_rounds && pli_opts_is_given(opts, "supersteps")) {
        pli_cli_usage("graph run: %s has no use for --supersteps: what it has found before its end are no components",
                      program);
        return true;
    }
    return false;
}

static int run_word(graph_settings *set, const pli_opts *opts) {
    if (is_in_vain(opts, set->run.program)) return PLI_EXIT_USAGE;
    if (set->run.files.n > 1)
        return pli_cli_usage("graph run: --data is given %" PRId64 " times, and a graph is one file: put the edges "
                             "into one, as in 'cat A B >C'", set->run.files.n);
    set->run.data = set->run.files.n == 1 ? set->run.files.item[0] : NULL;
    set->run.cluster = set->place.cluster;
    set->run.out = set->place.out;
    set->run.seed = set->place.seed;
    set->run.opts = opts;
    set->run.json = set->place.json;
    return pli_graph_run_program(&set->run);
}

static int graph(int argc, char *const *argv) {
    graph_settings set = { .run = { .argc = argc, .argv = argv } };
    pli_opts      *opts = NULL;
    pli_text_list  given = { 0 };
    int            code = PLI_EXIT_USAGE;
    if (!pli_cli_read(&pli_command_graph, argc, argv, &set, &given, &opts, &code)) return code;
    const bool runs = given.n > 0 && pli_is(given.item[0], "run");
    if (given.n > 0 && pli_vertex_find(given.item[0], NULL) != NULL) {
        pli_cli_usage("graph: '%s' is a vertex program: say 'plait graph run %s --data EDGES'", given.item[0],
                      given.item[0]);
    } else if (given.n > 0 && !runs && !pli_is(given.item[0], words[0])) {
        pli_cli_unknown("word after graph:", given.item[0], words, 2);
    } else if (runs && given.n > 2) {
        pli_cli_usage("graph run: '%s' is one word too many; the file of the edges is named by --data", given.item[2]);
    } else if (given.n != 2) {
        pli_cli_usage(runs ? "graph run: say one program, as in 'plait graph run pagerank --data EDGES'; 'plait help "
                             "graph' lists them"
                           : "graph: say 'plait graph run PROGRAM --data EDGES' or 'plait graph place FILE --ranks N'");
    } else if (!is_foreign(opts, runs)) {
        set.place.file = set.run.program = given.item[1];
        code = runs ? run_word(&set, opts) : place_word(&set.place);
    }
    pli_opts_free(&opts);
    return code;
}

const pli_command pli_command_graph = {
    .name = "graph",
    .usage = "graph place FILE --ranks N|--cluster FILE [options] | graph run PROGRAM --data EDGES [options]",
    .summary = "place a graph's nodes on ranks; run a vertex program",
    .details =
        "graph run: PROGRAM is pagerank, components, strong, bfs, sssp, triangles, clustering, kcore, coloring, "
        "labels, gcn, beliefs or als; 'plait help pagerank' says what its values are. Each vertex's value goes to "
        "standard output or --out, a line each, by increasing id. A vertex's value is a row of a parameter table, so "
        "--topology, --consistency, --transport and --events are as with train. docs/vertex.md has more.\n\n"
        "graph place: FILE is a graph in Plait's JSON form, or an ONNX model. Nothing is computed: each placement is "
        "judged by the simulated time of a step, forward and backward, and the best one is printed: the step's time, "
        "the time of one rank alone, what each rank has to do and to hold, and the rank of every node.\n\n"
        "A file's key \"place\" has places and rules: nodes that have a place keep it. --place FILE reads them "
        "from another file. --memory, --forbid, --together and --apart add rules. --out writes the graph with "
        "the place of every node. A rank has one device, cpu:0; any other is refused.\n\n"
        "Exit code 2: no placement keeps the rules, or fits into the ranks' memory; the message has the bytes "
        "that are needed. docs/placement.md has more.",
    .rows = rows,
    .words = words,
    .more = more,
    .takes = takes,
    .before_names = "run",
    .names = pli_vertex_names,
    .run = graph,
};
