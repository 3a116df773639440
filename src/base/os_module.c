/* base/os_module.c - optional parts are found beside the program or library that wants them.
 *
 * The dynamic linker (dladdr), not argv or a fixed path, says where the program lies. So a build tree, an installed
 * package and a library inside a Python wheel each find their own modules and nobody else's. PLAIT_MODULES comes
 * first. A module that exists but does not load is an error of its own, whose text says what the module lacks. */
#include "base/os.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/opts.h"

/* The file of the object that holds this code, by the linker's map entry; that name is empty for the main program. */
static const char *own_file(char real[PATH_MAX]) {
    Dl_info          info;
    struct link_map *map = NULL;
    const void      *here = (const void *)(uintptr_t)pli_own_directory;
    if (dladdr1(here, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL || map->l_name[0] == '\0')
        return realpath("/proc/self/exe", real);
    return realpath(map->l_name, real);
}

void pli_own_directory(char path[4096]) {
    char        real[PATH_MAX];
    const char *file = own_file(real);
    char       *slash = file != NULL ? strrchr(real, '/') : NULL;
    if (slash == NULL) {
        snprintf(path, 4096, ".");
        return;
    }
    snprintf(path, 4096, "%.*s", slash == real ? 1 : (int)(slash - real), real);
}

/* --- the search ---------------------------------------------------------------------------------------- */

struct search {
    const char *name;
    void       *handle; /* set once found */
    pli_text    tried;  /* directories looked into, for the error */
    pli_text    broken; /* the linker's words on a module that exists but does not load */
    bool        failed; /* out of memory */
};

/* Looks into one directory; true ends the search. */
static bool look_in(struct search *search, const char *directory) {
    char *path = pli_format("%s/plait-%s.so", directory, search->name);
    if (path == NULL) return search->failed = true;
    bool there = pli_file_exists(path);
    if (there) search->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (there && search->handle == NULL) pli_text_add(&search->broken, "%s", dlerror());
    if (!there) pli_text_add(&search->tried, "%s%s", search->tried.length > 0 ? ", " : "", directory);
    pli_free(path);
    return there;
}

static bool look_below(struct search *search, const char *own, const char *below) {
    char *directory = pli_format("%s/%s", own, below);
    if (directory == NULL) return search->failed = true;
    bool found = look_in(search, directory);
    pli_free(directory);
    return found;
}

/* PLAIT_MODULES: directories separated by colons. */
static bool look_in_variable(struct search *search) {
    const char *at = pli_env("PLAIT_MODULES");
    while (at != NULL && *at != '\0') {
        size_t length = strcspn(at, ":");
        char  *directory = pli_format("%.*s", (int)length, at);
        if (directory == NULL) return search->failed = true;
        bool found = length > 0 && look_in(search, directory);
        pli_free(directory);
        if (found) return true;
        at += length + (at[length] == ':');
    }
    return false;
}

/* ../lib/x86_64-linux-gnu/plait and the like. */
static bool look_in_multiarch(struct search *search, const char *own) {
    char  *pattern = pli_format("%s/../lib/*/plait", own);
    glob_t dirs;
    bool   found = false;
    if (pattern == NULL) return search->failed = true;
    if (glob(pattern, 0, NULL, &dirs) == 0) {
        for (size_t i = 0; !found && i < dirs.gl_pathc; i++) found = look_in(search, dirs.gl_pathv[i]);
    }
    globfree(&dirs);
    pli_free(pattern);
    return found;
}

static void look_everywhere(struct search *search) {
    static const char *const below[] = { "modules", "../modules", "plait", "../lib/plait" };
    char                     own[4096];
    if (look_in_variable(search)) return;
    pli_own_directory(own);
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        if (look_below(search, own, below[i])) return;
    }
    if (look_in_multiarch(search, own)) return;
#ifdef PLI_MODULE_DIR
    look_in(search, PLI_MODULE_DIR);
#endif
}

static plait_status not_found(const struct search *search, plait_error *err) {
    const char *tried = search->tried.data != NULL ? search->tried.data : "nowhere";
    if (search->failed) return pli_fail(err, PLAIT_ENOMEM, "no memory to look for the module %s", search->name);
    if (search->broken.length > 0)
        return pli_fail(err, PLAIT_EMODULE, "the module %s does not load: %s", search->name, search->broken.data);
    return pli_fail(err, PLAIT_EMODULE, "there is no module %s; looked for plait-%s.so in %s", search->name,
                    search->name, tried);
}

plait_status pli_module_open(const char *name, const char *symbol, void **handle_out, void **symbol_out,
                             plait_error *err) {
    struct search search = { .name = name };
    plait_status  status = PLAIT_OK;
    if (name[0] == '\0' || strchr(name, '/') != NULL)
        return pli_fail(err, PLAIT_EINVAL, "'%s' is no name of a module", name);
    look_everywhere(&search);
    void *entry = search.handle != NULL ? dlsym(search.handle, symbol) : NULL;
    if (search.handle == NULL) {
        status = not_found(&search, err);
    } else if (entry == NULL) {
        status = pli_fail(err, PLAIT_EMODULE, "the module %s has no entry %s", name, symbol);
        dlclose(search.handle);
    } else {
        *handle_out = search.handle;
        *symbol_out = entry;
    }
    pli_text_free(&search.tried);
    pli_text_free(&search.broken);
    return status;
}

void pli_module_close(void **handle) {
    if (*handle != NULL) dlclose(*handle);
    *handle = NULL;
}
