/* Bytes that come without a known end, from a pipe or a packed file. They are checked while they come, so that bytes
 * which are no text end it at once, and not only when the disk is full. */
#include <string.h>

#include "data/formats/foreign.h"
#include "data/formats/idx.h"
#include "data/formats/npy.h"

enum { SAMPLE_BYTES = 1 << 16 };

static plait_status found_nul(const char *name, int64_t line, size_t at, plait_error *err) {
    return pli_fail(
        err, PLAIT_EFORMAT,
        "%s:%lld: byte %zu of the line is NUL, which no text has: it is binary data, or a part that was never written",
        name,
        (long long)line, at);
}

static int64_t newlines(const unsigned char *data, size_t bytes) {
    int64_t n = 0;
    for (const unsigned char *p = data, *end = data + bytes; (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++) n++;
    return n;
}

/* data [bytes] are the next bytes, and have a NUL at `at`. The spool is ended to count the lines before it. */
static plait_status refuse(pli_intake *in, const unsigned char *data, const unsigned char *at, plait_error *err) {
    const unsigned char *before;
    size_t               n;
    PLI_TRY(pli_spool_end(in->spool, &before, &n, err));
    return found_nul(in->name, 1 + newlines(before, n) + newlines(data, (size_t)(at - data)), n + (size_t)(at - data),
                     err);
}

/* Is it an array, whose bytes are no text? */
static bool is_array(const unsigned char *data, size_t bytes) {
    return pli_idx_is(data, bytes) || pli_npy_is(data, bytes);
}

static plait_status judge(pli_intake *in, plait_error *err) {
    in->judged = true;
    in->binary = pli_is_packed(in->head, PLI_INTAKE_HEAD) || is_array(in->head, PLI_INTAKE_HEAD);
    PLI_TRY(pli_foreign_check(in->name, in->head, PLI_INTAKE_HEAD, err));
    const unsigned char *nul = in->binary ? NULL : memchr(in->head, 0, PLI_INTAKE_HEAD);
    return nul == NULL
               ? PLAIT_OK
               : found_nul(in->name, 1 + newlines(in->head, (size_t)(nul - in->head)), (size_t)(nul - in->head), err);
}

plait_status pli_intake_add(pli_intake *in, const unsigned char *data, size_t bytes, plait_error *err) {
    const size_t room = PLI_INTAKE_HEAD - in->held, n = bytes < room ? bytes : room;
    if (bytes == 0) return PLAIT_OK;
    memcpy(in->head + in->held, data, n);
    in->held += n;
    if (!in->judged && in->held == PLI_INTAKE_HEAD) PLI_TRY(judge(in, err));
    const unsigned char *nul = in->judged && !in->binary ? memchr(data, 0, bytes) : NULL;
    return nul != NULL ? refuse(in, data, nul, err) : pli_spool_add(in->spool, data, bytes, err);
}

plait_status pli_source_check_text(const char *name, const unsigned char *data, size_t bytes, plait_error *err) {
    const size_t         sample = bytes < SAMPLE_BYTES ? bytes : SAMPLE_BYTES;
    const unsigned char *nul = is_array(data, bytes) ? NULL : memchr(data, 0, sample);
    return nul == NULL ? PLAIT_OK
                       : found_nul(name, 1 + newlines(data, (size_t)(nul - data)), (size_t)(nul - data), err);
}

plait_status pli_source_found_nul(const pli_source *source, size_t at, plait_error *err) {
    return found_nul(source->path, pli_source_line(source, at), at, err);
}

/* Searches backwards for the last newline of each piece of PLI_LINE_BYTES_MAX bytes: this touches one page of each
 * piece, not the whole file. */
plait_status pli_source_check_lines(const pli_source *source, plait_error *err) {
    for (size_t at = source->begin; source->bytes - at > PLI_LINE_BYTES_MAX;) {
        const unsigned char *from = source->data + at, *newline = memrchr(from, '\n', PLI_LINE_BYTES_MAX);
        if (newline == NULL)
            return pli_fail(
                err, PLAIT_EFORMAT,
                "%s:%lld: a line is longer than %d MiB, the limit for a row (text by characters: --format text)",
                source->path, (long long)pli_source_line(source, at), PLI_LINE_BYTES_MAX >> 20);
        at = (size_t)(newline + 1 - source->data);
    }
    return PLAIT_OK;
}
