/* May this program run under these settings? What does not go together is refused by name, with the nearest that does.
 * See plait/vertex.h. */
#include "comm/comm.h"
#include "table/table.h"
#include "vertex/vertex.h"

static const char *const folds[] = { "add", "min", "max" };

/* --- the program alone -------------------------------------------------------------------------------------------- */

static plait_status check_widths(pli_vertex_run *run) {
    plait_vertex_program *p = &run->program;
    const int32_t         given[] = { p->values, p->tells, p->gathers, p->edge_values, p->totals };
    for (int i = 0; i < 5; i++)
        if (given[i] < 0 || given[i] > PLI_VERTEX_MOST)
            return pli_fail(run->err, PLAIT_EINVAL, "%s: values, tells, gathers, edge_values and totals are 0 to %d",
                            p->name, (int)PLI_VERTEX_MOST);
    if (p->values == 0) p->values = 1;
    if (p->tells == 0) p->tells = p->values;
    if (p->gathers == 0) p->gathers = p->tells;
    if (p->tell == NULL && p->tells != p->values)
        return pli_fail(run->err, PLAIT_EINVAL, "%s: without tell a vertex tells its value of %d numbers, not %d",
                        p->name, (int)p->values, (int)p->tells);
    const bool sees = pli_vertex_sees_edges(p);
    if (!sees && (p->values > 1 || p->tells > 1 || p->gathers > 1 || p->type == PLAIT_F32))
        return pli_fail(run->err, PLAIT_EREFUSED, "%s: values of several numbers, or of PLAIT_F32, need gather or "
                        "update; `along` knows single numbers", p->name);
    if ((p->edge_init != NULL) != (p->edge_values > 0))
        return pli_fail(run->err, PLAIT_EINVAL, "%s: edge_init fills edge_values numbers, and neither is of use "
                        "without the other", p->name);
    const size_t bytes = p->type == PLAIT_F32 ? 4 : 8;
    run->value_bytes = bytes * (size_t)p->values;
    run->tell_bytes = bytes * (size_t)p->tells;
    run->gather_bytes = bytes * (size_t)p->gathers;
    return PLAIT_OK;
}

static plait_status check_functions(const pli_vertex_run *run) {
    const plait_vertex_program *p = &run->program;
    const bool                  folds_in = p->apply == NULL && p->update == NULL;
    if (p->update != NULL && (p->apply != NULL || p->gather != NULL))
        return pli_fail(run->err, PLAIT_EINVAL, "%s: update stands in place of gather and apply", p->name);
    if (folds_in && (p->gather != NULL || p->scatter != NULL || p->totals > 0 || p->edge_values > 0))
        return pli_fail(run->err, PLAIT_EREFUSED, "%s: gather, scatter, totals and edge_values need apply or update; "
                        "without, a value folds in what arrives", p->name);
    if (!run->async && p->scatter == NULL && (p->starts != NULL || p->again))
        return pli_fail(run->err, PLAIT_EREFUSED, "%s: starts and again need scatter, or engine async: else all "
                        "vertices take part in every superstep", p->name);
    if (p->post_delta != NULL && (p->gather == NULL || p->scatter == NULL))
        return pli_fail(run->err, PLAIT_EINVAL, "%s: post_delta changes what gather has made, along the edges that "
                        "scatter is asked about, and needs both", p->name);
    if ((p->totals > 0) != (p->total != NULL || p->total_edge != NULL) || (p->totals > 0) != (p->stop != NULL))
        return pli_fail(run->err, PLAIT_EINVAL, "%s: totals, one of total and total_edge, and stop come together",
                        p->name);
    return PLAIT_OK;
}

static plait_status check_program(pli_vertex_run *run) {
    plait_vertex_program *p = &run->program;
    const char           *combine = p->combine != NULL ? p->combine : "add";
    int                   fold = 0;
    if (p->name == NULL || p->name[0] == '\0')
        return pli_fail(run->err, PLAIT_EINVAL, "plait_vertex_run: the program has no name");
    while (fold < 3 && !pli_is(combine, folds[fold])) fold++;
    if (fold == 3) return pli_fail_unknown(run->err, "combine of a vertex program", combine, folds, 3);
    if (p->type != PLAIT_F64 && p->type != PLAIT_I64 && p->type != PLAIT_F32)
        return pli_fail(run->err, PLAIT_EREFUSED, "%s: a vertex's value is PLAIT_F64, PLAIT_I64 or PLAIT_F32", p->name);
    if ((int)p->along < 0 || p->along > PLAIT_ALONG_PLUS || !(p->tolerance >= 0))
        return pli_fail(run->err, PLAIT_EINVAL, "%s: along is %d (0 to 2), tolerance %g (0 or more)", p->name,
                        (int)p->along, p->tolerance);
    if (p->near != run->cut->near)
        return pli_fail(run->err, PLAIT_EINVAL, "%s: the cut is for other edges than those that the program gathers "
                        "along: make it with near %d", p->name, (int)p->near);
    if (p->apply == NULL && p->update == NULL && fold == 0)
        return pli_fail(run->err, PLAIT_EREFUSED, "%s: without apply a value folds in what arrives by min or max; a "
                        "sum needs apply", p->name);
    run->gather = (pli_gather){ p->type == PLAIT_I64, (pli_fold)fold, p->along };
    p->combine = folds[fold];
    PLI_TRY(check_widths(run));
    return check_functions(run);
}

/* --- with the job's settings -------------------------------------------------------------------------------------- */

/* Sums of a vertex's edges that lie with several workers. */
static plait_status check_vertex_cut(const pli_vertex_run *run) {
    const plait_vertex_program *p = &run->program;
    const plait_job            *job = run->job;
    if (p->update != NULL || p->scatter != NULL)
        return pli_fail(run->err, PLAIT_EREFUSED, "%s: %s over a vertex cut is refused, since nobody has all of a "
                        "vertex's edges; nearest is the cut 'range'", p->name,
                        p->update != NULL ? "update" : "scatter");
    if (job->exact)
        return pli_fail(run->err, PLAIT_EREFUSED, "%s: exact sums over a vertex cut are refused: each worker adds up "
                        "its part of a vertex's edges first; nearest is the cut 'range', whose bits are the same for "
                        "any number of workers", p->name);
    if (run->gather.fold != PLI_FOLD_ADD)
        return pli_fail(run->err, PLAIT_EREFUSED, "%s: apply after %s over a vertex cut is refused, since the table of "
                        "what was gathered would have to forget it at each superstep; nearest is the cut 'range'",
                        p->name, p->combine);
    if (run->all_is_read) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EREFUSED, "%s: sums over a vertex cut need whole clocks, which %s over %s does not "
                    "promise; nearest are consistency bsp, or the cut 'range'", p->name, job->consistency,
                    job->topology);
}

/* The asynchronous engine: locks know owners of whole rows, and nobody takes over their locks. */
static plait_status check_async(const pli_vertex_run *run) {
    const plait_vertex_program *p = &run->program;
    if (run->cut->splits)
        return pli_fail(run->err, PLAIT_EREFUSED, "%s: engine async over a vertex cut is refused, since nobody has all "
                        "of a vertex's edges; nearest is the cut 'range'", p->name);
    if (p->post_delta != NULL)
        return pli_fail(run->err, PLAIT_EREFUSED, "%s: post_delta with engine async is refused, since an update gets "
                        "the values of all neighbors anew; nearest is engine sync", p->name);
    if (p->totals > 0)
        return pli_fail(run->err, PLAIT_EREFUSED, "%s: totals are of a superstep, which engine async has not; nearest "
                        "is engine sync", p->name);
    return PLAIT_OK;
}

/* A worker may die: an heir makes its updates anew, of what tables hold. So they must follow from that alone. */
static plait_status check_replicas(const pli_vertex_run *run) {
    const plait_vertex_program *p = &run->program;
    if (!run->all_is_read)
        return pli_fail(run->err, PLAIT_EREFUSED, "%s: replicas 2 with %s over %s is refused: an heir needs the values "
                        "that the dead worker had read; nearest is consistency bsp", p->name, run->job->consistency,
                        run->job->topology);
    if (p->edge_values > 0)
        return pli_fail(run->err, PLAIT_EREFUSED, "%s: edges with numbers of their own and replicas 2 are refused: "
                        "these numbers are in no table, and die with their worker; nearest is replicas 1", p->name);
    return PLAIT_OK;
}

static plait_status check_settings(pli_vertex_run *run) {
    const plait_job *job = run->job;
    const pli_scope  scope = pli_layout_scope(&job->layout);
    if (run->cut->parts != run->workers)
        return pli_fail(run->err, PLAIT_EINVAL, "%s: the graph is cut in %d, and there are %d workers",
                        run->program.name, (int)run->cut->parts, (int)run->workers);
    const plait_properties has = pli_pair_properties(pli_topology_find(job->topology), job->consistency, &scope);
    if ((has & PLAIT_ONE_COPY) == 0)
        return pli_fail(run->err, PLAIT_EREFUSED, "%s: %s over %s is refused, since workers average copies of values "
                        "there; nearest is topology ps", run->program.name, job->consistency, job->topology);
    run->owns_are_read = (has & PLAIT_OWN_WRITES) != 0;
    run->all_is_read = (has & PLAIT_WHOLE_CLOCKS) != 0 || run->workers == 1;
    if (job->layout.replicas > 1) PLI_TRY(check_replicas(run));
    if (run->async) return check_async(run);
    const bool folds_in = run->program.apply == NULL && run->program.update == NULL;
    return folds_in || !run->cut->splits ? PLAIT_OK : check_vertex_cut(run);
}

plait_status pli_vertex_suits(pli_vertex_run *run) {
    PLI_TRY(check_program(run));
    return check_settings(run);
}
