/* base/os.h - all calls to the operating system but those for threads go through here: time, files mapped and
 * written safely, directories, figures of the process. A port to another system changes os*.c only. */
#ifndef PLI_BASE_OS_H
#define PLI_BASE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include <plait/status.h>

uint64_t pli_now_ns(void);          /* monotonic                                    */
double   pli_wall_seconds(void);    /* since 1970: for files that must name a date  */
uint64_t pli_cpu_ns(void);          /* user + system time of the process */
int64_t  pli_peak_rss_bytes(void);  /* the process's peak memory (VmHWM) */
int32_t  pli_cores(void);           /* how many this process may use */
int32_t  pli_pid(void);
/** Waits until the child has ended (true) or timeout_ns has passed (false; UINT64_MAX: never). The child is not
 *  reaped, so its number belongs to no other process yet. The wait is a poll, in which the thread sanitizer lets
 *  handlers run. */
bool     pli_child_attend(int32_t pid, uint64_t timeout_ns);
/** Reaps the child that has ended. The answer is its exit code, or 128 + n if signal n ended it; -1: pid is no
 *  child. */
int32_t  pli_child_reap(int32_t pid);
/** Called by a child: the system sends it `signal` when its parent ends, or at once if it has ended. parent is the
 *  parent's number, asked before the child was there. May be called between fork and exec; an exec keeps the
 *  setting. */
void     pli_child_dies_with_parent(int32_t parent, int signal);
/** on: from now on, processes that its descendants leave behind when they end become children of this process. */
void     pli_child_adopt(bool on);
/** Kills and reaps all children, and processes that this process has adopted from them, until there are none. */
void     pli_child_end_all(void);
/** Does a request to stop at now_ns repeat a first one, so that it means "at once"? Requests within one second count
 *  as one, because `timeout` signals a process and its group. May be called in a signal handler. */
static inline bool pli_stop_is_repeated(uint64_t first_ns, uint64_t now_ns) {
    return now_ns > first_ns && now_ns - first_ns >= UINT64_C(1000000000);
}
void     pli_host_name(char name[256]);
int64_t  pli_memory_bytes(void);    /* free for this process (cgroup included) */
int64_t  pli_mappings_left(void);   /* memory mappings that this process may still make; INT64_MAX: not known */
int64_t  pli_address_space_left(void); /* bytes left below the limit (ulimit -v); INT64_MAX: there is no limit */
int64_t  pli_memory_total_bytes(void); /* of the machine                            */
void     pli_cpu_name(char name[128]);    /* "" if the system does not say */
void     pli_kernel_name(char name[128]); /* "Linux 6.1.0 x86_64"          */
double   pli_load(void);                  /* runnable tasks, averaged over a minute; NaN: not known */
/** Makes a new directory NAME-XXXXXX for temporary files of this user only, below TMPDIR or /tmp. The caller frees
 *  its path; NULL: it could not be made. remove removes all that is in it, too; it follows no links. */
char *pli_temporary_directory(const char *name);
void  pli_remove_directory(const char *path);

/** For loops that wait: lets the core's other thread, or the hypervisor, go first. */
static inline void pli_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__("yield");
#endif
}

/* --- waiting: a 32-bit futex, private to the process -------------------------------------------------- */
/** Sleeps while *word == expected, until another thread wakes it or timeout_ns has passed (UINT64_MAX: never). May
 *  return early. */
void pli_futex_wait(const _Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void pli_futex_wake(_Atomic uint32_t *word, int32_t waiters); /* INT32_MAX: all */
/** The same for a word in memory that processes share. */
void pli_futex_wait_shared(const _Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void pli_futex_wake_shared(_Atomic uint32_t *word, int32_t waiters);

/* --- memory that processes of a host share -------------------------------------------------------------- */
/* Says where shared memory is found; it has only plain numbers, so that a message may carry it. */
typedef struct pli_shared_ticket {
    uint64_t bytes, device, inode;
    int32_t  pid, fd; /* of the maker */
} pli_shared_ticket;
/** Makes shared memory, zeroed. NULL: the system gives none. */
void *pli_shared_make(size_t bytes, pli_shared_ticket *ticket_out);
/** Maps the memory that another process made. NULL: it is not on this host, or this process may not see it. */
void *pli_shared_join(const pli_shared_ticket *ticket);
void  pli_shared_settle(const pli_shared_ticket *ticket); /* called by the maker when all have joined */
void  pli_shared_leave(void *memory, size_t bytes); /* NULL is fine; the others keep theirs */

/* --- files ---------------------------------------------------------------------------------------- */
/* A read-only mapped file. Only regular files can be mapped; streams are read by pli_pipe_read. */
typedef struct pli_mapped {
    const unsigned char *data;
    size_t               bytes;
    uint64_t             device, inode; /* of the file when it was mapped */
    int64_t              mtime_ns;
} pli_mapped;
plait_status pli_map_file(const char *path, pli_mapped *mapped_out, plait_error *err);
void         pli_unmap_file(pli_mapped *mapped);
/** Is the file at path still as it was mapped? A file that has been replaced (renamed over) or removed is fine,
 *  since the mapped bytes stay whole. If a file is cut while it is mapped, reading the lost bytes raises SIGBUS,
 *  which the program answers (cli/mapped.h). Errors: EFORMAT the file has another length or was written to. */
plait_status pli_map_check(const char *path, const pli_mapped *mapped, plait_error *err);
/** Tells the system that data [bytes] is not needed any more. */
void pli_map_drop(const void *data, size_t bytes);

/* A file that appears whole or not at all: it is written to path.tmp.PID, synced, renamed, and its directory is
 * synced. A symbolic link is followed, whether its target is there or not, and stays a link. A path that is no
 * regular file (/dev/stdout, a pipe) is written straight. If a killed process has left a path.tmp.PID, the next open
 * of the same path removes it. */
typedef struct pli_outfile pli_outfile;
plait_status pli_outfile_open(const char *path, pli_outfile **file_out, plait_error *err);
plait_status pli_outfile_write(pli_outfile *file, const void *data, size_t bytes, plait_error *err);
plait_status pli_outfile_commit(pli_outfile **file, plait_error *err); /* ends it, also on failure */
void         pli_outfile_abandon(pli_outfile **file);                  /* removes the temporary file */

/* A regular file that is read at given places. If the disk fails or the file was cut short meanwhile, a read answers
 * an error, where a mapped file would raise a signal. Any threads. */
typedef struct pli_infile pli_infile;
/** Errors: EIO there is no such file, or it is a symbolic link (which may lead anywhere), a directory or a pipe. */
plait_status pli_infile_open(const char *path, pli_infile **file_out, plait_error *err);
int64_t      pli_infile_bytes(const pli_infile *file); /* when it was opened */
/** Errors: EIO; ECHECKSUM the file ends before. */
plait_status pli_infile_read(pli_infile *file, int64_t at, void *data, size_t bytes, plait_error *err);
void         pli_infile_close(pli_infile **file);

/** Adds the whole file to text. Errors: EIO, ENOMEM, EFORMAT if it is larger than limit_bytes. */
plait_status pli_read_whole(const char *path, size_t limit_bytes, pli_text *text, plait_error *err);
bool         pli_file_exists(const char *path);
/** Makes the directory; one that exists already is fine. Errors: EIO. */
plait_status pli_make_directory(const char *path, plait_error *err);
bool         pli_is_directory(const char *path);
/** Makes the directory; *made_out: it did not exist before. Errors: EIO, ENOSPACE. */
plait_status pli_make_new_directory(const char *path, bool *made_out, plait_error *err);
/** Returns when all that was made, renamed or removed in the directory is on the disk. Errors: EIO, ENOSPACE. */
plait_status pli_sync_directory(const char *path, plait_error *err);
/** The same for the directory that path lies in. */
plait_status pli_sync_directory_of(const char *path, plait_error *err);
/** Removes a file or an empty directory; one that does not exist is fine. Errors: EIO. */
plait_status pli_remove(const char *path, plait_error *err);
/** Do both names mean one regular file, or would they if it existed? */
bool         pli_same_file(const char *a, const char *b);
/** Removes the file `name` in an open directory if nobody can be using it any more: the process `maker` is dead, and
 *  no lock (flock) is held on the file. Its user holds the lock for as long as it lives, so a user on another host
 *  or in another container is safe, although its process number means nothing here. Only regular files are removed. */
void pli_remove_left_over(int directory, const char *name, int32_t maker);

/** Could a file of that name be written in place, or be made with some bytes in it? Leaves no file behind. Errors:
 *  EIO, ENOSPACE; the text has `what` behind the name, and the remedy. */
plait_status pli_check_writable(const char *path, const char *what, plait_error *err);
/** The same for a file that an outfile is to replace; a path that is no regular file is not written to. */
plait_status pli_check_replaceable(const char *path, const char *what, plait_error *err);
/** Could files be written in that directory, or could it be made? Leaves no file or directory behind. Errors: as
 *  pli_check_writable. */
plait_status pli_check_directory(const char *path, const char *what, plait_error *err);
/** Bytes that the file system of path, or of its directory, has left for an ordinary user; -1: not known. */
int64_t      pli_free_bytes(const char *path);
int64_t      pli_free_bytes_beside(int fd); /* the same for the file system of an open file */
/** The path that is reached when all symbolic links in path are followed; it need not exist. The caller frees it;
 *  NULL: out of memory. */
char *pli_link_end(const char *path);
/** The directory that path lies in, as path spells it; the caller frees it. NULL: out of memory. */
char *pli_directory_of(const char *path);
bool         pli_is_fifo(const char *path); /* a named pipe, which waits until somebody reads it */
bool         pli_is_pipe(const char *path); /* exists, and is neither a regular file nor a directory; "-" is one */
int64_t      pli_file_bytes(const char *path);  /* -1: no such file */
int64_t      pli_file_mtime_ns(const char *path);
/** Names in a directory, sorted; hidden ones left out. */
plait_status pli_list_directory(const char *path, pli_text *names_by_newline, plait_error *err);
/** Paths that match a shell pattern, sorted. */
plait_status pli_glob(const char *pattern, pli_text *paths_by_newline, plait_error *err);

/* --- terminals and modules ------------------------------------------------------------------------- */
bool    pli_is_terminal(int fd);
int32_t pli_terminal_columns(int fd); /* 80 if unknown */
/** Opens plait-<name>.so and finds its entry symbol. It looks into PLAIT_MODULES first, then into the program's own
 *  module folder (beside the program or library: modules/, ../lib/plait/). Errors: EMODULE with what was tried. */
plait_status pli_module_open(const char *name, const char *symbol, void **handle_out, void **symbol_out,
                             plait_error *err);
void         pli_module_close(void **handle);
/** Directory of the running program or library. */
void pli_own_directory(char path[4096]);

#endif
