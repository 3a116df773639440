/* Files that appear whole or not at all.
 *
 * A reader of a model must find the former file or the new one, never half of one, whatever dies and when. So a file is
 * written under another name in the same directory, synced (its bytes are on the disk), renamed over the old one
 * (POSIX: one step), and the directory is synced (the name is on the disk). Leaving a step out loses files on real
 * systems: Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014. A failed write is remembered, so a file
 * with a refused byte is never renamed. A path that is no regular file (a pipe, /dev/stdout) is written straight.
 *
 * While it is written a file is called PATH.tmp.PID and its writer holds a lock on it. A process that is killed
 * leaves the file behind; the next writer of PATH removes it, but only if nobody can be writing it: the process of
 * that number is dead, and the lock is free. So a writer on another host or in another container is safe, although
 * its number means nothing here; and if the number was given to another process, the file only stays a while longer.
 * On a file system without locks nothing is removed. */
#include "base/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"

enum { BUFFER_BYTES = 1 << 20, PROBE_BYTES = 4096, HOPS_MAX = 40 };

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

/* --- what a path stands for -------------------------------------------------------------------------------- */

char *pli_directory_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? pli_strdup(".") : pli_format("%.*s", (int)(slash - path) + 1, path);
}

/* The target of the link at path; a relative target is joined to the link's directory. NULL: out of memory, or path
 * is no link. */
static char *read_link(const char *path) {
    char    target[PATH_MAX];
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n < 0) return NULL;
    target[n] = '\0';
    if (target[0] == '/') return pli_strdup(target);
    char *directory = pli_directory_of(path);
    char *whole = directory != NULL ? pli_format("%s/%s", directory, target) : NULL;
    pli_free(directory);
    return whole;
}

char *pli_link_end(const char *path) {
    struct stat info;
    char       *at = pli_strdup(path);
    for (int hop = 0; at != NULL && hop < HOPS_MAX && lstat(at, &info) == 0 && S_ISLNK(info.st_mode); hop++) {
        char *next = read_link(at);
        pli_free(at);
        at = next;
    }
    return at;
}

/* --- temporary files ----------------------------------------------------------------------------------------- */

/* The process that made name, if name is BASE.tmp.PID or BASE.tmp.PID.K; else 0. */
static pid_t maker_of(const char *name, const char *base) {
    size_t length = strlen(base);
    char  *end = NULL;
    if (strncmp(name, base, length) != 0 || strncmp(name + length, ".tmp.", 5) != 0) return 0;
    const char *digits = name + length + 5;
    if (*digits < '1' || *digits > '9') return 0;
    long pid = strtol(digits, &end, 10);
    if (*end == '.' && end[1] != '\0' && strspn(end + 1, "0123456789") == strlen(end + 1)) end += strlen(end);
    return *end == '\0' && pid > 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
}

void pli_remove_left_over(int directory, const char *name, int32_t maker) {
    struct stat info;
    if (maker == getpid() || kill(maker, 0) == 0 || errno != ESRCH) return;
    int fd = openat(directory, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0)
        (void)unlinkat(directory, name, 0);
    close(fd);
}

static void remove_left_overs(const char *path) {
    const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
    char       *directory = pli_directory_of(path);
    DIR        *entries = directory != NULL ? opendir(directory) : NULL;
    for (const struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
        pid_t maker = maker_of(entry->d_name, base);
        if (maker > 0) pli_remove_left_over(dirfd(entries), entry->d_name, maker);
    }
    if (entries != NULL) closedir(entries);
    pli_free(directory);
}

/* Makes a new file and locks it. Before it is locked, a process on another host may take it for left over: that
 * process holds the lock and is about to remove the file, or has removed it. Then this name cannot be used. */
static int create_locked(const char *name, mode_t mode) {
    struct stat info;
    int         fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) return fd;
    const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (!locked && errno != EWOULDBLOCK) return fd; /* a file system without locks, where no file is taken for left
                                                     * over */
    if (locked && fstat(fd, &info) == 0 && info.st_nlink > 0) return fd;
    close(fd);
    errno = EEXIST;
    return -1;
}

/* Creates PATH.tmp.PID; if that exists (another thread writes the same file), PATH.tmp.PID.1 and so on. */
static int create_temporary(pli_outfile *file, mode_t mode) {
    remove_left_overs(file->path);
    for (int k = 0; k < 100; k++) {
        pli_free(file->temporary);
        file->temporary = k == 0 ? pli_format("%s.tmp.%d", file->path, pli_pid())
                                 : pli_format("%s.tmp.%d.%d", file->path, pli_pid(), k);
        if (file->temporary == NULL) return ENOMEM;
        file->fd = create_locked(file->temporary, mode);
        if (file->fd >= 0) return 0;
        if (errno != EEXIST) break;
    }
    int errnum = errno;
    pli_free(file->temporary);
    file->temporary = NULL;
    return errnum;
}

/* --- writing --------------------------------------------------------------------------------------------------- */

static int open_for_writing(pli_outfile *file) {
    struct stat info;
    bool        there = stat(file->path, &info) == 0;
    if (!there && errno == ELOOP) return ELOOP;
    if (there && S_ISDIR(info.st_mode)) return EISDIR;
    if (there && !S_ISREG(info.st_mode)) {
        file->fd = open(file->path, O_WRONLY | O_CLOEXEC);
        return file->fd >= 0 ? 0 : errno;
    }
    int errnum = create_temporary(file, 0666);
    if (errnum == 0 && there) (void)fchmod(file->fd, info.st_mode & 07777); /* the new file keeps the permissions of
                                                                             * the old */
    return errnum;
}

/* What the caller can do about it. */
static const char *remedy_of(int errnum) {
    switch (errnum) {
    case ENOSPC:
    case EDQUOT: return "; free some space, or name another place";
    case ENOENT: return "; make its directory first";
    case EISDIR: return "; name a file in it";
    case ENOTDIR:
    case EEXIST: return "; name a directory";
    case EROFS:
    case EACCES:
    case EPERM: return "; name a place that you may write to";
    default: return "";
    }
}

plait_status pli_outfile_open(const char *path, pli_outfile **file_out, plait_error *err) {
    int          errnum = ENOMEM;
    pli_outfile *file = pli_malloc(sizeof *file);
    if (file == NULL) return pli_fail(err, PLAIT_ENOMEM, "%s: no memory to write it", path);
    *file = (pli_outfile){ .fd = -1, .path = pli_link_end(path), .buffer = pli_malloc(BUFFER_BYTES) };
    if (file->path != NULL && file->buffer != NULL) errnum = open_for_writing(file);
    if (errnum != 0) {
        char               why[128];
        const plait_status status = pli_fail_errno(err, errnum, "%s", path); /* chooses the code */
        free_outfile(file);
        return pli_fail(err, status, "%s: cannot be written: %s%s", path, strerror_r(errnum, why, sizeof why),
                        remedy_of(errnum));
    }
    *file_out = file;
    return PLAIT_OK;
}

/* Returns 0, or the errno of the write that failed. */
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

/* Returns 0, or errno. Some file systems cannot sync a directory and say EINVAL; they do not need it. */
static int sync_directory(const char *directory) {
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int errnum = fd < 0 || fsync(fd) != 0 ? errno : 0;
    if (fd >= 0) close(fd);
    return errnum == EINVAL || errnum == EROFS ? 0 : errnum;
}

static int sync_directory_of(const char *path) {
    char *directory = pli_directory_of(path);
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
    pli_outfile_abandon(file); /* after a success this finds no temporary file to remove */
    return status;
}

void pli_outfile_abandon(pli_outfile **file) {
    if (*file == NULL) return;
    if ((*file)->temporary != NULL) unlink((*file)->temporary);
    free_outfile(*file);
    *file = NULL;
}


/* --- could it be written? ---------------------------------------------------------------------------------------- */

static plait_status cannot(int errnum, const char *path, const char *what, plait_error *err) {
    char         why[128];
    plait_status status = pli_fail_errno(err, errnum, "%s", path); /* chooses the code */
    return pli_fail(err, status, "%s: cannot be written%s: %s%s", path, what, strerror_r(errnum, why, sizeof why),
                    remedy_of(errnum));
}

/* Bytes that an ordinary user may take. Root gets the same answer: the reserve keeps the system alive, and no run
 * should use it up. A file system without a size (f_blocks 0) does not say how much it has left. */
static int64_t free_of(const struct statvfs *system) {
    if (system->f_blocks == 0) return -1;
    return system->f_bavail > (fsblkcnt_t)INT64_MAX / system->f_frsize
               ? INT64_MAX
               : (int64_t)(system->f_bavail * system->f_frsize);
}

int64_t pli_free_bytes(const char *path) {
    struct statvfs system;
    char          *directory = pli_directory_of(path);
    const bool     known = statvfs(path, &system) == 0 || (directory != NULL && statvfs(directory, &system) == 0);
    pli_free(directory);
    return known ? free_of(&system) : -1;
}

int64_t pli_free_bytes_beside(int fd) {
    struct statvfs system;
    return fstatvfs(fd, &system) == 0 ? free_of(&system) : -1;
}

/* Makes a new file beside path with some bytes in it, as an outfile would, and removes it. Returns 0, or errno. */
static int probe_new(const char *path) {
    static const unsigned char zeros[PROBE_BYTES];
    pli_outfile                file = { .fd = -1, .path = pli_link_end(path) };
    int                        errnum = file.path != NULL ? create_temporary(&file, 0666) : ENOMEM;
    if (errnum == 0) errnum = write_fully(file.fd, zeros, sizeof zeros);
    if (errnum == 0) {
        int fd = file.fd;
        file.fd = -1;
        if (close(fd) != 0) errnum = errno;
    }
    if (file.temporary != NULL) unlink(file.temporary);
    if (file.fd >= 0) close(file.fd);
    pli_free(file.temporary);
    pli_free(file.path);
    return errnum;
}

plait_status pli_check_writable(const char *path, const char *what, plait_error *err) {
    struct stat info;
    int         errnum = 0;
    if (stat(path, &info) != 0) errnum = errno == ENOENT ? probe_new(path) : errno;
    else if (S_ISDIR(info.st_mode)) errnum = EISDIR;
    else if (access(path, W_OK) != 0) errnum = errno;
    else if (S_ISREG(info.st_mode) && pli_free_bytes(path) >= 0 && pli_free_bytes(path) < PROBE_BYTES) errnum = ENOSPC;
    return errnum == 0 ? PLAIT_OK : cannot(errnum, path, what, err);
}

plait_status pli_check_replaceable(const char *path, const char *what, plait_error *err) {
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) return pli_check_writable(path, what, err);
    int errnum = probe_new(path);
    return errnum == 0 ? PLAIT_OK : cannot(errnum, path, what, err);
}

/* Another process that makes the same check may remove the directory between the two steps, so this tries three
 * times. */
static int probe_in(const char *path) {
    char *file = pli_format("%s/probe", path);
    int   errnum = file != NULL ? ENOENT : ENOMEM;
    for (int k = 0; k < 3 && errnum == ENOENT; k++) {
        bool made = mkdir(path, 0777) == 0;
        errnum = made || errno == EEXIST ? 0 : errno;
        if (errnum == 0) errnum = probe_new(file);
        if (made) (void)rmdir(path);
        if (!made && !pli_is_directory(path) && errnum != 0) break;
    }
    pli_free(file);
    return errnum;
}

plait_status pli_check_directory(const char *path, const char *what, plait_error *err) {
    int errnum = pli_file_exists(path) && !pli_is_directory(path) ? ENOTDIR : probe_in(path);
    return errnum == 0 ? PLAIT_OK : cannot(errnum, path, what, err);
}
