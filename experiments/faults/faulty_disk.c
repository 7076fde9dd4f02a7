// For LD_PRELOAD: what befalls data.mdb, by the letter in the file that FAULTY_DISK names.
// Writes: f: no room; h: no room after the first half; e: an input or output error; t: one after the first half
// was written; m: one on meta pages alone; s: one on syncs; w: syncs take 50 ms. Reads: r: page number FAULTY_PAGE
// of the file with inode FAULTY_INODE can't be read, which is an error of pread and SIGBUS where the file is mapped.
// Anything else: nothing.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, META_BYTES = 2 * PAGE_BYTES };

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

// Where the page begins that can't be read of a file, -1 for none.
static off_t bad_page(int fd)
{
    const char *number = getenv("FAULTY_PAGE"), *inode = getenv("FAULTY_INODE");
    struct stat about;
    if (number == NULL || inode == NULL || fault(fd) != 'r' || fstat(fd, &about))
        return -1;
    return about.st_ino == strtoull(inode, NULL, 10) ? (off_t) PAGE_BYTES * atoi(number) : -1;
}

ssize_t pread(int fd, void *to, size_t count, off_t at)
{
    ssize_t (*real)(int, void *, size_t, off_t) =
        (ssize_t (*)(int, void *, size_t, off_t)) dlsym(RTLD_NEXT, "pread");
    off_t bad = bad_page(fd);
    if (bad >= 0 && at < bad + PAGE_BYTES && bad < at + (off_t) count)
        return fails(EIO);
    return real(fd, to, count, at);
}

// Python's reads, where FAULTY_LOOK is "no" as if the page was still in memory then.
ssize_t pread64(int fd, void *to, size_t count, off64_t at)
{
    ssize_t (*real)(int, void *, size_t, off64_t) =
        (ssize_t (*)(int, void *, size_t, off64_t)) dlsym(RTLD_NEXT, "pread64");
    const char *look = getenv("FAULTY_LOOK");
    return look != NULL && strcmp(look, "no") == 0 ? real(fd, to, count, at) : pread(fd, to, count, at);
}

// A page of a file behind its end is there in no mapping: who touches it gets SIGBUS.
void *mmap(void *where, size_t length, int protection, int flags, int fd, off_t at)
{
    void *(*real)(void *, size_t, int, int, int, off_t) =
        (void *(*)(void *, size_t, int, int, int, off_t)) dlsym(RTLD_NEXT, "mmap");
    void *mapped = real(where, length, protection, flags, fd, at);
    off_t bad = mapped == MAP_FAILED || fd < 0 ? -1 : bad_page(fd);
    if (bad < at || bad - at >= (off_t) length)
        return mapped;
    int empty = memfd_create("empty", 0);
    if (empty >= 0)
        real((char *) mapped + (bad - at), PAGE_BYTES, protection, MAP_SHARED | MAP_FIXED, empty, 0);
    if (empty >= 0)
        close(empty);
    return mapped;
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
