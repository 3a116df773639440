/* vertex/triangles.h - counting triangles where each process has its own part of the graph alone. See
 * triangles_parts.c. */
#ifndef PLI_VERTEX_TRIANGLES_H
#define PLI_VERTEX_TRIANGLES_H

#include "vertex/direct.h"

/** Counts, in how many triangles each vertex is, into the value table: behind the job's next clocks. Errors: ENOMEM;
 *  those of tables, and of reading a dead worker's part. Collective over the workers. */
plait_status pli_triangles_by_parts(pli_direct *d);

#endif
