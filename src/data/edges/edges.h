/* data/edges/edges.h - the edges of a graph, read from text: who is joined to whom, and by what weight.
 *
 *     file (plain, gzip, zstd) -> format by its first lines -> edges as pairs of ids -> the caller numbers the ids
 *
 *     read.c       opens the file, finds its format; the lists that grow
 *     scan.h       words and numbers of a line, with errors that name file and line
 *     snap.c       SNAP's edge lists: FROM TO [WEIGHT] a line, tabs, blanks or commas between, comments # and %
 *     matrix.c     Matrix Market's coordinate form, general or symmetric
 *     metis.c      METIS' graph files: line v lists the neighbors of vertex v
 *     adjacency.c  adjacency lists: FROM N TO_1 ... TO_N a line
 *
 * Ids are any 64-bit numbers; those of Matrix Market and METIS count from 1, as the files do. */
#ifndef PLI_DATA_EDGES_H
#define PLI_DATA_EDGES_H

#include "base/base.h"

typedef struct pli_edge_list {
    int64_t   n, capacity;   /* edges, in the order of the file            */
    int64_t   heavy;         /* room of weight                             */
    uint64_t *from, *to;     /* [n]                                        */
    float    *weight;        /* [n]; NULL: the file has none               */
    int64_t   vertices;      /* ids are 1 .. vertices, joined or not; -1: those that edges name */
    bool      undirected;    /* the file says that each edge goes both ways, and lists it once  */
    bool       both_ways;    /* each edge stands there in both directions                       */
} pli_edge_list;

/** Reads the file. format: as in plait_edges_opts. Errors: EIO, ENOMEM, ENAME the format; EFORMAT, with file and line,
 *  what is no edge; ESHAPE more than 2^32 - 2 edges. Not collective, any thread. */
plait_status pli_edge_list_read(const char *path, const char *format, pli_edge_list *list, plait_error *err);
/** The same from text in memory [bytes]. */
plait_status pli_edge_list_parse(const char *name, const char *text, size_t bytes, const char *format,
                                 pli_edge_list *list, plait_error *err);
void         pli_edge_list_free(pli_edge_list *list);

/* --- what the formats call ---------------------------------------------------------------------------------------- */

struct pli_scan;
typedef plait_status pli_edge_read_fn(struct pli_scan *scan, pli_edge_list *list);
pli_edge_read_fn     pli_edges_snap, pli_edges_matrix, pli_edges_metis, pli_edges_adjacency;

/** Adds an edge. weighted: as all others of the file are. Errors: ENOMEM, ESHAPE. */
plait_status pli_edge_list_add(struct pli_scan *scan, pli_edge_list *list, uint64_t from, uint64_t to, bool weighted,
                               float weight);

#endif
