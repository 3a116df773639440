/* base/os_file.c - files: reading, listing and removing them. os_outfile.c writes them. */
#include "base/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/opts.h"

enum { BUFFER_BYTES = 1 << 20 };

/* --- reading ------------------------------------------------------------------------------------------- */

static int64_t mtime_of(const struct stat *info) {
    return (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

plait_status pli_map_file(const char *path, pli_mapped *mapped_out, plait_error *err) {
    plait_status status = PLAIT_OK;
    struct stat  info;
    void        *memory = NULL;
    int          fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return pli_fail_errno(err, errno, "%s", path);
    if (fstat(fd, &info) != 0)
        status = pli_fail_errno(err, errno, "%s", path);
    else if (S_ISDIR(info.st_mode))
        status = pli_fail(err, PLAIT_EIO, "%s: is a directory", path);
    else if (!S_ISREG(info.st_mode))
        status = pli_fail(err, PLAIT_EIO, "%s: not a regular file, cannot be mapped", path);
    if (status < 0) goto close_file;
    *mapped_out = (pli_mapped){ .data = (const unsigned char *)"", /* nothing to map if empty */
                                .device = info.st_dev,
                                .inode = info.st_ino,
                                .mtime_ns = mtime_of(&info) };
    if (info.st_size == 0) goto close_file;
    memory = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (memory == MAP_FAILED)
        status = pli_fail_errno(err, errno, "%s: cannot be mapped", path);
    else {
        mapped_out->data = memory;
        mapped_out->bytes = (size_t)info.st_size;
    }
close_file:
    close(fd);
    return status;
}

void pli_unmap_file(pli_mapped *mapped) {
    if (mapped->bytes > 0) munmap((void *)(uintptr_t)mapped->data, mapped->bytes);
    *mapped = (pli_mapped){ .data = NULL, .bytes = 0 };
}

plait_status pli_map_check(const char *path, const pli_mapped *mapped, plait_error *err) {
    struct stat info;
    if (stat(path, &info) != 0 || info.st_dev != mapped->device || info.st_ino != mapped->inode) return PLAIT_OK;
    if ((size_t)info.st_size != mapped->bytes)
        return pli_fail(err, PLAIT_EFORMAT,
                        "%s: had %zu bytes, and has %lld after it was read: it was changed meanwhile; run again when "
                        "nobody writes it",
                        path, mapped->bytes, (long long)info.st_size);
    if (mtime_of(&info) != mapped->mtime_ns)
        return pli_fail(err, PLAIT_EFORMAT, "%s: was written to while it was read; run again when nobody writes it",
                        path);
    return PLAIT_OK;
}

/* Drops only whole pages inside: a page on the border may also hold somebody else's bytes. */
void pli_map_drop(const void *data, size_t bytes) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)data, end = begin + bytes;
    begin = (begin + page - 1) & ~(page - 1);
    end &= ~(page - 1);
    if (end > begin) (void)madvise((void *)begin, end - begin, MADV_DONTNEED); /* advice may be ignored */
}

/* Reads to the end and does not trust fstat: files of /proc have no size. */
plait_status pli_read_whole(const char *path, size_t limit_bytes, pli_text *text, plait_error *err) {
    plait_status status = PLAIT_OK;
    size_t       total = 0;
    char        *buffer = pli_malloc(BUFFER_BYTES);
    if (buffer == NULL) return pli_fail(err, PLAIT_ENOMEM, "%s: no memory to read it", path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) status = pli_fail_errno(err, errno, "%s", path);
    while (status == PLAIT_OK) {
        ssize_t n = read(fd, buffer, BUFFER_BYTES);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) break;
        if (n < 0)
            status = pli_fail_errno(err, errno, "%s", path);
        else if ((size_t)n > limit_bytes - total)
            status = pli_fail(err, PLAIT_EFORMAT, "%s: larger than %zu bytes", path, limit_bytes);
        else
            pli_text_add_bytes(text, buffer, (size_t)n);
        total += n > 0 ? (size_t)n : 0;
        if (text->failed) status = pli_fail(err, PLAIT_ENOMEM, "%s: no memory to read it", path);
    }
    if (fd >= 0) close(fd);
    pli_free(buffer);
    return status;
}

struct pli_infile {
    int     fd;
    int64_t bytes;
    char    path[]; /* for error texts */
};

/* NONBLOCK: opening a pipe without a writer would wait for one. */
plait_status pli_infile_open(const char *path, pli_infile **file_out, plait_error *err) {
    struct stat info;
    size_t      length = strlen(path) + 1;
    pli_infile *file = pli_malloc(sizeof *file + length);
    if (file == NULL) return pli_fail(err, PLAIT_ENOMEM, "%s: no memory to read it", path);
    memcpy(file->path, path, length);
    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int errnum = file->fd < 0 || fstat(file->fd, &info) != 0 ? errno : 0;
    if (errnum == 0 && S_ISREG(info.st_mode)) {
        file->bytes = (int64_t)info.st_size;
        *file_out = file;
        return PLAIT_OK;
    }
    pli_infile_close(&file);
    if (errnum == 0) return pli_fail(err, PLAIT_EIO, "%s: not a regular file", path);
    if (errnum == ELOOP) return pli_fail(err, PLAIT_EIO, "%s: is a symbolic link, which is not followed", path);
    return pli_fail_errno(err, errnum, "%s", path);
}

int64_t pli_infile_bytes(const pli_infile *file) { return file->bytes; }

plait_status pli_infile_read(pli_infile *file, int64_t at, void *data, size_t bytes, plait_error *err) {
    while (bytes > 0) {
        ssize_t n = pread(file->fd, data, bytes, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return pli_fail_errno(err, errno, "%s: cannot be read", file->path);
        if (n == 0) return pli_fail(err, PLAIT_ECHECKSUM, "%s: cut short at byte %lld", file->path, (long long)at);
        data = (char *)data + n;
        at += n;
        bytes -= (size_t)n;
    }
    return PLAIT_OK;
}

void pli_infile_close(pli_infile **file) {
    if (file == NULL || *file == NULL) return;
    if ((*file)->fd >= 0) close((*file)->fd);
    pli_free(*file);
    *file = NULL;
}

/* --- looking around ------------------------------------------------------------------------------------ */

bool pli_file_exists(const char *path) { return access(path, F_OK) == 0; }

bool pli_is_directory(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* The directory of path with all links resolved; the caller frees it. NULL: there is none. */
static char *real_directory(const char *path) {
    char *directory = pli_directory_of(path);
    char *real = directory != NULL ? realpath(directory, NULL) : NULL;
    pli_free(directory);
    return real;
}

static const char *last_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

bool pli_same_file(const char *a, const char *b) {
    struct stat one, other;
    bool        is_one = stat(a, &one) == 0, is_other = stat(b, &other) == 0;
    if (is_one != is_other) return false;
    if (is_one) return S_ISREG(one.st_mode) && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
    char *end_a = pli_link_end(a), *end_b = pli_link_end(b); /* a link whose target is not there yet */
    bool  alike = end_a != NULL && end_b != NULL && strcmp(last_name(end_a), last_name(end_b)) == 0;
    char *of_a = alike ? real_directory(end_a) : NULL, *of_b = alike ? real_directory(end_b) : NULL;
    bool  same = of_a != NULL && of_b != NULL && strcmp(of_a, of_b) == 0;
    pli_free(end_a);
    pli_free(end_b);
    free(of_a); /* realpath allocated it */
    free(of_b);
    return same;
}

plait_status pli_make_new_directory(const char *path, bool *made_out, plait_error *err) {
    bool made = mkdir(path, 0777) == 0;
    if (!made && !(errno == EEXIST && pli_is_directory(path)))
        return pli_fail_errno(err, errno, "%s: no directory of that name can be made", path);
    *made_out = made;
    return PLAIT_OK;
}

plait_status pli_make_directory(const char *path, plait_error *err) {
    bool made;
    return pli_make_new_directory(path, &made, err);
}

plait_status pli_remove(const char *path, plait_error *err) {
    if (remove(path) == 0 || errno == ENOENT) return PLAIT_OK;
    return pli_fail_errno(err, errno, "%s: cannot be removed", path);
}

bool pli_is_fifo(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISFIFO(info.st_mode);
}

bool pli_is_pipe(const char *path) {
    struct stat info;
    return strcmp(path, "-") == 0 || (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode));
}

int64_t pli_file_bytes(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 ? (int64_t)info.st_size : -1;
}

int64_t pli_file_mtime_ns(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 ? mtime_of(&info) : -1;
}

struct names {
    char  **item;
    int64_t n, capacity;
};

static void free_names(struct names *names) {
    for (int64_t i = 0; i < names->n; i++) pli_free(names->item[i]);
    pli_free(names->item);
}

static bool add_name(struct names *names, const char *name) {
    if (!pli_grow((void **)&names->item, &names->capacity, names->n + 1, sizeof *names->item)) return false;
    names->item[names->n] = pli_strdup(name);
    return names->item[names->n] != NULL && ++names->n > 0;
}

/* Compares bytes: the order must not depend on the locale. */
static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Sorts names, writes one a line, and frees them. */
static plait_status give_names(struct names *names, bool complete, const char *path, pli_text *text, plait_error *err) {
    plait_status status = complete ? PLAIT_OK : PLAIT_ENOMEM;
    if (names->n > 0) qsort(names->item, (size_t)names->n, sizeof *names->item, by_bytes);
    for (int64_t i = 0; i < names->n && status == PLAIT_OK; i++) {
        if (strchr(names->item[i], '\n') != NULL)
            status = PLAIT_EFORMAT;
        else
            pli_text_add(text, "%s\n", names->item[i]);
    }
    free_names(names);
    if (status == PLAIT_EFORMAT) return pli_fail(err, status, "%s: a name with a line break cannot be listed", path);
    if (status == PLAIT_ENOMEM || text->failed) return pli_fail(err, PLAIT_ENOMEM, "%s: no memory to list it", path);
    return PLAIT_OK;
}

plait_status pli_list_directory(const char *path, pli_text *names_by_newline, plait_error *err) {
    struct names   names = { .item = NULL };
    struct dirent *entry = NULL;
    bool           fits = true;
    DIR           *directory = opendir(path);
    if (directory == NULL) return pli_fail_errno(err, errno, "%s", path);
    while (fits && (errno = 0, entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] != '.') fits = add_name(&names, entry->d_name);
    }
    int errnum = entry == NULL ? errno : 0;
    closedir(directory);
    if (errnum == 0) return give_names(&names, fits, path, names_by_newline, err);
    free_names(&names);
    return pli_fail_errno(err, errnum, "%s", path);
}

plait_status pli_glob(const char *pattern, pli_text *paths_by_newline, plait_error *err) {
    struct names names = { .item = NULL };
    bool         fits = true;
    glob_t       found;
    int          answer = glob(pattern, GLOB_NOSORT | GLOB_ERR, NULL, &found);
    if (answer == GLOB_ABORTED) return pli_fail(err, PLAIT_EIO, "%s: a directory cannot be read", pattern);
    if (answer == GLOB_NOSPACE) return pli_fail(err, PLAIT_ENOMEM, "%s: no memory to list it", pattern);
    for (size_t i = 0; answer == 0 && fits && i < found.gl_pathc; i++) fits = add_name(&names, found.gl_pathv[i]);
    globfree(&found);
    return give_names(&names, fits, pattern, paths_by_newline, err);
}

/* --- temporary directories ------------------------------------------------------------------------- */

char *pli_temporary_directory(const char *name) {
    const char *below = pli_env("TMPDIR");
    char       *path = pli_format("%s/%s-XXXXXX", below != NULL && below[0] != '\0' ? below : "/tmp", name);
    if (path != NULL && mkdtemp(path) != NULL) return path;
    pli_free(path);
    return NULL;
}

static int remove_entry(const char *path, const struct stat *what, int kind, struct FTW *at) {
    (void)what, (void)kind, (void)at;
    (void)remove(path);
    return 0;
}

void pli_remove_directory(const char *path) {
    enum { OPEN_AT_ONCE = 16 };
    (void)nftw(path, remove_entry, OPEN_AT_ONCE, FTW_DEPTH | FTW_PHYS);
}
