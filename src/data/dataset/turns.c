/* Batches in the order of the files: blocks are read one after another instead of all at once.
 *
 * The blocks are seen as `lanes` runs of neighbours, one for each worker. A pass is divided into as many turns as a
 * lane has blocks, and a block's rows are taken in one turn, its lane's blocks in the order of their pieces. Since each
 * run of blocks is spread evenly over the files (deal.c), all lanes move through the files together, each some pieces
 * apart from the next. A clock that takes rows from several blocks lists them by the blocks' numbers all the same.
 *
 * The last `tail` clocks of the pass take no rows.
 *
 * Which rows of a block a clock takes depends on the block, the clock and the number of lanes alone, not on who reads
 * the block; so blocks can change hands, and a run can resume with other workers, and each row is taken once. */
#include "data/dataset/batches.h"

/* The first block of a lane. */
static int32_t lane_start(int32_t blocks, int32_t lane, int32_t lanes) {
    return (int32_t)((int64_t)blocks * lane / lanes);
}

plait_status pli_batches_in_file_order(pli_batches *s, int32_t lanes, int64_t tail, plait_error *err) {
    const pli_dataset *d = s->dataset;
    if (lanes < 1 || tail < 0 || tail >= s->clocks || (s->shuffle && !s->first_in_order))
        return pli_fail(err, PLAIT_EINVAL, "%d lanes of a pass in the files' order, %lld of %lld clocks behind it",
                        (int)lanes, (long long)tail, (long long)s->clocks);
    if (lanes > d->blocks) lanes = d->blocks;
    pli_turn *turn = pli_calloc((size_t)d->blocks, sizeof *turn);
    if (turn == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the order of blocks");
    for (int32_t lane = 0; lane < lanes; lane++) {
        const int32_t from = lane_start(d->blocks, lane, lanes), to = lane_start(d->blocks, lane + 1, lanes);
        for (int32_t b = from; b < to; b++) {
            turn[b].turns = to - from;
            for (int32_t other = from; other < to; other++) turn[b].at += pli_piece_of(d, other) < pli_piece_of(d, b);
        }
    }
    pli_free(s->turn);
    s->turn = turn;
    s->turn_clocks = s->clocks - tail;
    return PLAIT_OK;
}

int64_t pli_batches_share(const pli_batches *s, int64_t block, int64_t n, int64_t clock) {
    if (s->turn == NULL || !pli_batches_are_in_order(s)) return pli_share(block, n, clock, s->clocks);
    const pli_turn turn = s->turn[block];
    const int64_t  clocks = s->turn_clocks, within = clock * turn.turns - turn.at * clocks;
    return pli_share(block, n, within < 0 ? 0 : within > clocks ? clocks : within, clocks);
}
