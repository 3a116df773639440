/* plait/checkpoint.h of a session's own memory: one process saves variables, each as a table that has no rule, and sets
 * them again. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <plait/checkpoint.h>

#include "base/json.h"
#include "data/checkpoint/checkpoint.h"
#include "graph/graph.h"
#include "graph/session.h"

static const char *const type_names[PLAIT_TYPES] = { "F32", "F64", "I64", "U8", "BF16", "I32", "BOOL" };

/* A variable as a tensor of a checkpoint. */
typedef struct kept {
    int32_t               variable;
    char                  name[PLI_CHECKPOINT_NAME];
    pli_checkpoint_tensor tensor; /* its name is `name` */
    size_t                bytes;
} kept;

typedef struct saving {
    plait_session               *session;
    int32_t                      n;
    kept                        *of; /* [n] */
    const plait_checkpoint_opts *opts;
    pli_checkpoint_list          before;
    plait_error                 *err;
} saving;

static plait_status describe(plait_session *session, int32_t k, const char *as, kept *out, plait_error *err) {
    plait_variable_info info;
    int64_t             cols = 1;
    PLI_TRY(plait_session_variable_info(session, k, &info, err));
    const char *name = as != NULL ? as : info.name;
    if (strlen(name) > sizeof out->name - sizeof ".values")
        return pli_fail(err, PLAIT_EINVAL, "variable '%.40s...' has too long a name for a checkpoint", name);
    for (int32_t d = 1; d < info.shape.rank; d++) cols *= info.shape.dim[d];
    const int64_t rows = info.shape.rank > 0 ? info.shape.dim[0] : 1;
    *out = (kept){ .variable = k, .bytes = (size_t)(rows * cols) * plait_type_bytes(info.type) };
    snprintf(out->name, sizeof out->name, "%s.values", name);
    out->tensor = (pli_checkpoint_tensor){ .type = type_names[info.type], .dims = 2, .shape = { rows, cols },
                                           .rows = rows };
    return PLAIT_OK;
}

/* --- saving ------------------------------------------------------------------------------------------------------- */

static plait_status choose(saving *s, const int32_t *variables) {
    s->of = pli_calloc((size_t)s->n, sizeof *s->of);
    if (s->of == NULL && s->n > 0) return pli_fail(s->err, PLAIT_ENOMEM, "no memory to save a session");
    for (int32_t i = 0; i < s->n; i++) {
        PLI_TRY(describe(s->session, variables != NULL ? variables[i] : i, NULL, &s->of[i], s->err));
        s->of[i].tensor.name = s->of[i].name;
        for (int32_t j = 0; j < i; j++)
            if (strcmp(s->of[j].name, s->of[i].name) == 0)
                return pli_fail(s->err, PLAIT_EINVAL, "variable '%.*s' is to be saved twice",
                                (int)(strlen(s->of[i].name) - strlen(".values")), s->of[i].name);
    }
    return PLAIT_OK;
}

static plait_status write_values(const saving *s, pli_partfile *part) {
    plait_status status = PLAIT_OK;
    for (int32_t i = 0; status >= 0 && i < s->n; i++) {
        void *values = pli_array(s->of[i].bytes, 1);
        if (values == NULL) return pli_fail(s->err, PLAIT_ENOMEM, "no memory to save a variable");
        status = plait_session_variable(s->session, s->of[i].variable, values, s->err);
        if (status >= 0) status = pli_partfile_write(part, values, s->of[i].bytes, s->err);
        pli_free(values);
    }
    return status;
}

/* The only part of the checkpoint. */
static plait_status write_part(const saving *s, const char *folder, pli_text *digest) {
    pli_partfile          *part = NULL;
    pli_checkpoint_tensor *tensor = pli_array((size_t)s->n, sizeof *tensor);
    if (tensor == NULL && s->n > 0) return pli_fail(s->err, PLAIT_ENOMEM, "no memory to save a session");
    for (int32_t i = 0; i < s->n; i++) tensor[i] = s->of[i].tensor;
    plait_status status = pli_partfile_begin(s->opts->dir, folder, 0, 1, tensor, s->n, &part, s->err);
    if (status >= 0) status = write_values(s, part);
    if (status >= 0) status = pli_partfile_end(&part, digest, s->err);
    pli_partfile_abandon(&part);
    pli_free(tensor);
    return status;
}

/* As plait_checkpoint_save says of tables. */
static void tell_meta(const saving *s, pli_text *meta) {
    pli_json_begin(meta);
    pli_json_text(meta, "kind", "tables");
    pli_json_i64(meta, "version", 1);
    pli_json_object(meta, "units");
    for (int32_t i = 0; i < s->n; i++) {
        char name[PLI_CHECKPOINT_NAME];
        snprintf(name, sizeof name, "%.*s", (int)(strlen(s->of[i].name) - strlen(".values")), s->of[i].name);
        pli_json_i64(meta, name, 0);
    }
    pli_json_end(meta);
    pli_json_text(meta, "note", s->opts->note != NULL ? s->opts->note : "");
    pli_json_end(meta);
}

static plait_status commit(const saving *s, const char *folder, const pli_text *digest) {
    pli_text meta = { 0 };
    tell_meta(s, &meta);
    plait_status status =
        meta.failed || digest->failed
            ? pli_fail(s->err, PLAIT_ENOMEM, "no memory to describe a checkpoint")
            : pli_checkpoint_commit(s->opts->dir, folder, meta.data, (const char *const[]){ digest->data }, 1, s->err);
    pli_text_free(&meta);
    return status;
}

static plait_status save(saving *s, int64_t clock) {
    char     folder[PLI_CHECKPOINT_FOLDER];
    pli_text digest = { 0 };
    (void)pli_checkpoint_list_read(s->opts->dir, &s->before, NULL); /* there may be no directory yet */
    PLI_TRY(pli_checkpoint_begin(s->opts->dir, clock, folder, s->err));
    plait_status status = write_part(s, folder, &digest);
    if (status >= 0) status = commit(s, folder, &digest);
    if (status < 0) (void)pli_checkpoint_discard(s->opts->dir, folder, NULL);
    else (void)pli_checkpoint_prune(s->opts->dir, s->opts->keep, &s->before, NULL); /* what stays does no harm */
    pli_text_free(&digest);
    return status;
}

plait_status plait_checkpoint_save_session(plait_session *session, int32_t n, const int32_t *variables, int64_t clock,
                                           const plait_checkpoint_opts *opts, plait_error *error_out) {
    plait_checkpoint_opts own;
    PLI_TRY(PLI_GIVEN(error_out, session));
    PLI_TRY(PLI_GIVEN(error_out, opts));
    plait_checkpoint_opts_init(&own);
    PLI_TRY(pli_sized_take(&own, sizeof own, PLI_SIZED_END(plait_checkpoint_opts, keep), opts,
                           "plait_checkpoint_opts", error_out));
    if (own.dir == NULL) return pli_fail(error_out, PLAIT_EINVAL, "%s: opts->dir is NULL", __func__);
    if (own.keep < 1 || clock < 0 || (variables != NULL && n < 0))
        return pli_fail(error_out, PLAIT_EINVAL,
                        "%s: opts->keep is %d, of %d variables, in clock %" PRId64 "; expected 1 or more, and 0 or "
                        "more", __func__, (int)own.keep, (int)n, clock);
    if (variables == NULL && session->cut.parts > 1)
        return pli_fail(error_out, PLAIT_EINVAL,
                        "%s: variables is NULL, but a session of one of %d parts lacks those of the others; name those "
                        "of its part", __func__, session->cut.parts);
    saving s = { .session = session, .n = variables != NULL ? n : (int32_t)session->graph->n_variables, .opts = &own,
                 .err = error_out };
    plait_status status = choose(&s, variables);
    if (status >= 0) status = save(&s, clock);
    pli_checkpoint_list_free(&s.before);
    pli_free(s.of);
    return status;
}

/* --- loading ------------------------------------------------------------------------------------------------------ */

static bool find(const plait_checkpoint *c, const kept *wanted) {
    plait_checkpoint_tensor tensor;
    for (int64_t i = 0; plait_checkpoint_tensor_at(c, i, &tensor) == PLAIT_OK; i++)
        if (strcmp(tensor.name, wanted->name) == 0)
            return strcmp(tensor.type, wanted->tensor.type) == 0 && tensor.rows == wanted->tensor.shape[0] &&
                   (size_t)(tensor.rows * tensor.row_bytes) == wanted->bytes;
    return false;
}

plait_status plait_checkpoint_load_session(plait_checkpoint *checkpoint, plait_session *session, int32_t k,
                                           const char *name, plait_error *error_out) {
    kept wanted;
    PLI_TRY(PLI_GIVEN(error_out, checkpoint));
    PLI_TRY(PLI_GIVEN(error_out, session));
    PLI_TRY(describe(session, k, name, &wanted, error_out));
    if (!find(checkpoint, &wanted))
        return pli_fail(error_out, PLAIT_EMISMATCH,
                        "%s: %s is missing, or is not of %" PRId64 " x %" PRId64 " values of type %s",
                        plait_checkpoint_folder(checkpoint), wanted.name, wanted.tensor.shape[0],
                        wanted.tensor.shape[1], wanted.tensor.type);
    void *values = pli_array(wanted.bytes, 1);
    if (values == NULL) return pli_fail(error_out, PLAIT_ENOMEM, "no memory to load a variable");
    plait_status status =
        plait_checkpoint_read(checkpoint, wanted.name, 0, wanted.tensor.shape[0], values, error_out);
    if (status >= 0) status = plait_session_set_variable(session, k, values, error_out);
    pli_free(values);
    return status;
}
