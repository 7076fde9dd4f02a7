// For LD_PRELOAD: what befalls writes to data.mdb, by the letter in the file that FAULTY_DISK names.
// f: no room; h: no room after the first half; e: an input or output error; t: one after the first half was
// written; m: one on meta pages alone; s: one on syncs; w: syncs take 50 ms; anything else: nothing.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { META_BYTES = 2 * 4096 };

static int is_data(int fd)
{
    static const char name[] = "/data.mdb";
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < (ssize_t) sizeof name)
        return 0;
    path[length] = 0;
    return strcmp(path + length - (sizeof name - 1), name) == 0;
}

static char fault(int fd)
{
    char letter = 0;
    const char *control = getenv("FAULTY_DISK");
    if (control == NULL || !is_data(fd))
        return 0;
    int from = open(control, O_RDONLY);
    if (from < 0 || read(from, &letter, 1) != 1)
        letter = 0;
    if (from >= 0)
        close(from);
    return letter;
}

static ssize_t fails(int reason)
{
    errno = reason;
    return -1;
}

ssize_t pwrite(int fd, const void *from, size_t count, off_t at)
{
    ssize_t (*real)(int, const void *, size_t, off_t) =
        (ssize_t (*)(int, const void *, size_t, off_t)) dlsym(RTLD_NEXT, "pwrite");
    switch (fault(fd)) {
    case 'f':
        return fails(ENOSPC);
    case 'h':
        return real(fd, from, count / 2, at);
    case 'e':
        return fails(EIO);
    case 't':
        real(fd, from, count / 2, at);
        return fails(EIO);
    case 'm':
        if (at < META_BYTES)
            return fails(EIO);
    }
    return real(fd, from, count, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    ssize_t (*real)(int, const struct iovec *, int) =
        (ssize_t (*)(int, const struct iovec *, int)) dlsym(RTLD_NEXT, "writev");
    switch (fault(fd)) {
    case 'f':
        return fails(ENOSPC);
    case 'h':
        return real(fd, parts, (count + 1) / 2);
    case 'e':
        return fails(EIO);
    case 't':
        real(fd, parts, (count + 1) / 2);
        return fails(EIO);
    }
    return real(fd, parts, count);
}

static int sync_with(const char *name, int fd)
{
    int (*real)(int) = (int (*)(int)) dlsym(RTLD_NEXT, name);
    char letter = fault(fd);
    if (letter == 's')
        return (int) fails(EIO);
    if (letter == 'w')
        usleep(50000);
    return real(fd);
}

int fsync(int fd) { return sync_with("fsync", fd); }

int fdatasync(int fd) { return sync_with("fdatasync", fd); }
