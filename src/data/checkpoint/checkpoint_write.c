/* Writing a checkpoint: parts are streamed, the manifest is written last, and checkpoints that are too old are removed.
 *
 * The promise relies on the order of the steps; each begins only when the one before is on the disk:
 *   1. the folder is made, DIR is synced                               the folder stays
 *   2. each part: temporary name, fsync, rename, fsync of the folder   the part is whole and has its name
 *   3. the manifest: the same                                          the checkpoint exists
 *   4. older ones: the manifest is removed, fsync of the folder, then the rest   never a manifest without its parts
 * A failure is reported and leaves earlier checkpoints untouched. */
#include "data/checkpoint/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/checkpoint/manifest.h"
#include "data/data.h"

enum { MOST_COPIES = 9999 };

static const char manifest_name[] = "manifest.json";

/* --- folders ---------------------------------------------------------------------------------------------- */

static plait_status check_folder(const char *folder, plait_error *err) {
    return pli_checkpoint_folder_read(folder, NULL, NULL)
               ? PLAIT_OK
               : pli_fail(err, PLAIT_EINVAL, "'%.80s' is not the folder of a checkpoint; expected a name such as "
                                             "checkpoint-000000000500",
                          folder);
}

/* If DIR is new, its parent is synced. The parent must exist. */
static plait_status make_dir(const char *dir, plait_error *err) {
    bool   made = false;
    size_t length = strlen(dir);
    char  *bare = NULL;
    while (length > 1 && dir[length - 1] == '/') length--;
    bare = pli_format("%.*s", (int)length, dir);
    if (bare == NULL) return pli_fail(err, PLAIT_ENOMEM, "%s: no memory to make it", dir);
    plait_status status = pli_make_new_directory(bare, &made, err);
    if (status == PLAIT_OK && made) status = pli_sync_directory_of(bare, err);
    pli_free(bare);
    return status;
}

static plait_status make_folder(const char *dir, const char *folder, bool *made_out, plait_error *err) {
    char *path = pli_format("%s/%s", dir, folder);
    if (path == NULL) return pli_fail(err, PLAIT_ENOMEM, "%s: no memory to make a folder", dir);
    plait_status status = pli_make_new_directory(path, made_out, err);
    pli_free(path);
    return status;
}

plait_status pli_checkpoint_begin(const char *dir, int64_t clock, char folder_out[PLI_CHECKPOINT_FOLDER],
                                  plait_error *err) {
    char folder[PLI_CHECKPOINT_FOLDER];
    bool made = false;
    if (dir[0] == '\0' || clock < 0)
        return pli_fail(err, PLAIT_EINVAL, "checkpoint: no directory, or a negative clock");
    PLI_TRY(make_dir(dir, err));
    for (int32_t copy = 1; !made; copy++) {
        if (copy > MOST_COPIES)
            return pli_fail(err, PLAIT_EIO, "%s: %d checkpoints of clock %lld are there; take another directory", dir,
                            MOST_COPIES, (long long)clock);
        char suffix[8] = "";
        if (copy > 1) snprintf(suffix, sizeof suffix, "-%d", copy);
        snprintf(folder, sizeof folder, "checkpoint-%012lld%s", (long long)clock, suffix);
        PLI_TRY(make_folder(dir, folder, &made, err));
    }
    PLI_TRY(pli_sync_directory(dir, err));
    memcpy(folder_out, folder, sizeof folder);
    return PLAIT_OK;
}

/* --- parts ------------------------------------------------------------------------------------------------ */

struct pli_partfile {
    pli_outfile      *file;
    pli_hasher       *all, *one;
    pli_manifest_part part;
    int64_t           current; /* the piece that the next bytes belong to */
    int64_t           filled;  /* its bytes so far           */
};

static void free_part(pli_partfile *part) {
    pli_manifest_part_free(&part->part);
    pli_hasher_destroy(&part->all);
    pli_hasher_destroy(&part->one);
    pli_outfile_abandon(&part->file);
    pli_free(part);
}

/* The name of a piece in its file, where all names must differ: NAME if it is the whole tensor, else NAME@FIRST; the
 * k-th loose piece is NAME@+k. */
static char *name_in_file(const pli_checkpoint_tensor *tensors, int64_t i) {
    const pli_checkpoint_tensor *tensor = &tensors[i];
    int64_t                      before = 0;
    if (tensor->first == PLI_CHECKPOINT_LOOSE) {
        for (int64_t k = 0; k < i; k++) before += strcmp(tensors[k].name, tensor->name) == 0;
        return pli_format("%s@+%lld", tensor->name, (long long)before);
    }
    if (tensor->first == 0 && tensor->shape[0] == tensor->rows) return pli_strdup(tensor->name);
    return pli_format("%s@%lld", tensor->name, (long long)tensor->first);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const pli_tensor *)a)->name, ((const pli_tensor *)b)->name);
}

/* Fills stored [n] with the tensors as their file has them; the caller frees the names, also after a failure. */
static plait_status store_names(const pli_checkpoint_tensor *tensors, int64_t n, pli_tensor *stored, plait_error *err) {
    for (int64_t i = 0; i < n; i++) {
        stored[i] = (pli_tensor){ .name = name_in_file(tensors, i), .type = tensors[i].type, .dims = tensors[i].dims };
        if (stored[i].name == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a part's header");
        memcpy(stored[i].shape, tensors[i].shape, sizeof stored[i].shape);
        stored[i].bytes = (size_t)(pli_checkpoint_row_bytes(&tensors[i]) * tensors[i].shape[0]);
    }
    return PLAIT_OK;
}

static plait_status check_distinct(const pli_tensor *stored, int64_t n, plait_error *err) {
    plait_status status = PLAIT_OK;
    pli_tensor  *sorted = pli_array((size_t)n, sizeof *sorted);
    if (sorted == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a part's header");
    if (n > 0) memcpy(sorted, stored, (size_t)n * sizeof *sorted);
    if (n > 0) qsort(sorted, (size_t)n, sizeof *sorted, by_name);
    for (int64_t i = 1; i < n && status == PLAIT_OK; i++)
        if (by_name(&sorted[i - 1], &sorted[i]) == 0)
            status =
                pli_fail(err, PLAIT_EINVAL, "two tensors, or two pieces from one row on, named %s", sorted[i].name);
    pli_free(sorted);
    return status;
}

static plait_status header_of(const pli_checkpoint_tensor *tensors, int64_t n, const char *const *metadata,
                              pli_text *header, plait_error *err) {
    pli_tensor *stored = pli_calloc((size_t)n, sizeof *stored);
    if (stored == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a part's header");
    plait_status status = store_names(tensors, n, stored, err);
    if (status == PLAIT_OK) status = check_distinct(stored, n, err);
    if (status == PLAIT_OK) status = pli_safetensors_begin(stored, n, metadata, false, header, err);
    for (int64_t i = 0; i < n; i++) pli_free((void *)(uintptr_t)stored[i].name);
    pli_free(stored);
    return status;
}

static plait_status copy_tensors(const pli_checkpoint_tensor *tensors, int64_t n, pli_partfile *part,
                                 plait_error *err) {
    part->part.piece = pli_calloc((size_t)n, sizeof *part->part.piece);
    bool fits = part->part.piece != NULL;
    for (; fits && part->part.n < n; part->part.n++) {
        pli_piece *piece = &part->part.piece[part->part.n];
        fits = pli_piece_copy(&tensors[part->part.n], piece);
        if (piece->tensor.first == PLI_CHECKPOINT_LOOSE) piece->tensor.rows = PLI_CHECKPOINT_LOOSE;
    }
    return fits ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for a part of a checkpoint");
}

/* Writes bytes that belong to the file as a whole. */
static plait_status put(pli_partfile *part, const void *data, size_t bytes, plait_error *err) {
    PLI_TRY(pli_outfile_write(part->file, data, bytes, err));
    pli_hasher_add(part->all, data, bytes);
    part->part.bytes += (int64_t)bytes;
    return PLAIT_OK;
}

/* Ends pieces that are full, including those without bytes. */
static void end_pieces(pli_partfile *part) {
    while (part->current < part->part.n && part->filled == part->part.piece[part->current].bytes) {
        part->part.piece[part->current++].xxh3 = pli_hasher_64(part->one);
        pli_hasher_reset(part->one);
        part->filled = 0;
    }
}

static plait_status put_header(pli_partfile *part, const pli_checkpoint_tensor *tensors, int64_t n, const char *folder,
                               plait_error *err) {
    char        number[32];
    const char *metadata[] = { "format", "plait checkpoint", "checkpoint", folder, "part", number, NULL };
    pli_text    header = { 0 };
    snprintf(number, sizeof number, "%d of %d", part->part.number, part->part.parts);
    plait_status status = header_of(tensors, n, metadata, &header, err);
    if (status == PLAIT_OK) {
        part->part.header_bytes = (int64_t)header.length;
        part->part.header_xxh3 = pli_hash_bytes(header.data, header.length, 0);
        status = put(part, header.data, header.length, err);
    }
    pli_text_free(&header);
    end_pieces(part);
    return status;
}

static plait_status open_part(const char *dir, const char *folder, pli_partfile *part, plait_error *err) {
    char name[PLI_PART_NAME];
    pli_part_name(part->part.number, part->part.parts, name);
    char *path = pli_format("%s/%s/%s", dir, folder, name);
    part->all = pli_hasher_create();
    part->one = pli_hasher_create();
    plait_status status = path != NULL && part->all != NULL && part->one != NULL
                              ? pli_outfile_open(path, &part->file, err)
                              : pli_fail(err, PLAIT_ENOMEM, "no memory for a part of a checkpoint");
    pli_free(path);
    return status;
}

plait_status pli_partfile_begin(const char *dir, const char *folder, int32_t part, int32_t parts,
                                const pli_checkpoint_tensor *tensors, int64_t n, pli_partfile **part_out,
                                plait_error *err) {
    if (parts < 1 || parts > PLI_CHECKPOINT_PARTS || part < 0 || part >= parts || n < 0)
        return pli_fail(err, PLAIT_EINVAL, "part %d of %d of a checkpoint; expected 1 to %d parts, counted from 0",
                        part, parts, PLI_CHECKPOINT_PARTS);
    PLI_TRY(check_folder(folder, err));
    pli_partfile *file = pli_calloc(1, sizeof *file);
    if (file == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a part of a checkpoint");
    file->part = (pli_manifest_part){ .number = part, .parts = parts };
    plait_status status = PLAIT_OK;
    for (int64_t i = 0; i < n && status == PLAIT_OK; i++) status = pli_piece_check(&tensors[i], PLAIT_EINVAL, err);
    if (status == PLAIT_OK) status = copy_tensors(tensors, n, file, err);
    if (status == PLAIT_OK) status = open_part(dir, folder, file, err);
    if (status == PLAIT_OK) status = put_header(file, tensors, n, folder, err);
    if (status == PLAIT_OK)
        *part_out = file;
    else
        free_part(file);
    return status;
}

plait_status pli_partfile_write(pli_partfile *part, const void *data, size_t bytes, plait_error *err) {
    const char *at = data;
    while (bytes > 0) {
        if (part->current == part->part.n)
            return pli_fail(err, PLAIT_EINVAL, "part %d: %zu bytes more than its tensors have", part->part.number,
                            bytes);
        int64_t left = part->part.piece[part->current].bytes - part->filled;
        size_t  take = (uint64_t)left < bytes ? (size_t)left : bytes;
        PLI_TRY(put(part, at, take, err));
        pli_hasher_add(part->one, at, take);
        part->filled += (int64_t)take;
        at += take;
        bytes -= take;
        end_pieces(part);
    }
    return PLAIT_OK;
}

plait_status pli_partfile_end(pli_partfile **part, pli_text *digest, plait_error *err) {
    pli_partfile *file = *part;
    plait_status  status = PLAIT_OK;
    *part = NULL;
    if (file->current < file->part.n)
        status = pli_fail(err, PLAIT_EINVAL, "part %d: tensor %s has %lld of %lld bytes", file->part.number,
                          file->part.piece[file->current].tensor.name, (long long)file->filled,
                          (long long)file->part.piece[file->current].bytes);
    if (status == PLAIT_OK) status = pli_outfile_commit(&file->file, err);
    if (status == PLAIT_OK) {
        pli_hasher_128(file->all, file->part.xxh128);
        pli_manifest_part_write(&file->part, digest);
        if (digest->failed) status = pli_fail(err, PLAIT_ENOMEM, "no memory for a part's digest");
    }
    free_part(file);
    return status;
}

void pli_partfile_abandon(pli_partfile **part) {
    if (part == NULL || *part == NULL) return;
    free_part(*part);
    *part = NULL;
}

/* --- the manifest ----------------------------------------------------------------------------------------- */

/* One more than the highest serial in DIR. */
static plait_status next_serial(const char *dir, int64_t *serial_out, plait_error *err) {
    pli_checkpoint_list list = { 0 };
    int64_t             serial = 0;
    PLI_TRY(pli_checkpoint_list_read(dir, &list, err));
    for (int64_t i = 0; i < list.n; i++)
        if (list.entry[i].serial > serial) serial = list.entry[i].serial;
    pli_checkpoint_list_free(&list);
    if (serial == INT64_MAX)
        return pli_fail(err, PLAIT_EIO, "%s: it has the highest serial that is possible; take another directory", dir);
    *serial_out = serial + 1;
    return PLAIT_OK;
}

static plait_status check_parts_there(const char *dir, const char *folder, const pli_manifest *manifest,
                                      plait_error *err) {
    plait_status status = PLAIT_OK;
    for (int32_t i = 0; i < manifest->parts && status == PLAIT_OK; i++) {
        char name[PLI_PART_NAME];
        pli_part_name(i, manifest->parts, name);
        char *path = pli_format("%s/%s/%s", dir, folder, name);
        if (path == NULL)
            status = pli_fail(err, PLAIT_ENOMEM, "no memory to commit a checkpoint");
        else if (pli_file_bytes(path) != manifest->part[i].bytes)
            status =
                pli_fail(err, PLAIT_EIO, "%s is not there as it was written; all ranks must see the same directory",
                         path);
        pli_free(path);
    }
    return status;
}

static plait_status write_manifest(const char *dir, const char *folder, const pli_manifest *manifest,
                                   plait_error *err) {
    pli_outfile *file = NULL;
    pli_text     text = { 0 };
    char        *path = pli_format("%s/%s/%s", dir, folder, manifest_name);
    plait_status status = path != NULL ? pli_manifest_write(manifest, &text, err)
                                       : pli_fail(err, PLAIT_ENOMEM, "no memory to commit a checkpoint");
    if (status == PLAIT_OK) status = pli_outfile_open(path, &file, err);
    if (status == PLAIT_OK) status = pli_outfile_write(file, text.data, text.length, err);
    if (status == PLAIT_OK) status = pli_outfile_commit(&file, err);
    pli_outfile_abandon(&file);
    pli_text_free(&text);
    pli_free(path);
    return status;
}

plait_status pli_checkpoint_commit(const char *dir, const char *folder, const char *meta, const char *const *digests,
                                   int32_t n, plait_error *err) {
    pli_manifest *manifest = NULL;
    int64_t       serial = 0, clock = 0;
    PLI_TRY(check_folder(folder, err));
    (void)pli_checkpoint_folder_read(folder, &clock, NULL);
    PLI_TRY(next_serial(dir, &serial, err));
    PLI_TRY(pli_manifest_join(serial, clock, meta, digests, n, &manifest, err));
    plait_status status = check_parts_there(dir, folder, manifest, err);
    if (status == PLAIT_OK) status = write_manifest(dir, folder, manifest, err);
    if (status == PLAIT_OK) status = pli_sync_directory(dir, err);
    pli_manifest_free(&manifest);
    return status;
}

/* --- removing ----------------------------------------------------------------------------------------------- */

static bool begins_with(const char *name, const char *prefix) { return strncmp(name, prefix, strlen(prefix)) == 0; }

/* Is it a part or a manifest, whole or half written? */
static bool is_ours(const char *name) {
    return begins_with(name, manifest_name) || (begins_with(name, "part-") && strstr(name, ".safetensors") != NULL);
}

/* Removes a file of a folder; `sync` (for the manifest) then syncs the folder. */
static plait_status remove_file(const char *folder_path, const char *name, bool sync, plait_error *err) {
    char *path = pli_format("%s/%s", folder_path, name);
    if (path == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to remove a checkpoint");
    plait_status status = PLAIT_OK;
    if (!sync || pli_file_exists(path)) status = pli_remove(path, err);
    if (status == PLAIT_OK && sync) status = pli_sync_directory(folder_path, err);
    pli_free(path);
    return status;
}

/* names has one name on each line. Our own files are removed; *foreign_out: there is another. */
static plait_status remove_files(const char *folder_path, char *names, bool *foreign_out, plait_error *err) {
    for (char *line = names, *end; line != NULL && *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        if (end == NULL) break;
        *end = '\0';
        if (!is_ours(line))
            *foreign_out = true;
        else
            PLI_TRY(remove_file(folder_path, line, false, err));
    }
    return PLAIT_OK;
}

/* Another rank that was taken for dead may remove it at the same time: a file that is already gone is fine. */
static plait_status discard(const char *path, plait_error *err) {
    pli_text names = { 0 };
    bool     foreign = false;
    plait_status status = remove_file(path, manifest_name, true, err);
    if (status == PLAIT_OK) status = pli_list_directory(path, &names, err);
    if (status == PLAIT_OK) status = remove_files(path, names.data, &foreign, err);
    if (status == PLAIT_OK && !foreign) status = pli_remove(path, err);
    pli_text_free(&names);
    return status < 0 && !pli_is_directory(path) ? PLAIT_OK : status;
}

plait_status pli_checkpoint_discard(const char *dir, const char *folder, plait_error *err) {
    PLI_TRY(check_folder(folder, err));
    char *path = pli_format("%s/%s", dir, folder);
    if (path == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to remove a checkpoint");
    plait_status status = pli_is_directory(path) ? discard(path, err) : PLAIT_OK;
    pli_free(path);
    return status;
}

static bool was_unfinished(const pli_checkpoint_list *before, const char *folder) {
    for (int64_t i = 0; i < before->n; i++)
        if (strcmp(before->entry[i].folder, folder) == 0) return before->entry[i].state == PLI_CHECKPOINT_UNFINISHED;
    return false;
}

plait_status pli_checkpoint_prune(const char *dir, int32_t keep, const pli_checkpoint_list *before, plait_error *err) {
    pli_checkpoint_list list = { 0 };
    plait_status        status = PLAIT_OK;
    int32_t             good = 0;
    if (keep < 1) return pli_fail(err, PLAIT_EINVAL, "checkpoint: at least one must be kept, not %d", keep);
    PLI_TRY(pli_checkpoint_list_read(dir, &list, err));
    for (int64_t i = list.n - 1; i >= 0; i--) { /* the newest come first */
        const pli_checkpoint_entry *entry = &list.entry[i];
        const bool unfinished = entry->state == PLI_CHECKPOINT_UNFINISHED, old = good >= keep && !unfinished;
        const bool left_over = unfinished && (before == NULL || was_unfinished(before, entry->folder));
        good += entry->state == PLI_CHECKPOINT_COMPLETE;
        if (!old && !left_over) continue;
        plait_status removed = pli_checkpoint_discard(dir, entry->folder, status == PLAIT_OK ? err : NULL);
        if (status == PLAIT_OK) status = removed;
    }
    pli_checkpoint_list_free(&list);
    return status;
}
