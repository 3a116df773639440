/* The words of other tools (words.h). Comparison ignores case, and takes - and _ as equal. */
#include "cli/words.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* theirs: other tools' words, separated by bars. option: our option, which the command's table must have; NULL in the
 * list of commands. */
static const struct option_word {
    const char *theirs, *option, *say;
} options[] = {
    { "|l|lr|eta|eta0|alpha-init|learning-rate-init|learningrate|step-size|stepsize|step|", "learning-rate",
      "here it is --learning-rate" },
    { "|batch-size|batchsize|minibatch|mini-batch|mini-batch-size|minibatch-size|bs|per-device-train-batch-size|",
      "batch", "here it is --batch, the rows of all workers together in one clock" },
    { "|n-epochs|num-epochs|nb-epoch|max-epochs|epoch|passes|iters|iter|iterations|n-iter|max-iter|num-iter|num-iters|"
      "num-iterations|n-iterations|num-train-epochs|rounds|num-rounds|num-round|num-boost-round|nrounds|max-steps|"
      "steps|",
      "epochs", "here it is --epochs, passes over the data" },
    { "|num-workers|n-workers|nworkers|nproc|np|n-jobs|num-proc|nproc-per-node|world-size|num-processes|n-procs|",
      "workers", "here it is --workers, of the whole job; processes are started by 'plait launch -n N'" },
    { "|num-servers|n-servers|ps|num-ps|", "servers", "here it is --servers" },
    { "|num-threads|n-threads|nthread|nthreads|jobs|cores|", "threads", "here it is --threads, of one worker" },
    { "|weight-decay|wd|reg|reg-lambda|lambda|reg-param|regularization|l2-reg|l2-regularization|alpha|ridge|penalty|",
      "l2", "here it is --l2 (and --l1)" },
    { "|c|cost|", "l2", "here it is --l2: LIBLINEAR's C is 1 / (rows * l2)" },
    { "|lasso|l1-reg|l1-regularization|reg-alpha|", "l1", "here it is --l1" },
    { "|optim|solver|algorithm|algo|opt|trainer|", "optimizer", "here it is --optimizer" },
    { "|lr-scheduler|lr-schedule|scheduler|lr-scheduler-type|decay|lr-decay|", "schedule", "here it is --schedule" },
    { "|early-stopping|early-stop|early-stopping-rounds|n-iter-no-change|early-stopping-patience|", "patience",
      "here it is --patience N, with --validation" },
    { "|valid|val|dev|eval-set|valid-data|validation-data|validation-fraction|validation-split|val-split|val-size|"
      "holdout|",
      "validation", "here it is --validation, a file or a fraction" },
    { "|test-data|testfile|test-file|eval-data|", "test", "here it is --test" },
    { "|d|train|train-data|training-data|input|in|dataset|file|data-file|train-file|x|", "data", "here it is --data" },
    { "|target|target-column|label-column|response|y|class|class-column|label-col|", "label", "here it is --label" },
    { "|sample-weight|weights|weight|weight-col|", "weight-column", "here it is --weight-column" },
    { "|sep|separator|delim|field-separator|", "delimiter", "here it is --delimiter" },
    { "|output|o|save|save-model|model-out|out-file|output-file|model-output|save-path|final-regressor|f|", "out",
      "here it is --out" },
    { "|output-dir|save-dir|ckpt|ckpt-dir|checkpoint-dir|checkpoints|save-checkpoint|", "checkpoint",
      "here it is --checkpoint DIR" },
    { "|save-steps|save-interval|checkpoint-freq|checkpoint-interval|save-every|", "checkpoint-every",
      "here it is --checkpoint-every" },
    { "|restore|resume-from|resume-from-checkpoint|load-checkpoint|continue|", "resume", "here it is --resume DIR" },
    { "|load|load-model|initial-regressor|warm-start|pretrained|init|initial-model|", "init-model",
      "here it is --init-model FILE" },
    { "|random-state|random-seed|rng|rng-seed|", "seed", "here it is --seed" },
    { "|hidden|hidden-layers|hidden-layer-sizes|hidden-units|hidden-size|hidden-sizes|units|num-layers|", "layers",
      "here it is --layers 512,256" },
    { "|standardize|scale|scaling|standardise|normalise|normalization|", "normalize", "here it is --normalize" },
    { "|fit-intercept|intercept|bias|no-bias|noconstant|", "no-intercept",
      "here an intercept is fitted unless --no-intercept says otherwise" },
    { "|objective|criterion|loss-function|loss-fn|", "model", "here it is --model (of a net --loss)" },
    { "|backend|", "transport", "here it is --transport" },
    { "|staleness|slack|sync|sync-mode|async|", "consistency", "here it is --consistency, as ssp:2 or async" },
    { "|compression|compress|gradient-compression|fp16|bf16|quantize|", "filter", "here it is --filter" },
    { "|log|log-file|logfile|history|", "metrics", "here it is --metrics" },
    { "|logdir|log-dir|tb|tensorboard-dir|", "tensorboard", "here it is --tensorboard DIR" },
    { "|profile|profiler|timeline|", "trace", "here it is --trace" },
    { "|silent|no-progress|", "quiet", "here it is --quiet" },
    { "|q|", "quiet", "here it is --quiet; Vowpal Wabbit's -q ab is --interactions ab" },
    { "|check|validate-only|dryrun|", "dry-run", "here it is --dry-run" },
    { "|gpu|gpus|n-gpus|num-gpus|use-gpu|device|devices|cuda|accelerator|", "threads",
      "this version computes on the processor alone; --threads takes more or fewer of its cores" },
    { "|verbose|v|verbosity|log-level|loglevel|debug|", "quiet",
      "here a run tells what it does unless --quiet is said; 'plait doctor PID' shows what it waits for" },
    { "|shuffle|no-shuffle|shuffle-data|", "seed",
      "here rows are always shuffled, by --seed; a single pass (--epochs 1) takes them in their own order" },
    { "|dropout|dropout-rate|drop|drop-rate|keep-prob|", "graph",
      "the built-in nets have none; a graph of --graph FILE may have dropout, and --l2 and --patience hold a net "
      "back" },
    { "|hosts|hostfile|host|machinefile|machines|nodes|nnodes|n-nodes|num-nodes|", "workers",
      "machines are named to what starts the ranks: 'plait launch -n N --hosts A,B:4 -- plait train ...'" },
    { "|quadratic|cubic|interaction|crosses|feature-crosses|", "interactions",
      "here it is --interactions ab,abc, for vw text" },
    { "|n-gram|ngrams|ngram-range|", "ngram", "here it is --ngram 2, for vw text" },
    { "|oaa|ect|log-multi|num-class|num-classes|n-classes|", "model",
      "here the labels say how many classes there are; --model logistic learns them" },
    { "|bfgs|ftrl|adaptive|invariant|normalized|sgd|adam|adagrad|", "optimizer", "here it is --optimizer" },
    { "|power-t|initial-t|decay-learning-rate|", "schedule", "here it is --schedule" },
    { "|cache-file|k|kill-cache|", "cache", "here it is --cache; a cache that is out of date is made anew" },
    { "|invert-hash|readable-model|audit-regressor|", "out",
      "here it is 'plait inspect FILE --weights', which prints the names behind hashes" },
    { "|p|predictions|raw-predictions|r|", "out", "here it is 'plait predict --model-file FILE --data D --out F'" },
    { "|t|testonly|test-only|", "test", "here it is 'plait eval', or --test D while training" },
    { "|link|", "model", "here 'plait predict --proba' gives probabilities" },
    { "|quantile-tau|tau|", "quantile", "here it is --quantile" },
    { "|bits|b|bit-precision|hash|n-features|num-features|", "hash-bits", "here it is --hash-bits" },
    { "|m|model|model-path|checkpoint|load|model-in|initial-regressor|i|", "model-file", "here it is --model-file" },
    { "|probability|probabilities|predict-proba|prob|", "proba", "here it is --proba" },
    { "|confusion|confusion-matrix|report|classification-report|metric|metrics|scoring|", "model-file",
      "there is none here: eval tells loss, accuracy and, of two classes, the area under the curve; for counts by "
      "class "
      "set the labels of 'plait predict' beside the data's" },
};

static const struct value_word {
    const char *option, *theirs, *say;
} values[] = {
    { "model", "|svm|linear-svm|svc|linearsvc|linear-svc|l2svm|max-margin|", "here it is hinge" },
    { "model",
      "|logreg|logit|lr|logisticregression|logistic-regression|softmax|maxent|multinomial|sgdclassifier|classifier|"
      "classification|log|perceptron|",
      "here it is logistic" },
    { "model",
      "|linear|linreg|linearregression|linear-regression|ols|least-squares|leastsquares|regression|ridge|lasso|"
      "elasticnet|elastic-net|sgdregressor|regressor|mse|",
      "here it is squared (with --l2, --l1)" },
    { "model", "|robust|huberregressor|", "here it is huber" },
    { "model", "|mae|median|pinball|quantileregressor|quantile-regression|lad|",
      "here it is quantile, with --quantile" },
    { "model", "|count|counts|poissonregressor|poisson-regression|glm|", "here it is poisson" },
    { "model",
      "|mlpclassifier|mlp-classifier|mlpregressor|mlp-regressor|nn|dnn|ann|net|neural|neural-network|dense|ffn|fnn|",
      "here it is mlp" },
    { "model", "|conv|convnet|conv2d|resnet|lenet|vgg|", "here it is cnn (others as a graph: --graph FILE)" },
    { "model", "|naive-bayes|naivebayes|nb|multinomialnb|gaussiannb|bernoullinb|", "here it is bayes" },
    { "model", "|rnn|gru|char-rnn|charrnn|", "here it is lstm" },
    { "model", "|onnx|torch|pytorch|keras|transformer|", "a net of your own comes by --graph FILE, in JSON or ONNX" },
    { "model",
      "|gbm|xgboost|lightgbm|boosting|gradient-boosting|tree|trees|gradientboostingclassifier|",
      "here it is gbdt" },
    { "model", "|topics|topic|latentdirichletallocation|", "here it is lda" },
    { "model", "|randomforest|random-forest|rf|randomforestclassifier|randomforestregressor|", "here it is forest" },
    { "model", "|als|matrix-factorization|bpr|libmf|", "here it is mf" },
    { "optimizer", "|l-bfgs|bfgs|owlqn|liblinear|newton-cg|tron|", "here it is lbfgs" },
    { "optimizer", "|vw|vowpal|vowpalwabbit|", "here it is online" },
    { "optimizer", "|adamw|adamax|nadam|amsgrad|", "the nearest is adam, with --l2" },
    { "optimizer", "|rmsprop|adadelta|", "the nearest is adagrad, or adam" },
    { "optimizer", "|nesterov|nag|", "the nearest is momentum" },
    { "optimizer", "|gd|gradient-descent|saga|sag|", "the nearest is sgd" },
    { "optimizer", "|ftrl-proximal|proximal|", "here it is ftrl" },
    { "loss",
      "|log|log-loss|logloss|cross-entropy|crossentropy|ce|bce|nll|softmax|binary-crossentropy|"
      "categorical-crossentropy|",
      "here it is logistic" },
    { "loss", "|mse|l2|least-squares|squared-error|squared-loss|", "here it is squared" },
    { "loss", "|svm|max-margin|", "here it is hinge" },
    { "loss", "|mae|l1|absolute|smooth-l1|", "the nearest is huber" },
    { "loss", "|pinball|", "here it is quantile" },
    { "format", "|svm|svmlight|svm-light|libfm|", "here it is libsvm" },
    { "format", "|txt|chars|", "here it is text" },
    { "format", "|mnist|ubyte|", "here it is idx" },
    { "format", "|vowpal-wabbit|vowpalwabbit|vowpal|", "here it is vw" },
    { "format", "|triples|movielens|libmf|", "here it is ratings" },
    { "format", "|numpy|npz|", "here it is npy, one array in each file" },
    { "format", "|json|jsonl|parquet|arrow|hdf5|h5|", "this version does not read it; write it as csv" },
    { "schedule", "|cosine-annealing|cosineannealing|cos|", "here it is cosine" },
    { "schedule", "|inv-sqrt|inverse-sqrt|sqrt|invscaling|", "here it is invsqrt" },
    { "schedule", "|none|fixed|", "here it is constant" },
    { "schedule", "|exponential|linear|poly|polynomial|plateau|warmup|step|", "the nearest is cosine" },
    { "transport", "|tcp|zmq|zeromq|grpc|", PLI_LATER "; this one has threads, mpi and sim" },
    { "transport", "|thread|local|process|shm|",
      "here it is threads (processes: 'plait launch -n N -- plait train ...')" },
    { "transport", "|gloo|nccl|openmpi|mpich|", "here it is mpi" },
    { "transport", "|simgrid|simulation|simulated|", "here it is sim" },
    { "topology", "|parameter-server|parameterserver|param-server|server|servers|", "here it is ps" },
    { "topology", "|all-reduce|ddp|horovod|mapreduce|ring|collective|data-parallel|",
      "here it is allreduce (its way of summing: --collective)" },
    { "topology", "|gossip|decentralized|decentralised|", "here it is gossip:ring, gossip:torus or gossip:exp" },
    { "topology", "|shared|shared-memory|threads|hogwild|", "here it is local (Hogwild: with --consistency async)" },
    { "consistency", "|sync|synchronous|strict|strong|", "here it is bsp" },
    { "consistency", "|asynchronous|hogwild|eventual|", "here it is async" },
    { "consistency", "|stale|stale-synchronous|staleness|", "here it is ssp:S, as ssp:2" },
    { "consistency", "|fedavg|federated|localsgd|", "here it is local-sgd:H, as local-sgd:8" },
    { "normalize", "|standard|standardize|zscore|z-score|minmax|yes|true|on|", "here it is auto" },
    { "normalize", "|no|false|off|", "here it is none" },
    { "reduce", "|reproducible|deterministic|", "here it is exact" },
    { "balance", "|auto|adaptive|", "here it is dynamic" },
    { "program", "|page-rank|pr|ppr|personalized-pagerank|", "here it is pagerank (with --source: personalised)" },
    { "program", "|cc|wcc|connected-components|connected-component|weakly-connected-components|union-find|",
      "here it is components" },
    { "program", "|scc|strongly-connected-components|", "here it is strong" },
    { "program", "|breadth-first-search|hops|", "here it is bfs" },
    { "program", "|shortest-path|shortest-paths|dijkstra|bellman-ford|single-source-shortest-paths|",
      "here it is sssp (bfs, if all edges have one length)" },
    { "program", "|triangle-count|triangle-counting|tc|", "here it is triangles" },
    { "program", "|lcc|clustering-coefficient|transitivity|", "here it is clustering" },
    { "program", "|k-core|coreness|core-number|core-numbers|", "here it is kcore" },
    { "program", "|color|colour|colouring|graph-coloring|", "here it is coloring" },
    { "program", "|lpa|cdlp|label-propagation|community|communities|", "here it is labels" },
    { "program", "|graph-convolution|gnn|", "here it is gcn" },
};

static const struct option_word commands[] = {
    { "|fit|learn|run|", NULL, "here it is 'plait train' (as processes: 'plait launch -n N -- plait train ...')" },
    { "|evaluate|score|test|validate|", NULL, "here it is 'plait eval'" },
    { "|infer|inference|classify|apply|", NULL, "here it is 'plait predict'" },
    { "|info|show|describe|dump|summary|", NULL, "here it is 'plait inspect'" },
    { "|convert|save|onnx|", NULL, "here it is 'plait export'" },
    { "|mpirun|torchrun|horovodrun|spawn|start|", NULL, "here it is 'plait launch'" },
    { "|benchmark|bench|sweep|", NULL, "here it is 'plait compare'" },
    { "|status|ps|top|", NULL, "here it is 'plait doctor PID'" },
    { "|generate|complete|write|", NULL, "here it is 'plait sample'" },
    { "|completion|completions|", NULL, "here it is 'plait help --completion bash|zsh|fish'" },
};

/* Is the word one of theirs? */
static bool is_one_of(const char *theirs, const char *word) {
    char   key[80];
    size_t n = 0;
    if (strlen(word) + 3 > sizeof key) return false;
    key[n++] = '|';
    for (const char *c = word; *c != '\0'; c++) key[n++] = (char)(*c == '_' ? '-' : tolower((unsigned char)*c));
    key[n++] = '|';
    key[n] = '\0';
    return n > 2 && strchr(word, '|') == NULL && strstr(theirs, key) != NULL;
}

/* Is name the option, perhaps in the spelling of a variable? */
static bool is_name_of(const char *option, const char *name) {
    for (; *option != '\0' && *name != '\0'; option++, name++)
        if (*option != (*name == '_' ? '-' : tolower((unsigned char)*name))) return false;
    return *option == *name;
}

static bool has_row(const pli_opt *rows, const char *name) {
    while (rows->name != NULL && (strcmp(rows->name, name) != 0 || rows->kind == PLI_OPT_LATER)) rows++;
    return rows->name != NULL;
}

const char *pli_words_option(const pli_opt *rows, const char *name) {
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (is_one_of(options[i].theirs, name) && has_row(rows, options[i].option)) return options[i].say;
    return NULL;
}

const char *pli_words_value(const char *option, const char *value) {
    for (size_t i = 0; value != NULL && i < sizeof values / sizeof *values; i++)
        if (is_name_of(values[i].option, option) && is_one_of(values[i].theirs, value)) return values[i].say;
    return NULL;
}

const char *pli_words_command(const char *name) {
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (is_one_of(commands[i].theirs, name)) return commands[i].say;
    return NULL;
}
