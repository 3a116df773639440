/* Any bytes from another process give an error or JSON, and no read outside of them. The text goes to /dev/null, so no
 * file is made. */
#include <stdlib.h>

#include "watch/trace/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pli_trace_file *file = NULL;
    pli_trace_rank  rank = { .rank = 1, .host = "fuzz" };
    if (pli_trace_file_open("/dev/null", "threads", false, 0, &file, NULL) < 0) abort();
    (void)pli_trace_file_add(file, &rank, data, size, NULL);
    (void)pli_trace_file_add_sent(file, 2, data, size, NULL);
    pli_trace_file_abandon(&file);
    return 0;
}
