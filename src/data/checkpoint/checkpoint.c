/* Checkpoints that exist: finding, judging and reading them.
 *
 * A manifest is small and is read whole; no part is kept in memory. A reader judges bytes before it hands them out:
 * when it first touches a piece it hashes all of it. Files are read at given places and not mapped, so a disk that
 * fails answers with an error. */
#include "data/checkpoint/checkpoint.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "data/checkpoint/manifest.h"

enum { BUFFER_BYTES = 1 << 20, CLOCK_DIGITS = 12 };

struct pli_checkpoint {
    char           folder[PLI_CHECKPOINT_FOLDER];
    char           origin[PLI_CHECKPOINT_FOLDER + PLI_MANIFEST_HEX + 16];
    pli_manifest  *manifest;
    pli_infile   **file;   /* [parts] */
    bool         **judged; /* [parts][pieces of the part]: its bytes were checked */
    pli_hasher    *all, *one;
    unsigned char *buffer; /* [BUFFER_BYTES] */
};

/* --- names ------------------------------------------------------------------------------------------------ */

/* Reads the digits of a number that is written as we write it. */
static bool read_digits(const char **at, size_t least, int64_t *out) {
    int64_t value = 0;
    size_t  n = 0;
    for (; (*at)[n] >= '0' && (*at)[n] <= '9'; n++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, (*at)[n] - '0', &value))
            return false;
    bool right = n >= least && (n == least || (*at)[0] != '0');
    *at += n;
    *out = value;
    return right;
}

bool pli_checkpoint_folder_read(const char *name, int64_t *clock_out, int64_t *copy_out) {
    static const char before[] = "checkpoint-";
    const char       *at = name + sizeof before - 1;
    int64_t           clock, copy = 1;
    if (strncmp(name, before, sizeof before - 1) != 0 || strlen(name) >= PLI_CHECKPOINT_FOLDER) return false;
    if (!read_digits(&at, CLOCK_DIGITS, &clock)) return false;
    if (*at == '-' && (at++, !read_digits(&at, 1, &copy) || copy < 2)) return false;
    if (*at != '\0') return false;
    if (clock_out != NULL) *clock_out = clock;
    if (copy_out != NULL) *copy_out = copy;
    return true;
}

/* --- opening one ------------------------------------------------------------------------------------------ */

static void name_origin(pli_checkpoint *checkpoint, const char *text, size_t bytes) {
    char checksum[PLI_MANIFEST_HEX];
    pli_manifest_checksum(text, bytes, checksum);
    snprintf(checkpoint->origin, sizeof checkpoint->origin, "%s, checksum %s", checkpoint->folder, checksum);
}

static plait_status open_manifest(const char *dir, pli_checkpoint *checkpoint, plait_error *err) {
    pli_infile  *file = NULL;
    char        *path = pli_format("%s/%s/manifest.json", dir, checkpoint->folder), *text = NULL;
    plait_status status = path != NULL ? pli_infile_open(path, &file, err) : PLAIT_ENOMEM;
    int64_t      bytes = status == PLAIT_OK ? pli_infile_bytes(file) : 0;
    if (status == PLAIT_OK && bytes > PLI_MANIFEST_MAX_BYTES)
        status = pli_fail(err, PLAIT_EFORMAT, "%s: larger than any manifest", path);
    if (status == PLAIT_OK && (text = pli_malloc((size_t)bytes + 1)) == NULL) status = PLAIT_ENOMEM;
    if (status == PLAIT_ENOMEM) (void)pli_fail(err, status, "no memory to read a manifest");
    if (status == PLAIT_OK) status = pli_infile_read(file, 0, text, (size_t)bytes, err);
    if (status == PLAIT_OK) {
        status = pli_manifest_read(text, (size_t)bytes, &checkpoint->manifest, err);
        if (status < 0) (void)pli_fail_at(err, "%s", path);
        else name_origin(checkpoint, text, (size_t)bytes);
    }
    pli_free(text);
    pli_infile_close(&file);
    pli_free(path);
    return status;
}

static plait_status open_part(const char *dir, pli_checkpoint *checkpoint, int32_t number, plait_error *err) {
    const pli_manifest_part *part = &checkpoint->manifest->part[number];
    char                     name[PLI_PART_NAME];
    pli_part_name(number, part->parts, name);
    checkpoint->judged[number] = pli_calloc((size_t)part->n, sizeof **checkpoint->judged);
    char *path = pli_format("%s/%s/%s", dir, checkpoint->folder, name);
    if (checkpoint->judged[number] == NULL || path == NULL) {
        pli_free(path);
        return pli_fail(err, PLAIT_ENOMEM, "no memory to open a checkpoint");
    }
    plait_status status = pli_infile_open(path, &checkpoint->file[number], err);
    int64_t      bytes = status == PLAIT_OK ? pli_infile_bytes(checkpoint->file[number]) : 0;
    if (status == PLAIT_OK && bytes != part->bytes)
        status = pli_fail(err, PLAIT_ECHECKSUM, "%s: %s: it has %lld bytes, the manifest says %lld", path,
                          bytes < part->bytes ? "cut short" : "too long", (long long)bytes, (long long)part->bytes);
    pli_free(path);
    return status;
}

static plait_status open_parts(const char *dir, pli_checkpoint *checkpoint, plait_error *err) {
    size_t       n = (size_t)checkpoint->manifest->parts;
    plait_status status = PLAIT_OK;
    checkpoint->file = pli_calloc(n, sizeof *checkpoint->file);
    checkpoint->judged = pli_calloc(n, sizeof *checkpoint->judged);
    checkpoint->buffer = pli_malloc(BUFFER_BYTES);
    checkpoint->all = pli_hasher_create();
    checkpoint->one = pli_hasher_create();
    if (checkpoint->file == NULL || checkpoint->judged == NULL || checkpoint->buffer == NULL ||
        checkpoint->all == NULL || checkpoint->one == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory to open a checkpoint");
    for (int32_t i = 0; i < checkpoint->manifest->parts && status == PLAIT_OK; i++)
        status = open_part(dir, checkpoint, i, err);
    return status;
}

static plait_status check_clock(const pli_checkpoint *checkpoint, plait_error *err) {
    int64_t clock = 0;
    (void)pli_checkpoint_folder_read(checkpoint->folder, &clock, NULL);
    return clock == checkpoint->manifest->clock
               ? PLAIT_OK
               : pli_fail(err, PLAIT_EFORMAT, "%s/manifest.json: it belongs to clock %lld, but the folder has another "
                                              "clock's name",
                          checkpoint->folder, (long long)checkpoint->manifest->clock);
}

plait_status pli_checkpoint_open_at(const char *dir, const char *folder, pli_checkpoint **checkpoint_out,
                                    plait_error *err) {
    char *path = pli_format("%s/%s", dir, folder);
    if (path == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to open a checkpoint");
    bool there = pli_checkpoint_folder_read(folder, NULL, NULL) && pli_is_directory(path);
    pli_free(path);
    if (!there) return pli_fail(err, PLAIT_ENAME, "%s: holds no checkpoint '%.80s'", dir, folder);
    pli_checkpoint *checkpoint = pli_calloc(1, sizeof *checkpoint);
    if (checkpoint == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to open a checkpoint");
    memcpy(checkpoint->folder, folder, strlen(folder) + 1);
    plait_status status = open_manifest(dir, checkpoint, err);
    if (status == PLAIT_OK) status = check_clock(checkpoint, err);
    if (status == PLAIT_OK) status = open_parts(dir, checkpoint, err);
    if (status == PLAIT_OK)
        *checkpoint_out = checkpoint;
    else
        pli_checkpoint_close(&checkpoint);
    return status;
}

void pli_checkpoint_close(pli_checkpoint **checkpoint) {
    if (checkpoint == NULL || *checkpoint == NULL) return;
    pli_checkpoint *old = *checkpoint;
    for (int32_t i = 0; old->file != NULL && i < old->manifest->parts; i++) pli_infile_close(&old->file[i]);
    for (int32_t i = 0; old->judged != NULL && i < old->manifest->parts; i++) pli_free(old->judged[i]);
    pli_free((void *)old->file);
    pli_free((void *)old->judged);
    pli_free(old->buffer);
    pli_hasher_destroy(&old->all);
    pli_hasher_destroy(&old->one);
    pli_manifest_free(&old->manifest);
    pli_free(old);
    *checkpoint = NULL;
}

/* --- judging ---------------------------------------------------------------------------------------------- */

/* Reads bytes of a part through the buffer into the hashers. */
static plait_status hash_bytes(pli_checkpoint *checkpoint, int32_t part, int64_t at, int64_t bytes, bool also_all,
                               plait_error *err) {
    pli_hasher_reset(checkpoint->one);
    while (bytes > 0) {
        size_t take = bytes < BUFFER_BYTES ? (size_t)bytes : BUFFER_BYTES;
        PLI_TRY(pli_infile_read(checkpoint->file[part], at, checkpoint->buffer, take, err));
        pli_hasher_add(checkpoint->one, checkpoint->buffer, take);
        if (also_all) pli_hasher_add(checkpoint->all, checkpoint->buffer, take);
        at += (int64_t)take;
        bytes -= (int64_t)take;
    }
    return PLAIT_OK;
}

static plait_status altered(const pli_checkpoint *checkpoint, int32_t part, const char *what, const char *name,
                            plait_error *err) {
    char file[PLI_PART_NAME];
    pli_part_name(part, checkpoint->manifest->parts, file);
    return pli_fail(err, PLAIT_ECHECKSUM, "%s/%s: %s%s: altered: its bytes do not fit their checksum",
                    checkpoint->folder, file, what, name);
}

static plait_status judge_piece(pli_checkpoint *checkpoint, const pli_piece *piece, bool also_all, plait_error *err) {
    PLI_TRY(hash_bytes(checkpoint, piece->part, piece->offset, piece->bytes, also_all, err));
    return pli_hasher_64(checkpoint->one) == piece->xxh3
               ? PLAIT_OK
               : altered(checkpoint, piece->part, "tensor ", piece->tensor.name, err);
}

plait_status pli_checkpoint_verify_part(pli_checkpoint *checkpoint, int32_t part, plait_error *err) {
    const pli_manifest_part *have = &checkpoint->manifest->part[part];
    unsigned char            hash[sizeof have->xxh128];
    pli_hasher_reset(checkpoint->all);
    PLI_TRY(hash_bytes(checkpoint, part, 0, have->header_bytes, true, err));
    if (pli_hasher_64(checkpoint->one) != have->header_xxh3) return altered(checkpoint, part, "header", "", err);
    for (int64_t i = 0; i < have->n; i++) {
        PLI_TRY(judge_piece(checkpoint, &have->piece[i], true, err));
        checkpoint->judged[part][i] = true;
    }
    pli_hasher_128(checkpoint->all, hash);
    return memcmp(hash, have->xxh128, sizeof hash) == 0 ? PLAIT_OK : altered(checkpoint, part, "the file", "", err);
}

plait_status pli_checkpoint_verify(pli_checkpoint *checkpoint, plait_error *err) {
    for (int32_t i = 0; i < checkpoint->manifest->parts; i++) PLI_TRY(pli_checkpoint_verify_part(checkpoint, i, err));
    return PLAIT_OK;
}

/* --- what it holds ---------------------------------------------------------------------------------------- */

const char *pli_checkpoint_folder(const pli_checkpoint *checkpoint) { return checkpoint->folder; }
const char *pli_checkpoint_origin(const pli_checkpoint *checkpoint) { return checkpoint->origin; }
int64_t     pli_checkpoint_clock(const pli_checkpoint *checkpoint) { return checkpoint->manifest->clock; }
int64_t     pli_checkpoint_serial(const pli_checkpoint *checkpoint) { return checkpoint->manifest->serial; }
const char *pli_checkpoint_meta(const pli_checkpoint *checkpoint) { return checkpoint->manifest->meta; }
int32_t     pli_checkpoint_parts(const pli_checkpoint *checkpoint) { return checkpoint->manifest->parts; }
int64_t     pli_checkpoint_tensors(const pli_checkpoint *checkpoint) { return checkpoint->manifest->tensors; }

int64_t pli_checkpoint_part_bytes(const pli_checkpoint *checkpoint, int32_t part) {
    return checkpoint->manifest->part[part].bytes;
}

const pli_checkpoint_tensor *pli_checkpoint_tensor_at(const pli_checkpoint *checkpoint, int64_t i) {
    return &checkpoint->manifest->tensor[i];
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const pli_checkpoint_tensor *)a)->name, ((const pli_checkpoint_tensor *)b)->name);
}

const pli_checkpoint_tensor *pli_checkpoint_find(const pli_checkpoint *checkpoint, const char *name) {
    const pli_manifest   *manifest = checkpoint->manifest;
    pli_checkpoint_tensor wanted = { .name = name };
    if (manifest->tensors == 0) return NULL;
    return bsearch(&wanted, manifest->tensor, (size_t)manifest->tensors, sizeof wanted, by_name);
}

int64_t pli_checkpoint_pieces(const pli_checkpoint *checkpoint, const pli_checkpoint_tensor *tensor) {
    int64_t i = tensor - checkpoint->manifest->tensor;
    return checkpoint->manifest->first_piece[i + 1] - checkpoint->manifest->first_piece[i];
}

/* --- reading ---------------------------------------------------------------------------------------------- */

/* Judges a piece, but only once. */
static plait_status judge_once(pli_checkpoint *checkpoint, const pli_piece *piece, plait_error *err) {
    bool *judged = &checkpoint->judged[piece->part][piece - checkpoint->manifest->part[piece->part].piece];
    if (!*judged) PLI_TRY(judge_piece(checkpoint, piece, false, err));
    *judged = true;
    return PLAIT_OK;
}

/* The last piece that begins at or before the row. */
static int64_t piece_at(const pli_manifest *manifest, int64_t tensor, int64_t row) {
    int64_t from = manifest->first_piece[tensor], to = manifest->first_piece[tensor + 1];
    while (to - from > 1) {
        int64_t middle = from + (to - from) / 2;
        if (manifest->piece[middle]->tensor.first <= row)
            from = middle;
        else
            to = middle;
    }
    return from;
}

plait_status pli_checkpoint_read(pli_checkpoint *checkpoint, const pli_checkpoint_tensor *tensor, int64_t first,
                                 int64_t rows, void *out, plait_error *err) {
    int64_t row_bytes = pli_checkpoint_row_bytes(tensor);
    char   *to = out;
    if (first < 0 || rows < 0 || first > tensor->rows || rows > tensor->rows - first)
        return pli_fail(err, PLAIT_EINVAL, "tensor %s: it has %lld rows, so it does not hold %lld from row %lld on",
                        tensor->name, (long long)tensor->rows, (long long)rows, (long long)first);
    int64_t k = rows > 0 ? piece_at(checkpoint->manifest, tensor - checkpoint->manifest->tensor, first) : 0;
    for (; rows > 0; k++) {
        const pli_piece *piece = checkpoint->manifest->piece[k];
        int64_t          skip = first - piece->tensor.first, take = piece->tensor.shape[0] - skip;
        if (take <= 0) continue; /* a piece without rows */
        if (take > rows) take = rows;
        PLI_TRY(judge_once(checkpoint, piece, err));
        PLI_TRY(pli_infile_read(checkpoint->file[piece->part], piece->offset + skip * row_bytes, to,
                                (size_t)(take * row_bytes), err));
        to += take * row_bytes;
        first += take;
        rows -= take;
    }
    return PLAIT_OK;
}

/* --- lists ------------------------------------------------------------------------------------------------ */

/* An entry whose serial is not known is sorted by its clock, before the first entry of a higher clock. So a damaged
 * checkpoint is listed beside its neighbours in time. */
static int by_clock(const void *a, const void *b) {
    const pli_checkpoint_entry *x = a, *y = b;
    int64_t                     one = 1, other = 1;
    if (x->clock != y->clock) return x->clock < y->clock ? -1 : 1;
    (void)pli_checkpoint_folder_read(x->folder, NULL, &one);
    (void)pli_checkpoint_folder_read(y->folder, NULL, &other);
    return (one > other) - (one < other);
}

/* Sorts the entries that have a serial by insertion; each other entry stays behind the entry that it stood behind.
 * There are few entries. */
static void sort_entries(pli_checkpoint_entry *entry, int64_t n) {
    if (n > 0) qsort(entry, (size_t)n, sizeof *entry, by_clock);
    for (int64_t i = 1; i < n; i++) {
        pli_checkpoint_entry moved = entry[i];
        int64_t              to = i;
        for (int64_t k = i - 1; k >= 0 && moved.serial > 0; k--)
            if (entry[k].serial > moved.serial) to = k;
        memmove(&entry[to + 1], &entry[to], (size_t)(i - to) * sizeof *entry);
        entry[to] = moved;
    }
}

int64_t pli_checkpoint_bytes(const char *dir, const char *folder) {
    pli_text names = { 0 };
    int64_t  bytes = 0;
    char    *path = pli_format("%s/%s", dir, folder);
    if (path != NULL && pli_list_directory(path, &names, NULL) == PLAIT_OK && names.data != NULL) {
        for (char *line = names.data, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            char *file = pli_format("%s/%.*s", path, (int)(end - line), line);
            if (file != NULL && pli_file_bytes(file) > 0) bytes += pli_file_bytes(file);
            pli_free(file);
        }
    }
    pli_text_free(&names);
    pli_free(path);
    return bytes;
}

static void describe(const char *dir, pli_checkpoint_entry *entry) {
    pli_checkpoint *checkpoint = NULL;
    char           *manifest = pli_format("%s/%s/manifest.json", dir, entry->folder);
    (void)pli_checkpoint_folder_read(entry->folder, &entry->clock, NULL);
    entry->bytes = pli_checkpoint_bytes(dir, entry->folder);
    if (manifest != NULL && !pli_file_exists(manifest)) {
        entry->state = PLI_CHECKPOINT_UNFINISHED;
    } else if (pli_checkpoint_open_at(dir, entry->folder, &checkpoint, &entry->why) < 0) {
        entry->state = PLI_CHECKPOINT_DAMAGED;
    } else {
        entry->serial = checkpoint->manifest->serial;
        entry->parts = checkpoint->manifest->parts;
        entry->tensors = checkpoint->manifest->tensors;
    }
    pli_checkpoint_close(&checkpoint);
    pli_free(manifest);
}

static plait_status add_entry(const char *name, pli_checkpoint_list *list, int64_t *capacity, plait_error *err) {
    if (!pli_grow((void **)&list->entry, capacity, list->n + 1, sizeof *list->entry))
        return pli_fail(err, PLAIT_ENOMEM, "no memory to list checkpoints");
    pli_checkpoint_entry *entry = &list->entry[list->n++];
    *entry = (pli_checkpoint_entry){ .why = { .rank = -1 } };
    memcpy(entry->folder, name, strlen(name) + 1);
    return PLAIT_OK;
}

plait_status pli_checkpoint_list_read(const char *dir, pli_checkpoint_list *list_out, plait_error *err) {
    pli_checkpoint_list list = { 0 };
    pli_text            names = { 0 };
    int64_t             capacity = 0;
    plait_status        status = pli_list_directory(dir, &names, err);
    for (char *line = names.data, *end; status == PLAIT_OK && line != NULL && (end = strchr(line, '\n')) != NULL;
         line = end + 1) {
        *end = '\0';
        if (pli_checkpoint_folder_read(line, NULL, NULL)) status = add_entry(line, &list, &capacity, err);
    }
    pli_text_free(&names);
    for (int64_t i = 0; status == PLAIT_OK && i < list.n; i++) {
        describe(dir, &list.entry[i]);
        if (list.entry[i].why.code == PLAIT_ENOMEM) status = pli_fail(err, PLAIT_ENOMEM, "%s", list.entry[i].why.text);
    }
    if (status == PLAIT_OK) sort_entries(list.entry, list.n);
    if (status == PLAIT_OK)
        *list_out = list;
    else
        pli_checkpoint_list_free(&list);
    return status;
}

void pli_checkpoint_list_free(pli_checkpoint_list *list) {
    pli_free(list->entry);
    *list = (pli_checkpoint_list){ .entry = NULL };
}

bool pli_checkpoint_is_none(const char *dir) {
    pli_checkpoint_list list = { 0 };
    bool                none = true;
    if (pli_checkpoint_list_read(dir, &list, NULL) < 0) return !pli_file_exists(dir);
    for (int64_t i = 0; i < list.n; i++) none = none && list.entry[i].state == PLI_CHECKPOINT_UNFINISHED;
    pli_checkpoint_list_free(&list);
    return none;
}

/* --- the newest good one ---------------------------------------------------------------------------------- */

static plait_status open_verified(const char *dir, const char *folder, pli_checkpoint **checkpoint_out,
                                  plait_error *err) {
    pli_checkpoint *checkpoint = NULL;
    PLI_TRY(pli_checkpoint_open_at(dir, folder, &checkpoint, err));
    plait_status status = pli_checkpoint_verify(checkpoint, err);
    if (status == PLAIT_OK)
        *checkpoint_out = checkpoint;
    else
        pli_checkpoint_close(&checkpoint);
    return status;
}

/* There are checkpoints, but none is good. why: the newest one's fault. */
static plait_status none_good(const char *dir, const pli_checkpoint_list *list, const plait_error *why,
                              plait_error *err) {
    if (why->code != PLAIT_OK)
        return pli_fail(err, PLAIT_ECHECKSUM, "%s: none of its checkpoints is good; the newest: %s", dir, why->text);
    return pli_fail(err, PLAIT_ENAME, "%s: holds no checkpoint%s", dir,
                    list->n > 0 ? " that was written to its end" : "");
}

plait_status pli_checkpoint_open(const char *dir, pli_checkpoint **checkpoint_out, pli_text *passed_over,
                                 plait_error *err) {
    pli_checkpoint_list list = { 0 };
    plait_error         first = { .code = PLAIT_OK };
    plait_status        status = PLAIT_ENAME;
    PLI_TRY(pli_checkpoint_list_read(dir, &list, err));
    for (int64_t i = list.n - 1; i >= 0 && status < 0 && status != PLAIT_ENOMEM; i--) {
        pli_checkpoint_entry *entry = &list.entry[i];
        plait_error           why = entry->why;
        if (entry->state == PLI_CHECKPOINT_COMPLETE) status = open_verified(dir, entry->folder, checkpoint_out, &why);
        if (status == PLAIT_OK) break;
        const char *reason = entry->state == PLI_CHECKPOINT_UNFINISHED ? "was not written to its end" : why.text;
        if (entry->state != PLI_CHECKPOINT_UNFINISHED && first.code == PLAIT_OK) first = why;
        if (passed_over != NULL) pli_text_add(passed_over, "%s: %s\n", entry->folder, reason);
    }
    if (status == PLAIT_ENOMEM)
        status = pli_fail(err, PLAIT_ENOMEM, "no memory to open a checkpoint");
    else if (status < 0)
        status = none_good(dir, &list, &first, err);
    pli_checkpoint_list_free(&list);
    return status;
}
