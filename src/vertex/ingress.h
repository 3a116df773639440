/* vertex/ingress.h - a process reads the part of a graph that it works on, and holds no other edge.
 *
 * Where each rank is a process, the whole graph in each of them would be there as often as there are ranks. Here every
 * process goes through a piece of the text, which is let go of behind it, and keeps the edges of its own part:
 *
 *     first pass     as for a whole graph (building.h): ids, and both degrees of each vertex. What all have counted is
 *                    added up (spread.h). So all processes number vertices alike, and know where the cut `range` goes
 *     the part       edges go to the parts that have them, and there to their rows (reader.h)
 *     doubles        which edges are doubles is seen in rows alone. If they are dropped, one sum says how many edges
 *                    each vertex has lost; the cut then goes elsewhere, and over `range` rows go to their new parts
 *     simple graph   the same: a first cut is by degrees that count doubles, one sum says how long the rows of the
 *                    simple graph are, and rows go where the cut by that has them
 *     one sum        of all parts: how often a vertex occurs, how many edges are doubles, the largest part
 *
 * Each process unpacks a packed file as a whole, and goes through its piece of the text. Mistakes are found in the
 * first pass; of several pieces the first one's is told by all. Callers refuse a pipe, of which nobody would have all.
 *
 * METIS must see the whole graph: one process reads it, cuts it, tells the others which part has each vertex's row, and
 * lets go of it before it reads its part. oblivious and hdrf look at one edge after the other and at what all parts
 * hold so far; with them each process holds the whole graph (pli_ingress_takes).
 *
 * What remains of a vertex that the part neither owns nor reads is a bit for its id and its number of edges out. The
 * part is, entry by entry, that which pli_part_make takes out of a whole graph, so no value, and no bit of one, depends
 * on who holds the graph. When a worker dies, who takes over its part goes through the whole text,
 * without a message.
 *
 * Paper: Gonzalez, Low, Gu, Bickson and Guestrin, "PowerGraph", OSDI 2012, section 5: each machine loads its share. */
#ifndef PLI_VERTEX_INGRESS_H
#define PLI_VERTEX_INGRESS_H

#include "vertex/vertex.h"

/** Can a part be read alone? method NULL: range. */
bool pli_ingress_takes(plait_near near, const char *method);

/** Reads the graph, cut in as many parts as there are workers, and keeps the caller's part: what plait_edges_read and
 *  pli_cut_create would give, of which the cut has no other part. path and the texts of opts are lent until the graph
 *  is destroyed. Errors: those of both, and of collectives; all workers tell the same. The text is in pli_comm_error.
 *  Collective over the workers. */
plait_status pli_ingress_read(plait_comm *comm, const char *path, const plait_edges_opts *opts, plait_near near,
                              const char *method, plait_edges **edges_out, plait_vertex_cut **cut_out);

#endif
