/* vertex/by_engine.h - programs with a run of their own, as an engine runs them: where a worker may die, or without
 * supersteps. See by_engine.c. */
#ifndef PLI_VERTEX_BY_ENGINE_H
#define PLI_VERTEX_BY_ENGINE_H

#include "vertex/vertex.h"

/** Cores and colors: choice->own becomes the simple graph, which stays the graph's; NULL where a process has a part
 *  alone. Errors: ENOMEM. */
plait_status pli_simple_prepare(const pli_vertex_asked *asked, pli_vertex_choice *choice, plait_error *err);
void         pli_simple_release(void **own);

plait_status pli_kcore_make(const pli_vertex_choice *choice, plait_vertex_program *program, plait_error *err);
plait_status pli_coloring_make(const pli_vertex_choice *choice, plait_vertex_program *program, plait_error *err);
plait_status pli_labels_make(const pli_vertex_choice *choice, plait_vertex_program *program, plait_error *err);

#endif
