#include "comm/hosts.h"

#include <string.h>

#include "base/base.h"

/* The number of the host that a lower worker has in common with this one, or a new number. */
static int32_t number_of(const pli_hosts *h, const int32_t *host_of, int32_t worker) {
    for (int32_t k = 0; k < h->count; k++)
        if (host_of[h->first[k]] == host_of[worker]) return k;
    return h->count;
}

bool pli_hosts_make(const int32_t *host_of, int32_t workers, pli_hosts *out) {
    size_t    n = (size_t)workers;
    pli_hosts h = { .workers = workers };
    h.host = pli_array(4 * n + 1, sizeof *h.host);
    if (h.host == NULL) return false;
    h.place = h.host + n;
    h.member = h.place + n;
    h.first = h.member + n;
    for (int32_t w = 0; w < workers; w++) {
        int32_t k = h.host[w] = number_of(&h, host_of, w);
        if (k == h.count) h.first[h.count++] = w; /* until all are numbered, first holds one worker of each host */
    }
    memset(h.first, 0, ((size_t)h.count + 1) * sizeof *h.first);
    for (int32_t w = 0; w < workers; w++) h.place[w] = h.first[h.host[w] + 1]++;
    for (int32_t k = 0; k < h.count; k++) h.first[k + 1] += h.first[k];
    h.packed = true;
    for (int32_t w = 0; w < workers; w++) {
        int32_t at = h.first[h.host[w]] + h.place[w];
        h.member[at] = w;
        h.packed = h.packed && at == w;
    }
    *out = h;
    return true;
}

void pli_hosts_free(pli_hosts *hosts) {
    pli_free(hosts->host);
    memset(hosts, 0, sizeof *hosts);
}
