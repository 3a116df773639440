/* base/os.h - every call to the operating system that is not threads.h-like goes through here: time, files
 * mapped and written safely, directories, processes' figures. A port to another system changes os*.c only. */
#ifndef PLI_BASE_OS_H
#define PLI_BASE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include <plait/status.h>

uint64_t pli_now_ns(void);          /* monotonic                                    */
double   pli_wall_seconds(void);    /* since 1970: for files that must name a date  */
uint64_t pli_cpu_ns(void);          /* user + system time of the process            */
int64_t  pli_peak_rss_bytes(void);  /* VmHWM                                        */
int32_t  pli_cores(void);           /* that this process may use                    */
int32_t  pli_pid(void);
/** Until the child has ended, which is not reaped yet: its number is no other's; or until timeout_ns has passed
 *  (UINT64_MAX: never): false. Waits in a poll, in which the thread sanitizer lets handlers run. */
bool     pli_child_attend(int32_t pid, uint64_t timeout_ns);
/** Reaps it: its exit code, 128 + n where signal n ended it; -1: it is no child. */
int32_t  pli_child_reap(int32_t pid);
/** By a child: sends itself that signal when its parent (its number, asked before the child was there) ends, or has
 *  ended. May be called between fork and exec; an exec keeps it. */
void     pli_child_dies_with_parent(int32_t parent, int signal);
/** From now on what its descendants leave behind when they end becomes this process's child; or no more. */
void     pli_child_adopt(bool on);
/** Kills and reaps all children, and what they leave behind where this process adopts that, until there are none. */
void     pli_child_end_all(void);
/** A request to stop that came at now_ns, after a first one: does it repeat that, so that it means "at once"? What
 *  comes within a second is the same request: `timeout` signals a process and its group. Also in a signal handler. */
static inline bool pli_stop_is_repeated(uint64_t first_ns, uint64_t now_ns) {
    return now_ns > first_ns && now_ns - first_ns >= UINT64_C(1000000000);
}
void     pli_host_name(char name[256]);
int64_t  pli_memory_bytes(void);    /* available to this process (cgroup included)  */
int64_t  pli_mappings_left(void);   /* of memory, that this process may still make; INT64_MAX: not known */
int64_t  pli_address_space_left(void); /* bytes, below the limit on it (ulimit -v); INT64_MAX: there is none */
int64_t  pli_memory_total_bytes(void); /* of the machine                            */
void     pli_cpu_name(char name[128]);    /* "" if the system does not say */
void     pli_kernel_name(char name[128]); /* "Linux 6.1.0 x86_64"          */
double   pli_load(void);                  /* runnable tasks, averaged over a minute; NaN: not known */
/** A new directory for temporary files of this user only, below TMPDIR or /tmp: NAME-XXXXXX. Freed by the caller; NULL:
 *  there is no place for it. remove takes the files in it, too, but no directories. */
char *pli_temporary_directory(const char *name);
void  pli_remove_directory(const char *path);

/** For loops that wait: lets the other thread of a core, or a hypervisor, go first. */
static inline void pli_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__("yield");
#endif
}

/* --- waiting: a 32-bit futex, private to the process -------------------------------------------------- */
/** Sleeps while *word == expected, until woken or timeout_ns has passed (UINT64_MAX: never). May return early. */
void pli_futex_wait(const _Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void pli_futex_wake(_Atomic uint32_t *word, int32_t waiters); /* INT32_MAX: all */
/** The same of a word in memory that processes share. */
void pli_futex_wait_shared(const _Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void pli_futex_wake_shared(_Atomic uint32_t *word, int32_t waiters);

/* --- memory that processes of a host share -------------------------------------------------------------- */
/* Where such memory is found; of plain numbers, so that a message may carry it. */
typedef struct pli_shared_ticket {
    uint64_t bytes, device, inode;
    int32_t  pid, fd; /* of the maker */
} pli_shared_ticket;
/** Makes such memory, zeroed. NULL: there is none to be had. */
void *pli_shared_make(size_t bytes, pli_shared_ticket *ticket_out);
/** Another process's. NULL: it is not on this host, or may not be seen. */
void *pli_shared_join(const pli_shared_ticket *ticket);
void  pli_shared_settle(const pli_shared_ticket *ticket); /* by the maker: all have joined */
void  pli_shared_leave(void *memory, size_t bytes); /* NULL is nothing; others keep theirs */

/* --- files ---------------------------------------------------------------------------------------- */
/* A read-only mapped file. Regular files are mapped; others are an error (streams read by fd). */
typedef struct pli_mapped {
    const unsigned char *data;
    size_t               bytes;
    uint64_t             device, inode; /* of the file when it was mapped */
    int64_t              mtime_ns;
} pli_mapped;
plait_status pli_map_file(const char *path, pli_mapped *mapped_out, plait_error *err);
void         pli_unmap_file(pli_mapped *mapped);
/** Is the file at path still as it was mapped? One that has been replaced (renamed over) or removed is no matter: what
 *  is mapped stays whole. Of a file that is cut while it is mapped, reading what is gone raises SIGBUS, which the
 *  program answers (cli/mapped.h). Errors: EFORMAT it has another length or was written to. */
plait_status pli_map_check(const char *path, const pli_mapped *mapped, plait_error *err);
/** Tells the system that data [bytes] is not needed any more. */
void pli_map_drop(const void *data, size_t bytes);

/* A file that appears whole or not at all: written to path.tmp.PID, synced, renamed, directory synced. A symbolic link
 * is followed, whether its target is there or not, and stays a link; what is no regular file (/dev/stdout, a pipe) is
 * written straight. What a process that was killed has left of its own path.tmp.PID is removed by the next open. */
typedef struct pli_outfile pli_outfile;
plait_status pli_outfile_open(const char *path, pli_outfile **file_out, plait_error *err);
plait_status pli_outfile_write(pli_outfile *file, const void *data, size_t bytes, plait_error *err);
plait_status pli_outfile_commit(pli_outfile **file, plait_error *err); /* ends it, also when it fails */
void         pli_outfile_abandon(pli_outfile **file);                  /* removes the temporary file */

/* A regular file that is read at places: unlike a mapped one it answers a failing disk, or a file that was cut short
 * meanwhile, with an error and no signal. Any threads. */
typedef struct pli_infile pli_infile;
/** Errors: EIO there is none, or it is a symbolic link (which may lead anywhere), a directory, a pipe. */
plait_status pli_infile_open(const char *path, pli_infile **file_out, plait_error *err);
int64_t      pli_infile_bytes(const pli_infile *file); /* when it was opened */
/** Errors: EIO; ECHECKSUM it ends before. */
plait_status pli_infile_read(pli_infile *file, int64_t at, void *data, size_t bytes, plait_error *err);
void         pli_infile_close(pli_infile **file);

/** Adds the whole file to text. Errors: EIO, ENOMEM, EFORMAT if it is larger than limit_bytes. */
plait_status pli_read_whole(const char *path, size_t limit_bytes, pli_text *text, plait_error *err);
bool         pli_file_exists(const char *path);
/** Makes the directory; one that is there is as good. Errors: EIO. */
plait_status pli_make_directory(const char *path, plait_error *err);
bool         pli_is_directory(const char *path);
/** Makes the directory; *made_out tells whether it was not there. Errors: EIO, ENOSPACE. */
plait_status pli_make_new_directory(const char *path, bool *made_out, plait_error *err);
/** What was made, renamed or removed in it is on the disk when this returns. Errors: EIO, ENOSPACE. */
plait_status pli_sync_directory(const char *path, plait_error *err);
/** The same of the directory that path lies in. */
plait_status pli_sync_directory_of(const char *path, plait_error *err);
/** A file, or an empty directory; one that is not there is as good. Errors: EIO. */
plait_status pli_remove(const char *path, plait_error *err);
/** Do both names mean one regular file, or would they once it is there? */
bool         pli_same_file(const char *a, const char *b);
/** Removes the file `name` in an open directory if nobody can be using it any more: the process `maker` is dead, and no
 *  lock (flock) is held on it, which its user holds for as long as it lives. So a user on another host or in another
 *  container is safe, whose number means nothing here. What is no regular file stays. */
void pli_remove_left_over(int directory, const char *name, int32_t maker);

/** Could a file of that name be written in place, or made with some bytes in it? Leaves none. Errors: EIO, ENOSPACE,
 *  with `what` behind the name, and the remedy. */
plait_status pli_check_writable(const char *path, const char *what, plait_error *err);
/** The same of one that an outfile is to replace; what is no regular file is not written to. */
plait_status pli_check_replaceable(const char *path, const char *what, plait_error *err);
/** Could files be written in that directory, or could it be made? Leaves neither. Errors: as pli_check_writable. */
plait_status pli_check_directory(const char *path, const char *what, plait_error *err);
/** What the file system of path, or of its directory, has left for an ordinary user; -1: not known. */
int64_t      pli_free_bytes(const char *path);
int64_t      pli_free_bytes_beside(int fd); /* the same of the file system of an open file */
/** What path stands for once all symbolic links that it leads through are followed; it need not be there. Freed by the
 *  caller; NULL: out of memory. */
char *pli_link_end(const char *path);
/** The directory that path lies in, as it is written; freed by the caller. NULL: out of memory. */
char *pli_directory_of(const char *path);
bool         pli_is_pipe(const char *path); /* there, and neither a regular file nor a directory; "-" is one */
int64_t      pli_file_bytes(const char *path);  /* -1: no such file */
int64_t      pli_file_mtime_ns(const char *path);
/** Names in a directory, sorted; hidden ones left out. */
plait_status pli_list_directory(const char *path, pli_text *names_by_newline, plait_error *err);
/** Paths that match a shell pattern, sorted. */
plait_status pli_glob(const char *pattern, pli_text *paths_by_newline, plait_error *err);

/* --- terminals and modules ------------------------------------------------------------------------- */
bool    pli_is_terminal(int fd);
int32_t pli_terminal_columns(int fd); /* 80 if unknown */
/** Opens plait-<name>.so from the program's own module folder (beside the program or library: modules/,
 *  ../lib/plait/; PLAIT_MODULES first) and finds its entry symbol. Errors: EMODULE with what was tried. */
plait_status pli_module_open(const char *name, const char *symbol, void **handle_out, void **symbol_out,
                             plait_error *err);
void         pli_module_close(void **handle);
/** Directory of the running program or library. */
void pli_own_directory(char path[4096]);

#endif
