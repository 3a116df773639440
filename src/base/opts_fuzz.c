/* Feeds any bytes as a configuration file: it is read, or refused with a text; never a crash, a leak or a field
 * outside its bounds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/opts_impl.h"

struct target {
    bool          flag;
    int64_t       whole;
    double        number;
    const char   *text, *choice;
    pli_text_list list;
    uint64_t      duration;
};

static const pli_opt rows[] = {
    { "flag", PLI_OPT_FLAG, offsetof(struct target, flag), NULL, NULL, "f", 0, 0, "a" },
    { "whole", PLI_OPT_I64, offsetof(struct target, whole), "3", "N", "w", 1, 100, "a" },
    { "number", PLI_OPT_F64, offsetof(struct target, number), NULL, "X", "n", 0, INFINITY, "a" },
    { "text", PLI_OPT_TEXT, offsetof(struct target, text), NULL, "T", "t", 0, 0, "a" },
    { "choice", PLI_OPT_CHOICE, offsetof(struct target, choice), "one", "one|two", "c", 0, 0, "a" },
    { "list", PLI_OPT_LIST, offsetof(struct target, list), NULL, "L", "l", 0, 0, "a" },
    { "duration", PLI_OPT_DURATION, offsetof(struct target, duration), NULL, "D", "d", 0, 0, "a" },
    { "later", PLI_OPT_LATER, 0, NULL, NULL, "not there yet", 0, 0, "a" },
    { 0 },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
    if (!holds) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct target target;
    plait_error   err = { .code = PLAIT_OK };
    pli_opts     *opts = NULL;
    pli_text      text = { .data = NULL };
    require(pli_opts_read(rows, 0, NULL, &target, NULL, NULL, &opts, &err) == PLAIT_OK);
    plait_status status = pli_opts_read_yaml(opts, &target, "f.yaml", data, size, &err);
    require(status == PLAIT_OK || (status == err.code && err.text[0] != '\0'));
    require(target.whole >= 1 && target.whole <= 100 && target.number >= 0);
    require(strcmp(target.choice, "one") == 0 || strcmp(target.choice, "two") == 0);
    for (const pli_opt *row = rows; row->name != NULL; row++) pli_opts_value(row, &target, &text);
    pli_text_free(&text);
    pli_opts_free(&opts);
    return 0;
}
