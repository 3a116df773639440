/* SNAP's edge lists (snap.stanford.edu/data): a line is FROM TO, or FROM TO WEIGHT, between them blanks, tabs or
 * commas; lines that begin with # or % are comments. All lines have a weight, or none has. */
#include "data/edges/edges.h"
#include "data/edges/scan.h"

/* A reader of a piece looks at the file's first edge: has it a weight? */
static plait_status look(pli_scan s, bool *known, bool *weighted) {
    uint64_t end;
    if (s.piece == NULL || !pli_scan_line(&s, "#%")) return PLAIT_OK;
    PLI_TRY(pli_scan_u64(&s, &end));
    PLI_TRY(pli_scan_u64(&s, &end));
    *known = true;
    *weighted = !pli_scan_at_end(&s);
    return PLAIT_OK;
}

plait_status pli_edges_snap(pli_scan *s, pli_edge_list *list) {
    bool known = false, weighted = false;
    PLI_TRY(look(*s, &known, &weighted));
    pli_scan_jump(s);
    while (pli_scan_line(s, "#%")) {
        uint64_t from, to;
        float    weight = 1;
        PLI_TRY(pli_scan_u64(s, &from));
        PLI_TRY(pli_scan_u64(s, &to));
        const bool more = !pli_scan_at_end(s);
        if (known && more != weighted)
            return pli_scan_bad(s, more ? "a weight, but the lines before have none" : "expected a weight, as before");
        known = true;
        weighted = more;
        if (more) PLI_TRY(pli_scan_f32(s, &weight));
        if (!pli_scan_at_end(s)) return pli_scan_bad(s, "expected the end of the line behind FROM TO WEIGHT");
        PLI_TRY(pli_edge_list_add(s, list, from, to, weighted, weight));
    }
    return PLAIT_OK;
}
