/* watch - what a run tells about itself: the metrics file. The folders hold the event log, the audit, traces,
 * comparisons and TensorBoard. Stands beside cli; may include any room, and none includes it. */
#ifndef PLI_WATCH_H
#define PLI_WATCH_H

#include <plait/model.h>

#include "base/base.h"
#include "base/json.h"

/* --- the metrics file: one JSON object a line -------------------------------------------------------- */

/* Lines: "start" one a rank, then "clock" (each that is reported) and "epoch", "shares", "point", "rank", "end" last.
 * Belongs to the leading rank's thread. Nothing here fails at once: the first failed write is remembered for
 * pli_metrics_close, so that a full disk does not cost the training. */
typedef struct pli_metrics pli_metrics;
plait_status               pli_metrics_open(const char *path, pli_metrics **metrics_out, plait_error *err);
/** The same file once more, behind what another process has written. */
plait_status pli_metrics_go_on(const char *path, pli_metrics **metrics_out, plait_error *err);
/** role: "worker", "spare" or "server". */
void pli_metrics_start(pli_metrics *metrics, int32_t rank, const char *host, int32_t pid, const char *role);
void pli_metrics_progress(pli_metrics *metrics, const plait_progress *progress);
/** A line "shares": the rows that each worker has computed in an epoch of a balanced run. */
void pli_metrics_shares(pli_metrics *metrics, const plait_shares *shares);
/** A line "point": a moment of the run's curve. */
void pli_metrics_point(pli_metrics *metrics, const plait_point *point);
/** A line "checkpoint": one is complete. */
void pli_metrics_checkpoint(pli_metrics *metrics, const plait_checkpointed *checkpointed);
/** A line "rank": where a worker's time in training went. network NaN: not told apart from wait. */
void pli_metrics_rank(pli_metrics *metrics, int32_t rank, double compute, double wait, double network);
/** status: "success", or why the run ended; report may be NULL. */
/** A rank was lost, and why; the end tells it too. */
void         pli_metrics_lost(pli_metrics *metrics, int32_t rank, const char *why);
void         pli_metrics_end(pli_metrics *metrics, const char *status, const plait_report *report);
plait_status pli_metrics_close(pli_metrics **metrics, plait_error *err);

#endif
