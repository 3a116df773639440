/* data/edges/edges.h - the edges of a graph, read from text: who is joined to whom, and by what weight.
 *
 *     file (plain, gzip, zstd) -> format by its first lines -> edges as pairs of ids -> the caller numbers the ids
 *
 * The text is mapped, a packed one from a temporary file. Each pass hands the edges over some thousand at a time, and
 * lets go of the text behind it. So a pass takes little memory, however long the file is.
 *
 *     read.c       opens the file, finds its format, goes through it; the lists that grow
 *     scan.h       words and numbers of a line, with errors that name file and line
 *     snap.c       SNAP's edge lists: FROM TO [WEIGHT] a line, tabs, blanks or commas between, comments # and %
 *     matrix.c     Matrix Market's coordinate form, general or symmetric
 *     metis.c      METIS' graph files: line v lists the neighbors of vertex v
 *     adjacency.c  adjacency lists: FROM N TO_1 ... TO_N a line
 *
 * A file may also be gone through in pieces, by several readers: each sees the file's head, if the format has one, and
 * then its own lines. METIS' lines are numbered, so a reader counts those in front of its piece.
 *
 * Ids are any 64-bit numbers; those of Matrix Market and METIS count from 1, as the files do. */
#ifndef PLI_DATA_EDGES_H
#define PLI_DATA_EDGES_H

#include "base/base.h"

typedef struct pli_edge_list {
    int64_t   n, capacity;   /* edges, in the order of the file            */
    int64_t   before;        /* of a pass: edges that were handed over before these */
    int64_t   heavy;         /* room of weight                             */
    uint64_t *from, *to;     /* [n]                                        */
    float    *weight;        /* [n]; NULL: the file has none               */
    int64_t   vertices;      /* ids are 1 .. vertices, joined or not; -1: those that edges name */
    int64_t   promised;      /* of a piece: how many edges the file's head promises for all pieces; -1: it has no head.
                              * The last piece sets it to INT64_MAX if it is too short */
    bool      undirected;    /* the file says that each edge goes both ways, and lists it once  */
    bool      both_ways;    /* each edge stands there in both directions                       */
    const struct pli_edge_pass *pass; /* NULL: the list has all                                 */
} pli_edge_list;

/* Takes the next edges, which it must not keep. After an error the pass ends with it. */
typedef plait_status pli_edges_take_fn(void *user, const pli_edge_list *next, plait_error *err);

/* An open file. */
typedef struct pli_edge_file {
    struct pli_sources *sources;
    const char         *path, *format;
    size_t              bytes; /* unpacked */
} pli_edge_file;

/** Opens the file. format: as in plait_edges_opts; both texts are borrowed. Errors: EIO, ENOMEM, EINVAL it is not one
 *  file, EFORMAT. Not collective, any thread. */
plait_status pli_edge_file_open(const char *path, const char *format, pli_edge_file *file, plait_error *err);
/** Goes through the file from the front. take is called once more at the end, perhaps without edges; what it sees
 *  beside the edges is the same in each call. Errors: ENOMEM, ENAME the format; EFORMAT, with file and line, what is no
 *  edge, or the file was written to; ESHAPE more than 2^32 - 2 edges; those of take. */
plait_status pli_edge_file_pass(const pli_edge_file *file, pli_edges_take_fn *take, void *user, plait_error *err);
/** A hash of the text's length, and of its first and last bytes: have all who read a piece the same file? */
uint64_t     pli_edge_file_mark(const pli_edge_file *file);
/** Goes through piece i of n, which are whole lines, in order, and together the file. Errors: those of a pass, with the
 *  line as the file has it; a piece may be without edges. What the file's head promises is told by a pass alone: if
 *  pieces do not come to list->promised together, a pass says why. */
plait_status pli_edge_file_piece(const pli_edge_file *file, int32_t i, int32_t n, pli_edges_take_fn *take, void *user,
                                 plait_error *err);
/** Fails with EFORMAT: the file has no edge; a pass has found another text than the one before. */
plait_status pli_edges_none(const char *name, plait_error *err);
plait_status pli_edges_changed(plait_error *err);
void         pli_edge_file_close(pli_edge_file *file);
/** Reads text in memory [bytes] into one list. Errors: those of a pass. */
plait_status pli_edge_list_parse(const char *name, const char *text, size_t bytes, const char *format,
                                 pli_edge_list *list, plait_error *err);
void         pli_edge_list_free(pli_edge_list *list);
/** How many edges were read so far. */
static inline int64_t pli_edge_list_all(const pli_edge_list *list) { return list->before + list->n; }

/* --- what the formats call ---------------------------------------------------------------------------------------- */

struct pli_scan;
typedef plait_status pli_edge_read_fn(struct pli_scan *scan, pli_edge_list *list);
pli_edge_read_fn     pli_edges_snap, pli_edges_matrix, pli_edges_metis, pli_edges_adjacency;

/** Adds an edge. weighted: as all others of the file are. Errors: ENOMEM, ESHAPE. */
plait_status pli_edge_list_add(struct pli_scan *scan, pli_edge_list *list, uint64_t from, uint64_t to, bool weighted,
                               float weight);

#endif
