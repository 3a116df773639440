/* plait - distributed training of machine-learning models. The table of commands is in commands.c. */
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/mapped.h"

/* Where peers are lost, calls into a communication library were left in the middle, and what it does when a process
 * ends (libfabric frees what others of its threads still use) must not be run: all that is to be kept is written. */
int main(int argc, char **argv) {
    pli_mapped_guard();
    int code = pli_cli_main(argc, argv);
    if (code != PLI_EXIT_PEERS && (code & PLI_EXIT_AT_ONCE) == 0) return code;
    fflush(NULL);
    _exit(code & ~PLI_EXIT_AT_ONCE);
}
