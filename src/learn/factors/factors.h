/* learn/factors/factors.h - the learner mf: a matrix of ratings as a product of users' and items' factors.
 *
 *     loss     what is minimised over all ratings (u, i, r, w), divided by their number n
 *     squared  w ((r - mean - b_u - b_i - p_u.q_i)^2 + l2 (b_u^2 + b_i^2 + |p_u|^2 + |q_i|^2)) / 2
 *     bpr      w log(1 + exp(-(s_ui - s_uj))) and the penalty, j an item drawn from those that u has not rated,
 *              s_ui = b_i + p_u.q_i
 *     implicit not over ratings alone: (1 + alpha r) (1 - p_u.q_i)^2 over ratings, (p_u.q_i)^2 over all other pairs,
 *              and l2 (|p_u|^2 + |q_i|^2) once for each user and item (Hu, Koren and Volinsky, ICDM 2008)
 *
 * Penalties are counted once for each rating, so that a user with many ratings has a larger one, as usual in this field
 * (Zhou et al., AAIM 2008; LIBMF), save under implicit.
 *
 *     ratings.c   a worker's ratings: all of its users, all of its items
 *     cells.c     ratings in the order in which steps go through them
 *     rotate.c    stochastic gradient: blocks of items go from worker to worker
 *     probe.c     the step size, where none was given
 *     recut.c     --balance dynamic: users go by speed
 *     als.c       alternating least squares: all users, then all items
 *     heirs.c     --replicas 2: the rows of a worker that has died
 *     train.c     tables, epochs, checkpoints
 *     factors_learner.c, factors_model.c, recommend.c
 *
 * Users are cut over workers so that each has about as many ratings. A worker alone updates its users. Items have no
 * worker under sgd: their blocks rotate; under als they are cut as users are.
 *
 * A row of a table is bias, mean square of slopes (sgd), factors [rank]. */
#ifndef PLI_LEARN_FACTORS_H
#define PLI_LEARN_FACTORS_H

#include <plait/schedule.h>

#include "learn/learner.h"
#include "learn/model/model.h"
#include "learn/solve/loop.h"
#include "tensor/factors/factors.h"

enum { PLI_FACTOR_BIAS, PLI_FACTOR_SQUARE, PLI_FACTOR_FIRST };

typedef enum pli_factor_loss { PLI_FACTORS_SQUARED, PLI_FACTORS_IMPLICIT, PLI_FACTORS_BPR } pli_factor_loss;

/* --- ratings.c ---------------------------------------------------------------------------------------------------- */

/* A share of the rows of one side, users or items: [first, first + n), and all ratings of these rows, in order of row
 * and of the other side's row. The own side's rows are counted from `first`. */
typedef struct pli_ratings {
    int64_t     first, n, ratings;
    int64_t    *start;  /* [n + 1] */
    pli_rating *rating; /* [ratings] in each, user is the row of this side, item that of the other */
} pli_ratings;

/** Cuts [0, n) in parts so that each has about as many of the counts: part p is [cut[p], cut[p + 1]), cut [parts + 1].
 *  */
void pli_ratings_cut(int64_t n, const int64_t *count, int64_t parts, int64_t *cut);
/** The same, part p having share[p] of all counts; NULL: all alike. */
void pli_ratings_cut_by(int64_t n, const int64_t *count, int64_t parts, const double *share, int64_t *cut);
/** Counts the ratings of each user and item over all workers. Collective. */
plait_status pli_ratings_count(pli_run *run, const pli_schema_pair *pair, int64_t *users, int64_t *items);
/** Gives each worker all ratings of its share of the users, or of the items. cut [workers + 1]. Collective. */
plait_status pli_ratings_share(pli_run *run, const pli_schema_pair *pair, bool of_items, const int64_t *cut,
                               pli_ratings *out);
/** The ratings of rows cut[0] .. cut[1] - 1, from all blocks of the data; other workers' are read once more. Errors:
 *  EIO, EFORMAT, ENOMEM. */
plait_status pli_ratings_read(pli_run *run, const pli_schema_pair *pair, bool of_items, const int64_t *cut,
                              pli_ratings *out);
void         pli_ratings_free(pli_ratings *ratings);
void         pli_ratings_free_rows(pli_ratings *ratings); /* the ratings alone, not where each row begins */

/* --- cells.c ------------------------------------------------------------------------------------------------------ */

/* The ratings of a worker by blocks of items, each a grid of `strips` x `strips` tiles. Tile (s, (s + t) % strips) has
 * rows of users and items that no other tile of the same t has. So threads take the tiles of one t side by side,
 * whoever takes which; and a tile's rows stay in the cache. Within a tile ratings come in an order that the seed
 * decides. */
typedef struct pli_cells_of_ratings {
    int64_t     blocks, strips;
    int64_t    *start;    /* [blocks, strips, strips] + 1: block, t, s */
    int64_t    *item_cut; /* [blocks, strips + 1]: the items of a strip, counted from the block's first */
    pli_rating *rating; /* users counted from the worker's first, items from the block's first */
} pli_factor_cells;

/** block_cut [blocks + 1]: the places of each block's items. place [items]: where each item is; NULL: at its number.
 *  Errors: ENOMEM. */
plait_status pli_factor_cells_make(const pli_ratings *ratings, int64_t blocks, const int64_t *block_cut,
                                   const uint32_t *place, int64_t row_bytes, uint64_t seed, pli_factor_cells *out,
                                   plait_error *err);
void         pli_factor_cells_free(pli_factor_cells *cells);

/* --- the learner -------------------------------------------------------------------------------------------------- */

/* Rows as kernels have them, of one side or a part of it. */
typedef struct pli_factor_rows {
    int64_t n, width, rank;
    float  *row, *side;
} pli_factor_rows;

bool pli_factor_rows_make(pli_factor_rows *rows, int64_t n, int64_t rank); /* false: no memory */
void pli_factor_rows_free(pli_factor_rows *rows);
/** From, and to, n rows of a table. */
void pli_factor_rows_read(pli_factor_rows *rows, int64_t n, const float *table);
void pli_factor_rows_write(const pli_factor_rows *rows, int64_t n, float *table);

/* The users of a worker, under sgd: their ratings by blocks of items, and their factors. */
typedef struct pli_mf_users {
    int32_t          worker;
    int64_t          epoch;     /* of which ratings are arranged; bpr arranges them anew in each */
    pli_ratings      ratings;
    pli_factor_cells cells;
    pli_factor_rows  rows;
    float           *base;      /* as the table holds them */
    uint32_t        *other;     /* bpr: an item that is not rated, for each rating of a block */
    double          *tile_loss; /* [strips] */
    uint8_t         *seen;      /* [users] for touches */
} pli_mf_users;

/* What was a dead worker's (heirs.c). */
typedef struct pli_mf_share {
    bool         known; /* its ratings have been read */
    pli_mf_users users;
    pli_ratings  items; /* als */
} pli_mf_share;

typedef struct pli_mf {
    pli_factor_loss loss;
    bool            als;
    int64_t         rank, cols; /* cols: of the tables, rank + 2 */
    double          confidence, mean;
    uint64_t        seed;
    int64_t         epoch; /* at hand */
    pli_schema_pair pair;
    int64_t        *user_cut, *item_cut, *block_cut; /* [workers + 1], [workers + 1], [blocks + 1] */
    int64_t         blocks;
    pli_mf_users    own;
    pli_ratings     of_items;
    plait_table    *users, *items;
    pli_sums        sums; /* of the epoch at hand, own ratings */
    pli_loop        turns; /* of workers that come and go (solve/turnover.h) */
    int64_t         first_clock; /* of this run */
    int64_t         done;  /* clocks of the epoch at hand that have ended */
    pli_mf_share   *heir; /* [workers] heirs.c; NULL: nobody has died */
    /* sgd */
    plait_schedule  *schedule;
    int64_t          step;                          /* of the schedule, at hand */
    pli_factor_rows  item_rows;
    float           *item_base, *delta;             /* as the table holds them; what is pushed */
    int64_t          delta_values;
    uint64_t        *key;                           /* [items] bpr: the item at each place,      */
    uint32_t        *place;                         /* and the place of each item                */
    uint64_t         began_ns, worked_ns;           /* recut.c: of the epoch at hand */
} pli_mf;

static inline pli_mf *pli_mf_of(const pli_run *run) { return run->state; }

plait_status pli_mf_train(pli_run *run); /* train.c */
/** train.c: ends a clock of the epoch at hand. stand_in: for the part of workers that have died in it. *came_out: this
 *  worker was away; m->epoch and m->done are those of the others. PLAIT_END: they have ended. */
plait_status pli_mf_clock(pli_run *run, plait_status (*stand_in)(pli_run *run), bool *came_out);
/** How many clocks' updates of others a read may miss, where that is bounded; else 0. */
int64_t pli_mf_staleness(const pli_run *run);

/** One epoch, or what is left of it; PLAIT_END: the others have ended while this worker was away. begin: the tables are
 *  there; end is called in any case. */
plait_status pli_rotate_begin(pli_run *run);
plait_status pli_rotate_epoch(pli_run *run);
void         pli_rotate_end(pli_mf *m);
/** Takes the users of m->own.ratings from the table, in place of those before. */
plait_status pli_rotate_take_users(pli_run *run);
/** What the users of a worker have beside their ratings is freed. */
void         pli_rotate_free_users(pli_mf_users *users);
plait_status pli_als_epoch(pli_run *run);
enum { PLI_ALS_CLOCKS = 2 }; /* of an epoch: users, then items */

/** The step size of an epoch of so many, if the first has this one. Update rules' schedules have the same names. */
double pli_mf_rate(const pli_run *run, double rate, int64_t epoch, int64_t epochs);
/** Writes factors as they begin [rows, cols]; table: 0 users, 1 items. */
void pli_mf_draw_rows(const pli_mf *m, uint64_t seed, uint64_t table, int64_t rows, float *out);

/* --- probe.c ------------------------------------------------------------------------------------------------------ */

/** Sets run->rate by trying, if the user gave none and there are not too many ratings. usual_epochs: to try, where the
 *  rate does not depend on how many there are. Collective. */
plait_status pli_mf_probe(pli_run *run, int64_t usual_epochs);

/* --- recut.c ------------------------------------------------------------------------------------------------------ */

/** Called around the computation over a block's ratings. */
void         pli_recut_begin_work(pli_run *run);
void         pli_recut_end_work(pli_run *run);
/** After an epoch: cuts users by the speeds measured in it, if that is worth the move. Collective. */
plait_status pli_recut(pli_run *run);

/* --- heirs.c ------------------------------------------------------------------------------------------------------ */

/** als: calls solve for the share of each dead worker that is this worker's now; inherited: that has become its own in
 *  the clock that is ending. Errors: those of solve, EIO, EFORMAT, ENOMEM. */
plait_status pli_mf_heirs_each(pli_run *run, bool of_items, bool inherited,
                               plait_status (*solve)(pli_run *run, const pli_ratings *share));
/** sgd: the users of worker `home` with their ratings; NULL: EIO, EFORMAT, ENOMEM. */
pli_mf_users *pli_mf_heirs_users(pli_run *run, int32_t home);
void          pli_mf_heirs_end(pli_mf *m, int32_t workers);

/* --- models (factors_model.c) ------------------------------------------------------------------------------------- */

typedef struct pli_mf_model {
    pli_schema_pair pair;
    int64_t         rank, width;
    pli_factor_loss loss;
    double          mean, l2;
    const float    *user_bias, *item_bias;
    float          *user, *item; /* [n, width] */
} pli_mf_model;

pli_factor_loss pli_mf_loss_of(const char *name);
plait_status    pli_mf_open(plait_model *model, plait_error *err);
void            pli_mf_close(plait_model *model);
int64_t         pli_mf_width(const plait_model *model, plait_answer answer);
plait_status    pli_mf_predict(const plait_model *model, plait_answer answer, const plait_rows *rows, double *out,
                               plait_error *err);
plait_status    pli_mf_measure(const plait_model *model, const plait_rows *rows, double *sums, plait_error *err);
int32_t         pli_mf_figures(const plait_model *model, const double *sums, plait_figure *figures);

/** Finds user and item of a row; -1: the model does not know it. */
void   pli_mf_pair(const pli_mf_model *m, const plait_row *row, int64_t *user, int64_t *item);
/** The value of a pair; what is not known (-1) counts 0. */
double pli_mf_value(const pli_mf_model *m, int64_t user, int64_t item);
plait_status pli_mf_recommend(const plait_model *model, const plait_data *users, int64_t top, pli_pool *pool,
                              pli_recommended *tell, void *to, plait_error *err); /* recommend.c */

#endif
