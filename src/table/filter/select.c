/* Chooses the rows of a push if a fraction of them travels: the k highest of n scores, in linear time.
 *
 * Paper: Hoare, "Algorithm 65: Find", CACM 4(7), 1961. */
#include "table/filter/filter.h"

#include <math.h>

/* Partly orders a [n] until its k-th highest (from 0) is in its place, and returns that. */
static double kth_highest(double *a, int64_t n, int64_t k) {
    int64_t low = 0, high = n - 1;
    while (low < high) {
        double  pivot = a[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (a[i] > pivot) i++;
            while (a[j] < pivot) j--;
            if (i > j) break;
            double t = a[i];
            a[i++] = a[j];
            a[j--] = t;
        }
        if (k <= j) high = j;
        else if (k >= i) low = i;
        else break;
    }
    return a[k];
}

bool pli_filter_select(int64_t n, const double *score, double fraction, unsigned char *keep) {
    double *a = pli_array((size_t)n, sizeof *a);
    int64_t m = 0, more = 0;
    if (a == NULL) return false;
    for (int64_t i = 0; i < n; i++)
        if (keep[i]) a[m++] = isnan(score[i]) ? INFINITY : score[i];
    int64_t k = (int64_t)ceil(fraction * (double)m);
    if (k < m) {
        double least = kth_highest(a, m, k - 1);
        for (int64_t i = 0; i < m; i++) more += a[i] > least; /* all of a is still there */
        int64_t equal = k - more;
        for (int64_t i = 0; i < n; i++) {
            double x = isnan(score[i]) ? INFINITY : score[i];
            if (keep[i]) keep[i] = x > least || (x == least && equal-- > 0);
        }
    }
    pli_free(a);
    return true;
}
