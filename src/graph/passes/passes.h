/* graph/passes/passes.h - passes change a plan before it runs. A pass works on the plan's own nodes, never on the
 * graph, and changes no bit of a value (sparse may change how sums of repeated rows are rounded). Each can be left out
 * (plait_session_opts.passes). To add one, write a file with its table, and a line in the list. */
#ifndef PLI_GRAPH_PASSES_H
#define PLI_GRAPH_PASSES_H

#include "graph/plan.h"

typedef struct pli_pass {
    const char *name;
    bool        late; /* it runs after kernels are chosen and each value has a place */
    plait_status (*run)(pli_plan *plan, plait_error *err);
} pli_pass;

extern const pli_pass pli_pass_fold, pli_pass_merge, pli_pass_sparse, pli_pass_fuse, pli_pass_memory;

enum { PLI_PASSES = 5 };
extern const pli_pass *const pli_passes[PLI_PASSES];

/** Reads the names of passes: "fold,merge", "none"; NULL: all. ENAME: unknown. */
plait_status pli_passes_parse(const char *text, uint32_t *passes_out, plait_error *err);

/* --- for passes ------------------------------------------------------------------------------------------------ */

/** A list [n_values] that maps each value to itself, in plan->work; NULL: no memory. */
int32_t *pli_pass_identity(pli_plan *plan);
/** Makes all readers, views and fetches of each value v use to[v] instead. */
void pli_pass_redirect(pli_plan *plan, const int32_t *to);

#endif
