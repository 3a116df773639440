/* base/os.c - the operating system: time, figures of the process, waiting, terminals.
 *
 * A port to another system changes the files base/os*.c and no other file. Figures are those that bind this process,
 * not those of the machine: the cores it may run on (affinity and the quota of its cgroup), and the memory it may
 * still take (the smaller of what the machine has free and what its cgroup leaves). */
#include "base/os.h"

#include <errno.h>
#include <linux/futex.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/opts.h"

#define NS_IN_S UINT64_C(1000000000)

static uint64_t clock_ns(clockid_t clock) {
    struct timespec t = { 0 };
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * NS_IN_S + (uint64_t)t.tv_nsec;
}

uint64_t pli_now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }
uint64_t pli_cpu_ns(void) { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

int32_t pli_pid(void) { return (int32_t)getpid(); }

void pli_host_name(char name[256]) {
    if (gethostname(name, 256) != 0) snprintf(name, 256, "localhost");
    name[255] = '\0';
}

double pli_wall_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* --- figures from /proc and the cgroup ------------------------------------------------------------------- */

/* The number behind `label` in a small file of lines "Label:   N kB", or at the file's start if label is "". -1:
 *                                                              there is none. */
static int64_t number_in_file(const char *path, const char *label) {
    char    buffer[4096];
    FILE   *file = fopen(path, "re");
    int64_t number = -1;
    if (file == NULL) return -1;
    while (fgets(buffer, sizeof buffer, file) != NULL) {
        size_t length = strlen(label);
        if (strncmp(buffer, label, length) != 0) continue;
        char     *end;
        long long value = strtoll(buffer + length, &end, 10);
        if (end != buffer + length) number = value;
        break;
    }
    fclose(file);
    return number;
}

int64_t pli_peak_rss_bytes(void) {
    int64_t kib = number_in_file("/proc/self/status", "VmHWM:"); /* getrusage would inherit the parent's peak */
    if (kib >= 0) return kib * 1024;
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : 0;
}

/* Bytes that the cgroup (version 2, then 1) still leaves; -1: it sets no bound. Inside a container the process sees
 * its own group as the root. */
static int64_t cgroup_bytes_left(void) {
    int64_t most = number_in_file("/sys/fs/cgroup/memory.max", ""); /* "max" is no number */
    int64_t used = number_in_file("/sys/fs/cgroup/memory.current", "");
    if (most < 0) {
        most = number_in_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "");
        used = number_in_file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "");
    }
    if (most < 0 || used < 0) return -1;
    return most > used ? most - used : 0;
}

int64_t pli_memory_bytes(void) {
    int64_t kib = number_in_file("/proc/meminfo", "MemAvailable:");
    int64_t free_bytes = kib >= 0 ? kib * 1024 : (int64_t)sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE);
    int64_t left = cgroup_bytes_left();
    return left >= 0 && left < free_bytes ? left : free_bytes;
}

int64_t pli_address_space_left(void) {
    struct rlimit limit;
    long          pages = 0;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return INT64_MAX;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL) return INT64_MAX;
    if (fscanf(file, "%ld", &pages) != 1) pages = 0;
    fclose(file);
    return (int64_t)limit.rlim_cur - (int64_t)pages * sysconf(_SC_PAGESIZE);
}

int64_t pli_mappings_left(void) {
    long long most = 0, now = 0;
    FILE     *file = fopen("/proc/sys/vm/max_map_count", "re");
    if (file == NULL) return INT64_MAX;
    int read = fscanf(file, "%lld", &most);
    fclose(file);
    file = fopen("/proc/self/maps", "re");
    if (read != 1 || file == NULL) {
        if (file != NULL) fclose(file);
        return INT64_MAX;
    }
    for (int c; (c = getc(file)) != EOF;) now += c == '\n';
    fclose(file);
    return most > now ? most - now : 0;
}

int64_t pli_memory_total_bytes(void) {
    int64_t kib = number_in_file("/proc/meminfo", "MemTotal:");
    return kib >= 0 ? kib * 1024 : (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

void pli_cpu_name(char name[128]) {
    char  line[512];
    FILE *file = fopen("/proc/cpuinfo", "re");
    name[0] = '\0';
    while (file != NULL && name[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL) continue;
        snprintf(name, 128, "%s", colon + 1 + strspn(colon + 1, " "));
        name[strcspn(name, "\n")] = '\0';
    }
    if (file != NULL) fclose(file);
}

void pli_kernel_name(char name[128]) {
    struct utsname system;
    if (uname(&system) != 0) {
        name[0] = '\0';
        return;
    }
    snprintf(name, 128, "%.30s %.60s %.30s", system.sysname, system.release, system.machine);
}

double pli_load(void) {
    double load = NAN;
    return getloadavg(&load, 1) == 1 ? load : (double)NAN;
}

/* How many cores' worth of time the cgroup grants, rounded up; 0: no bound. The file holds "QUOTA PERIOD" or "max
 * PERIOD". */
static int32_t cgroup_cores(void) {
    FILE     *file = fopen("/sys/fs/cgroup/cpu.max", "re");
    long long quota = 0, period = 0;
    if (file == NULL) return 0;
    int read = fscanf(file, "%lld %lld", &quota, &period);
    fclose(file);
    if (read != 2 || quota <= 0 || period <= 0) return 0;
    return (int32_t)((quota + period - 1) / period);
}

/* The kernel's set may be larger than cpu_set_t; then sched_getaffinity answers EINVAL and the set is doubled. */
static int32_t affinity_cores(void) {
    for (int cpus = 1024; cpus <= 1 << 17; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        size_t     bytes = CPU_ALLOC_SIZE((size_t)cpus);
        if (set == NULL) return 1;
        int     got = sched_getaffinity(0, bytes, set);
        int32_t cores = got == 0 ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (got == 0) return cores > 0 ? cores : 1;
        if (errno != EINVAL) return 1;
    }
    return 1;
}

int32_t pli_cores(void) {
    int32_t cores = affinity_cores(), granted = cgroup_cores();
    return granted > 0 && granted < cores ? granted : cores;
}

/* --- waiting ------------------------------------------------------------------------------------------- */

static void wait_on(const _Atomic uint32_t *word, int how, uint32_t expected, uint64_t timeout_ns) {
    struct timespec  timeout = { .tv_sec = (time_t)(timeout_ns / NS_IN_S), .tv_nsec = (long)(timeout_ns % NS_IN_S) };
    struct timespec *until = timeout_ns == UINT64_MAX ? NULL : &timeout;
    syscall(SYS_futex, word, how, expected, until, NULL, 0);
}

void pli_futex_wait(const _Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns) {
    wait_on(word, FUTEX_WAIT_PRIVATE, expected, timeout_ns);
}

void pli_futex_wait_shared(const _Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns) {
    wait_on(word, FUTEX_WAIT, expected, timeout_ns);
}

void pli_futex_wake(_Atomic uint32_t *word, int32_t waiters) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, waiters, NULL, NULL, 0);
}

void pli_futex_wake_shared(_Atomic uint32_t *word, int32_t waiters) {
    syscall(SYS_futex, word, FUTEX_WAKE, waiters, NULL, NULL, 0);
}

/* --- terminals ----------------------------------------------------------------------------------------- */

bool pli_is_terminal(int fd) { return isatty(fd) == 1; }

int32_t pli_terminal_columns(int fd) {
    struct winsize size;
    const char    *asked = pli_env("COLUMNS"); /* POSIX: it comes before what the terminal says */
    const long     columns = asked != NULL ? strtol(asked, NULL, 10) : 0;
    if (columns > 0 && columns <= INT16_MAX) return (int32_t)columns;
    if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col;
}
