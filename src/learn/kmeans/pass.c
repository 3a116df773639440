/* What a clock adds up of its rows. The blocks of a batch fall into a few stretches, each with sums of its own. These
 * are added up in their order: so the bits depend on the blocks, and not on the threads.
 *
 * The inertia of a whole pass needs no distance of any row to its centre. With an anchor a that stays, and for the rows
 * of cluster j their sum s_j and weight m_j,
 *
 *     sum over rows of w ||x - c||^2 = sum over rows of w ||x - a||^2
 *                                      + sum over j of m_j ||c_j - a||^2 - 2 (c_j - a) . (s_j - m_j a)
 *
 * The first sum is the same in each pass, so it is measured once for each block. What the difference loses is about
 * 1e-16 of it. Whoever has the block measures the same, so a worker that takes over a block comes to the same bits. */
#include <string.h>

#include "learn/kmeans/kmeans.h"
#include "learn/solve/loop.h"

/* Rows that a thread takes at once; stretches at least; values of all stretches' sums, as far as that leaves more. */
enum { ROWS = 1024, SLOTS_LEAST = 8, SLOT_VALUES = 1 << 20 };

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* The sums of a stretch as the kernels take them: [k, d], [k] weights, [k] squared distances. */
static int64_t size_of(int64_t k, int64_t d) { return k * (d + PLI_KMEANS_MORE); }

static int64_t slots_of(int64_t k, int64_t d) {
    const int64_t slots = SLOT_VALUES / size_of(k, d);
    return slots < SLOTS_LEAST ? SLOTS_LEAST : slots;
}

double pli_kmeans_pass_bytes(int64_t k, int64_t d) {
    return (double)size_of(k, d) * ((double)slots_of(k, d) + 1) * sizeof(double) + (double)pli_centres_bytes(k, d);
}

/* A thread's room: scratch of the kernels, and nearest and distances of some rows before it. */
typedef struct room {
    double   distance[ROWS];
    uint32_t nearest[ROWS];
} room;

plait_status pli_kmeans_pass_begin(pli_kmeans_pass *pass, const pli_run *run, int64_t k, bool dense) {
    const int64_t d = run->features, size = size_of(k, d), slots = slots_of(k, d);
    const int32_t blocks = pli_dataset_blocks(run->data);
    *pass = (pli_kmeans_pass){ .k = k, .d = d, .dense = dense, .pool = run->pool };
    pass->slots = slots < blocks ? (int32_t)slots : blocks;
    pass->room_bytes = (sizeof(room) + pli_nearest_scratch_bytes(k, d) + 63) / 64 * 64;
    pass->ready = pli_array(1, pli_centres_bytes(k, d));
    pass->room = pli_array((size_t)pli_pool_threads(run->pool), pass->room_bytes);
    pass->slot = pli_array((size_t)(pass->slots * size), sizeof *pass->slot);
    pass->push = pli_array((size_t)size, sizeof *pass->push);
    if (pass->ready != NULL && pass->room != NULL && pass->slot != NULL && pass->push != NULL) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_ENOMEM, "no memory to add up the rows of %lld clusters of %lld features",
                    (long long)k, (long long)d);
}

void pli_kmeans_pass_end(pli_kmeans_pass *pass) {
    pli_free(pass->ready);
    pli_free(pass->room);
    pli_free(pass->slot);
    pli_free(pass->push);
    pli_free(pass->spread);
    pli_free(pass->anchor_ready);
    *pass = (pli_kmeans_pass){ 0 };
}

void pli_kmeans_pass_centres(pli_kmeans_pass *pass, const float *centre) {
    pli_centres_prepare(&pass->centres, pass->k, pass->d, centre, pass->dense, pass->ready);
}

plait_status pli_kmeans_pass_anchor(pli_kmeans_pass *pass, const pli_run *run, const float *anchor) {
    const int32_t blocks = pli_dataset_blocks(run->data);
    if (pass->spread == NULL) pass->spread = pli_array((size_t)blocks, sizeof *pass->spread);
    if (pass->anchor_ready == NULL) pass->anchor_ready = pli_array(1, pli_centres_bytes(1, pass->d));
    if (pass->spread == NULL || pass->anchor_ready == NULL)
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory to measure the rows of %d blocks", (int)blocks);
    for (int32_t b = 0; b < blocks; b++) pass->spread[b] = -1;
    pli_centres_prepare(&pass->anchor, 1, pass->d, anchor, pass->dense, pass->anchor_ready);
    return PLAIT_OK;
}

/* --- a stretch ---------------------------------------------------------------------------------------------------- */

/* Parts fall into so many stretches, whose sums lie in slots from `slot` on. */
typedef struct work {
    const pli_kmeans_pass *pass;
    const pli_part        *part; /* [parts] */
    int32_t                parts, slot, slots;
} work;

/* The weighted squared distances of the part's rows to the anchor. */
static double spread_of(const pli_kmeans_pass *pass, const pli_part *part, char *at) {
    const pli_csr      x = pli_kmeans_csr(part->block);
    room              *r = (room *)(void *)at;
    const pli_assigned out = { .nearest = r->nearest, .distance = r->distance };
    double             spread = 0;
    for (int64_t i = 0, n; i < part->rows; i += n) {
        n = part->rows - i < ROWS ? part->rows - i : ROWS;
        const pli_rows rows = { .order = part->order, .first = part->order != NULL ? i : part->first + i, .n = n };
        pli_nearest_csr(&pass->anchor, &x, rows, at + sizeof *r, &out);
        for (int64_t j = 0; j < n; j++)
            spread += pli_kmeans_weight(part->block, pli_row_at(rows, j)) * r->distance[j];
    }
    return spread;
}

/* What the clusters' sums take off the spread of their rows, or add to it. */
static void add_moves(const pli_kmeans_pass *pass, const double *sum, const double *mass, double *cost) {
    const float *a = pass->anchor.centre;
    for (int64_t j = 0; j < pass->k; j++) {
        const float *c = pass->centres.centre + j * pass->d;
        double       square = 0, product = 0;
        for (int64_t l = 0; l < pass->d; l++) {
            const double move = (double)c[l] - (double)a[l];
            square += move * move;
            product += move * (sum[j * pass->d + l] - mass[j] * (double)a[l]);
        }
        cost[j] += mass[j] * square - 2 * product;
    }
}

static void add_part(const pli_kmeans_pass *pass, const pli_part *part, int32_t thread, double *sum) {
    const int64_t kd = pass->k * pass->d;
    const pli_csr x = pli_kmeans_csr(part->block);
    char         *at = pass->room + (size_t)thread * pass->room_bytes;
    room         *r = (room *)(void *)at;
    double       *mass = sum + kd, *cost = mass + pass->k, *spread = pass->spread;
    const pli_assigned out = { .nearest = r->nearest,
                               .distance = spread == NULL ? r->distance : NULL,
                               .weight = part->block->weight,
                               .sum = sum,
                               .mass = mass };
    if (spread != NULL && part->rows > 0) {
        spread += part->block->number;
        if (*spread < 0) *spread = spread_of(pass, part, at);
        cost[0] += *spread;
    }
    for (int64_t i = 0, n; i < part->rows; i += n) {
        n = part->rows - i < ROWS ? part->rows - i : ROWS;
        const pli_rows rows = { .order = part->order, .first = part->order != NULL ? i : part->first + i, .n = n };
        pli_nearest_csr(&pass->centres, &x, rows, at + sizeof *r, &out);
        for (int64_t j = 0; spread == NULL && j < n; j++)
            cost[r->nearest[j]] += pli_kmeans_weight(part->block, pli_row_at(rows, j)) * r->distance[j];
    }
}

static void add_stretch(void *user, int64_t i, int32_t thread) {
    const work   *w = user;
    const int64_t size = size_of(w->pass->k, w->pass->d);
    const int64_t first = i * w->parts / w->slots, end = (i + 1) * w->parts / w->slots;
    double       *sum = w->pass->slot + (w->slot + i) * size;
    memset(sum, 0, (size_t)size * sizeof *sum);
    for (int64_t p = first; p < end; p++) add_part(w->pass, &w->part[p], thread, sum);
    if (w->pass->spread == NULL) return;
    const double *mass = sum + w->pass->k * w->pass->d;
    add_moves(w->pass, sum, mass, sum + w->pass->k * w->pass->d + w->pass->k);
}

/* A cluster's row of the table, out of the stretches' sums. */
static void gather_cluster(void *user, int64_t j, int32_t thread) {
    const work   *w = user;
    const int64_t k = w->pass->k, d = w->pass->d, size = size_of(k, d);
    double       *to = w->pass->push + j * (d + PLI_KMEANS_MORE);
    (void)thread;
    memset(to, 0, (size_t)(d + PLI_KMEANS_MORE) * sizeof *to);
    for (int32_t s = w->slot; s < w->slot + w->slots; s++) {
        const double *sum = w->pass->slot + s * size;
        for (int64_t l = 0; l < d; l++) to[l] += sum[j * d + l];
        to[d + PLI_KMEANS_MASS] += sum[k * d + j];
        to[d + PLI_KMEANS_COST] += sum[k * d + k + j];
    }
}

/* --- a batch ------------------------------------------------------------------------------------------------------ */

/* What `slots` stretches from slot on have come to; rows: how many they had. */
static plait_status push(const pli_kmeans_pass *pass, int32_t slot, int32_t slots, int64_t rows, plait_table *table,
                         pli_sums *sums) {
    work          w = { .pass = pass, .slot = slot, .slots = slots };
    const int64_t width = pass->d + PLI_KMEANS_MORE;
    pli_pool_for(pass->pool, pass->k, gather_cluster, &w);
    *sums = (pli_sums){ .rows = (double)rows };
    for (int64_t j = 0; j < pass->k; j++) {
        sums->loss += pass->push[j * width + pass->d + PLI_KMEANS_COST];
        sums->weight += pass->push[j * width + pass->d + PLI_KMEANS_MASS];
    }
    if (sums->loss < 0) sums->loss = 0; /* rounding, where all rows lie on their centres */
    return plait_table_inc_range(table, 0, pass->k, pass->push, 0);
}

/* Each block by itself, a shape that never changes. */
static plait_status run_apart(pli_run *run, pli_kmeans_pass *pass, const pli_batch *batch, plait_table *table) {
    for (int32_t first = 0, n; first < batch->parts; first += n) {
        n = batch->parts - first < pass->slots ? batch->parts - first : pass->slots;
        work w = { .pass = pass, .part = batch->part + first, .parts = n, .slots = n };
        pli_pool_for(pass->pool, n, add_stretch, &w);
        for (int32_t s = 0; s < n; s++) {
            pli_sums sums;
            if (batch->part[first + s].rows == 0) continue;
            PLI_TRY(push(pass, s, 1, batch->part[first + s].rows, table, &sums));
            pli_total_add(&run->loop->total, &sums);
        }
    }
    return PLAIT_OK;
}

plait_status pli_kmeans_pass_run(pli_run *run, pli_kmeans_pass *pass, const pli_batch *batch, plait_table *table,
                                 plait_step_sums *said) {
    if (batch->rows == 0) return PLAIT_OK;
    pli_run_charge(run, batch, pass->k, 0);
    if (run->exact) return run_apart(run, pass, batch, table);
    const int32_t slots = batch->parts < pass->slots ? batch->parts : pass->slots;
    work          w = { .pass = pass, .part = batch->part, .parts = batch->parts, .slots = slots };
    pli_sums      sums;
    pli_pool_for(pass->pool, slots, add_stretch, &w);
    PLI_TRY(push(pass, 0, slots, batch->rows, table, &sums));
    *said = (plait_step_sums){ .loss = sums.loss, .weight = sums.weight, .rows = sums.rows };
    return PLAIT_OK;
}
