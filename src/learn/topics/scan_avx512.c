/* The sampler scan for processors with AVX-512. See counts.h. */
#define SCAN pli_topic_scan_avx512
#include "learn/topics/scan_loops.h"
