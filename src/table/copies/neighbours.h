/* table/copies/neighbours.h - who averages with whom: graphs over the workers, as pure functions.
 *
 *     ring    the two beside one                                     averages travel W / 2 rounds
 *     torus   the four beside one in a grid of rows x columns, the most nearly square that W allows (a prime's is a
 *             ring)
 *     exp     in round r the one 2^(r mod L) further on, L = ceil(log2 W): one copy a round, and of a W that is a power
 *             of two all copies are equal after L rounds
 *
 * In a round every worker sends to as many as it receives from, the same number k for all, and averages with equal
 * weights 1 / (k + 1): the matrix of weights is doubly stochastic, so the average over all workers stays what it was.
 *
 * Papers: Lian et al., "Can Decentralized Algorithms Outperform Centralized Algorithms?", NeurIPS 2017 (D-PSGD on a
 * ring); Ying et al., "Exponential Graph is Provably Efficient for Decentralized Deep Training", NeurIPS 2021 (one peer
 * a round). */
#ifndef PLI_TABLE_NEIGHBOURS_H
#define PLI_TABLE_NEIGHBOURS_H

#include <stdint.h>

/* In the order of the topology's words (topology/topologies.c). */
typedef enum pli_graph { PLI_RING, PLI_TORUS, PLI_EXP, PLI_GRAPHS } pli_graph;

enum { PLI_NEIGHBOURS_MAX = 32 };

/* Who averages: worker [n], in increasing order; NULL: 0 .. n - 1. The graph is one over their places in that order. So
 * when a worker dies, the others are closer together, each graph of them is connected, and its matrix is doubly
 * stochastic: the two beside a dead one in a ring are neighbours then. */
typedef struct pli_among {
    int32_t        n;
    const int32_t *worker;
} pli_among;

/** As pli_neighbours_to, _from, _next, _ever_to and _ever_from, among these. `worker` is one of them. */
int32_t pli_among_to(pli_graph graph, const pli_among *among, int32_t worker, int64_t round, int32_t *to);
int32_t pli_among_from(pli_graph graph, const pli_among *among, int32_t worker, int64_t round, int32_t *from);
int32_t pli_among_next(pli_graph graph, const pli_among *among, int32_t worker, int64_t round);
int32_t pli_among_ever_to(pli_graph graph, const pli_among *among, int32_t worker, int32_t *to);
int32_t pli_among_ever_from(pli_graph graph, const pli_among *among, int32_t worker, int32_t *from);

/** The workers to whom `worker` sends in a round, in increasing order; returns how many. It averages with each of
 *  them. */
int32_t pli_neighbours_to(pli_graph graph, int32_t workers, int32_t worker, int64_t round, int32_t *to);
/** The workers from whom it receives in that round. */
int32_t pli_neighbours_from(pli_graph graph, int32_t workers, int32_t worker, int64_t round, int32_t *from);

/** The one worker to whom it sends in a round where each sends one copy: its neighbours take turns. -1: there is no
 *  other worker. */
int32_t pli_neighbours_next(pli_graph graph, int32_t workers, int32_t worker, int64_t round);
/** All workers to whom it ever sends, and all from whom it ever receives. */
int32_t pli_neighbours_ever_to(pli_graph graph, int32_t workers, int32_t worker, int32_t *to);
int32_t pli_neighbours_ever_from(pli_graph graph, int32_t workers, int32_t worker, int32_t *from);

#endif
