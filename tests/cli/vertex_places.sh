#!/bin/sh
# plait graph run: each program gives what it gives with one worker, whatever carries its messages and however many share it:
# threads, simulated ranks, processes; 2, 4 and 8 workers; each partition that the program takes (metis where its module is);
# superstep by superstep, and by the asynchronous engine where there is one. To the bit, and ranks over a vertex cut, and fixed
# points of the asynchronous engine, within 1e-9. Processes take the partition range and one more, another for each program; under
# PLAIT_TEST_FULL every partition and 8 processes, and simulated ranks and processes every scope of locks. What one worker gives is
# compared with plain loops in vertex.programs, direct, beliefs and als, and by bench/vertex --places with other programs' results.
# usage: vertex_places.sh TRANSPORT...      threads, sim, or the path of mpirun: processes
. "$(dirname "$0")/common.sh"
case $1 in */*) PLAIT_MPIRUN=$1 && export PLAIT_MPIRUN && set -- mpi ;; esac
metis=
if "$PLAIT" version --json | grep -q '"metis": {"found": true'; then metis=metis; else echo "skipped: cuts by metis, whose module is not there"; fi

awk 'BEGIN { srand(4); for (k = 0; k < 3000; k++) print int(500 * rand() * rand()), int(500 * rand()), 1 + int(5 * rand()) }' >big
awk 'BEGIN { srand(6); G = 12
    for (i = 0; i < G; i++) for (j = 0; j < G; j++) { v = G * i + j
        if (j + 1 < G) print v, v + 1 >"grid"
        if (i + 1 < G) print v, v + G >"grid"
        p = 0.3 + 0.4 * rand(); print v, p, 1 - p >"priors" } }'
awk 'BEGIN { srand(2); for (u = 0; u < 90; u++) for (i = u % 3; i < 40; i += 3) printf "%d %d %.1f\n", 1000 + u, 5000 + i, 1 + 4 * rand() }' >rated
awk 'BEGIN { srand(5); for (v = 0; v < 60; v++) { print v % 2, 1 + v % 2 ":1", 3 + int(4 * rand()) ":1" >"rows"; print v < 20 ? "train" : v < 40 ? "val" : "test" >"split"
             print v, (v + 2) % 60 >"joined"; print v, int(60 * rand()) >"joined" } }'

options() { # of a program, as it comes to rest
    case $1 in
    pagerank) echo --data big --tolerance 1e-14 ;;
    bfs | sssp) echo --data big --source 0 ;;
    beliefs) echo --data grid --priors priors --smoothing 0.4 --tolerance 1e-13 ;;
    als) echo --data rated --components 3 --l2 0.1 --supersteps 8 ;;
    gcn) echo --data joined --features rows --split split --supersteps 12 --reduce exact ;;
    *) echo --data big ;;
    esac
}
cuts() { # the partitions that a program takes
    case $1 in
    pagerank | components | strong | bfs | sssp | kcore) echo range random grid oblivious hdrf $metis ;;
    *) echo range ;;
    esac
}
drawn() { # one more partition for processes: each has its turn
    case $1 in
    pagerank) echo ${metis:-hdrf} ;;
    components) echo hdrf ;;
    strong) echo oblivious ;;
    bfs) echo grid ;;
    sssp) echo random ;;
    kcore) echo ${metis:-grid} ;;
    esac
}
near() { # NEAR A B: every column of both, where both are numbers
    paste "$1" "$2" | awk '{ for (i = 1; i <= NF / 2; i++) { d = $i - $(i + NF / 2); if (d > 1e-9 || d < -1e-9) exit 1 } }'
}
same() { # same PROGRAM CUT ENGINE
    if [ "$3" = async ] || { [ "$1" = pagerank ] && [ "$2" != range ]; }; then near one many.out; else cmp -s one many.out; fi
}
launched='2 4'
if [ -n "${PLAIT_TEST_FULL:-}" ]; then launched='2 4 8'; fi
count=0
# place PROGRAM TRANSPORT WORKERS CUT ENGINE...
place() {
    program=$1 transport=$2 workers=$3 cut=$4 engine=$5
    shift 5
    count=$((count + 1))
    # shellcheck disable=SC2046
    set -- graph run "$program" $(options "$program") --topology ps --partition "$cut" --engine "$engine" --quiet "$@"
    case $transport in
    mpi) "$PLAIT" launch -n "$workers" -- "$PLAIT" "$@" >many.out 2>many.err ;;
    *) "$PLAIT" "$@" --transport "$transport" --workers "$workers" >many.out 2>many.err ;;
    esac || fail "$program, $transport, $workers workers, $cut, $engine: $(cat many.err)"
    same "$program" "$cut" "$engine" || fail "$program, $transport, $workers workers, $cut, $engine: other values"
}
for program in pagerank components strong bfs sssp triangles clustering kcore coloring labels gcn beliefs als; do
    # shellcheck disable=SC2046
    works one graph run $program $(options $program) --quiet
    mv one.out one
    for transport; do
        case $transport in
        threads) for workers in 2 4 8; do for cut in $(cuts $program); do place $program threads $workers "$cut" sync; done; done ;;
        sim) for workers in 2 4 8; do for cut in $(cuts $program); do place $program sim $workers "$cut" sync; done; done ;;
        mpi)
            for workers in $launched; do
                if [ -n "${PLAIT_TEST_FULL:-}" ]; then taken=$(cuts $program); else taken=range; fi
                for cut in $taken; do place $program mpi "$workers" "$cut" sync; done
            done
            [ -n "${PLAIT_TEST_FULL:-}" ] || for cut in $(drawn $program); do place $program mpi 4 "$cut" sync; done
            ;;
        esac
        # As an engine runs it where a worker may die.
        case $program-$transport in kcore-sim | coloring-sim | labels-sim) place $program sim 3 range sync --replicas 2 ;; esac
        case $program in pagerank | components | bfs | sssp | kcore | coloring | beliefs) ;; *) continue ;; esac
        for scope in vertex edge full; do
            place $program "$transport" 4 range async --scope $scope
            [ "$transport" = threads ] || [ -n "${PLAIT_TEST_FULL:-}" ] || break
        done
    done
done
echo "$count runs"
finish
