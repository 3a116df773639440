#!/bin/sh
# The build itself refuses a room that uses a higher room, itself, or one that is not there.
# usage: rooms.sh ROOT CMAKE
set -eu
. "$(dirname "$0")/common.sh"
root=$(cd "$1" && pwd) cmake=$2

# configures NAME CALL: does a project with the rooms base and comm and this call configure?
configures() {
    mkdir -p "$work/$1/src/base" "$work/$1/src/comm" "$work/$1/src/cli"
    cat >"$work/$1/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.22)
project(rooms LANGUAGES NONE)
set(PLAIT_ROOMS base comm cli)
set(CMAKE_INSTALL_FULL_BINDIR /usr/bin)
set(CMAKE_INSTALL_FULL_LIBDIR /usr/lib)
include($root/cmake/PlaitRoom.cmake)
$2
END
    "$cmake" -S "$work/$1" -B "$work/$1/build" >"$work/said" 2>&1
}

# refuses NAME TEXT CALL: it must not configure, and say TEXT
refuses() {
    if configures "$1" "$3"; then
        violation "the build allows $3"
    elif ! tr -s ' \n' ' ' <"$work/said" | grep -q "$2"; then
        violation "the build refuses $3 without saying '$2'"
        cat "$work/said"
    fi
}

configures down 'plait_check_uses(comm base)' || {
    violation "the build refuses a room that uses a lower one"
    cat "$work/said"
}
refuses up 'calls go down only' 'plait_check_uses(base comm)'
refuses self 'calls go down only' 'plait_check_uses(base base)'
refuses unknown 'uses bsae, which is no room' 'plait_check_uses(comm bsae)'
refuses strange 'attic is no room' 'plait_check_uses(attic base)'
verdict "5 projects"
