/* Adjacency lists, as PowerGraph and Giraph read them: a line is FROM N TO_1 ... TO_N; comments begin with # or %. */
#include "data/edges/edges.h"
#include "data/edges/scan.h"

plait_status pli_edges_adjacency(pli_scan *s, pli_edge_list *list) {
    pli_scan_jump(s);
    while (pli_scan_line(s, "#%")) {
        uint64_t from, n, to;
        PLI_TRY(pli_scan_u64(s, &from));
        PLI_TRY(pli_scan_u64(s, &n));
        for (uint64_t i = 0; i < n; i++) {
            if (pli_scan_at_end(s)) return pli_scan_bad(s, "the line has fewer neighbors than it says");
            PLI_TRY(pli_scan_u64(s, &to));
            PLI_TRY(pli_edge_list_add(s, list, from, to, false, 1));
        }
        if (!pli_scan_at_end(s)) return pli_scan_bad(s, "the line has more neighbors than it says");
    }
    return PLAIT_OK;
}
