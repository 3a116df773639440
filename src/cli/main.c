/* plait - distributed training of machine-learning models. The table of commands is in commands.c. */
#include <stdio.h>
#include <unistd.h>

#include "cli/blas.h"
#include "cli/cli.h"
#include "cli/mapped.h"

/* When peers are lost, calls into a communication library never return, and the library's exit handlers must not run
 * (libfabric frees memory that its other threads still use). All outputs have been written by then. */
int main(int argc, char **argv) {
    pli_blas_rest();
    pli_mapped_guard();
    int code = pli_cli_main(argc, argv);
    if (code != PLI_EXIT_PEERS && (code & PLI_EXIT_AT_ONCE) == 0) return code;
    fflush(NULL);
    _exit(code & ~PLI_EXIT_AT_ONCE);
}
