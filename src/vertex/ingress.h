/* vertex/ingress.h - a process reads the part of a graph that it works on, and holds no other edge.
 *
 * Where each rank is a process, the whole graph in each of them would be there as often as there are ranks. Here every
 * process goes through the whole text, which is let go of behind it, and keeps the edges of its own part:
 *
 *     first pass     as for a whole graph (building.h): all ids, and both degrees of each vertex. So all processes
 *                    number vertices alike, and know where the cut `range` goes, without a message
 *     count          over a vertex cut: a pass that counts which rows the part's edges go to. Over the cut `range` the
 *                    rows of own vertices are whole, and as long as the degrees say
 *     last pass      the part's edges go to their rows
 *     simple graph   which edges are doubles is seen in rows alone: so a first cut is by degrees that count doubles,
 *                    one sum says how long the rows of the simple graph are, and the last pass is made again by that
 *     one sum        of all parts: how often a vertex occurs, how many edges are doubles, the largest part
 *
 * What remains of a vertex that the part neither owns nor reads is a bit for its id and its number of edges out. The
 * part is, entry by entry, that which pli_part_make takes out of a whole graph, so no value, and no bit of one, depends
 * on who holds the graph. A cut by a hash of both ends needs nothing else; oblivious, hdrf and metis look at edges of
 * others, and need the whole graph (pli_ingress_takes).
 *
 * Paper: Gonzalez, Low, Gu, Bickson and Guestrin, "PowerGraph", OSDI 2012, section 5: each machine loads its share. */
#ifndef PLI_VERTEX_INGRESS_H
#define PLI_VERTEX_INGRESS_H

#include "vertex/vertex.h"

/** Can a part be read alone? method NULL: range. Not with drop_doubles: which edges are left decides where the cut
 *  goes. */
bool pli_ingress_takes(plait_near near, const char *method, const plait_edges_opts *opts);

/** Reads the graph, cut in as many parts as there are workers, and keeps the caller's part: what plait_edges_read and
 *  pli_cut_create would give, of which the cut has no other part. Errors: those of both, and of collectives. The text
 *  is in pli_comm_error. Collective over the workers. */
plait_status pli_ingress_read(plait_comm *comm, const char *path, const plait_edges_opts *opts, plait_near near,
                              const char *method, plait_edges **edges_out, plait_vertex_cut **cut_out);

#endif
