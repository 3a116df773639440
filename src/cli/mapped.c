/* The handler calls only functions that a signal handler may call: open, read, stat, write, _exit. */
#include "cli/mapped.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

static struct sigaction before;   /* the former handler of SIGBUS                */
static _Atomic int      was_said; /* set by the first thread that prints         */

enum { PATH_BYTES = 4096 };

/* A line of /proc/self/maps: "from-to perms offset device inode   path". */
typedef struct mapping {
    uint64_t from, to, offset;
    char     path[PATH_BYTES];
} mapping;

static const char *hex(const char *at, uint64_t *out) {
    for (*out = 0;; at++) {
        const int digit = *at >= '0' && *at <= '9' ? *at - '0' : *at >= 'a' && *at <= 'f' ? *at - 'a' + 10 : -1;
        if (digit < 0) return at;
        *out = *out << 4 | (uint64_t)digit;
    }
}

static bool read_mapping(const char *line, uint64_t address, mapping *m) {
    const char *at = hex(line, &m->from);
    at = hex(at + (*at == '-'), &m->to);
    if (address < m->from || address >= m->to || strlen(at) < 6) return false;
    hex(at + 6, &m->offset); /* " r--p " */
    const char *path = strchr(at, '/');
    if (path == NULL) return false;
    strcpy(m->path, path);
    return true;
}

/* Finds the file that is mapped at an address. false: there is none. */
static bool find_mapping(uint64_t address, mapping *m) {
    char   line[PATH_BYTES], piece[PATH_BYTES];
    size_t used = 0;
    bool   found = false;
    int    fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (ssize_t n; fd >= 0 && !found && (n = read(fd, piece, sizeof piece)) > 0;) {
        for (ssize_t i = 0; i < n && !found; i++) {
            if (piece[i] != '\n') {
                if (used + 1 < sizeof line) line[used++] = piece[i];
                continue;
            }
            line[used] = '\0';
            used = 0;
            found = read_mapping(line, address, m);
        }
    }
    if (fd >= 0) close(fd);
    return found;
}

static void put(char line[2 * PATH_BYTES], const char *text) {
    const size_t used = strlen(line), n = strlen(text), room = (size_t)2 * PATH_BYTES - used - 1;
    memcpy(line + used, text, n < room ? n : room);
    line[used + (n < room ? n : room)] = '\0';
}

/* Prints one line in one write. The kernel has escaped newlines in the path; other control bytes become '?'. */
static void say(mapping *m, uint64_t address) {
    char        line[2 * PATH_BYTES] = "plait: ";
    struct stat info;
    for (unsigned char *c = (unsigned char *)m->path; *c != '\0'; c++)
        if (*c < ' ' || *c >= 0x7f) *c = '?';
    const bool cut = stat(m->path, &info) != 0 || address - m->from + m->offset >= (uint64_t)info.st_size;
    put(line, m->path);
    put(line, cut ? ": was cut short while it was being read; run again when nobody writes to it\n"
                  : ": a part of it cannot be read: is its disk failing?\n");
    if (write(2, line, strlen(line)) < 0) { /* nobody reads stderr */
    }
}

static void on_bus_error(int number, siginfo_t *info, void *context) {
    mapping        m;
    const uint64_t address = (uint64_t)(uintptr_t)info->si_addr;
    (void)context;
    if (info->si_code == BUS_ADRERR && find_mapping(address, &m)) {
        if (__atomic_exchange_n(&was_said, 1, __ATOMIC_RELAXED) == 0) say(&m, address);
        _exit(PLI_EXIT_FAILED);
    }
    sigaction(number, &before, NULL); /* the instruction is repeated, and the former handler gets the signal */
}

void pli_mapped_guard(void) {
    struct sigaction action = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &before);
}
