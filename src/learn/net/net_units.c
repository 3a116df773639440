/* Training's units of a net, and the way back to the data's. Features are centred and scaled (supervised/scale.h), and
 * so are labels that are numbers. A net learns fastest when what goes in and what comes out have mean 0 and spread 1
 * (LeCun et al., "Efficient BackProp", 1998): adam's steps have about the size of its rate, whatever the unit of the
 * labels is. Both scales can be moved into the weights of the first and of the last layer, so a model needs neither. */
#include <math.h>

#include "learn/net/net.h"

/* --- scores ------------------------------------------------------------------------------------------------------ */

void pli_net_set_units(pli_net *net, double mean, double spread) {
    if (net->goal->loss->target != PLI_NUMBER || net->kind->open != NULL) return;
    net->units.mean = mean;
    net->units.spread = fmin(fmax(spread, 1e-18), 1e18); /* its square is a float32 */
    net->units.unit = pli_goal_unit(net->goal, net->units.spread);
}

/* The last layer's weights are the last parameter but one; its biases are the last. */
static int32_t last_weights(const pli_net *net) { return net->n_params - 2; }

void pli_net_last_factors(const pli_net *net, int32_t p, double *l1_out, double *l2_out) {
    const double spread = p == last_weights(net) ? net->units.spread : 1;
    *l1_out = spread;
    *l2_out = spread * spread;
}

static void multiply(const pli_net_param *w, double by, float *values) {
    for (int64_t i = 0; i < w->rows * w->cols; i++) values[w->at + i] = (float)(by * (double)values[w->at + i]);
}

/* A score is mean + spread (h w' + b'). */
static void scores_to_data_units(const pli_net *net, float *values) {
    const pli_net_units *u = &net->units;
    if (u->spread == 1 && u->mean == 0) return;
    const pli_net_param *w = &net->param[last_weights(net)], *b = w + 1;
    multiply(w, u->spread, values);
    for (int64_t k = 0; k < b->cols; k++)
        values[b->at + k] = (float)(u->mean + u->spread * (double)values[b->at + k]);
}

static void scores_from_data_units(const pli_net *net, float *values) {
    const pli_net_units *u = &net->units;
    if (u->spread == 1 && u->mean == 0) return;
    const pli_net_param *w = &net->param[last_weights(net)], *b = w + 1;
    multiply(w, 1 / u->spread, values);
    for (int64_t k = 0; k < b->cols; k++)
        values[b->at + k] = (float)(((double)values[b->at + k] - u->mean) / u->spread);
}

/* --- features ---------------------------------------------------------------------------------------------------- */

void pli_net_even_scale(const pli_net *net, pli_scale *scale) {
    if (!net->even || scale->factor == NULL) return;
    double least = scale->factor[0];
    for (int64_t j = 1; j < scale->features; j++) least = scale->factor[j] < least ? scale->factor[j] : least;
    for (int64_t j = 0; j < scale->features; j++) scale->factor[j] = least;
    pli_free(scale->centre);
    scale->centre = NULL;
}

static void add(float *value, double x) { *value = (float)((double)*value + x); }

/* x' = f (x - c), so w' x' + b' = (f w') x + (b' - c f w'). b is one row for all features, or one row for each. */
void pli_net_features_to_data_units(bool even, const pli_net_param first[2], const pli_scale *scale, float *values) {
    const pli_net_param *w = &first[0], *b = &first[1];
    if (scale->factor == NULL) return;
    if (even) {
        multiply(w, scale->factor[0], values);
        return;
    }
    for (int64_t k = 0; k < w->cols; k++) {
        double shift = 0;
        for (int64_t j = 0; j < w->rows; j++) {
            const double raw = scale->factor[j] * (double)values[w->at + j * w->cols + k];
            const double centred = scale->centre != NULL ? scale->centre[j] * raw : 0;
            if (b->rows > 1) add(&values[b->at + j * b->cols + k], -centred);
            else shift += centred;
            values[w->at + j * w->cols + k] = (float)raw;
        }
        if (b->rows == 1) add(&values[b->at + k], -shift);
    }
}

static void features_from_data_units(const pli_net *net, const pli_scale *scale, float *values) {
    const pli_net_param *w = &net->param[0], *b = &net->param[1];
    if (scale->factor == NULL) return;
    if (net->even) {
        multiply(w, 1 / scale->factor[0], values);
        return;
    }
    for (int64_t k = 0; k < w->cols; k++) {
        double shift = 0;
        for (int64_t j = 0; j < w->rows; j++) {
            float *value = &values[w->at + j * w->cols + k];
            const double centred = scale->centre != NULL ? scale->centre[j] * (double)*value : 0;
            if (b->rows > 1) add(&values[b->at + j * b->cols + k], centred);
            else shift += centred;
            *value = scale->factor[j] > 0 ? (float)((double)*value / scale->factor[j]) : 0;
        }
        if (b->rows == 1) add(&values[b->at + k], shift);
    }
}

/* --- both --------------------------------------------------------------------------------------------------------- */

void pli_net_to_data_units(const pli_net *net, const pli_scale *scale, float *values) {
    pli_net_features_to_data_units(net->even, net->param, scale, values);
    scores_to_data_units(net, values);
}

void pli_net_from_data_units(const pli_net *net, const pli_scale *scale, float *values) {
    scores_from_data_units(net, values);
    features_from_data_units(net, scale, values);
}
