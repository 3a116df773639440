/* comm/hosts.h - which workers share a host: all workers have the same map, agreed on when the run starts. */
#ifndef PLI_COMM_HOSTS_H
#define PLI_COMM_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

/* Hosts are numbered in the order of their first workers; a host's *lead* is its lowest worker. */
typedef struct pli_hosts {
    int32_t  workers, count;
    bool     packed; /* the workers of each host have consecutive numbers */
    int32_t *host;   /* [workers] host of each worker */
    int32_t *place;  /* [workers] how many workers of its host are lower: a lead has 0 */
    int32_t *first;  /* [count + 1] where a host's workers begin in member */
    int32_t *member; /* [workers] in the order of hosts, ascending in each */
} pli_hosts;

/** host_of [workers]: any numbers, equal for workers that share a host. false: no memory. */
bool pli_hosts_make(const int32_t *host_of, int32_t workers, pli_hosts *hosts_out);
void pli_hosts_free(pli_hosts *hosts); /* sets it to zeros; zeros are fine */

#endif
