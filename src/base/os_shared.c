/* Memory that processes of one host share: an unnamed file in memory, which others open through its maker's process
 * number and descriptor. So nothing is left behind, whichever process dies, and the size of /dev/shm is no limit. A
 * process elsewhere (another host, a container with its own process numbers) finds no such file or a different one,
 * and is told that there is none. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os.h"

static void *map(int fd, size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void *pli_shared_make(size_t bytes, pli_shared_ticket *ticket_out) {
    struct stat info;
    void       *memory = NULL;
    int         fd = memfd_create("plait", MFD_CLOEXEC);
    if (fd < 0) return NULL;
    if (ftruncate(fd, (off_t)bytes) == 0 && fstat(fd, &info) == 0) memory = map(fd, bytes);
    if (memory == NULL) {
        close(fd);
        return NULL;
    }
    *ticket_out = (pli_shared_ticket){ .bytes = bytes, .device = (uint64_t)info.st_dev, .inode = (uint64_t)info.st_ino,
                                       .pid = pli_pid(), .fd = fd };
    return memory;
}

void *pli_shared_join(const pli_shared_ticket *ticket) {
    char        path[64];
    struct stat info;
    void       *memory = NULL;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", ticket->pid, ticket->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return NULL;
    if (fstat(fd, &info) == 0 && info.st_dev == ticket->device && info.st_ino == ticket->inode &&
        (uint64_t)info.st_size == ticket->bytes)
        memory = map(fd, ticket->bytes);
    close(fd);
    return memory;
}

void pli_shared_settle(const pli_shared_ticket *ticket) { close(ticket->fd); }

void pli_shared_leave(void *memory, size_t bytes) {
    if (memory != NULL) munmap(memory, bytes);
}
