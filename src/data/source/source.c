/* Finding and opening the sources of a data set. */
#include "data/data.h"
#include "data/source/source.h"

#include "data/formats/foreign.h"

#include <stdint.h>
#include <string.h>

/* A file of weights has at most WEIGHT_BYTES bytes for each byte of the data; a row of data has at least two. */
enum { SPOOL_MEMORY = 64 << 20, WEIGHT_BYTES = 16 };

static plait_status no_memory(plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory for the list of files");
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* --- one source ------------------------------------------------------------------------------------------- */

static plait_status receive(int fd, const char *name, pli_spool *spool, plait_error *err) {
    pli_intake     in = { .name = name, .spool = spool };
    size_t         got = 1;
    plait_status   status = PLAIT_OK;
    unsigned char *buffer = pli_malloc(1 << 18);
    if (buffer == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to receive data");
    while (status == PLAIT_OK && got > 0) {
        status = pli_pipe_read(fd, buffer, 1 << 18, &got, err);
        if (status == PLAIT_OK) status = pli_intake_add(&in, buffer, got, err);
    }
    pli_free(buffer);
    return status;
}

static plait_status open_live(pli_source *source, int fd, const char *name, plait_error *err) {
    plait_status status = pli_live_open(fd, name, source->spool, &source->live, err);
    if (status == PLAIT_OK) status = pli_live_take_front(source, err);
    if (status == PLAIT_OK && source->live != NULL && pli_is_packed(source->data, source->bytes))
        status = pli_live_more(source, true, err);
    return status;
}

static plait_status open_pipe(pli_source *source, const char *name, bool live, pli_spill *spill, plait_error *err) {
    int fd = -1;
    PLI_TRY(pli_spool_create(SPOOL_MEMORY, spill, &source->spool, err));
    PLI_TRY(pli_pipe_open(source->path, &fd, err));
    if (live) return open_live(source, fd, name, err);
    plait_status status = receive(fd, name, source->spool, err);
    pli_pipe_close(fd);
    if (status == PLAIT_EIO) return pli_fail_at(err, "%s", name), status;
    if (status == PLAIT_OK) status = pli_spool_end(source->spool, &source->data, &source->bytes, err);
    source->droppable = status == PLAIT_OK && pli_spool_is_file(source->spool);
    return status;
}

static plait_status open_file(pli_source *source, plait_error *err) {
    PLI_TRY(pli_map_file(source->path, &source->mapped, err));
    source->data = source->mapped.data;
    source->bytes = source->mapped.bytes;
    source->droppable = true;
    return PLAIT_OK;
}

/* The opened file is packed: unpacks it and closes it. */
static plait_status unpack(pli_source *source, const char *name, pli_spill *spill, plait_error *err) {
    pli_spool   *packed = source->spool;
    plait_status status;
    source->spool = NULL;
    status = pli_spool_create(SPOOL_MEMORY, spill, &source->spool, err);
    pli_intake in = { .name = name, .spool = source->spool };
    if (status == PLAIT_OK) status = pli_inflate(source->data, source->bytes, &in, err);
    if (status == PLAIT_OK) status = pli_spool_end(source->spool, &source->data, &source->bytes, err);
    source->droppable = status == PLAIT_OK && pli_spool_is_file(source->spool);
    pli_spool_destroy(&packed);
    if (status == PLAIT_OK && source->mapped.data != NULL) status = pli_map_check(source->path, &source->mapped, err);
    pli_unmap_file(&source->mapped);
    return status;
}

static plait_status read_weights(pli_source *source, const char *path, plait_error *err) {
    pli_text     text = { 0 };
    int64_t      capacity = 0, line = 0;
    plait_status status = pli_read_whole(path, source->bytes * WEIGHT_BYTES + 4096, &text, err);
    for (char *at = text.data; status == PLAIT_OK && at != NULL && *at != '\0';) {
        char  *end = strchr(at, '\n'), *next = end != NULL ? end + 1 : at + strlen(at);
        double weight;
        void  *memory = source->weight;
        line++;
        for (end = end != NULL ? end : next; end > at && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t');) end--;
        *end = '\0';
        if (!pli_parse_f64(at, &weight) || weight < 0 || weight > 3e38)
            status = pli_fail(err, PLAIT_EFORMAT,
                              "%s:%lld: expected a weight (a finite number, not negative), found \"%.40s\"", path,
                              (long long)line, at);
        else if (!pli_grow(&memory, &capacity, source->weights + 1, sizeof *source->weight))
            status = pli_fail(err, PLAIT_ENOMEM, "%s: no memory for the weights", path);
        source->weight = memory;
        if (status == PLAIT_OK) source->weight[source->weights++] = (float)weight;
        at = next;
    }
    pli_text_free(&text);
    return status;
}

static plait_status find_weights(pli_source *source, plait_error *err) {
    char *path = pli_format("%s.weight", source->path);
    if (path == NULL) return no_memory(err);
    plait_status status = PLAIT_OK;
    if (pli_file_exists(path)) {
        status = read_weights(source, path, err);
    } else { /* for a packed file NAME.gz it may be NAME.weight */
        size_t n = strlen(source->path);
        if (ends_with(source->path, ".gz") || ends_with(source->path, ".zst")) {
            path[n] = '\0';
            strcpy(strrchr(path, '.'), ".weight");
            if (pli_file_exists(path)) status = read_weights(source, path, err);
        }
    }
    pli_free(path);
    return status;
}

static plait_status open_source(pli_source *source, bool is_pipe, bool live, pli_spill *spill, plait_error *err) {
    const char *name = strcmp(source->path, "-") == 0 ? "standard input" : source->path;
    PLI_TRY(is_pipe ? open_pipe(source, name, live, spill, err) : open_file(source, err));
    if (pli_is_packed(source->data, source->bytes)) PLI_TRY(unpack(source, name, spill, err));
    if (source->bytes == 0) return pli_fail(err, PLAIT_EFORMAT, "%s: empty, expected rows", name);
    PLI_TRY(pli_foreign_check(name, source->data, source->bytes, err));
    PLI_TRY(pli_source_check_text(name, source->data, source->bytes, err));
    if (source->bytes >= 3 && memcmp(source->data, "\xef\xbb\xbf", 3) == 0) source->begin = 3;
    return is_pipe ? PLAIT_OK : find_weights(source, err);
}

/* --- the list --------------------------------------------------------------------------------------------- */

static plait_status add_source(pli_sources *all, const char *path, bool live, plait_error *err) {
    void *memory = all->source;
    bool  is_pipe = pli_is_pipe(path);
    if (!pli_grow(&memory, &all->capacity, all->n + 1, sizeof *all->source)) return no_memory(err);
    all->source = memory;
    pli_source *source = &all->source[all->n];
    *source = (pli_source){ .path = pli_strdup(path) };
    if (source->path == NULL) return no_memory(err);
    all->n++; /* from here on, release frees it */
    all->is_pipe |= is_pipe;
    return open_source(source, is_pipe, live, &all->spill, err);
}

/* Is it a file that belongs to data and is no data itself? */
static bool is_companion(const char *name) { return ends_with(name, ".weight") || ends_with(name, ".plait-cache"); }

/* Adds each line of `names` to the list, as a file of `directory` (NULL: as a path). */
static plait_status list_lines(pli_text *list, const char *directory, pli_text *names, plait_error *err) {
    for (char *name = names->data; name != NULL && *name != '\0';) {
        char *end = strchr(name, '\n'), *next = end != NULL ? end + 1 : name + strlen(name);
        if (end != NULL) *end = '\0';
        char *path = directory != NULL ? pli_format("%s/%s", directory, name) : pli_strdup(name);
        if (path == NULL) return no_memory(err);
        if (!is_companion(path) && !pli_is_directory(path) && pli_file_bytes(path) != 0)
            pli_text_add(list, "%s\n", path);
        pli_free(path);
        name = next;
    }
    return PLAIT_OK;
}

static plait_status list_path(pli_text *list, const char *path, plait_error *err) {
    bool         directory = pli_is_directory(path);
    bool         pattern = !directory && strpbrk(path, "*?[") != NULL && !pli_file_exists(path);
    pli_text     names = { 0 };
    size_t       before = list->length;
    plait_status status;
    if (!directory && !pattern) {
        pli_text_add(list, "%s\n", path);
        return PLAIT_OK;
    }
    status = directory ? pli_list_directory(path, &names, err) : pli_glob(path, &names, err);
    if (status == PLAIT_OK) status = list_lines(list, directory ? path : NULL, &names, err);
    if (status == PLAIT_OK && list->length == before && !list->failed)
        status =
            pli_fail(err, PLAIT_EIO, directory ? "%s: no data files in this directory" : "%s: no file matches", path);
    pli_text_free(&names);
    return status;
}

plait_status pli_paths_check(const char *const *paths, int64_t n, plait_error *err) {
    if (n < 1)
        return pli_fail(err, PLAIT_EINVAL,
                        "no data given: expected files, a directory, a pattern, or - for the standard input");
    if (paths == NULL) return pli_fail(err, PLAIT_EINVAL, "plait_data_opts: paths is NULL, n_paths %lld", (long long)n);
    for (int64_t i = 0; i < n; i++)
        if (paths[i] == NULL) return pli_fail(err, PLAIT_EINVAL, "plait_data_opts: paths[%lld] is NULL", (long long)i);
    return PLAIT_OK;
}

plait_status pli_sources_list(const char *const *paths, int64_t n, pli_text *list, plait_error *err) {
    PLI_TRY(pli_paths_check(paths, n, err));
    for (int64_t i = 0; i < n; i++) PLI_TRY(list_path(list, paths[i], err));
    return list->failed ? no_memory(err) : PLAIT_OK;
}

static plait_status open_list(pli_sources *all, char *list, bool live, plait_error *err) {
    for (char *path = list; path != NULL && *path != '\0';) {
        char *end = strchr(path, '\n');
        *end = '\0';
        PLI_TRY(add_source(all, path, live, err));
        path = end + 1;
    }
    if (all->is_pipe && all->n > 1)
        return pli_fail(err, PLAIT_EINVAL, "standard input (-) or a pipe cannot be combined with files");
    return PLAIT_OK;
}

plait_status pli_sources_open(const char *const *paths, int64_t n, int64_t spill_limit, bool live,
                              pli_sources **sources_out, plait_error *err) {
    pli_text     list = { 0 };
    pli_sources *all = pli_calloc(1, sizeof *all);
    if (all == NULL) return no_memory(err);
    all->users = 1;
    all->spill.limit_bytes = spill_limit;
    plait_status status = pli_sources_list(paths, n, &list, err);
    if (status == PLAIT_OK) status = open_list(all, list.data, live, err);
    pli_text_free(&list);
    if (status < 0)
        pli_sources_release(&all);
    else
        *sources_out = all;
    return status;
}

static plait_status take_bytes(pli_sources *all, const char *name, const char *text, size_t bytes, plait_error *err) {
    const unsigned char *data = (const unsigned char *)text;
    all->source = pli_calloc(1, sizeof *all->source);
    if (all->source == NULL) return no_memory(err);
    all->n = all->capacity = 1;
    all->is_pipe = true;
    pli_source *source = &all->source[0];
    *source = (pli_source){ .path = pli_strdup(name), .data = data, .bytes = bytes };
    if (source->path == NULL) return no_memory(err);
    if (bytes == 0) return pli_fail(err, PLAIT_EFORMAT, "%s: empty, expected rows", name);
    PLI_TRY(pli_foreign_check(name, data, bytes, err));
    PLI_TRY(pli_source_check_text(name, data, bytes, err));
    if (bytes >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0) source->begin = 3;
    return PLAIT_OK;
}

plait_status pli_sources_of_bytes(const char *name, const char *text, size_t bytes, pli_sources **sources_out,
                                  plait_error *err) {
    pli_sources *all = pli_calloc(1, sizeof *all);
    if (all == NULL) return no_memory(err);
    all->users = 1;
    const plait_status status = take_bytes(all, name, text, bytes, err);
    if (status < 0)
        pli_sources_release(&all);
    else
        *sources_out = all;
    return status;
}

void pli_sources_release(pli_sources **sources) {
    pli_sources *all = sources != NULL ? *sources : NULL;
    if (all == NULL) return;
    *sources = NULL;
    if (atomic_fetch_sub(&all->users, 1) > 1) return;
    for (int64_t i = 0; i < all->n; i++) {
        pli_free(all->source[i].path);
        pli_free(all->source[i].weight);
        pli_live_close(&all->source[i].live);
        pli_spool_destroy(&all->source[i].spool);
        if (all->source[i].mapped.data != NULL) pli_unmap_file(&all->source[i].mapped);
    }
    pli_free(all->source);
    pli_free(all);
}

plait_status pli_sources_check(const pli_sources *sources, plait_error *err) {
    for (int64_t i = 0; sources != NULL && i < sources->n; i++)
        if (sources->source[i].mapped.data != NULL)
            PLI_TRY(pli_map_check(sources->source[i].path, &sources->source[i].mapped, err));
    return PLAIT_OK;
}

int64_t pli_source_line(const pli_source *source, size_t at) {
    int64_t line = 1 + source->lines_before;
    for (const unsigned char *p = source->data, *end = source->data + at; p < end; line++, p++) {
        p = memchr(p, '\n', (size_t)(end - p));
        if (p == NULL) break;
    }
    return line;
}
