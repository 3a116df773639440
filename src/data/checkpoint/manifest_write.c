/* manifest.json written down, in the one way that there is, and sealed by its last line. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/checkpoint/manifest.h"

enum { HEX128 = 32 };

static const char before_checksum[] = "\"checksum\":\"", after_checksum[] = "\"}\n";
enum { CHECKSUM_LINE = sizeof before_checksum - 1 + HEX128 + sizeof after_checksum - 1 };

void pli_part_name(int32_t number, int32_t parts, char name[PLI_PART_NAME]) {
    snprintf(name, PLI_PART_NAME, "part-%05d-of-%05d.safetensors", number, parts);
}

static void put_hex(pli_text *text, const unsigned char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) pli_text_add(text, "%02x", bytes[i]);
}

/* As jansson writes it: the only ones that need an escape are quotes, backslashes and control characters. */
static void put_string(pli_text *text, const char *value) {
    json_t *string = json_string(value);
    char   *dump = string != NULL ? json_dumps(string, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    if (dump != NULL)
        pli_text_add(text, "%s", dump);
    else
        text->failed = true;
    free(dump);
    json_decref(string);
}

static void put_piece(pli_text *text, const pli_piece *piece) {
    const pli_checkpoint_tensor *tensor = &piece->tensor;
    pli_text_add(text, "{\"name\":");
    put_string(text, tensor->name);
    pli_text_add(text, ",\"dtype\":\"%s\",\"shape\":[", tensor->type);
    for (int32_t i = 0; i < tensor->dims; i++)
        pli_text_add(text, "%s%lld", i > 0 ? "," : "", (long long)tensor->shape[i]);
    pli_text_add(text, "],\"first\":%lld,\"rows\":%lld,\"xxh3\":\"%016llx\"}", (long long)tensor->first,
                 (long long)tensor->rows, (unsigned long long)piece->xxh3);
}

void pli_manifest_part_write(const pli_manifest_part *part, pli_text *text) {
    char name[PLI_PART_NAME];
    pli_part_name(part->number, part->parts, name);
    pli_text_add(text, "{\"file\":\"%s\",\"bytes\":%lld,\"xxh128\":\"", name, (long long)part->bytes);
    put_hex(text, part->xxh128, sizeof part->xxh128);
    pli_text_add(text, "\",\"header_bytes\":%lld,\"header_xxh3\":\"%016llx\",\"tensors\":[",
                 (long long)part->header_bytes, (unsigned long long)part->header_xxh3);
    for (int64_t i = 0; i < part->n; i++) {
        pli_text_add(text, i > 0 ? ",\n" : "\n");
        put_piece(text, &part->piece[i]);
    }
    pli_text_add(text, "]}");
}

static void put_body(const pli_manifest *manifest, pli_text *text) {
    pli_text_add(text, "{\"plait_checkpoint\":%d,\n\"serial\":%lld,\n\"clock\":%lld,\n\"meta\":", PLI_MANIFEST_VERSION,
                 (long long)manifest->serial, (long long)manifest->clock);
    pli_text_add_bytes(text, manifest->meta, strlen(manifest->meta));
    pli_text_add(text, ",\n\"parts\":[");
    for (int32_t i = 0; i < manifest->parts; i++) {
        pli_text_add(text, i > 0 ? ",\n" : "\n");
        pli_manifest_part_write(&manifest->part[i], text);
    }
    pli_text_add(text, "],\n");
}

plait_status pli_manifest_write(const pli_manifest *manifest, pli_text *text, plait_error *err) {
    unsigned char checksum[HEX128 / 2];
    size_t        from = text->length;
    put_body(manifest, text);
    if (!text->failed) {
        pli_hash128(text->data + from, text->length - from, checksum);
        pli_text_add(text, "%s", before_checksum);
        put_hex(text, checksum, sizeof checksum);
        pli_text_add(text, "%s", after_checksum);
    }
    if (text->failed) return pli_fail(err, PLAIT_ENOMEM, "no memory for the manifest");
    if (text->length - from > PLI_MANIFEST_MAX_BYTES)
        return pli_fail(err, PLAIT_EINVAL, "a manifest of more than %d bytes: too many tensors or too large a meta",
                        PLI_MANIFEST_MAX_BYTES);
    return PLAIT_OK;
}

bool pli_manifest_is_sealed(const char *text, size_t bytes) {
    unsigned char checksum[HEX128 / 2];
    pli_text      line = { 0 };
    if (bytes < CHECKSUM_LINE) return false;
    pli_hash128(text, bytes - CHECKSUM_LINE, checksum);
    pli_text_add(&line, "%s", before_checksum);
    put_hex(&line, checksum, sizeof checksum);
    pli_text_add(&line, "%s", after_checksum);
    bool fits = !line.failed && memcmp(line.data, text + bytes - CHECKSUM_LINE, CHECKSUM_LINE) == 0;
    pli_text_free(&line);
    return fits;
}
