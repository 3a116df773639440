/* Rows that come to another worker: those of a dead one in a run of two replicas (--replicas 2), and those of a slow
 * one (--balance dynamic).
 *
 * What a worker alone has is its rows' bins, scores and gradients, and which leaf of the growing tree each is in. All
 * of it follows from the blocks of the data, which anybody can read again, and from what every worker has: the cuts,
 * the trees, and the nodes of the growing one. So an heir makes it anew, with the same bits:
 *
 *     bins        the values of the block, by the cuts
 *     scores      the trees' values, added up in the order of the trees up to the round's beginning
 *     gradients   at these scores, rounded by the round's scales; then the round's trees so far are added
 *     leaves      the row walks down the growing tree
 *
 * By voting it is the same; the heir pushes the sums of the features that were elected (cut_voting.c). By features
 * there are no rows to take over, but features (cut_features.c).
 *
 * There are two lists of the dead (solve/inherit.h), and so two ways by which rows come:
 *
 *   in a step           plait_job_clock answers PLAIT_STAND_IN. The heir adds up the rows that it inherits in this
 *                       clock, of the leaves at hand, and incs that. What the dead worker had pushed counts, or what
 *                       its heirs push: the sums are whole numbers, so both are the same. From the next clock on the
 *                       rows are in steps with its own.
 *   in a sum of all     it lacks the part of the dead worker, and is made again. Each sum is of the blocks that are
 *                       the worker's by the list of the collectives, whatever others it has already.
 *
 * Workers that come and go (solve/doors.h) do so between two rounds, when there is no growing tree. There each reads
 * the blocks that it holds from then on, if they are others than before. So do the heirs of who has died in that clock.
 *
 * Blocks go to the living worker whose draw is the highest, so a block that has come to a worker by one list stays with
 * it by both, for as long as it lives.
 *
 * A slow worker's blocks go to others between two rounds, where all meet (solve/settled.h). Then each makes anew all
 * that it has: bins and scores, of the blocks that are its own from there on. The trees are the same, whoever has
 * what. */
#include <string.h>

#include "learn/solve/inherit.h"
#include "learn/solve/settled.h"
#include "learn/trees/trees.h"

/* --- the rows of more blocks -------------------------------------------------------------------------------------- */

static int32_t part_of(const pli_bin_rows *rows, int32_t block) {
    for (int32_t p = 0; p < rows->parts; p++)
        if (rows->part[p].block == block) return p;
    return -1;
}

/* Blocks that are read once more. */
typedef struct lent {
    int32_t           n;
    pli_borrowed    **from;  /* [n] */
    const pli_block **block; /* [n] */
} lent;

static plait_status borrow(const pli_run *run, const pli_dataset *data, int32_t number, lent *l) {
    PLI_TRY(pli_dataset_borrow(data, number, &l->from[l->n], run->err));
    l->block[l->n] = pli_borrowed_block(l->from[l->n]);
    l->n++;
    return PLAIT_OK;
}

static void give_back(lent *l) {
    for (int32_t i = 0; i < l->n; i++) pli_borrowed_free(&l->from[i]);
    pli_free(l->from);
    pli_free(l->block);
}

/* Bins of the rows that there were, and of more blocks behind them. */
static plait_status bin_all(pli_run *run, const pli_dataset *data, const pli_bin_rows *old, int32_t n,
                            const int32_t *more, pli_bin_rows *rows) {
    const size_t most = (size_t)old->parts + (size_t)n + 1;
    lent         l = { .from = pli_calloc(most, sizeof *l.from), .block = pli_calloc(most, sizeof *l.block) };
    plait_status status = l.from != NULL && l.block != NULL
                              ? PLAIT_OK
                              : pli_fail(run->err, PLAIT_ENOMEM, "no memory for the blocks of a dead worker");
    for (int32_t p = 0; status >= 0 && p < old->parts; p++) status = borrow(run, data, old->part[p].block, &l);
    for (int32_t i = 0; status >= 0 && i < n; i++) status = borrow(run, data, more[i], &l);
    if (status >= 0)
        status = pli_bin_rows_of(run, &pli_gbdt_of(run)->bins, data, l.n, l.block, old->held != NULL, rows);
    give_back(&l);
    return status;
}

/* What was known of the rows that there were. */
static plait_status take_over(const pli_run *run, const pli_bin_rows *old, pli_bin_rows *rows) {
    const int64_t k = pli_gbdt_of(run)->trees.columns;
    for (int64_t c = 0; c < k; c++)
        memcpy(rows->score + c * rows->n, old->score + c * old->n, (size_t)old->n * sizeof *old->score);
    memcpy(rows->part, old->part, (size_t)old->parts * sizeof *old->part);
    if (old->votes == NULL) return PLAIT_OK;
    rows->votes = pli_calloc((size_t)rows->n, sizeof *rows->votes);
    if (rows->votes == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for votes");
    memcpy(rows->votes, old->votes, (size_t)old->n * sizeof *old->votes);
    return PLAIT_OK;
}

static plait_status append(pli_run *run, const pli_dataset *data, int32_t n, const int32_t *more,
                           pli_bin_rows *rows) {
    pli_bin_rows all;
    plait_status status = bin_all(run, data, rows, n, more, &all);
    if (status >= 0) status = take_over(run, rows, &all);
    if (status < 0) {
        pli_bin_rows_free(&all);
        return status;
    }
    pli_bin_rows_free(rows);
    *rows = all;
    return PLAIT_OK;
}

/* More rows to validate by. Their scores are those of all trees. */
static plait_status take_validation(pli_run *run, int32_t n, const int32_t *more) {
    pli_gbdt     *t = pli_gbdt_of(run);
    const int64_t before = t->validation.n;
    PLI_TRY(append(run, run->validation, n, more, &t->validation));
    pli_scores_begin(&t->trees, &t->validation, before);
    pli_scores_add(run, &t->validation, before, 0, t->trees.n);
    return PLAIT_OK;
}

/* More rows to train on. Within a round they have gradients, too. */
static plait_status take_rows(pli_run *run, int32_t n, const int32_t *more) {
    pli_gbdt     *t = pli_gbdt_of(run);
    const int64_t before = t->rows.n, k = t->trees.columns,
                  behind = t->in_round ? t->gradients.round * k : t->trees.n; /* trees that gradients know of */
    PLI_TRY(append(run, run->data, n, more, &t->rows));
    PLI_TRY(pli_gradients_resize(run, &t->rows, before, &t->gradients));
    PLI_TRY(pli_grower_resize(&t->grower));
    pli_scores_begin(&t->trees, &t->rows, before);
    pli_scores_add(run, &t->rows, before, 0, behind);
    if (t->in_round) {
        PLI_TRY(pli_gradients_add(run, &t->rows, before, &t->gradients));
        t->grower.cell = t->gradients.cell + t->grower.tree % k * t->rows.n;
    }
    pli_scores_add(run, &t->rows, before, behind, t->trees.n);
    return PLAIT_OK;
}

/* --- in sums of all ----------------------------------------------------------------------------------------------- */

/* Takes those blocks that have come to this worker and that it does not have yet. */
static plait_status gather(pli_run *run, const pli_dataset *data, const pli_bin_rows *rows,
                           plait_status (*take)(pli_run *run, int32_t n, const int32_t *more)) {
    const int32_t blocks = pli_dataset_blocks(data);
    int32_t      *more = pli_array((size_t)blocks, sizeof *more), n = 0;
    if (more == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a list of blocks");
    for (int32_t b = 0; b < blocks; b++)
        if (pli_living_is_mine(run, data, b) && part_of(rows, b) < 0) more[n++] = b;
    plait_status status = n > 0 ? take(run, n, more) : PLAIT_OK;
    pli_free(more);
    return status;
}

plait_status pli_heirs_gather(pli_run *run) {
    const pli_gbdt *t = pli_gbdt_of(run);
    if (pli_comm_absent(run->comm) == 0) return PLAIT_OK;
    PLI_TRY(gather(run, run->data, &t->rows, take_rows));
    return run->validation != NULL ? gather(run, run->validation, &t->validation, take_validation) : PLAIT_OK;
}

/* --- between two rounds ------------------------------------------------------------------------------------------- */

/* Whose the block is, or was before it died, or left. */
static int32_t home_of(const pli_run *run, int32_t block) {
    return run->homes != NULL ? run->homes[block] : pli_dataset_home(run->data, block);
}

/* By the list of this worker's clocks. A block of a dead worker whose death has come by the collectives alone is not in
 * steps yet: the clock that tells of the death has the worker stand in with it, and would count it twice. */
static bool is_held(const pli_run *run, int32_t block) {
    return plait_job_holder(run->job, home_of(run, block), (uint64_t)block) == plait_comm_rank(run->comm);
}

/* Reads these blocks [n]. The rows walk down all trees, in the order of these. */
static plait_status make_anew(pli_run *run, int32_t n, const int32_t *own) {
    pli_gbdt          *t = pli_gbdt_of(run);
    const pli_bin_rows none = { .held = t->rows.held };
    pli_bin_rows       all = { 0 };
    plait_status       status = bin_all(run, run->data, &none, n, own, &all);
    if (status >= 0 && t->rows.votes != NULL) {
        all.votes = pli_calloc((size_t)all.n + 1, sizeof *all.votes);
        if (all.votes == NULL) status = pli_fail(run->err, PLAIT_ENOMEM, "no memory for votes");
    }
    if (status < 0) {
        pli_bin_rows_free(&all);
        return status;
    }
    pli_bin_rows_free(&t->rows);
    t->rows = all;
    for (int32_t p = 0; p < all.parts; p++) all.part[p].steps = is_held(run, all.part[p].block);
    PLI_TRY(pli_gradients_resize(run, &t->rows, 0, &t->gradients));
    PLI_TRY(pli_grower_resize(&t->grower));
    pli_scores_begin(&t->trees, &t->rows, 0);
    pli_scores_add(run, &t->rows, 0, 0, t->trees.n);
    return PLAIT_OK;
}

/* By the list of the collectives. */
static bool is_own(const pli_run *run, int32_t block) { return pli_living_is_mine(run, run->data, block); }

static plait_status make_these(pli_run *run, bool (*is_mine)(const pli_run *run, int32_t block)) {
    const int32_t blocks = pli_dataset_blocks(run->data);
    int32_t      *mine = pli_array((size_t)blocks + 1, sizeof *mine), n = 0;
    if (mine == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a list of blocks");
    for (int32_t b = 0; b < blocks; b++)
        if (is_mine(run, b)) mine[n++] = b;
    const plait_status status = make_anew(run, n, mine);
    pli_free(mine);
    return status;
}

plait_status pli_heirs_move(pli_run *run) {
    bool moved = false;
    PLI_TRY(pli_settled_meet(run, &moved));
    if (!moved) return PLAIT_OK;
    pli_gbdt_of(run)->moved = true;
    return make_these(run, is_own);
}

/* Are the rows in steps those of the blocks that the worker holds? */
static bool has_held(const pli_run *run, const pli_bin_rows *rows) {
    for (int32_t b = 0; b < pli_dataset_blocks(run->data); b++) {
        const int32_t p = part_of(rows, b);
        if ((p >= 0 && rows->part[p].steps) != is_held(run, b)) return false;
    }
    return true;
}

plait_status pli_heirs_turn(pli_run *run, bool came) {
    const pli_gbdt *t = pli_gbdt_of(run);
    if (t->grower.cut->exchanges) return pli_cut_features_turn(run, came);
    return !came && has_held(run, &t->rows) ? PLAIT_OK : make_these(run, is_held);
}

/* --- in a step ---------------------------------------------------------------------------------------------------- */

/* Marks the parts that have come to this worker in the clock; those that it does not have yet are added first. */
static plait_status inherit(pli_run *run, int32_t *more) {
    pli_gbdt *t = pli_gbdt_of(run);
    int32_t   n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t b = 0; b < pli_dataset_blocks(run->data); b++) {
            if (!plait_job_inherits(run->job, home_of(run, b), (uint64_t)b)) continue;
            const int32_t p = part_of(&t->rows, b);
            if (p >= 0) t->rows.part[p].inherited = true;
            else more[n++] = b;
        }
        if (n == 0) break;
        PLI_TRY(take_rows(run, n, more));
        n = 0;
    }
    return PLAIT_OK;
}

/* Which leaf each node is, or -1. */
static int32_t *leaves_of(const pli_grower *g) {
    int32_t *leaf = pli_array((size_t)g->nodes + 1, sizeof *leaf);
    for (int64_t i = 0; leaf != NULL && i <= g->nodes; i++) leaf[i] = -1;
    for (int64_t l = 0; leaf != NULL && l < g->leaves; l++) leaf[g->nodes > 0 ? g->leaf[l].node : 0] = (int32_t)l;
    return leaf;
}

/* The leaf of each row that the tree sees and that is in steps, or has been inherited; -1: of the others. */
static void find_leaves(const pli_grower *g, bool inherited, const int32_t *leaf_of, int32_t *leaf) {
    const pli_bin_rows *rows = g->rows;
    const int64_t       round = g->tree / pli_fit_of(g->run)->goal.columns;
    for (int32_t p = 0; p < rows->parts; p++) {
        const pli_rows_part *part = &rows->part[p];
        const bool           wanted = inherited ? part->inherited : part->steps;
        for (int64_t r = part->first; r < part->first + part->n; r++) {
            const bool sees = wanted && pli_grow_sees(g, round, r);
            leaf[r] = !sees          ? -1
                      : g->nodes == 0 ? 0
                                      : leaf_of[pli_bin_rows_leaf(rows, g->bins, g->node, g->code, r) - g->node];
        }
    }
}

/* Puts rows where their leaves are: those in steps, or only those that were inherited. */
static plait_status place(pli_grower *g, bool inherited) {
    int32_t     *leaf_of = leaves_of(g), *leaf = pli_array((size_t)g->rows->n + 1, sizeof *leaf);
    plait_status status = leaf_of != NULL && leaf != NULL
                              ? PLAIT_OK
                              : pli_fail(g->run->err, PLAIT_ENOMEM, "no memory to take over rows");
    if (status >= 0) find_leaves(g, inherited, leaf_of, leaf);
    for (int64_t l = 0; l < g->leaves; l++) g->leaf[l].n = 0;
    for (int64_t r = 0; status >= 0 && r < g->rows->n; r++)
        if (leaf[r] >= 0) g->leaf[leaf[r]].n++;
    int64_t begin = 0;
    for (int64_t l = 0; l < g->leaves; l++) {
        g->leaf[l].begin = begin;
        begin += g->leaf[l].n;
        g->leaf[l].n = 0;
    }
    for (int64_t r = 0; status >= 0 && r < g->rows->n; r++)
        if (leaf[r] >= 0) g->order[g->leaf[leaf[r]].begin + g->leaf[leaf[r]].n++] = (uint32_t)r;
    pli_free(leaf);
    pli_free(leaf_of);
    return status;
}

plait_status pli_heirs_begin(pli_grower *g) {
    const int32_t blocks = pli_dataset_blocks(g->run->data);
    int32_t      *more = pli_array((size_t)blocks, sizeof *more);
    if (more == NULL) return pli_fail(g->run->err, PLAIT_ENOMEM, "no memory for a list of blocks");
    plait_status status = inherit(g->run, more);
    pli_free(more);
    return status < 0 ? status : place(g, true);
}

plait_status pli_heirs_end(pli_grower *g) {
    for (int32_t p = 0; p < g->rows->parts; p++) {
        pli_rows_part *part = &g->rows->part[p];
        part->steps = part->steps || part->inherited;
        part->inherited = false;
    }
    return place(g, false);
}
