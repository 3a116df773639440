/* Writes manifest.json, in the only way that there is, and seals it with its last line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/checkpoint/manifest.h"
#include "base/json.h"

enum { HEX128 = 32 };

static const char before_checksum[] = "\"checksum\":\"", after_checksum[] = "\"}\n";
enum { CHECKSUM_LINE = sizeof before_checksum - 1 + HEX128 + sizeof after_checksum - 1 };

void pli_part_name(int32_t number, int32_t parts, char name[PLI_PART_NAME]) {
    snprintf(name, PLI_PART_NAME, "part-%05d-of-%05d.safetensors", number, parts);
}

static void put_hex(pli_text *text, const unsigned char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) pli_text_add(text, "%02x", bytes[i]);
}

/* Writes an object and frees it. Without memory it is NULL or incomplete. */
static void put_object(pli_text *text, json_t *object) {
    pli_json_value(text, NULL, object);
    json_decref(object);
}

static json_t *shape_of(const pli_checkpoint_tensor *tensor) {
    json_t *shape = json_array();
    for (int32_t i = 0; i < tensor->dims; i++)
        if (json_array_append_new(shape, json_integer(tensor->shape[i])) < 0) {
            json_decref(shape);
            return NULL;
        }
    return shape;
}

static void put_piece(pli_text *text, const pli_piece *piece) {
    const pli_checkpoint_tensor *tensor = &piece->tensor;
    char                         xxh3[17];
    snprintf(xxh3, sizeof xxh3, "%016llx", (unsigned long long)piece->xxh3);
    put_object(text, json_pack("{s:s, s:s, s:o, s:I, s:I, s:s}", "name", tensor->name, "dtype", tensor->type, "shape",
                               shape_of(tensor), "first", (json_int_t)tensor->first, "rows", (json_int_t)tensor->rows,
                               "xxh3", xxh3));
}

void pli_manifest_part_write(const pli_manifest_part *part, pli_text *text) {
    char     name[PLI_PART_NAME], xxh3[17];
    pli_text xxh128 = { 0 }, head = { 0 };
    pli_part_name(part->number, part->parts, name);
    put_hex(&xxh128, part->xxh128, sizeof part->xxh128);
    snprintf(xxh3, sizeof xxh3, "%016llx", (unsigned long long)part->header_xxh3);
    put_object(&head, json_pack("{s:s, s:I, s:s, s:I, s:s}", "file", name, "bytes", (json_int_t)part->bytes, "xxh128",
                                xxh128.data != NULL ? xxh128.data : "", "header_bytes", (json_int_t)part->header_bytes,
                                "header_xxh3", xxh3));
    text->failed = text->failed || head.failed || xxh128.failed;
    if (!text->failed) pli_text_add_bytes(text, head.data, head.length - 1); /* without its last brace */
    pli_text_add(text, ",\"tensors\":[");
    for (int64_t i = 0; i < part->n; i++) {
        pli_text_add(text, i > 0 ? ",\n" : "\n");
        put_piece(text, &part->piece[i]);
    }
    pli_text_add(text, "]}");
    pli_text_free(&xxh128);
    pli_text_free(&head);
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

void pli_manifest_checksum(const char *text, size_t bytes, char hex_out[PLI_MANIFEST_HEX]) {
    memcpy(hex_out, text + bytes - CHECKSUM_LINE + strlen(before_checksum), PLI_MANIFEST_HEX - 1);
    hex_out[PLI_MANIFEST_HEX - 1] = '\0';
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
