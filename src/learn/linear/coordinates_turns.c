/* Workers come and go while a path of penalties is fitted (--workers MIN:MAX, solve/doors.h).
 *
 * All workers decide alike, by sums over all rows and by the weights. So who comes needs the weights, how far the path
 * has come, and what was chosen on it: what a checkpoint holds. The working set, what was left out, the curvature, the
 * schedule of steps and the products of columns follow from the rows and the weights. They are made anew by all, as a
 * run that resumes makes them, so that they are the same on all: the penalty at hand is begun again where it was,
 * behind the look at which somebody came or went. The table's sums of slopes begin at zero again.
 *
 * The path ends at the same optimum within the tolerance. */
#include <string.h>

#include "learn/linear/coordinates.h"
#include "table/table.h"

/* The weights are those of who was in. */
static void take_point(pli_coordinates *c) {
    const double *point = pli_coordinates_point(c);
    memcpy(c->w, point, (size_t)c->columns.features * sizeof *c->w);
    c->bias = point[c->columns.features];
}

/* Collective over those who are in from here on. */
static plait_status begin_again(pli_coordinates *c, bool came) {
    if (came) take_point(c);
    else c->bias = pli_coordinates_intercept(c);
    pli_coordinates_steps_free(c);
    pli_free(c->gram);
    pli_free(c->label_slope);
    c->gram = c->label_slope = NULL;
    pli_run_tell_lost(c->run);
    PLI_TRY(plait_table_zero(c->table));
    PLI_TRY(pli_coordinates_gather(c));
    for (int64_t j = 0; j < c->columns.features; j++)
        if (!(c->spread[j] > 0)) c->w[j] = 0;
    pli_coordinates_score(c);
    pli_coordinates_begin_set(c);
    return pli_coordinates_choose_way(c);
}

plait_status pli_coordinates_turns_begin(pli_coordinates *c, bool *came_out) {
    static const pli_steps none;
    const plait_status     status = pli_doors_begin(&c->doors, c->run, &none, came_out);
    return status == PLAIT_OK && *came_out ? begin_again(c, true) : status;
}

plait_status pli_coordinates_turn(pli_coordinates *c, bool *changed_out) {
    bool               came;
    const plait_status status = pli_doors_open(&c->doors, &came, changed_out);
    return status == PLAIT_OK && *changed_out ? begin_again(c, came) : status;
}
