/* What a search knows, as lines of JSON: the first has the search's settings, each other the outcome of a trial in a
 * rung. Each line is on the disk before the next trial begins, so a search that was killed goes on from there. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/tune.h"

enum { FILE_MOST = 1 << 28 };

/* --- writing ------------------------------------------------------------------------------------------------------ */

void pli_tune_words(const pli_tune *tune, int64_t trial, pli_text *text) {
    char word[PLI_TUNE_WORD];
    for (int32_t i = 0; i < tune->space.n; i++) {
        pli_space_value(&tune->space, (uint64_t)tune->job.seed, trial, i, word);
        pli_text_add(text, "%s--%s %s", i > 0 ? " " : "", tune->space.range[i].name, word);
    }
}

void pli_tune_json_trial(const pli_tune *tune, int64_t trial, int32_t rung, pli_text *text) {
    const pli_tune_run *run = pli_halving_run(&tune->halving, trial, rung);
    char                word[PLI_TUNE_WORD];
    pli_json_i64(text, "trial", trial + 1);
    pli_json_i64(text, "rung", rung);
    pli_json_short(text, "share", pli_halving_share(&tune->halving, rung));
    pli_json_f64(text, "loss", run->loss);
    pli_json_f64(text, "deviation", run->deviation);
    pli_json_short(text, "seconds", run->seconds);
    pli_json_i64(text, "order", run->order);
    if (run->error[0] != '\0') pli_json_text(text, "error", run->error);
    else pli_json_null(text, "error");
    pli_json_object(text, "options");
    for (int32_t i = 0; i < tune->space.n; i++) {
        pli_space_value(&tune->space, (uint64_t)tune->job.seed, trial, i, word);
        pli_json_text(text, tune->space.range[i].name, word);
    }
    pli_json_end(text);
}

static uint64_t hash_array(const void *array, int64_t n, size_t bytes, uint64_t before) {
    return array == NULL ? before : pli_hash_bytes(array, (size_t)n * bytes, before);
}

static uint64_t hash_block(const pli_block *b, uint64_t hash) {
    hash = hash_array(b->row_start, b->rows + 1, sizeof *b->row_start, hash);
    hash = hash_array(b->col, b->entries, sizeof *b->col, hash);
    hash = hash_array(b->key, b->entries, sizeof *b->key, hash);
    hash = hash_array(b->value, b->entries, sizeof *b->value, hash);
    hash = hash_array(b->label, b->rows, sizeof *b->label, hash);
    hash = hash_array(b->weight, b->rows, sizeof *b->weight, hash);
    return hash_array(b->query, b->rows, sizeof *b->query, hash);
}

/* A hash of the rows, and one of the folds that they are in. */
static plait_status hash_rows(const pli_tune *tune, uint64_t *hash_out, plait_error *err) {
    pli_dataset *set = NULL;
    *hash_out = 0;
    PLI_TRY(pli_dataset_of_memory(tune->data, 0, 1, &set, err));
    for (int32_t i = 0; i < pli_dataset_own_blocks(set); i++)
        *hash_out = hash_block(pli_dataset_block(set, i), *hash_out);
    pli_dataset_destroy(&set);
    return PLAIT_OK;
}
static uint64_t hash_folds(const pli_tune *tune) {
    const pli_folds *f = &tune->folds;
    return f->of == NULL ? 0 : pli_hash_bytes(f->of, (size_t)f->rows * sizeof *f->of, 0);
}

/* The first line: everything that a trial's outcome depends on. */
static void add_settings(const pli_tune *tune, uint64_t data, pli_text *text) {
    const pli_halving *h = &tune->halving;
    const uint64_t     folds = hash_folds(tune);
    pli_json_begin(text);
    pli_json_i64(text, "plait_tune", 2); /* 1: draws could repeat */
    pli_json_i64(text, "rows", plait_data_rows(tune->data));
    pli_json_i64(text, "features", plait_data_features(tune->data));
    pli_json_hex(text, "data", &data, sizeof data);
    pli_json_hex(text, "fold_of_row", &folds, sizeof folds);
    pli_json_text(text, "search", tune->set.search);
    pli_json_text(text, "halve", tune->set.halve);
    pli_json_i64(text, "rungs", h->rungs);
    pli_json_i64(text, "factor", h->factor);
    pli_json_i64(text, "points", tune->space.points);
    pli_json_i64(text, "folds", tune->validates ? 0 : tune->folds.n);
    pli_json_text(text, "split", tune->set.folds_from != NULL ? tune->set.folds_from : tune->set.split);
    pli_json_text(text, "by", tune->set.by);
    pli_json_list(text, "try");
    for (int32_t i = 0; i < tune->space.n; i++) pli_json_text(text, NULL, tune->space.range[i].given);
    pli_json_list_end(text);
    pli_job_words_json(tune->job_opts, &tune->job, "job", text);
    pli_json_end(text);
}

static plait_status append(pli_tune *tune, pli_text *line, plait_error *err) {
    pli_text_add(line, "\n");
    if (line->failed) return pli_fail(err, PLAIT_ENOMEM, "no memory for a line");
    for (size_t at = 0; at < line->length;) {
        const ssize_t n = write(tune->lines, line->data + at, line->length - at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return pli_fail_errno(err, errno, "%s", tune->set.file);
        at += (size_t)n;
    }
    if (fsync(tune->lines) == 0) return PLAIT_OK;
    return pli_fail_errno(err, errno, "%s", tune->set.file);
}

plait_status pli_tune_lines_add(pli_tune *tune, int64_t trial, int32_t rung, plait_error *err) {
    pli_text line = { 0 };
    if (tune->lines < 0) return PLAIT_OK;
    pli_json_begin(&line);
    pli_tune_json_trial(tune, trial, rung, &line);
    pli_json_end(&line);
    const plait_status status = append(tune, &line, err);
    pli_text_free(&line);
    return status;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Takes a trial's outcome from its line. A trial beyond --trials is left out. */
static plait_status take_line(pli_tune *tune, const char *line, size_t bytes, int64_t number, plait_error *err) {
    json_t       *object = pli_json_read(line, bytes, NULL);
    const double  trial = pli_json_number_of(object, "trial", -1), rung = pli_json_number_of(object, "rung", -1);
    pli_halving  *h = &tune->halving;
    const char   *error = object != NULL ? pli_json_text_of(object, "error") : NULL;
    plait_status  status = PLAIT_OK;
    if (object == NULL || !(trial >= 1) || !(rung >= 0) || rung >= h->rungs)
        status = pli_fail(err, PLAIT_EFORMAT, "%s:%" PRId64 ": expected a trial, as 'plait tune' writes it",
                          tune->set.file, number);
    else if (trial <= (double)h->trials)
        *pli_halving_run(h, (int64_t)trial - 1, (int32_t)rung) =
            (pli_tune_run){ .state = PLI_TUNE_DONE,
                            .loss = pli_json_number_of(object, "loss", (double)INFINITY),
                            .deviation = pli_json_number_of(object, "deviation", (double)NAN),
                            .seconds = pli_json_number_of(object, "seconds", 0),
                            .order = ++tune->ended };
    if (status >= 0 && error != NULL && trial <= (double)h->trials)
        snprintf(pli_halving_run(h, (int64_t)trial - 1, (int32_t)rung)->error,
                 sizeof ((pli_tune_run *)NULL)->error, "%s", error);
    json_decref(object);
    return status;
}

static plait_status check_settings(const pli_tune *tune, const pli_text *settings, const char *line, size_t bytes,
                                   plait_error *err) {
    if (bytes == settings->length && memcmp(line, settings->data, bytes) == 0) return PLAIT_OK;
    if (strncmp(line, "{\"plait_tune\"", 13) != 0)
        return pli_fail(err, PLAIT_EFORMAT, "%s:1: it is no file of trials; name another by --trials-file",
                        tune->set.file);
    return pli_fail(err, PLAIT_EINVAL, "%s:1: its trials are those of another search (other data, options, seed or "
                    "ranges); repeat that command, or name another file by --trials-file", tune->set.file);
}

/* Returns how many bytes are whole lines; the rest was being written when the search was killed. */
static plait_status take_lines(pli_tune *tune, const pli_text *settings, const pli_text *text, size_t *whole_out,
                               plait_error *err) {
    int64_t number = 0;
    for (size_t at = 0; at < text->length;) {
        const char *end = memchr(text->data + at, '\n', text->length - at);
        if (end == NULL) break;
        const size_t bytes = (size_t)(end - text->data) - at;
        if (++number == 1) PLI_TRY(check_settings(tune, settings, text->data, bytes, err));
        else PLI_TRY(take_line(tune, text->data + at, bytes, number, err));
        *whole_out = at += bytes + 1;
    }
    if (number == 0 && text->length > 0 && strncmp(text->data, settings->data, text->length) != 0)
        return check_settings(tune, settings, text->data, text->length, err);
    if (number > 1) pli_talk_say(&tune->talk, "%s: %" PRId64 " outcomes are known already", tune->set.file, number - 1);
    return PLAIT_OK;
}

/* A file that nobody else writes. */
static plait_status open_alone(pli_tune *tune, plait_error *err) {
    const char *path = tune->set.file;
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return pli_fail(err, PLAIT_EINVAL, "%s (--trials-file): it is no file that could be read again; name a file",
                        path);
    tune->lines = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (tune->lines < 0) return pli_fail_errno(err, errno, "%s (--trials-file)", path);
    if (flock(tune->lines, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL, "%s (--trials-file): another plait tune writes it; wait for its end, or name "
                    "another file", path);
}

plait_status pli_tune_lines_open(pli_tune *tune, plait_error *err) {
    pli_text     text = { 0 }, settings = { 0 };
    size_t       whole = 0;
    uint64_t     data = 0;
    plait_status status = PLAIT_OK;
    const char  *path = tune->set.file;
    tune->lines = -1;
    if (path == NULL) return PLAIT_OK;
    PLI_TRY(open_alone(tune, err));
    PLI_TRY(hash_rows(tune, &data, err));
    add_settings(tune, data, &settings);
    status = pli_read_whole(path, FILE_MOST, &text, err);
    if (status >= 0) status = take_lines(tune, &settings, &text, &whole, err);
    if (status >= 0 && whole < text.length && ftruncate(tune->lines, (off_t)whole) != 0)
        status = pli_fail_errno(err, errno, "%s (--trials-file)", path);
    if (status >= 0 && whole == 0) status = append(tune, &settings, err);
    pli_text_free(&text);
    pli_text_free(&settings);
    return status;
}
