/* data/formats/array_case.h - what the tests of array files share: a folder for their files. */
#ifndef PLI_DATA_ARRAY_CASE_H
#define PLI_DATA_ARRAY_CASE_H

#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"

static char directory[] = "/tmp/plait_array_XXXXXX";

/* The last six answers are valid. */
static inline char *in_directory(const char *name) {
    static char paths[6][128];
    static int  at;
    snprintf(paths[at %= 6], sizeof paths[0], "%s/%s", directory, name);
    return paths[at++];
}

static inline int make_directory(void **state) {
    (void)state;
    return mkdtemp(directory) != NULL ? 0 : -1;
}

static inline int drop_directory(void **state) {
    (void)state;
    pli_remove_directory(directory);
    return 0;
}

#endif
