/* keeper.h - the process that stands between a launcher and one rank. */
#ifndef PLI_CLI_KEEPER_H
#define PLI_CLI_KEEPER_H

/** Runs argv (ended by NULL, argv[0] a path or a name on the path) as a child until it ends; hands signals on; ends
 *  itself as the child did, by its exit code (the answer) or by the same signal, after it has told launch of that
 *  (cli/verdict.h). */
int pli_keep(char *const *argv);

#endif
