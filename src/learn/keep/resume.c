/* Resumes a run from a checkpoint. See keep.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "learn/keep/keep.h"
#include "base/json.h"
#include "learn/keep/kept_tables.h"
#include "learn/keep/row_values.h"
#include "table/state/own.h"
#include "table/table.h"

/* --- what a checkpoint says of its run ---------------------------------------------------------------------------- */

static plait_status malformed(const pli_run *run, const char *what) {
    return pli_fail(run->err, PLAIT_EFORMAT, "%s/%s: %s is missing in the description of the run, or malformed",
                    run->opts->resume, run->resume->folder, what);
}

static plait_status read_count(const pli_run *run, const json_t *meta, const char *name, int64_t least, int64_t *out) {
    const json_t *value = json_object_get(meta, name);
    if (!json_is_integer(value) || json_integer_value(value) < least) return malformed(run, name);
    *out = json_integer_value(value);
    return PLAIT_OK;
}

static double read_number(const json_t *meta, const char *name, double otherwise) {
    const json_t *value = json_object_get(meta, name);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

static bool read_cells(const char *hex, pli_total *total) {
    if (hex == NULL || strlen(hex) != sizeof total->cell * 2) return false;
    for (int32_t i = 0; i < PLI_SUMS * 4; i++) {
        char word[17] = { 0 }, *end;
        memcpy(word, hex + 16 * i, 16);
        total->cell[i / 4][i % 4] = strtoull(word, &end, 16);
        if (strspn(word, "0123456789abcdef") != 16) return false;
    }
    return true;
}

/* How many blocks the data were asked to be cut into. Versions that do not say so made one for each worker beyond
 * 64. */
static plait_status read_blocks(const pli_run *run, const json_t *meta, const char *options) {
    int64_t blocks = 0;
    int     made = 0;
    if (json_object_get(meta, "blocks") != NULL) PLI_TRY(read_count(run, meta, "blocks", 0, &blocks));
    else if (sscanf(options, "data of %*d rows in %d blocks", &made) == 1 && made > 64) blocks = made;
    if (blocks > INT32_MAX) return malformed(run, "blocks");
    run->resume->blocks = (int32_t)blocks;
    return PLAIT_OK;
}

static plait_status read_meta(const pli_run *run, const json_t *meta) {
    pli_resume *r = run->resume;
    const char *kind = json_string_value(json_object_get(meta, "kind"));
    const char *options = json_string_value(json_object_get(meta, "options"));
    int64_t     layout = 0, lanes = 0, version = 0, in_order = -1;
    if (kind == NULL || strcmp(kind, "train") != 0)
        return pli_fail(run->err, PLAIT_EREFUSED,
                        "%s/%s holds tables, but no run of train to resume; restore them by plait/checkpoint.h",
                        run->opts->resume, r->folder);
    PLI_TRY(read_count(run, meta, "version", 1, &version));
    if (version > 1)
        return pli_fail(run->err, PLAIT_EVERSION,
                        "%s/%s was written by a newer version of Plait (%lld; this one reads 1)", run->opts->resume,
                        r->folder, (long long)version);
    PLI_TRY(read_count(run, meta, "clock", 0, &r->clock));
    PLI_TRY(read_count(run, meta, "epoch", 0, &r->epoch));
    PLI_TRY(read_count(run, meta, "epoch_clock", 0, &r->epoch_clock));
    PLI_TRY(read_count(run, meta, "epochs_done", 0, &r->epochs_done));
    PLI_TRY(read_count(run, meta, "best_epoch", 0, &r->best_epoch));
    PLI_TRY(read_count(run, meta, "layout", 0, &layout));
    PLI_TRY(read_count(run, meta, "workers", 1, &r->workers));
    if (layout > INT32_MAX) return malformed(run, "layout");
    if (json_object_get(meta, "lanes") != NULL) { /* a pass in the files' order */
        PLI_TRY(read_count(run, meta, "lanes", 0, &lanes));
        PLI_TRY(read_count(run, meta, "tail", 0, &r->tail));
    }
    if (lanes > INT32_MAX) return malformed(run, "lanes");
    if (json_object_get(meta, "in_order") != NULL) PLI_TRY(read_count(run, meta, "in_order", 0, &in_order));
    if (options == NULL) return malformed(run, "options");
    if (!read_cells(json_string_value(json_object_get(meta, "progressive")), &r->progressive))
        return malformed(run, "progressive");
    PLI_TRY(read_blocks(run, meta, options));
    r->layout = (int32_t)layout;
    r->lanes = (int32_t)lanes;
    r->in_order = lanes > 0 ? 1 : in_order;
    r->best_loss = read_number(meta, "best_loss", INFINITY);
    r->validation_loss = read_number(meta, "validation_loss", NAN);
    r->validation_accuracy = read_number(meta, "validation_accuracy", NAN);
    r->options = pli_strdup(options);
    return r->options != NULL ? PLAIT_OK : pli_fail(run->err, PLAIT_ENOMEM, "no memory to read a checkpoint");
}

static plait_status parse_meta(const pli_run *run) {
    const char  *text = pli_checkpoint_meta(run->resume->checkpoint);
    json_t      *meta = pli_json_read(text, strlen(text), NULL);
    plait_status status = json_is_object(meta) ? read_meta(run, meta) : malformed(run, "all");
    json_decref(meta);
    return status;
}

/* --- finding it --------------------------------------------------------------------------------------------------- */

static void tell_passed_over(const pli_run *run, char *lines) {
    char *rest = NULL;
    for (char *line = strtok_r(lines, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_WARN, -1, "learn", "%s: a checkpoint is skipped: %s",
                run->opts->resume, line);
}

/* The lead finds the newest good checkpoint; it verifies all its bytes. */
static plait_status find(const pli_run *run, plait_error *err) {
    pli_text     passed_over = { 0 };
    plait_status status = pli_checkpoint_open(run->opts->resume, &run->resume->checkpoint, &passed_over, err);
    if (passed_over.data != NULL) tell_passed_over(run, passed_over.data);
    pli_text_free(&passed_over);
    if (status >= 0)
        snprintf(run->resume->folder, sizeof run->resume->folder, "%s", pli_checkpoint_folder(run->resume->checkpoint));
    return status;
}

plait_status pli_resume_open(pli_run *run) {
    const plait_train_opts *o = run->opts;
    struct {
        plait_error why;
        bool        begins;
        char        folder[PLI_CHECKPOINT_FOLDER];
    } said;
    if (o->resume == NULL) return PLAIT_OK;
    run->resume = pli_calloc(1, sizeof *run->resume);
    if (run->resume == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory to read a checkpoint");
    memset(&said, 0, sizeof said);
    if (pli_comm_leads(run->comm)) {
        said.begins = o->resume_or_begin != 0 && pli_checkpoint_is_none(o->resume);
        if (!said.begins) (void)find(run, &said.why);
        memcpy(said.folder, run->resume->folder, sizeof said.folder);
    }
    PLI_TRY(plait_comm_broadcast(run->comm, &said, sizeof said, pli_comm_lead(run->comm)));
    if (said.why.code < 0) {
        *run->err = said.why;
        return said.why.code;
    }
    if (said.begins) {
        pli_resume_close(run);
        if (pli_comm_leads(run->comm))
            pli_log(pli_comm_log(run->comm), PLAIT_LOG_WARN, -1, "learn",
                "%s holds no checkpoint: the run starts from the beginning",
                    o->resume);
        return PLAIT_OK;
    }
    memcpy(run->resume->folder, said.folder, sizeof said.folder);
    if (run->resume->checkpoint == NULL)
        PLI_TRY(pli_checkpoint_open_at(o->resume, said.folder, &run->resume->checkpoint, run->err));
    return parse_meta(run);
}

void pli_resume_close(pli_run *run) {
    if (run->resume == NULL) return;
    pli_checkpoint_close(&run->resume->checkpoint);
    pli_free(run->resume->options);
    pli_free(run->resume);
    run->resume = NULL;
}

/* --- is it this run's? -------------------------------------------------------------------------------------------- */

/* Copies line i without its end; "" if there are fewer lines. */
static void line_of(const char *text, int64_t i, char *line, size_t bytes) {
    for (; i > 0 && *text != '\0'; i--) text += strcspn(text, "\n") + (text[strcspn(text, "\n")] == '\n');
    snprintf(line, bytes, "%.*s", (int)strcspn(text, "\n"), text);
}

/* How long the name is with which a line begins. */
static size_t name_of(const char *line) { return strcspn(line, " "); }

/* Has some line of the text the name of this one? */
static bool is_named(const char *text, const char *line) {
    const size_t name = name_of(line);
    for (; *text != '\0'; text += strcspn(text, "\n"), text += *text == '\n')
        if (strncmp(text, line, name) == 0 && (text[name] == ' ' || text[name] == '\n')) return true;
    return false;
}

/* Says that there is no such option. from may be the line itself. */
static void say_none(char *line, size_t bytes, const char *from) {
    const size_t name = name_of(from);
    char         shown[110];
    snprintf(shown, sizeof shown, "no %.*s", (int)(name < 100 ? name : 100), from);
    snprintf(line, bytes, "%s", shown);
}

/* An option as a message shows it: not as a number that stands for the default. */
static void show_option(char *line, size_t bytes) {
    const size_t length = strlen(line);
    if (length > 4 && strcmp(line + length - 4, " nan") == 0) say_none(line, bytes, line);
}

/* The first lines that differ may be of two options, of which one of the runs has but one. */
static void show_pair(const char *was, const char *now, char *was_line, char *now_line, size_t bytes) {
    if (was_line[0] != '\0' && !is_named(now, was_line)) say_none(now_line, bytes, was_line);
    else if (now_line[0] != '\0' && !is_named(was, now_line)) say_none(was_line, bytes, now_line);
    show_option(was_line, bytes);
    show_option(now_line, bytes);
}

plait_status pli_resume_check(const pli_run *run) {
    const pli_resume *r = run->resume;
    pli_text          now = { 0 };
    char              was_line[200] = "", now_line[200] = "";
    int64_t           i = 0;
    if (r == NULL) return PLAIT_OK;
    plait_status status = pli_keep_options(run, &now);
    if (status == PLAIT_OK && strcmp(now.data, r->options) != 0) {
        do {
            line_of(r->options, i, was_line, sizeof was_line);
            line_of(now.data, i++, now_line, sizeof now_line);
        } while (strcmp(was_line, now_line) == 0 && was_line[0] != '\0');
        show_pair(r->options, now.data, was_line, now_line, sizeof was_line);
        status = pli_fail(run->err, PLAIT_EREFUSED,
                          "%s/%s was made with '%s', but this run has '%s'; to resume it give the same options, or "
                          "start from its weights by --init-model",
                          run->opts->resume, r->folder, was_line, now_line);
    }
    if (status == PLAIT_OK && (r->epoch_clock > run->clocks && !run->stream)) status = malformed(run, "epoch_clock");
    pli_text_free(&now);
    return status;
}

/* --- what it holds ------------------------------------------------------------------------------------------------ */

static const pli_kept *handed(const pli_run *run, const char *name) {
    for (int32_t i = 0; i < run->n_handed; i++)
        if (strcmp(run->handed[i].name, name) == 0) return &run->handed[i];
    return NULL;
}

bool pli_resume_has(const pli_run *run, const char *name, int64_t *rows_out) {
    const pli_kept *kept = handed(run, name);
    if (kept != NULL && rows_out != NULL) *rows_out = kept->rows;
    if (run->handed != NULL) return kept != NULL;
    const pli_checkpoint_tensor *tensor = pli_checkpoint_find(run->resume->checkpoint, name);
    if (tensor != NULL && rows_out != NULL) *rows_out = tensor->shape[0];
    return tensor != NULL;
}

plait_status pli_resume_rows(const pli_run *run, const char *name, int64_t first, int64_t n, int64_t rows,
                             int64_t row_bytes, void *out) {
    const pli_kept *kept = handed(run, name);
    if (kept != NULL) { /* of a run with these very options: it has this shape */
        memcpy(out, (const unsigned char *)kept->data + first * row_bytes, (size_t)(n * row_bytes));
        return PLAIT_OK;
    }
    const pli_checkpoint_tensor *tensor = pli_checkpoint_find(run->resume->checkpoint, name);
    if (tensor == NULL || tensor->shape[0] != rows || pli_checkpoint_row_bytes(tensor) != row_bytes)
        return pli_fail(run->err, PLAIT_EMISMATCH, "%s/%s: tensor %s is missing, or does not have this run's shape",
                        run->opts->resume, run->resume->folder, name);
    return pli_checkpoint_read(run->resume->checkpoint, tensor, first, n, out, run->err);
}

plait_status pli_resume_array(const pli_run *run, const char *name, int64_t rows, int64_t row_bytes, void *out) {
    return pli_resume_rows(run, name, 0, rows, rows, row_bytes, out);
}

void pli_kept_own_name(const char *name, int32_t rank, char text[PLI_CHECKPOINT_NAME]) {
    snprintf(text, PLI_CHECKPOINT_NAME, "%s.%d", name, (int)rank);
}

/* Have blocks changed hands (solve/settled.h)? */
static bool has_moved(const pli_run *run) {
    for (int32_t b = 0; run->homes != NULL && b < pli_dataset_blocks(run->data); b++)
        if (run->homes[b] != pli_dataset_home(run->data, b)) return true;
    return false;
}

double pli_keep_place(const pli_run *run) {
    const int32_t own = pli_dataset_own_blocks(run->data);
    if (pli_job_away(run->job) > 0) return -1; /* others have the rows of those who are away */
    if (has_moved(run)) return -1; /* no worker of a run that begins has these rows */
    return own > 0 ? (double)pli_dataset_block(run->data, 0)->number * (double)(1 << 24) + own : 0;
}

plait_status pli_resume_is_same(const pli_run *run, const char *name, int64_t n, bool *same_out) {
    char    own[PLI_CHECKPOINT_NAME];
    int64_t rows = 0;
    double  was = 0;
    pli_kept_own_name(name, plait_comm_rank(run->comm), own);
    double other = run->resume->workers != plait_comm_workers(run->comm) || !pli_resume_has(run, own, &rows) ||
                   rows < n;
    if (other == 0) PLI_TRY(pli_resume_rows(run, own, 0, 1, rows, sizeof was, &was));
    if (was != pli_keep_place(run) || was < 0) other = 1;
    PLI_TRY(plait_comm_allreduce(run->comm, &other, 1, PLAIT_F64, PLAIT_MAX));
    *same_out = other == 0;
    return PLAIT_OK;
}

plait_status pli_resume_own(const pli_run *run, const char *name, int64_t rows, int64_t row_bytes, void *out) {
    char own[PLI_CHECKPOINT_NAME];
    pli_kept_own_name(name, plait_comm_rank(run->comm), own);
    return pli_resume_array(run, own, rows, row_bytes, out);
}

static plait_status put_table(pli_run *run, plait_table *table) {
    const pli_learner_more *more = run->learner->more;
    bool                    done = false;
    if (more != NULL && more->put_back != NULL) PLI_TRY(more->put_back(run, table, &done));
    return done ? PLAIT_OK
                : pli_kept_put(run->resume->checkpoint, run->opts->resume, plait_table_name(table), table, run->err);
}

/* The share of each member follows from who is absent, of which a group's members hear together (comm/carried.h). */
static plait_status meet_groups(const pli_run *run) {
    const plait_job *met = NULL;
    for (int32_t t = 0; run->opts->replicas > 1 && t < run->n_made; t++) {
        plait_job *part = run->made[t]->job;
        if (part->group != NULL && part != met) PLI_TRY(pli_job_meet(part));
        met = part;
    }
    return PLAIT_OK;
}

static plait_status restore_arrays(pli_run *run) {
    const pli_learner_more *more = run->learner->more;
    const pli_solver_keeps *solver = &run->solver_keeps;
    if (solver->restore != NULL) return solver->restore(solver->state);
    return more != NULL && more->restore != NULL ? more->restore(run) : PLAIT_OK;
}

plait_status pli_resume_tables(pli_run *run) {
    const pli_resume *r = run->resume;
    if (r == NULL) return PLAIT_OK;
    plait_status status = PLAIT_OK;
    int32_t      absent = pli_comm_absent(run->comm);
    do {
        status = meet_groups(run);
        for (int32_t t = 0; status >= 0 && t < run->n_made; t++) status = put_table(run, run->made[t]);
        if (status >= 0 && run->opts->replicas > 1) status = plait_comm_barrier(run->comm);
    } while (status >= 0 && pli_run_again(run, &absent)); /* the share of a worker that died may be missing */
    /* A mirror's round has begun from what all put back together. */
    for (int32_t t = 0; status >= 0 && t < run->n_made; t++)
        if (pli_own_is(run->made[t])) {
            status = plait_comm_barrier(run->comm);
            break;
        }
    if (status >= 0) status = pli_row_values_restore(run);
    if (status >= 0) status = restore_arrays(run);
    if (status < 0) return status;
    run->best_loss = r->best_loss;
    run->best_epoch = r->best_epoch;
    run->validation_loss = r->validation_loss;
    run->validation_accuracy = r->validation_accuracy;
    run->epochs_done = r->epochs_done;
    if (pli_comm_leads(run->comm)) run->progressive = r->progressive; /* of all workers until then */
    pli_checkpoint_close(&run->resume->checkpoint);
    if (pli_comm_leads(run->comm))
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_INFO, -1, "learn", "going on from %s/%s, after clock %lld",
                run->opts->resume, r->folder, (long long)r->clock);
    return PLAIT_OK;
}
