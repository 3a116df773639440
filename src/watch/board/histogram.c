/* Makes a histogram of a table's weights: buckets of equal width from the least weight to the largest. Weights that are
 * not finite are not counted. See board.h. */
#include <math.h>

#include "watch/board/board.h"

static double value_at(const plait_weights *w, int64_t i) {
    return w->type == PLAIT_F32 ? (double)((const float *)w->values)[i] : ((const double *)w->values)[i];
}

static void sum_up(const plait_weights *w, pli_board_histogram *h) {
    *h = (pli_board_histogram){ .min = INFINITY, .max = -INFINITY };
    for (int64_t i = 0; i < w->n; i++) {
        const double x = value_at(w, i);
        if (!isfinite(x)) continue;
        if (x < h->min) h->min = x;
        if (x > h->max) h->max = x;
        h->sum += x;
        h->sum_squares += x * x;
        h->n++;
    }
}

bool pli_board_measure(const plait_weights *w, pli_board_histogram *h, double limit[PLI_BOARD_BUCKETS],
                       double count[PLI_BOARD_BUCKETS]) {
    sum_up(w, h);
    if (h->n == 0) return false;
    /* the distance from -1e308 to 1e308 overflows a double; a quarter of it does not */
    const double scale = isfinite(h->max - h->min) ? 1 : 0.25, low = h->min * scale;
    const double width = (h->max * scale - low) / PLI_BOARD_BUCKETS;
    h->buckets = width > 0 ? PLI_BOARD_BUCKETS : 1;
    for (int32_t b = 0; b < h->buckets; b++) {
        limit[b] = b + 1 < h->buckets ? (low + width * (b + 1)) / scale : h->max;
        count[b] = 0;
    }
    for (int64_t i = 0; i < w->n; i++) {
        const double x = value_at(w, i);
        if (!isfinite(x)) continue;
        const double at = width > 0 ? (x * scale - low) / width : 0;
        count[at < h->buckets ? (int32_t)at : h->buckets - 1]++;
    }
    h->limit = limit;
    h->count = count;
    return true;
}
