/* plait/checkpoint.h: a program without plait_train saves its tables and puts them back. A save is a cut
 * (cuts.h) that is taken to its end at once; keep.c takes the checkpoints of plait_train. */
#include <plait/checkpoint.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "learn/keep/cuts.h"
#include "base/json.h"
#include "table/events.h"
#include "table/table.h"

void (plait_checkpoint_opts_init)(plait_checkpoint_opts *opts) {
    if (opts != NULL) *opts = (plait_checkpoint_opts){ .size = sizeof *opts, .keep = 2 };
}

void plait_checkpoint_opts_init_sized(plait_checkpoint_opts *opts, size_t size) {
    plait_checkpoint_opts all;
    (plait_checkpoint_opts_init)(&all);
    pli_sized_give(opts, size, &all, sizeof all);
}

/* --- saving --------------------------------------------------------------------------------------------------- */

typedef struct saving {
    plait_comm                  *comm;
    plait_error                 *err;
    const plait_checkpoint_opts *opts;
    pli_cuts                    *cuts;
    pli_writer                  *writer;
    char                         folder[PLI_CHECKPOINT_FOLDER];
    int32_t                      absent, lead; /* workers that were missing at the cut, and who led */
    bool                         whole;        /* all parts are there, so that only the lead is needed */
    bool                         lost;         /* some worker can no longer take its part */
} saving;

/* Has a worker died since the cut that is still needed: for its part, or to commit? All workers agree after a
 * collective. */
static bool is_torn(const saving *s) {
    return s->whole ? pli_comm_lead(s->comm) != s->lead : s->lost || pli_comm_absent(s->comm) != s->absent;
}

/* If any worker has failed, all fail, each with what it knows. Collective. */
static plait_status agree(saving *s) {
    double worst[2] = { pli_writer_status(s->writer, NULL) < 0 ? 1 + plait_comm_rank(s->comm) : 0,
                        pli_cuts_are_torn(s->cuts) };
    PLI_TRY(plait_comm_allreduce(s->comm, worst, 2, PLAIT_F64, PLAIT_MAX));
    s->lost = worst[1] > 0;
    if (worst[0] == 0) return PLAIT_OK;
    pli_fail(s->err, PLAIT_EIO, "rank %d could not write its part of a checkpoint to %s", (int)worst[0] - 1,
             s->opts->dir);
    s->err->rank = (int32_t)worst[0] - 1;
    plait_status own = pli_writer_status(s->writer, s->err);
    return own < 0 ? own : PLAIT_EIO;
}

static void take(void *user, pli_msg *rows) { pli_writer_put(user, rows); }

static plait_status write_part(saving *s, int64_t clock) {
    pli_part_plan plan = { 0 };
    bool          done = false;
    int32_t       place, living;
    pli_writer_start(s->writer);
    if (pli_comm_leads(s->comm)) pli_writer_make_folder(s->writer, clock);
    PLI_TRY(agree(s));
    snprintf(s->folder, sizeof s->folder, "%s", pli_comm_leads(s->comm) ? pli_writer_folder(s->writer) : "");
    PLI_TRY(plait_comm_broadcast(s->comm, s->folder, sizeof s->folder, pli_comm_lead(s->comm)));
    if (is_torn(s)) return PLAIT_OK;
    pli_comm_living(s->comm, &place, &living);
    pli_cuts_plan(s->cuts, &plan);
    pli_writer_begin(s->writer, s->folder, place, living, &plan);
    while (!done && !pli_cuts_are_torn(s->cuts))
        PLI_TRY(pli_cuts_pump(s->cuts, INT64_C(64) << 20, true, take, s->writer, &done, s->err));
    if (done) pli_writer_finish(s->writer);
    return agree(s);
}

static plait_status commit(saving *s) {
    pli_text meta = { 0 };
    pli_json_begin(&meta);
    pli_json_text(&meta, "kind", "tables");
    pli_json_i64(&meta, "version", 1);
    pli_cuts_units(s->cuts, &meta);
    pli_json_text(&meta, "note", s->opts->note != NULL ? s->opts->note : "");
    pli_json_end(&meta);
    plait_status status =
        meta.failed ? pli_fail(s->err, PLAIT_ENOMEM, "no memory to describe a checkpoint")
                    : pli_writer_commit(s->writer, s->comm, s->absent, &meta.data, s->opts->keep, &s->whole, s->err);
    pli_text_free(&meta);
    return status < 0 ? status : agree(s);
}

static plait_status save_once(saving *s, plait_job *job, plait_table *const *tables, int32_t n) {
    s->absent = pli_comm_absent(s->comm);
    s->lead = pli_comm_lead(s->comm);
    s->whole = false;
    s->folder[0] = '\0';
    PLI_TRY(pli_cuts_begin(job, n, tables, &s->cuts, s->err));
    plait_status status = write_part(s, plait_job_clock_now(job));
    if (status >= 0 && !is_torn(s)) status = commit(s);
    pli_cuts_end(&s->cuts);
    return status;
}

/* If a worker dies meanwhile, those who live discard the torn checkpoint and save once more. */
static plait_status save(saving *s, plait_job *job, plait_table *const *tables, int32_t n) {
    PLI_TRY(pli_writer_open(s->opts->dir, false, &s->writer, s->err));
    plait_status status;
    do {
        status = save_once(s, job, tables, n);
        if (status >= 0 && !is_torn(s)) return status;
        pli_writer_drop(s->writer);
        const bool outcast = status == PLAIT_EPEER && pli_comm_absentees(s->comm) != NULL; /* the others go on */
        const bool discards = s->folder[0] != '\0' && !outcast && !(status >= 0 && s->whole);
        if (status >= 0) status = plait_comm_barrier(s->comm); /* nobody writes there any more */
        if (discards && pli_comm_leads(s->comm)) (void)pli_checkpoint_discard(s->opts->dir, s->folder, NULL);
    } while (status >= 0);
    return status;
}

static bool is_part(const plait_job *job, const plait_job *part) {
    for (int64_t i = 0; i < job->parts; i++)
        if (job->part[i] == part) return true;
    return false;
}

plait_status plait_checkpoint_save(plait_job *job, plait_table *const *tables, int32_t n,
                                   const plait_checkpoint_opts *opts) {
    PLI_TRY(pli_job_usable(job, __func__));
    plait_checkpoint_opts own;
    saving s = { .comm = plait_job_comm(job), .err = pli_job_error(job), .opts = &own };
    PLI_TRY(PLI_GIVEN_OF(s.err, n, tables));
    PLI_TRY(PLI_GIVEN(s.err, opts));
    plait_checkpoint_opts_init(&own);
    PLI_TRY(pli_sized_take(&own, sizeof own, PLI_SIZED_END(plait_checkpoint_opts, keep), opts,
                           "plait_checkpoint_opts", s.err));
    if (own.dir == NULL) return pli_fail(s.err, PLAIT_EINVAL, "%s: opts->dir is NULL", __func__);
    if (own.keep < 1 || n < 0)
        return pli_fail(s.err, PLAIT_EINVAL, "%s: opts->keep is %d, of %d tables; expected 1 or more, and 0 or more",
                        __func__, (int)own.keep, (int)n);
    for (int32_t i = 0; i < n; i++)
        if (tables[i] == NULL)
            return pli_fail(s.err, PLAIT_EINVAL, "%s: tables[%d] is NULL", __func__, i);
        else if (tables[i]->job != job && !is_part(job, tables[i]->job))
            return pli_fail(s.err, PLAIT_EINVAL, "table %s is of another job", plait_table_name(tables[i]));
    plait_status status = save(&s, job, tables, n);
    pli_cuts_end(&s.cuts);
    pli_writer_close(&s.writer);
    return status;
}

/* --- looking ---------------------------------------------------------------------------------------------------- */

plait_status plait_checkpoint_list(const char *dir, int64_t *n_out, plait_checkpoint_entry **entries_out,
                                   plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, dir));
    PLI_TRY(PLI_GIVEN(error_out, n_out));
    PLI_TRY(PLI_GIVEN(error_out, entries_out));
    pli_checkpoint_list list = { 0 };
    PLI_TRY(pli_checkpoint_list_read(dir, &list, error_out));
    plait_checkpoint_entry *entry = pli_calloc((size_t)list.n + 1, sizeof *entry);
    for (int64_t i = 0; entry != NULL && i < list.n; i++) {
        const pli_checkpoint_entry *from = &list.entry[i];
        entry[i] = (plait_checkpoint_entry){ .clock = from->clock,
                                             .bytes = from->bytes,
                                             .parts = from->parts,
                                             .complete = from->state == PLI_CHECKPOINT_COMPLETE };
        snprintf(entry[i].folder, sizeof entry[i].folder, "%s", from->folder);
    }
    const int64_t n = list.n;
    pli_checkpoint_list_free(&list);
    if (entry == NULL) return pli_fail(error_out, PLAIT_ENOMEM, "no memory for a list of checkpoints");
    *n_out = n;
    *entries_out = entry;
    return PLAIT_OK;
}

struct plait_checkpoint {
    pli_checkpoint *file;
    char           *note, *dir;
};

static plait_status read_note(plait_checkpoint *c, plait_error *err) {
    json_t     *meta = pli_json_read(pli_checkpoint_meta(c->file), strlen(pli_checkpoint_meta(c->file)), NULL);
    const char *note = pli_json_text_of(meta, "note");
    c->note = pli_strdup(note != NULL ? note : "");
    json_decref(meta);
    return c->note != NULL && c->dir != NULL ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory to open a checkpoint");
}

plait_status plait_checkpoint_open(const char *dir, const char *folder, plait_checkpoint **checkpoint_out,
                                   plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, dir));
    PLI_TRY(PLI_GIVEN(error_out, checkpoint_out));
    plait_checkpoint *c = pli_calloc(1, sizeof *c);
    if (c == NULL) return pli_fail(error_out, PLAIT_ENOMEM, "no memory to open a checkpoint");
    c->dir = pli_strdup(dir);
    plait_status status = folder != NULL ? pli_checkpoint_open_at(dir, folder, &c->file, error_out)
                                         : pli_checkpoint_open(dir, &c->file, NULL, error_out);
    if (status >= 0) status = read_note(c, error_out);
    if (status < 0) plait_checkpoint_close(&c);
    *checkpoint_out = c;
    return status;
}

void plait_checkpoint_close(plait_checkpoint **checkpoint_ptr) {
    plait_checkpoint *c = checkpoint_ptr == NULL ? NULL : *checkpoint_ptr;
    if (c == NULL) return;
    *checkpoint_ptr = NULL;
    pli_checkpoint_close(&c->file);
    pli_free(c->note);
    pli_free(c->dir);
    pli_free(c);
}

const char *plait_checkpoint_folder(const plait_checkpoint *c) {
    return c == NULL ? "" : pli_checkpoint_folder(c->file);
}
int64_t plait_checkpoint_clock(const plait_checkpoint *c) { return c == NULL ? 0 : pli_checkpoint_clock(c->file); }
const char *plait_checkpoint_note(const plait_checkpoint *c) { return c == NULL ? "" : c->note; }

plait_status plait_checkpoint_tensor_at(const plait_checkpoint *c, int64_t i, plait_checkpoint_tensor *tensor_out) {
    if (c == NULL || tensor_out == NULL) return PLAIT_EINVAL; /* there is nowhere to put the text */
    if (i < 0 || i >= pli_checkpoint_tensors(c->file)) return PLAIT_ENAME;
    const pli_checkpoint_tensor *tensor = pli_checkpoint_tensor_at(c->file, i);
    *tensor_out = (plait_checkpoint_tensor){ .name = tensor->name,
                                             .type = tensor->type,
                                             .rows = tensor->shape[0],
                                             .row_bytes = pli_checkpoint_row_bytes(tensor) };
    return PLAIT_OK;
}

plait_status plait_checkpoint_read(plait_checkpoint *c, const char *name, int64_t first, int64_t rows, void *out,
                                   plait_error *error_out) {
    if (c == NULL) return pli_fail_null(error_out, __func__, "checkpoint");
    PLI_TRY(PLI_GIVEN(error_out, name));
    PLI_TRY(PLI_GIVEN_OF(error_out, rows, out));
    const pli_checkpoint_tensor *tensor = pli_checkpoint_find(c->file, name);
    if (tensor == NULL)
        return pli_fail(error_out, PLAIT_ENAME, "%s/%s has no tensor %s", c->dir, plait_checkpoint_folder(c), name);
    return pli_checkpoint_read(c->file, tensor, first, rows, out, error_out);
}

/* --- putting back ------------------------------------------------------------------------------------------------- */

static plait_status put_back(plait_checkpoint *c, plait_table *table, const char *name, const char *what) {
    plait_job   *job = table->job;
    plait_error *err = pli_job_error(job);
    int32_t      before;
    do { /* the share of a worker that died may be missing */
        before = pli_job_absent(job);
        plait_status status =
            pli_kept_put(c->file, c->dir, name != NULL ? name : plait_table_name(table), table, err);
        PLI_TRY(pli_job_agree(job, what, (uint64_t)plait_checkpoint_clock(c), status, err));
    } while (pli_job_absent(job) != before);
    return pli_job_pass(job);
}

plait_status plait_checkpoint_restore(plait_checkpoint *c, plait_table *table, const char *name) {
    if (table == NULL) return PLAIT_EINVAL; /* there is nowhere to put the text */
    plait_job   *job = table->job;
    plait_error *err = pli_job_error(job);
    PLI_TRY(pli_job_usable(job, __func__));
    if (c == NULL) return pli_fail_null(err, __func__, "checkpoint");
    int64_t      clock = plait_checkpoint_clock(c);
    if (job->layout.first_clock != clock || plait_job_clock_now(job) != clock)
        return pli_fail(err, PLAIT_EINVAL,
                        "table %s is in clock %lld of a job that begins at clock %lld, but the checkpoint is of clock "
                        "%lld: set plait_job_opts.first_clock, and restore before the first clock ends",
                        plait_table_name(table), (long long)plait_job_clock_now(job),
                        (long long)job->layout.first_clock, (long long)clock);
    PLI_TRY(pli_state_check(table, err));
    if (job->group == NULL && clock > 0)
        pli_raise_begin(pli_job_events(job), pli_job_me(job), clock, pli_checkpoint_origin(c->file));
    return put_back(c, table, name, "the restoring of a table");
}

plait_status plait_checkpoint_load(plait_checkpoint *c, plait_table *table, const char *name) {
    if (table == NULL) return PLAIT_EINVAL; /* there is nowhere to put the text */
    plait_job   *job = table->job;
    plait_error *err = pli_job_error(job);
    const char  *from = name != NULL ? name : plait_table_name(table);
    PLI_TRY(pli_job_usable(job, __func__));
    if (c == NULL) return pli_fail_null(err, __func__, "checkpoint");
    plait_status status = pli_state_check(table, err);
    if (status >= 0) status = pli_kept_check(c->file, c->dir, from, table, err);
    const uint64_t what = pli_hash_bytes(from, strlen(from), (uint64_t)plait_checkpoint_clock(c));
    PLI_TRY(pli_job_agree(job, "the loading of a table", what, status, err)); /* before anything is lost */
    PLI_TRY(plait_table_zero(table));
    return put_back(c, table, name, "the loading of a table");
}
