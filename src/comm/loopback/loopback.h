/* comm/loopback/loopback.h - what plait-loopback.so gives: itself, which the dynamic linker can then find (dladdr). */
#ifndef PLI_COMM_LOOPBACK_H
#define PLI_COMM_LOOPBACK_H

#include <stdint.h>

#define PLI_LOOPBACK_ABI 1u

typedef struct pli_loopback {
    uint32_t abi;
} pli_loopback;

#endif
