/* tests/learn/checkpoint_dir.h - a folder of checkpoints, which a test's program makes and removes. */
#ifndef PLAIT_TESTS_LEARN_CHECKPOINT_DIR_H
#define PLAIT_TESTS_LEARN_CHECKPOINT_DIR_H

#include <stdio.h>
#include <stdlib.h>

static char dir[] = "/tmp/plait-checkpoint-XXXXXX";

static int set_up(void **state) {
    (void)state;
    return mkdtemp(dir) == NULL;
}

static int tear_down(void **state) {
    char command[200];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command);
}

#endif
