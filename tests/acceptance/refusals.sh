#!/bin/sh
# What cannot be done is said at once, by name: exit 2 for usage, 1 for bad data, and the former model stays.
. "$(dirname "$0")/common.sh"

gzip -dc "$data/a9a/a9a.gz" | head -n 200 >part
t="train --data part"
exits 2 'train' command trian
exits 2 'consistency' option $t --consistencey bsp
exits 2 'ps' topology $t --topology pss
exits 2 'bsp' consistency $t --consistency bps
exits 2 'adagrad' optimizer $t --optimizer adagard
exits 2 'logistic' model $t --model logistik
exits 2 'ssp' parameter $t --topology ps --consistency ssp:x
exits 2 'lbfgs' lbfgs $t --optimizer lbfgs --topology ps --consistency ssp:2
exits 2 'backup workers' backup-stale $t --topology ps --consistency ssp:2 --workers 3 --backup 1
exits 2 'nearest is ps' backup-sums $t --topology allreduce --workers 3 --backup 1
exits 2 'at least one worker' backup-all $t --workers 3 --backup 3
exits 2 'steps by staleness' staleness-bsp $t --topology ps --workers 2 --staleness-aware
exits 2 'get fresh values unasked' staleness-essp $t --topology ps --consistency essp:2 --workers 2 --staleness-aware
exits 2 'lbfgs with backup' backup-lbfgs $t --optimizer lbfgs --workers 2 --backup 1
exits 2 'nearest is ps' copies-local $t --workers 2 --topology local --replicas 2
exits 2 'the other replica needs another rank' copies-one $t --topology ps --replicas 2
exits 2 'three replicas at most' copies-four $t --workers 4 --topology ps --replicas 4
exits 2 'each of the three replicas needs a rank of its own' copies-three $t --workers 2 --topology ps --replicas 3
exits 2 'balance static' copies-balance $t --workers 2 --topology ps --consistency ssp:2 --replicas 2 --balance dynamic
exits 2 'workers' count $t --workers 0
exits 2 'data' nodata train --model logistic
exits 2 'mlp, cnn, lstm; take one of them, or no --sampled' sampled-linear $t --sampled 5
exits 2 'leave --sampled out' sampled-two $t --model mlp --sampled 2
works help train --help

# Under a launcher, but without its module: never N single runs.
mkdir alone
cp "$PLAIT" alone/plait
code=0
OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=0 PMIX_RANK=0 PMIX_NAMESPACE=none alone/plait $t --model logistic \
    >alone.out 2>alone.err || code=$?
[ $code -eq 2 ] || fail "exit $code instead of 2 under a launcher without a module"
grep -q bootstrap alone.err || fail "the remedy is not named: $(cat alone.err)"

# Bad input: file:line, what was expected.
head -n 20 part >good
bad() { # bad NAME TEXT: NAME holds the input
    exits 1 "$2" "$1-run" train --data "$1" --format libsvm
}
{ cat good; echo '1 3:x'; } >letter
bad letter 'letter:21'
{ cat good; echo '1 3'; } >nocolon
bad nocolon 'nocolon:21'
{ cat good; echo '1 3:nan'; } >nan
bad nan 'nan:21'
{ cat good; echo '1 3:inf'; } >inf
bad inf 'inf:21'
{ cat good; echo '1 99999999999999999999:1'; } >huge
bad huge 'huge:21'
{ cat good; echo '1 5:1 3:1'; } >order
run order-run train --data order --format libsvm --epochs 1
[ $code -eq 0 ] || grep -q 'order:21' order-run.err || fail "indices out of order: neither taken nor named"
: >empty
bad empty 'empty'
exits 1 'gone' gone-run train --data gone
gzip -c part | head -c 900 >cut.gz
exits 1 'cut.gz' cut-run train --data cut.gz
{ gzip -c part | head -c 400; echo 'no gzip any more'; gzip -c part | tail -c 400; } >torn.gz
exits 1 'torn.gz' torn-run train --data torn.gz
printf 'a,b,y\n1,2,0\n3,4,1\n5,6\n' >short.csv
exits 1 'short.csv:4' short-run train --data short.csv --label y

# A model cut short or altered; a failed save leaves the former one.
works save $t --model logistic --epochs 1 --out model
cp model former
exits 1 'gone-folder' nofolder $t --model logistic --epochs 1 --out gone-folder/model
exits 1 '' bad-again train --data letter --format libsvm --epochs 1 --out model
cmp -s model former || fail "a failed run changed the former model"
head -c $(($(wc -c <model) - 10)) model >short-model
exits 1 'short-model' short-predict predict --model-file short-model --data part
size=$(wc -c <model)
{ head -c $((size - 5)) model; printf 'X'; tail -c 4 model; } >altered
exits 1 'altered' altered-predict predict --model-file altered --data part
exits 1 'part' notmodel predict --model-file part --data part
finish
