-- SPDX-License-Identifier: GPL-2.0-only
--- The functions and constants of the C library that Lua code uses, declared in this one place. `libc.read(fd, ...)`
--- is ffi.C.read; after a failure ffi.errno() returns errno.
local ffi = require 'ffi'

ffi.cdef [[
enum {
  EPERM = 1, ENOENT = 2, EINTR = 4, ENXIO = 6, EAGAIN = 11, EACCES = 13, ENODEV = 19, EINVAL = 22, EPIPE = 32,
  ELOOP = 40, EOPNOTSUPP = 95
};
enum { CLOCK_REALTIME = 0 };
enum { O_WRONLY = 1, O_CREAT = 0x40, O_EXCL = 0x80, O_TRUNC = 0x200, O_APPEND = 0x400, O_CLOEXEC = 0x80000 };
enum { POLLIN = 1, POLLOUT = 4, W_OK = 2 };
enum { IN_CLOSE_WRITE = 8, IN_MOVED_TO = 0x80, IN_NONBLOCK = 0x800, IN_CLOEXEC = 0x80000 };
enum { PROT_READ = 1, PROT_WRITE = 2, MAP_SHARED = 1 };
enum {
  AT_FDCWD = -100, AT_SYMLINK_NOFOLLOW = 0x100, STATX_BASIC_STATS = 0x7ff, S_IFMT = 0xf000, S_IFREG = 0x8000,
  S_IFDIR = 0x4000, S_IFCHR = 0x2000, O_PATH = 0x200000
};
enum { RUSAGE_SELF = 0, TIOCGWINSZ = 0x5413, SC_NPROCESSORS_ONLN = 84 };

struct dirent { uint64_t ino; int64_t off; unsigned short reclen; unsigned char type; char name[256]; };
struct pollfd { int fd; short events, revents; };
struct rusage { int64_t user_sec, user_usec, system_sec, system_usec; long maxrss, others[13]; };
struct statx_timestamp { int64_t sec; uint32_t nsec; int32_t pad; };
struct statx {
  uint32_t mask, blksize; uint64_t attributes; uint32_t nlink, uid, gid; uint16_t mode, pad;
  uint64_t ino, size, blocks, attributes_mask;
  struct statx_timestamp atime, btime, ctime, mtime;
  uint32_t rdev_major, rdev_minor, dev_major, dev_minor; uint64_t spare[14];
};
struct winsize { unsigned short rows, columns, x, y; };

void *calloc(size_t n, size_t size);
void free(void *memory);
void *mmap(void *at, size_t size, int protection, int flags, int fd, int64_t offset);
int munmap(void *memory, size_t size);
long syscall(long number, ...);

int memcmp(const void *a, const void *b, size_t size);
void *memmem(const void *where, size_t size, const void *what, size_t what_size);
size_t strnlen(const void *text, size_t max);
const char *strerror(int code);
int fnmatch(const char *pattern, const char *text, int flags);

int open(const char *path, int flags, ...);
int close(int fd);
intptr_t read(int fd, void *bytes, size_t size);
intptr_t write(int fd, const void *bytes, size_t size);
intptr_t pread(int fd, void *bytes, size_t size, int64_t offset);
intptr_t tee(int from, int to, size_t size, unsigned flags);
int pipe(int fds[2]);
intptr_t readlink(const char *path, char *target, size_t size);
int access(const char *path, int mode);
int rename(const char *from, const char *to);
int unlink(const char *path);
int inotify_init1(int flags);
int inotify_add_watch(int fd, const char *path, uint32_t mask);
char *realpath(const char *path, char *resolved);
int mkdir(const char *path, unsigned mode);
int poll(struct pollfd *fds, unsigned long n, int timeout);
int usleep(unsigned us);
int statx(int dir, const char *path, int flags, unsigned int mask, struct statx *st);
void *opendir(const char *path);
struct dirent *readdir(void *dir);
int closedir(void *dir);

int ioctl(int fd, unsigned long request, ...);
int isatty(int fd);
int tcgetattr(int fd, void *termios);
int tcsetattr(int fd, int when, const void *termios);

int getpid(void);
unsigned int geteuid(void);
int getpagesize(void);
long sysconf(int name);
int getrusage(int who, struct rusage *usage);
int clock_gettime(int clock, int64_t *sec_ns);
]]

return ffi.C
