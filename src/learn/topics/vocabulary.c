/* The words of a vocabulary file (--vocabulary FILE): line i names the i-th word of data whose words are numbers, as
 * LDA-C and LIBSVM have them. What follows a blank or a tab in a line, such as a count, is left out. The file is read
 * twice: it is looked at before the training, so that a mistake does not cost one; and the model takes its names at the
 * end. */
#include <string.h>

#include "learn/model/model.h"
#include "learn/topics/topics.h"

static const char *path_of(const pli_run *run) { return plait_training_name(run, "vocabulary"); }

/* The next line's word, without what follows it; NULL: the text has ended. */
static const char *next_word(const pli_mapped *text, size_t *at, size_t *length_out) {
    if (*at >= text->bytes) return NULL;
    const char *line = (const char *)text->data + *at, *end = memchr(line, '\n', text->bytes - *at);
    const size_t n = end != NULL ? (size_t)(end - line) : text->bytes - *at;
    *at += n + 1;
    *length_out = 0;
    while (*length_out < n && strchr(" \t\r", line[*length_out]) == NULL) (*length_out)++;
    return line;
}

static plait_status check_lines(const pli_run *run, const pli_mapped *text) {
    const char *path = path_of(run), *word;
    size_t      at = 0, length;
    int64_t     lines = 0;
    while ((word = next_word(text, &at, &length)) != NULL) {
        lines++;
        if (length > 0 && pli_is_utf8(word, length) && memchr(word, '\0', length) == NULL) continue;
        return pli_fail(run->err, PLAIT_EFORMAT,
                        "%s: line %lld begins with no word: a vocabulary has a word a line, in the order of their "
                        "numbers", path, (long long)lines);
    }
    if (lines >= run->features) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EFORMAT, "%s has %lld words, but the data have words up to number %lld: take the "
                                             "vocabulary that the data were made with", path, (long long)lines,
                    (long long)run->features);
}

plait_status pli_lda_vocabulary_check(const pli_run *run) {
    pli_mapped text;
    if (path_of(run)[0] == '\0') return PLAIT_OK;
    if (!pli_schema_has_numbers(run->schema))
        return pli_fail(run->err, PLAIT_EREFUSED,
                        "--vocabulary is refused: the data have names for their words, or hash them; nearest is the "
                        "run without it");
    PLI_TRY(pli_map_file(path_of(run), &text, run->err));
    const plait_status status = check_lines(run, &text);
    pli_unmap_file(&text);
    return status;
}

/* Copies of the first n words. false: no memory, or the file has fewer. */
static bool copy_words(const pli_mapped *text, int64_t n, char **word) {
    size_t at = 0, length;
    for (int64_t i = 0; i < n; i++) {
        const char *from = next_word(text, &at, &length);
        word[i] = from != NULL ? pli_malloc(length + 1) : NULL;
        if (word[i] == NULL) return false;
        memcpy(word[i], from, length);
        word[i][length] = '\0';
    }
    return true;
}

plait_status pli_lda_vocabulary_put(const pli_run *run, plait_model *model) {
    pli_mapped text;
    if (path_of(run)[0] == '\0') return PLAIT_OK;
    PLI_TRY(pli_map_file(path_of(run), &text, run->err));
    char **word = pli_calloc((size_t)model->features, sizeof *word);
    const bool done = word != NULL && copy_words(&text, model->features, word) &&
                      pli_schema_name_all(model->schema, model->features, word);
    for (int64_t i = 0; word != NULL && !done && i < model->features; i++) pli_free(word[i]);
    pli_free(word);
    pli_unmap_file(&text);
    return done ? PLAIT_OK : pli_fail(run->err, PLAIT_ENOMEM, "no memory for the words of %s", path_of(run));
}
