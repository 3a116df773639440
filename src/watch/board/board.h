/* watch/board/board.h - `--tensorboard DIR`: what a run tells, as an event file that TensorBoard shows: scalars over
 * clocks, a histogram of each table's weights an epoch, the graph of a net.
 *
 *     board.c        which scalar, histogram and graph becomes which event
 *     histogram.c    values in buckets
 *     graph_nodes.c  a graph as a list of named nodes
 *     record.c       the framing of the file
 *     codec.h        the module that makes bytes of an event
 *
 * Such a file names the time and its host; it takes no part in what repeats bit for bit. */
#ifndef PLI_WATCH_BOARD_H
#define PLI_WATCH_BOARD_H

#include <plait/model.h>

#include "watch/board/codec.h"

typedef struct pli_board pli_board;

enum { PLI_BOARD_BUCKETS = 64 };

/** Is the module there? Errors: EMODULE, with the command that installs what it needs. */
plait_status pli_board_check(plait_error *err);

/** A new file in directory, which is made where it is not there. Errors: EMODULE, EIO, ENOMEM. All that follows belongs
 *  to the leading rank's thread; board may be NULL. Nothing there fails at once: the first failed write is remembered
 *  for pli_board_close, so that a full disk does not cost the training. */
plait_status pli_board_open(const char *directory, pli_board **board_out, plait_error *err);
void         pli_board_progress(pli_board *board, const plait_progress *progress);
void         pli_board_weights(pli_board *board, const plait_weights *weights);
void         pli_board_graph(pli_board *board, const plait_graph *graph);
void         pli_board_end(pli_board *board, const plait_report *report);
plait_status pli_board_close(pli_board **board, plait_error *err);

/** The histogram of what is finite there; its limits and counts lie in limit and count. false: nothing is. */
bool pli_board_measure(const plait_weights *weights, pli_board_histogram *histogram, double limit[PLI_BOARD_BUCKETS],
                       double count[PLI_BOARD_BUCKETS]);
/** The graph's nodes [*n_out], in its order, in the arena's memory. NULL: there is none. */
const pli_board_node *pli_board_nodes(const plait_graph *graph, pli_arena *arena, int64_t *n_out);

#endif
