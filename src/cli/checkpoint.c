/* checkpoint - lists a folder of checkpoints, verifies every byte of them, or shows the contents of one. */
#include "data/checkpoint/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "watch/watch.h"

typedef struct checkpoint_settings {
    bool json;
} checkpoint_settings;

static const pli_opt rows[] = {
    { "json", PLI_OPT_FLAG, offsetof(checkpoint_settings, json), NULL, NULL, "print one JSON object", 0, 0, "output" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

static const char *const words[] = { "list", "verify", "inspect", NULL };

/* The checkpoints that the command is about: all of a directory, or one. */
typedef struct place {
    char                dir[4096];
    char                only[PLI_CHECKPOINT_FOLDER]; /* the folder of the one; "": all */
    pli_checkpoint_list list;
} place;

static void say(const char *folder, const char *reason) { pli_cli_usage("%s: %s", folder, reason); }

/* --- list --------------------------------------------------------------------------------------------- */

static const char *state_name(pli_checkpoint_state state) {
    static const char *const names[] = { "complete", "unfinished", "damaged" };
    return names[state];
}

static const char *const unfinished = "was not written to its end; the next checkpoint removes it";

static void entry_json(const pli_checkpoint_entry *entry, const char *state, const char *reason, pli_text *text) {
    pli_json_object(text, NULL);
    pli_json_text(text, "name", entry->folder);
    pli_json_i64(text, "clock", entry->clock);
    pli_json_text(text, "state", state);
    pli_json_i64(text, "parts", entry->parts);
    pli_json_i64(text, "tensors", entry->tensors);
    pli_json_i64(text, "bytes", entry->bytes);
    pli_json_text(text, "reason", reason);
    pli_json_end(text);
}

static void list_entry(const pli_checkpoint_entry *entry, const char *state, const char *reason, bool json,
                       pli_text *text) {
    if (reason != NULL) say(entry->folder, reason);
    if (json) {
        entry_json(entry, state, reason, text);
    } else {
        pli_text_add(text, "%s\tclock %" PRId64 "\t%s\t%d parts\t%" PRId64 " tensors\t%" PRId64 " bytes\n",
                     entry->folder, entry->clock, state, entry->parts, entry->tensors, entry->bytes);
    }
}

/* Begins the output: lines of text, or a JSON object with a list. */
static void begin_list(pli_text *lines, bool json) {
    if (!json) return;
    pli_json_begin(lines);
    pli_json_list(lines, "checkpoints");
}

static int print_list(pli_text *lines, bool json, int code) {
    if (json) {
        pli_json_list_end(lines);
        pli_json_end(lines);
        pli_text_add(lines, "\n");
    }
    return pli_cli_print(lines) ? pli_cli_end(code) : PLI_EXIT_FAILED;
}

static bool is_meant(const place *at, const pli_checkpoint_entry *entry) {
    return at->only[0] == '\0' || strcmp(at->only, entry->folder) == 0;
}

static int list(const place *at, bool json) {
    pli_text lines = { 0 };
    begin_list(&lines, json);
    for (int64_t i = 0; i < at->list.n; i++) {
        const pli_checkpoint_entry *entry = &at->list.entry[i];
        const char                 *reason = NULL;
        if (!is_meant(at, entry)) continue;
        if (entry->state == PLI_CHECKPOINT_UNFINISHED) reason = unfinished;
        if (entry->state == PLI_CHECKPOINT_DAMAGED) reason = entry->why.text;
        list_entry(entry, state_name(entry->state), reason, json, &lines);
    }
    return print_list(&lines, json, PLI_EXIT_DONE);
}

/* --- verify ------------------------------------------------------------------------------------------- */

/* Checks every byte of a checkpoint; *why says what is wrong. */
static plait_status judge(const place *at, const pli_checkpoint_entry *entry, plait_error *why) {
    pli_checkpoint *checkpoint = NULL;
    *why = entry->why;
    if (entry->state == PLI_CHECKPOINT_DAMAGED) return why->code;
    PLI_TRY(pli_checkpoint_open_at(at->dir, entry->folder, &checkpoint, why));
    plait_status status = pli_checkpoint_verify(checkpoint, why);
    pli_checkpoint_close(&checkpoint);
    return status;
}

static int verify(const place *at, bool json) {
    pli_text lines = { 0 };
    int64_t  good = 0, damaged = 0;
    begin_list(&lines, json);
    for (int64_t i = 0; i < at->list.n; i++) {
        const pli_checkpoint_entry *entry = &at->list.entry[i];
        plait_error                 why;
        if (!is_meant(at, entry)) continue;
        if (entry->state == PLI_CHECKPOINT_UNFINISHED) {
            list_entry(entry, "unfinished", unfinished, json, &lines);
        } else if (judge(at, entry, &why) < 0) {
            list_entry(entry, "damaged", why.text, json, &lines);
            damaged++;
        } else {
            list_entry(entry, "good", NULL, json, &lines);
            good++;
        }
    }
    int code = print_list(&lines, json, damaged > 0 ? PLI_EXIT_NO : PLI_EXIT_DONE);
    if (code != PLI_EXIT_DONE || good > 0) return code;
    say(at->dir, "none of its checkpoints was written to its end");
    return PLI_EXIT_FAILED;
}

/* --- inspect ------------------------------------------------------------------------------------------ */

static void put_shape(const pli_checkpoint_tensor *tensor, const char *between, pli_text *text) {
    for (int32_t i = 0; i < tensor->dims; i++) pli_text_add(text, "%s%" PRId64, i > 0 ? between : "", tensor->shape[i]);
}

/* The length of the table's name if the tensor has a table's values; 0: it has not. */
static int table_name(const pli_checkpoint_tensor *tensor) {
    static const char behind[] = ".values";
    size_t            length = strlen(tensor->name), tail = sizeof behind - 1;
    return length > tail && strcmp(tensor->name + length - tail, behind) == 0 ? (int)(length - tail) : 0;
}

/* Adds a line for a table: name, type, shape, dense or sparse, and the slots of its update rule. */
static void describe_table(const pli_checkpoint *checkpoint, const pli_checkpoint_tensor *values, int name,
                           pli_text *text) {
    char *keys = pli_format("%.*s.keys", name, values->name), *slot = pli_format("%.*s.slot.", name, values->name);
    bool  sparse = keys != NULL && pli_checkpoint_find(checkpoint, keys) != NULL, first = true;
    text->failed |= keys == NULL || slot == NULL;
    pli_text_add(text, "table\t%.*s\t%s\t", name, values->name, values->type);
    put_shape(values, " x ", text);
    pli_text_add(text, "\t%s", sparse ? "sparse" : "dense");
    for (int64_t i = 0; slot != NULL && i < pli_checkpoint_tensors(checkpoint); i++) {
        const char *other = pli_checkpoint_tensor_at(checkpoint, i)->name;
        if (strncmp(other, slot, strlen(slot)) != 0) continue;
        pli_text_add(text, "%s%s", first ? "\tslots " : ", ", other + strlen(slot));
        first = false;
    }
    pli_text_add(text, "\n");
    pli_free(keys);
    pli_free(slot);
}

static json_t *meta_of(const pli_checkpoint *checkpoint) {
    const char *meta = pli_checkpoint_meta(checkpoint);
    return pli_json_read(meta, strlen(meta), NULL);
}

static void describe_meta(const pli_checkpoint *checkpoint, pli_text *text) {
    json_t     *meta = meta_of(checkpoint), *value;
    const char *key;
    json_object_foreach(meta, key, value) {
        pli_text shown = { 0 };
        pli_json_value_ascii(&shown, NULL, value);
        pli_text_add(text, "meta\t");
        pli_text_add_printable(text, key, strlen(key), "");
        pli_text_add(text, "\t%s\n", shown.data != NULL ? shown.data : "");
        text->failed |= shown.failed;
        pli_text_free(&shown);
    }
    text->failed |= meta == NULL;
    json_decref(meta);
}

static void describe(const pli_checkpoint *checkpoint, pli_text *text) {
    int64_t n = pli_checkpoint_tensors(checkpoint);
    pli_text_add(text, "checkpoint\t%s\nclock\t%" PRId64 "\nserial\t%" PRId64 "\nparts\t%d\n",
                 pli_checkpoint_folder(checkpoint), pli_checkpoint_clock(checkpoint), pli_checkpoint_serial(checkpoint),
                 pli_checkpoint_parts(checkpoint));
    for (int32_t i = 0; i < pli_checkpoint_parts(checkpoint); i++)
        pli_text_add(text, "part\t%d\t%" PRId64 " bytes\n", i, pli_checkpoint_part_bytes(checkpoint, i));
    for (int64_t i = 0; i < n; i++) {
        const pli_checkpoint_tensor *tensor = pli_checkpoint_tensor_at(checkpoint, i);
        if (table_name(tensor) > 0) describe_table(checkpoint, tensor, table_name(tensor), text);
    }
    for (int64_t i = 0; i < n; i++) {
        const pli_checkpoint_tensor *tensor = pli_checkpoint_tensor_at(checkpoint, i);
        pli_text_add(text, "tensor\t%s\t%s\t", tensor->name, tensor->type);
        put_shape(tensor, " x ", text);
        pli_text_add(text, "\t%" PRId64 " piece%s\n", pli_checkpoint_pieces(checkpoint, tensor),
                     pli_plural(pli_checkpoint_pieces(checkpoint, tensor)));
    }
    describe_meta(checkpoint, text);
}

static void tensors_json(const pli_checkpoint *checkpoint, pli_text *text) {
    pli_json_list(text, "tensors");
    for (int64_t i = 0; i < pli_checkpoint_tensors(checkpoint); i++) {
        const pli_checkpoint_tensor *tensor = pli_checkpoint_tensor_at(checkpoint, i);
        pli_json_object(text, NULL);
        pli_json_text(text, "name", tensor->name);
        pli_json_text(text, "type", tensor->type);
        pli_json_list(text, "shape");
        for (int32_t d = 0; d < tensor->dims; d++) pli_json_i64(text, NULL, tensor->shape[d]);
        pli_json_list_end(text);
        pli_json_i64(text, "pieces", pli_checkpoint_pieces(checkpoint, tensor));
        pli_json_end(text);
    }
    pli_json_list_end(text);
}

static void describe_json(const pli_checkpoint *checkpoint, pli_text *text) {
    json_t *meta = meta_of(checkpoint);
    pli_json_begin(text);
    pli_json_text(text, "name", pli_checkpoint_folder(checkpoint));
    pli_json_i64(text, "clock", pli_checkpoint_clock(checkpoint));
    pli_json_i64(text, "serial", pli_checkpoint_serial(checkpoint));
    pli_json_i64(text, "parts", pli_checkpoint_parts(checkpoint));
    pli_json_list(text, "part_bytes");
    for (int32_t i = 0; i < pli_checkpoint_parts(checkpoint); i++)
        pli_json_i64(text, NULL, pli_checkpoint_part_bytes(checkpoint, i));
    pli_json_list_end(text);
    tensors_json(checkpoint, text);
    /* in ASCII, so that no control characters are printed; JSON itself allows some */
    pli_json_value_ascii(text, "meta", meta);
    pli_json_end(text);
    pli_text_add(text, "\n");
    json_decref(meta);
}

static plait_status open_meant(const place *at, pli_checkpoint **checkpoint_out, plait_error *err) {
    pli_text     passed_over = { 0 };
    plait_status status;
    if (at->only[0] == '\0') {
        status = pli_checkpoint_open(at->dir, checkpoint_out, &passed_over, err);
        if (status == PLAIT_OK && passed_over.data != NULL)
            pli_cli_usage("skipped:\n%.*s", (int)passed_over.length - 1, passed_over.data);
        pli_text_free(&passed_over);
        return status;
    }
    status = pli_checkpoint_open_at(at->dir, at->only, checkpoint_out, err);
    if (status == PLAIT_OK) status = pli_checkpoint_verify(*checkpoint_out, err);
    return status;
}

static int inspect(const place *at, bool json) {
    pli_checkpoint *checkpoint = NULL;
    plait_error     err = { .rank = -1 };
    pli_text        text = { 0 };
    int             code = PLI_EXIT_FAILED;
    if (open_meant(at, &checkpoint, &err) < 0) {
        pli_cli_fail(&err);
    } else {
        if (json)
            describe_json(checkpoint, &text);
        else
            describe(checkpoint, &text);
        code = pli_cli_print(&text) ? pli_cli_end(PLI_EXIT_DONE) : PLI_EXIT_FAILED;
    }
    pli_checkpoint_close(&checkpoint);
    return code;
}

/* --- the command -------------------------------------------------------------------------------------- */

/* Reads DIR, or DIR/checkpoint-000000000500, with or without slashes at the end. */
static bool read_place(const char *given, place *at) {
    size_t length = strlen(given);
    while (length > 1 && given[length - 1] == '/') length--;
    if (length >= sizeof at->dir - 2) {
        pli_cli_usage("checkpoint: a path of more than %zu bytes", sizeof at->dir);
        return false;
    }
    memcpy(at->dir, given, length);
    at->dir[length] = '\0';
    const char *slash = strrchr(at->dir, '/'), *last = slash != NULL ? slash + 1 : at->dir;
    if (!pli_checkpoint_folder_read(last, NULL, NULL) || !pli_is_directory(at->dir)) return true;
    snprintf(at->only, sizeof at->only, "%s", last);
    memcpy(at->dir + (last - at->dir), ".", 2); /* DIR/. */
    return true;
}

static bool look(place *at) {
    plait_error err = { .rank = -1 };
    if (pli_checkpoint_list_read(at->dir, &at->list, &err) < 0) {
        pli_cli_fail(&err);
        return false;
    }
    if (at->list.n > 0) return true;
    char *manifest = pli_format("%s/manifest.json", at->dir);
    say(at->dir, manifest != NULL && pli_file_exists(manifest)
                     ? "holds no checkpoint, but a manifest: the folder of a checkpoint must keep its name, such as "
                       "checkpoint-000000000500"
                     : "holds no checkpoint; train --checkpoint DIR writes them");
    pli_free(manifest);
    return false;
}

static int answer(const pli_text_list *given, const checkpoint_settings *set) {
    place at = { .only = "" };
    int   code = PLI_EXIT_FAILED;
    if (!read_place(given->item[1], &at)) return PLI_EXIT_USAGE;
    if (look(&at)) {
        switch (given->item[0][0]) {
        case 'l': code = list(&at, set->json); break;
        case 'v': code = verify(&at, set->json); break;
        default: code = inspect(&at, set->json);
        }
    }
    pli_checkpoint_list_free(&at.list);
    return code;
}

static bool is_known(const char *word) {
    for (size_t i = 0; words[i] != NULL; i++)
        if (strcmp(word, words[i]) == 0) return true;
    return false;
}

static int checkpoint(int argc, char *const *argv) {
    checkpoint_settings set = { 0 };
    pli_opts           *opts = NULL;
    pli_text_list       given = { 0 };
    int                 code = PLI_EXIT_USAGE;
    if (!pli_cli_read(&pli_command_checkpoint, argc, argv, &set, &given, &opts, &code)) return code;
    if (given.n == 0)
        pli_cli_usage("checkpoint: say 'plait checkpoint list|verify|inspect DIR'");
    else if (!is_known(given.item[0]))
        pli_cli_unknown("word after checkpoint:", given.item[0], words, 3);
    else if (given.n != 2)
        pli_cli_usage("checkpoint: %s; say 'plait checkpoint %s DIR'", given.n < 2 ? "no directory" : "more than one",
                      given.item[0]);
    else
        code = answer(&given, &set);
    pli_opts_free(&opts);
    return code;
}

const pli_command pli_command_checkpoint = {
    .name = "checkpoint",
    .usage = "checkpoint list|verify|inspect DIR [--json]",
    .summary = "list, verify or inspect checkpoints",
    .details = "DIR is the folder that train --checkpoint names, or the folder of one checkpoint in it.\n\n"
               "list: prints one line for each checkpoint, the oldest first: name, clock, state, parts, tensors and "
               "bytes. The state is complete, unfinished (its writing was cut off; the next checkpoint removes it) or "
               "damaged; it follows from the manifest and the lengths of the files.\n\n"
               "verify: reads every byte, compares it with its checksum, and names the file and tensor of any "
               "damage.\n\n"
               "inspect: shows the newest good checkpoint: clock, parts, tables with type and shape, tensors, and what "
               "the run wrote beside them (meta). Each line holds a word, a tab and values.\n\n"
               "Exit code 0: good. 4: verify found a damaged checkpoint. 1: there is none, or it cannot be read.",
    .rows = rows,
    .words = words,
    .run = checkpoint,
};
