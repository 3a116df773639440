/* Matrix Market's coordinate form (Boisvert, Pozo, Remington, "The Matrix Market Exchange Formats", NIST 1996): a
 * banner, comments, a line ROWS COLUMNS ENTRIES, and a line I J [VALUE] for each entry, counted from 1. Entry (i, j) is
 * an edge from i to j. A symmetric matrix lists each edge once. */
#include <strings.h>

#include "data/edges/edges.h"
#include "data/edges/scan.h"

/* The words of the banner, in lower case as strcasecmp sees them. */
static bool banner_says(const pli_scan *s, const char *word) {
    const unsigned char *newline = memchr(s->at, '\n', (size_t)(s->end - s->at));
    const size_t         line = (size_t)((newline != NULL ? newline : s->end) - s->at), n = strlen(word);
    for (size_t i = 0; i + n <= line; i++)
        if (strncasecmp((const char *)s->at + i, word, n) == 0) return true;
    return false;
}

static plait_status read_entry(pli_scan *s, pli_edge_list *list, bool weighted) {
    uint64_t from, to;
    float    weight = 1;
    PLI_TRY(pli_scan_u64(s, &from));
    PLI_TRY(pli_scan_u64(s, &to));
    const uint64_t most = (uint64_t)list->vertices;
    if (from < 1 || to < 1 || from > most || to > most)
        return pli_fail(s->err, PLAIT_EFORMAT, "%s:%" PRId64 ": entry %" PRIu64 " %" PRIu64 " lies outside of the "
                        "matrix, which has %" PRIu64 " rows", s->name, pli_scan_line_of(s), from, to, most);
    if (weighted) PLI_TRY(pli_scan_f32(s, &weight));
    if (!pli_scan_at_end(s)) return pli_scan_bad(s, "expected the end of the line behind the entry");
    return pli_edge_list_add(s, list, from, to, weighted, weight);
}

plait_status pli_edges_matrix(pli_scan *s, pli_edge_list *list) {
    if (!banner_says(s, "coordinate"))
        return pli_scan_bad(s, "a graph is a matrix in coordinate form, '%%MatrixMarket matrix coordinate ...'");
    if (banner_says(s, "complex")) return pli_scan_bad(s, "complex values are no weights");
    if (banner_says(s, "skew-symmetric") || banner_says(s, "hermitian"))
        return pli_scan_bad(s, "expected a general or a symmetric matrix");
    const bool weighted = !banner_says(s, "pattern");
    list->undirected = banner_says(s, "symmetric");
    uint64_t rows, columns, entries;
    if (!pli_scan_line(s, "%")) return pli_scan_bad(s, "expected a line ROWS COLUMNS ENTRIES");
    PLI_TRY(pli_scan_u64(s, &rows));
    PLI_TRY(pli_scan_u64(s, &columns));
    PLI_TRY(pli_scan_u64(s, &entries));
    if (rows != columns)
        return pli_fail(s->err, PLAIT_EFORMAT, "%s:%" PRId64 ": a graph's matrix has as many rows as columns, and this "
                        "one has %" PRIu64 " and %" PRIu64, s->name, pli_scan_line_of(s), rows, columns);
    if (rows > UINT32_MAX - 1) return pli_scan_bad(s, "at most 2^32 - 2 vertices");
    list->vertices = (int64_t)rows;
    list->promised = entries < INT64_MAX ? (int64_t)entries : INT64_MAX;
    pli_scan_next(s);
    pli_scan_jump(s);
    while (pli_scan_line(s, "%")) PLI_TRY(read_entry(s, list, weighted));
    if (s->piece == NULL && (uint64_t)pli_edge_list_all(list) != entries)
        return pli_fail(s->err, PLAIT_EFORMAT, "%s: its head promises %" PRIu64 " entries, and it has %" PRId64
                        ": the file is cut, or its head is wrong", s->name, entries, pli_edge_list_all(list));
    return PLAIT_OK;
}
