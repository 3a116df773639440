/* The policy for NULL (plait/status.h), checked for every function of the public headers: a function that has no
 * case here fails. The calls are made in a child process, so that a call that crashes or hangs fails by its name,
 * and the other calls are still made. */
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/nulls.h"
#include "hang.h"

enum { CASES_MAX = 1024, PATIENCE_S = 60 };

/* One call: this function, with NULL for this argument (-1: for none). */
typedef struct null_turn {
    const declared  *function;
    const null_case *of;
    int32_t          arg;
} null_turn;

/* What the child reports, in memory that both processes see. */
typedef struct told {
    int32_t at, bad; /* the current turn; how many turns were wrong */
    char    what[32768];
} told;

static null_turn turns[CASES_MAX];
static int32_t   n_turns;

static const null_case *const all_cases[] = { comm_cases,    table_cases, graph_cases,
                                              channel_cases, learn_cases, learner_cases,
                                              schedule_cases, vertex_cases, sized_cases };

static const null_case *find_case(const char *function) {
    for (size_t i = 0; i < sizeof all_cases / sizeof *all_cases; i++)
        for (const null_case *c = all_cases[i]; c->function != NULL; c++)
            if (strcmp(c->function, function) == 0) return c;
    return NULL;
}

static int is_declared(const declared *functions, int32_t n, const char *function) {
    for (int32_t i = 0; i < n; i++)
        if (strcmp(functions[i].function, function) == 0) return 1;
    return 0;
}

static int has_word(const char *words, const char *word) {
    size_t n = strlen(word);
    for (const char *at = words; at != NULL && (at = strstr(at, word)) != NULL; at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == '\0' || at[n] == ' ')) return 1;
    return 0;
}

/* --- in the child ----------------------------------------------------------------------------------------------- */

static void complain(told *t, const null_turn *turn, const char *what, const char *text) {
    size_t at = strlen(t->what);
    t->bad++;
    snprintf(t->what + at, sizeof t->what - at, "plait_%s: NULL for %s: %s%s\n", turn->function->function,
             turn->arg < 0 ? "nothing" : turn->function->arg[turn->arg].name, what, text);
}

/* An error's text goes to the communicator of the handle. Without a handle there is no place for it, nor with a
 * handle that has no communicator: a table has one, a checkpoint has none. */
static int has_no_place(const null_turn *turn) {
    const declared *d = turn->function;
    if (strcmp(d->function, "checkpoint_tensor_at") == 0 || strcmp(d->function, "batch_row") == 0 ||
        strcmp(d->function, "rows_row") == 0 || strcmp(d->function, "model_array_at") == 0)
        return 1;
    if (strcmp(d->function, "checkpoint_restore") == 0 || strcmp(d->function, "checkpoint_load") == 0)
        return turn->arg == 1;
    return turn->arg == 0 && strcmp(d->arg[d->n_args - 1].name, "error_out") != 0;
}

static void judge(told *t, const null_turn *turn, int answer, const char *text) {
    const char *arg = turn->arg < 0 ? "" : turn->function->arg[turn->arg].name;
    char        call[80], status[120];
    int may = turn->arg < 0 || has_word("error_out user", arg) || has_word(turn->of->may, arg);
    snprintf(call, sizeof call, "plait_%s", turn->function->function);
    snprintf(status, sizeof status, "%d, %s: ", answer, answer < 0 ? plait_status_text((plait_status)answer) : "");
    if (may && answer < 0) complain(t, turn, "expected no failure, but it answers ", status);
    if (may || answer == NEUTRAL) return;
    if (answer == OTHER) complain(t, turn, "the answer is not the neutral value", "");
    else if (answer != PLAIT_EINVAL) complain(t, turn, "expected EINVAL, but it answers ", status);
    else if (has_no_place(turn)) return;
    else if (strstr(text, arg) == NULL || strstr(text, call) == NULL || strstr(text, "NULL") == NULL)
        complain(t, turn, "the text does not say so: ", text);
}

static void make_turns(fixture *f, void *user) {
    told *t = user;
    for (; t->at < n_turns; t->at++) {
        const null_turn *turn = &turns[t->at];
        plait_error     *of_comm = (plait_error *)(uintptr_t)plait_comm_error(f->comm);
        f->err = (plait_error){ .rank = -1 };
        of_comm->text[0] = '\0';
        end_hang(PATIENCE_S);
        int answer = turn->of->call(f, turn->arg);
        judge(t, turn, answer, f->err.text[0] != '\0' ? f->err.text : of_comm->text);
    }
    end_hang(0);
}

static void run_child(told *t, const char *dir) {
    plait_error  err = { 0 };
    plait_status status = with_fixture(dir, make_turns, t, &err);
    if (status < 0) fprintf(stderr, "the calls cannot be made: %s: %s\n", plait_status_text(status), err.text);
    exit(status < 0);
}

/* --- the tests -------------------------------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st, (void)type, (void)at;
    return remove(path);
}

static declared *all_functions(int32_t *n_out) {
    char        folder[1024];
    const char *root = getenv("PLAIT_SOURCE_DIR");
    assert_non_null(root);
    snprintf(folder, sizeof folder, "%s/include/plait", root);
    declared *functions = read_headers(folder, n_out);
    assert_non_null(functions);
    assert_true(*n_out > 100);
    return functions;
}

static void test_every_function_has_a_case(void **state) {
    (void)state;
    int32_t   n, missing = 0;
    declared *functions = all_functions(&n);
    for (size_t i = 0; i < sizeof all_cases / sizeof *all_cases; i++)
        for (const null_case *c = all_cases[i]; c->function != NULL; c++)
            if (!is_declared(functions, n, c->function)) {
                print_error("there is a case of plait_%s, which no header declares\n", c->function);
                missing++;
            }
    for (int32_t i = 0; i < n; i++) {
        int pointers = 0;
        for (int32_t k = 0; k < functions[i].n_args; k++) pointers += functions[i].arg[k].pointer;
        if (pointers == 0 || find_case(functions[i].function) != NULL) continue;
        print_error("plait_%s has no case: add one to tests/api\n", functions[i].function);
        missing++;
    }
    free(functions);
    assert_int_equal(missing, 0);
}

static void test_null_for_every_argument(void **state) {
    (void)state;
    char      dir[] = "/tmp/plait-nulls-XXXXXX";
    int32_t   n;
    declared *functions = all_functions(&n);
    told     *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(t != MAP_FAILED);
    assert_non_null(mkdtemp(dir));
    n_turns = 0;
    for (int32_t i = 0; i < n; i++) {
        const null_case *c = find_case(functions[i].function);
        for (int32_t k = -1; c != NULL && k < functions[i].n_args; k++)
            if (k < 0 || functions[i].arg[k].pointer)
                turns[n_turns++] = (null_turn){ .function = &functions[i], .of = c, .arg = k };
        assert_true(n_turns < CASES_MAX - 24);
    }
    for (int32_t crashes = 0; t->at < n_turns && crashes < n_turns;) {
        int   status;
        pid_t child = fork();
        if (child == 0) run_child(t, dir);
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (t->at == n_turns && status == 0) break;
        crashes++;
        int hangs = hung(status);
        if (t->at == n_turns) complain(t, &turns[n_turns - 1], "what follows the last call fails", "");
        else complain(t, &turns[t->at++], hangs ? "it hangs" : "it crashes", "");
    }
    fputs(t->what, stderr); /* it is longer than cmocka prints */
    if (t->bad > 0) print_error("%d of %d calls are not as they should be\n", t->bad, n_turns);
    print_message("%d calls of %d functions\n", n_turns, n);
    const int32_t bad = t->bad;
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    munmap(t, sizeof *t);
    free(functions);
    assert_int_equal(bad, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_function_has_a_case),
        cmocka_unit_test(test_null_for_every_argument),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
