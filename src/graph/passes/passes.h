/* graph/passes/passes.h - what is done to a plan before it runs. A pass works on the plan's own nodes, never on the
 * graph, and changes no value by a bit; each can be left out (plait_session_opts.passes). To add one: a file with its
 * table, and a line in the list. */
#ifndef PLI_GRAPH_PASSES_H
#define PLI_GRAPH_PASSES_H

#include "graph/plan.h"

typedef struct pli_pass {
    const char *name;
    bool        late; /* after kernels are chosen and values have places of their own */
    plait_status (*run)(pli_plan *plan, plait_error *err);
} pli_pass;

extern const pli_pass pli_pass_fold, pli_pass_merge, pli_pass_sparse, pli_pass_fuse, pli_pass_memory;

enum { PLI_PASSES = 5 };
extern const pli_pass *const pli_passes[PLI_PASSES];

/** Which passes a text names: "fold,merge", "none"; NULL: all. ENAME: unknown. */
plait_status pli_passes_parse(const char *text, uint32_t *passes_out, plait_error *err);

/* --- for passes ------------------------------------------------------------------------------------------------ */

/** A list [n_values] that leads each value to itself; of plan->work; NULL: no memory. */
int32_t *pli_pass_identity(pli_plan *plan);
/** Whoever reads value v, views it or fetches it has to[v] from now on. */
void pli_pass_redirect(pli_plan *plan, const int32_t *to);

#endif
