/* Feeds any bytes as a file of priors: what is accepted has two labels or more, and for each vertex a label that is
 * possible. */
#include <math.h>
#include <stdlib.h>

#include "vertex/beliefs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint64_t from[] = { 1, 2, 3, 7 }, to[] = { 2, 3, 1, UINT64_MAX };
    plait_edges *edges = NULL;
    pli_beliefs  b = { 0 };
    plait_error  err;
    char        *copy = pli_malloc(size > 0 ? size : 1); /* of its own, so that a read beyond it is seen */
    if (copy == NULL || plait_edges_from_memory(4, from, to, NULL, NULL, &edges, &err) < 0) abort();
    memcpy(copy, data, size);
    if (pli_beliefs_parse("fuzzed", copy, size, edges, &b, &err) == PLAIT_OK) {
        if (b.labels < 2 || b.labels > PLI_BELIEF_LABELS) abort();
        for (int64_t v = 0; v < plait_edges_vertices(edges); v++) {
            bool possible = false;
            for (int32_t i = 0; i < b.labels; i++) {
                const double prior = b.prior[v * b.labels + i];
                if (isnan(prior) || prior > 1000) abort();
                possible = possible || isfinite(prior);
            }
            if (!possible) abort();
        }
    }
    pli_free(b.prior);
    pli_free(copy);
    plait_edges_destroy(&edges);
    return 0;
}
