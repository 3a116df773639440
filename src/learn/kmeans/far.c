/* Rows that are farthest from their centres take the place of empty clusters' centres. Which they are follows from the
 * data and the centres alone: the largest distances, of equal ones the first rows. */
#include <string.h>

#include "learn/kmeans/kmeans.h"
#include "learn/solve/inherit.h"

/* The farthest rows of a block, the farthest first. */
typedef struct farthest {
    int64_t  n;
    int64_t *row; /* [n, of the wanted] in the block */
    double  *key; /* squared distances               */
} farthest;

typedef struct search {
    pli_run     *run;
    int64_t      wanted;
    pli_living   held;
    pli_centres  centres; /* those that are not empty */
    float       *centre;
    void        *ready;
    char        *scratch; /* [threads] of scratch_bytes */
    size_t       scratch_bytes;
    farthest    *far;     /* [held.n] */
} search;

static void insert(farthest *far, int64_t wanted, int64_t row, double key) {
    int64_t at = far->n < wanted ? far->n++ : wanted;
    for (; at > 0 && far->key[at - 1] < key; at--) {
        if (at == wanted) continue;
        far->key[at] = far->key[at - 1];
        far->row[at] = far->row[at - 1];
    }
    if (at == wanted) return;
    far->key[at] = key;
    far->row[at] = row;
}

/* Leaves n at 0 and row at NULL where there is no memory. */
static void search_block(void *user, int64_t b, int32_t thread) {
    search          *s = user;
    farthest        *far = &s->far[b];
    const pli_block *block = s->held.block[b];
    uint32_t        *nearest = pli_array((size_t)block->rows + 1, sizeof *nearest);
    double          *distance = pli_array((size_t)block->rows + 1, sizeof *distance);
    far->row = pli_array((size_t)s->wanted, sizeof *far->row);
    far->key = pli_array((size_t)s->wanted, sizeof *far->key);
    if (nearest != NULL && distance != NULL && far->row != NULL && far->key != NULL) {
        pli_kmeans_nearest(&s->centres, block, s->scratch + (size_t)thread * s->scratch_bytes, nearest, distance);
        for (int64_t r = 0; r < block->rows; r++)
            if (pli_kmeans_weight(block, r) > 0) insert(far, s->wanted, r, distance[r]);
    } else {
        pli_free(far->row);
        far->row = NULL;
    }
    pli_free(nearest);
    pli_free(distance);
}

/* --- the search over all rows ------------------------------------------------------------------------------------- */

static plait_status begin(search *s, const bool *empty) {
    const pli_kmeans *m = s->run->state;
    const size_t      threads = (size_t)pli_pool_threads(s->run->pool);
    int64_t           k = 0;
    PLI_TRY(pli_living_blocks(s->run, s->run->data, &s->held));
    s->scratch_bytes = (pli_nearest_scratch_bytes(m->k, m->d) + 63) / 64 * 64;
    s->centre = pli_array((size_t)(m->k * m->d), sizeof *s->centre);
    s->ready = pli_array(1, pli_centres_bytes(m->k, m->d));
    s->scratch = pli_array(threads, s->scratch_bytes);
    s->far = pli_calloc((size_t)s->held.n + 1, sizeof *s->far);
    if (s->centre == NULL || s->ready == NULL || s->scratch == NULL || s->far == NULL)
        return pli_fail(s->run->err, PLAIT_ENOMEM, "no memory to look for the farthest rows");
    for (int64_t j = 0; j < m->k; j++)
        if (!empty[j]) memcpy(s->centre + k++ * m->d, m->centre + j * m->d, (size_t)m->d * sizeof *s->centre);
    pli_centres_prepare(&s->centres, k, m->d, s->centre, m->dense, s->ready);
    return PLAIT_OK;
}

static void end(search *s) {
    for (int32_t b = 0; s->far != NULL && b < s->held.n; b++) {
        pli_free(s->far[b].row);
        pli_free(s->far[b].key);
    }
    pli_living_blocks_free(&s->held);
    pli_free(s->centre);
    pli_free(s->ready);
    pli_free(s->scratch);
    pli_free(s->far);
}

/* This worker's candidates: the farthest of its blocks. */
static plait_status list_own(search *s, pli_listed *mine) {
    bool ok = true;
    pli_pool_for(s->run->pool, s->held.n, search_block, s);
    for (int32_t b = 0; ok && b < s->held.n; b++) {
        ok = s->far[b].row != NULL;
        for (int64_t i = 0; ok && i < s->far[b].n; i++)
            ok = pli_listed_add(mine, s->held.block[b], s->far[b].row[i], s->far[b].key[i]);
    }
    return ok ? PLAIT_OK : pli_fail(s->run->err, PLAIT_ENOMEM, "no memory to list the farthest rows");
}

/* Is a before b? */
static bool is_farther(const pli_listed *list, int64_t a, int64_t b) {
    return list->key[a] > list->key[b] || (list->key[a] == list->key[b] && list->row[a] < list->row[b]);
}

/* The farthest of all first; those that have been taken have a key below 0. */
static int64_t take_farthest(pli_listed *all) {
    int64_t best = 0;
    for (int64_t i = 1; i < all->n; i++)
        if (is_farther(all, i, best)) best = i;
    return best;
}

static void place(pli_kmeans *m, const bool *empty, pli_listed *all, int64_t *refilled_out) {
    *refilled_out = 0;
    for (int64_t j = 0; j < m->k && all->n > 0; j++) {
        if (!empty[j]) continue;
        const int64_t far = take_farthest(all);
        memcpy(m->centre + j * m->d, all->x + far * m->d, (size_t)m->d * sizeof *m->centre);
        *refilled_out += all->key[far] > 0;
        all->key[far] = -1;
    }
}

static plait_status refill(pli_run *run, const bool *empty, int64_t wanted, int64_t *refilled_out) {
    pli_kmeans  *m = run->state;
    search       s = { .run = run, .wanted = wanted };
    pli_listed   mine = { .d = m->d }, all = { .d = m->d };
    plait_status status = begin(&s, empty);
    if (status >= 0) status = list_own(&s, &mine);
    if (status >= 0) status = pli_listed_share(run, &mine, &all);
    if (status >= 0) place(m, empty, &all, refilled_out);
    pli_listed_free(&mine);
    pli_listed_free(&all);
    end(&s);
    return status;
}

plait_status pli_kmeans_refill(pli_run *run, const bool *empty, int64_t *refilled_out) {
    const pli_kmeans *m = run->state;
    int64_t           wanted = 0;
    int32_t           absent = pli_comm_absent(run->comm);
    *refilled_out = 0;
    for (int64_t j = 0; j < m->k; j++) wanted += empty[j];
    if (wanted == 0 || wanted == m->k) return PLAIT_OK;
    do PLI_TRY(refill(run, empty, wanted, refilled_out));
    while (pli_run_again(run, &absent));
    return PLAIT_OK;
}
