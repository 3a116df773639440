# mpirun.sh MPIRUN N PROGRAM ARGUMENT...: starts N processes on this machine, however few cores it has, also as root.
mpirun=$1
n=$2
shift 2
if "$mpirun" --version 2>&1 | grep -q 'Open MPI'; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_mpi_yield_when_idle=1
    exec "$mpirun" --map-by :OVERSUBSCRIBE --bind-to none -n "$n" "$@"
fi
exec "$mpirun" -n "$n" "$@"
