/* base - what every room stands on: errors, memory, text, log, options, threads, random numbers, hashing,
 * the operating system. It knows nothing of ranks, tables or models. This header includes all of base. */
#ifndef PLI_BASE_H
#define PLI_BASE_H

#include "base/alloc.h"
#include "base/error.h"
#include "base/event.h"
#include "base/hash.h"
#include "base/keymap.h"
#include "base/log.h"
#include "base/opts.h"
#include "base/os.h"
#include "base/pool.h"
#include "base/random.h"
#include "base/sized.h"
#include "base/sort.h"
#include "base/span.h"
#include "base/text.h"

#endif
