/* Checks that the paths of a command are different files (paths.h). */
#include "cli/paths.h"

#include <string.h>

#include "data/source/source.h"

/* Is name PATH.RANK? */
static bool is_of_rank(const char *path, const char *name) {
    const char *dot = strrchr(name, '.');
    if (dot == NULL || dot[1] == '\0' || strspn(dot + 1, "0123456789") != strlen(dot + 1)) return false;
    char *bare = pli_format("%.*s", (int)(dot - name), name);
    bool  same = bare != NULL && pli_same_file(bare, path);
    pli_free(bare);
    return same;
}

static bool is_same(const pli_path *written, const char *name) {
    return pli_same_file(written->path, name) || (written->a_rank && is_of_rank(written->path, name));
}

static bool refuse(const char *command, const pli_path *written, const char *option, const char *name) {
    pli_cli_usage("%s: %s would write over %s %s; give it another name", command, written->option, option, name);
    return false;
}

/* Checks a data file, and the file of weights beside it. */
static bool check_data(const char *command, const pli_path *written, const char *option, const char *file) {
    char *weights = pli_format("%s.weight", file);
    bool  apart = true;
    if (is_same(written, file)) apart = refuse(command, written, option, file);
    else if (weights != NULL && pli_file_exists(weights) && is_same(written, weights))
        apart = refuse(command, written, "the weights of", file);
    pli_free(weights);
    return apart;
}

/* Checks the files that the names stand for. If a name matches no file, its reader will report it. */
static bool check_names(const char *command, const pli_path *written, size_t n_written, const char *option,
                        const char *const *names, int64_t n) {
    pli_text list = { 0 };
    bool     apart = true;
    char    *rest = NULL;
    if (n == 0 || pli_sources_list(names, n, &list, NULL) < 0) {
        pli_text_free(&list);
        return true;
    }
    for (char *file = list.data != NULL ? strtok_r(list.data, "\n", &rest) : NULL; file != NULL && apart;
         file = strtok_r(NULL, "\n", &rest))
        for (size_t i = 0; i < n_written && apart; i++)
            if (written[i].path != NULL) apart = check_data(command, &written[i], option, file);
    pli_text_free(&list);
    return apart;
}

bool pli_paths_apart(const char *command, const pli_path *written, size_t n_written, const pli_path *read,
                     size_t n_read, const pli_text_list *data) {
    for (size_t i = 0; i < n_written; i++) {
        if (written[i].path == NULL) continue;
        for (size_t j = 0; j < n_written; j++)
            if (j != i && written[j].path != NULL && is_same(&written[i], written[j].path))
                return refuse(command, &written[i], written[j].option, written[j].path);
    }
    for (size_t j = 0; j < n_read; j++)
        if (read[j].path != NULL && !check_names(command, written, n_written, read[j].option, &read[j].path, 1))
            return false;
    return check_names(command, written, n_written, "--data", data->item, data->n);
}

plait_status pli_paths_check_read(const char *const *names, int64_t n, plait_error *err) {
    pli_text     list = { 0 };
    plait_status status = pli_sources_list(names, n, &list, err);
    char        *rest = NULL, *file = status >= 0 && list.data != NULL ? strtok_r(list.data, "\n", &rest) : NULL;
    for (; file != NULL && status >= 0; file = strtok_r(NULL, "\n", &rest)) {
        pli_mapped mapped;
        if (pli_is_pipe(file)) continue;
        status = pli_map_file(file, &mapped, err);
        if (status >= 0) pli_unmap_file(&mapped);
    }
    pli_text_free(&list);
    return status;
}

plait_status pli_paths_check_write(const char *path, plait_error *err) {
    pli_outfile *file = NULL;
    if (pli_is_pipe(path)) return PLAIT_OK;
    PLI_TRY(pli_outfile_open(path, &file, err));
    pli_outfile_abandon(&file);
    return PLAIT_OK;
}

/* The length of a directory's name without slashes at its end. */
static size_t bare(const char *dir) {
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/') n--;
    return n;
}

bool pli_paths_same_directory(const char *a, const char *b) {
    return a != NULL && b != NULL && bare(a) == bare(b) && strncmp(a, b, bare(a)) == 0;
}
