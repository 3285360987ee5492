/* Makes calls about files below SLOW_FOLDER slow, as a network file system does that is overloaded. SLOW_NUMBERS names a file with two 64-bit
 * integers, the shortest and the longest delay in nanoseconds, which may change at any time. Build with -shared -fPIC, use with LD_PRELOAD. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *delays(void) {
  static volatile const int64_t *seen;
  static const int64_t none[2] = {0, 0};
  if (seen != NULL) return seen;
  const char *path = getenv("SLOW_NUMBERS");
  int file = path == NULL ? -1 : syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  void *found = file < 0 ? MAP_FAILED : mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, file, 0);
  if (file >= 0) close(file);
  return seen = found == MAP_FAILED ? none : found;
}

static void wait_for(const char *path) {
  static const char *folder;
  if (folder == NULL && (folder = getenv("SLOW_FOLDER")) == NULL) return;
  if (path == NULL || strncmp(path, folder, strlen(folder)) != 0) return;
  int64_t least = delays()[0], most = delays()[1];
  if (most == 0) return;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  int64_t ns = least + (most > least ? (now.tv_nsec * 7919LL) % (most - least) : 0);
  /* In short pieces: what hangs goes on when the numbers change. */
  for (int64_t done = 0; done < ns && delays()[1] != 0; done += 50000000) {
    struct timespec piece = {0, 50000000};
    nanosleep(&piece, NULL);
  }
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define OPEN(name) \
  int name(const char *path, int flags, ...) { \
    va_list rest; \
    va_start(rest, flags); \
    mode_t mode = va_arg(rest, mode_t); \
    va_end(rest); \
    wait_for(path); \
    return syscall(SYS_openat, AT_FDCWD, path, flags, mode); \
  }
OPEN(open)
OPEN(open64)

int rename(const char *from, const char *to) {
  wait_for(to);
  return NEXT(rename)(from, to);
}
int link(const char *from, const char *to) {
  wait_for(to);
  return NEXT(link)(from, to);
}
int unlink(const char *path) {
  wait_for(path);
  return NEXT(unlink)(path);
}
int mkdir(const char *path, mode_t mode) {
  wait_for(path);
  return NEXT(mkdir)(path, mode);
}
DIR *opendir(const char *path) {
  wait_for(path);
  return NEXT(opendir)(path);
}
#define LIST(name, entry) \
  int name(const char *restrict path, struct entry ***restrict found, int (*filter)(const struct entry *), \
           int (*order)(const struct entry **, const struct entry **)) { \
    wait_for(path); \
    return NEXT(name)(path, found, filter, order); \
  }
LIST(scandir, dirent)
LIST(scandir64, dirent64)

#define LOOK(name, entry) \
  int name(const char *restrict path, struct entry *restrict found) { \
    wait_for(path); \
    return NEXT(name)(path, found); \
  }
LOOK(stat, stat)
LOOK(stat64, stat64)
