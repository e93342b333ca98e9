/* Runs a program that may do anything, so that nothing of it survives.
 *
 *     jail UID MEMORY_MIB PROCESSES REPORT_FD PROGRAM ARGUMENTS...
 *
 * In namespaces of its own (processes, mounts, network, IPC; of users too, unless root runs it) where the
 * file system is read-only but for the current folder, seen as /tmp/naive, and an empty /tmp; as another
 * user if root runs it. A first process of that namespace waits for the program, counts what is left of it
 * and ends, and with it everything in the namespace. The report is a line: status (128 + signal if it was
 * killed), survivors, and whether there were namespaces.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* <sys/mount.h> and <linux/mount.h> do not go together in every C library. */
extern int mount(const char *, const char *, const char *, unsigned long, const void *);

enum { REFUSED = 125, FILE_MIB = 64, CPU_S = 60, MAX_PIDS = 32768 };
static const unsigned long bind_ = 4096, remount_ = 32, recursive_ = 16384, private_ = 1 << 18;

static void refuse(const char *what)
{
    fprintf(stderr, "jail: %s: %s\n", what, strerror(errno));
    exit(REFUSED);
}

static void write_file(const char *path, const char *text)
{
    int file = open(path, O_WRONLY);
    if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text))
        refuse(path);
    close(file);
}

/* Namespaces; 0 if this user may have none. */
static int separate(void)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    int kinds = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC;
    if (unshare(uid ? kinds | CLONE_NEWUSER : kinds))
        return 0;
    if (uid) {
        char map[64];
        write_file("/proc/self/setgroups", "deny");
        snprintf(map, sizeof map, "%d %d 1", (int)gid, (int)gid);
        write_file("/proc/self/gid_map", map);
        snprintf(map, sizeof map, "%d %d 1", (int)uid, (int)uid);
        write_file("/proc/self/uid_map", map);
    }
    return 1;
}

/* The folder behind a descriptor is all that can be written, beside an empty /tmp. */
static void furnish(int folder)
{
    char here[64];
    struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
    snprintf(here, sizeof here, "/proc/self/fd/%d", folder);
    if (mount(0, "/", 0, recursive_ | private_, 0))
        refuse("mounts cannot be made private");
    if (syscall(SYS_mount_setattr, AT_FDCWD, "/", 0x8000 /* AT_RECURSIVE */, &read_only, sizeof read_only))
        refuse("the file system cannot be made read-only");
    if (mount("tmpfs", "/tmp", "tmpfs", 0, "size=128m,mode=1777"))
        refuse("/tmp");
    if (mkdir("/tmp/naive", 0755) || mount(here, "/tmp/naive", 0, bind_, 0) ||
        mount(0, "/tmp/naive", 0, bind_ | remount_, 0))
        refuse("the folder cannot be mounted");
    if (!access("/dev/shm", F_OK) && mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64m,mode=1777"))
        refuse("/dev/shm");
    mount("proc", "/proc", "proc", 0, 0); /* some containers forbid it; who is seen cannot be reached */
    if (chdir("/tmp/naive"))
        refuse("/tmp/naive");
}

static void limit(int what, rlim_t most)
{
    struct rlimit both = {most, most};
    if (setrlimit(what, &both))
        refuse("limits");
}

static void restrain(uid_t uid, long memory_mib, long processes)
{
    if (!geteuid() && (setgroups(0, 0) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
        refuse("another user");
    limit(RLIMIT_AS, (rlim_t)memory_mib << 20);
    limit(RLIMIT_FSIZE, (rlim_t)FILE_MIB << 20);
    limit(RLIMIT_CPU, CPU_S);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_NPROC, (rlim_t)processes);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        refuse("no new privileges");
}

/* Who is left, beside the caller, which is the first process of its namespace. */
static int survivors(void)
{
    int count = 0;
    while (waitpid(-1, 0, WNOHANG) > 0)
        ;
    for (pid_t pid = 2; pid < MAX_PIDS && !kill(-1, 0); pid++)
        count += !kill(pid, 0);
    return count;
}

static int report(int out, int status, int left, int contained)
{
    char line[64];
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    snprintf(line, sizeof line, "%d %d %d\n", code, left, contained);
    return write(out, line, strlen(line)) == (ssize_t)strlen(line) ? 0 : REFUSED;
}

static int init(int folder, int contained, char **words)
{
    int out = atoi(words[4]), status = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (contained)
        furnish(folder);
    restrain((uid_t)atoi(words[1]), atol(words[2]), atol(words[3]));
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* another user forgets it */
    prctl(PR_SET_DUMPABLE, 0);        /* the program may trace its like, and not this */
    close(folder);
    pid_t child = fork();
    if (child < 0)
        refuse("fork");
    if (!child) {
        close(out);
        execv(words[5], words + 5);
        refuse(words[5]);
    }
    pid_t ended;
    while ((ended = waitpid(-1, &status, 0)) != child)
        if (ended < 0 && errno != EINTR)
            refuse("wait");
    return report(out, status, contained ? survivors() : 0, contained);
}

int main(int count, char **words)
{
    if (count < 6)
        return REFUSED;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int contained = separate(), status = 0;
    int folder = open(".", O_RDONLY | O_DIRECTORY); /* of the new namespace's mounts */
    if (folder < 0)
        refuse(".");
    pid_t first = fork();
    if (first < 0)
        refuse("fork");
    if (!first)
        return init(folder, contained, words);
    close(atoi(words[4]));
    while (waitpid(first, &status, 0) < 0)
        if (errno != EINTR)
            refuse("wait");
    return WIFEXITED(status) ? WEXITSTATUS(status) : REFUSED;
}
