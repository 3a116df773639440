/* The options of train in one table, from which flags, help, man page, completion, PLAIT_* variables, the config file
 * and the run's record follow. */
#include "cli/settings.h"

#include "cli/chosen.h"
#include "comm/launcher.h"
#include "data/data.h"
#include "table/pairs/pairs.h"

#include "cli/paths.h"
#include "cli/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define AT(field) offsetof(pli_train_settings, field)
#define MANY      INFINITY
#define RANKS_MAX 65536 /* the limit of comm */

const pli_opt pli_train_rows[] = {
    { "model", PLI_OPT_CHOICE, AT(model), "logistic", "NAME", "the model to fit; 'plait help NAME' describes it", 0, 0,
      "model" },
    { "l1", PLI_OPT_F64, AT(l1), "0", "X", "weight of the penalty |w|; the intercept is never penalised", 0, INFINITY,
      "model" },
    { "l2", PLI_OPT_F64, AT(l2), NULL, "X", "weight of the penalty |w|^2 / 2; default 1/rows, gbdt: 1; 0 turns it off",
      0, INFINITY, "model" },
    { "path", PLI_OPT_I64, AT(path), "0", "N",
      "squared and logistic, with optimizer cd: fit N penalties, from the least --l1 at which all weights are 0 down "
      "to --l1, or to a thousandth of it; the model is the last, or that of the least validation loss",
      0, 100000, "model" },
    { "together", PLI_OPT_I64, AT(together), "0", "N",
      "squared and logistic, with optimizer cd: how many weights move together in a step, as a schedule chooses them; "
      "0: 8 with several workers, else passes over all", 0, 4096, "model" },
    { "order", PLI_OPT_CHOICE, AT(order), "priority", "priority|random|round-robin",
      "in which order the schedule takes weights", 0, 0, "model" },
    { "interference", PLI_OPT_F64, AT(interference), "0.5", "X",
      "the most that weights of a step may interfere: the sum of |correlation| of their columns", 0, INFINITY,
      "model" },
    { "no-intercept", PLI_OPT_FLAG, AT(no_intercept), NULL, NULL, "fit no intercept", 0, 0, "model" },
    { "quantile", PLI_OPT_F64, AT(quantile), NULL, "X",
      "which quantile the quantile loss predicts, above 0 and below 1; default 0.5, the median", 1e-300, 0.999999999999,
      "model" },
    { "huber-delta", PLI_OPT_F64, AT(huber_delta), NULL, "X",
      "residual above which the huber loss is linear; default 1", 1e-300, INFINITY, "model" },
    { "class-weight", PLI_OPT_TEXT, AT(class_weight), NULL, "balanced|K:X,...",
      "a weight for each class, or balanced: inverse to the class's size; default 1 each", 0, 0, "model" },
    { "normalize", PLI_OPT_CHOICE, AT(normalize), "auto", "auto|none",
      "auto: scale features for the fit; the saved model takes unscaled data", 0, 0, "model" },
    { "init-model", PLI_OPT_TEXT, AT(init_model), NULL, "FILE", "start from this saved model", 0, 0, "model" },
    { "layers", PLI_OPT_TEXT, AT(layers), NULL, "N,...",
      "hidden layer sizes of a net, input side first; default 128; cnn: 32,64,128; with --init-model: that model's", 0,
      0, "model" },
    { "graph", PLI_OPT_TEXT, AT(graph), NULL, "FILE",
      "fit the net in this JSON or ONNX file, which computes scores from a placeholder x", 0, 0, "model" },
    { "exclude", PLI_OPT_TEXT, AT(exclude), NULL, "NAMES",
      "subgraphs of --graph that training leaves out; their variables keep their values", 0, 0, "model" },
    { "train", PLI_OPT_TEXT, AT(train), NULL, "NAMES",
      "train only the variables of these subgraphs of --graph; all others keep their values", 0, 0, "model" },
    { "loss", PLI_OPT_CHOICE, AT(loss), NULL,
      "logistic|hinge|squared|huber|quantile|poisson|ndcg|pairwise|implicit|bpr",
      "the loss of a net or of trees; default logistic, or squared if the labels are numbers; poisson: trees only; "
      "hinge: nets only; of mf: squared (default), implicit or bpr",
      0, 0, "model" },
    { "kernels", PLI_OPT_CHOICE, AT(kernels), "own", "own|onednn",
      "kernels that train a net: Plait's own, or oneDNN's for convolutions (an optional module)", 0, 0, "model" },
    { "cut", PLI_OPT_I64, AT(cut), "1", "K",
      "of a net: cut its graph by layers in K stages, each on a rank; workers / K replicas train together", 1,
      RANKS_MAX, "model" },
    { "place", PLI_OPT_TEXT, AT(place), NULL, "auto|layers|FILE",
      "with --cut: which stage has which node; auto: by simulated time; FILE has places; default: the places that "
      "--graph keeps, else layers",
      0, 0, "model" },
    { "columns", PLI_OPT_TEXT, AT(columns_text), "1", "N|auto",
      "of an mlp: cut its layers in N columns, each on a rank; workers / N replicas train together; not with --cut; "
      "auto: the number whose clock is shortest when simulated on --cluster", 0, 0, "model" },
    { "classes", PLI_OPT_I64, AT(classes), "0", "N",
      "of a net, logistic or hinge: labels are whole numbers from 0 to N - 1, whether rows have all of them or not; 0: "
      "the labels that rows have",
      0, PLI_LABELS_DECLARED, "model" },
    { "sampled", PLI_OPT_I64, AT(sampled), "0", "K",
      "of a net's softmax: rows are trained on their own classes and on K that each clock draws by frequency; 0: on "
      "all classes",
      0, PLI_LABELS_DECLARED, "model" },
    { "micro-batches", PLI_OPT_I64, AT(micro_batches), "1", "M",
      "of a net: the rows of a clock go through the graph in M pieces: with --cut, stages work at once; without, a "
      "worker needs less memory",
      1, 4096, "model" },
    { "pipeline", PLI_OPT_CHOICE, AT(pipeline), NULL, "1f1b|gpipe|interleaved",
      "with --cut: the order of the micro-batches; default 1f1b; interleaved: two stages a rank", 0, 0, "model" },

    { "data", PLI_OPT_LIST, AT(in.data), NULL, "D",
      "training data: file, directory, quoted pattern, or - for standard input", 0, 0, "data" },
    { "test", PLI_OPT_TEXT, AT(test), NULL, "D", "test data; the finished model is measured on it", 0, 0, "data" },
    { "validation", PLI_OPT_TEXT, AT(validation), NULL, "X",
      "validation data: a file, or the fraction of the data to hold back (0.1)", 0, 0, "data" },
    { "format", PLI_OPT_CHOICE, AT(in.format), "auto", "auto|libsvm|csv|tsv|idx|text|vw|ratings|npy",
      "format of the data; auto looks at the content", 0, 0, "data" },
    { "index-base", PLI_OPT_CHOICE, AT(in.index_base), "auto", "auto|0|1", "number of the first feature in libsvm data",
      0, 0, "data" },
    { "header", PLI_OPT_CHOICE, AT(in.header), "auto", "auto|yes|no", "does csv or tsv data begin with column names?",
      0, 0, "data" },
    { "delimiter", PLI_OPT_TEXT, AT(in.delimiter), NULL, "C",
      "what separates the cells of csv data: a character, or tab, space, comma, semicolon, pipe; default: the one that "
      "gives every line the same number of cells",
      0, 0, "data" },
    { "label", PLI_OPT_TEXT, AT(in.label), NULL, "COLUMN|FILE|none",
      "column of the label, by name or by number from 1; default: the column named label, target, class or y, else the "
      "first; with idx and npy data: the file of labels; none: rows have no label",
      0, 0, "data" },
    { "weight-column", PLI_OPT_TEXT, AT(in.weight_column), NULL, "C", "column that holds the weight of each row", 0, 0,
      "data" },
    { "text-columns", PLI_OPT_TEXT, AT(in.text_columns), NULL, "A,B",
      "columns of csv or tsv data to read as text, even if the cells look like numbers", 0, 0, "data" },
    { "window", PLI_OPT_I64, AT(in.window), NULL, "N",
      "for text: how many characters one row holds; default 16; lstm: 128", 1, 1024, "data" },
    { "hash-bits", PLI_OPT_I64, AT(in.hash_bits), NULL, "N", "hash the features into 2^N; vw: default 18", 1, 31,
      "data" },
    { "names", PLI_OPT_BYTES, AT(names), "16M", "BYTES",
      "of hashed features: how much of the data is looked through for their names when training has ended; 0: none "
      "of it, so they stay hashes", 0, 0, "data" },
    { "interactions", PLI_OPT_TEXT, AT(in.interactions), NULL, "AB,BCD",
      "vw: products of features of two or three namespaces, by first letters; :: all pairs", 0, 0, "data" },
    { "ngram", PLI_OPT_TEXT, AT(in.ngram), NULL, "N|A2,B3",
      "vw: n-grams of up to N features that follow one another, of all namespaces or by first letters", 0, 0, "data" },
    { "spill-limit", PLI_OPT_BYTES, AT(in.spill_limit), "0", "BYTES",
      "largest total size of temporary files of unpacked or received data, for each data set in each process (K, M, G, "
      "T); 0: half of the free space",
      0, 0, "data" },
    { "blocks", PLI_OPT_I64, AT(in.blocks), NULL, "P",
      "blocks into which the data are cut; which rows form a clock depends on it, and never on the workers; default 64 "
      "up to 512 MiB, then twice as many for twice the data; with more workers than blocks some have no rows",
      PLI_MIN_BLOCKS, PLI_MAX_BLOCKS, "data" },
    { "cache", PLI_OPT_FLAG, AT(in.cache), NULL, NULL,
      "keep a binary cache beside the data file; later runs read it instead", 0, 0, "data" },

    { "optimizer", PLI_OPT_CHOICE, AT(optimizer), "auto",
      "auto|sgd|momentum|adagrad|adam|ftrl|lbfgs|newton|cd|als|online",
      "update rule, or solver; auto: the one that suits the model, the data and the "
      "consistency", 0, 0, "optimizer" },
    { "optimizer-state", PLI_OPT_CHOICE, AT(optimizer_state), "whole", "whole|sharded",
      "how much of the update rule's state a worker holds: all of it, or its own part (allreduce, bsp, dense weights)",
      0, 0, "optimizer" },
    { "epochs", PLI_OPT_I64, AT(epochs), NULL, "N",
      "passes over the data; with 1 the data are streamed; default: until it converges (lbfgs, newton, cd); update "
      "rules: as many as make 2400 clocks, from 5 to 100; nets: 10; gbdt: 100 rounds",
      1, MANY, "optimizer" },
    { "batch", PLI_OPT_I64, AT(batch), NULL, "N",
      "rows in one clock, of all workers together; default a 64th of the rows, from 16 to 1024; nets: from 16 to 128; "
      "lstm: 16",
      1, MANY, "optimizer" },
    { "learning-rate", PLI_OPT_F64, AT(learning_rate), NULL, "X",
      "step size; default 1 for sgd, adagrad and ftrl, 0.1 for momentum, 0.05 for adam, gbdt: 0.1; mf: found by "
      "trying; other losses than logistic, and nets: see docs/models.md",
      1e-300, INFINITY, "optimizer" },
    { "tolerance", PLI_OPT_F64, AT(tolerance), NULL, "X",
      "for solvers that converge: end within this share of the least objective; default 1e-4; kmeans: end when a pass "
      "lowers the inertia by no more than this share; default 1e-5",
      0, 0.999999999, "optimizer" },
    { "momentum", PLI_OPT_F64, AT(momentum), NULL, "X",
      "for optimizer momentum: the share of the last step that is kept; default 0.9", 0, 0.999999999, "optimizer" },
    { "schedule", PLI_OPT_CHOICE, AT(schedule), NULL, "constant|invsqrt|cosine",
      "how the step size of an update rule falls; default cosine; a single pass, and ftrl: "
      "constant", 0, 0, "optimizer" },
    { "staleness-aware", PLI_OPT_FLAG, AT(staleness_aware), NULL, NULL,
      "divide the step of each push by its staleness; not with bsp, essp", 0, 0, "optimizer" },
    { "patience", PLI_OPT_I64, AT(patience), "0", "N", "stop after N epochs without a better validation loss; 0: never",
      0, MANY, "optimizer" },
    { "seed", PLI_OPT_I64, AT(seed), "0", "N", "seed of all random numbers", 0, INFINITY, "optimizer" },

    { "workers", PLI_OPT_TEXT, AT(workers_text), NULL, "N|MIN:MAX",
      "workers of the whole job; default 1; under a launcher: its processes; MIN:MAX, with --replicas 2 under ps x "
      "bsp: MIN are in at first, and up to MAX as --scale says", 0, 0, "distribution" },
    { "scale", PLI_OPT_TEXT, AT(scale), NULL, "CLOCK:N,...",
      "with --workers MIN:MAX: from about clock CLOCK on N workers are in, such as 100:4,200:3; the model is that of "
      "a fixed number, with --reduce exact to the bit", 0, 0, "distribution" },
    { "move-rate", PLI_OPT_BYTES, AT(move_rate), "0", "BYTES",
      "with --workers MIN:MAX: parts of tables move to workers that come, and from those that go; a rank sends at most "
      "so many bytes of them a second (K, M, G, T); 0: no bound", 0, 0, "distribution" },
    { "servers", PLI_OPT_I64, AT(servers), "0", "N",
      "ranks that only hold shards; 0: the workers' ranks hold the shards", 0, RANKS_MAX, "distribution" },
    { "threads", PLI_OPT_I64, AT(in.threads), NULL, "N",
      "compute threads of one worker; default: cores of the host / its ranks", 1, 4096, "distribution" },
    { "transport", PLI_OPT_CHOICE, AT(transport), NULL, "threads|mpi|sim",
      "what carries the bytes; default: mpi under an MPI launcher, else threads", 0, 0, "distribution" },
    { "topology", PLI_OPT_TEXT, AT(topology), NULL, "local|allreduce|ps|hybrid|gossip:G|auto",
      "how updates travel; default local; ps if ranks are processes; G is ring, torus or exp; auto: what reaches a "
      "loss first in simulations on --cluster", 0, 0, "distribution" },
    { "consistency", PLI_OPT_TEXT, AT(consistency), PLI_CONSISTENCY_DEFAULT, "C",
      "what a read may miss: bsp, ssp:S, essp:S, asp:S:W, bounded-delay:T, sequential, vap:V, downpour:F:P, "
      "local-sgd:H or async; auto: what reaches a loss first in simulations on --cluster",
      0, 0, "distribution" },
    { "backup", PLI_OPT_I64, AT(backup), "0", "N",
      "under bsp: N backup workers: a clock does not wait for its N slowest workers, and drops their late updates", 0,
      RANKS_MAX, "distribution" },
    { "table", PLI_OPT_LIST, AT(table), NULL, "NAME:topology=T,consistency=C,filter=F",
      "one or more of these settings for a single table of the model; may be given several times; 'plait help MODEL' "
      "lists the tables",
      0, 0, "distribution" },
    { "reduce", PLI_OPT_CHOICE, AT(reduce), "plain", "plain|exact",
      "exact: under bsp, the same bits with any topology, any transport and any number of workers", 0, 0,
      "distribution" },
    { "balance", PLI_OPT_CHOICE, AT(balance), "static", "static|dynamic",
      "static: a worker keeps its blocks of rows; dynamic: blocks move to faster workers, with --cut layers to faster "
      "stages", 0, 0, "distribution" },
    { "replicas", PLI_OPT_I64, AT(replicas), "1", "K",
      "2: the run continues when a rank dies; 3: also when two die at once; under ps there are so many replicas of "
      "each shard, under allreduce each worker has all tables anyhow",
      1, RANKS_MAX, "distribution" },
    { "spares", PLI_OPT_I64, AT(spares), "0", "N",
      "with --replicas 2 or 3: the last N workers are spares: they have no rows and no shards until another worker "
      "dies, whose place they take; not with async",
      0, RANKS_MAX, "distribution" },
    { "collective", PLI_OPT_CHOICE, AT(collective), "auto",
      "auto|ring|tree|recursive|rabenseifner|hierarchical|messages",
      "algorithm of the workers' sums; auto: the transport's own, or one that suits size, workers and hosts", 0, 0,
      "distribution" },
    { "aggregate", PLI_OPT_CHOICE, AT(aggregate), NULL, "host",
      "the workers of a host add up their updates before any message leaves the host; with allreduce, and with ps "
      "under bsp",
      0, 0, "distribution" },
    { "filter", PLI_OPT_TEXT, AT(filter), NULL, "A,B",
      "filters that make messages between workers and servers smaller, in this order: key-cache, key-delta, fixed8, "
      "fixed16, fp16, bf16, topk:F, randk:F, onebit, significant:X, kkt, zstd; see 'plait help filters'",
      0, 0, "distribution" },
    { "cluster", PLI_OPT_TEXT, AT(cluster), NULL, "FILE",
      "the cluster that --transport sim simulates, and on which auto tries the pairs; default of sim: equal hosts on "
      "one switch", 0, 0, "distribution" },
    { "join", PLI_OPT_LATER, 0, NULL, "URL", PLI_LATER, 0, 0, "distribution"},

    { "out", PLI_OPT_TEXT, AT(out), NULL, "FILE", "write the model to FILE, then FILE.done", 0, 0, "run" },
    { "json", PLI_OPT_FLAG, AT(json), NULL, NULL, "print the run's record as one JSON object", 0, 0, "run" },
    { "metrics", PLI_OPT_TEXT, AT(metrics), NULL, "FILE", "write the run's events to FILE, one JSON object a line", 0,
      0, "run" },
    { "curve", PLI_OPT_I64, AT(curve), "0", "N",
      "with --metrics: also write the objective at N moments of the run; it is measured after the run", 0, 4096,
      "run" },
    { "events", PLI_OPT_TEXT, AT(events), NULL, "FILE",
      "write an event log for 'plait audit' (FILE.RANK if ranks are processes)", 0, 0, "run" },
    { "trace", PLI_OPT_TEXT, AT(trace), NULL, "FILE",
      "write a trace: where every rank's time went; for chrome://tracing and ui.perfetto.dev", 0, 0, "run" },
    { "tensorboard", PLI_OPT_TEXT, AT(tensorboard), NULL, "DIR",
      "write an event file for TensorBoard: scalars, histograms, a net's graph", 0, 0, "run" },
    { "dashboard", PLI_OPT_I64, AT(dashboard), NULL, "PORT",
      "show the run on a page of this machine, with figures for Prometheus; 0: any free port; the address is printed",
      0, 65535, "run" },
    { "config", PLI_OPT_TEXT, AT(config), NULL, "FILE", "read options from a YAML file, by the same names", 0, 0,
      "run" },
    { "timeout", PLI_OPT_DURATION, AT(timeout_ns), "300s", "S", "longest wait for another rank", 0, 0, "run" },
    { "heartbeat", PLI_OPT_DURATION, AT(heartbeat_ns), "5s", "S",
      "a process counts as lost after S seconds without a sign of life; 0: never", 0, 0, "run" },
    { "dry-run", PLI_OPT_FLAG, AT(dry_run), NULL, NULL, "check options, files and memory on every rank, then stop", 0,
      0, "run" },
    { "quiet", PLI_OPT_FLAG, AT(quiet), NULL, NULL, "print only errors and the result", 0, 0, "run" },
    { "checkpoint", PLI_OPT_TEXT, AT(checkpoint), NULL, "DIR",
      "write checkpoints to DIR while training, and a last one when interrupted; all workers must see DIR", 0, 0,
      "run" },
    { "checkpoint-every", PLI_OPT_TEXT, AT(checkpoint_every), "300s", "30s|500",
      "time between two checkpoints (30s), or clocks between them (500)", 0, 0, "run" },
    { "resume", PLI_OPT_TEXT, AT(resume), NULL, "DIR",
      "continue from the newest good checkpoint in DIR, with any number of workers; if DIR holds none and --checkpoint "
      "names it too, start a new run",
      0, 0, "run" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

/* Checks, before any file is opened, options that exclude each other. The ranks check the other settings. */
static bool go_together(const pli_train_settings *s) {
    plait_error     err = { .rank = -1 };
    const pli_above above = { .checkpoint = s->checkpoint != NULL, .resume = s->resume != NULL };
    if (pli_job_check(&(pli_pair){ .logged = s->events != NULL, .above = &above }, &err) >= 0) return true;
    pli_cli_usage("train: %s", err.text);
    return false;
}

/* Only train itself chooses: other commands compare pairs, and each of their runs has one. plan has no rows of
 * columns. */
static bool may_choose(const pli_command *command, const pli_train_settings *s) {
    const char *option = pli_chosen_option(s);
    if (pli_is(command->name, "train")) return true;
    pli_cli_usage("%s: --%s auto is refused: only 'plait train' chooses; name %s", command->name, option,
                  pli_is(option, "columns") ? "their number"
                                            : "what to use ('plait plan' shows what each would take)");
    return false;
}

/* Checks words, before the run's plan is made; also finds other tools' words for options without a list of choices. */
static bool check_words(const pli_command *command, const pli_train_settings *s) {
    const char *hint = pli_words_value("topology", s->topology),
               *other = pli_words_value("consistency", s->consistency);
    if (hint != NULL || other != NULL) {
        pli_cli_usage("train: --%s %s: %s", hint != NULL ? "topology" : "consistency",
                      hint != NULL ? s->topology : s->consistency, hint != NULL ? hint : other);
    } else if (pli_chosen_is_wanted(s) && !may_choose(command, s)) {
        return false;
    } else if (s->cluster != NULL && !pli_is(s->transport, "sim") && !pli_chosen_is_wanted(s)) {
        int64_t n;
        pli_cli_usage("train: --cluster describes a simulated cluster; it goes with --transport sim, and with "
                      "--topology auto%s",
                      pli_parse_i64(s->cluster, &n) ? "; the number of clusters is --clusters" : "");
    } else if (s->timeout_ns == 0) {
        pli_cli_usage("train: --timeout 0: expected the longest wait for a peer, above 0, such as 30s");
    } else if (s->heartbeat_ns > 0 && s->heartbeat_ns < 500000000) {
        pli_cli_usage("train: --heartbeat: expected 0 (never), or at least 0.5s");
    } else {
        return go_together(s);
    }
    return false;
}

/* Reads N or MIN:MAX. */
static bool read_workers(pli_train_settings *s) {
    const char *text = s->workers_text, *colon = text != NULL ? strchr(text, ':') : NULL;
    char       *least = colon != NULL ? pli_format("%.*s", (int)(colon - text), text) : NULL;
    bool        well = text == NULL || (pli_parse_i64(colon != NULL ? colon + 1 : text, &s->workers) &&
                                 s->workers >= 1 && s->workers <= RANKS_MAX);
    if (text == NULL) s->workers = 0;
    s->least = s->workers;
    if (colon != NULL)
        well = well && least != NULL && pli_parse_i64(least, &s->least) && s->least >= 1 && s->least <= s->workers;
    pli_free(least);
    if (!well)
        pli_cli_usage("option --workers: '%s' is not a number from 1 to %d, nor MIN:MAX with MIN <= MAX, as 2:4", text,
                      RANKS_MAX);
    else if (colon != NULL && (s->transport != NULL ? pli_is(s->transport, "mpi") : pli_launcher_find().name != NULL))
        pli_cli_usage("--workers %s over processes is refused: a worker that is away would be a process that is "
                      "started all the same; nearest is --transport threads or sim", text);
    else return true;
    return false;
}

static bool check_moves(const pli_train_settings *s) {
    if (s->move_rate == 0 || (s->workers > s->least && s->servers == 0)) return true;
    if (s->servers > 0)
        pli_cli_usage("--move-rate with --servers is refused: they keep all shards; nearest is to leave one of the "
                      "two out");
    else
        pli_cli_usage("--move-rate without --workers MIN:MAX is refused: nobody comes or goes, and so no shard moves; "
                      "nearest is --workers 2:4");
    return false;
}

/* Reads N or auto, for which 1 stands until there is a choice. */
static bool read_columns(pli_train_settings *s) {
    s->columns = 1;
    if (s->columns_text == NULL || pli_is(s->columns_text, "auto") ||
        (pli_parse_i64(s->columns_text, &s->columns) && s->columns >= 1 && s->columns <= RANKS_MAX))
        return true;
    pli_cli_usage("option --columns: '%s' is not a number from 1 to %d, nor auto", s->columns_text, RANKS_MAX);
    return false;
}

bool pli_train_settings_read(const pli_command *command, int argc, char *const *argv, pli_train_settings *settings,
                             pli_opts **opts_out, int *code_out) {
    if (!pli_cli_read(command, argc, argv, settings, NULL, opts_out, code_out)) return false;
    if (read_workers(settings) && check_moves(settings) && read_columns(settings) && check_words(command, settings) &&
        pli_own_options_check(settings, *opts_out))
        return true;
    pli_opts_free(opts_out);
    *code_out = PLI_EXIT_USAGE;
    return false;
}

const char *pli_input_label_file(const pli_input *in) { return pli_label_is_none(in->label) ? NULL : in->label; }

void pli_input_opts(const pli_input *in, const plait_log *log, plait_data_opts *opts) {
    plait_data_opts_init(opts);
    opts->paths = in->data.item;
    opts->n_paths = in->data.n;
    if (in->format != NULL) opts->format = in->format;
    if (in->index_base != NULL) opts->index_base = in->index_base;
    if (in->header != NULL) opts->header = in->header;
    opts->label = in->label;
    opts->weight_column = in->weight_column;
    opts->text_columns = in->text_columns;
    opts->delimiter = in->delimiter;
    opts->interactions = in->interactions;
    opts->ngram = in->ngram;
    opts->hash_bits = (int32_t)in->hash_bits;
    opts->window = (int32_t)in->window;
    opts->cache = in->cache;
    opts->spill_limit = in->spill_limit;
    opts->blocks = (int32_t)in->blocks;
    if (in->threads > 0) opts->threads = (int32_t)in->threads;
    opts->log = log;
}

/* The collective: with sums inside a host, if ranks do not all share memory, the one that knows hosts. */
static const char *collective_of(const pli_train_settings *s) {
    bool one_process = s->transport != NULL ? pli_is(s->transport, "threads") : pli_launcher_find().name == NULL;
    return s->aggregate != NULL && !one_process && pli_is(s->collective, "auto") ? "hierarchical" : s->collective;
}

static void plan_comm(const pli_train_settings *s, const plait_log *log, plait_comm_opts *comm) {
    plait_comm_opts_init(comm);
    comm->transport = s->transport;
    comm->workers = (int32_t)s->workers;
    comm->servers = (int32_t)s->servers;
    comm->threads = (int32_t)s->in.threads;
    comm->timeout_ns = s->timeout_ns;
    comm->heartbeat_ns = s->heartbeat_ns == 0 ? UINT64_MAX : s->heartbeat_ns;
    comm->log = log;
    comm->cluster = s->cluster;
    comm->collective = collective_of(s);
    comm->seed = (uint64_t)s->seed;
}

/* Reads "30s", or "500": a plain number counts clocks. */
static bool read_every(const char *text, double *seconds, int64_t *clocks) {
    uint64_t duration_ns = 0;
    *clocks = 0;
    if (text[0] != '\0' && strspn(text, "0123456789") == strlen(text)) {
        if (pli_parse_i64(text, clocks) && *clocks > 0) return true;
    } else if (pli_parse_duration(text, &duration_ns) && duration_ns > 0) {
        *seconds = (double)duration_ns * 1e-9;
        return true;
    }
    pli_cli_usage("train: --checkpoint-every %s: expected a time, such as 30s, or a number of clocks, such as 500",
                  text);
    return false;
}

static bool plan_checkpoints(const pli_train_settings *s, plait_train_opts *t) {
    t->checkpoint = s->checkpoint;
    t->resume = s->resume;
    t->resume_or_begin = pli_paths_same_directory(s->checkpoint, s->resume);
    return read_every(s->checkpoint_every, &t->checkpoint_seconds, &t->checkpoint_clocks);
}

static void plan_train(const pli_train_settings *s, const pli_opts *opts, plait_train_opts *t) {
    plait_train_opts_init(t);
    t->model = pli_train_model(s, opts);
    t->layers = s->layers;
    t->graph_file = s->graph;
    t->exclude = s->exclude;
    t->train = s->train;
    t->loss = s->loss;
    t->kernels = s->kernels;
    t->cut = (int32_t)s->cut;
    t->columns = (int32_t)s->columns;
    t->classes = s->classes;
    t->sampled = s->sampled;
    t->micro_batches = (int32_t)s->micro_batches;
    t->pipeline = s->pipeline;
    t->place = s->place;
    t->validation = s->validation;
    t->topology = s->topology;
    t->consistency = s->consistency;
    t->filter = s->filter;
    t->aggregate = s->aggregate;
    t->optimizer = s->optimizer;
    t->optimizer_state = s->optimizer_state;
    t->epochs = s->epochs;
    t->batch = s->batch;
    t->learning_rate = s->learning_rate;
    if (pli_opts_is_given(opts, "momentum")) t->momentum = s->momentum;
    if (pli_opts_is_given(opts, "tolerance")) t->tolerance = s->tolerance;
    if (s->schedule != NULL) t->schedule = s->schedule;
    t->l1 = s->l1;
    t->path = s->path;
    t->together = s->together;
    t->order = s->order;
    t->interference = s->interference;
    t->l2 = pli_opts_is_given(opts, "l2") ? s->l2 : (double)NAN;
    t->no_intercept = s->no_intercept;
    if (pli_opts_is_given(opts, "huber-delta")) t->huber_delta = s->huber_delta;
    if (pli_opts_is_given(opts, "quantile")) t->quantile = s->quantile;
    t->names_bytes = s->out != NULL ? s->names : 0;
    t->class_weight = s->class_weight;
    t->normalize = s->normalize;
    t->patience = s->patience;
    t->backup = (int32_t)s->backup;
    t->replicas = (int32_t)s->replicas;
    t->spares = (int32_t)s->spares;
    t->slots = (int32_t)(s->workers - s->least);
    t->scale = s->scale;
    t->move_rate = s->move_rate;
    t->staleness_aware = s->staleness_aware;
    t->exact = pli_is(s->reduce, "exact");
    t->curve = s->metrics != NULL ? s->curve : 0;
    t->seed = (uint64_t)s->seed;
    t->balance = s->balance;
    t->init_model = s->init_model;
    t->dry_run = s->dry_run;
}

/* Checks that outputs and inputs are different files. --out may be --init-model: the model is read before it is
 * written.
 */
static bool check_apart(const pli_train_settings *s) {
    char          *done = s->out != NULL ? pli_format("%s.done", s->out) : NULL;
    const pli_path written[] = { { "--metrics", s->metrics, false },
                                 { "--events", s->events, true },
                                 { "--trace", s->trace, true },
                                 { "--out", s->out, false },
                                 { "--out (FILE.done)", done, false } };
    const pli_path model = { "--init-model", s->init_model, false };
    const pli_path read[] = { { "--test", s->test, false },     { "--validation", s->validation, false },
                              { "--label", pli_input_label_file(&s->in), false }, { "--config", s->config, false },
                              { "--cluster", s->cluster, false },
                              { "--graph", s->graph, false } };
    bool apart = pli_paths_apart("train", written, 5, read, sizeof read / sizeof *read, &s->in.data) &&
                 pli_paths_apart("train", written, 3, &model, 1, &(pli_text_list){ 0 });
    pli_free(done);
    return apart;
}

/* Standard input can be read once. */
static bool check_inputs(const pli_train_settings *s) {
    const char *const other = pli_is(s->test, "-") ? "--test" : pli_is(s->validation, "-") ? "--validation" : NULL;
    bool              twice = pli_is(s->test, "-") && pli_is(s->validation, "-");
    for (int64_t i = 0; i < s->in.data.n && other != NULL; i++) twice |= pli_is(s->in.data.item[i], "-");
    if (twice)
        pli_cli_usage("train: %s -: standard input can be read only once, and is read for %s; name a file", other,
                      pli_is(s->test, "-") && pli_is(s->validation, "-") ? "--validation" : "--data");
    return !twice;
}

/* Standard output is for the record: all other outputs need a file name. */
static bool check_files(const pli_train_settings *s) {
    if (!check_inputs(s)) return false;
    if (s->out != NULL && pli_is_fifo(s->out))
        pli_cli_usage("train: --out %s: a model is not written into a pipe; name a file", s->out);
    else if (pli_is(s->out, "-"))
        pli_cli_usage("train: --out -: a model is not written to standard output; name a file, such as --out model");
    else if (pli_is(s->metrics, "-"))
        pli_cli_usage("train: --metrics -: metrics are not written to standard output; name a file or /dev/stderr");
    else if (pli_is(s->events, "-"))
        pli_cli_usage("train: --events -: an event log is not written to standard output; name a file");
    else if (pli_is(s->trace, "-"))
        pli_cli_usage("train: --trace -: a trace is not written to standard output; name a file");
    else
        return check_apart(s);
    return false;
}

bool pli_train_plan_make(const pli_train_settings *s, const pli_opts *opts, const plait_log *log,
                         pli_train_plan *plan) {
    *plan = (pli_train_plan){ 0 };
    if (s->in.data.n == 0) {
        pli_cli_usage("train: no data; name a file with --data D");
        return false;
    }
    if (!check_files(s)) return false;
    plan_comm(s, log, &plan->comm);
    plan_train(s, opts, &plan->train);
    pli_plan_own_options(s, opts, plan);
    if (!plan_checkpoints(s, &plan->train)) return false;
    pli_input_opts(&s->in, log, &plan->data);
    plan->data.seed = (uint64_t)s->seed;
    plan->train.data = &plan->data;
    if (s->test != NULL) {
        plan->test = plan->data;
        plan->test.blocks = 0; /* no clock takes its rows */
        plan->test.paths = &s->test;
        plan->test.n_paths = 1;
        plan->train.test = &plan->test;
    }
    return pli_plan_tables(&s->table, plan);
}
