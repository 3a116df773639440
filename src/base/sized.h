/* base/sized.h - option structs of callers that were compiled for another version of the library.
 *
 * A public option struct begins with its size. New fields are added at its end, so the struct of an older caller is
 * the beginning of today's: the library fills a struct of its own with the defaults, and copies over them what the
 * caller has given. A newer caller's struct is longer. Fields that this library does not know are then at its end;
 * while they are 0 nothing was asked for with them, and the rest counts as usual.
 *
 * A struct has had its least size since the first version whose fields lie where today's do. What is shorter was not
 * filled by opts_init. */
#ifndef PLI_BASE_SIZED_H
#define PLI_BASE_SIZED_H

#include <stddef.h>

#include <plait/status.h>

/* The size of a struct whose last field is this one. */
#define PLI_SIZED_END(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

/** Copies the options `given`, which begin with their size, over own [bytes], which holds the defaults, and sets its
 *  size to bytes. given NULL: the defaults stay. type is the struct's name, `least` its least size.
 *  Errors: EINVAL given is shorter than `least`, or so long that its size cannot be right; EVERSION it is longer than
 *  own, and a field behind own's is not 0. */
plait_status pli_sized_take(void *own, size_t bytes, size_t least, const void *given, const char *type,
                            plait_error *err);

/** Fills a caller's struct of `size` bytes with the defaults [bytes], as far as it reaches, and with 0 behind them. It
 *  begins with its size. opts NULL, or too short for a size: nothing. */
void pli_sized_give(void *opts, size_t size, const void *defaults, size_t bytes);

#endif
