#!/bin/sh
# Exit codes, help anywhere, typos answered with the nearest, what comes later refused by name; one line each.
. "$(dirname "$0")/common.sh"

run bare
[ $code -eq 2 ] || fail "exit $code without a command"
grep -q 'usage: plait' bare.err || fail "no usage without a command"
[ -s bare.out ] && fail "talk on stdout"

# What is asked for is data: exit 0, on stdout.
for words in "-h" "--help" "help" "help train" "train -h" "train --data part --help" "-h train" "predict -h" "eval -h" "inspect -h" \
    "launch -h" "config -h" "version -h" "help -h" "help pairs" "help logistic" "help hinge" "help squared" "help huber" "help quantile" "help poisson" \
    "help mlp" "help cnn" "help lstm" "help graph" "help bayes" "help pca" \
    "help kmeans" "help topology" "help consistency" "help filters" "--version"; do
    # shellcheck disable=SC2086
    works help $words
    [ -s help.out ] || fail "nothing on stdout of: plait $words"
    [ -s help.err ] && fail "talk on stderr of: plait $words"
    case $words in "help filters") continue ;; esac # a table as wide as its columns
    [ "$(awk 'length($0) > 80' help.out | wc -l)" -eq 0 ] || fail "plait $words: lines are longer than 80 columns"
done
works help help pairs
grep -q 'refused' help.out || fail "no refused pair"
grep -q 'nearest' help.out || fail "no reason for a refused pair"
grep -q '\]trains\|\]refused' help.out && fail "columns of help pairs run together"
COLUMNS=60 works narrow help pairs
awk 'length > 60 { exit 1 }' narrow.out || fail "help pairs is wider than 60 columns: $(awk 'length > 60' narrow.out | head -n 3)"
[ "$(grep -c '^[a-zA-Z]  --.*[+-]$' narrow.out)" -gt "$(grep -c '^[a-zA-Z]  --.*[+-]$' help.out)" ] || fail "a narrow matrix has no parts"
[ "$(grep '^[a-zA-Z]  ' narrow.out | tr -cd '+' | wc -c)" -eq "$(grep '^[a-zA-Z]  ' help.out | tr -cd '+' | wc -c)" ] ||
    fail "a narrow matrix has not the cells of a wide one"
[ "$(grep -c '^\[' help.out)" -lt 10 ] || fail "$(grep -c '^\[' help.out) footnotes of help pairs"
for words in "help l2" "help --l2"; do
    # shellcheck disable=SC2086
    works help $words
    grep -q '^train:' help.out && grep -q '^  --l2 X .*penalty' help.out || fail "plait $words: $(cat help.out)"
done
for word in als newton bpr scan mh cosine priority svm; do # values of options are topics, and so are other tools' words
    works help help $word
    grep -q -- '--[a-z]' help.out || fail "help $word: $(cat help.out)"
done
works help help out
[ "$(grep -c '^  --out FILE' help.out)" -ge 3 ] && grep -q '^predict, transform' help.out || fail "help out: $(cat help.out)"
exits 2 "did you mean 'train'" help help trian
works help help consistency
grep -q '^  ssp:S  *[a-z]' help.out || fail "help consistency does not tell of ssp: $(cat help.out)"
works help help topology
grep -q '^  gossip:ring|torus|exp  *[a-z]' help.out || fail "help topology does not tell of gossip: $(cat help.out)"
works help help gossip:ring
grep -q 'consistency on mpi, sim *bsp, async, local-sgd:H$' help.out || fail "help gossip: $(cat help.out)"
works help help filters
grep -q '^fixed8 .* yes *\[[0-9]*\]$' help.out || fail "help filters: fixed8 goes with local-sgd? $(cat help.out)"
[ "$(grep -c '^\[' help.out)" -lt 12 ] || fail "$(grep -c '^\[' help.out) footnotes of help filters"
works help help topk
grep -q 'consistency *bsp, ssp:S' help.out && ! grep -q vap help.out || fail "help topk: $(cat help.out)"
grep -q 'on allreduce *bsp, bounded-delay:T, local-sgd:H' help.out || fail "help topk says nothing of sums: $(cat help.out)"
works help help ssp:2
grep -q '^ssp:S: a consistency' help.out && grep -q 'topologies on threads *local, ps' help.out || fail "help ssp: $(cat help.out)"

# A launcher that brings no MPI: each of its processes would train alone. Whoever wants that says so.
RANK=0 WORLD_SIZE=4
export RANK WORLD_SIZE
exits 2 'WORLD_SIZE=4 and RANK are set, as torchrun sets them.*plait launch -n 4 -- .*--transport threads' torchrun train --data part
exits 2 'as torchrun sets them' torchrun compare --data part
works torchrun train --data part --epochs 1 --transport threads --quiet
unset RANK WORLD_SIZE

t="train --data part"
exits 2 "did you mean 'train'" command trani
exits 2 "did you mean 'logistic'" topic help logistc
exits 2 "did you mean 'essp'" topic help esssp
exits 2 "did you mean 'ssp" case $t --workers 2 --topology ps --consistency SSP:2
exits 2 "nearest is local x async, or ps x local-sgd:4" pair $t --workers 4 --topology local --consistency local-sgd:4
exits 2 "did you mean --epochs" option $t --epohcs 3
exits 2 "did you mean adagrad" value $t --optimizer adagrda
exits 2 "did you mean csv" value $t --format csvv
exits 2 "whole number" value $t --epochs many
exits 2 "at least 1" value $t --epochs 0
exits 2 "workers.*from 1 to 65536" value $t --workers 70000
exits 2 "20000 ranks as threads of one process are refused: there may be at most 1024; nearest is --transport sim" many $t --workers 20000 --dry-run
exits 2 "timeout 0: expected" value $t --timeout 0
exits 2 "wants a value" value $t --epochs
exits 2 "nothere" word $t nothere
exits 2 "no data" nodata train
exits 2 "no model" nomodel predict --data part
exits 2 "no data" nodata predict --model-file m
exits 2 "no model" nomodel eval --data part
exits 2 "no model" nomodel inspect
exits 2 "more than one" two inspect a b
exits 1 "gone" gone inspect gone
exits 1 "gone" gone predict --model-file gone --data part
exits 2 "two different answers" two predict --model-file gone --data part --proba --contributions
exits 2 "no number of processes" many launch -- plait train
exits 2 "no command: it stands behind --, as in 'plait launch" nothing launch -n 2
exits 2 "unknown option --heartbeat; it is train's: write it behind '-- plait train'" nothing launch -n 2 --heartbeat 3s -- plait train
exits 2 "no command" nothing launch -n 2 --
exits 2 "launch" zero launch -n 0 -- plait train
for word in smaple predcit; do
    exits 2 "^plait: unknown command '$word'; " unknown $word --data part
done

# Other tools' words are answered with ours, and never taken.
word() { # TEXT words...: exit 2, in one line that says TEXT
    text=$1
    shift
    exits 2 "$text" word "$@"
    [ "$(wc -l <word.err)" -eq 1 ] || fail "$* says $(cat word.err)"
}
for name in lr LR eta0; do word "unknown option --$name; here it is --learning-rate$" $t --$name 0.1; done
word "unknown option --learning_rate; did you mean --learning-rate" $t --learning_rate 0.1
for name in batch-size batch_size; do word "unknown option --$name; here it is --batch," $t --$name=5; done
for name in n-epochs num_epochs iters max_iter; do word "unknown option --$name; here it is --epochs" $t --$name 5; done
for name in num-workers n_jobs np; do word "unknown option --$name; here it is --workers" $t --$name 5; done
word "here it is --l2" $t --weight-decay 1
word "here it is --l2: LIBLINEAR's C" $t -C 1
word "here it is --patience" $t --early-stopping 3
word "here it is --out" $t -o model
word "here it is --seed" $t --random-state 3
word "here it is --layers" $t --hidden-layer-sizes 3
for name in num_round nrounds; do word "unknown option --$name; here it is --epochs" $t --$name 3; done
word "option --gpu; this version computes on the processor alone" $t --gpu
word "option --device; this version computes on the processor alone" $t --device cuda
word "option --verbose; here a run tells what it does" $t --verbose
word "option -v; here a run tells what it does" $t -v
word "option --dropout; .*--graph FILE may have dropout" $t --dropout 0.5
word "option --shuffle; here rows are always shuffled" $t --shuffle
word "option --hosts; .*plait launch -n N --hosts A,B:4 -- plait train" $t --hosts a,b
word "model 'svm': here it is hinge" $t --model svm
word "model 'linear': here it is squared" $t --model=linear
word "model 'LogReg': here it is logistic" $t --model LogReg
word "model 'mlp-classifier': here it is mlp" $t --model mlp-classifier
word "model 'xgboost': here it is gbdt$" $t --model xgboost
word "model 'randomforest': here it is forest$" $t --model randomforest
word "model 'als': here it is mf$" $t --model als
word "optimizer 'adamw': the nearest is adam" $t --optimizer adamw
word "loss 'mse': here it is squared" $t --model mlp --loss mse
word "format 'svmlight': here it is libsvm" $t --format svmlight
word "topology ddp: here it is allreduce" $t --topology ddp
word "consistency sync: here it is bsp" $t --consistency sync
word "eval tells loss, accuracy" eval --model-file m --data part --confusion
word "here it is --model-file" predict -m m --data part
# In a configuration file and as a variable the same answer as for a flag.
for line in 'lr: 0.1' "'lr': 0.1"; do
    echo "$line" >words.yaml
    word "^plait: train: words.yaml:1: unknown option 'lr'; here it is --learning-rate$" $t --config words.yaml
done
printf 'epochs: 1\nmodel: svm\n' >words.yaml
word "^plait: train: words.yaml:2: model 'svm': here it is hinge$" $t --config words.yaml
for variable in LR BATCH_SIZE; do
    case $variable in LR) here=--learning-rate ;; *) here=--batch ;; esac
    export "PLAIT_$variable=1"
    word "unknown variable PLAIT_$variable; here it is $here" $t
    word "unknown variable PLAIT_$variable; here it is $here" eval --model-file m --data part
    unset "PLAIT_$variable"
done
PLAIT_MODEL=svm
export PLAIT_MODEL
word "^plait: train: PLAIT_MODEL 'svm': here it is hinge$" $t
unset PLAIT_MODEL
works version -V
grep -q '^plait ' version.out || fail "plait -V: $(cat version.out)"
word "here it is 'plait train'" fit --data part
word "here it is 'plait eval'" score --data part
# Values that help, the manual and the completion offer are there: each is taken, or refused with a reason of its own.
for words in "help" "help train" "help --man" "help --completion bash"; do
    # shellcheck disable=SC2086
    works offers $words
    grep -qw 'tcp' offers.out && fail "plait $words offers tcp"
done

# What launch uses itself is offered to nobody; what has a default says which.
for words in "help launch" "help --man" "help --completion bash"; do
    # shellcheck disable=SC2086
    works own $words
    grep -q keeper own.out && fail "plait $words offers --keeper"
done
works defaults help train
tr -s ' \n' '  ' <defaults.out | sed 's/ --/\n--/g' >defaults
for option in optimizer epochs batch learning-rate momentum schedule huber-delta class-weight label l2 layers threads workers; do
    grep -q "^--$option .*default" defaults || fail "help train does not tell the default of --$option"
done

# An option without effect says so, and the run goes on.
idle() { # TEXT words...
    text=$1
    shift
    works idle "$@" --epochs 1
    grep -q "note: $text" idle.err || fail "no note '$text' of: $*: $(cat idle.err)"
}
idle "--collective has no effect in this run: a collective sums updates only under --topology allreduce or hybrid$" $t --workers 2 --topology ps --collective ring
idle "--heartbeat has no effect in this run: it watches processes, and only --transport mpi has ranks in processes$" $t --heartbeat 9s
idle "--tolerance has no effect on an optimizer that does not end by itself$" $t --optimizer adagrad --tolerance 1e-3
idle "--label has no effect on libsvm data" $t --label 3
idle "--header has no effect on libsvm data" $t --header yes
idle "--text-columns has no effect on libsvm data" $t --text-columns a
idle "--curve has no effect without --metrics" $t --curve 3
idle "--balance has no effect with one worker" $t --balance dynamic --workers 1
idle "--staleness-aware has no effect with one worker" $t --staleness-aware --topology ps --consistency ssp:2
idle "--optimizer-state has no effect with one worker" $t --optimizer-state sharded --topology allreduce
idle "--timeout has no effect with a single worker, which waits for no other" $t --timeout 60s
idle "--aggregate has no effect with one worker" $t --aggregate host --topology ps
idle "--aggregate has no effect on sums among threads of one process" $t --aggregate host --topology allreduce --workers 2
idle "--normalize has no effect with both --l1 and --l2" $t --normalize none --l1 0.01 --l2 0.01
idle "--seed has no effect on this optimizer of a linear model, which uses no random numbers" $t --seed 3 --optimizer lbfgs
works effect $t --epochs 1 --workers 2 --topology allreduce --collective ring --timeout 60s --seed 3 --optimizer-state sharded
grep -q 'no effect' effect.err && fail "an option with an effect is said to have none: $(grep 'no effect' effect.err)"
works order $t --epochs 1 --model hinge --optimizer cd --seed 3
grep -q 'no effect' order.err && fail "the seed of cd's order is said to have no effect: $(grep 'no effect' order.err)"

# A pair of --table that is refused is found before the data are read.
exits 2 "table w2: topology allreduce x ssp:1 is refused" table train --data gone --model mlp --workers 2 --topology ps --table w2:topology=allreduce,consistency=ssp:1

# Options and values of later versions: refused by name.
for words in "--join etcd://h:1/j" "--transport tcp"; do
    # shellcheck disable=SC2086
    exits 2 "${words%% *}.*: comes with a later version" later $t $words
done
exits 2 "spares 1 with true is refused: train alone.*-n 3" refused launch -n 2 --spares 1 -- true
exits 2 "spares 1, and train --spares 2: give it only to launch" refused launch -n 2 --spares 1 -- plait $t --spares 2
exits 2 "spares .1. without replicas.*nearest are 2 replicas" refused $t --workers 3 --spares 1 --topology ps
k="--topology ps --replicas 2"
exits 2 "--spares 3 of 3 workers: expected.*one worker that is not a spare" refused $t --workers 3 --spares 3 $k
works spares $t --optimizer adagrad --epochs 2 --workers 5 --spares 2 $k --reduce exact --json --metrics m
works without $t --optimizer adagrad --epochs 2 --workers 3 --topology ps --reduce exact --json
[ "$(field spares model_hash)" = "$(field without model_hash)" ] || fail "spares change the model"
[ "$(field spares spares)" = 2 ] && [ "$(field spares workers)" = 5 ] && [ "$(field without spares)" = 0 ] ||
    fail "the record does not tell of spares"
[ "$(grep -c '"role": "spare"' m)" -eq 2 ] || fail "the metrics do not tell of spares: $(head -n 5 m)"
exits 2 "max-restarts" refused launch -n 2 --max-restarts -1 -- plait train
works plain $t --epochs 1 --reduce plain --balance static --replicas 1 --quiet
[ -s plain.err ] && fail "--quiet is not"
grep -q '^train loss' plain.out || fail "--quiet keeps the result back: $(cat plain.out)"

# A table of its own topology and consistency.
works table $t --epochs 1 --workers 2 --table w:topology=ps,consistency=ssp:1 --json
[ "$(field table topology)" = ps ] || fail "--table: topology is $(field table topology)"
[ "$(field table consistency)" = ssp:1 ] || fail "--table: consistency is $(field table consistency)"

# Options in any order, values with = too; a dry run trains nothing and writes nothing.
works order train --epochs=2 --json --data part
[ "$(field order epochs)" = 2 ] || fail "--epochs=2 gives $(field order epochs)"
works dry $t --out dry-model --metrics dry-metrics --dry-run
[ -e dry-model ] || [ -e dry-metrics ] && fail "a dry run left a file"
grep -q 'in order' dry.err || fail "a dry run says nothing"
exits 1 "nowhere" dry $t --out nowhere/model --dry-run
exits 1 "nowhere/m: cannot be written \(--metrics\)" dry $t --metrics nowhere/m --dry-run
exits 1 "nowhere/e: cannot be written \(--events\)" dry $t --events nowhere/e --dry-run
mkdir folder
exits 1 "folder: cannot be written \(--events\)" dry $t --events folder --dry-run
works dry $t --events dry-events --metrics dry-metrics --dry-run
[ -e dry-events ] || [ -e dry-metrics ] && fail "a dry run left a file"
exits 1 "gone" dry train --data gone --dry-run
exits 2 "nearest" dry $t --dry-run --workers 2 --topology allreduce --consistency ssp:2

# - is standard output where lines are written, and never a file of that name.
works model $t --epochs 1 --out model --quiet
works named predict --model-file model --data part --out named
works dash predict --model-file model --data part --out -
cmp -s named dash.out || fail "predict --out - does not write to standard output"
exits 2 "--out -.*name a file" dash $t --out -
exits 2 "--metrics -.*name a file" dash $t --metrics -
[ -e ./- ] && fail "there is a file named -"

# Ranks that only hold shards would stand idle.
exits 2 "servers 2 with topology allreduce is refused.*nearest is --topology ps" idle $t --workers 2 --servers 2 --topology allreduce
exits 2 "servers 1 with topology local \(the default\) is refused" idle $t --workers 2 --servers 1 --dry-run
# What is wrong with the command is wrong on all ranks.
exits 2 "^plait: topology local x essp:1 is refused" pair $t --workers 2 --topology local --consistency essp:1

# A note on what has no effect belongs to a run that works.
exits 1 "gone" note train --data gone --momentum 0.5
[ "$(wc -l <note.err)" -eq 1 ] || fail "notes before an error: $(head -n 1 note.err)"
works note $t --epochs 1 --momentum 0.5
[ "$(grep -c 'not saved' note.err)" -eq 1 ] && [ "$(grep -c 'momentum has no effect' note.err)" -eq 1 ] || fail "notes are not told once"
works note $t --dry-run --momentum 0.5
grep -q 'momentum has no effect' note.err || fail "a dry run has no notes"

# One line, with its beginning.
for file in command option value word nodata; do
    [ "$(wc -l <$file.err)" -eq 1 ] || fail "$file: $(wc -l <$file.err) lines"
    grep -q '^plait: ' $file.err || fail "$file: not begun by plait:"
done
# A net has tables and options of its own, not those of linear models.
for model in mlp cnn lstm graph; do
    works net help $model
    grep -q 'the intercepts' net.out && fail "help $model tells of linear models"
    grep -q -- '--table NAME' net.out || fail "help $model does not tell how its tables are named"
done
# What trains: a topic for each optimizer; auto is the default and says its reason without quoting a refusal.
gzip -dc "$data/a9a/a9a.gz" | head -n 500 >few
for name in optimizer $("$PLAIT" help train | tr '|' '\n' | grep -xE 'sgd|momentum|adagrad|adam|ftrl|lbfgs') newton cd online; do
    works topic help "$name"
    grep -q 'optimizer' topic.out || fail "help $name does not say what it is: $(cat topic.out)"
done
COLUMNS=60 "$PLAIT" help newton >narrow.out || fail "help newton with COLUMNS=60"
awk 'length > 60 { bad = 1 } END { exit bad }' narrow.out || fail "COLUMNS=60 is ignored: $(cat narrow.out)"
awk 'length > 50 { good = 1 } END { exit !good }' narrow.out || fail "COLUMNS=60 is taken for less: $(cat narrow.out)"
works config config
grep -qx 'optimizer: auto' config.out || fail "config shows no default of optimizer"
works kink train --data few --model quantile --epochs 2
grep -q 'optimizer: adagrad, since newton does not fit: that loss has a kink' kink.err || fail "auto's reason: $(cat kink.err)"
works twice train --data few --optimizer online --epochs 2
grep -q 'online applies no penalty' twice.err || fail "two epochs of online without a word: $(cat twice.err)"
works once train --data few --optimizer online --epochs 1 --out once.model
grep -q 'no penalty' once.err && fail "a note about penalties on a single pass: $(cat once.err)"
printf 'a,b,y\n1,2,0\n2,3,1\n' >cells.csv
exits 2 'was trained on libsvm rows .* looks like a table; write it' no predict --model-file once.model --data cells.csv

finish
