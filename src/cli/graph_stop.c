/* How `plait graph run` stops and goes on: SIGINT and SIGTERM end it behind a superstep; --checkpoint saves the tables
 * that it goes on from, --resume restores them. See graph_stop.h. */
#include "cli/graph_stop.h"

#include <inttypes.h>
#include <plait/checkpoint.h>
#include <stdio.h>
#include <string.h>

#include "cli/again.h"
#include "cli/paths.h"
#include "comm/comm.h"
#include "data/checkpoint/checkpoint.h"
#include "table/table.h"

#define TOLERANCE "; tolerance " /* in a note, behind what must be the same */

/* A program that works on a worker's whole part at once ends at once: it has saved nothing. */
static void say_unbegun(void *user, const char *what) {
    pli_graph_stop *stop = user;
    pli_talk_tell_once(&stop->talk, "%s: nothing was written; the same command begins anew", what);
}

plait_status pli_graph_stop_open(pli_graph_stop *stop, const pli_graph_run *set, plait_error *err) {
    *stop = (pli_graph_stop){ .set = set };
    pli_talk_open(&stop->talk, set->quiet);
    const plait_status status = pli_signals_open(&stop->signals, &stop->talk, say_unbegun, stop, err);
    if (status < 0) pli_talk_close(&stop->talk);
    return status;
}

void pli_graph_stop_close(pli_graph_stop *stop) {
    pli_lost_free(&stop->lost);
    pli_signals_close(&stop->signals);
    pli_talk_close(&stop->talk);
}

/* "shares": what values of such a program are; in older checkpoints they were ranks. */
void pli_graph_stop_note(pli_graph_stop *stop, const plait_edges *edges) {
    const pli_graph_run *set = stop->set;
    const pli_vertex_named *named = pli_vertex_find(set->program, NULL);
    const bool damped = named != NULL && named->ranks;
    char       damping[32], tolerance[32];
    pli_format_f64(set->damping, damping);
    snprintf(stop->note, sizeof stop->note, "graph run %s, engine %s, source %s%s%s, graph %016" PRIx64, set->program,
             set->engine, set->source != NULL ? set->source : "none", damped ? ", shares, damping " : "",
             damped ? damping : "", edges->hash);
    stop->same = strlen(stop->note);
    if (!damped) return;
    pli_format_f64(set->tolerance, tolerance);
    snprintf(stop->note + stop->same, sizeof stop->note - stop->same, TOLERANCE "%s", tolerance);
}

/* --- from where it goes on ---------------------------------------------------------------------------------------- */

/* Is the checkpoint of this run? Its tolerance may be another: it says when the run ends, and not what it computes. */
static plait_status check_note(pli_graph_stop *stop, const char *note, plait_error *err) {
    const char  *was = strstr(note, TOLERANCE), *is = stop->note + stop->same;
    const size_t same = was != NULL ? (size_t)(was - note) : strlen(note);
    if (strncmp(note, "graph run ", 10) != 0)
        return pli_fail(err, PLAIT_EINVAL, "--resume %s: the checkpoint is of no graph run; is it one of train?",
                        stop->set->resume);
    if (same != stop->same || strncmp(note, stop->note, same) != 0)
        return pli_fail(err, PLAIT_EINVAL, "--resume %s: the checkpoint is of '%.*s', and this is '%.*s'",
                        stop->set->resume, (int)same, note, (int)stop->same, stop->note);
    if (was != NULL && !pli_is(was, is))
        pli_talk_say(&stop->talk, "%s was saved by a run with --tolerance %s; this one goes on with --tolerance %s",
                     stop->set->resume, was + strlen(TOLERANCE), is + strlen(TOLERANCE));
    return PLAIT_OK;
}

/* The newest good checkpoint, all bytes of which are verified. */
static plait_status find_newest(pli_graph_stop *stop, pli_graph_from *from, plait_error *err) {
    plait_checkpoint *c = NULL;
    PLI_TRY(plait_checkpoint_open(stop->set->resume, NULL, &c, err));
    const plait_status status = check_note(stop, plait_checkpoint_note(c), err);
    snprintf(from->folder, sizeof from->folder, "%s", plait_checkpoint_folder(c));
    from->clock = plait_checkpoint_clock(c);
    plait_checkpoint_close(&c);
    return status;
}

plait_status pli_graph_stop_find(pli_graph_stop *stop, plait_comm *comm, pli_graph_from *from_out) {
    const char *resume = stop->set->resume;
    struct {
        plait_error    why;
        pli_graph_from from;
    } said;
    memset(&said, 0, sizeof said);
    *from_out = said.from;
    if (resume == NULL) return PLAIT_OK;
    if (pli_comm_leads(comm) && pli_paths_same_directory(resume, stop->set->checkpoint) &&
        pli_checkpoint_is_none(resume))
        pli_talk_tell_once(&stop->talk, "%s holds no checkpoint: the run starts from the beginning", resume);
    else if (pli_comm_leads(comm)) (void)find_newest(stop, &said.from, &said.why);
    PLI_TRY(plait_comm_broadcast(comm, &said, sizeof said, pli_comm_lead(comm)));
    *from_out = said.from;
    if (said.why.code < 0) *pli_comm_error(comm) = said.why;
    return said.why.code;
}

/* --- what the run calls ------------------------------------------------------------------------------------------- */

static plait_status begin(void *user, plait_job *job, plait_table *const *tables, int32_t n, int *restored_out) {
    const pli_graph_stop *stop = user;
    plait_checkpoint     *c = NULL;
    plait_status          status = PLAIT_OK;
    PLI_TRY(plait_checkpoint_open(stop->set->resume, stop->from.folder, &c, pli_comm_error(plait_job_comm(job))));
    for (int32_t i = 0; i < n && status == PLAIT_OK; i++) status = plait_checkpoint_restore(c, tables[i], NULL);
    plait_checkpoint_close(&c);
    *restored_out = status == PLAIT_OK;
    return status;
}

static plait_status save(void *user, plait_job *job, plait_table *const *tables, int32_t n) {
    const pli_graph_stop *stop = user;
    plait_checkpoint_opts opts;
    plait_checkpoint_opts_init(&opts);
    opts.dir = stop->set->checkpoint;
    opts.note = stop->note;
    return plait_checkpoint_save(job, tables, n, &opts);
}

void pli_graph_stop_lost(pli_graph_stop *stop, const plait_comm *comm) {
    int32_t     n = (int32_t)stop->lost.n, below = 0;
    plait_error why;
    pli_text    becomes = { 0 };
    if (stop->set->replicas < 2) return;
    while (pli_comm_next_death(comm, &n, &why))
        pli_lost_add(&stop->lost, why.rank, plait_comm_workers(comm), 0, &becomes);
    for (int64_t i = 0; i < stop->lost.n; i++) below += stop->lost.rank[i] < plait_comm_rank(comm);
    while (below == plait_comm_rank(comm) && stop->told < stop->lost.n) {
        n = (int32_t)stop->told++;
        if (pli_comm_next_death(comm, &n, &why)) pli_talk_say(&stop->talk, "%s; the run goes on without it", why.text);
    }
    pli_text_free(&becomes);
}

static int is_interrupted(void *user) {
    pli_graph_stop *stop = user;
    if (stop->alone != NULL) pli_graph_stop_lost(stop, stop->alone);
    return __atomic_load_n(&stop->signals.stop, __ATOMIC_RELAXED);
}

void pli_graph_stop_opts(pli_graph_stop *stop, plait_vertex_opts *opts) {
    opts->user = stop;
    opts->interrupted = is_interrupted;
    if (stop->from.folder[0] != '\0') opts->begin = begin;
    if (stop->set->checkpoint != NULL) opts->pause = save;
    opts->every = stop->set->checkpoint_every;
    pli_signals_begun(&stop->signals);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

/* Is the word --NAME, whose value is the next word, or --NAME=VALUE? */
static bool is_option(const char *word, const char *name) {
    const size_t n = strlen(name);
    return strncmp(word, "--", 2) == 0 && strncmp(word + 2, name, n) == 0 && strchr("=", word[2 + n]) != NULL;
}

/* The words of the command, as a shell reads them, with the --resume and the --supersteps of the run that goes on: the
 * limit counts the supersteps of one start, and some are done. */
static void add_command(const pli_graph_run *set, int64_t supersteps, pli_text *text) {
    pli_text_add(text, "plait graph");
    for (int i = 0; i < set->argc; i++) {
        const char *word = set->argv[i];
        if (!is_option(word, "resume") && !is_option(word, "supersteps")) pli_again_word(text, word);
        else if (strchr(word, '=') == NULL) i++;
    }
    if (set->supersteps > 0) pli_text_add(text, " --supersteps %" PRId64, set->supersteps - supersteps);
    pli_again_word(text, "--resume");
    pli_again_word(text, set->checkpoint);
}

void pli_graph_stop_say(pli_graph_stop *stop, int64_t supersteps, bool processes) {
    pli_text text = { 0 };
    pli_text_add(&text, "interrupted after superstep %" PRId64 "; ", supersteps);
    if (stop->set->checkpoint == NULL) {
        pli_text_add(&text, "nothing was saved, since there is no --checkpoint DIR");
    } else {
        pli_text_add(&text, "to go on%s: ", processes ? ", under any launcher" : "");
        add_command(stop->set, supersteps, &text);
    }
    pli_talk_tell_once(&stop->talk, "%s", text.failed ? "interrupted; out of memory for more" : text.data);
    pli_text_free(&text);
}
