/* vertex/reader.h - the part of any worker, read out of the text: by others who take it over when it has died, and by
 * the worker itself as the graph is loaded (ingress.h). Those others send no message, so they may read a part at any
 * time. While the graph is loaded all workers read: each a piece of the text, if the file allows that, whose edges go
 * to the parts that have them (spread.h).
 *
 *     count          which rows the part's edges go to: a pass of its own where degrees do not say it
 *     last pass      the part's edges go to their rows
 *     doubles        those that are dropped go, in each row
 *     the rows       along which a program gathers: edges in, edges out, both, or the simple graph
 *     the move       a cut by ranges may go elsewhere once rows are known: rows go to their new parts
 *     the part       vertices that it reads or owns get numbers of its own
 *
 * All edges between two vertices, the same way, lie in one row of one part: so doubles are seen in rows alone. */
#ifndef PLI_VERTEX_READER_H
#define PLI_VERTEX_READER_H

#include "vertex/building.h"
#include "vertex/spread.h"

/* How parts of a graph are read: kept with the graph, since a part may have to be read again. */
typedef struct pli_ingress {
    const char      *path; /* lent, and so are the texts of opts */
    plait_edges_opts opts;
    plait_near       near;
    bool             hashed;
    pli_cut_hash     hash;  /* of a cut by hashes                                                */
    uint16_t        *label; /* [vertices] of METIS' cut: the part that has a row; NULL: another cut */
    bool             both, weighted; /* as the first pass has found the file: see pli_building      */
    int64_t          m;     /* edges of a pass, doubles and all                                  */
    bool             summed; /* sum is known:                                                    */
    uint64_t         sum;   /* of their hashes: is it still the same file?                       */
} pli_ingress;

void pli_ingress_free(pli_ingress **of);

typedef struct pli_reader {
    const pli_ingress *of;
    const int64_t     *first;  /* [parts + 1] who owns what           */
    int32_t            part;   /* which is read                       */
    const int64_t     *degree; /* edges that come to each vertex, if rows are to be as long; NULL: they are counted */
    const uint32_t    *leave;  /* and leave it */
    pli_building       b;
    bool               counts; /* the pass counts entries, and places none */
    pli_spread         spread; /* comm NULL: the text is read as a whole, and others' edges are left out */
    uint16_t          *in_piece, *out_piece; /* [entries] whose piece they are from; NULL: the order does not matter */
    pli_neighbors      in, out; /* by all vertices' numbers; start NULL: the program does not gather along them */
    pli_neighbors      rows;    /* along which it gathers; may be lent from in or out */
    int64_t            doubles; /* edges that equal the one before them in their row, dropped or not */
    uint32_t          *lost_in, *lost_out; /* [vertices] or NULL: dropped edges that came to each, and left it */
    pli_edge           below;   /* the first with a weight below 0; weight 0: there is none */
} pli_reader;

/** Begins to read a part of the graph, whose ids have numbers. */
void pli_reader_begin(pli_reader *r, const plait_edges *edges, const int64_t *first, int32_t part);
/** Fills rows and what was seen of them. Errors: those of a pass; ENOMEM; EFORMAT the file is not
 *  what it was. Collective over the workers if spread.comm is given. */
plait_status pli_reader_rows(pli_reader *r, const pli_edge_file *file, plait_error *err);
/** The cut, by ranges, goes elsewhere since rows were made: each goes to the worker that has it now. length: how many
 *  entries row v has, wherever it is. Errors: ENOMEM; those of pli_spread_end. Collective over the workers of comm. */
plait_status pli_reader_move(pli_reader *r, plait_comm *comm, pli_cut_degree_fn *length, const void *of,
                             plait_error *err);
/** Makes the part of the rows. *copies_out (may be NULL): how many vertices have edges in it. false: no memory. */
bool pli_reader_part(pli_reader *r, pli_part *part, int64_t *copies_out);
void pli_reader_end(pli_reader *r);

/** A part of the cut, of a graph of which the process has another part alone: read out of the file. */
plait_status pli_ingress_part(const plait_vertex_cut *cut, int32_t p, pli_part *part, plait_error *err);
/** Where a cut by ranges in so many parts goes: first [parts + 1]. Every worker that calls it comes to the same.
 *  Errors: those of reading; EREFUSED the cut is another one. */
plait_status pli_ingress_deal(const plait_edges *edges, int32_t parts, int64_t *first, plait_error *err);

#endif
