/* Preloaded before the C library (LD_PRELOAD). Tokens make writes fail or stall, or the wall clock jump.
 *
 * Tokens are files in $GRISTMILL_FAULTS. `shim.write.N` with "ERRNO PART" makes one write to a file whose path contains
 * PART fail with ERRNO. Removing the token fires it, so it happens once over all processes. `shim.slow` with
 * "MILLISECONDS PART" delays each such write. `shim.clock` with seconds is added to the wall clock. The last two apply
 * as long as their token exists, and create NAME.hit when they have had an effect.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define TOKENS_MAX 9
#define PATH_BYTES 512

static int token_path(char *path, const char *name) {
    const char *directory = getenv("GRISTMILL_FAULTS");
    return directory && snprintf(path, PATH_BYTES, "%s/%s", directory, name) < PATH_BYTES;
}

/* Reads "NUMBER PART" by system calls that are not shimmed. */
static int token_read(const char *path, long *number, char *part) {
    char text[PATH_BYTES];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0) return 0;
    text[got] = 0;
    part[0] = 0;
    return 1 <= sscanf(text, "%ld %511s", number, part);
}

static int file_matches(int file, const char *part) {
    char link[64], target[PATH_BYTES];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, target, sizeof target - 1);
    if (length <= 0) return 0;
    target[length] = 0;
    return strstr(target, part) != NULL;
}

static void leave_hit(const char *name) {
    char path[PATH_BYTES], hit[64];
    snprintf(hit, sizeof hit, "%s.hit", name);
    if (!token_path(path, hit)) return;
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (0 <= fd) close(fd);
}

/* True if this write fails; errno is set then. */
static int write_fails(int file) {
    char path[PATH_BYTES], part[PATH_BYTES], name[64];
    long number;
    int kept = errno;
    if (token_path(path, "shim.slow") && token_read(path, &number, part) && file_matches(file, part)) {
        leave_hit("shim.slow");
        usleep((useconds_t)number * 1000);
    }
    for (int token = 1; token <= TOKENS_MAX; token++) {
        snprintf(name, sizeof name, "shim.write.%d", token);
        if (token_path(path, name) && token_read(path, &number, part) && file_matches(file, part) &&
            unlink(path) == 0) {
            errno = (int)number;
            return 1;
        }
    }
    errno = kept;
    return 0;
}

ssize_t write(int file, const void *bytes, size_t count) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = dlsym(RTLD_NEXT, "write");
    return write_fails(file) ? -1 : real(file, bytes, count);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) {
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    if (!real) real = dlsym(RTLD_NEXT, "pwrite64");
    return write_fails(file) ? -1 : real(file, bytes, count, at);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    char path[PATH_BYTES], part[PATH_BYTES];
    long seconds;
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, time);
    if (clock == CLOCK_REALTIME && result == 0) {
        int kept = errno;
        if (token_path(path, "shim.clock") && token_read(path, &seconds, part)) {
            time->tv_sec += seconds;
            leave_hit("shim.clock");
        }
        errno = kept;
    }
    return result;
}
