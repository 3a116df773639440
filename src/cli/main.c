/* plait - distributed training of machine-learning models. The table of commands is in commands.c. */
#include "cli/cli.h"

int main(int argc, char **argv) { return pli_cli_main(argc, argv); }
