/* The sampler scan for every processor. See counts.h. */
#define SCAN pli_topic_scan_ref
#include "learn/topics/scan_loops.h"
