/* Feeds any bytes as a checkpoint's manifest, as they are and with the right last line: an error, or a manifest that
 * is written again unchanged and whose tensors have each row once. The same bytes are also fed as digests that a
 * lead joins. */
#include <stdlib.h>
#include <string.h>

#include "data/checkpoint/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const pli_manifest *manifest) {
    for (int64_t i = 0; i < manifest->tensors; i++) {
        int64_t rows = 0;
        for (int64_t k = manifest->first_piece[i]; k < manifest->first_piece[i + 1]; k++) {
            const pli_piece *piece = manifest->piece[k];
            if (piece->tensor.shape[0] > 0 && piece->tensor.first != rows) abort();
            if (piece->offset < 0 || piece->bytes > manifest->part[piece->part].bytes - piece->offset) abort();
            rows += piece->tensor.shape[0];
        }
        if (rows != manifest->tensor[i].rows) abort();
    }
}

static void look(const char *text, size_t bytes) {
    pli_manifest *manifest = NULL;
    pli_text      again = { 0 };
    plait_error   err;
    if (pli_manifest_read(text, bytes, &manifest, &err) != PLAIT_OK) return;
    walk(manifest);
    if (pli_manifest_write(manifest, &again, &err) != PLAIT_OK || again.length != bytes ||
        memcmp(again.data, text, bytes) != 0)
        abort();
    pli_text_free(&again);
    pli_manifest_free(&manifest);
}

/* The input up to its last line, with a last line that fits. */
static void look_sealed(const char *text, size_t bytes) {
    static const char begin[] = "\"checksum\":\"";
    const char       *line = memmem(text, bytes, begin, sizeof begin - 1);
    size_t            length = line != NULL ? (size_t)(line - text) : bytes;
    unsigned char     hash[16];
    pli_text          sealed = { 0 };
    pli_hash128(text, length, hash);
    pli_text_add_bytes(&sealed, text, length);
    pli_text_add(&sealed, "%s", begin);
    for (size_t i = 0; i < sizeof hash; i++) pli_text_add(&sealed, "%02x", hash[i]);
    pli_text_add(&sealed, "\"}\n");
    if (!sealed.failed) look(sealed.data, sealed.length);
    pli_text_free(&sealed);
}

/* The two halves as the digests of two parts, or the whole as that of one. */
static void join(const char *text, size_t bytes) {
    const char   *cut = memchr(text, '\f', bytes);
    size_t        first = cut != NULL ? (size_t)(cut - text) : bytes;
    pli_text      one = { 0 }, other = { 0 };
    pli_manifest *manifest = NULL;
    plait_error   err;
    pli_text_add_bytes(&one, text, first);
    if (cut != NULL) pli_text_add_bytes(&other, cut + 1, bytes - first - 1);
    const char *const digests[] = { one.data != NULL ? one.data : "", other.data != NULL ? other.data : "" };
    if (pli_manifest_join(1, 0, NULL, digests, cut != NULL ? 2 : 1, &manifest, &err) == PLAIT_OK) walk(manifest);
    pli_manifest_free(&manifest);
    pli_text_free(&one);
    pli_text_free(&other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    look((const char *)data, size);
    look_sealed((const char *)data, size);
    join((const char *)data, size);
    return 0;
}
