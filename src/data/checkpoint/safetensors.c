/* safetensors: 8 bytes with the header's length (little-endian), a JSON header, the tensors' bytes without gaps.
 *
 * Nothing in the header is believed: lengths are compared with the file before anything is multiplied or followed,
 * and the tensors must cover the data exactly once. "plait.checksum" in the metadata is the XXH3 of the header (its
 * own 16 digits taken as zeros) chained over the tensors' bytes, so that any altered byte is found. Format:
 * https://huggingface.co/docs/safetensors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/data.h"
#include "base/json.h"

enum { MAX_DIMS = 4, CHECKSUM_DIGITS = 16, LENGTH_BYTES = 8, MAX_HEADER = 100 << 20, AT_ONCE = 4 << 20 };

static const char checksum_key[] = "plait.checksum";

struct pli_safetensors {
    pli_mapped  mapped;
    json_t     *header;
    pli_tensor *tensor; /* [n] in order of name */
    void      **copy;   /* [n] aligned copies of tensors that are not aligned in the file; other entries are NULL */
    int64_t     n;
};

static const struct element {
    const char *name;
    size_t      bytes;
} elements[] = {
    { "F64", 8 }, { "F32", 4 }, { "F16", 2 }, { "BF16", 2 }, { "I64", 8 }, { "I32", 4 },  { "I16", 2 },
    { "I8", 1 },  { "U64", 8 }, { "U32", 4 }, { "U16", 2 },  { "U8", 1 },  { "BOOL", 1 },
};

static const struct element *find_element(const char *name) {
    for (size_t i = 0; name != NULL && i < sizeof elements / sizeof elements[0]; i++)
        if (strcmp(name, elements[i].name) == 0) return &elements[i];
    return NULL;
}

size_t pli_safetensors_type_bytes(const char *type) {
    const struct element *element = find_element(type);
    return element != NULL ? element->bytes : 0;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const pli_tensor *)a)->name, ((const pli_tensor *)b)->name);
}

/* --- writing ---------------------------------------------------------------------------------------------- */

static json_t *tensor_json(const pli_tensor *tensor, size_t from) {
    json_t *object = json_object(), *shape = json_array(), *offsets = json_array();
    for (int32_t i = 0; i < tensor->dims; i++) json_array_append_new(shape, json_integer(tensor->shape[i]));
    json_array_append_new(offsets, json_integer((json_int_t)from));
    json_array_append_new(offsets, json_integer((json_int_t)(from + tensor->bytes)));
    json_object_set_new(object, "dtype", json_string(tensor->type));
    json_object_set_new(object, "shape", shape);
    if (json_object_set_new(object, "data_offsets", offsets) == 0) return object;
    json_decref(object);
    return NULL;
}

static void put_length(uint64_t length, char bytes[LENGTH_BYTES]) {
    for (int i = 0; i < LENGTH_BYTES; i++) bytes[i] = (char)(length >> (8 * i));
}

/* Writes length and header, padded so that they end at a multiple of 64. */
static plait_status put_header(const char *json, pli_text *text, plait_error *err) {
    size_t bytes = strlen(json), padded = (bytes + LENGTH_BYTES + 63) / 64 * 64 - LENGTH_BYTES;
    char   length[LENGTH_BYTES];
    if (padded > MAX_HEADER) return pli_fail(err, PLAIT_EINVAL, "a header of %zu bytes: too many tensors", padded);
    put_length(padded, length);
    pli_text_add_bytes(text, length, sizeof length);
    pli_text_add_bytes(text, json, bytes);
    for (; !text->failed && bytes < padded; bytes++) pli_text_add_bytes(text, " ", 1);
    return text->failed ? pli_fail(err, PLAIT_ENOMEM, "no memory for the header") : PLAIT_OK;
}

plait_status pli_safetensors_begin(const pli_tensor *tensors, int64_t n, const char *const *metadata, bool checksum,
                                   pli_text *text, plait_error *err) {
    json_t *root = json_object(), *pairs = json_object();
    size_t  from = 0;
    int     bad = checksum ? json_object_set_new(pairs, checksum_key, json_string("0000000000000000")) : 0;
    for (int64_t i = 0; metadata != NULL && metadata[i] != NULL; i += 2)
        bad |= json_object_set_new(pairs, metadata[i], json_string(metadata[i + 1]));
    bad |= json_object_set_new(root, "__metadata__", pairs);
    for (int64_t i = 0; i < n; i++) {
        bad |= json_object_set_new(root, tensors[i].name, tensor_json(&tensors[i], from));
        from += tensors[i].bytes;
    }
    pli_text json = { .failed = bad != 0 };
    if (bad == 0) pli_json_value_sorted(&json, NULL, root);
    json_decref(root);
    plait_status status = json.failed
                              ? pli_fail(err, PLAIT_ENOMEM, "no memory for the header, or a name that is not UTF-8")
                              : put_header(json.data, text, err);
    pli_text_free(&json);
    return status;
}

/* Where the checksum's digits stand in the header, or NULL. */
static char *checksum_at(char *header, size_t bytes) {
    static const char before[] = "\"plait.checksum\":\"";
    char             *at = memmem(header, bytes, before, sizeof before - 1);
    if (at == NULL || (size_t)(header + bytes - at) < sizeof before - 1 + CHECKSUM_DIGITS + 1) return NULL;
    at += sizeof before - 1;
    return at[CHECKSUM_DIGITS] == '"' ? at : NULL;
}

static void checksum_text(uint64_t checksum, char digits[CHECKSUM_DIGITS + 1]) {
    snprintf(digits, CHECKSUM_DIGITS + 1, "%016llx", (unsigned long long)checksum);
}

static plait_status check_tensor(const pli_tensor *tensor, plait_error *err) {
    const struct element *element = find_element(tensor->type);
    size_t                bytes = element != NULL ? element->bytes : 0;
    if (element == NULL || tensor->dims < 0 || tensor->dims > MAX_DIMS)
        return pli_fail(err, PLAIT_EINVAL, "tensor %s: type %s of %d dimensions", tensor->name, tensor->type,
                        tensor->dims);
    for (int32_t i = 0; i < tensor->dims; i++)
        if (tensor->shape[i] < 0 || __builtin_mul_overflow(bytes, (size_t)tensor->shape[i], &bytes)) bytes = SIZE_MAX;
    return bytes == tensor->bytes
               ? PLAIT_OK
               : pli_fail(err, PLAIT_EINVAL, "tensor %s: %zu bytes do not fit its shape", tensor->name, tensor->bytes);
}

static plait_status write_tensor(pli_outfile *file, const pli_tensor *t, plait_error *err) {
    for (size_t at = 0, some; at < t->bytes; at += some) {
        some = t->bytes - at < AT_ONCE ? t->bytes - at : AT_ONCE;
        PLI_TRY(pli_outfile_write(file, (const char *)t->data + at, some, err));
        if (t->mapped) pli_map_drop((const char *)t->data + at, some);
    }
    return PLAIT_OK;
}

static plait_status write_file(const char *path, const pli_text *header, const pli_tensor *tensors, int64_t n,
                               plait_error *err) {
    pli_outfile *file = NULL;
    plait_status status;
    PLI_TRY(pli_outfile_open(path, &file, err));
    status = pli_outfile_write(file, header->data, header->length, err);
    for (int64_t i = 0; status == PLAIT_OK && i < n; i++)
        status = write_tensor(file, &tensors[i], err);
    if (status == PLAIT_OK) return pli_outfile_commit(&file, err);
    pli_outfile_abandon(&file);
    return status;
}

static plait_status write_sorted(const char *path, const pli_tensor *sorted, int64_t n, const char *const *metadata,
                                 plait_error *err) {
    pli_text header = { 0 };
    for (int64_t i = 0; i < n; i++) {
        PLI_TRY(check_tensor(&sorted[i], err));
        if (i > 0 && strcmp(sorted[i - 1].name, sorted[i].name) == 0)
            return pli_fail(err, PLAIT_EINVAL, "two tensors named %s", sorted[i].name);
    }
    plait_status status = pli_safetensors_begin(sorted, n, metadata, true, &header, err);
    if (status == PLAIT_OK) {
        char    *json = header.data + LENGTH_BYTES;
        size_t   bytes = header.length - LENGTH_BYTES;
        uint64_t checksum = pli_hash_bytes(json, bytes, 0);
        char     digits[CHECKSUM_DIGITS + 1], *at = checksum_at(json, bytes);
        for (int64_t i = 0; i < n; i++) {
            checksum = pli_hash_bytes(sorted[i].data, sorted[i].bytes, checksum);
            if (sorted[i].mapped) pli_map_drop(sorted[i].data, sorted[i].bytes);
        }
        checksum_text(checksum, digits);
        if (at != NULL) memcpy(at, digits, CHECKSUM_DIGITS);
        status = write_file(path, &header, sorted, n, err);
    }
    pli_text_free(&header);
    return status;
}

/* A copy in order of name; NULL: out of memory. */
static pli_tensor *sorted_copy(const pli_tensor *tensors, int64_t n) {
    pli_tensor *sorted = pli_array((size_t)n, sizeof *sorted);
    if (sorted == NULL || n == 0) return sorted;
    memcpy(sorted, tensors, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_name);
    return sorted;
}

plait_status pli_safetensors_write(const char *path, const pli_tensor *tensors, int64_t n, const char *const *metadata,
                                   plait_error *err) {
    pli_tensor *sorted = sorted_copy(tensors, n);
    if (sorted == NULL) return pli_fail(err, PLAIT_ENOMEM, "%s: no memory to write it", path);
    plait_status status = write_sorted(path, sorted, n, metadata, err);
    pli_free(sorted);
    return status;
}

static void hash_i64(pli_sha256 *sha, int64_t value) {
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)((uint64_t)value >> (8 * i));
    pli_sha256_add(sha, bytes, sizeof bytes);
}

void pli_tensors_hash(const pli_tensor *tensors, int64_t n, char hex[65]) {
    pli_sha256 sha;
    pli_sha256_init(&sha);
    for (int64_t done = 0, last = -1; done < n; done++) { /* finds the next by name: there are few tensors, and this
                                                           * needs no memory */
        int64_t next = -1;
        for (int64_t i = 0; i < n; i++) {
            bool after = last < 0 || strcmp(tensors[i].name, tensors[last].name) > 0;
            if (after && (next < 0 || strcmp(tensors[i].name, tensors[next].name) < 0)) next = i;
        }
        if (next < 0) break;
        const pli_tensor *tensor = &tensors[last = next];
        pli_sha256_add(&sha, tensor->name, strlen(tensor->name) + 1);
        pli_sha256_add(&sha, tensor->type, strlen(tensor->type) + 1);
        hash_i64(&sha, tensor->dims);
        for (int32_t i = 0; i < tensor->dims; i++) hash_i64(&sha, tensor->shape[i]);
        for (size_t at = 0, some; at < tensor->bytes; at += some) {
            some = tensor->bytes - at < AT_ONCE ? tensor->bytes - at : AT_ONCE;
            pli_sha256_add(&sha, (const char *)tensor->data + at, some);
            if (tensor->mapped) pli_map_drop((const char *)tensor->data + at, some);
        }
    }
    pli_sha256_end(&sha, hex);
}

/* --- reading ---------------------------------------------------------------------------------------------- */

static plait_status bad_tensor(plait_error *err, const char *name, const char *why) {
    return pli_fail(err, PLAIT_EFORMAT, "tensor %.80s: %s", name, why);
}

static bool natural(const json_t *value, uint64_t *out) {
    if (!json_is_integer(value) || json_integer_value(value) < 0) return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static plait_status read_tensor(const char *name, const json_t *object, const unsigned char *data, size_t data_bytes,
                                pli_tensor *out, plait_error *err) {
    const json_t         *shape = json_object_get(object, "shape"), *offsets = json_object_get(object, "data_offsets");
    const struct element *element = find_element(json_string_value(json_object_get(object, "dtype")));
    uint64_t              from, to;
    if (element == NULL) return bad_tensor(err, name, "expected a known dtype (F32, F64, I64, ...)");
    if (!json_is_array(shape) || json_array_size(shape) > MAX_DIMS)
        return bad_tensor(err, name, "expected a shape of at most 4 dimensions");
    if (json_array_size(offsets) != 2 || !natural(json_array_get(offsets, 0), &from) ||
        !natural(json_array_get(offsets, 1), &to))
        return bad_tensor(err, name, "expected two data_offsets");
    if (from > to || to > data_bytes) return bad_tensor(err, name, "its data_offsets leave the file");
    *out = (pli_tensor){ .name = name,
                         .type = element->name,
                         .dims = (int32_t)json_array_size(shape),
                         .data = data + from,
                         .bytes = to - from };
    size_t bytes = element->bytes;
    for (int32_t i = 0; i < out->dims; i++) {
        uint64_t length;
        if (!natural(json_array_get(shape, (size_t)i), &length) || __builtin_mul_overflow(bytes, length, &bytes))
            return bad_tensor(err, name, "expected a shape of whole numbers that fits the file");
        out->shape[i] = (int64_t)length;
    }
    return bytes == out->bytes ? PLAIT_OK : bad_tensor(err, name, "its shape and its data_offsets do not agree");
}

static int by_place(const void *a, const void *b) {
    const pli_tensor *x = a, *y = b;
    if (x->data != y->data) return (const char *)x->data < (const char *)y->data ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Checks that the tensors, sorted by place, cover the data exactly once. */
static plait_status check_cover(const pli_tensor *tensor, int64_t n, const unsigned char *data, size_t bytes,
                                plait_error *err) {
    const unsigned char *at = data;
    for (int64_t i = 0; i < n; i++) {
        if ((const unsigned char *)tensor[i].data != at)
            return bad_tensor(err, tensor[i].name, "overlaps another, or leaves a gap");
        at += tensor[i].bytes;
    }
    return at == data + bytes ? PLAIT_OK : pli_fail(err, PLAIT_ECHECKSUM, "there are bytes after the last tensor");
}

static plait_status check_sum(const unsigned char *header, size_t header_bytes, const pli_tensor *tensor, int64_t n,
                              plait_error *err) {
    char  digits[CHECKSUM_DIGITS + 1];
    char *copy = pli_malloc(header_bytes + 1);
    if (copy == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the header");
    memcpy(copy, header, header_bytes);
    char    *at = checksum_at(copy, header_bytes);
    bool     good = true;
    uint64_t checksum;
    if (at != NULL) {
        memset(at, '0', CHECKSUM_DIGITS);
        checksum = pli_hash_bytes(copy, header_bytes, 0);
        for (int64_t i = 0; i < n; i++) checksum = pli_hash_bytes(tensor[i].data, tensor[i].bytes, checksum);
        checksum_text(checksum, digits);
        good = memcmp(header + (at - copy), digits, CHECKSUM_DIGITS) == 0;
    }
    pli_free(copy);
    return good ? PLAIT_OK
                : pli_fail(err, PLAIT_ECHECKSUM, "the checksum does not match: the file was altered or damaged");
}

/* Copies tensors that do not lie at a multiple of 8. */
static plait_status align(pli_safetensors *file, plait_error *err) {
    file->copy = pli_calloc((size_t)file->n, sizeof *file->copy);
    if (file->copy == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for tensors");
    for (int64_t i = 0; i < file->n; i++) {
        pli_tensor *tensor = &file->tensor[i];
        if (((uintptr_t)tensor->data & 7) == 0) continue;
        if ((file->copy[i] = pli_aligned(tensor->bytes)) == NULL)
            return pli_fail(err, PLAIT_ENOMEM, "no memory for tensors");
        if (tensor->bytes > 0) memcpy(file->copy[i], tensor->data, tensor->bytes);
        tensor->data = file->copy[i];
    }
    return PLAIT_OK;
}

static plait_status read_tensors(pli_safetensors *file, const unsigned char *data, size_t bytes, plait_error *err) {
    const char *name;
    json_t     *object;
    json_object_foreach(file->header, name, object) {
        if (strcmp(name, "__metadata__") == 0) {
            const char *key;
            json_t     *value;
            json_object_foreach(object, key, value) if (!json_is_string(value)) return pli_fail(
                err, PLAIT_EFORMAT, "metadata %.80s: expected a text", key);
            if (!json_is_object(object)) return pli_fail(err, PLAIT_EFORMAT, "__metadata__: expected an object");
            continue;
        }
        PLI_TRY(read_tensor(name, object, data, bytes, &file->tensor[file->n], err));
        file->n++;
    }
    return PLAIT_OK;
}

static plait_status parse(pli_safetensors *file, const unsigned char *bytes, size_t n, plait_error *err) {
    uint64_t     length = 0;
    pli_json_where where;
    for (int i = 0; n >= LENGTH_BYTES && i < LENGTH_BYTES; i++) length |= (uint64_t)bytes[i] << (8 * i);
    if (n < LENGTH_BYTES || length > MAX_HEADER || length < 2 || (n > LENGTH_BYTES && bytes[LENGTH_BYTES] != '{'))
        return pli_fail(err, PLAIT_EFORMAT, "expected a safetensors file");
    if (length > n - LENGTH_BYTES)
        return pli_fail(err, PLAIT_ECHECKSUM, "cut short: its header has %llu bytes, but only %zu are there",
                        (unsigned long long)length, n - LENGTH_BYTES);
    const unsigned char *data = bytes + LENGTH_BYTES + length;
    size_t               data_bytes = n - LENGTH_BYTES - (size_t)length;
    file->header = pli_json_read((const char *)bytes + LENGTH_BYTES, (size_t)length, &where);
    if (!json_is_object(file->header))
        return pli_fail(err, PLAIT_EFORMAT, "its header is no JSON object: %s", where.text);
    file->tensor = pli_calloc(json_object_size(file->header), sizeof *file->tensor);
    if (file->tensor == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for its header");
    PLI_TRY(read_tensors(file, data, data_bytes, err));
    if (file->n > 0) qsort(file->tensor, (size_t)file->n, sizeof *file->tensor, by_place);
    PLI_TRY(check_cover(file->tensor, file->n, data, data_bytes, err));
    PLI_TRY(check_sum(bytes + LENGTH_BYTES, (size_t)length, file->tensor, file->n, err));
    if (file->n > 0) qsort(file->tensor, (size_t)file->n, sizeof *file->tensor, by_name);
    return align(file, err);
}

plait_status pli_safetensors_parse(const void *bytes, size_t n, pli_safetensors **file_out, plait_error *err) {
    pli_safetensors *file = pli_calloc(1, sizeof *file);
    if (file == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a safetensors file");
    plait_status status = parse(file, bytes, n, err);
    if (status < 0)
        pli_safetensors_close(&file);
    else
        *file_out = file;
    return status;
}

plait_status pli_safetensors_open(const char *path, pli_safetensors **file_out, plait_error *err) {
    pli_mapped       mapped;
    pli_safetensors *file = NULL;
    PLI_TRY(pli_map_file(path, &mapped, err));
    plait_status status = pli_safetensors_parse(mapped.data, mapped.bytes, &file, err);
    if (status == PLAIT_OK && pli_safetensors_metadata(file, checksum_key) == NULL) {
        pli_safetensors_close(&file);
        status = pli_fail(err, PLAIT_ECHECKSUM, "no plait.checksum in its metadata: not written by plait, or altered");
    }
    if (status == PLAIT_OK && pli_map_check(path, &mapped, NULL) < 0) { /* the file changed while its checksum was
                                                                         * compared */
        pli_safetensors_close(&file);
        status = pli_fail(err, PLAIT_ECHECKSUM, "it was written to while it was being read; run again when nobody "
                                                "writes to it");
    }
    if (status < 0) {
        pli_unmap_file(&mapped);
        return pli_fail_at(err, "%s", path);
    }
    file->mapped = mapped;
    *file_out = file;
    return PLAIT_OK;
}

int64_t           pli_safetensors_count(const pli_safetensors *file) { return file->n; }
const pli_tensor *pli_safetensors_at(const pli_safetensors *file, int64_t i) { return &file->tensor[i]; }

const pli_tensor *pli_safetensors_find(const pli_safetensors *file, const char *name) {
    pli_tensor wanted = { .name = name };
    return file->n > 0 ? bsearch(&wanted, file->tensor, (size_t)file->n, sizeof wanted, by_name) : NULL;
}

const char *pli_safetensors_metadata(const pli_safetensors *file, const char *key) {
    return json_string_value(json_object_get(json_object_get(file->header, "__metadata__"), key));
}

void pli_safetensors_close(pli_safetensors **file) {
    if (file == NULL || *file == NULL) return;
    for (int64_t i = 0; (*file)->copy != NULL && i < (*file)->n; i++) pli_free((*file)->copy[i]);
    pli_free((*file)->copy);
    pli_free((*file)->tensor);
    json_decref((*file)->header);
    if ((*file)->mapped.data != NULL) pli_unmap_file(&(*file)->mapped);
    pli_free(*file);
    *file = NULL;
}
