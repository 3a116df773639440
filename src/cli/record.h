/* record.h - the record of a run, as JSON or as text, and the file F.done. */
#ifndef PLI_CLI_RECORD_H
#define PLI_CLI_RECORD_H

#include "cli/cli.h"

/** Initializes a report in which nothing applies. */
void pli_record_init(plait_report *report);
/** Adds one line of JSON with the documented keys, in their order. */
void pli_record_json(const plait_report *report, const plait_simulated *simulated,
                     pli_text *text); /* simulated may be NULL */
/** Adds text for people, one figure a line; figures that do not apply are left out. */
void pli_record_text(const plait_report *report, const plait_simulated *simulated, pli_text *text);

/** Removes path.done of an earlier run. */
void pli_done_remove(const char *path);
/** Writes and syncs path.done, as the last action of a run with --out path. ranks_lost [n_lost]. */
plait_status pli_done_write(const char *path, const char *run, int64_t clocks, const char *model_hash,
                            const int32_t *ranks_lost, int32_t n_lost, plait_error *err);

#endif
