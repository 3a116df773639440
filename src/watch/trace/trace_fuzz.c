/* The spans of another process, of any content: an error, or JSON, and nothing read outside of them. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "watch/trace/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char            path[64];
    pli_trace_file *file = NULL;
    pli_trace_rank  rank = { .rank = 1, .host = "fuzz" };
    snprintf(path, sizeof path, "/tmp/plait-trace-fuzz.%d", (int)getpid());
    if (pli_trace_file_open(path, "threads", false, 0, &file, NULL) < 0) abort();
    (void)pli_trace_file_add(file, &rank, data, size, NULL);
    pli_trace_file_abandon(&file);
    return 0;
}
