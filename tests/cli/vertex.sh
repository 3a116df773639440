#!/bin/sh
# plait graph run: vertex programs over files of edges. Every format gives the same, every number of workers, cut,
# topology and consistency too; the audit proves each run; mistakes in a file or an option are told by name, and nothing
# is written then.
# usage: vertex.sh SIM (yes or no)
. "$(dirname "$0")/common.sh"
sim=$1

# The same edges in each format; METIS lists each in the lines of both of its ends.
printf '# edges\n1\t2\n1 3\n2,4\n3 4\n5 6\n6 5\n' >snap
gzip -c snap >snap.gz
printf '%%%%MatrixMarket matrix coordinate pattern general\n6 6 6\n1 2\n1 3\n2 4\n3 4\n5 6\n6 5\n' >matrix
printf '1 2 2 3\n2 1 4\n3 1 4\n5 1 6\n6 1 5\n' >adjacency
printf '6 5\n2 3\n1 4\n1 4\n2 3\n6\n5\n' >metis

works bfs graph run bfs --data snap --source 1 --quiet
printf '1\t0\n2\t1\n3\t1\n4\t2\n5\tinf\n6\tinf\n' >wanted
cmp -s wanted bfs.out || fail "bfs: $(cat bfs.out)"
for file in snap.gz matrix; do
    works same graph run bfs --data $file --source 1 --quiet
    cmp -s wanted same.out || fail "bfs of $file: $(cat same.out)"
done
works same graph run bfs --data adjacency --format adjacency --source 1 --quiet
cmp -s wanted same.out || fail "bfs of adjacency: $(cat same.out)"
works cc graph run components --data metis --format metis --quiet
printf '1\t1\n2\t1\n3\t1\n4\t1\n5\t5\n6\t5\n' | cmp -s - cc.out || fail "components: $(cat cc.out)"
printf '10 20 0.5\n20 30 0.25\n10 30 1\n' >heavy
works way graph run sssp --data heavy --source 10 --quiet
printf '10\t0\n20\t0.5\n30\t0.75\n' | cmp -s - way.out || fail "sssp: $(cat way.out)"

# The other way round, by the option and by a symmetric matrix.
works back graph run bfs --data snap --source 4 --undirected --quiet
sed 's/general/symmetric/' matrix >symmetric
works same graph run bfs --data symmetric --source 4 --quiet
cmp -s back.out same.out || fail "a symmetric matrix is not an undirected graph"
grep -q '^1	2$' back.out || fail "undirected: $(cat back.out)"

# A larger graph, under every setting. Ranks have the same bits for any number of workers.
awk 'BEGIN { srand(4); for (k = 0; k < 4000; k++) print int(700 * rand() * rand()), int(700 * rand()) }' >big
works one graph run pagerank --data big --quiet
awk '{ sum += $2 } END { exit !(sum > 0.999999999 && sum < 1.000000001) }' one.out || fail "ranks do not add up to 1"
works hops graph run bfs --data big --source 0 --quiet
set -- "2 ps bsp range" "3 allreduce bsp range" "4 ps bsp range" "3 ps bsp hdrf" "4 local bsp grid" "4 ps ssp:2 oblivious" "3 ps async random"
for setting; do
    # shellcheck disable=SC2086
    set -- $setting
    options="--data big --workers $1 --topology $2 --consistency $3 --partition $4 --events log --quiet"
    # shellcheck disable=SC2086
    works many graph run bfs --source 0 $options
    "$PLAIT" audit --scopes log >audit.out 2>audit.err && fail "a run by supersteps has locks"
    says audit.err "the log has no locks of a vertex program" || fail "no locks: $(cat audit.err)"
    cmp -s hops.out many.out || fail "bfs over $setting differs"
    works audit audit log
    [ "$3" = bsp ] || continue
    # shellcheck disable=SC2086
    works many graph run pagerank $options
    [ "$4" != range ] || cmp -s one.out many.out || fail "ranks over $setting have other bits"
    paste one.out many.out | awk '{ d = $2 - $4; if (d > 1e-12 || d < -1e-12) exit 1 }' || fail "ranks over $setting differ"
    works audit audit log
done
works ways graph run sssp --data big --source 0 --quiet
works sync graph run components --data big --quiet
for options in "--scope vertex" "--scope edge --order priority" "--scope full --order sweep"; do
    # shellcheck disable=SC2086
    works async graph run components --data big --workers 3 --topology ps --engine async $options --events async.log --json --quiet
    grep -v '^{' async.out | cmp -s - sync.out || fail "the asynchronous engine, $options, finds other components"
    grep -q '"updates": [1-9][0-9]*, "lock_waits": ' async.out || fail "the summary: $(tail -n 1 async.out)"
    # What updates read under their locks is proven: by the run's own scope, and not by a stronger one.
    works audit audit --scopes async.log
    says audit.out "proven under scope" || fail "the audit of scopes: $(cat audit.out)"
    case "$options" in *full*) continue ;; esac
    "$PLAIT" audit --scopes --as full async.log >audit.out 2>audit.err && fail "scope full is proven of a run $options"
    says audit.out "refuted under scope full: .* the first (lock): rank [0-9] updated vertex" || fail "not full: $(cat audit.out audit.err)"
done
works async graph run pagerank --data big --workers 2 --engine async --scope edge --tolerance 1e-14 --quiet
paste one.out async.out | awk '{ d = $2 - $4; if (d > 1e-9 || d < -1e-9) exit 1 }' || fail "asynchronous ranks differ"
if [ "$sim" = yes ]; then
    works sim graph run pagerank --data big --workers 4 --topology ps --transport sim --quiet --json
    grep -v '^{' sim.out | cmp -s - one.out || fail "simulated ranks have other bits"
    grep -q '"virtual_seconds": 0\.[0-9]*[1-9]' sim.out || fail "no simulated time: $(tail -n 1 sim.out)"
    # Where half of the hosts are slow, supersteps wait for them, and the asynchronous engine does not.
    printf 'version: 1\nhosts: [{count: 2}, {count: 2, speed: 0.25}]\ncost: {entry: 1 us}\n' >uneven.yaml
    idle() { works idle graph run pagerank --data big --workers 4 --topology ps --transport sim --cluster uneven.yaml --quiet --json "$@"; }
    idle --tolerance 1e-6
    json idle.out "0.3 < o['idle_share'] < 0.8"
    idle --tolerance 1e-6 --engine async --scope edge
    json idle.out "0 < o['idle_share'] < 0.2"
    # A rank dies, the lowest one too: the others go on, to the same bits.
    for victim in 0 2; do
        for at in 1 6 11; do
            printf 'version: 1\nhosts: [{count: 4}]\nevents:\n  - kill: {ranks: %s, at: %s ms}\n' $victim $at >dying.yaml
            works died graph run pagerank --data big --workers 4 --topology ps --transport sim --cluster dying.yaml --replicas 2 --events log --json
            grep -v '^{' died.out | cmp -s - one.out || fail "rank $victim dies at $at ms: other bits"
            grep -q "\"replicas\": 2, \"ranks_lost\": \[$victim\]" died.out || fail "the summary: $(tail -n 1 died.out)"
            says died.err "rank $victim .*; the run goes on without it" || fail "who died: $(cat died.err)"
            works audit audit log
        done
    done
    # Programs with a run of their own go by the engine then, or the living do the dead worker's share: to the same values.
    for setting in "kcore 1 1" "kcore 2 0" "coloring 1 2" "coloring 2 0" "labels 1 0" "labels 2 3" \
        "triangles 0.2 0" "triangles 0.2 3" "clustering 0.2 1" "clustering 0.5 0"; do
        # shellcheck disable=SC2086
        set -- $setting
        program=$1 victim=$3
        works own graph run "$program" --data big --quiet
        printf 'version: 1\nhosts: [{count: 4}]\nevents:\n  - kill: {ranks: %s, at: %s ms}\n' "$3" "$2" >dying.yaml
        works died graph run "$program" --data big --workers 4 --topology ps --transport sim --cluster dying.yaml --replicas 2 --events log --json --quiet
        grep -v '^{' died.out | cmp -s - own.out || fail "$setting: other values"
        json died.out "o['ranks_lost'] == [$victim]"
        works audit audit log
    done
    for victim in 0 3; do
        printf 'version: 1\nhosts: [{count: 4}]\nevents:\n  - kill: {ranks: %s, at: %s ms}\n' $victim $((4 + victim)) >dying.yaml
        works died graph run sssp --data big --source 0 --workers 4 --topology ps --transport sim --cluster dying.yaml --replicas 2 \
            --engine async --scope edge --json
        grep -v '^{' died.out | cmp -s - ways.out || fail "asynchronous: rank $victim dies: other ways"
        grep -q "\"ranks_lost\": \[$victim\]" died.out || fail "asynchronous: the summary: $(tail -n 1 died.out)"
    done
fi

# Every program's figures stand in the summary, and its values are the same for each number of workers.
printf '1 2\n2 3\n3 1\n3 4\n5 5\n' >tail
figures() { # figures PROGRAM JSON VALUES options...
    program=$1 json=$2 values=$3
    shift 3
    for workers in 1 2 4; do
        works figure graph run "$program" --data tail --workers $workers --topology ps --json --quiet "$@"
        grep -q "$json" figure.out || fail "$program of $workers: $(tail -n 1 figure.out)"
        [ "$(grep -v '^{' figure.out | cut -f 2 | tr '\n' ' ')" = "$values " ] || fail "$program of $workers: $(cat figure.out)"
    done
}
figures components '"components": 2,' "1 1 1 1 5"
figures strong '"components": 3,' "1 1 1 4 5"
figures bfs '"reached": 4, "depth": 3,' "0 1 2 3 inf" --source 1
figures triangles '"triangles": 1,' "1 1 1 0 0" --partition hdrf
figures clustering '"triangles": 1, "transitivity": 0.5999' "1 1 0.33333333333333331 0 0"
figures kcore '"largest_core": 2,' "2 2 2 1 0" --partition random
figures coloring '"colors": 3,' "1 2 0 1 0"
figures labels '"communities": 2,' "1 1 1 1 5"
# A graph convolution learns what features alone do not say: two groups, whose features are nearly all noise. Under exact
# sums the weights, and so the loss, have the same bits for every number of workers.
awk 'BEGIN { srand(5)
    for (v = 0; v < 240; v++) {
        printf "%d", 7 + v % 2 >"rows"
        for (f = 1; f <= 12; f++) if (rand() < (f <= 2 && f % 2 == v % 2 ? 0.6 : 0.3)) printf " %d:1", f >"rows"
        print "" >"rows"
        print v < 40 ? "train" : v < 80 ? "val" : "test" >"split"
        for (k = 0; k < 5; k++) { u = int(240 * rand()); if (u % 2 == v % 2 || rand() < 0.05) print v, u >"joined" }
    } }'
learns() { works "$@" --data joined --features rows --split split --supersteps 60 --reduce exact --json --quiet; }
learns gcn1 graph run gcn
json gcn1.out "o['test_accuracy'] >= 0.9 and o['validation_accuracy'] >= 0.85 and o['train_loss'] < 0.4"
learns gcn3 graph run gcn --workers 3 --topology ps
json gcn3.out "o['train_loss'] == $(tail -n 1 gcn1.out | sed 's/.*"train_loss": \([^,]*\),.*/\1/')"
sed 's/val/none/' split >unjudged
works gcn0 graph run gcn --data joined --features rows --split unjudged --supersteps 2 --json
json gcn0.out "o['validation_accuracy'] is None and o['test_accuracy'] >= 0"
grep -q validation gcn0.err && fail "an accuracy of no rows: $(cat gcn0.err)"
grep -v '^{' gcn1.out >one.classes
grep -v '^{' gcn3.out | cmp -s - one.classes || fail "three workers predict other classes"

# An option without effect is noted: a cut, where each worker has the whole graph, or is alone; a seed of nothing drawn.
works vain graph run triangles --data tail --workers 2 --topology ps --partition hdrf --seed 3 --json
says vain.err "note: --partition has no effect on triangles, of which each worker has the whole graph" || fail "no note: $(cat vain.err)"
says vain.err "note: --seed has no effect on triangles without --transport sim" || fail "no note: $(cat vain.err)"
json vain.out "o['partition'] is None and o['replication_factor'] is None and o['imbalance'] is None"
works vain graph run kcore --data tail --partition hdrf
says vain.err "note: --partition has no effect with one worker" || fail "no note: $(cat vain.err)"
works vain graph run kcore --data tail --workers 2 --topology ps --partition hdrf --json
says vain.err "note:" && fail "a note: $(cat vain.err)"
json vain.out "o['partition'] == 'hdrf' and o['replication_factor'] >= 1"

works help help kcore
says help.out "kcore: a vertex program" || fail "help kcore: $(cat help.out)"
works help help als
says help.out "als: a solver" && says help.out "als: a vertex program" || fail "help als: $(cat help.out)"
works offers help --completion bash
says offers.out "pagerank components strong bfs" || fail "completion offers no programs"
# It offers an option behind the word that takes it: --damping is of run, --ranks of place.
completes() { # WORDS...: what bash offers for the last one
    bash -c '. ./offers.out; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _plait; echo "${COMPREPLY[@]}"' bash "$@"
}
[ "$(completes plait graph run pagerank --dam)" = --damping ] || fail "graph run --dam: $(completes plait graph run pagerank --dam)"
[ -z "$(completes plait graph place net.json --dam)" ] || fail "graph place is offered --damping"
[ "$(completes plait graph place net.json --rank)" = --ranks ] || fail "graph place --rank: $(completes plait graph place net.json --rank)"
works fish help --completion fish
[ -z "$(grep '^function' fish.out | cut -d ' ' -f 2 | sort | uniq -d)" ] || fail "fish: a function is there twice"

# A run stops and goes on, with another number of workers: to the same bits where reads are whole.
works whole graph run pagerank --data big --supersteps 12 --quiet
works part graph run pagerank --data big --supersteps 5 --checkpoint-every 5 --checkpoint kept --workers 3 --topology ps --quiet
works rest graph run pagerank --data big --supersteps 7 --resume kept --workers 2 --quiet
cmp -s whole.out rest.out || fail "ranks from a checkpoint have other bits"
# Another tolerance may go on, and is told, by one process of several; the same one is not.
works rest graph run pagerank --data big --resume kept --tolerance 1e-4 --json
says rest.err "kept was saved by a run with --tolerance 1e-10; this one goes on with --tolerance 0.0001" || fail "another tolerance: $(cat rest.err)"
grep -q '"supersteps": [1-9], .*"converged": true' rest.out || fail "a looser tolerance: $(tail -n 1 rest.out)"
works rest graph run pagerank --data big --resume kept
says rest.err "goes on with" && fail "the same tolerance: $(cat rest.err)"
works whole graph run sssp --data big --source 0 --quiet
for engine in sync async; do
    works part graph run sssp --data big --source 0 --engine $engine --supersteps 2 --checkpoint-every 2 --checkpoint kept-$engine --quiet
    works rest graph run sssp --data big --source 0 --engine $engine --resume kept-$engine --workers 2 --quiet
    cmp -s whole.out rest.out || fail "ways from a checkpoint of engine $engine differ"
done

# A signal ends it behind the superstep; the command that goes on can be pasted. A path takes as many as it has vertices.
awk 'BEGIN { for (k = 0; k < 3000; k++) print k, k + 1 }' >path
works whole graph run sssp --data path --source 0 --quiet
has_one() { ls told/checkpoint-* >none.ls 2>&1; }
"$PLAIT" graph run sssp --data path --source 0 --checkpoint told --checkpoint-every 1 >told.out 2>told.err &
pid=$!
until_holds 300 has_one || fail "no checkpoint: $(cat told.err)"
kill -INT $pid
code=0
wait $pid || code=$?
[ $code -eq 75 ] && [ ! -s told.out ] || fail "interrupted: exit $code: $(cat told.err)"
again=$(sed -n 's/.*interrupted after superstep [0-9]*; to go on: plait //p' told.err)
[ "$again" = "graph run sssp --data path --source 0 --checkpoint told --checkpoint-every 1 --resume told" ] ||
    fail "how to go on: $(cat told.err)"
works rest graph run sssp --data path --source 0 --resume told --quiet
cmp -s whole.out rest.out || fail "an interrupted run goes on to other ways"
# A limit counts the supersteps of one start: the command asks for those that are left.
works whole graph run sssp --data path --source 0 --supersteps 2900 --quiet
rm -r told
"$PLAIT" graph run sssp --supersteps=2900 --data path --source 0 --checkpoint told --checkpoint-every 1 >told.out 2>told.err &
pid=$!
until_holds 300 has_one || fail "no checkpoint: $(cat told.err)"
kill -INT $pid
code=0
wait $pid || code=$?
[ $code -eq 75 ] || fail "interrupted: exit $code: $(cat told.err)"
again=$(sed -n 's/.*interrupted after superstep [0-9]*; to go on: plait //p' told.err)
done=$(sed -n 's/.*interrupted after superstep \([0-9]*\);.*/\1/p' told.err)
[ "$again" = "graph run sssp --data path --source 0 --checkpoint told --checkpoint-every 1 --supersteps $((2900 - done)) --resume told" ] ||
    fail "how to go on to a limit: $(cat told.err)"
# shellcheck disable=SC2086
works rest $again --quiet
cmp -s whole.out rest.out || fail "an interrupted run goes on to another limit"
works anew graph run sssp --data path --source 0 --checkpoint unborn --resume unborn
says anew.err '^plait: unborn holds no checkpoint: the run starts from the beginning$' || fail "a run that starts from the beginning: $(cat anew.err)"

# --out: a file, or a NumPy array, whose rows are ids and values; nothing is left of a run that fails.
works out graph run pagerank --data big --out ranks --json --quiet
cmp -s ranks one.out || fail "--out writes other values"
grep -q '"vertices": [0-9]*, "edges": 4000, .*"scope": null, .*"updates": null, .*"converged": true' out.out || fail "the summary: $(cat out.out)"
works out graph run bfs --data snap --source 1 --out hops.npy
[ "$(od -An -tu8 -j 128 hops.npy | tr -s ' \n' ' ')" = " 1 0 2 1 3 1 4 2 5 9223372036854775807 6 9223372036854775807 " ] ||
    fail "the array: $(od -An -tu8 -j 128 hops.npy)"
says out.err "6 vertices, 6 edges; .* supersteps in" || fail "it says: $(cat out.err)"
printf '1 1\n1 2\n1 2\n' >twice
works twice graph run components --data twice
says twice.err "1 loop kept (--drop-loops), 1 double kept (--drop-doubles)" || fail "loops, doubles: $(cat twice.err)"

refused() { # refused CODE WORDS options...
    code=$1 words=$2
    shift 2
    "$PLAIT" graph "$@" --out none >said 2>err && fail "graph $* went on"
    is=0
    "$PLAIT" graph "$@" --out none >said 2>err || is=$?
    [ $is -eq "$code" ] || fail "graph $*: exit $is: $(cat err)"
    grep -qF -- "$words" err || fail "graph $*: $(cat err)"
    [ ! -s said ] && [ ! -e none ] || fail "graph $*: something was written"
}
printf '1 2\n3 x4\n' >letter
printf '1 2\n18446744073709551616 1\n' >large
head -c 40 snap.gz >cut.gz
printf '1 2 -1\n' >minus
refused 1 "letter:2: expected a whole number, 0 or more: 'x4'" run bfs --data letter --source 1
refused 1 "large:2: an id is below 2^64" run bfs --data large --source 1
printf '%%%%MatrixMarket matrix coordinate pattern general\n4294967294 4294967294 1\n1 2\n' >promise
[ "$(awk '/MemAvailable/ { print ($2 > 110000000) }' /proc/meminfo)" = 1 ] || # that a machine can hold
    refused 1 "a graph of 4294967294 vertices and 1 edges needs about 120.3 GB" run components --data promise
refused 1 "cut.gz" run bfs --data cut.gz --source 1
refused 1 "nowhere" run bfs --data nowhere --source 1
refused 2 "weight -1" run sssp --data minus --source 1
refused 2 "did you mean 'pagerank'?" run pagerang --data snap
refused 2 "unknown vertex program 'wcc': here it is components" run wcc --data snap
refused 2 "say 'plait graph run bfs --data EDGES'" bfs --data snap
refused 2 "'snap' is one word too many; the file of the edges is named by --data" run bfs snap
"$PLAIT" bfs --data snap >said 2>err && fail "plait bfs went on"
says err "unknown command 'bfs'; it is a vertex program: 'plait graph run bfs --data EDGES'" || fail "plait bfs: $(cat err)"
refused 2 "needs --source ID" run bfs --data snap
refused 2 "needs --source ID" run bfs --data that.is.not.there # told before a large graph is read
refused 2 "no such vertex" run bfs --data snap --source 77
if "$PLAIT" graph run bfs --data letter --source 1 --out no/such/file >said 2>err; then fail "it has written to no/such/file"; fi
says err "no/such/file: cannot be written: No such file or directory; make its directory first" || fail "--out is looked at late: $(cat err)"
refused 1 "nowhere: No such file" run gcn --data letter --features nowhere --split snap # told before the graph is read
refused 2 "components has no --source" run components --data snap --source 1
refused 2 "--data EDGES is missing" run bfs --source 1
refused 2 "--scope edge needs --engine async" run bfs --data snap --source 1 --scope edge
refused 2 "--order sweep needs --engine async" run bfs --data snap --source 1 --order sweep
refused 2 "the checkpoint is of 'graph run pagerank" run sssp --data big --source 0 --resume kept
refused 2 "damping 0.85, graph" run pagerank --data big --resume kept --damping 0.9
works other train --data part --optimizer sgd --epochs 1 --checkpoint of_train --checkpoint-every 1 --quiet
refused 2 "the checkpoint is of no graph run; is it one of train" run sssp --data big --source 0 --resume of_train
refused 2 "components has no --checkpoint" run components --data snap --checkpoint there
refused 2 "--checkpoint-every needs --checkpoint" run sssp --data snap --source 1 --checkpoint-every 3
refused 2 "strong has no --engine async" run strong --data snap --engine async
refused 2 "labels has no --engine async: what it comes to depends on supersteps" run labels --data snap --engine async
refused 2 "labels has no --checkpoint: it works on a worker's whole part at once" run labels --data snap --checkpoint there
refused 2 "update over a vertex cut is refused" run kcore --data snap --workers 2 --topology ps --replicas 2 --partition hdrf
refused 2 "reads values under locks" run bfs --data snap --source 1 --engine async --consistency ssp:2
refused 2 "engine async over a vertex cut" run bfs --data snap --source 1 --engine async --partition hdrf --workers 2
refused 2 "whole clocks" run pagerank --data snap --workers 2 --topology ps --consistency ssp:2 --partition hdrf
refused 2 "bfs has no use for --damping: it is pagerank's" run bfs --data snap --source 1 --damping 0.5
refused 2 "triangles has no use for --supersteps: it takes one" run triangles --data snap --supersteps 3
refused 2 "strong has no use for --supersteps: what it has found before its end are no components" run strong --data snap --supersteps 3
refused 2 "--source 'x' is no id" run bfs --data snap --source x
refused 2 "exact sums over a vertex cut" run pagerank --data snap --workers 2 --topology ps --partition hdrf --reduce exact
refused 2 "its workers share the only copy" run pagerank --data snap --workers 2 --replicas 2
refused 2 "there are three replicas at most" run pagerank --data snap --workers 4 --topology ps --replicas 4
refused 2 "replicas 2 with ssp:2 over ps is refused" run sssp --data snap --source 1 --workers 2 --topology ps --replicas 2 --consistency ssp:2
refused 2 "checkpoints of engine async with replicas 2" run bfs --data snap --source 1 --workers 2 --topology ps --replicas 2 --engine async --checkpoint there
head -n 20 rows >tiny
head -n 20 split >tiny.split
head -n 200 rows >short
refused 2 "gcn needs --features FILE" run gcn --data joined
refused 2 "bfs has no --features" run bfs --data snap --source 1 --features rows
sed '7s/.*/tset/' split >typo
refused 1 "typo:7: 'tset'; did you mean 'test'" run gcn --data joined --features rows --split typo
refused 1 "240 lines for 200 rows" run gcn --data joined --features short --split split
refused 1 "and the graph has the id 30" run gcn --data heavy --features tiny --split tiny.split
refused 1 "no line says 'train'" run gcn --data joined --features rows --split rows
refused 2 "labels: the cut 'hdrf' is refused" run labels --data tail --workers 2 --topology ps --partition hdrf
refused 2 "needs whole clocks" run kcore --data tail --workers 2 --topology ps --consistency async
refused 2 "--data is given 2 times" run components --data snap --data heavy
refused 2 "say one program" run
refused 2 "belongs to 'plait graph place'" run bfs --data snap --source 1 --ranks 3
refused 2 "belongs to 'plait graph run'" place net.json --ranks 2 --damping 0.5
refused 2 "did you mean 'run'?" rum bfs
finish
