/* The first centres.
 *
 * k-means|| (Bahmani et al., "Scalable K-Means++", VLDB 2012) takes rows as candidates: one at random, then in each of
 * a few rounds every row by itself with a probability proportional to its squared distance to the nearest candidate.
 * Each candidate weighs as much as the rows that are nearest to it, and the candidates, which are few, are clustered on
 * the spot (seeds.c). There are more candidates than k asks for: then clustering them many times over, and keeping the
 * best, is nearly as good as doing so with all rows.
 *
 * A row's random numbers belong to the row, its distances have the same bits whoever takes them, candidates are kept in
 * the order of their rows, and sums over rows are exact. So the centres do not depend on the number of workers. If a
 * worker dies meanwhile (replicas 2), the others draw anew, and its rows fall to them: they draw the same centres. */
#include <math.h>
#include <string.h>

#include "learn/kmeans/kmeans.h"
#include "learn/model/model.h"
#include "learn/solve/inherit.h"
#include "tensor/exact_cells.h"

/* Candidates that are worth having in a round whatever k is, and floats that they may take. */
enum { ROUNDS = 5, ROUND_LEAST = 200, ROUND_FLOATS = 1 << 23 };

/* What a worker knows of the rows of one of its blocks. */
typedef struct own_block {
    const pli_block *block;
    double          *near; /* [rows] squared distance to the nearest candidate */
    uint32_t        *of;   /* [rows] which that is                             */
} own_block;

typedef struct drawing {
    pli_run   *run;
    int64_t    d, wanted; /* candidates a round */
    bool       dense;
    pli_living held;
    own_block *own;       /* [held.n] */
    pli_listed candidate;
    double     cost;      /* sum over all rows of weight times near */
} drawing;

/* --- distances ---------------------------------------------------------------------------------------------------- */

/* Against the candidates from first on. */
typedef struct nearing {
    drawing    *draw;
    int64_t     first;
    pli_centres centres;
    char       *scratch; /* [threads] of scratch_bytes */
    size_t      scratch_bytes;
    bool       *failed; /* [threads] */
} nearing;

static void near_block(void *user, int64_t b, int32_t thread) {
    nearing         *n = user;
    own_block       *own = &n->draw->own[b];
    const pli_block *block = own->block;
    uint32_t        *nearest = pli_array((size_t)block->rows + 1, sizeof *nearest);
    double          *distance = pli_array((size_t)block->rows + 1, sizeof *distance);
    n->failed[thread] = n->failed[thread] || nearest == NULL || distance == NULL;
    if (nearest != NULL && distance != NULL) {
        pli_kmeans_nearest(&n->centres, block, n->scratch + (size_t)thread * n->scratch_bytes, nearest, distance);
        for (int64_t r = 0; r < block->rows; r++) {
            if (!(distance[r] < own->near[r])) continue;
            own->near[r] = distance[r];
            own->of[r] = (uint32_t)n->first + nearest[r];
        }
    }
    pli_free(nearest);
    pli_free(distance);
}

static plait_status near_all(drawing *draw, nearing *n, void *ready) {
    const int32_t threads = pli_pool_threads(draw->run->pool);
    bool          failed = ready == NULL || n->scratch == NULL || n->failed == NULL;
    if (!failed) {
        pli_centres_prepare(&n->centres, draw->candidate.n - n->first, draw->d,
                            draw->candidate.x + n->first * draw->d, draw->dense, ready);
        pli_pool_for(draw->run->pool, draw->held.n, near_block, n);
        for (int32_t t = 0; t < threads; t++) failed = failed || n->failed[t];
    }
    return failed ? pli_fail(draw->run->err, PLAIT_ENOMEM, "no memory to compare rows with candidates") : PLAIT_OK;
}

/* Takes in the candidates from first on. */
static plait_status take_in(drawing *draw, int64_t first) {
    const size_t threads = (size_t)pli_pool_threads(draw->run->pool);
    const int64_t k = draw->candidate.n - first;
    if (k == 0) return PLAIT_OK;
    nearing n = { .draw = draw, .first = first };
    n.scratch_bytes = (pli_nearest_scratch_bytes(k, draw->d) + 63) / 64 * 64;
    n.scratch = pli_array(threads, n.scratch_bytes);
    n.failed = pli_calloc(threads, sizeof *n.failed);
    void        *ready = pli_array(1, pli_centres_bytes(k, draw->d));
    plait_status status = near_all(draw, &n, ready);
    pli_free(ready);
    pli_free(n.scratch);
    pli_free(n.failed);
    pli_comm_work(draw->run->comm, PLI_WORK_ENTRIES, (uint64_t)(draw->run->own_entries * k));
    return status;
}

/* --- sums over all rows ------------------------------------------------------------------------------------------- */

static plait_status sum_cost(drawing *draw) {
    uint64_t     cell[4] = { 0 };
    plait_status status = PLAIT_OK;
    for (int32_t b = 0; status >= 0 && b < draw->held.n; b++) {
        const own_block *own = &draw->own[b];
        double          *term = pli_array((size_t)own->block->rows + 1, sizeof *term);
        if (term == NULL) status = pli_fail(draw->run->err, PLAIT_ENOMEM, "no memory to add up distances");
        for (int64_t r = 0; term != NULL && r < own->block->rows; r++)
            term[r] = pli_kmeans_weight(own->block, r) * own->near[r];
        if (term != NULL) pli_cell_add_all(own->block->rows, term, cell);
        pli_free(term);
    }
    PLI_TRY(status);
    PLI_TRY(pli_comm_sum_cells(draw->run->comm, true, 1, cell));
    pli_cells_round(true, 1, cell, &draw->cost);
    return PLAIT_OK;
}

/* What each candidate weighs: weight [n] in floats, as kernels take them. */
static plait_status weigh(drawing *draw, float *weight) {
    const int64_t n = draw->candidate.n;
    double       *sum = pli_array((size_t)n, sizeof *sum);
    uint64_t(*cell)[4] = pli_calloc((size_t)n, sizeof *cell);
    plait_status status = sum != NULL && cell != NULL
                              ? PLAIT_OK
                              : pli_fail(draw->run->err, PLAIT_ENOMEM, "no memory to weigh candidates");
    for (int32_t b = 0; status >= 0 && b < draw->held.n; b++) {
        const own_block *own = &draw->own[b];
        memset(sum, 0, (size_t)n * sizeof *sum);
        for (int64_t r = 0; r < own->block->rows; r++) sum[own->of[r]] += pli_kmeans_weight(own->block, r);
        pli_cells_add(true, n, sum, cell);
    }
    if (status >= 0) status = pli_comm_sum_cells(draw->run->comm, true, n, cell);
    if (status >= 0) pli_cells_round(true, n, cell, sum);
    for (int64_t i = 0; status >= 0 && i < n; i++) weight[i] = (float)sum[i];
    pli_free(sum);
    pli_free(cell);
    return status;
}

/* --- rounds ------------------------------------------------------------------------------------------------------- */

static double chance(const pli_run *run, int64_t round, int64_t row) {
    pli_random random = pli_random_at(run->opts->seed, PLI_RANDOM_CENTRES, (uint64_t)round, (uint64_t)row);
    return pli_random_f64(&random);
}

/* Each row gets a time that is exponential with its weight as rate: which comes first is a row at random, by weight. */
static plait_status draw_one(drawing *draw) {
    pli_listed   mine = { .d = draw->d }, all = { .d = draw->d };
    double       least = INFINITY;
    bool         ok = true;
    for (int32_t b = 0; b < draw->held.n; b++) {
        const pli_block *block = draw->own[b].block;
        for (int64_t r = 0; r < block->rows; r++) {
            const double weight = pli_kmeans_weight(block, r);
            const double when = -log1p(-chance(draw->run, 0, block->first_row + r)) / weight;
            if (!(weight > 0) || !(when < least)) continue;
            least = when;
            mine.n = 0;
            ok = pli_listed_add(&mine, block, r, when) && ok;
        }
    }
    plait_status status = ok ? pli_listed_share(draw->run, &mine, &all)
                             : pli_fail(draw->run->err, PLAIT_ENOMEM, "no memory for a candidate");
    int64_t best = 0;
    for (int64_t i = 1; i < all.n; i++)
        if (all.key[i] < all.key[best]) best = i;
    if (status >= 0 && all.n == 0)
        status = pli_fail(draw->run->err, PLAIT_EFORMAT, "all rows have weight 0: the sum of weights must be above 0");
    if (status >= 0) {
        if (best > 0) memcpy(all.x, all.x + best * draw->d, (size_t)draw->d * sizeof *all.x);
        all.n = 1;
        draw->candidate = all;
    } else {
        pli_listed_free(&all);
    }
    pli_listed_free(&mine);
    return status;
}

static plait_status draw_round(drawing *draw, int64_t round) {
    const double scale = (double)draw->wanted / draw->cost;
    pli_listed   mine = { .d = draw->d };
    bool         ok = true;
    for (int32_t b = 0; b < draw->held.n; b++) {
        const own_block *own = &draw->own[b];
        for (int64_t r = 0; ok && r < own->block->rows; r++) {
            const double probability = scale * pli_kmeans_weight(own->block, r) * own->near[r];
            if (chance(draw->run, round, own->block->first_row + r) < probability)
                ok = pli_listed_add(&mine, own->block, r, 0);
        }
    }
    const int64_t first = draw->candidate.n;
    plait_status  status = ok ? pli_listed_share(draw->run, &mine, &draw->candidate)
                              : pli_fail(draw->run->err, PLAIT_ENOMEM, "no memory for candidates");
    pli_listed_free(&mine);
    PLI_TRY(status);
    if (!pli_listed_sort(&draw->candidate, first))
        return pli_fail(draw->run->err, PLAIT_ENOMEM, "no memory to sort candidates");
    PLI_TRY(take_in(draw, first));
    return sum_cost(draw);
}

/* --- from the data ------------------------------------------------------------------------------------------------ */

static plait_status begin(drawing *draw) {
    PLI_TRY(pli_living_blocks(draw->run, draw->run->data, &draw->held));
    draw->own = pli_calloc((size_t)draw->held.n + 1, sizeof *draw->own);
    bool ok = draw->own != NULL;
    for (int32_t b = 0; ok && b < draw->held.n; b++) {
        own_block *own = &draw->own[b];
        own->block = draw->held.block[b];
        own->near = pli_array((size_t)own->block->rows + 1, sizeof *own->near);
        own->of = pli_calloc((size_t)own->block->rows + 1, sizeof *own->of);
        ok = own->near != NULL && own->of != NULL;
        for (int64_t r = 0; ok && r < own->block->rows; r++) own->near[r] = INFINITY;
    }
    return ok ? PLAIT_OK : pli_fail(draw->run->err, PLAIT_ENOMEM, "no memory for the rows' distances");
}

static void end(drawing *draw) {
    for (int32_t b = 0; draw->own != NULL && b < draw->held.n; b++) {
        pli_free(draw->own[b].near);
        pli_free(draw->own[b].of);
    }
    pli_free(draw->own);
    pli_living_blocks_free(&draw->held);
    pli_listed_free(&draw->candidate);
}

/* Where all rows lie on candidates there is nothing left to draw. */
static plait_status draw_all(drawing *draw) {
    PLI_TRY(begin(draw));
    PLI_TRY(draw_one(draw));
    PLI_TRY(take_in(draw, 0));
    PLI_TRY(sum_cost(draw));
    for (int64_t round = 1; round <= ROUNDS && draw->cost > 0 && isfinite(draw->cost); round++)
        PLI_TRY(draw_round(draw, round));
    float       *weight = pli_array((size_t)draw->candidate.n, sizeof *weight);
    plait_status status = weight != NULL
                              ? weigh(draw, weight)
                              : pli_fail(draw->run->err, PLAIT_ENOMEM, "no memory to weigh candidates");
    if (status >= 0) status = pli_kmeans_seeds(draw->run, draw->candidate.n, draw->candidate.x, weight);
    pli_free(weight);
    return status;
}

static plait_status draw_once(pli_run *run) {
    const pli_kmeans *m = run->state;
    const int64_t     most = ROUND_FLOATS / m->d, more = most < ROUND_LEAST ? most : ROUND_LEAST;
    drawing           draw = { .run = run, .d = m->d, .dense = m->dense, .candidate = { .d = m->d } };
    draw.wanted = 2 * m->k > more ? 2 * m->k : more;
    plait_status status = draw_all(&draw);
    end(&draw);
    return status;
}

/* Without a dead worker's rows even weights may seem to be missing: what sums of all say counts only if all were
 * there. */
plait_status pli_kmeans_draw(pli_run *run) {
    int32_t      absent = pli_comm_absent(run->comm);
    plait_status status;
    do status = draw_once(run);
    while (pli_run_again(run, &absent) && (status >= 0 || status == PLAIT_EFORMAT || status == PLAIT_EDIVERGED));
    return status;
}

/* --- given -------------------------------------------------------------------------------------------------------- */

static plait_status of_model(pli_run *run) {
    const pli_kmeans *m = run->state;
    int64_t           shape[2];
    const float      *centre = plait_model_value(run->start, "centres", PLAIT_F32, 2, shape);
    if (centre == NULL || shape[0] != m->k || shape[1] > m->d)
        return pli_fail(run->err, PLAIT_EMISMATCH, "%s has %lld clusters of %lld features, but this run has %lld of "
                                                   "%lld: give --clusters %lld, and data with these features",
                        run->opts->init_model, (long long)(centre != NULL ? shape[0] : 0),
                        (long long)(centre != NULL ? shape[1] : 0), (long long)m->k, (long long)m->d,
                        (long long)(centre != NULL ? shape[0] : 0));
    memset(m->centre, 0, (size_t)(m->k * m->d) * sizeof *m->centre);
    for (int64_t j = 0; j < m->k; j++)
        memcpy(m->centre + j * m->d, centre + j * shape[1], (size_t)shape[1] * sizeof *centre);
    return PLAIT_OK;
}

static plait_status copy_rows(pli_run *run, const plait_data *data, const char *path) {
    const pli_kmeans *m = run->state;
    int64_t           j = 0;
    if (plait_data_rows(data) != m->k)
        return pli_fail(run->err, PLAIT_EINVAL, "%s has %lld rows, but one is needed for each of %lld clusters", path,
                        (long long)plait_data_rows(data), (long long)m->k);
    memset(m->centre, 0, (size_t)(m->k * m->d) * sizeof *m->centre);
    for (int32_t b = 0; b < plait_data_blocks(data); b++) {
        for (int64_t r = 0; r < plait_data_block_rows(data, b); r++, j++) {
            plait_row row;
            PLI_TRY(plait_data_row(data, b, r, &row, run->err));
            for (int64_t e = 0; e < row.n; e++) {
                const uint64_t column = row.column != NULL ? row.column[e] : row.key[e];
                if (column >= (uint64_t)m->d) continue;
                m->centre[j * m->d + (int64_t)column] = row.value != NULL ? row.value[e] : 1;
            }
        }
    }
    return PLAIT_OK;
}

/* The file is read as the data are: the same columns, the same format or another; beside data in memory, as rows
 * without labels. */
static plait_status of_file(pli_run *run, const char *path) {
    plait_data_opts files;
    plait_data     *data = NULL;
    plait_data_opts_init(&files);
    if (run->opts->data != NULL) files = *run->opts->data;
    if (run->opts->data == NULL || pli_dataset_has_label_file(run->data)) files.label = "none";
    files.paths = &path;
    files.n_paths = 1;
    files.cache = 0;
    PLI_TRY(pli_data_read(&files, run->opts->data != NULL ? run->schema : NULL, &data, run->err));
    plait_status status = copy_rows(run, data, path);
    plait_data_destroy(&data);
    return status;
}

plait_status pli_kmeans_given(pli_run *run, bool *given_out) {
    const char *path = plait_training_name(run, "centres");
    *given_out = path[0] != '\0' || run->start != NULL;
    if (!*given_out) return PLAIT_OK;
    return path[0] != '\0' ? of_file(run, path) : of_model(run);
}
