/* Makes Open MPI's prterun listen on loopback alone. plait-loopback.so.
 *
 * prterun opens a port for its daemons on other hosts, by IPv4 and IPv6, on all interfaces. It has no setting against
 * that, and does so even if there is no other host. So launch.c loads this file into it by LD_PRELOAD: a bind to "any
 * address" becomes a bind to the loopback address. In any other program, and on several hosts, bind is not changed.
 *
 * The ranks must not inherit it: the first program that is not on the way to prterun removes it from its
 * environment. This file calls nothing but the C library. */
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "comm/loopback/loopback.h"

typedef int bind_fn(int fd, __CONST_SOCKADDR_ARG address, socklen_t bytes);

static bind_fn *find_bind(void) {
    bind_fn *found = NULL;
    void    *symbol = dlsym(RTLD_NEXT, "bind");
    memcpy(&found, &symbol, sizeof found);
    return found;
}

static int is_prterun(void) { return strcmp(program_invocation_short_name, "prterun") == 0; }

__attribute__((visibility("default"))) int bind(int fd, __CONST_SOCKADDR_ARG address, socklen_t bytes) {
    bind_fn                   *next = find_bind();
    const struct sockaddr     *given = address.__sockaddr__;
    struct sockaddr_storage    own;
    const struct sockaddr_in  *v4 = (const struct sockaddr_in *)&own;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&own;
    if (next == NULL) return errno = ENOSYS, -1;
    if (!is_prterun() || given == NULL || bytes > sizeof own) return next(fd, address, bytes);
    memcpy(&own, given, bytes);
    if (bytes >= sizeof *v4 && own.ss_family == AF_INET && v4->sin_addr.s_addr == htonl(INADDR_ANY))
        ((struct sockaddr_in *)&own)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bytes >= sizeof *v6 && own.ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr))
        ((struct sockaddr_in6 *)&own)->sin6_addr = in6addr_loopback;
    return next(fd, (const struct sockaddr *)&own, bytes);
}

extern char **environ;

static const char *preloaded(void) {
    for (char **e = environ; e != NULL && *e != NULL; e++)
        if (strncmp(*e, "LD_PRELOAD=", 11) == 0) return *e + 11;
    return NULL;
}

/* launch.c puts it first in LD_PRELOAD, before the user's own entries. */
__attribute__((constructor)) static void leave_the_environment(void) {
    static const char own[] = "plait-loopback.so";
    const char       *name = program_invocation_short_name, *all = preloaded();
    const char       *rest = all != NULL ? strchr(all, ':') : NULL;
    const size_t      length = rest != NULL ? (size_t)(rest - all) : all != NULL ? strlen(all) : 0;
    if (strcmp(name, "mpirun") == 0 || strcmp(name, "mpiexec") == 0) return; /* it becomes prterun */
    if (length < sizeof own - 1 || memcmp(all + length - (sizeof own - 1), own, sizeof own - 1) != 0) return;
    if (rest == NULL) unsetenv("LD_PRELOAD");
    else setenv("LD_PRELOAD", rest + 1, 1);
}

__attribute__((visibility("default"))) const void *plait_loopback_module(void);

const void *plait_loopback_module(void) {
    static const pli_loopback module = { .abi = PLI_LOOPBACK_ABI };
    return &module;
}
