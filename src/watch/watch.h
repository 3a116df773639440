/* watch - what a run reports about itself: the metrics file and the event log here; audit, traces, comparisons and
 * TensorBoard in folders. The room stands beside cli: it may include any room, and no room includes it. */
#ifndef PLI_WATCH_H
#define PLI_WATCH_H

#include <plait/model.h>

#include "base/base.h"
#include "base/json.h"

/* --- the metrics file: one JSON object a line -------------------------------------------------------- */

/* Lines: one "start" for each rank, then "clock" (one for each report) and "epoch", "shares", "point", "rank", and
 * "end" as the last. Only the leading rank's thread may call these functions. None of them fails: the first failed
 * write is remembered for pli_metrics_close, so that a full disk does not stop the training. */
typedef struct pli_metrics pli_metrics;
plait_status               pli_metrics_open(const char *path, pli_metrics **metrics_out, plait_error *err);
/** Opens an existing file to continue after what another process has written. */
plait_status pli_metrics_go_on(const char *path, pli_metrics **metrics_out, plait_error *err);
/** From now on take gets each line, too; a *metrics of NULL becomes one without a file. It must not block. Errors:
 *  ENOMEM. */
typedef void pli_metrics_take_fn(void *user, const char *line, size_t bytes);
plait_status pli_metrics_listen(pli_metrics **metrics, pli_metrics_take_fn *take, void *user, plait_error *err);
/** role: "worker", "spare" or "server". */
void pli_metrics_start(pli_metrics *metrics, int32_t rank, const char *host, int32_t pid, const char *role);
void pli_metrics_progress(pli_metrics *metrics, const plait_progress *progress);
/** A line "shares": the rows that each worker has computed in an epoch, with --balance dynamic. */
void pli_metrics_shares(pli_metrics *metrics, const plait_shares *shares);
/** A line "penalty": one of a path of penalties is fitted. */
void pli_metrics_penalty(pli_metrics *metrics, const plait_penalty *penalty);
/** A line "point": a moment of the run's curve. */
void pli_metrics_point(pli_metrics *metrics, const plait_point *point);
/** A line "checkpoint": a checkpoint is complete. */
void pli_metrics_checkpoint(pli_metrics *metrics, const plait_checkpointed *checkpointed);
/** A line "rank": how a worker spent its training time. network NaN: it is counted in wait. */
void pli_metrics_rank(pli_metrics *metrics, int32_t rank, double compute, double wait, double network);
/** Notes that a rank was lost, and why; the line "end" says it too. then: what follows from it; NULL: the run ends. */
void         pli_metrics_lost(pli_metrics *metrics, int32_t rank, const char *why, const char *then);
/** status: "success", or why the run ended; report may be NULL. */
void         pli_metrics_end(pli_metrics *metrics, const char *status, const plait_report *report);
plait_status pli_metrics_close(pli_metrics **metrics, plait_error *err);

#endif
