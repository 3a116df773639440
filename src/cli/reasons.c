/* Numbers the reasons for refusals (reasons.h). */
#include "cli/reasons.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const pli_renamed *at_word(const pli_renamed *renamed, const char *at) {
    for (; renamed->from != NULL; renamed++) {
        size_t length = strlen(renamed->from);
        if (strncmp(at, renamed->from, length) == 0 && strchr(" ,;:", at[length]) != NULL) return renamed;
    }
    return NULL;
}

int pli_reasons_number(pli_reasons *all, const char *why, const pli_renamed *renamed) {
    char   general[PLI_REASON_BYTES] = "";
    size_t used = 0;
    for (const char *at = why; *at != '\0' && used + 64 < sizeof general;) {
        const pli_renamed *word = at_word(renamed, at);
        if (word != NULL) used += (size_t)snprintf(general + used, sizeof general - used, "%s", word->to);
        else general[used++] = *at;
        at += word != NULL ? strlen(word->from) : 1;
    }
    for (int i = 0; i < all->n; i++)
        if (strcmp(all->text[i], general) == 0) return i + 1;
    if (all->n < PLI_REASONS_MAX) memcpy(all->text[all->n++], general, sizeof general);
    return all->n;
}

void pli_reasons_tell(const pli_reasons *all, pli_text *text) {
    int width = pli_terminal_columns(1);
    for (int i = 0; i < all->n; i++) {
        char mark[16];
        snprintf(mark, sizeof mark, "[%d]", i + 1);
        pli_text_add(text, "%-5s", mark);
        pli_cli_wrap(text, all->text[i], 5, width < 100 ? width : 100);
    }
}
