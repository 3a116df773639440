#!/bin/sh
# Runs mpirun with a new folder for its files. By itself it takes ompi.PID below /tmp, and refuses to start where a killed
# mpirun with the same process number has left one ("The PMIx server's listener thread failed to start").
# usage: mpirun.sh MPIRUN word...
set -u
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
PRTE_MCA_prte_local_tmpdir_base=$folder "$@"
