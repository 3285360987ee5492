/* Moves the wall clock of processes, and no other clock of theirs. CLOCK_OFFSET names a file with nanoseconds as a 64-bit integer, which may
 * change at any time. As a library (-shared -fPIC, LD_PRELOAD) it answers for the C library; as a program, `wall-clock COMMAND...`, it answers
 * the system calls of a program that uses no C library, such as one in Go, after it has hidden the kernel's own quick answer (vDSO) from it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static volatile const int64_t *offset_of(void) {
  static volatile const int64_t *offset;
  static const int64_t none = 0;
  if (offset != NULL) return offset;
  const char *path = getenv("CLOCK_OFFSET");
  int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  void *seen = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (file >= 0) close(file);
  return offset = seen == MAP_FAILED ? &none : seen;
}

static int read_clock(clockid_t clock, struct timespec *at) {
  long answer = syscall(SYS_clock_gettime, clock, at);
  if (answer != 0 || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return answer;
  int64_t moved = at->tv_sec * SECOND + at->tv_nsec + *offset_of();
  at->tv_sec = moved / SECOND;
  at->tv_nsec = moved % SECOND;
  return 0;
}

#ifndef PROGRAM

int clock_gettime(clockid_t clock, struct timespec *at) { return read_clock(clock, at); }

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  (void)zone;
  struct timespec now;
  read_clock(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  read_clock(CLOCK_REALTIME, &now);
  if (at != NULL) *at = now.tv_sec;
  return now.tv_sec;
}

#else

#include <elf.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

static void need(int is_met, const char *what) {
  if (is_met) return;
  perror(what);
  exit(125);
}

static void send_descriptor(int through, int descriptor) {
  char space[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
  struct iovec body = {&byte, 1};
  struct msghdr message = {.msg_iov = &body, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  need(sendmsg(through, &message, 0) == 1, "sendmsg");
}

static int receive_descriptor(int through) {
  char space[CMSG_SPACE(sizeof(int))] = {0}, byte;
  struct iovec body = {&byte, 1};
  struct msghdr message = {.msg_iov = &body, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  need(recvmsg(through, &message, 0) == 1, "recvmsg");
  int descriptor;
  memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
  return descriptor;
}

/* From now on, this process and its children ask us for the wall clock. */
static int install_filter(void) {
  struct sock_filter lines[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_REALTIME, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof lines / sizeof *lines, lines};
  need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

/* The child has just executed its program: its auxiliary vector, above arguments and environment, names the vDSO. */
static void hide_vdso(pid_t child) {
  struct user_regs_struct registers;
  need(ptrace(PTRACE_GETREGS, child, 0, &registers) == 0, "getregs");
  unsigned long at = registers.rsp;
  long count = ptrace(PTRACE_PEEKDATA, child, at, 0);
  at += 8 * (count + 2);
  while (ptrace(PTRACE_PEEKDATA, child, at, 0) != 0) at += 8;
  for (at += 8;; at += 16) {
    long kind = ptrace(PTRACE_PEEKDATA, child, at, 0);
    if (kind == AT_NULL) return;
    if (kind == AT_SYSINFO_EHDR) need(ptrace(PTRACE_POKEDATA, child, at, AT_IGNORE) == 0, "pokedata");
  }
}

static void answer(int listener) {
  struct seccomp_notif asked = {0};
  struct seccomp_notif_resp told = {0};
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) return;
  struct timespec now;
  read_clock(CLOCK_REALTIME, &now);
  struct iovec ours = {&now, sizeof now}, theirs = {(void *)asked.data.args[1], sizeof now};
  told.id = asked.id;
  if (process_vm_writev(asked.pid, &ours, 1, &theirs, 1, 0) != sizeof now) told.error = -EFAULT;
  ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &told);
}

static pid_t command;
static void pass_on(int number) { kill(command, number); }

int main(int count, char **words) {
  (void)count;
  int pair[2], status;
  need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
  command = fork();
  if (command == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    int listener = install_filter();
    need(listener >= 0, "seccomp");
    send_descriptor(pair[1], listener);
    close(listener);
    execvp(words[1], words + 1);
    need(0, words[1]);
  }
  int listener = receive_descriptor(pair[0]);
  need(waitpid(command, &status, 0) == command && WIFSTOPPED(status), "the command");
  hide_vdso(command);
  ptrace(PTRACE_DETACH, command, 0, 0);
  signal(SIGTERM, pass_on);
  signal(SIGINT, pass_on);
  struct pollfd asking = {listener, POLLIN, 0};
  while (waitpid(command, &status, WNOHANG) == 0)
    if (poll(&asking, 1, 100) > 0 && (asking.revents & POLLIN)) answer(listener);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif
