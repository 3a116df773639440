/* recommend - prints the best items for users: what a factorisation expects them to like most. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/lines.h"
#include "cli/paths.h"
#include "cli/settings.h"
#include "cli/waiting.h"
#include "learn/model/model.h"

typedef struct recommend_settings {
    pli_input   in;
    const char *model_file, *out;
    int64_t     top;
    bool        json, quiet;
} recommend_settings;

#define AT(field) offsetof(recommend_settings, field)

static const pli_opt rows[] = {
    { "model-file", PLI_OPT_TEXT, AT(model_file), NULL, "FILE", "the model, as train --out wrote it", 0, 0, "model" },
    { "top", PLI_OPT_I64, AT(top), "10", "K", "how many items for each user", 1, 1e9, "model" },
    { "data", PLI_OPT_LIST, AT(in.data), NULL, "USERS",
      "users, one a line, or ratings: then the items that a user's lines name are left out; default: all users of the "
      "model, and all items", 0, 0, "data" },
    { "format", PLI_OPT_CHOICE, AT(in.format), "auto", "auto|csv|tsv|ratings",
      "format of the data; auto looks at the content", 0, 0, "data" },
    { "header", PLI_OPT_CHOICE, AT(in.header), "auto", "auto|yes|no", "does csv or tsv data begin with column names?",
      0, 0, "data" },
    { "delimiter", PLI_OPT_TEXT, AT(in.delimiter), NULL, "C",
      "what separates the cells of the data: a character, or tab, space, comma, semicolon, pipe; default: the one that "
      "gives every line the same number of cells", 0, 0, "data" },
    { "threads", PLI_OPT_I64, AT(in.threads), NULL, "N", "compute threads; default: one for each core", 1, 4096,
      "run" },
    { "out", PLI_OPT_TEXT, AT(out), NULL, "FILE", "write to FILE, whole or not at all; default, and -: standard output",
      0, 0, "run" },
    { "json", PLI_OPT_FLAG, AT(json), NULL, NULL,
      "a JSON object a line for each user: {\"user\": U, \"items\": [{\"item\": I, \"score\": X}, ...]}", 0, 0, "run" },
    { "quiet", PLI_OPT_FLAG, AT(quiet), NULL, NULL, "print only errors", 0, 0, "run" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

typedef struct sink {
    pli_lines    lines;
    plait_error *err;
    bool         json, any;
    const char  *user; /* json: whose object is open; NULL: none is. It belongs to the model */
} sink;

static void end_user(sink *s) {
    if (s->user == NULL) return;
    pli_json_list_end(&s->lines.text);
    pli_json_end(&s->lines.text);
    pli_text_add(&s->lines.text, "\n");
    s->user = NULL;
}

static plait_status add_item(void *to, const char *user, const char *item, double score) {
    sink        *s = to;
    plait_status status = PLAIT_OK;
    if (s->user != NULL && strcmp(s->user, user) != 0) {
        end_user(s);
        status = pli_lines_go(&s->lines, s->err);
    }
    pli_text *text = &s->lines.text;
    s->any = true;
    if (s->user == NULL) {
        pli_json_begin(text);
        pli_json_text(text, "user", s->user = user);
        pli_json_list(text, "items");
    }
    pli_json_object(text, NULL);
    pli_json_text(text, "item", item);
    pli_json_f64(text, "score", score);
    pli_json_end(text);
    return status;
}

static plait_status add_line(void *to, const char *user, const char *item, double score) {
    sink *s = to;
    s->any = true;
    pli_text_add_printable(&s->lines.text, user, strlen(user), "");
    pli_text_add(&s->lines.text, "\t");
    pli_text_add_printable(&s->lines.text, item, strlen(item), "");
    pli_text_add(&s->lines.text, "\t%.9g\n", score);
    return pli_lines_go(&s->lines, s->err);
}

static plait_status write_all(const recommend_settings *set, const plait_model *model, const plait_data *users,
                              pli_talk *talk, plait_error *err) {
    sink         s = { .err = err, .json = set->json };
    pli_pool    *pool = NULL;
    plait_status status = pli_pool_create((int32_t)set->in.threads, &pool, err);
    if (status >= 0) status = pli_lines_open(&s.lines, set->out, err);
    if (status >= 0) status = pli_model_recommend(model, users, set->top, pool, s.json ? add_item : add_line, &s, err);
    end_user(&s);
    status = pli_lines_close(&s.lines, status, err);
    if (status >= 0 && users != NULL && !s.any)
        pli_talk_tell(talk, "no user of the data is known to the model, or all items are left out, so there are no "
                            "lines; 'plait inspect %s' lists users and items", set->model_file);
    pli_pool_destroy(&pool);
    return status;
}

static plait_status read_users(const recommend_settings *set, const plait_model *model, pli_talk *talk,
                               plait_data **users, plait_error *err) {
    plait_data_opts opts;
    pli_waiting     waiting;
    if (set->in.data.n == 0) return PLAIT_OK;
    pli_input_opts(&set->in, &talk->log, &opts);
    pli_waiting_begin(&waiting, talk, set->in.data.item, set->in.data.n);
    const plait_status status = plait_model_read(model, &opts, users, err);
    pli_waiting_end(&waiting);
    return status;
}

static plait_status apply(const recommend_settings *set, pli_talk *talk, plait_error *err) {
    plait_model *model = NULL;
    plait_data  *users = NULL;
    PLI_TRY(plait_model_load(set->model_file, &model, err));
    plait_status status = pli_model_recommends(model, err);
    if (status >= 0) status = read_users(set, model, talk, &users, err);
    if (status >= 0) status = write_all(set, model, users, talk, err);
    plait_data_destroy(&users);
    plait_model_destroy(&model);
    return status;
}

static int recommend(int argc, char *const *argv) {
    recommend_settings set = { 0 };
    pli_opts          *opts = NULL;
    plait_error        err = { .rank = -1 };
    pli_talk           talk;
    int                code = PLI_EXIT_USAGE;
    if (!pli_cli_read(&pli_command_recommend, argc, argv, &set, NULL, &opts, &code)) return code;
    if (set.out != NULL && strcmp(set.out, "-") == 0) set.out = NULL;
    const pli_path out = { "--out", set.out, false }, read[] = { { "--model-file", set.model_file, false } };
    if (set.model_file == NULL) {
        pli_cli_usage("recommend: no model; name it with --model-file FILE");
    } else if (pli_paths_apart("recommend", &out, 1, read, 1, &set.in.data)) {
        if (set.in.threads == 0) set.in.threads = pli_cores();
        pli_talk_open(&talk, set.quiet);
        code = apply(&set, &talk, &err) < 0 ? pli_cli_fail(&err) : pli_cli_end(PLI_EXIT_DONE);
        pli_talk_close(&talk);
    }
    pli_opts_free(&opts);
    return code;
}

const pli_command pli_command_recommend = {
    .name = "recommend",
    .usage = "recommend --model-file FILE --top K [--data USERS] [--json] [--out FILE]",
    .summary = "the best items for users, by a factorisation",
    .details = "A line holds a user, an item and its score, separated by tabs; each user's items come best first. "
               "Users come in the order of --data, each once, else in the model's. A user that the model does not know "
               "is named in a note, and has no lines.",
    .rows = rows,
    .run = recommend,
};
