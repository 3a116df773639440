/* manifest.json: read with suspicion, and joined from digests.
 *
 * Nothing in it is believed. Names of files are not taken from it but compared with what they must be, so no path
 * can escape; sizes are computed from shapes with checked products and compared; and the pieces of a tensor must
 * cover its rows once. */
#include "data/checkpoint/manifest.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

enum { HEX64 = 16 };

/* --- reading one part's line ------------------------------------------------------------------------------ */

static bool whole_number(const json_t *object, const char *key, int64_t *out) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value)) return false;
    *out = (int64_t)json_integer_value(value);
    return true;
}

static bool hex_bytes(const json_t *object, const char *key, unsigned char *bytes, size_t n) {
    const char *text = json_string_value(json_object_get(object, key));
    if (text == NULL || strlen(text) != 2 * n || strspn(text, "0123456789abcdef") != 2 * n) return false;
    for (size_t i = 0; i < n; i++) {
        char digits[3] = { text[2 * i], text[2 * i + 1], '\0' };
        bytes[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    return true;
}

static bool hex_u64(const json_t *object, const char *key, uint64_t *out) {
    unsigned char bytes[HEX64 / 2];
    uint64_t      value = 0;
    if (!hex_bytes(object, key, bytes, sizeof bytes)) return false;
    for (size_t i = 0; i < sizeof bytes; i++) value = value << 8 | bytes[i];
    *out = value;
    return true;
}

/* name and type are borrowed from the JSON. */
static bool read_tensor(const json_t *object, pli_checkpoint_tensor *tensor) {
    const json_t *shape = json_object_get(object, "shape");
    tensor->name = json_string_value(json_object_get(object, "name"));
    tensor->type = json_string_value(json_object_get(object, "dtype"));
    if (tensor->name == NULL || tensor->type == NULL || !json_is_array(shape) ||
        json_array_size(shape) > PLI_CHECKPOINT_DIMS || !whole_number(object, "first", &tensor->first) ||
        !whole_number(object, "rows", &tensor->rows))
        return false;
    tensor->dims = (int32_t)json_array_size(shape);
    for (size_t i = 0; i < json_array_size(shape); i++) {
        if (!json_is_integer(json_array_get(shape, i))) return false;
        tensor->shape[i] = (int64_t)json_integer_value(json_array_get(shape, i));
    }
    return true;
}

/* Copies all that it needs from the JSON. */
static plait_status read_piece(const json_t *object, pli_piece *piece, plait_error *err) {
    pli_checkpoint_tensor tensor = { 0 };
    if (!read_tensor(object, &tensor) || !hex_u64(object, "xxh3", &piece->xxh3))
        return pli_fail(err, PLAIT_EFORMAT, "tensor %.80s: expected name, dtype, shape, first, rows and xxh3",
                        tensor.name != NULL ? tensor.name : "?");
    PLI_TRY(pli_piece_check(&tensor, PLAIT_EFORMAT, err));
    return pli_piece_copy(&tensor, piece) ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for the manifest");
}

static plait_status read_pieces(const json_t *tensors, pli_manifest_part *part, plait_error *err) {
    int64_t at = part->header_bytes;
    part->piece = pli_calloc(json_array_size(tensors), sizeof *part->piece);
    if (part->piece == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the manifest");
    for (size_t i = 0; i < json_array_size(tensors); i++) {
        pli_piece *piece = &part->piece[part->n++];
        PLI_TRY(read_piece(json_array_get(tensors, i), piece, err));
        piece->part = part->number;
        piece->offset = at;
        if (__builtin_add_overflow(at, piece->bytes, &at))
            return pli_fail(err, PLAIT_EFORMAT, "tensor %s: more bytes than a file can have", piece->tensor.name);
    }
    return at == part->bytes
               ? PLAIT_OK
               : pli_fail(err, PLAIT_EFORMAT, "its tensors have %lld bytes with the header, the file %lld",
                          (long long)at, (long long)part->bytes);
}

static plait_status read_part_fields(const json_t *object, pli_manifest_part *part, plait_error *err) {
    const json_t *tensors = json_object_get(object, "tensors");
    if (!whole_number(object, "bytes", &part->bytes) || !whole_number(object, "header_bytes", &part->header_bytes) ||
        !hex_bytes(object, "xxh128", part->xxh128, sizeof part->xxh128) ||
        !hex_u64(object, "header_xxh3", &part->header_xxh3) || !json_is_array(tensors) || part->header_bytes < 0)
        return pli_fail(err, PLAIT_EFORMAT, "expected file, bytes, xxh128, header_bytes, header_xxh3 and tensors");
    return read_pieces(tensors, part, err);
}

/* number and parts are set before: they decide the name of the file. */
static plait_status read_part(const json_t *object, pli_manifest_part *part, plait_error *err) {
    const char *file = json_string_value(json_object_get(object, "file"));
    char        name[PLI_PART_NAME];
    pli_part_name(part->number, part->parts, name);
    if (file == NULL || strcmp(file, name) != 0)
        return pli_fail(err, PLAIT_EFORMAT, "a part is called %s and nothing else; found '%.80s'", name,
                        file != NULL ? file : "");
    plait_status status = read_part_fields(object, part, err);
    if (status < 0) (void)pli_fail_at(err, "%s", name);
    return status;
}

/* --- the whole manifest ----------------------------------------------------------------------------------- */

static plait_status set_meta(pli_manifest *manifest, const json_t *meta, plait_error *err) {
    pli_text text = { 0 };
    pli_json_value(&text, NULL, meta);
    if (text.failed) {
        pli_text_free(&text);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for the manifest");
    }
    manifest->meta = text.data;
    return PLAIT_OK;
}

static plait_status read_parts(const json_t *parts, pli_manifest *manifest, plait_error *err) {
    size_t n = json_array_size(parts);
    if (n < 1 || n > PLI_CHECKPOINT_PARTS)
        return pli_fail(err, PLAIT_EFORMAT, "expected parts, 1 to %d of them", PLI_CHECKPOINT_PARTS);
    manifest->part = pli_calloc(n, sizeof *manifest->part);
    if (manifest->part == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the manifest");
    for (size_t i = 0; i < n; i++) {
        pli_manifest_part *part = &manifest->part[manifest->parts];
        *part = (pli_manifest_part){ .number = manifest->parts++, .parts = (int32_t)n };
        PLI_TRY(read_part(json_array_get(parts, i), part, err));
        for (int64_t k = 0; k < part->n; k++)
            if (part->piece[k].tensor.first < 0)
                return pli_fail(err, PLAIT_EFORMAT, "tensor %s: has no place", part->piece[k].tensor.name);
    }
    return PLAIT_OK;
}

static plait_status read_root(const json_t *root, pli_manifest *manifest, plait_error *err) {
    const json_t *meta = json_object_get(root, "meta");
    if (!whole_number(root, "serial", &manifest->serial) || !whole_number(root, "clock", &manifest->clock) ||
        manifest->serial < 1 || manifest->clock < 0 || !json_is_object(meta))
        return pli_fail(err, PLAIT_EFORMAT, "expected serial, clock, meta and parts");
    PLI_TRY(set_meta(manifest, meta, err));
    PLI_TRY(read_parts(json_object_get(root, "parts"), manifest, err));
    return pli_manifest_find_tensors(manifest, PLAIT_EFORMAT, err);
}

/* Is the text exactly what these contents are written as? */
static plait_status check_canonical(const pli_manifest *manifest, const char *text, size_t bytes, plait_error *err) {
    pli_text     again = { 0 };
    plait_status status = pli_manifest_write(manifest, &again, err);
    if (status == PLAIT_OK && (again.length != bytes || memcmp(again.data, text, bytes) != 0))
        status = pli_fail(err, PLAIT_EFORMAT, "not written in the way that plait writes a manifest");
    pli_text_free(&again);
    return status;
}

static plait_status check_version(const char *text, size_t bytes, plait_error *err) {
    static const char before[] = "{\"plait_checkpoint\":";
    const size_t      at = sizeof before - 1;
    int64_t           version = 0;
    char              digits[20] = "";
    if (bytes < at + 2 || memcmp(text, before, at) != 0)
        return pli_fail(err, PLAIT_EFORMAT, "no checkpoint's manifest");
    for (size_t i = 0; i + 1 < sizeof digits && at + i < bytes && text[at + i] != ','; i++) digits[i] = text[at + i];
    if (!pli_parse_i64(digits, &version) || version < 1)
        return pli_fail(err, PLAIT_EFORMAT, "no version in its first line");
    if (version > PLI_MANIFEST_VERSION)
        return pli_fail(err, PLAIT_EVERSION,
                        "written by a newer plait (manifest version %lld; this one reads up to %d)", (long long)version,
                        PLI_MANIFEST_VERSION);
    return PLAIT_OK;
}

static plait_status parse(const char *text, size_t bytes, pli_manifest *manifest, plait_error *err) {
    pli_json_where where;
    json_t      *root = pli_json_read(text, bytes, &where);
    if (root == NULL) return pli_fail(err, PLAIT_EFORMAT, "no JSON: %s", where.text);
    plait_status status = read_root(root, manifest, err);
    json_decref(root);
    return status == PLAIT_OK ? check_canonical(manifest, text, bytes, err) : status;
}

plait_status pli_manifest_read(const char *text, size_t bytes, pli_manifest **manifest_out, plait_error *err) {
    if (!pli_manifest_is_sealed(text, bytes))
        return pli_fail(err, PLAIT_ECHECKSUM, "altered or cut short: its last line does not match the rest");
    PLI_TRY(check_version(text, bytes, err));
    pli_manifest *manifest = pli_calloc(1, sizeof *manifest);
    if (manifest == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the manifest");
    plait_status status = parse(text, bytes, manifest, err);
    if (status == PLAIT_OK)
        *manifest_out = manifest;
    else
        pli_manifest_free(&manifest);
    return status;
}

/* --- joining digests -------------------------------------------------------------------------------------- */

/* The number of the part that the digest is of. -1: none of `parts`. */
static int32_t number_of(const json_t *digest, int32_t parts) {
    const char *file = json_string_value(json_object_get(digest, "file"));
    int64_t     number = -1;
    char        digits[6] = "", name[PLI_PART_NAME];
    if (file == NULL || strlen(file) < 11) return -1;
    memcpy(digits, file + 5, 5);
    if (!pli_parse_i64(digits, &number) || number < 0 || number >= parts) return -1;
    pli_part_name((int32_t)number, parts, name);
    return strcmp(file, name) == 0 ? (int32_t)number : -1;
}

static plait_status join_digest(const char *text, pli_manifest *manifest, plait_error *err) {
    json_t      *digest = pli_json_read(text, strlen(text), NULL);
    int32_t      number = number_of(digest, manifest->parts);
    plait_status status;
    if (number < 0)
        status = pli_fail(err, PLAIT_EINVAL, "the digest of none of %d parts: %.80s", manifest->parts, text);
    else if (manifest->part[number].parts > 0)
        status = pli_fail(err, PLAIT_EINVAL, "part %d is there twice", number);
    else {
        manifest->part[number] = (pli_manifest_part){ .number = number, .parts = manifest->parts };
        status = read_part(digest, &manifest->part[number], err);
    }
    json_decref(digest);
    return status;
}

struct loose {
    const char *name; /* borrowed */
    int64_t     rows; /* so far */
};

/* Finds or adds a name. There are few names and many pieces, so a list is searched from its end. NULL: out of
 * memory. */
static struct loose *loose_of(struct loose **list, int64_t *n, int64_t *capacity, const char *name) {
    for (int64_t i = *n - 1; i >= 0; i--)
        if (strcmp((*list)[i].name, name) == 0) return &(*list)[i];
    if (!pli_grow((void **)list, capacity, *n + 1, sizeof **list)) return NULL;
    (*list)[*n] = (struct loose){ .name = name };
    return &(*list)[(*n)++];
}

/* Lays loose pieces one behind the other (round 0), then sets how many rows there are in all (round 1). */
static plait_status place_loose(pli_manifest *manifest, plait_error *err) {
    struct loose *list = NULL;
    int64_t       n = 0, capacity = 0;
    plait_status  status = PLAIT_OK;
    for (int round = 0; round < 2; round++)
        for (int32_t p = 0; p < manifest->parts; p++)
            for (int64_t i = 0; status == PLAIT_OK && i < manifest->part[p].n; i++) {
                pli_checkpoint_tensor *tensor = &manifest->part[p].piece[i].tensor;
                if (tensor->first != PLI_CHECKPOINT_LOOSE && !(round == 1 && tensor->rows == PLI_CHECKPOINT_LOOSE))
                    continue;
                struct loose *loose = loose_of(&list, &n, &capacity, tensor->name);
                if (loose == NULL) {
                    status = pli_fail(err, PLAIT_ENOMEM, "no memory for the manifest");
                } else if (round == 1) {
                    tensor->rows = loose->rows;
                } else {
                    tensor->first = loose->rows;
                    tensor->rows = PLI_CHECKPOINT_LOOSE;
                    if (__builtin_add_overflow(loose->rows, tensor->shape[0], &loose->rows))
                        status = pli_fail(err, PLAIT_EINVAL, "tensor %s: too many rows", tensor->name);
                }
            }
    pli_free(list);
    return status;
}

/* The manifest must be readable, so it is checked by reading it. */
static plait_status join(pli_manifest *manifest, const char *meta, const char *const *digests, plait_error *err) {
    pli_json_where where;
    const char  *text = meta != NULL ? meta : "{}";
    json_t      *object = pli_json_read(text, strlen(text), &where);
    plait_status status = json_is_object(object)
                              ? set_meta(manifest, object, err)
                              : pli_fail(err, PLAIT_EINVAL, "meta: expected a JSON object; %s", where.text);
    json_decref(object);
    PLI_TRY(status);
    for (int32_t i = 0; i < manifest->parts; i++) PLI_TRY(join_digest(digests[i], manifest, err));
    PLI_TRY(place_loose(manifest, err));
    return pli_manifest_find_tensors(manifest, PLAIT_EINVAL, err);
}

plait_status pli_manifest_join(int64_t serial, int64_t clock, const char *meta, const char *const *digests, int32_t n,
                               pli_manifest **manifest_out, plait_error *err) {
    if (n < 1 || n > PLI_CHECKPOINT_PARTS)
        return pli_fail(err, PLAIT_EINVAL, "%d parts; expected 1 to %d", n, PLI_CHECKPOINT_PARTS);
    pli_manifest *manifest = pli_calloc(1, sizeof *manifest);
    if (manifest == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the manifest");
    *manifest = (pli_manifest){ .serial = serial, .clock = clock, .parts = n };
    manifest->part = pli_calloc((size_t)n, sizeof *manifest->part);
    plait_status status = manifest->part != NULL ? join(manifest, meta, digests, err)
                                                 : pli_fail(err, PLAIT_ENOMEM, "no memory for the manifest");
    if (status == PLAIT_OK)
        *manifest_out = manifest;
    else
        pli_manifest_free(&manifest);
    return status;
}

void pli_manifest_free(pli_manifest **manifest) {
    if (manifest == NULL || *manifest == NULL) return;
    for (int32_t i = 0; (*manifest)->part != NULL && i < (*manifest)->parts; i++)
        pli_manifest_part_free(&(*manifest)->part[i]);
    pli_free((*manifest)->part);
    pli_free((*manifest)->tensor);
    pli_free((*manifest)->first_piece);
    pli_free((void *)(*manifest)->piece);
    pli_free((*manifest)->meta);
    pli_free(*manifest);
    *manifest = NULL;
}
