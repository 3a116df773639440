/* A rank's end of the link to launch. See link.h. */
#include "cli/dashboard/link.h"

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

const char pli_dash_variable[] = "PLAIT_DASHBOARD_LINK";

int pli_dash_link_open(void) {
    const char        *name = pli_env(pli_dash_variable);
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct ucred       peer;
    socklen_t          bytes = sizeof peer;
    if (name == NULL || name[0] == '\0' || strlen(name) >= sizeof address.sun_path - 1) return -1;
    memcpy(address.sun_path + 1, name, strlen(name));
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    if (connect(fd, (struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && (peer.uid == geteuid() || peer.uid == 0))
        return fd;
    close(fd);
    return -1;
}

void pli_dash_link_send(int fd, const char *line, size_t bytes) {
    if (fd >= 0 && send(fd, line, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) { /* a picture is not worth a wait */
    }
}
