#!/bin/sh
# libplait itself needs the C library, POSIX threads, BLAS, zlib, zstd, xxhash, jansson and libcyaml, and nothing else.
# usage: needed.sh LIBRARY
set -eu
. "$(dirname "$0")/common.sh"

readelf -d "$1" | awk '/NEEDED/ { gsub(/[][]/, "", $NF); print $NF }' >"$work/needed"
while read -r name; do
    case $name in
    libc.so.* | libm.so.* | libpthread.so.* | libdl.so.* | librt.so.* | ld-linux* | libgcc_s.so.*) ;;
    libopenblas*.so.* | libblas.so.* | libcblas.so.* | libz.so.* | libzstd.so.* | libxxhash.so.*) ;;
    libjansson.so.* | libcyaml.so.* | libyaml-*.so.*) ;;
    *) violation "$1 needs $name: what is optional is a module" ;;
    esac
done <"$work/needed"
readelf -d "$1" | grep -q 'SONAME.*\[libplait\.so\.0\]' || violation "$1: the SONAME is not libplait.so.0"
verdict "$(wc -l <"$work/needed") libraries"
