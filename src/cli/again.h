/* again.h - the command that goes on from what a run has kept, as a line that can be pasted into a shell. */
#ifndef PLI_CLI_AGAIN_H
#define PLI_CLI_AGAIN_H

#include "cli/settings.h"

/* The run's command. */
typedef struct pli_again {
    const pli_train_settings *settings;
    const pli_opts           *opts;
    int                       argc; /* its words behind "train" */
    char *const              *argv;
    bool                      processes; /* ranks are processes of their own: what they write is named NAME.RANK */
} pli_again;

/** The same command once more: "plait train ...". Into text, as the next two. */
void pli_again_same(const pli_again *again, pli_text *text);
/** From the newest checkpoint. */
void pli_again_from_checkpoint(const pli_again *again, pli_text *text);
/** From the weights that were saved, for the epochs that are left (0: as many as by default). */
void pli_again_from_model(const pli_again *again, int64_t left, pli_text *text);

#endif
