/* Cuts a graph by METIS: it is made coarser by matching neighbours, cut while it is small, and refined on the way back
 * (Karypis and Kumar, "A Fast and High Quality Multilevel Scheme for Partitioning Irregular Graphs", SIAM J. Sci.
 * Comput. 1998). METIS draws from the C library's rand, which is the process's: a lock keeps callers apart, and each
 * call sets the seed. */
#include <metis.h>
#include <pthread.h>

#include "base/cutter.h"

_Static_assert(sizeof(idx_t) == sizeof(int32_t), "METIS of 32-bit numbers");
_Static_assert(sizeof(real_t) == sizeof(float), "METIS of 32-bit shares");

enum { FEW_PARTS = 8 }; /* up to here METIS' manual wants recursive bisection */

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

/* METIS takes what it only reads without const. */
static void *lent(const void *memory) { return (void *)(uintptr_t)memory; }

static bool cut(const pli_cut_graph *g, int32_t parts, const float *share, uint32_t seed, int32_t *part) {
    idx_t n = g->n, constraints = g->constraints, wanted = parts, edges_cut = 0, options[METIS_NOPTIONS];
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = (idx_t)(seed & INT32_MAX);
    options[METIS_OPTION_NUMBERING] = 0;
    pthread_mutex_lock(&one_at_a_time);
    const int how = (parts <= FEW_PARTS ? METIS_PartGraphRecursive : METIS_PartGraphKway)(
        &n, &constraints, lent(g->first), lent(g->to), lent(g->weight), NULL, lent(g->edge), &wanted, lent(share), NULL,
        options, &edges_cut, part);
    pthread_mutex_unlock(&one_at_a_time);
    return how == METIS_OK;
}

static const pli_cutter cutter = { .abi = PLI_CUTTER_ABI, .cut = cut };

__attribute__((visibility("default"))) const void *plait_cutter_module(void);
const void                                        *plait_cutter_module(void) { return &cutter; }
