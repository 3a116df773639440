#include "graph/cells_loops.h"

const pli_cells *pli_cells_avx512(void) { return &cells; }
