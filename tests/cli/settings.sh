# shellcheck shell=sh disable=SC2034
# Sourced by the tests of pairs of settings, on top of common.sh: how train is told each setting of `plait help pairs`, and a
# run that has some of them: a small one, or, with long=yes, one of a second or so, in which there is time for a death. A setting goes
# by its words there.
long=${long:-}

# Rows for learners that take another form than `part`, and a net with dropout.
awk -v long="$long" 'BEGIN { for (k = 0; k < (long ? 1000 : 400); k++) { u = (k * 7919) % 30; i = (k * 104729 + int(k / 30)) % 20
    printf "user%d item%d %.2f\n", u, i, 3 + sin(u) + cos(i) } }' >ratings
awk -v long="$long" 'BEGIN { for (d = 0; d < (long ? 1000 : 160); d++) { printf "0"; for (w = 0; w < 12; w++) if ((d * 7 + w * 5) % 4 == 0)
    printf " %d:%d", w, 1 + (d + w) % 3; print "" } }' >documents
[ -z "$long" ] || gzip -dc "$data/a9a/a9a.gz" | head -n 1200 >part
mkdir parts
cp part parts/
wide=$(awk '{ for (i = 2; i <= NF; i++) { split($i, a, ":"); if (a[1] > m) m = a[1] } } END { print m }' part)
cat >drop.json <<JSON
{"plait_graph": 1, "nodes": [
{"name": "x", "op": "placeholder", "shape": [null, $wide]},
{"name": "w1", "op": "variable", "shape": [$wide, 6], "initial": "he"},
{"name": "b1", "op": "variable", "shape": [6]},
{"name": "w2", "op": "variable", "shape": [6, 1], "initial": "glorot"},
{"name": "p", "op": "matmul", "inputs": ["x", "w1"]}, {"name": "s", "op": "add", "inputs": ["p", "b1"]},
{"name": "h", "op": "relu", "inputs": ["s"]},
{"name": "d", "op": "dropout", "inputs": ["h"], "attrs": {"rate": 0.3}},
{"name": "scores", "op": "matmul", "inputs": ["d", "w2"]}]}
JSON

begin_settings() {
    learns='' optimizer='' solves='' net='' zips='' rounds='' picks='' epochs='' workers=4 copies='' more='' apart='' unsaid='' held='' resumes=''
    piped='' logs='' spares=''
}

# once NAME VALUE: $NAME becomes VALUE. If it has another one, the two settings are values of one option: $apart says which.
once() {
    eval "old=\$$1"
    # shellcheck disable=SC2154
    [ -z "$old" ] || [ "$old" = "$2" ] || apart=$1
    eval "$1=\$2"
}

# turn_on WORDS
turn_on() {
    case $1 in
    "--reduce exact" | "--aggregate host" | --staleness-aware | --no-intercept | "--schedule cosine" | "--class-weight balanced" | \
        "--balance dynamic" | "--optimizer-state sharded") more="$more $1" ;;
    "--filter zstd") zips=,zstd ;;
    "--filter fixed8") rounds=,fixed8 ;;
    "--filter topk:F") picks=,topk:0.2 ;;
    "--replicas 2") copies="--replicas 2" ;;
    "--spares N") copies="--replicas 2" spares=1 ;;
    "--workers MIN:MAX") copies="--replicas 2" workers=3:4 more="$more --scale 2:4" ;;
    "--backup N") more="$more --backup 1" ;;
    "--servers N") more="$more --servers 2" ;;
    "combine min" | "combine last") unsaid=yes ;; # tables have it, and no option says it
    "--checkpoint DIR") held="--checkpoint d --checkpoint-every 1" ;;
    "--resume DIR") resumes=yes ;;
    "--events FILE") logs="--events log" ;;
    "--epochs 1") once epochs 1 ;;
    "--data -") piped=yes ;;
    "--model mlp") once learns mlp ;;
    "--graph FILE") once learns graph ;;
    "--kernels onednn" | "--cut 2" | "--micro-batches 4") net=yes more="$more $1" ;;
    "--patience N") more="$more --patience 2 --validation 0.2" ;;
    "--optimizer online" | "--optimizer newton") once optimizer "$1" && solves=linear ;;
    "--optimizer lbfgs") once optimizer "$1" && solves=lbfgs ;;
    "--optimizer cd (hinge)") once optimizer "--optimizer cd of hinge" && solves=linear && once learns hinge ;;
    "--optimizer cd (not hinge)") more="$more --l1 0.001" && once optimizer "--optimizer cd" && solves=linear && once learns logistic ;;
    "--optimizer als") once optimizer "$1" && solves=als && once learns mf ;;
    --model\ *) once learns "${1#--model }" ;;
    *) fail "settings.sh does not know '$1'" ;;
    esac
}

# The run of the settings that are on: its words in $words; or $apart says why there is none.
end_settings() {
    if [ -n "$net" ]; then
        case $learns in '') learns=mlp ;; mlp | graph) ;; *) apart="no net" ;; esac
    fi
    case $solves:$learns in
    : | *: | linear:logistic | linear:hinge | linear:quantile | lbfgs:logistic | lbfgs:hinge | lbfgs:quantile | lbfgs:mlp | lbfgs:graph | als:mf) ;;
    :*) ;;
    *) apart="a solver of other models" ;;
    esac
    data=part label='' batch="--batch 100" default=4
    [ -z "$long" ] || batch="--batch 20" default=10
    [ -z "$solves" ] || [ "$solves:$optimizer" = "linear:--optimizer online" ] || batch=''
    [ -z "$long" ] || case $solves:$learns in linear:* | lbfgs:*) default=400 more="$more --tolerance 0" ;; als:* | :mf | :lda) default=40 ;; :kmeans) default=60 ;; esac
    case $learns in
    '') model="--model logistic" ;;
    mlp) model="--model mlp --layers 6" ;;
    graph) model="--graph drop.json" ;;
    pca) model="--model pca --components 2" batch='' ;;
    kmeans) model="--model kmeans --clusters 3" ;;
    gbdt) model="--model gbdt --depth 2 --min-rows 5" batch='' ;;
    forest) model="--model forest --depth 3" batch='' ;;
    mf) model="--model mf --components 4" data=ratings batch='' ;;
    lda) model="--model lda --components 3" data=documents label="--label none" ;;
    *) model="--model $learns" ;;
    esac
    case $learns in bayes | pca) ;; *) epochs=${epochs:-$default} ;; esac
    # A stage's spare is two ranks; a small file is read as a whole, and a folder is streamed.
    case $more in *--cut*) [ -z "$spares" ] || { spares=2 workers=6; } ;; esac
    [ "$epochs:$piped:$data" != 1::part ] || data=parts
    filter=$picks$rounds$zips
    [ -z "$filter" ] || filter="--filter ${filter#,}"
    case $long$workers in yes[0-9]) workers='' ;; *) workers="--workers $workers" ;; esac # launch has its number
    [ -z "$epochs" ] || epochs="--epochs $epochs"
    words="$model ${optimizer% of hinge} $batch $epochs $label $workers $filter $copies ${spares:+--spares $spares} $more --quiet"
}
