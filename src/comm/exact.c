/* An exact sum by messages: each worker turns its terms into cells (tensor/exact_cells.h), any form of allreduce
 * sums the cells, and every worker rounds them to the same bits. A transport that sees all workers' terms at once
 * needs none of this. */
#include <string.h>

#include "comm/world.h"
#include "tensor/exact_cells.h"

plait_status pli_exact_begin(pli_call *call, plait_error *err) {
    pli_coll  *coll = &call->coll;
    plait_type type = pli_cells_of(coll->type);
    size_t     bytes = (size_t)coll->n * pli_type_bytes(type);
    call->wide = coll->type == PLAIT_F64;
    call->cells = pli_aligned(bytes);
    if (call->cells == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for an exact sum of %lld elements", (long long)coll->n);
    memset(call->cells, 0, bytes);
    pli_cells_add(call->wide, coll->n, coll->buf, call->cells);
    call->exact = coll->buf;
    coll->buf = call->cells;
    coll->type = type;
    coll->op = PLAIT_SUM;
    return PLAIT_OK;
}

void pli_exact_end(pli_call *call, plait_status status) {
    if (status >= 0) pli_cells_round(call->wide, call->coll.n, call->cells, call->exact);
    pli_free(call->cells);
    call->cells = NULL;
}
