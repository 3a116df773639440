/* record.h - what stays of a run: its record as JSON or as text, and the file F.done. */
#ifndef PLI_CLI_RECORD_H
#define PLI_CLI_RECORD_H

#include "cli/cli.h"

/** A report in which nothing applies. */
void pli_record_init(plait_report *report);
/** One line, exactly the contract's keys, in its order. */
void pli_record_json(const plait_report *report, const plait_simulated *simulated,
                     pli_text *text); /* simulated may be NULL */
/** For people, a line a figure; what does not apply is left out. */
void pli_record_text(const plait_report *report, const plait_simulated *simulated, pli_text *text);

/** Removes path.done of a former run. */
void pli_done_remove(const char *path);
/** Writes and syncs path.done, the last act of a run with --out path. ranks_lost [n_lost]. */
plait_status pli_done_write(const char *path, const char *run, int64_t clocks, const char *model_hash,
                            const int32_t *ranks_lost, int32_t n_lost, plait_error *err);
/** A name for this run: 16 hexadecimal digits that differ from run to run. */
void pli_run_id(char id[17]);

#endif
