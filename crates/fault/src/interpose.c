/* Stands before the C library of a test's child process (LD_PRELOAD) and never in a server.
 *
 * Calls that change what lies below one folder are written, with their data and in the order in which they
 * happened, into a journal; src/journal.rs reads it. On request they fail, take long, or lie about a sync, and the
 * clock jumps. Calls are made by system call, so nothing here comes back to itself. What a program does past the C
 * library (by system calls of its own, by shared mappings) is not seen: a shared writable mapping of a file below the
 * folder ends the process with a message.
 *
 *   SCRINIUM_FAULT_ROOT     the folder, absolute and without links
 *   SCRINIUM_FAULT_JOURNAL  the journal's file, outside of it; appended to
 *   SCRINIUM_FAULT_FAIL     "ERRNO FIRST COUNT CALLS PART": of the calls in the set CALLS (bits below) on paths that
 *                           contain PART, those numbered FIRST up to FIRST+COUNT-1 fail
 *   SCRINIUM_FAULT_SLOW     "SEED ONE_IN MAX_US": one in this many writes and syncs takes up to so long
 *   SCRINIUM_FAULT_LIE      syncs of paths that contain this succeed without being done
 *   SCRINIUM_FAULT_CLOCK    "SEED EVERY_MS": so often the clock of the day is another, by up to 40 days
 *
 * The file "marks" in the folder takes what the program wants to say: what is written to it stands in the journal as
 * it is. Failures begin with the line "@fail" in it and end with "@mend".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum operation {
    PROCESS = 1, OPEN, DUPLICATE, WRITE, TRUNCATE, EXTEND, SYNC_BEGUN, SYNC_DONE, SYNC_FAILED,
    RENAME, LINK, UNLINK, MAKE_FOLDER, REMOVE_FOLDER, MARK
};

/* The set CALLS of SCRINIUM_FAULT_FAIL. */
enum { FAIL_OPEN = 1, FAIL_WRITE = 2, FAIL_SYNC = 4, FAIL_SIZE = 8, FAIL_NAME = 16 };

/* Beside it in src/journal.rs. Followed by the name, then the data. */
struct record {
    uint32_t operation;
    int32_t file;
    uint64_t first;
    uint64_t second;
    uint32_t name_bytes;
    uint32_t data_bytes;
};

#define FILES 65536

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static size_t root_bytes;
static int journal = -1;
static char *paths[FILES];
static uint64_t syncs;

static struct { int error; uint64_t first, count; unsigned calls; char part[256]; uint64_t seen; int active; } failing;
static struct { uint64_t state, one_in, max_us; } slow;
static const char *lie;
static struct { uint64_t seed, every_ms; } jumps;

/* As `abort` does, which is below and waits for the lock. */
static void die(void) {
    signal(SIGABRT, SIG_DFL);
    syscall(SYS_tgkill, syscall(SYS_getpid), syscall(SYS_gettid), SIGABRT);
    for (;;)
        syscall(SYS_exit_group, 128 + SIGABRT);
}

static void give_up(const char *why) {
    ssize_t ignored = syscall(SYS_write, 2, why, strlen(why));
    (void)ignored;
    die();
}

static uint64_t mix(uint64_t value) {
    value += 0x9e3779b97f4a7c15ULL;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
    return value ^ (value >> 31);
}

static void record(enum operation operation, int file, uint64_t first, uint64_t second, const char *name,
                   const void *data, size_t data_bytes) {
    struct record head = {operation, file, first, second, name ? strlen(name) : 0, data_bytes};
    struct iovec parts[] = {
        {&head, sizeof head}, {(void *)name, head.name_bytes}, {(void *)data, data_bytes}};
    ssize_t whole = sizeof head + head.name_bytes + data_bytes;
    if (syscall(SYS_writev, journal, parts, 3) != whole)
        give_up("scrinium-fault: the journal cannot be written\n");
}

__attribute__((constructor)) static void begin(void) {
    const char *folder = getenv("SCRINIUM_FAULT_ROOT"), *file = getenv("SCRINIUM_FAULT_JOURNAL");
    const char *text;
    if ((text = getenv("SCRINIUM_FAULT_CLOCK")) && sscanf(text, "%lu %lu", &jumps.seed, &jumps.every_ms) != 2)
        give_up("scrinium-fault: SCRINIUM_FAULT_CLOCK is not as it should be\n");
    if (!folder || !file || strlen(folder) >= sizeof root)
        return;
    if ((text = getenv("SCRINIUM_FAULT_FAIL")) &&
        sscanf(text, "%d %lu %lu %u %255s", &failing.error, &failing.first, &failing.count, &failing.calls,
               failing.part) < 4)
        give_up("scrinium-fault: SCRINIUM_FAULT_FAIL is not as it should be\n");
    if ((text = getenv("SCRINIUM_FAULT_SLOW")) &&
        sscanf(text, "%lu %lu %lu", &slow.state, &slow.one_in, &slow.max_us) != 3)
        give_up("scrinium-fault: SCRINIUM_FAULT_SLOW is not as it should be\n");
    lie = getenv("SCRINIUM_FAULT_LIE");
    int opened = syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    /* Out of the way of numbers that the program may expect. */
    journal = syscall(SYS_fcntl, opened, F_DUPFD_CLOEXEC, 1000);
    if (opened < 0 || journal < 0)
        give_up("scrinium-fault: the journal cannot be opened\n");
    syscall(SYS_close, opened);
    strcpy(root, folder);
    root_bytes = strlen(root);
    record(PROCESS, 0, getpid(), 0, NULL, NULL, 0);
}

/* Whether a path leads below the folder; then `path` is the rest of it, without a leading slash. */
static int resolve(int folder, const char *given, char path[PATH_MAX]) {
    char whole[2 * PATH_MAX];
    if (journal < 0 || !given)
        return 0;
    if (given[0] == '/') {
        if (strlen(given) >= PATH_MAX)
            return 0;
        strcpy(whole, given);
    } else {
        char link[64];
        snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
        ssize_t bytes = syscall(SYS_readlinkat, AT_FDCWD, link, whole, PATH_MAX - 1);
        if (bytes < 0 || strlen(given) >= PATH_MAX)
            return 0;
        whole[bytes] = '/';
        strcpy(whole + bytes + 1, given);
    }
    /* Doubled slashes and "." go; nobody here writes "..". */
    char clean[2 * PATH_MAX];
    size_t length = 0;
    for (const char *at = whole; *at; at++) {
        if (at[0] == '/' && (at[1] == '/' || at[1] == 0))
            continue;
        if (at[0] == '/' && at[1] == '.' && (at[2] == '/' || at[2] == 0)) {
            at++;
            continue;
        }
        clean[length++] = *at;
    }
    clean[length] = 0;
    if (strncmp(clean, root, root_bytes) != 0 || (clean[root_bytes] != '/' && clean[root_bytes] != 0))
        return 0;
    strcpy(path, clean + root_bytes + (clean[root_bytes] == '/'));
    return 1;
}

static const char *path_of(int file) {
    return file >= 0 && file < FILES ? paths[file] : NULL;
}

static void forget(int file) {
    if (file >= 0 && file < FILES && paths[file]) {
        free(paths[file]);
        paths[file] = NULL;
    }
}

static void remember(int file, const char *path) {
    if (file >= FILES)
        give_up("scrinium-fault: too many open files\n");
    forget(file);
    paths[file] = strdup(path);
}

/* Whether this call is one of those that fail; errno says how. The lock is held. */
static int fails(unsigned call, const char *path) {
    if (!failing.active || !(failing.calls & call) || !strstr(path, failing.part))
        return 0;
    uint64_t number = failing.seen++;
    if (number < failing.first || number - failing.first >= failing.count)
        return 0;
    errno = failing.error;
    return 1;
}

static void take_time(void) {
    if (!slow.one_in)
        return;
    uint64_t random = mix(__atomic_fetch_add(&slow.state, 1, __ATOMIC_RELAXED));
    if (random % slow.one_in)
        return;
    uint64_t us = (random >> 20) % (slow.max_us + 1);
    struct timespec pause = {us / 1000000, us % 1000000 * 1000};
    syscall(SYS_nanosleep, &pause, NULL);
}

static int is_marks(const char *path) {
    return strcmp(path, "marks") == 0;
}

/* --- opening and closing --- */

static int open_file(int folder, const char *given, int flags, mode_t mode) {
    char path[PATH_MAX];
    if (!resolve(folder, given, path)) {
        int file = syscall(SYS_openat, folder, given, flags, mode);
        if (file >= 0 && path_of(file)) {
            pthread_mutex_lock(&lock);
            forget(file);
            pthread_mutex_unlock(&lock);
        }
        return file;
    }
    pthread_mutex_lock(&lock);
    int writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC));
    if (writes && !is_marks(path) && fails(FAIL_OPEN, path)) {
        pthread_mutex_unlock(&lock);
        return -1;
    }
    struct stat found;
    int is_there = syscall(SYS_newfstatat, folder, given, &found, 0) == 0;
    int file = syscall(SYS_openat, folder, given, flags, mode);
    int error = errno;
    if (file >= 0) {
        remember(file, path);
        if (syscall(SYS_fstat, file, &found) == 0 && !is_marks(path))
            record(OPEN, file, flags, (S_ISDIR(found.st_mode) ? 1 : 0) | (is_there ? 0 : 2), path, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return file;
}

static mode_t mode_of(int flags, va_list arguments) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

#define OPENING(name, before, folder)                                                                                 \
    int name(before const char *path, int flags, ...) {                                                               \
        va_list arguments;                                                                                            \
        va_start(arguments, flags);                                                                                   \
        mode_t mode = mode_of(flags, arguments);                                                                      \
        va_end(arguments);                                                                                            \
        return open_file(folder, path, flags, mode);                                                                  \
    }
#define COMMA ,
OPENING(open, , AT_FDCWD)
OPENING(open64, , AT_FDCWD)
OPENING(openat, int folder COMMA, folder)
OPENING(openat64, int folder COMMA, folder)
int __open_2(const char *path, int flags) { return open_file(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return open_file(AT_FDCWD, path, flags, 0); }
int __openat_2(int folder, const char *path, int flags) { return open_file(folder, path, flags, 0); }
int __openat64_2(int folder, const char *path, int flags) { return open_file(folder, path, flags, 0); }
int creat(const char *path, mode_t mode) { return open_file(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

int close(int file) {
    if (path_of(file)) {
        pthread_mutex_lock(&lock);
        forget(file);
        pthread_mutex_unlock(&lock);
    }
    return syscall(SYS_close, file);
}

int fclose(FILE *stream) {
    static int (*next)(FILE *);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "fclose");
    int file = fileno(stream);
    if (path_of(file)) {
        pthread_mutex_lock(&lock);
        forget(file);
        pthread_mutex_unlock(&lock);
    }
    return next(stream);
}

static int duplicated(int file, int copy) {
    if (copy >= 0 && (path_of(file) || path_of(copy))) {
        pthread_mutex_lock(&lock);
        if (path_of(file)) {
            remember(copy, paths[file]);
            record(DUPLICATE, file, copy, 0, NULL, NULL, 0);
        } else {
            forget(copy);
        }
        pthread_mutex_unlock(&lock);
    }
    return copy;
}

int dup(int file) { return duplicated(file, syscall(SYS_dup, file)); }
int dup3(int file, int copy, int flags) { return duplicated(file, syscall(SYS_dup3, file, copy, flags)); }
int dup2(int file, int copy) { return file == copy ? copy : dup3(file, copy, 0); }

int fcntl64(int file, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    long answer = syscall(SYS_fcntl, file, command, argument);
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? duplicated(file, answer) : answer;
}

int fcntl(int file, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return fcntl64(file, command, argument);
}

/* --- data --- */

static void follow_marks(const char *text, size_t bytes) {
    if (memmem(text, bytes, "@fail", 5))
        failing.active = 1;
    if (memmem(text, bytes, "@mend", 5))
        failing.active = 0;
}

/* One piece, at `offset`, or where the file stands if that is negative. */
static ssize_t write_piece(int file, const void *data, size_t bytes, off_t offset) {
    if (!path_of(file))
        return offset < 0 ? syscall(SYS_write, file, data, bytes) : syscall(SYS_pwrite64, file, data, bytes, offset);
    if (is_marks(paths[file])) {
        pthread_mutex_lock(&lock);
        record(MARK, 0, 0, 0, NULL, data, bytes);
        follow_marks(data, bytes);
        pthread_mutex_unlock(&lock);
        return bytes;
    }
    take_time();
    pthread_mutex_lock(&lock);
    if (fails(FAIL_WRITE, paths[file])) {
        /* A disk that becomes full takes the first blocks of what it is given. */
        size_t some = failing.error == ENOSPC && failing.seen % 2 ? bytes / 2 / 4096 * 4096 : 0;
        if (some == 0) {
            pthread_mutex_unlock(&lock);
            return -1;
        }
        bytes = some;
    }
    off_t at = offset;
    if (offset < 0) {
        struct stat found;
        int flags = syscall(SYS_fcntl, file, F_GETFL);
        if (flags & O_APPEND)
            at = syscall(SYS_fstat, file, &found) == 0 ? found.st_size : 0;
        else
            at = syscall(SYS_lseek, file, 0, SEEK_CUR);
    }
    ssize_t written =
        offset < 0 ? syscall(SYS_write, file, data, bytes) : syscall(SYS_pwrite64, file, data, bytes, offset);
    int error = errno;
    if (written > 0)
        record(WRITE, file, at, 0, NULL, data, written);
    pthread_mutex_unlock(&lock);
    errno = error;
    return written;
}

static ssize_t write_pieces(int file, const struct iovec *pieces, int count, off_t offset) {
    ssize_t whole = 0;
    for (int index = 0; index < count; index++) {
        ssize_t written =
            write_piece(file, pieces[index].iov_base, pieces[index].iov_len, offset < 0 ? -1 : offset + whole);
        if (written < 0)
            return whole ? whole : -1;
        whole += written;
        if ((size_t)written < pieces[index].iov_len)
            return whole;
    }
    return whole;
}

ssize_t write(int file, const void *data, size_t bytes) { return write_piece(file, data, bytes, -1); }
ssize_t pwrite(int file, const void *data, size_t bytes, off_t offset) {
    return write_piece(file, data, bytes, offset);
}
ssize_t pwrite64(int file, const void *data, size_t bytes, off_t offset) {
    return write_piece(file, data, bytes, offset);
}
ssize_t writev(int file, const struct iovec *pieces, int count) {
    return path_of(file) ? write_pieces(file, pieces, count, -1) : syscall(SYS_writev, file, pieces, count);
}
ssize_t pwritev(int file, const struct iovec *pieces, int count, off_t offset) {
    return path_of(file) ? write_pieces(file, pieces, count, offset)
                         : syscall(SYS_pwritev, file, pieces, count, offset, 0);
}
ssize_t pwritev64(int file, const struct iovec *pieces, int count, off_t offset) {
    return pwritev(file, pieces, count, offset);
}

/* Anyone who copies falls back to reading and writing, which is seen. */
ssize_t copy_file_range(int from, off_t *from_offset, int to, off_t *to_offset, size_t bytes, unsigned flags) {
    if (!path_of(to))
        return syscall(SYS_copy_file_range, from, from_offset, to, to_offset, bytes, flags);
    errno = ENOSYS;
    return -1;
}
ssize_t sendfile(int to, int from, off_t *offset, size_t bytes) {
    if (!path_of(to))
        return syscall(SYS_sendfile, to, from, offset, bytes);
    errno = EINVAL;
    return -1;
}
ssize_t sendfile64(int to, int from, off_t *offset, size_t bytes) { return sendfile(to, from, offset, bytes); }

void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    if ((protection & PROT_WRITE) && (flags & MAP_SHARED) && path_of(file))
        give_up("scrinium-fault: a file is written through a mapping, which is not recorded\n");
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}
void *mmap64(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    return mmap(address, bytes, protection, flags, file, offset);
}

int ftruncate(int file, off_t bytes) {
    if (!path_of(file))
        return syscall(SYS_ftruncate, file, bytes);
    pthread_mutex_lock(&lock);
    int answer = fails(FAIL_SIZE, paths[file]) ? -1 : syscall(SYS_ftruncate, file, bytes);
    int error = errno;
    if (answer == 0)
        record(TRUNCATE, file, bytes, 0, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return answer;
}
int ftruncate64(int file, off_t bytes) { return ftruncate(file, bytes); }

int fallocate(int file, int mode, off_t offset, off_t bytes) {
    if (!path_of(file))
        return syscall(SYS_fallocate, file, mode, offset, bytes);
    pthread_mutex_lock(&lock);
    int answer = fails(FAIL_SIZE, paths[file]) ? -1 : syscall(SYS_fallocate, file, mode, offset, bytes);
    int error = errno;
    if (answer == 0 && mode == 0)
        record(EXTEND, file, offset + bytes, 0, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return answer;
}
int fallocate64(int file, int mode, off_t offset, off_t bytes) { return fallocate(file, mode, offset, bytes); }
int posix_fallocate(int file, off_t offset, off_t bytes) {
    int before = errno, answer = fallocate(file, 0, offset, bytes) == 0 ? 0 : errno;
    errno = before;
    return answer;
}
int posix_fallocate64(int file, off_t offset, off_t bytes) { return posix_fallocate(file, offset, bytes); }

static int sync_file(int file, long call) {
    if (!path_of(file))
        return syscall(call, file);
    if (lie && *lie && strstr(paths[file], lie))
        return 0;
    pthread_mutex_lock(&lock);
    if (fails(FAIL_SYNC, paths[file])) {
        record(SYNC_FAILED, file, 0, 0, NULL, NULL, 0);
        pthread_mutex_unlock(&lock);
        errno = failing.error;
        return -1;
    }
    uint64_t number = syncs++;
    record(SYNC_BEGUN, file, number, 0, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    take_time();
    int answer = syscall(call, file), error = errno;
    if (answer == 0) {
        pthread_mutex_lock(&lock);
        record(SYNC_DONE, file, number, 0, NULL, NULL, 0);
        pthread_mutex_unlock(&lock);
    }
    errno = error;
    return answer;
}
int fsync(int file) { return sync_file(file, SYS_fsync); }
int fdatasync(int file) { return sync_file(file, SYS_fdatasync); }

/* --- names --- */

static int rename_file(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    char old[PATH_MAX], new[PATH_MAX];
    if (!resolve(from_folder, from, old) || !resolve(to_folder, to, new))
        return syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
    pthread_mutex_lock(&lock);
    int answer = fails(FAIL_NAME, new) ? -1 : syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
    int error = errno;
    if (answer == 0)
        record(RENAME, 0, 0, 0, old, new, strlen(new));
    pthread_mutex_unlock(&lock);
    errno = error;
    return answer;
}
int rename(const char *from, const char *to) { return rename_file(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    return rename_file(from_folder, from, to_folder, to, 0);
}
int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    return rename_file(from_folder, from, to_folder, to, flags);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    char old[PATH_MAX], new[PATH_MAX];
    if (!resolve(from_folder, from, old) || !resolve(to_folder, to, new))
        return syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
    pthread_mutex_lock(&lock);
    int answer = fails(FAIL_NAME, new) ? -1 : syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
    int error = errno;
    if (answer == 0)
        record(LINK, 0, 0, 0, old, new, strlen(new));
    pthread_mutex_unlock(&lock);
    errno = error;
    return answer;
}
int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

/* What takes one name and changes it. */
static int change_name(enum operation operation, int folder, const char *given, long argument) {
    char path[PATH_MAX];
    long call = operation == MAKE_FOLDER ? SYS_mkdirat : SYS_unlinkat;
    if (!resolve(folder, given, path))
        return syscall(call, folder, given, argument);
    pthread_mutex_lock(&lock);
    int answer = fails(FAIL_NAME, path) ? -1 : syscall(call, folder, given, argument);
    int error = errno;
    if (answer == 0)
        record(operation, 0, 0, 0, path, NULL, 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return answer;
}
int mkdirat(int folder, const char *path, mode_t mode) { return change_name(MAKE_FOLDER, folder, path, mode); }
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }
int unlinkat(int folder, const char *path, int flags) {
    return change_name(flags & AT_REMOVEDIR ? REMOVE_FOLDER : UNLINK, folder, path, flags);
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path) {
    struct stat found;
    if (syscall(SYS_newfstatat, AT_FDCWD, path, &found, AT_SYMLINK_NOFOLLOW) != 0)
        return -1;
    return S_ISDIR(found.st_mode) ? rmdir(path) : unlink(path);
}

/* --- the end --- */

/* Not while another thread has made a call that is not written down yet: a journal that ends before it would tell less
 * than what the next life finds. */
void abort(void) {
    pthread_mutex_lock(&lock);
    die();
    __builtin_unreachable();
}

/* --- the clock --- */

static int64_t clock_offset_s(void) {
    if (!jumps.every_ms)
        return 0;
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    uint64_t random = mix(jumps.seed ^ mix((now.tv_sec * 1000 + now.tv_nsec / 1000000) / jumps.every_ms));
    const int64_t reach[] = {0, 2, 3600, 40 * 86400};
    int64_t limit = reach[random % 4];
    return (int64_t)((random >> 8) % (2 * limit + 1)) - limit;
}

static int is_of_the_day(clockid_t clock) {
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int answer = syscall(SYS_clock_gettime, clock, now);
    if (answer == 0 && is_of_the_day(clock))
        now->tv_sec += clock_offset_s();
    return answer;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    int answer = syscall(SYS_gettimeofday, now, zone);
    if (answer == 0)
        now->tv_sec += clock_offset_s();
    return answer;
}
time_t time(time_t *place) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (place)
        *place = now.tv_sec;
    return now.tv_sec;
}

/* Anyone who waits until a time of the day waits as long as was meant: the kernel's clock does not jump. */
int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
    static int (*next)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    struct timespec meant = *until;
    /* Nothing has run for so long: it is a time of the day. */
    if (meant.tv_sec > 1000000000)
        meant.tv_sec -= clock_offset_s();
    return next(condition, mutex, &meant);
}
