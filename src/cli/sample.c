/* sample - writes text by a model of text: a prompt, and what the model draws behind it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "cli/paths.h"
#include "cli/talk.h"
#include "learn/model/model.h"

typedef struct sample_settings {
    const char *model_file, *prompt, *out;
    int64_t     length, seed;
    double      temperature;
    bool        quiet;
} sample_settings;

#define AT(field) offsetof(sample_settings, field)

static const pli_opt rows[] = {
    { "model-file", PLI_OPT_TEXT, AT(model_file), NULL, "FILE", "the model of text, as train --out wrote it", 0, 0,
      "model" },
    { "prompt", PLI_OPT_TEXT, AT(prompt), NULL, "TEXT", "the text's beginning; default: none", 0, 0, "text" },
    { "length", PLI_OPT_I64, AT(length), "500", "N", "characters to write behind the prompt", 1, 1e9, "text" },
    { "temperature", PLI_OPT_F64, AT(temperature), "1", "T",
      "1 draws characters with the model's probabilities, less makes likely ones likelier, 0 takes the likeliest", 0,
      1000, "text" },
    { "seed", PLI_OPT_I64, AT(seed), "0", "N", "seed of the draws; the same seed writes the same text", 0, INFINITY,
      "text" },
    { "out", PLI_OPT_TEXT, AT(out), NULL, "FILE",
      "write to FILE, whole or not at all, each byte as it is; default, and -: standard output, where control bytes "
      "are written as in C", 0, 0, "run" },
    { "quiet", PLI_OPT_FLAG, AT(quiet), NULL, NULL, "print only errors", 0, 0, "run" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

/* --- where the text goes ---------------------------------------------------------------------------------------- */

typedef struct page {
    pli_outfile *file;    /* NULL: stdout */
    pli_text     pending; /* bytes that were not written yet */
} page;

enum { FILE_BYTES = 1 << 16 };

/* On stdout a character is shown as soon as it is whole: what is pending ends with ASCII, or grows too long for a
 * character of UTF-8. */
static plait_status flush(page *p, bool all, plait_error *err) {
    const size_t n = p->pending.length;
    if (p->pending.failed) return pli_fail(err, PLAIT_ENOMEM, "no memory for the text");
    if (n == 0) return PLAIT_OK;
    if (p->file != NULL) {
        if (!all && n < FILE_BYTES) return PLAIT_OK;
        p->pending.length = 0;
        return pli_outfile_write(p->file, p->pending.data, n, err);
    }
    if (!all && (unsigned char)p->pending.data[n - 1] >= 0x80 && n < 4) return PLAIT_OK;
    pli_text shown = { 0 };
    pli_text_add_printable(&shown, p->pending.data, n, "\n\t");
    p->pending.length = 0;
    const bool written = !shown.failed && fwrite(shown.data, 1, shown.length, stdout) == shown.length &&
                         fflush(stdout) == 0;
    pli_text_free(&shown);
    return written ? PLAIT_OK : PLAIT_END; /* pli_cli_end says why */
}

/* --- the text --------------------------------------------------------------------------------------------------- */

static plait_status write_prompt(const sample_settings *set, pli_sampler *sampler, page *p, pli_talk *talk,
                                 plait_error *err) {
    const char *prompt = set->prompt != NULL ? set->prompt : "";
    int64_t     unknown = 0;
    for (const char *c = prompt; *c != '\0'; c++) unknown += !pli_sampler_add(sampler, (unsigned char)*c);
    if (unknown > 0)
        pli_talk_say(talk, "sample: %" PRId64 " byte%s of the prompt %s not in the text that the model was trained on",
                     unknown, pli_plural(unknown), unknown == 1 ? "is" : "are");
    pli_text_add(&p->pending, "%s", prompt);
    return flush(p, false, err);
}

static plait_status write_text(const sample_settings *set, pli_sampler *sampler, page *p, plait_error *err) {
    plait_status  status = PLAIT_OK;
    unsigned char byte = '\n';
    for (int64_t i = 0; i < set->length && status == PLAIT_OK; i++) {
        pli_random random = pli_random_at((uint64_t)set->seed, PLI_RANDOM_SAMPLE, (uint64_t)i, 0);
        status = pli_sampler_next(sampler, set->temperature, pli_random_f64(&random), &byte, err);
        if (status == PLAIT_OK) pli_text_add_bytes(&p->pending, &byte, 1);
        if (status == PLAIT_OK) status = flush(p, false, err);
    }
    if (p->file == NULL && byte != '\n' && status == PLAIT_OK) pli_text_add(&p->pending, "\n");
    return status == PLAIT_OK ? flush(p, true, err) : status;
}

static plait_status sample_all(const sample_settings *set, pli_talk *talk, plait_error *err) {
    plait_model *model = NULL;
    pli_sampler *sampler = NULL;
    page         p = { 0 };
    PLI_TRY(plait_model_load(set->model_file, &model, err));
    plait_status status = pli_sampler_open(model, &sampler, err);
    if (status < 0) pli_fail_at(err, "sample");
    if (status >= 0 && set->out != NULL) status = pli_outfile_open(set->out, &p.file, err);
    if (status >= 0) status = write_prompt(set, sampler, &p, talk, err);
    if (status == PLAIT_OK) status = write_text(set, sampler, &p, err);
    if (p.file != NULL && status >= 0) status = pli_outfile_commit(&p.file, err);
    else if (p.file != NULL) pli_outfile_abandon(&p.file);
    pli_text_free(&p.pending);
    pli_sampler_close(&sampler);
    plait_model_destroy(&model);
    return status;
}

static int sample(int argc, char *const *argv) {
    sample_settings set = { 0 };
    pli_opts       *opts = NULL;
    plait_error     err = { .rank = -1 };
    pli_talk        talk;
    int             code = PLI_EXIT_USAGE;
    if (!pli_cli_read(&pli_command_sample, argc, argv, &set, NULL, &opts, &code)) return code;
    if (set.out != NULL && strcmp(set.out, "-") == 0) set.out = NULL;
    const pli_text_list none = { 0 };
    const pli_path out = { "--out", set.out, false }, model = { "--model-file", set.model_file, false };
    if (set.model_file == NULL) {
        pli_cli_usage("sample: no model; name it with --model-file FILE");
    } else if (pli_paths_apart("sample", &out, 1, &model, 1, &none)) {
        pli_talk_open(&talk, set.quiet);
        code = sample_all(&set, &talk, &err) < 0 ? pli_cli_fail(&err) : pli_cli_end(PLI_EXIT_DONE);
        pli_talk_close(&talk);
    }
    pli_opts_free(&opts);
    return code;
}

const pli_command pli_command_sample = {
    .name = "sample",
    .usage = "sample --model-file FILE [--prompt TEXT] [--length N] [--temperature T] [--seed N] [--out FILE]",
    .summary = "write text by a model of text",
    .details = "Writes the prompt, and behind it characters that the model draws one by one, each from those before "
               "it. Any model that was trained on text by characters can write: an lstm, or another one that has "
               "probabilities.",
    .rows = rows,
    .run = sample,
};
