/* Which workers have edges along which an own vertex is gathered: they hear of its changes. See async.h. */
#include "vertex/async/async.h"

/* Calls of both passes: count, then fill. Rows come by their owners, so a worker is new to a vertex if it is not the
 * one that came last. */
static void pass(pli_async *a, int32_t *last, int64_t *count, bool fill) {
    const plait_vertex_cut *cut = a->run->cut;
    const pli_neighbors    *h = &cut->rows;
    const int64_t           first = cut->first[a->run->rank], end = cut->first[a->run->rank + 1];
    for (int64_t i = 0; i < end - first; i++) last[i] = -1;
    for (int32_t p = 0; p < cut->parts; p++)
        for (int64_t k = h->start[cut->first[p]]; k < h->start[cut->first[p + 1]]; k++) {
            const int64_t i = (int64_t)h->near[k] - first;
            if (i < 0 || i >= end - first || last[i] == p) continue;
            last[i] = p;
            if (fill) a->holder[a->holder_start[i] + count[i]] = p;
            count[i]++;
        }
}

bool pli_async_holders(pli_async *a) {
    const size_t owned = (size_t)a->run->part.owned;
    int32_t     *last = pli_array(owned, sizeof *last);
    int64_t     *count = pli_calloc(owned, sizeof *count);
    a->holder_start = pli_calloc(owned + 1, sizeof *a->holder_start);
    bool made = last != NULL && count != NULL && a->holder_start != NULL;
    if (made) {
        pass(a, last, count, false);
        for (size_t i = 0; i < owned; i++) {
            a->holder_start[i + 1] = a->holder_start[i] + count[i];
            count[i] = 0;
        }
        a->holder = pli_array((size_t)a->holder_start[owned], sizeof *a->holder);
        made = a->holder != NULL;
    }
    if (made) pass(a, last, count, true);
    pli_free(last);
    pli_free(count);
    return made;
}
