/* Feeds any bytes as a graph's file in each format: an edge that is accepted lies within what the file promises. The
 * first byte chooses the format. */
#include <stdlib.h>

#include "data/edges/edges.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const formats[] = { "auto", "snap", "matrix-market", "metis", "adjacency" };
    pli_edge_list list;
    plait_error   err;
    if (size == 0) return 0;
    const char *format = formats[data[0] % 5];
    char       *copy = pli_malloc(size); /* of its own, so that a read beyond it is seen */
    if (copy == NULL) return 0;
    memcpy(copy, data + 1, size - 1);
    if (pli_edge_list_parse("fuzzed", copy, size - 1, format, &list, &err) == PLAIT_OK) {
        for (int64_t k = 0; k < list.n; k++) {
            const bool inside = list.vertices < 0 || (list.from[k] >= 1 && list.to[k] >= 1 &&
                                                      list.from[k] <= (uint64_t)list.vertices &&
                                                      list.to[k] <= (uint64_t)list.vertices);
            if (!inside || (list.weight != NULL && list.weight[k] - list.weight[k] != 0)) abort();
        }
        pli_edge_list_free(&list);
    }
    pli_free(copy);
    return 0;
}
