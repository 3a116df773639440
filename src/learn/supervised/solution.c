/* Solutions as memory. See solution.h. */
#include "learn/supervised/solution.h"

plait_status pli_solution_make(int64_t rows, int64_t columns, bool keyed, pli_solution *solution_out,
                               plait_error *err) {
    pli_solution s = { .rows = rows };
    s.weight = rows <= INT64_MAX / columns ? pli_calloc((size_t)(rows * columns), sizeof *s.weight) : NULL;
    s.bias = pli_calloc((size_t)columns, sizeof *s.bias);
    s.key = keyed ? pli_calloc((size_t)rows, sizeof *s.key) : NULL;
    *solution_out = s;
    if (s.weight != NULL && s.bias != NULL && (!keyed || s.key != NULL)) return PLAIT_OK;
    pli_solution_free(solution_out);
    return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld x %lld weights", (long long)rows, (long long)columns);
}

plait_status pli_solution_make_flat(int64_t values, pli_solution *solution_out, plait_error *err) {
    *solution_out = (pli_solution){ .rows = values, .flat = pli_array((size_t)values, sizeof(float)) };
    if (solution_out->flat != NULL) return PLAIT_OK;
    *solution_out = (pli_solution){ 0 };
    return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld values", (long long)values);
}

void pli_solution_free(pli_solution *solution) {
    pli_free(solution->key);
    pli_free(solution->weight);
    pli_free(solution->bias);
    pli_free(solution->flat);
    *solution = (pli_solution){ 0 };
}
