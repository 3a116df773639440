/* comm/loopback/loopback.h - the entry of plait-loopback.so. It gives nothing but an address, by which dladdr finds
 * the file. */
#ifndef PLI_COMM_LOOPBACK_H
#define PLI_COMM_LOOPBACK_H

#include <stdint.h>

#define PLI_LOOPBACK_ABI 1u

typedef struct pli_loopback {
    uint32_t abi;
} pli_loopback;

#endif
