/* manifest.json: read with suspicion, joined from digests, written in the one way that there is.
 *
 * Nothing in it is believed. Names of files are not taken from it but compared with what they must be, so there is no
 * path to escape by; sizes are computed from shapes with checked products and compared; and the pieces of a tensor must
 * cover its rows once. */
#include "data/manifest.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/data.h"

enum { HEX64 = 16, HEX128 = 32 };

static const char before_checksum[] = "\"checksum\":\"", after_checksum[] = "\"}\n";
enum { CHECKSUM_LINE = sizeof before_checksum - 1 + HEX128 + sizeof after_checksum - 1 };

void pli_part_name(int32_t number, int32_t parts, char name[PLI_PART_NAME]) {
    snprintf(name, PLI_PART_NAME, "part-%05d-of-%05d.safetensors", number, parts);
}

/* --- a piece by itself ------------------------------------------------------------------------------------ */

int64_t pli_checkpoint_row_bytes(const pli_checkpoint_tensor *tensor) {
    int64_t bytes = (int64_t)pli_safetensors_type_bytes(tensor->type);
    if (bytes == 0 || tensor->dims < 1 || tensor->dims > PLI_CHECKPOINT_DIMS) return -1;
    for (int32_t i = 1; i < tensor->dims; i++)
        if (tensor->shape[i] < 0 || __builtin_mul_overflow(bytes, tensor->shape[i], &bytes)) return -1;
    return bytes;
}

static bool good_name(const char *name) {
    size_t  length = name != NULL ? strlen(name) : 0;
    json_t *utf8 = length > 0 && length <= PLI_CHECKPOINT_NAME ? json_string(name) : NULL;
    bool    good = utf8 != NULL;
    json_decref(utf8);
    for (size_t i = 0; good && i < length; i++) good = (unsigned char)name[i] >= ' ' && name[i] != 0x7f;
    return good;
}

plait_status pli_piece_check(const pli_checkpoint_tensor *tensor, plait_status code, plait_error *err) {
    int64_t bytes, end;
    if (!good_name(tensor->name))
        return pli_fail(err, code, "a tensor's name: expected 1 to %d bytes of UTF-8 without control characters",
                        PLI_CHECKPOINT_NAME);
    if (pli_safetensors_type_bytes(tensor->type) == 0)
        return pli_fail(err, code,
                        "tensor %s: unknown type '%s'; known are F64, F32, F16, BF16, I64 to I8, U64 to U8 "
                        "and BOOL",
                        tensor->name, tensor->type != NULL ? tensor->type : "");
    if (tensor->dims < 1 || tensor->dims > PLI_CHECKPOINT_DIMS)
        return pli_fail(err, code, "tensor %s: expected 1 to %d dimensions", tensor->name, PLI_CHECKPOINT_DIMS);
    int64_t row_bytes = pli_checkpoint_row_bytes(tensor);
    if (row_bytes < 0 || tensor->shape[0] < 0 || __builtin_mul_overflow(row_bytes, tensor->shape[0], &bytes))
        return pli_fail(err, code, "tensor %s: a shape with a negative length, or of too many bytes", tensor->name);
    if (tensor->first == PLI_CHECKPOINT_LOOSE) return PLAIT_OK;
    if (tensor->first < 0 || __builtin_add_overflow(tensor->first, tensor->shape[0], &end) || end > tensor->rows ||
        __builtin_mul_overflow(row_bytes, tensor->rows, &bytes))
        return pli_fail(err, code, "tensor %s: %lld rows from row %lld on do not lie among %lld", tensor->name,
                        (long long)tensor->shape[0], (long long)tensor->first, (long long)tensor->rows);
    return PLAIT_OK;
}

bool pli_piece_copy(const pli_checkpoint_tensor *tensor, pli_piece *piece) {
    piece->bytes = pli_checkpoint_row_bytes(tensor) * tensor->shape[0];
    piece->tensor = *tensor;
    piece->tensor.name = pli_strdup(tensor->name);
    piece->tensor.type = pli_strdup(tensor->type);
    return piece->tensor.name != NULL && piece->tensor.type != NULL;
}

void pli_manifest_part_free(pli_manifest_part *part) {
    for (int64_t i = 0; part->piece != NULL && i < part->n; i++) {
        pli_free((void *)(uintptr_t)part->piece[i].tensor.name);
        pli_free((void *)(uintptr_t)part->piece[i].tensor.type);
    }
    pli_free(part->piece);
}

/* --- writing ---------------------------------------------------------------------------------------------- */

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

/* The JSON is not kept. */
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

/* number and parts are set before: they tell what the file must be called. */
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

/* --- tensors of pieces ------------------------------------------------------------------------------------ */

/* By name, then by place; of pieces at one row those without rows come first. */
static int by_place(const void *a, const void *b) {
    const pli_piece *x = *(const pli_piece *const *)a, *y = *(const pli_piece *const *)b;
    int              names = strcmp(x->tensor.name, y->tensor.name);
    if (names != 0) return names;
    if (x->tensor.first != y->tensor.first) return x->tensor.first < y->tensor.first ? -1 : 1;
    if (x->tensor.shape[0] != y->tensor.shape[0]) return x->tensor.shape[0] < y->tensor.shape[0] ? -1 : 1;
    if (x->part != y->part) return x->part < y->part ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static bool same_kind(const pli_checkpoint_tensor *a, const pli_checkpoint_tensor *b) {
    bool same = strcmp(a->type, b->type) == 0 && a->dims == b->dims && a->rows == b->rows;
    for (int32_t i = 1; same && i < a->dims; i++) same = a->shape[i] == b->shape[i];
    return same;
}

/* The pieces [n] of one name cover rows 0 .. rows - 1 once. */
static plait_status check_rows(const pli_piece *const *piece, int64_t n, plait_status code, plait_error *err) {
    const pli_checkpoint_tensor *first = &piece[0]->tensor;
    int64_t                      at = 0;
    for (int64_t i = 0; i < n; i++) {
        const pli_checkpoint_tensor *tensor = &piece[i]->tensor;
        if (!same_kind(tensor, first))
            return pli_fail(err, code, "tensor %s: its pieces disagree on type, shape or rows (parts %d and %d)",
                            first->name, piece[0]->part, piece[i]->part);
        if (tensor->shape[0] == 0) continue;
        if (tensor->first > at)
            return pli_fail(err, code, "tensor %s: rows %lld to %lld are missing", first->name, (long long)at,
                            (long long)tensor->first - 1);
        if (tensor->first < at)
            return pli_fail(err, code, "tensor %s: rows from %lld on are there twice (part %d)", first->name,
                            (long long)tensor->first, piece[i]->part);
        at += tensor->shape[0];
    }
    if (at < first->rows)
        return pli_fail(err, code, "tensor %s: rows %lld to %lld are missing", first->name, (long long)at,
                        (long long)first->rows - 1);
    return PLAIT_OK;
}

static plait_status gather_pieces(pli_manifest *manifest, int64_t *n_out, plait_error *err) {
    int64_t n = 0;
    for (int32_t p = 0; p < manifest->parts; p++) n += manifest->part[p].n;
    manifest->piece = pli_array((size_t)n, sizeof *manifest->piece);
    manifest->tensor = pli_calloc((size_t)n, sizeof *manifest->tensor);
    manifest->first_piece = pli_calloc((size_t)n + 1, sizeof *manifest->first_piece);
    if (manifest->piece == NULL || manifest->tensor == NULL || manifest->first_piece == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for the manifest");
    *n_out = n, n = 0;
    for (int32_t p = 0; p < manifest->parts; p++)
        for (int64_t i = 0; i < manifest->part[p].n; i++) manifest->piece[n++] = &manifest->part[p].piece[i];
    return PLAIT_OK;
}

static plait_status find_tensors(pli_manifest *manifest, plait_status code, plait_error *err) {
    int64_t n = 0;
    PLI_TRY(gather_pieces(manifest, &n, err));
    if (n > 0) qsort(manifest->piece, (size_t)n, sizeof *manifest->piece, by_place);
    for (int64_t from = 0, to; from < n; from = to) {
        const char *name = manifest->piece[from]->tensor.name;
        for (to = from + 1; to < n && strcmp(manifest->piece[to]->tensor.name, name) == 0;) to++;
        PLI_TRY(check_rows(manifest->piece + from, to - from, code, err));
        pli_checkpoint_tensor *tensor = &manifest->tensor[manifest->tensors];
        *tensor = manifest->piece[from]->tensor;
        tensor->shape[0] = tensor->rows;
        tensor->first = 0;
        manifest->first_piece[manifest->tensors++] = from;
        manifest->first_piece[manifest->tensors] = to;
    }
    return PLAIT_OK;
}

/* --- the whole -------------------------------------------------------------------------------------------- */

static plait_status set_meta(pli_manifest *manifest, const json_t *meta, plait_error *err) {
    char *dump = json_dumps(meta, JSON_COMPACT);
    manifest->meta = dump != NULL ? pli_strdup(dump) : NULL;
    free(dump);
    return manifest->meta != NULL ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for the manifest");
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
    return find_tensors(manifest, PLAIT_EFORMAT, err);
}

/* Is it the text that these contents have? */
static plait_status check_canonical(const pli_manifest *manifest, const char *text, size_t bytes, plait_error *err) {
    pli_text     again = { 0 };
    plait_status status = pli_manifest_write(manifest, &again, err);
    if (status == PLAIT_OK && (again.length != bytes || memcmp(again.data, text, bytes) != 0))
        status = pli_fail(err, PLAIT_EFORMAT, "not written as plait writes a manifest");
    pli_text_free(&again);
    return status;
}

/* The last line fits all before it. */
static bool checksum_fits(const char *text, size_t bytes) {
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
    json_error_t where;
    json_t      *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &where);
    if (root == NULL) return pli_fail(err, PLAIT_EFORMAT, "no JSON: %s", where.text);
    plait_status status = read_root(root, manifest, err);
    json_decref(root);
    return status == PLAIT_OK ? check_canonical(manifest, text, bytes, err) : status;
}

plait_status pli_manifest_read(const char *text, size_t bytes, pli_manifest **manifest_out, plait_error *err) {
    if (!checksum_fits(text, bytes))
        return pli_fail(err, PLAIT_ECHECKSUM, "altered or cut short: its last line does not fit the rest");
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

/* Which part is it? -1: none of `parts`. */
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
    json_error_t where;
    json_t      *digest = json_loads(text, JSON_REJECT_DUPLICATES, &where);
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

/* Few names, many pieces: a list that is searched from its end. NULL: out of memory. */
static struct loose *loose_of(struct loose **list, int64_t *n, int64_t *capacity, const char *name) {
    for (int64_t i = *n - 1; i >= 0; i--)
        if (strcmp((*list)[i].name, name) == 0) return &(*list)[i];
    if (!pli_grow((void **)list, capacity, *n + 1, sizeof **list)) return NULL;
    (*list)[*n] = (struct loose){ .name = name };
    return &(*list)[(*n)++];
}

/* Lays loose pieces one behind the other (round 0), then tells them how many rows there are (round 1). */
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

/* What is written down must be readable: it is checked by reading. */
static plait_status join(pli_manifest *manifest, const char *meta, const char *const *digests, plait_error *err) {
    json_error_t where;
    json_t      *object = json_loads(meta != NULL ? meta : "{}", JSON_REJECT_DUPLICATES, &where);
    plait_status status = json_is_object(object)
                              ? set_meta(manifest, object, err)
                              : pli_fail(err, PLAIT_EINVAL, "meta: expected a JSON object; %s", where.text);
    json_decref(object);
    PLI_TRY(status);
    for (int32_t i = 0; i < manifest->parts; i++) PLI_TRY(join_digest(digests[i], manifest, err));
    PLI_TRY(place_loose(manifest, err));
    return find_tensors(manifest, PLAIT_EINVAL, err);
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
