/* Reader of event logs, the files: maps them, checks their chunks once, and sorts the chunks by stream. It checks all
 * sizes and numbers before it uses them. eventcursor.c reads the records. See eventlog.h. */
#include <string.h>

#include "watch/eventfile.h"

/* --- files and chunks --------------------------------------------------------------------------------------------- */

/* code: side + PLI_SIDES * (life - 1) */
static uint64_t stream_key(uint32_t group, int32_t rank, int code) {
    return (uint64_t)group << 32 | (uint64_t)code << 16 | (uint64_t)rank;
}

static bool add_chunk(pli_logfile *file, uint32_t group, int32_t rank, int code, const unsigned char *begin,
                      const unsigned char *end) {
    if (!pli_grow((void **)&file->chunk, &file->chunks_capacity, file->chunks + 1, sizeof *file->chunk) ||
        !pli_grow((void **)&file->stream, &file->streams_capacity, file->streams + 1, sizeof *file->stream))
        return false;
    const int64_t of = pli_keymap_add(&file->index, stream_key(group, rank, code));
    if (of < 0) return false;
    if (of == file->streams)
        file->stream[file->streams++] =
            (log_side){ .group = group, .rank = rank, .side = code % PLI_SIDES, .life = 1 + code / PLI_SIDES,
                        .first = file->chunks };
    else
        file->chunk[file->stream[of].last].next = file->chunks;
    file->stream[of].last = file->chunks;
    file->chunk[file->chunks++] = (log_chunk){ .begin = begin, .end = end, .next = -1 };
    return true;
}

static plait_status check_head(const pli_logfile *file, const char *path, const pli_mapped *mapped, plait_error *err) {
    const unsigned char *head = mapped->data;
    if (mapped->bytes < PLI_LOG_HEAD_BYTES || memcmp(head, "plaitlog", 8) != 0)
        return pli_fail(err, PLAIT_EFORMAT, "%s: %s", path,
                        mapped->bytes == 0 ? "is empty: no event log"
                                           : "is no event log (train --events FILE writes one)");
    uint32_t version = pli_log_u32(head + 8);
    if (version < PLI_EVENTLOG_OLDEST || version > PLI_EVENTLOG_VERSION)
        return pli_fail(err, PLAIT_EFORMAT, "%s: event log of version %u; this plait reads versions %d to %d", path,
                        version, PLI_EVENTLOG_OLDEST, PLI_EVENTLOG_VERSION);
    if (memcmp(head + 16, file->mapped[0].data + 16, 16) != 0)
        return pli_fail(err, PLAIT_EFORMAT, "%s: is of another run (%.16s) than the first file (%.16s)", path,
                        (const char *)head + 16, (const char *)file->mapped[0].data + 16);
    return PLAIT_OK;
}

static plait_status garbled(const char *path, const unsigned char *at, const pli_mapped *mapped, plait_error *err) {
    return pli_fail(err, PLAIT_EFORMAT, "%s: is garbled at byte %zu", path, (size_t)(at - mapped->data));
}

/* Workers alone have later lives, and only in the job of all. */
static bool is_stream(unsigned char code, uint32_t group, uint32_t version) {
    if (code < PLI_SIDES) return true;
    return version >= 13 && group == 0 && code % PLI_SIDES == 0 && code / PLI_SIDES < PLI_LOG_LIVES_MAX;
}

/* Reads the chunks of one file. *whole_out: the file has its end. */
static plait_status read_chunks(pli_logfile *file, const char *path, const pli_mapped *mapped, bool *whole_out,
                                plait_error *err) {
    const unsigned char *at = mapped->data + PLI_LOG_HEAD_BYTES, *end = mapped->data + mapped->bytes;
    const uint32_t       version = pli_log_u32(mapped->data + 8);
    *whole_out = false;
    for (uint64_t n = 0; end - at >= PLI_LOG_CHUNK_BYTES; n++) {
        uint32_t             rank = pli_log_u32(at + 4), bytes = pli_log_u32(at + 8);
        const uint32_t       group = (uint32_t)at[2] | (uint32_t)at[3] << 8;
        const unsigned char *records = at + PLI_LOG_CHUNK_BYTES;
        bool                 is_end = at[0] == 'E';
        if ((at[0] != 'R' && !is_end) || !is_stream(at[1], group, version) || rank >= PLI_LOG_RANKS_MAX ||
            group >= (version < 6 ? 1 : PLI_LOG_GROUPS_MAX))
            return garbled(path, at, mapped, err);
        if (bytes > (size_t)(end - records)) return PLAIT_OK; /* the chunk is cut */
        if (pli_log_u32(at + 12) != pli_log_checksum(at, records, bytes)) return garbled(path, at, mapped, err);
        if (is_end) {
            *whole_out = true;
            bool right = bytes == 8 && records + 8 == end &&
                         (pli_log_u32(records) | (uint64_t)pli_log_u32(records + 4) << 32) == n;
            return right ? PLAIT_OK : garbled(path, at, mapped, err);
        }
        if (!add_chunk(file, group, (int32_t)rank, at[1], records, records + bytes))
            return pli_fail(err, PLAIT_ENOMEM, "%s: no memory to read it", path);
        at = records + bytes;
    }
    return PLAIT_OK;
}

/* A file that is given twice would have each of its events happen twice. Files that have a head and an end alone are
 * equal, though they are of several ranks. */
static plait_status check_twice(const pli_logfile *file, const char *path, const pli_mapped *mapped, plait_error *err) {
    const size_t bare = PLI_LOG_HEAD_BYTES + PLI_LOG_CHUNK_BYTES + 8;
    for (const pli_mapped *m = file->mapped; m < mapped; m++)
        if (m->bytes == mapped->bytes && m->bytes > bare && memcmp(m->data, mapped->data, m->bytes) == 0)
            return pli_fail(err, PLAIT_EFORMAT, "%s: is the same log as a file before it; give each once", path);
    return PLAIT_OK;
}

static plait_status open_one(pli_logfile *file, const char *path, plait_error *err) {
    pli_mapped *mapped = &file->mapped[file->files];
    bool        whole;
    PLI_TRY(pli_map_file(path, mapped, err));
    file->files++;
    PLI_TRY(check_head(file, path, mapped, err));
    PLI_TRY(check_twice(file, path, mapped, err));
    int64_t before = file->chunks;
    PLI_TRY(read_chunks(file, path, mapped, &whole, err));
    for (int64_t i = 0; !whole && i < file->streams; i++)
        file->stream[i].cut = file->stream[i].cut || file->stream[i].last >= before;
    if (whole || file->cut != NULL) return PLAIT_OK;
    file->cut = pli_strdup(path);
    return file->cut != NULL ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "%s: no memory to read it", path);
}

plait_status pli_logfile_open(const char *const *paths, int32_t n, pli_logfile **file_out, plait_error *err) {
    pli_logfile *file = pli_calloc(1, sizeof *file);
    if (file == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for an event log");
    plait_status status = PLAIT_OK;
    pli_keymap_init(&file->index);
    file->mapped = pli_calloc((size_t)n, sizeof *file->mapped);
    if (file->mapped == NULL) status = pli_fail(err, PLAIT_ENOMEM, "no memory for an event log");
    for (int32_t i = 0; status >= 0 && i < n; i++) status = open_one(file, paths[i], err);
    if (status < 0) pli_logfile_close(&file);
    *file_out = file;
    return status;
}

void pli_logfile_close(pli_logfile **file_ptr) {
    pli_logfile *file = *file_ptr;
    *file_ptr = NULL;
    if (file == NULL) return;
    for (int32_t i = 0; i < file->files; i++) pli_unmap_file(&file->mapped[i]);
    pli_free(file->mapped);
    pli_free(file->cut);
    pli_free(file->chunk);
    pli_free(file->stream);
    pli_keymap_destroy(&file->index);
    pli_free(file);
}

const char *pli_logfile_cut(const pli_logfile *file) { return file->cut; }
int32_t     pli_logfile_streams(const pli_logfile *file) { return (int32_t)file->streams; }
int32_t     pli_logfile_rank(const pli_logfile *file, int32_t stream) { return file->stream[stream].rank; }
int32_t     pli_logfile_life(const pli_logfile *file, int32_t stream) { return file->stream[stream].life; }
bool        pli_logfile_is_server(const pli_logfile *file, int32_t stream) {
    return file->stream[stream].side > 0 && file->stream[stream].side != PLI_SIDE_LOCKS;
}
bool        pli_logfile_is_locks(const pli_logfile *file, int32_t stream) {
    return file->stream[stream].side == PLI_SIDE_LOCKS;
}
uint32_t    pli_logfile_group(const pli_logfile *file, int32_t stream) { return file->stream[stream].group; }
bool        pli_logfile_stream_is_cut(const pli_logfile *file, int32_t stream) { return file->stream[stream].cut; }
