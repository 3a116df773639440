/* watch/board/board.h - `--tensorboard DIR` writes a run's reports as an event file for TensorBoard: scalars over
 * clocks, a histogram of each table's weights for each epoch, and the graph of a net.
 *
 *     board.c        makes events of scalars, histograms and graphs
 *     histogram.c    counts values in buckets
 *     graph_nodes.c  lists a graph's nodes by name
 *     record.c       the framing of the file
 *     codec.h        the module that turns an event into bytes
 *
 * Such a file has the time and its host's name, so it does not repeat bit for bit. */
#ifndef PLI_WATCH_BOARD_H
#define PLI_WATCH_BOARD_H

#include <plait/model.h>

#include "watch/board/codec.h"

typedef struct pli_board pli_board;

enum { PLI_BOARD_BUCKETS = 64 };

/** Is the module there? Errors: EMODULE, with the command that installs what it needs. */
plait_status pli_board_check(plait_error *err);

/** Opens a new file in directory, which is created if it is missing. Errors: EMODULE, EIO, ENOMEM. Only the leading
 *  rank's thread may call the functions below; board may be NULL. None of them fails: the first failed write is
 *  remembered for pli_board_close, so that a full disk does not stop the training. */
plait_status pli_board_open(const char *directory, pli_board **board_out, plait_error *err);
void         pli_board_progress(pli_board *board, const plait_progress *progress);
void         pli_board_weights(pli_board *board, const plait_weights *weights);
void         pli_board_graph(pli_board *board, const plait_graph *graph);
void         pli_board_end(pli_board *board, const plait_report *report);
plait_status pli_board_close(pli_board **board, plait_error *err);

/** Makes the histogram of the finite weights; its limits and counts lie in limit and count. false: none is finite. */
bool pli_board_measure(const plait_weights *weights, pli_board_histogram *histogram, double limit[PLI_BOARD_BUCKETS],
                       double count[PLI_BOARD_BUCKETS]);
/** Lists the graph's nodes [*n_out], in its order, in memory of the arena. NULL: no memory. */
const pli_board_node *pli_board_nodes(const plait_graph *graph, pli_arena *arena, int64_t *n_out);

#endif
