/* again.h - the command that continues a run from what the run has kept, as a line to paste into a shell. */
#ifndef PLI_CLI_AGAIN_H
#define PLI_CLI_AGAIN_H

#include "cli/settings.h"

/* The run's command. */
typedef struct pli_again {
    const pli_train_settings *settings;
    const pli_opts           *opts;
    int                       argc; /* its words after "train" */
    char *const              *argv;
    bool                      processes; /* each rank is a process, and writes files named NAME.RANK */
    const char               *optimizer; /* with which a model is gone on from; NULL: the run's own */
} pli_again;

/** Adds a blank and a word as a shell reads it. */
void pli_again_word(pli_text *text, const char *word);
/** Adds the same command again, "plait train ...", to text. */
void pli_again_same(const pli_again *again, pli_text *text);
/** Adds the command that resumes from the newest checkpoint. */
void pli_again_from_checkpoint(const pli_again *again, pli_text *text);
/** Adds the command that continues from the saved weights, for the epochs that are left (0: the default number). */
void pli_again_from_model(const pli_again *again, int64_t left, pli_text *text);

#endif
