#include "graph/cells_loops.h"

const pli_cells *pli_cells_avx2(void) { return &cells; }
