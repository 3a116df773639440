/* mapped.h - a mapped file that is cut while it is read ends the program with one line, not with SIGBUS.
 *
 * Data, models and caches are read through mappings. Where another program cuts such a file, the next look at a page
 * that is gone raises SIGBUS in the middle of a parser, from which there is no way back that leaves the other ranks of
 * the process, its threads and its locks whole. So the process ends there, as failed, and says which file it was. The
 * library sets no handler: that is for the program it lives in. Reading into buffers instead would take memory for each
 * cursor of a stream, and every reader a second way. */
#ifndef PLI_CLI_MAPPED_H
#define PLI_CLI_MAPPED_H

/** Sets the handler. A SIGBUS that is of no mapped file goes to whoever had it before. */
void pli_mapped_guard(void);

#endif
