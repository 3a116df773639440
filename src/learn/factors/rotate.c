/* Stochastic gradient by rotation. Blocks of items lie on a ring, and each worker takes one in a step
 * (plait/schedule.h, order rotate): so no two workers ever move the same row, and after as many steps as there are
 * blocks each worker has met all of its ratings once (Gemulla, Nijkamp, Haas and Sismanis, KDD 2011). Users stay with
 * their worker.
 *
 * A step reads the block's rows, moves them and the users', and pushes how far the items have moved. Users are pushed
 * in the last step of an epoch, for checkpoints and for the model; with two replicas in each step (heirs.c). After a
 * push, a table's value may differ by a rounding from what was computed; a worker goes on from what the table holds, so
 * a run that resumes has the same bits. */
#include <math.h>
#include <string.h>

#include "learn/factors/factors.h"
#include "learn/solve/rotation.h"
#include "sched/sched.h"

/* --- rows --------------------------------------------------------------------------------------------------------- */

bool pli_factor_rows_make(pli_factor_rows *rows, int64_t n, int64_t rank) {
    rows->n = n;
    rows->rank = rank;
    rows->width = (rank + PLI_FACTOR_LANES - 1) / PLI_FACTOR_LANES * PLI_FACTOR_LANES;
    const size_t bytes = (size_t)(n > 0 ? n : 1) * (size_t)rows->width * sizeof *rows->row;
    rows->row = pli_aligned(bytes);
    rows->side = pli_calloc((size_t)n, 2 * sizeof *rows->side);
    if (rows->row != NULL) memset(rows->row, 0, bytes);
    return rows->row != NULL && rows->side != NULL;
}

void pli_factor_rows_free(pli_factor_rows *rows) {
    pli_free(rows->row);
    pli_free(rows->side);
    *rows = (pli_factor_rows){ 0 };
}

void pli_factor_rows_read(pli_factor_rows *rows, int64_t n, const float *table) {
    const int64_t cols = rows->rank + PLI_FACTOR_FIRST;
    for (int64_t i = 0; i < n; i++) {
        memcpy(rows->side + 2 * i, table + i * cols, PLI_FACTOR_FIRST * sizeof *table);
        memcpy(rows->row + i * rows->width, table + i * cols + PLI_FACTOR_FIRST, (size_t)rows->rank * sizeof *table);
    }
}

void pli_factor_rows_write(const pli_factor_rows *rows, int64_t n, float *table) {
    const int64_t cols = rows->rank + PLI_FACTOR_FIRST;
    for (int64_t i = 0; i < n; i++) {
        memcpy(table + i * cols, rows->side + 2 * i, PLI_FACTOR_FIRST * sizeof *table);
        memcpy(table + i * cols + PLI_FACTOR_FIRST, rows->row + i * rows->width, (size_t)rows->rank * sizeof *table);
    }
}

/* --- a block ------------------------------------------------------------------------------------------------------ */

/* How a block's tiles are gone through. */
typedef struct going {
    pli_mf                   *m;
    pli_mf_users             *users;
    const pli_factor_kernels *kernels;
    pli_factor_step           step;
    int64_t                   block, t;
} going;

static void run_tile(void *user, int64_t s, int32_t thread) {
    const going            *g = user;
    pli_mf                 *m = g->m;
    pli_mf_users           *u = g->users;
    const pli_factor_cells *c = &u->cells;
    const int64_t           at = (g->block * c->strips + g->t) * c->strips + s, from = c->start[at];
    const int64_t           n = c->start[at + 1] - from;
    (void)thread;
    u->tile_loss[s] += m->loss == PLI_FACTORS_BPR
                           ? g->kernels->ranked(&g->step, n, c->rating + from,
                                                u->other + from - c->start[g->block * c->strips * c->strips])
                           : g->kernels->squared(&g->step, n, c->rating + from);
}

static bool has_rated(const pli_ratings *r, uint32_t user, uint64_t item) {
    int64_t low = r->start[user], high = r->start[user + 1];
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (r->rating[middle].item < item) low = middle + 1;
        else high = middle;
    }
    return low < r->start[user + 1] && r->rating[low].item == item;
}

/* Draws, for each rating of a tile, an item of the same strip that the user has not rated; after some tries, any item.
 * The draw depends on seed, epoch and rating. */
static void draw_tile(void *user, int64_t tile, int32_t thread) {
    const going            *g = user;
    pli_mf                 *m = g->m;
    pli_mf_users           *u = g->users;
    const pli_factor_cells *c = &u->cells;
    const int64_t strips = c->strips, s = tile % strips, t = tile / strips;
    const int64_t  first = c->start[g->block * strips * strips];
    const int64_t *cut = c->item_cut + g->block * (strips + 1) + (s + t) % strips;
    const int64_t  at = g->block * strips * strips + tile;
    (void)thread;
    if (c->start[at] == c->start[at + 1]) return;
    pli_random random = pli_random_at(m->seed, PLI_RANDOM_FACTORS, (uint64_t)m->epoch,
                                      (uint64_t)((u->worker * m->blocks + g->block) * strips * strips + tile));
    for (int64_t i = c->start[at]; i < c->start[at + 1]; i++) {
        const pli_rating *r = &c->rating[i];
        int64_t           other = r->item;
        for (int tries = 0; tries < 8; tries++) {
            other = cut[0] + (int64_t)pli_random_below(&random, (uint64_t)(cut[1] - cut[0]));
            if (!has_rated(&u->ratings, r->user, m->key[m->block_cut[g->block] + other])) break;
        }
        u->other[i - first] = (uint32_t)other;
    }
}

double pli_mf_rate(const pli_run *run, double rate, int64_t epoch, int64_t epochs) {
    const double done = (double)epoch / (double)epochs;
    if (run->schedule != NULL && strcmp(run->schedule, "constant") == 0) return rate;
    if (run->schedule != NULL && strcmp(run->schedule, "invsqrt") == 0) return rate / sqrt(1 + (double)epoch);
    return rate * (1 + cos(acos(-1) * done)) / 2;
}

static void go_through(pli_run *run, pli_mf_users *u, int64_t block) {
    pli_mf       *m = pli_mf_of(run);
    const int64_t strips = u->cells.strips, first = block * strips * strips;
    const int64_t n = u->cells.start[first + strips * strips] - u->cells.start[first];
    going         g = { .m = m, .users = u, .kernels = pli_factor_kernels_get(), .block = block };
    g.step = (pli_factor_step){ .user = { u->rows.row, u->rows.side },
                                .item = { m->item_rows.row, m->item_rows.side }, .width = u->rows.width,
                                .rank = (int32_t)m->rank, .mean = (float)m->mean,
                                .rate = (float)pli_mf_rate(run, run->rate, m->epoch, run->epochs),
                                .l2 = (float)run->l2 };
    if (n == 0) return;
    memset(u->tile_loss, 0, (size_t)strips * sizeof *u->tile_loss);
    if (m->loss == PLI_FACTORS_BPR) pli_pool_for(run->pool, strips * strips, draw_tile, &g);
    for (g.t = 0; g.t < strips; g.t++) pli_pool_for(run->pool, strips, run_tile, &g);
    for (int64_t s = 0; s < strips; s++) m->sums.loss += u->tile_loss[s];
    for (int64_t i = u->cells.start[first]; i < u->cells.start[first + strips * strips]; i++)
        m->sums.weight += (double)u->cells.rating[i].weight;
    m->sums.rows += (double)n;
    if (pli_comm_charges(run->comm)) pli_comm_work(run->comm, PLI_WORK_ENTRIES, (uint64_t)(6 * n * m->rank));
}

/* --- users of a worker -------------------------------------------------------------------------------------------- */

static plait_status arrange_users(pli_run *run, pli_mf_users *u) {
    pli_mf       *m = pli_mf_of(run);
    const int64_t row_bytes = u->rows.width * (int64_t)sizeof(float);
    if (u->cells.rating != NULL && (m->key == NULL || u->epoch == m->epoch)) return PLAIT_OK;
    pli_factor_cells_free(&u->cells);
    PLI_TRY(pli_factor_cells_make(&u->ratings, m->blocks, m->block_cut, m->place, row_bytes, m->seed, &u->cells,
                                  run->err));
    pli_free(u->tile_loss);
    u->epoch = m->epoch;
    u->tile_loss = pli_calloc((size_t)u->cells.strips, sizeof *u->tile_loss);
    if (u->tile_loss == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for %lld strips",
                                              (long long)u->cells.strips);
    if (m->key == NULL) pli_ratings_free_rows(&u->ratings); /* the cells have them */
    return PLAIT_OK;
}

static plait_status make_users(pli_run *run, pli_mf_users *u) {
    pli_mf      *m = pli_mf_of(run);
    const size_t values = (size_t)(u->ratings.n * m->cols);
    u->base = pli_array(values, sizeof *u->base);
    u->seen = pli_calloc((size_t)u->ratings.n, 1);
    bool good = u->base != NULL && u->seen != NULL && pli_factor_rows_make(&u->rows, u->ratings.n, m->rank);
    if (m->loss == PLI_FACTORS_BPR) {
        u->other = pli_array((size_t)u->ratings.ratings, sizeof *u->other);
        good = good && u->other != NULL;
    }
    if (good && u->ratings.n * m->cols > m->delta_values) {
        pli_free(m->delta);
        m->delta_values = u->ratings.n * m->cols;
        m->delta = pli_array((size_t)m->delta_values, sizeof *m->delta);
        good = m->delta != NULL;
    }
    return good ? PLAIT_OK : pli_fail(run->err, PLAIT_ENOMEM, "no memory for factors of %lld users",
                                      (long long)u->ratings.n);
}

void pli_rotate_free_users(pli_mf_users *u) {
    pli_factor_cells_free(&u->cells);
    pli_factor_rows_free(&u->rows);
    void **const memory[] = { (void **)&u->base, (void **)&u->other, (void **)&u->tile_loss, (void **)&u->seen };
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
        pli_free(*memory[i]);
        *memory[i] = NULL;
    }
}

/* Those of a dead worker: what the own ones have from the beginning. */
static plait_status arrange_heir(pli_run *run, pli_mf_users *u) {
    if (u->base == NULL) PLI_TRY(make_users(run, u));
    return arrange_users(run, u);
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

/* Pushes by how much rows differ from base, and notes in base what the table then holds. */
static plait_status push_rows(pli_mf *m, const pli_factor_rows *rows, int64_t n, float *base) {
    const int64_t values = n * m->cols;
    pli_factor_rows_write(rows, n, m->delta);
    for (int64_t i = 0; i < values; i++) {
        m->delta[i] -= base[i];
        base[i] += m->delta[i];
    }
    return PLAIT_OK;
}

static plait_status get_items(pli_mf *m, int64_t first, int64_t n) {
    if (m->key != NULL) return plait_table_get(m->items, n, m->key + first, m->item_base);
    return plait_table_get_range(m->items, first, n, m->item_base);
}

static plait_status push_items(pli_mf *m, int64_t first, int64_t n) {
    PLI_TRY(push_rows(m, &m->item_rows, n, m->item_base));
    if (m->key != NULL) return plait_table_inc(m->items, n, m->key + first, m->delta, 0);
    return plait_table_inc_range(m->items, first, n, m->delta, 0);
}

static plait_status push_users(pli_mf *m, pli_mf_users *u) {
    const int64_t n = u->ratings.n;
    if (n == 0) return PLAIT_OK;
    PLI_TRY(push_rows(m, &u->rows, n, u->base));
    PLI_TRY(plait_table_inc_range(m->users, u->ratings.first, n, m->delta, 0));
    pli_factor_rows_read(&u->rows, n, u->base);
    return PLAIT_OK;
}

static plait_status get_users(pli_mf *m, pli_mf_users *u) {
    const int64_t n = u->ratings.n;
    if (n == 0) return PLAIT_OK;
    PLI_TRY(plait_table_get_range(m->users, u->ratings.first, n, u->base));
    pli_factor_rows_read(&u->rows, n, u->base);
    return PLAIT_OK;
}

/* The users whose ratings a step on the block is of: those of the worker that has it in the plan. */
static plait_status users_of(pli_run *run, int64_t step, int64_t block, pli_mf_users **users_out) {
    pli_mf       *m = pli_mf_of(run);
    const int32_t home = plait_schedule_owner(m->blocks, pli_run_holders(run), step, block);
    *users_out = &m->own;
    if (home == m->own.worker) return PLAIT_OK;
    *users_out = pli_mf_heirs_users(run, home);
    return *users_out != NULL ? arrange_heir(run, *users_out) : PLAIT_ENOMEM;
}

static plait_status move_block(pli_run *run, int64_t step, int64_t block) {
    pli_mf       *m = pli_mf_of(run);
    pli_mf_users *u;
    const int64_t first = m->block_cut[block], n = m->block_cut[block + 1] - first;
    PLI_TRY(users_of(run, step, block, &u));
    if (u != &m->own) PLI_TRY(get_users(m, u));
    PLI_TRY(get_items(m, first, n));
    pli_factor_rows_read(&m->item_rows, n, m->item_base);
    pli_recut_begin_work(run);
    go_through(run, u, block);
    pli_recut_end_work(run);
    PLI_TRY(push_items(m, first, n));
    return run->opts->replicas > 1 ? push_users(m, u) : PLAIT_OK;
}

/* With two replicas the table has users after each step, since others must go on from there if this worker dies. */
static plait_status push(void *user, const plait_turn *turn) {
    pli_run *run = user;
    pli_mf  *m = pli_mf_of(run);
    for (int64_t k = 0; k < turn->n; k++) {
        const int64_t block = turn->variable[k];
        if (m->block_cut[block + 1] > m->block_cut[block]) PLI_TRY(move_block(run, turn->step, block));
    }
    if (run->opts->replicas > 1) return PLAIT_OK;
    return turn->step % m->blocks == m->blocks - 1 ? push_users(m, &m->own) : PLAIT_OK;
}

/* --- the keys of a step ------------------------------------------------------------------------------------------- */

enum { SPACE_ITEMS, SPACE_USERS };

/* The items of the block, and the users with ratings there; all are written. */
static int64_t touches(void *user, int64_t block, int64_t room, plait_touch *touch) {
    pli_mf       *m = pli_mf_of(user);
    pli_mf_users *u;
    int64_t       n = 0;
    if (users_of(user, m->step, block, &u) < 0) return -1;
    const int64_t tiles = u->cells.strips * u->cells.strips, from = u->cells.start[block * tiles],
                  to = u->cells.start[(block + 1) * tiles];
    memset(u->seen, 0, (size_t)u->ratings.n);
    for (int64_t i = m->block_cut[block]; i < m->block_cut[block + 1]; i++, n++)
        if (n < room)
            touch[n] = (plait_touch){ SPACE_ITEMS, 1, m->key != NULL ? m->key[i] : (uint64_t)i };
    for (int64_t i = from; i < to; i++) {
        const uint32_t row = u->cells.rating[i].user;
        if (u->seen[row]) continue;
        u->seen[row] = 1;
        if (n < room) touch[n] = (plait_touch){ SPACE_USERS, 1, (uint64_t)(u->ratings.first + row) };
        n++;
    }
    return n;
}

/* --- epochs ------------------------------------------------------------------------------------------------------- */

/* Under bpr an item is compared with items of its own block, so who is whose neighbour is drawn anew in each epoch. */
static plait_status arrange(pli_run *run) {
    pli_mf       *m = pli_mf_of(run);
    const int64_t items = m->pair.items;
    if (m->key != NULL) {
        pli_random random = pli_random_at(m->seed, PLI_RANDOM_FACTORS, (uint64_t)m->epoch, UINT64_MAX);
        uint32_t  *order = pli_array((size_t)items, sizeof *order);
        if (order == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory to shuffle items");
        pli_random_permutation(&random, items, order);
        for (int64_t i = 0; i < items; i++) {
            m->key[i] = order[i];
            m->place[order[i]] = (uint32_t)i;
        }
        pli_free(order);
        for (int64_t b = 0; b <= m->blocks; b++) m->block_cut[b] = items * b / m->blocks;
    }
    return arrange_users(run, &m->own);
}

static plait_status make_memory(pli_run *run) {
    pli_mf *m = pli_mf_of(run);
    int64_t block = 0;
    for (int64_t b = 0; b < m->blocks; b++)
        if (m->block_cut[b + 1] - m->block_cut[b] > block) block = m->block_cut[b + 1] - m->block_cut[b];
    if (m->loss == PLI_FACTORS_BPR) block = (m->pair.items + m->blocks - 1) / m->blocks;
    m->item_base = pli_array((size_t)(block * m->cols), sizeof *m->item_base);
    m->delta_values = block * m->cols;
    m->delta = pli_array((size_t)m->delta_values, sizeof *m->delta);
    bool good = pli_factor_rows_make(&m->item_rows, block, m->rank) && m->item_base != NULL && m->delta != NULL;
    if (m->loss == PLI_FACTORS_BPR) {
        m->key = pli_array((size_t)m->pair.items, sizeof *m->key);
        m->place = pli_array((size_t)m->pair.items, sizeof *m->place);
        good = good && m->key != NULL && m->place != NULL;
    }
    if (!good)
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for factors of %lld items", (long long)block);
    return make_users(run, &m->own);
}

static void free_memory(pli_mf *m) {
    pli_rotate_free_users(&m->own);
    pli_factor_rows_free(&m->item_rows);
    void **const memory[] = { (void **)&m->item_base, (void **)&m->delta, (void **)&m->key, (void **)&m->place };
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
        pli_free(*memory[i]);
        *memory[i] = NULL;
    }
}

plait_status pli_rotate_take_users(pli_run *run) {
    pli_mf *m = pli_mf_of(run);
    free_memory(m);
    PLI_TRY(make_memory(run));
    return get_users(m, &m->own);
}

plait_status pli_rotate_begin(pli_run *run) {
    pli_mf *m = pli_mf_of(run);
    PLI_TRY(pli_rotate_take_users(run));
    return pli_rotation_make(run, "ratings", m->blocks, push, touches, &m->schedule);
}

static plait_status stand_in(pli_run *run) { return pli_schedule_stand_in(pli_mf_of(run)->schedule); }

/* The worker was away, and others have moved its users. */
static plait_status take_up(pli_run *run) {
    pli_mf *m = pli_mf_of(run);
    m->step = run->clocks_done - m->first_clock;
    pli_schedule_skip_to(m->schedule, m->step);
    PLI_TRY(get_users(m, &m->own));
    return arrange(run);
}

plait_status pli_rotate_epoch(pli_run *run) {
    pli_mf *m = pli_mf_of(run);
    PLI_TRY(m->done > 0 ? take_up(run) : arrange(run)); /* at first it may be in the midst of an epoch, or at its end */
    while (m->done < m->blocks) {
        bool came;
        PLI_TRY(pli_schedule_begin_step(m->schedule));
        const plait_status status = pli_mf_clock(run, stand_in, &came);
        if (status != PLAIT_OK) return status;
        PLI_TRY(pli_schedule_end_step(m->schedule));
        m->step++;
        if (came) PLI_TRY(take_up(run));
    }
    return PLAIT_OK;
}

void pli_rotate_end(pli_mf *m) {
    plait_schedule_destroy(&m->schedule);
    free_memory(m);
}
