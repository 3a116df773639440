/* data/file_case.h - what tests that read one file share: how it is made, and the options that name it. */
#ifndef PLI_DATA_FILE_CASE_H
#define PLI_DATA_FILE_CASE_H

#include <plait/data.h>
#include <stdlib.h>
#include <unistd.h>

/* Makes an empty file; name ends in XXXXXX, which its own letters replace. As a test's set-up returns it: 0, or -1. */
static inline int new_file(char *name) {
    const int fd = mkstemp(name);
    return fd >= 0 ? close(fd) : -1;
}

/* The options of a data set of one file; path [1] stays the caller's. */
static inline plait_data_opts opts_of_file(const char *const *path) {
    plait_data_opts opts;
    plait_data_opts_init(&opts);
    opts.paths = path;
    opts.n_paths = 1;
    return opts;
}

#endif
