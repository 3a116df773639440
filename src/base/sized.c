/* Option structs of older and newer callers. See sized.h. */
#include "base/sized.h"

#include <string.h>

#include "base/error.h"

enum { GROWTH = 4096 }; /* no struct grows by more bytes; a larger size was never set */

plait_status pli_sized_take(void *own, size_t bytes, size_t least, const void *given, const char *type,
                            plait_error *err) {
    size_t size;
    if (given == NULL) return PLAIT_OK;
    memcpy(&size, given, sizeof size);
    if (size < least || size > bytes + GROWTH)
        return pli_fail(err, PLAIT_EINVAL, "%s of %zu bytes: it has at least %zu; fill it by %s_init", type, size,
                        least, type);
    for (size_t i = bytes; i < size; i++)
        if (((const unsigned char *)given)[i] != 0)
            return pli_fail(err, PLAIT_EVERSION,
                            "%s of %zu bytes: a field behind the first %zu, which are all that Plait %s knows, is set; "
                            "leave it 0, or take the library that the program was compiled for",
                            type, size, bytes, plait_version());
    memcpy(own, given, size < bytes ? size : bytes);
    memcpy(own, &bytes, sizeof bytes);
    return PLAIT_OK;
}

void pli_sized_give(void *opts, size_t size, const void *defaults, size_t bytes) {
    if (opts == NULL || size < sizeof size) return;
    memset(opts, 0, size);
    memcpy(opts, defaults, size < bytes ? size : bytes);
    memcpy(opts, &size, sizeof size);
}
