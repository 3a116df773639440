/* Files: whole or not at all, also when the disk is full, memory ends or another process interferes; reading and
 * listing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/os.h"

/* Each test works in a new directory and leaves in it only the files that it names. */
static char home[64];

static int enter_directory(void **state) {
    (void)state;
    snprintf(home, sizeof home, "os_file_test.XXXXXX");
    return mkdtemp(home) != NULL && chdir(home) == 0 ? 0 : -1;
}

static int leave_directory(void **state) {
    (void)state;
    char command[128];
    if (chdir("..") != 0) return -1;
    snprintf(command, sizeof command, "rm -rf ./%s", home);
    return system(command);
}

static void write_file(const char *path, const char *text) {
    pli_outfile *file = NULL;
    assert_int_equal(pli_outfile_open(path, &file, NULL), PLAIT_OK);
    assert_int_equal(pli_outfile_write(file, text, strlen(text), NULL), PLAIT_OK);
    assert_int_equal(pli_outfile_commit(&file, NULL), PLAIT_OK);
    assert_null(file);
}

static void assert_holds(const char *path, const char *wanted) {
    pli_text text = { .data = NULL };
    assert_int_equal(pli_read_whole(path, 1 << 24, &text, NULL), PLAIT_OK);
    assert_string_equal(text.data != NULL ? text.data : "", wanted);
    pli_text_free(&text);
}

static void assert_listed(const char *wanted) {
    pli_text names = { .data = NULL };
    assert_int_equal(pli_list_directory(".", &names, NULL), PLAIT_OK);
    assert_string_equal(names.data != NULL ? names.data : "", wanted);
    pli_text_free(&names);
}

static void test_appears_whole(void **state) {
    (void)state;
    pli_outfile *file = NULL;
    write_file("f", "old");
    assert_int_equal(pli_outfile_open("f", &file, NULL), PLAIT_OK);
    assert_int_equal(pli_outfile_write(file, "new", 3, NULL), PLAIT_OK);
    assert_holds("f", "old"); /* until the commit */
    assert_int_equal(pli_outfile_commit(&file, NULL), PLAIT_OK);
    assert_holds("f", "new");
    assert_int_equal(pli_outfile_open("f", &file, NULL), PLAIT_OK);
    assert_int_equal(pli_outfile_write(file, "never", 5, NULL), PLAIT_OK);
    pli_outfile_abandon(&file);
    pli_outfile_abandon(&file);
    assert_holds("f", "new");
    assert_listed("f\n");
}

/* Pieces of all sizes around the buffer's size: bytes stay in order. */
static void test_large_writes(void **state) {
    (void)state;
    static const size_t pieces[] = { 1, 1000, (1 << 20) - 1, 1 << 20, 3, (1 << 20) + 1, 0, 5 << 20, 700000, 700000 };
    pli_outfile        *file = NULL;
    pli_mapped          mapped;
    size_t              total = 0;
    unsigned char      *bytes = malloc(6 << 20);
    assert_int_equal(pli_outfile_open("large", &file, NULL), PLAIT_OK);
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
        for (size_t i = 0; i < pieces[p]; i++) bytes[i] = (unsigned char)((total + i) * 31 >> 3);
        assert_int_equal(pli_outfile_write(file, bytes, pieces[p], NULL), PLAIT_OK);
        total += pieces[p];
    }
    assert_int_equal(pli_outfile_commit(&file, NULL), PLAIT_OK);
    assert_int_equal(pli_file_bytes("large"), total);
    assert_int_equal(pli_map_file("large", &mapped, NULL), PLAIT_OK);
    assert_int_equal(mapped.bytes, total);
    pli_map_drop(mapped.data + 5000, 100000);
    for (size_t i = 0; i < total; i++) assert_true(mapped.data[i] == (unsigned char)(i * 31 >> 3));
    pli_unmap_file(&mapped);
    free(bytes);
}

/* A file size limit stands for a full disk: the old file stays, the temporary file goes. */
static void test_full_disk_keeps_the_former_file(void **state) {
    (void)state;
    struct rlimit before, small;
    pli_outfile  *file = NULL;
    plait_error   err;
    plait_status  status = PLAIT_OK;
    char         *piece = calloc(1, 100000);
    write_file("f", "old");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 2500000;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(pli_outfile_open("f", &file, NULL), PLAIT_OK);
    for (int i = 0; i < 50 && status == PLAIT_OK; i++) status = pli_outfile_write(file, piece, 100000, &err);
    assert_int_equal(status, PLAIT_EIO);                                  /* EFBIG here; a full disk would give
                                                                           * ENOSPC */
    assert_int_equal(pli_outfile_write(file, piece, 1, &err), PLAIT_EIO); /* after one failure every write fails */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(pli_outfile_commit(&file, &err), PLAIT_EIO);
    assert_null(file);
    assert_non_null(strstr(err.text, "f: "));
    assert_holds("f", "old");
    assert_listed("f\n");
    free(piece);
}

/* A device that is always full. Root makes one of its own, since a fault in the code under test would replace the
 * system's. */
static const char *full_device(void) {
    if (geteuid() != 0) return access("/dev/full", W_OK) == 0 ? "/dev/full" : NULL;
    if (mknod("full", S_IFCHR | 0600, makedev(1, 7)) != 0) return NULL;
    return access("full", W_OK) == 0 ? "full" : NULL;
}

static void test_no_space_has_its_code(void **state) {
    (void)state;
    pli_outfile *file = NULL;
    plait_error  err;
    struct stat  info;
    const char  *full = full_device();
    int          fd = full != NULL ? open(full, O_WRONLY) : -1;
    if (fd < 0) skip(); /* there is no such device, or it may not be opened here */
    close(fd);
    assert_int_equal(pli_outfile_open(full, &file, &err), PLAIT_OK);
    assert_int_equal(pli_outfile_write(file, "x", 1, &err), PLAIT_OK); /* in the buffer */
    assert_int_equal(pli_outfile_commit(&file, &err), PLAIT_ENOSPACE);
    assert_non_null(strstr(err.text, "full: cannot be written: No space left on device"));
    assert_true(stat(full, &info) == 0 && S_ISCHR(info.st_mode)); /* a device stays a device */
}

/* What is written into a pipe comes out of it, and the pipe stays. */
static void test_pipes_are_written_straight(void **state) {
    (void)state;
    struct stat  info;
    pli_outfile *file = NULL;
    char         read_back[4] = "";
    assert_int_equal(mkfifo("pipe", 0600), 0);
    int fd = open("pipe", O_RDONLY | O_NONBLOCK);
    assert_int_equal(pli_outfile_open("pipe", &file, NULL), PLAIT_OK);
    assert_int_equal(pli_outfile_write(file, "abc", 3, NULL), PLAIT_OK);
    assert_int_equal(pli_outfile_commit(&file, NULL), PLAIT_OK);
    assert_int_equal(read(fd, read_back, sizeof read_back), 3);
    assert_string_equal(read_back, "abc");
    close(fd);
    assert_true(stat("pipe", &info) == 0 && S_ISFIFO(info.st_mode));
}

static void test_links_and_modes_stay(void **state) {
    (void)state;
    struct stat info;
    write_file("target", "old");
    assert_int_equal(chmod("target", 0640), 0);
    assert_int_equal(symlink("target", "link"), 0);
    write_file("link", "new");
    assert_true(lstat("link", &info) == 0 && S_ISLNK(info.st_mode));
    assert_holds("target", "new");
    assert_true(stat("target", &info) == 0);
    assert_int_equal(info.st_mode & 07777, 0640);
}

/* Two writers of one path, and a file that a dead process left: nobody writes into another's file. */
static void test_writers_do_not_meet(void **state) {
    (void)state;
    char         left[64];
    pli_outfile *a = NULL, *b = NULL;
    snprintf(left, sizeof left, "f.tmp.%d", pli_pid());
    write_file(left, "left");
    assert_int_equal(pli_outfile_open("f", &a, NULL), PLAIT_OK);
    assert_int_equal(pli_outfile_open("f", &b, NULL), PLAIT_OK);
    assert_int_equal(pli_outfile_write(a, "aaaa", 4, NULL), PLAIT_OK);
    assert_int_equal(pli_outfile_write(b, "bb", 2, NULL), PLAIT_OK);
    assert_int_equal(pli_outfile_commit(&a, NULL), PLAIT_OK);
    assert_holds("f", "aaaa");
    assert_int_equal(pli_outfile_commit(&b, NULL), PLAIT_OK);
    assert_holds("f", "bb");
    assert_holds(left, "left");
}

static void test_errors_name_the_path(void **state) {
    (void)state;
    pli_outfile *file = NULL;
    pli_mapped   mapped;
    plait_error  err;
    pli_text     text = { .data = NULL };
    assert_int_equal(pli_outfile_open("no/such/f", &file, &err), PLAIT_EIO);
    assert_string_equal(err.text, "no/such/f: cannot be written: No such file or directory; make its directory first");
    assert_int_equal(pli_outfile_open(".", &file, &err), PLAIT_EIO);
    assert_null(file);
    assert_int_equal(pli_map_file("none", &mapped, &err), PLAIT_EIO);
    assert_string_equal(err.text, "none: No such file or directory");
    assert_int_equal(pli_map_file(".", &mapped, &err), PLAIT_EIO);
    assert_int_equal(pli_map_file("/dev/null", &mapped, &err), PLAIT_EIO);
    assert_int_equal(pli_read_whole("none", 10, &text, &err), PLAIT_EIO);
    assert_int_equal(pli_read_whole(".", 10, &text, &err), PLAIT_EIO);
    assert_int_equal(pli_list_directory("none", &text, &err), PLAIT_EIO);
    assert_int_equal(pli_file_bytes("none"), -1);
    assert_int_equal(pli_file_mtime_ns("none"), -1);
    assert_null(text.data);
}

static void test_read_whole(void **state) {
    (void)state;
    pli_text    text = { .data = NULL };
    plait_error err;
    write_file("f", "12345");
    assert_int_equal(pli_read_whole("f", 5, &text, &err), PLAIT_OK);
    assert_int_equal(pli_read_whole("f", 5, &text, &err), PLAIT_OK); /* adds */
    assert_string_equal(text.data, "1234512345");
    assert_int_equal(pli_read_whole("f", 4, &text, &err), PLAIT_EFORMAT);
    assert_string_equal(err.text, "f: larger than 4 bytes");
    pli_text_free(&text);
    assert_int_equal(pli_read_whole("/proc/self/status", 1 << 20, &text, &err), PLAIT_OK); /* fstat says it is empty */
    assert_true(text.length > 100);
    pli_text_free(&text);
}

static void test_empty_file_maps(void **state) {
    (void)state;
    pli_mapped mapped;
    write_file("empty", "");
    assert_int_equal(pli_map_file("empty", &mapped, NULL), PLAIT_OK);
    assert_true(mapped.data != NULL && mapped.bytes == 0);
    pli_unmap_file(&mapped);
    assert_int_equal(pli_file_bytes("empty"), 0);
    assert_true(pli_file_mtime_ns("empty") > INT64_C(1000000000000000000));
}

static void test_lists_are_sorted(void **state) {
    (void)state;
    pli_text    text = { .data = NULL };
    plait_error err;
    write_file("b", ""), write_file("a1", ""), write_file("B", ""), write_file(".hidden", ""), write_file("a10", "");
    assert_int_equal(mkdir("dir", 0777), 0);
    assert_true(pli_same_file("a1", "./dir/../a1") && pli_same_file("none", "dir/../none") &&
                !pli_same_file("a1", "none"));
    assert_true(!pli_same_file("none", "dir/none") && !pli_same_file("/dev/null", "/dev/null") &&
                !pli_same_file("no/a", "no/a"));
    assert_int_equal(pli_check_writable("a1", "", NULL), PLAIT_OK);
    assert_int_equal(pli_check_writable("none", "", NULL), PLAIT_OK);
    assert_int_equal(pli_check_writable("dir", "", NULL), PLAIT_EIO);
    assert_int_equal(pli_check_writable("no/a", "", NULL), PLAIT_EIO);
    assert_true(!pli_file_exists("none"));
    assert_true(pli_is_directory("dir") && !pli_is_directory("a1") && !pli_is_directory("none"));
    assert_listed("B\na1\na10\nb\ndir\n");
    assert_int_equal(pli_glob("a*", &text, &err), PLAIT_OK);
    assert_string_equal(text.data, "a1\na10\n");
    pli_text_free(&text);
    assert_int_equal(pli_glob("x*", &text, &err), PLAIT_OK); /* nothing matches: nothing is listed */
    assert_null(text.data);
    write_file("two\nlines", "");
    assert_int_equal(pli_list_directory(".", &text, &err), PLAIT_EFORMAT);
    pli_text_free(&text);
}

/* One round of all calls that take memory; each must answer OK or ENOMEM. */
static plait_status use_files(plait_error *err) {
    pli_outfile *file = NULL;
    pli_text     text = { .data = NULL };
    plait_status status = pli_outfile_open("f", &file, err);
    if (status == PLAIT_OK) status = pli_outfile_write(file, "new", 3, err);
    if (status == PLAIT_OK) status = pli_outfile_commit(&file, err);
    if (status == PLAIT_OK) status = pli_read_whole("f", 100, &text, err);
    if (status == PLAIT_OK) status = pli_list_directory(".", &text, err);
    if (status == PLAIT_OK) status = pli_glob("*", &text, err);
    pli_outfile_abandon(&file);
    pli_text_free(&text);
    return status;
}

static void test_out_of_memory(void **state) {
    (void)state;
    int64_t before = pli_alloc_live();
    write_file("f", "old");
    for (int64_t k = 0;; k++) {
        plait_error err;
        pli_alloc_fail_after(k);
        plait_status status = use_files(&err);
        pli_alloc_fail_after(-1);
        assert_int_equal(pli_alloc_live(), before);
        if (status == PLAIT_OK) break;
        assert_int_equal(status, PLAIT_ENOMEM);
        assert_listed("f\n");
    }
    assert_holds("f", "new");
}

static void test_reads_at_places(void **state) {
    pli_infile *file = NULL;
    plait_error err;
    char        text[8] = "";
    (void)state;
    write_file("f", "0123456789");
    assert_int_equal(pli_infile_open("f", &file, &err), PLAIT_OK);
    assert_int_equal(pli_infile_bytes(file), 10);
    assert_int_equal(pli_infile_read(file, 3, text, 4, &err), PLAIT_OK);
    assert_string_equal(text, "3456");
    assert_int_equal(truncate("f", 5), 0); /* while it is open */
    assert_int_equal(pli_infile_read(file, 3, text, 4, &err), PLAIT_ECHECKSUM);
    assert_non_null(strstr(err.text, "f: cut short at byte 5"));
    pli_infile_close(&file);
    assert_null(file);
    assert_int_equal(pli_infile_open("none", &file, &err), PLAIT_EIO);
    assert_int_equal(pli_infile_open(".", &file, &err), PLAIT_EIO);
    assert_true(symlink("f", "link") == 0 && mkfifo("pipe", 0600) == 0);
    assert_int_equal(pli_infile_open("link", &file, &err), PLAIT_EIO);
    assert_non_null(strstr(err.text, "link: is a symbolic link, which is not followed"));
    assert_int_equal(pli_infile_open("pipe", &file, &err), PLAIT_EIO);
    assert_non_null(strstr(err.text, "pipe: not a regular file"));
}

static void test_makes_and_removes(void **state) {
    bool        made = false;
    plait_error err;
    (void)state;
    assert_int_equal(pli_make_new_directory("d", &made, &err), PLAIT_OK);
    assert_true(made);
    assert_int_equal(pli_make_new_directory("d", &made, &err), PLAIT_OK);
    assert_false(made);
    assert_int_equal(pli_sync_directory("d", &err), PLAIT_OK);
    assert_int_equal(pli_sync_directory_of("d", &err), PLAIT_OK);
    assert_int_equal(pli_sync_directory("none", &err), PLAIT_EIO);
    write_file("d/f", "x");
    assert_int_equal(pli_make_new_directory("d/f", &made, &err), PLAIT_EIO);
    assert_int_equal(pli_remove("d", &err), PLAIT_EIO); /* not empty */
    assert_int_equal(pli_remove("d/f", &err), PLAIT_OK);
    assert_int_equal(pli_remove("d", &err), PLAIT_OK);
    assert_int_equal(pli_remove("d", &err), PLAIT_OK);
    assert_listed("");
}

/* The number of a process that has ended. */
static int32_t dead_process(void) {
    pid_t pid = fork();
    if (pid == 0) _exit(0);
    assert_true(pid > 0 && waitpid(pid, NULL, 0) == pid);
    return (int32_t)pid;
}

/* The next writer removes what a dead process has left of this file. It keeps a file whose lock is held: its writer
 * lives in another container or on another host, where the number means another process. */
static void test_what_the_dead_left_goes(void **state) {
    (void)state;
    char    left[64], second[64], living[64];
    int32_t dead = dead_process();
    snprintf(left, sizeof left, "f.tmp.%d", (int)dead);
    snprintf(second, sizeof second, "f.tmp.%d.7", (int)dead);
    snprintf(living, sizeof living, "f.tmp.%d", (int)getppid());
    int fd = open(left, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
    int other = open(second, O_RDWR | O_CREAT, 0600), third = open(living, O_RDWR | O_CREAT, 0600);
    assert_true(other >= 0 && third >= 0);
    write_file("f", "1");
    assert_true(pli_file_exists(left) && !pli_file_exists(second) && pli_file_exists(living));
    close(fd);
    write_file("f", "2");
    assert_false(pli_file_exists(left));
    assert_int_equal(symlink("f", left), 0); /* links are not followed */
    write_file("f", "3");
    assert_true(unlink(left) == 0 && unlink(living) == 0);
    close(other);
    close(third);
    assert_listed("f\n");
}

static void test_a_link_to_nothing_is_followed(void **state) {
    (void)state;
    struct stat info;
    assert_true(mkdir("d", 0700) == 0 && symlink("two", "d/one") == 0 && symlink("d/one", "link") == 0);
    assert_true(pli_same_file("link", "d/two"));
    write_file("link", "new");
    assert_true(lstat("link", &info) == 0 && S_ISLNK(info.st_mode));
    assert_holds("d/two", "new");
    pli_outfile *file = NULL;
    plait_error  err = { .rank = -1 };
    assert_true(symlink("round", "round") == 0);
    assert_int_equal(pli_outfile_open("round", &file, &err), PLAIT_EIO);
    assert_true(symlink("nowhere/f", "lost") == 0);
    assert_int_equal(pli_check_writable("lost", "", &err), PLAIT_EIO);
}

int main(void) {
#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, enter_directory, leave_directory)
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(test_appears_whole),
        IN_DIRECTORY(test_large_writes),
        IN_DIRECTORY(test_full_disk_keeps_the_former_file),
        IN_DIRECTORY(test_no_space_has_its_code),
        IN_DIRECTORY(test_pipes_are_written_straight),
        IN_DIRECTORY(test_links_and_modes_stay),
        IN_DIRECTORY(test_writers_do_not_meet),
        IN_DIRECTORY(test_errors_name_the_path),
        IN_DIRECTORY(test_read_whole),
        IN_DIRECTORY(test_empty_file_maps),
        IN_DIRECTORY(test_lists_are_sorted),
        IN_DIRECTORY(test_out_of_memory),
        IN_DIRECTORY(test_reads_at_places),
        IN_DIRECTORY(test_makes_and_removes),
        IN_DIRECTORY(test_what_the_dead_left_goes),
        IN_DIRECTORY(test_a_link_to_nothing_is_followed),
    };
    return cmocka_run_group_tests_name("base.os_file", tests, NULL, NULL);
}
