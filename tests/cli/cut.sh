#!/bin/sh
# A link that is cut between two hosts: network namespaces with a host name each, under one mpirun, whose agent enters
# the second one. Both sides must name the other within 10 s and end; launch starts the run again when the link is back,
# and it ends with the bits of the run in which nothing was cut. Needs root and namespaces.
# With two replicas only a majority may go on. Of four ranks, {0, 2} and {1, 3} each hold a replica of every shard: both
# sides must stop, by name and with exit code 3, before anything else is acknowledged.
# usage: cut.sh MPIRUN RUNS
. "$(dirname "$0")/common.sh"
real=$1 runs=$2
[ -z "${PLAIT_TEST_FULL:-}" ] || runs=20
[ "$(id -u)" -eq 0 ] || skip "namespaces need root"
for tool in ip nsenter unshare; do command -v $tool >/dev/null || skip "there is no $tool"; done
one=plait-$$-a two=plait-$$-b
ip netns add $one 2>/dev/null || skip "network namespaces may not be made here"
ip netns add $two
undo() {
    ip netns del $one
    ip netns del $two
    rm -rf "$scratch"
}
trap undo EXIT
ip link add pa$$ netns $one type veth peer name pb$$ netns $two 2>/dev/null || skip "links between namespaces may not be made here"
ip -n $one addr add 10.213.7.1/24 dev pa$$
ip -n $two addr add 10.213.7.2/24 dev pb$$
for host in "$one pa$$" "$two pb$$"; do
    ip -n ${host% *} link set lo up
    ip -n ${host% *} link set ${host#* } up
done
# on HOST NAMESPACE words...
on() {
    host=$1 space=$2
    shift 2
    # shellcheck disable=SC2016
    nsenter --net=/var/run/netns/$space unshare -u sh -c 'hostname "$1"; shift; exec "$@"' sh "$host" "$@"
}

prefix=$(cd "$(dirname "$real")/.." && pwd)
cat >agent <<EOF
#!/bin/sh
# HOST COMMAND...: what ssh would do
shift
export OPAL_PREFIX=$prefix PRTE_PREFIX=$prefix PMIX_PREFIX=$prefix
export PATH=$prefix/bin:\$PATH
exec nsenter --net=/var/run/netns/$two unshare -u sh -c 'hostname hostb; eval "\$*"' sh "\$@"
EOF
cat >mpirun <<EOF
#!/bin/sh
exec $real --map-by node:oversubscribe --prtemca plm_ssh_agent $scratch/agent --mca btl_tcp_if_include 10.213.7.0/24 "\$@"
EOF
# What a rank says would come over the link that is cut.
cat >ranks <<EOF
#!/bin/sh
exec "$PLAIT" "\$@" 2>>$scratch/side.\$OMPI_COMM_WORLD_RANK
EOF
cat >coded <<EOF
#!/bin/sh
"$PLAIT" "\$@" 2>>$scratch/side.\$OMPI_COMM_WORLD_RANK
code=\$?
echo \$code >$scratch/code.\$OMPI_COMM_WORLD_RANK
exit \$code
EOF
chmod +x agent mpirun ranks coded
PLAIT_MPIRUN=$scratch/mpirun
export PLAIT_MPIRUN

hosts=10.213.7.1:1,10.213.7.2:2
train="train --data $scratch/part --batch 20 --reduce exact --schedule constant --topology ps --json --quiet"
# shellcheck disable=SC2086
on hosta $one "$PLAIT" launch -n 3 --hosts "$hosts" -- "$scratch/ranks" $train --epochs 3000 --out "$scratch/model" >straight.out 2>straight.err ||
    { fail "no run over two hosts"; cat straight.err side.*; finish; }
want=$(field straight model_hash)

reaches() { says m "\"epoch\": $1[,}]"; }
pid_of() { sed -n 's/.*"rank": '"$1"', .*"pid": \([0-9]*\).*/\1/p' ms | head -n 1; }
# Ranks 0 and 2 are on hosta, where the lower one speaks for both, and rank 1 on hostb; and none of them is left.
named() {
    says side.0 'rank 1 on host hostb has not been heard' && says side.1 'rank [02] on host hosta has not been heard' &&
        gone "$(pid_of 0)" && gone "$(pid_of 1)" && gone "$(pid_of 2)"
}
n=0
while [ $n -lt "$runs" ]; do
    n=$((n + 1))
    rm -rf d m model model.done side.*
    # shellcheck disable=SC2086
    on hosta $one "$PLAIT" launch -n 3 --hosts "$hosts" --max-restarts 2 -- "$scratch/ranks" $train --epochs 3000 --out "$scratch/model" \
        --metrics "$scratch/m" --checkpoint "$scratch/d" --checkpoint-every 100 >out 2>err &
    pid=$!
    until_holds 300 reaches $((5 + n)) || { fail "run $n does not begin"; cat err side.*; }
    head -n 3 m >ms
    [ "$(grep -c '"hosta"' ms)" -eq 2 ] || fail "run $n is not on two hosts: $(cat ms)"
    ip -n $one link set pa$$ down
    until_holds 10 named || { fail "run $n: not named on every side within 10 s"; cat err; tail -n 3 side.*; }
    ip -n $one link set pa$$ up
    until_holds 120 gone $pid || { fail "run $n does not end"; kill -9 $pid; }
    code=0
    wait $pid || code=$?
    hash=$(sed -n 's/.*"model_hash": "\([0-9a-f]*\)".*/\1/p' out)
    [ $code -eq 0 ] && [ -s model.done ] && [ "$hash" = "$want" ] || { fail "run $n: exit $code"; cat err; tail -n 3 side.*; }
    grep -q 'restart 1 of 2' err || fail "run $n was not restarted"
done
echo "$n cut links"

# replicated RANKS OPTIONS...: begins a run with two replicas over both hosts, and cuts the link in its midst
replicated() {
    ranks=$1
    shift
    rm -rf d m model model.done side.* code.*
    # shellcheck disable=SC2086
    on hosta $one "$PLAIT" launch -n "$ranks" --hosts 10.213.7.1:2,10.213.7.2:2 -- "$scratch/coded" $train --replicas 2 "$@" \
        --out "$scratch/model" --metrics "$scratch/m" >out 2>err &
    pid=$!
    until_holds 300 reaches 5 || { fail "$ranks ranks: no beginning"; cat err side.*; }
    ip -n $one link set pa$$ down
}
# stopped RANK OTHER: it has ended with 3, and says that it hears the other of its side, or nobody if that has ended before
stopped() {
    [ "$(cat code."$1" 2>/dev/null)" = 3 ] &&
        says side."$1" "rank $1 stops: of the 4 ranks of view 1 it hears \(rank $2\|nobody\), and only a majority, 3 of them"
}
all_stopped() { stopped 0 2 && stopped 2 0 && stopped 1 3 && stopped 3 1; }
ends() {
    ip -n $one link set pa$$ up
    until_holds 120 gone $pid || { fail "$ranks ranks: no end"; kill -9 $pid; }
    code=0
    wait $pid || code=$?
}
replicated 4 --epochs 300000
until_holds 40 all_stopped || { fail "{0, 2} and {1, 3}: somebody goes on"; tail -n 3 code.* side.* err; }
ends
[ $code -eq 3 ] && [ ! -e model.done ] || { fail "{0, 2} and {1, 3}: exit $code"; cat err; }
finish
