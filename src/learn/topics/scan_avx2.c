/* The sampler scan for processors with AVX2. See counts.h. */
#define SCAN pli_topic_scan_avx2
#include "learn/topics/scan_loops.h"
