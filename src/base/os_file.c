/* base/os_file.c - files: read through the page cache, written whole or not at all.
 *
 * A reader of a model must find the former file or the new one, never half of one, whatever dies and when. So a file is
 * written under another name in the same directory, synced (its bytes are on the disk), renamed over the old one
 * (POSIX: one step), and the directory is synced (the name is on the disk). Leaving a step out loses files on real
 * systems: Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014. A failed write is remembered, so a file
 * of which any byte was refused is never renamed. What is no regular file (a pipe, /dev/stdout) is written straight. */
#include "base/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
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
    *mapped_out = (pli_mapped){ .data = (const unsigned char *)"", .bytes = 0 }; /* nothing to map if empty */
    if (info.st_size == 0) goto close_file;
    memory = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (memory == MAP_FAILED)
        status = pli_fail_errno(err, errno, "%s: cannot be mapped", path);
    else
        *mapped_out = (pli_mapped){ .data = memory, .bytes = (size_t)info.st_size };
close_file:
    close(fd);
    return status;
}

void pli_unmap_file(pli_mapped *mapped) {
    if (mapped->bytes > 0) munmap((void *)(uintptr_t)mapped->data, mapped->bytes);
    *mapped = (pli_mapped){ .data = NULL, .bytes = 0 };
}

/* Whole pages within: a page on the border may be somebody else's. */
void pli_map_drop(const void *data, size_t bytes) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)data, end = begin + bytes;
    begin = (begin + page - 1) & ~(page - 1);
    end &= ~(page - 1);
    if (end > begin) (void)madvise((void *)begin, end - begin, MADV_DONTNEED); /* advice may be ignored */
}

/* Reads to the end, whatever fstat says: files of /proc have no size. */
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
    char    path[]; /* for what it has to say */
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

/* --- writing ------------------------------------------------------------------------------------------- */

struct pli_outfile {
    int            fd;
    int            errnum;    /* of the first failed write; 0: all is well */
    char          *path;      /* where the file shall appear */
    char          *temporary; /* NULL: path is no regular file and written straight */
    unsigned char *buffer;
    size_t         held; /* bytes in buffer */
};

static void free_outfile(pli_outfile *file) {
    if (file->fd >= 0) close(file->fd);
    pli_free(file->path);
    pli_free(file->temporary);
    pli_free(file->buffer);
    pli_free(file);
}

/* A symbolic link stays one: what it points to is replaced. */
static char *resolve_link(const char *path) {
    char        real[PATH_MAX];
    struct stat info;
    bool        link = lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
    return pli_strdup(link && realpath(path, real) != NULL ? real : path);
}

/* Creates PATH.tmp.PID; if that is there (another thread writes the same file, or a dead process left it),
 * PATH.tmp.PID.1 and on. */
static int create_temporary(pli_outfile *file, mode_t mode) {
    for (int k = 0; k < 100; k++) {
        pli_free(file->temporary);
        file->temporary = k == 0 ? pli_format("%s.tmp.%d", file->path, pli_pid())
                                 : pli_format("%s.tmp.%d.%d", file->path, pli_pid(), k);
        if (file->temporary == NULL) return ENOMEM;
        file->fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (file->fd >= 0) return 0;
        if (errno != EEXIST) break;
    }
    int errnum = errno;
    pli_free(file->temporary);
    file->temporary = NULL;
    return errnum;
}

static int open_for_writing(pli_outfile *file) {
    struct stat info;
    bool        there = stat(file->path, &info) == 0;
    if (there && S_ISDIR(info.st_mode)) return EISDIR;
    if (there && !S_ISREG(info.st_mode)) {
        file->fd = open(file->path, O_WRONLY | O_CLOEXEC);
        return file->fd >= 0 ? 0 : errno;
    }
    int errnum = create_temporary(file, 0666);
    if (errnum == 0 && there) (void)fchmod(file->fd, info.st_mode & 07777); /* the new file is as readable as the old */
    return errnum;
}

plait_status pli_outfile_open(const char *path, pli_outfile **file_out, plait_error *err) {
    int          errnum = ENOMEM;
    pli_outfile *file = pli_malloc(sizeof *file);
    if (file == NULL) return pli_fail(err, PLAIT_ENOMEM, "%s: no memory to write it", path);
    *file = (pli_outfile){ .fd = -1, .path = resolve_link(path), .buffer = pli_malloc(BUFFER_BYTES) };
    if (file->path != NULL && file->buffer != NULL) errnum = open_for_writing(file);
    if (errnum != 0) {
        free_outfile(file);
        return pli_fail_errno(err, errnum, "%s: cannot be written", path);
    }
    *file_out = file;
    return PLAIT_OK;
}

/* 0, or the errno of what was refused. */
static int write_fully(int fd, const unsigned char *data, size_t bytes) {
    while (bytes > 0) {
        ssize_t n = write(fd, data, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        data += n;
        bytes -= (size_t)n;
    }
    return 0;
}

static void flush(pli_outfile *file) {
    if (file->errnum == 0) file->errnum = write_fully(file->fd, file->buffer, file->held);
    file->held = 0;
}

plait_status pli_outfile_write(pli_outfile *file, const void *data, size_t bytes, plait_error *err) {
    if (bytes > BUFFER_BYTES - file->held) flush(file);
    if (bytes >= BUFFER_BYTES) {
        if (file->errnum == 0) file->errnum = write_fully(file->fd, data, bytes);
    } else if (bytes > 0) {
        memcpy(file->buffer + file->held, data, bytes);
        file->held += bytes;
    }
    if (file->errnum != 0) return pli_fail_errno(err, file->errnum, "%s: cannot be written", file->path);
    return PLAIT_OK;
}

/* The directory that path lies in, as it is written; freed by the caller. NULL: out of memory. */
static char *directory_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? pli_strdup(".") : pli_format("%.*s", (int)(slash - path) + 1, path);
}

/* 0, or errno. Some file systems cannot sync a directory and say EINVAL; they need it not. */
static int sync_directory(const char *directory) {
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int errnum = fd < 0 || fsync(fd) != 0 ? errno : 0;
    if (fd >= 0) close(fd);
    return errnum == EINVAL || errnum == EROFS ? 0 : errnum;
}

static int sync_directory_of(const char *path) {
    char *directory = directory_of(path);
    int   errnum = directory != NULL ? sync_directory(directory) : ENOMEM;
    pli_free(directory);
    return errnum;
}

plait_status pli_sync_directory(const char *path, plait_error *err) {
    int errnum = sync_directory(path);
    return errnum == 0 ? PLAIT_OK : pli_fail_errno(err, errnum, "%s: cannot be synced to the disk", path);
}

plait_status pli_sync_directory_of(const char *path, plait_error *err) {
    int errnum = sync_directory_of(path);
    return errnum == 0 ? PLAIT_OK : pli_fail_errno(err, errnum, "%s: its directory cannot be synced to the disk", path);
}

/* Syncs, closes and renames; 0, or errno. */
static int make_durable(pli_outfile *file) {
    flush(file);
    if (file->errnum != 0) return file->errnum;
    int unsynced = fsync(file->fd) != 0 ? errno : 0;
    if (file->temporary == NULL && (unsynced == EINVAL || unsynced == EROFS)) unsynced = 0; /* a pipe or device */
    if (unsynced != 0) return unsynced;
    int fd = file->fd;
    file->fd = -1;
    if (close(fd) != 0) return errno; /* NFS reports here what it could not store */
    if (file->temporary == NULL) return 0;
    if (rename(file->temporary, file->path) != 0) return errno;
    pli_free(file->temporary);
    file->temporary = NULL;
    return sync_directory_of(file->path);
}

plait_status pli_outfile_commit(pli_outfile **file, plait_error *err) {
    int          errnum = make_durable(*file);
    plait_status status = PLAIT_OK;
    if (errnum != 0) status = pli_fail_errno(err, errnum, "%s: cannot be written", (*file)->path);
    pli_outfile_abandon(file); /* after success there is no temporary file left to remove */
    return status;
}

void pli_outfile_abandon(pli_outfile **file) {
    if (*file == NULL) return;
    if ((*file)->temporary != NULL) unlink((*file)->temporary);
    free_outfile(*file);
    *file = NULL;
}

/* --- looking around ------------------------------------------------------------------------------------ */

bool pli_file_exists(const char *path) { return access(path, F_OK) == 0; }

bool pli_is_directory(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* The directory of a path, as it is really called; freed by the caller. NULL: there is none. */
static char *real_directory(const char *path) {
    char *directory = directory_of(path);
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
    if (strcmp(last_name(a), last_name(b)) != 0) return false;
    char *of_a = real_directory(a), *of_b = real_directory(b);
    bool  same = of_a != NULL && of_b != NULL && strcmp(of_a, of_b) == 0;
    free(of_a); /* realpath's own */
    free(of_b);
    return same;
}

plait_status pli_check_writable(const char *path, const char *what, plait_error *err) {
    int errnum = 0;
    if (access(path, F_OK) == 0) {
        if (pli_is_directory(path)) errnum = EISDIR;
        else if (access(path, W_OK) != 0) errnum = errno;
    } else {
        char *directory = real_directory(path);
        if (directory == NULL || access(directory, W_OK | X_OK) != 0) errnum = errno;
        free(directory);
    }
    return errnum == 0 ? PLAIT_OK : pli_fail_errno(err, errnum, "%s: cannot be written%s", path, what);
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
    if (stat(path, &info) != 0) return -1;
    return (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
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

/* By bytes: the order must not hang on the locale. */
static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Sorts names, writes them one a line and frees them. */
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

void pli_remove_directory(const char *path) {
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory != NULL) closedir(directory);
    rmdir(path);
}
