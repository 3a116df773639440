/* See neighbours.h. */
#include "table/copies/neighbours.h"

#include <stdbool.h>
#include <stddef.h>

/* Inserts a worker in order, unless it is there already or is the worker itself. */
static int32_t insert(int32_t *list, int32_t n, int32_t worker, int64_t other) {
    int32_t at = n;
    for (int32_t i = 0; i < n; i++)
        if (list[i] == other) return n;
    if (other == worker) return n;
    for (; at > 0 && list[at - 1] > other; at--) list[at] = list[at - 1];
    list[at] = (int32_t)other;
    return n + 1;
}

static int64_t wrapped(int64_t worker, int32_t workers) { return ((worker % workers) + workers) % workers; }

/* The largest divisor that is at most the square root. */
static int32_t rows_of(int32_t workers) {
    int32_t rows = 1;
    for (int32_t r = 2; (int64_t)r * r <= workers; r++)
        if (workers % r == 0) rows = r;
    return rows;
}

static int32_t hops_of(int32_t workers) {
    int32_t hops = 0;
    while (((int64_t)1 << hops) < workers) hops++;
    return hops;
}

static int32_t beside(pli_graph graph, int32_t workers, int32_t worker, int32_t *list) {
    int32_t n = 0, rows = graph == PLI_TORUS ? rows_of(workers) : 1, columns = workers / rows;
    int32_t row = worker / columns, column = worker % columns;
    n = insert(list, n, worker, (int64_t)row * columns + wrapped(column + 1, columns));
    n = insert(list, n, worker, (int64_t)row * columns + wrapped(column - 1, columns));
    n = insert(list, n, worker, wrapped(row + 1, rows) * columns + column);
    return insert(list, n, worker, wrapped(row - 1, rows) * columns + column);
}

/* sign 1: the workers further on; -1: those before. first, hops: for which rounds. */
static int32_t hopped(int32_t workers, int32_t worker, int sign, int32_t first, int32_t hops, int32_t *list) {
    int32_t n = 0;
    for (int32_t h = first; h < first + hops; h++)
        n = insert(list, n, worker, wrapped(worker + sign * ((int64_t)1 << h), workers));
    return n;
}

static int32_t in_round(pli_graph graph, int32_t workers, int32_t worker, int64_t round, int sign, int32_t *list) {
    if (workers < 2) return 0;
    if (graph != PLI_EXP) return beside(graph, workers, worker, list);
    return hopped(workers, worker, sign, (int32_t)(round % hops_of(workers)), 1, list);
}

static int32_t ever(pli_graph graph, int32_t workers, int32_t worker, int sign, int32_t *list) {
    if (workers < 2) return 0;
    if (graph != PLI_EXP) return beside(graph, workers, worker, list);
    return hopped(workers, worker, sign, 0, hops_of(workers), list);
}

int32_t pli_neighbours_to(pli_graph graph, int32_t workers, int32_t worker, int64_t round, int32_t *to) {
    return in_round(graph, workers, worker, round, 1, to);
}

int32_t pli_neighbours_from(pli_graph graph, int32_t workers, int32_t worker, int64_t round, int32_t *from) {
    return in_round(graph, workers, worker, round, -1, from);
}

int32_t pli_neighbours_next(pli_graph graph, int32_t workers, int32_t worker, int64_t round) {
    int32_t list[PLI_NEIGHBOURS_MAX], n = in_round(graph, workers, worker, round, 1, list);
    return n == 0 ? -1 : list[graph == PLI_EXP ? 0 : round % n];
}

int32_t pli_neighbours_ever_to(pli_graph graph, int32_t workers, int32_t worker, int32_t *to) {
    return ever(graph, workers, worker, 1, to);
}

int32_t pli_neighbours_ever_from(pli_graph graph, int32_t workers, int32_t worker, int32_t *from) {
    return ever(graph, workers, worker, -1, from);
}

/* --- among those who live ----------------------------------------------------------------------------------------- */

static int32_t place_of(const pli_among *among, int32_t worker) {
    int32_t place = 0;
    while (among->worker != NULL && among->worker[place] != worker) place++;
    return among->worker != NULL ? place : worker;
}

/* Makes workers of places. */
static int32_t named(const pli_among *among, int32_t n, int32_t *list) {
    for (int32_t i = 0; among->worker != NULL && i < n; i++) list[i] = among->worker[list[i]];
    return n;
}

int32_t pli_among_to(pli_graph graph, const pli_among *among, int32_t worker, int64_t round, int32_t *to) {
    return named(among, in_round(graph, among->n, place_of(among, worker), round, 1, to), to);
}

int32_t pli_among_from(pli_graph graph, const pli_among *among, int32_t worker, int64_t round, int32_t *from) {
    return named(among, in_round(graph, among->n, place_of(among, worker), round, -1, from), from);
}

int32_t pli_among_next(pli_graph graph, const pli_among *among, int32_t worker, int64_t round) {
    int32_t next = pli_neighbours_next(graph, among->n, place_of(among, worker), round);
    return next < 0 || among->worker == NULL ? next : among->worker[next];
}

int32_t pli_among_ever_to(pli_graph graph, const pli_among *among, int32_t worker, int32_t *to) {
    return named(among, ever(graph, among->n, place_of(among, worker), 1, to), to);
}

int32_t pli_among_ever_from(pli_graph graph, const pli_among *among, int32_t worker, int32_t *from) {
    return named(among, ever(graph, among->n, place_of(among, worker), -1, from), from);
}
