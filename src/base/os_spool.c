/* Collecting bytes of unknown number; the standard input. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "base/spool.h"

struct pli_spool {
    unsigned char *memory; /* bytes that are not in the file yet */
    int64_t        held, capacity;
    size_t         limit; /* bytes in memory before a file is begun */
    int            fd;    /* -1: none */
    size_t         in_file;
    pli_spill     *spill; /* NULL: no limit */
    void          *mapped;
    size_t         mapped_bytes;
};

plait_status pli_spool_create(size_t memory_bytes, pli_spill *spill, pli_spool **spool_out, plait_error *err) {
    pli_spool *spool = pli_calloc(1, sizeof *spool);
    if (spool == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to unpack or receive data");
    spool->limit = memory_bytes;
    spool->spill = spill;
    spool->fd = -1;
    *spool_out = spool;
    return PLAIT_OK;
}

/* Opens a temporary file and removes its name. */
static int open_nameless(const char *directory) {
    char *path = pli_format("%s/plait.XXXXXX", directory);
    if (path == NULL) return -1;
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) (void)unlink(path);
    pli_free(path);
    return fd;
}

static plait_status begin_file(pli_spool *spool, plait_error *err) {
    const char *wish = pli_env("TMPDIR");
    if (wish != NULL && wish[0] != '\0') spool->fd = open_nameless(wish);
    if (spool->fd < 0) spool->fd = open_nameless("/var/tmp");
    if (spool->fd < 0) spool->fd = open_nameless("/tmp");
    return spool->fd >= 0 ? PLAIT_OK : pli_fail_errno(err, errno, "cannot make a temporary file (TMPDIR says where)");
}

/* May the bytes in memory go to the file, too? */
static plait_status check_spill(const pli_spool *spool, plait_error *err) {
    const pli_spill *spill = spool->spill;
    if (spill == NULL) return PLAIT_OK;
    const int64_t after = spill->used_bytes + spool->held;
    if (spill->limit_bytes > 0)
        return after <= spill->limit_bytes
                   ? PLAIT_OK
                   : pli_fail(
                         err, PLAIT_ENOSPACE,
                         "what is unpacked or received takes more than %lld bytes of temporary files; if it has an "
                         "end, give a larger --spill-limit",
                         (long long)spill->limit_bytes);
    const int64_t left = pli_free_bytes_beside(spool->fd);
    if (left < 0 || after <= left - spool->held) return PLAIT_OK; /* -1: the system does not say */
    return pli_fail(err, PLAIT_ENOSPACE,
                    "what is unpacked or received would take more than half of what is free for temporary files (%lld "
                    "bytes taken); if it has an end, give a --spill-limit, or a TMPDIR with more",
                    (long long)spill->used_bytes);
}

static plait_status flush(pli_spool *spool, plait_error *err) {
    if (spool->fd < 0) PLI_TRY(begin_file(spool, err));
    PLI_TRY(check_spill(spool, err));
    for (int64_t done = 0; done < spool->held;) {
        ssize_t n = write(spool->fd, spool->memory + done, (size_t)(spool->held - done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return pli_fail_errno(err, errno, "cannot write a temporary file (TMPDIR says where)");
        done += n;
        spool->in_file += (size_t)n;
        if (spool->spill != NULL) spool->spill->used_bytes += n;
    }
    spool->held = 0;
    return PLAIT_OK;
}

plait_status pli_spool_add(pli_spool *spool, const void *data, size_t bytes, plait_error *err) {
    if (bytes == 0) return PLAIT_OK;
    if (spool->held > 0 && (size_t)spool->held + bytes > spool->limit) PLI_TRY(flush(spool, err));
    void *memory = spool->memory;
    if (!pli_grow(&memory, &spool->capacity, spool->held + (int64_t)bytes, 1))
        return pli_fail(err, PLAIT_ENOMEM, "no memory to unpack or receive data");
    spool->memory = memory;
    memcpy(spool->memory + spool->held, data, bytes);
    spool->held += (int64_t)bytes;
    return PLAIT_OK;
}

plait_status pli_spool_end(pli_spool *spool, const unsigned char **data_out, size_t *bytes_out, plait_error *err) {
    if (spool->fd < 0) {
        *data_out = spool->memory != NULL ? spool->memory : (const unsigned char *)"";
        *bytes_out = (size_t)spool->held;
        return PLAIT_OK;
    }
    PLI_TRY(flush(spool, err));
    pli_free(spool->memory);
    spool->memory = NULL;
    spool->capacity = 0;
    if (spool->mapped != NULL) munmap(spool->mapped, spool->mapped_bytes);
    spool->mapped = NULL;
    void *mapped = mmap(NULL, spool->in_file, PROT_READ, MAP_SHARED, spool->fd, 0);
    if (mapped == MAP_FAILED) return pli_fail_errno(err, errno, "cannot map a temporary file");
    spool->mapped = mapped;
    spool->mapped_bytes = spool->in_file;
    *data_out = mapped;
    *bytes_out = spool->in_file;
    return PLAIT_OK;
}

bool pli_spool_is_file(const pli_spool *spool) { return spool->mapped != NULL; }

void pli_spool_destroy(pli_spool **spool) {
    if (spool == NULL || *spool == NULL) return;
    if ((*spool)->mapped != NULL) munmap((*spool)->mapped, (*spool)->mapped_bytes);
    if ((*spool)->spill != NULL) (*spool)->spill->used_bytes -= (int64_t)(*spool)->in_file;
    if ((*spool)->fd >= 0) close((*spool)->fd);
    pli_free((*spool)->memory);
    pli_free(*spool);
    *spool = NULL;
}

plait_status pli_pipe_open(const char *path, int *fd_out, plait_error *err) {
    int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return pli_fail_errno(err, errno, "%s", path);
    *fd_out = fd;
    return PLAIT_OK;
}

plait_status pli_pipe_read(int fd, void *data, size_t bytes, size_t *got_out, plait_error *err) {
    for (;;) {
        ssize_t n = read(fd, data, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return pli_fail_errno(err, errno, "cannot read");
        *got_out = (size_t)n;
        return PLAIT_OK;
    }
}

bool pli_pipe_is_ready(int fd, int ms) {
    struct pollfd one = { .fd = fd, .events = POLLIN };
    return poll(&one, 1, ms) > 0;
}

void pli_pipe_close(int fd) { close(fd); }
