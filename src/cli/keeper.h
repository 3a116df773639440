/* keeper.h - the keeper, a process between a launcher and one rank. */
#ifndef PLI_CLI_KEEPER_H
#define PLI_CLI_KEEPER_H

/** Runs argv (NULL ends it, argv[0] is a path or a name on the path) as a child until it ends, and passes signals on.
 *  Reports the child's end to launch (cli/verdict.h). Then it ends like the child: it returns the child's exit code, or
 *  dies of the same signal. */
int pli_keep(char *const *argv);

#endif
