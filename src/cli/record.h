/* record.h - the record of a run, as JSON or as text, and the file F.done. */
#ifndef PLI_CLI_RECORD_H
#define PLI_CLI_RECORD_H

#include "cli/cli.h"
#include "cli/lost.h"

/* The penalties of a path (--path), in order. */
typedef struct pli_path {
    int64_t        n, capacity;
    plait_penalty *at; /* [n] */
} pli_path;
/** Adds one; the first of a path begins it anew. Without memory it is left out. */
void pli_path_add(pli_path *path, const plait_penalty *penalty);

/** Initializes a report in which nothing applies. */
void pli_record_init(plait_report *report);
/** Adds one line of JSON with the documented keys, in their order. simulated, path, lost: may be NULL. */
void pli_record_json(const plait_report *report, const plait_simulated *simulated, const pli_path *path,
                     const pli_lost *lost, pli_text *text);
/** Adds the same keys to an object that the caller begins and ends. */
void pli_record_keys(const plait_report *report, const plait_simulated *simulated, const pli_path *path,
                     const pli_lost *lost, pli_text *text);
/** Adds text for people, one figure a line; figures that do not apply are left out. */
void pli_record_text(const plait_report *report, const plait_simulated *simulated, const pli_path *path,
                     pli_text *text);

/** Removes path.done of an earlier run. */
void pli_done_remove(const char *path);
/** Writes and syncs path.done, as the last action of a run with --out path. lost: may be NULL. */
plait_status pli_done_write(const char *path, const char *run, int64_t clocks, const char *model_hash,
                            const pli_lost *lost, plait_error *err);

#endif
