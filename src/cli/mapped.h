/* mapped.h - if a mapped file is cut while it is read, the program ends with a line that names it, not with SIGBUS.
 *
 * Data, models and caches are read through mappings. If another program cuts such a file, the next access to a page
 * that is gone raises SIGBUS in the middle of a parser. The process cannot recover from there: its other ranks, threads
 * and locks would be left in any state. So it ends as failed, and says which file was cut. The library sets no handler,
 * because that is up to the program that uses it. Reading into buffers instead would take memory for each cursor of a
 * stream, and a second implementation of every reader. */
#ifndef PLI_CLI_MAPPED_H
#define PLI_CLI_MAPPED_H

/** Sets the handler. A SIGBUS that concerns no mapped file goes to the former handler. */
void pli_mapped_guard(void);

#endif
