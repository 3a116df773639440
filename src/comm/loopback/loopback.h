/* comm/loopback/loopback.h - what plait-loopback.so says of itself: where it lies. */
#ifndef PLI_COMM_LOOPBACK_H
#define PLI_COMM_LOOPBACK_H

#include <stdint.h>

#define PLI_LOOPBACK_ABI 1u

typedef struct pli_loopback {
    uint32_t    abi;
    const char *path; /* NULL: not known; as long as the module is open */
} pli_loopback;

#endif
