// freeze-watch SECONDS CGROUP…   a line for each change of "frozen" in cgroup.events: seconds since the
// epoch, index of the cgroup, value. The last line has the index -1. Waits in poll() for the kernel's own
// notification, so it costs nothing in an emulated machine.
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kMost = 64 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char** argv) {
  const int count = argc - 2;
  struct pollfd files[kMost];
  int last[kMost];
  if (count < 1 || count > kMost) return 2;
  for (int i = 0; i < count; ++i) {
    char path[4096];
    snprintf(path, sizeof path, "%s/cgroup.events", argv[i + 2]);
    files[i] = (struct pollfd){open(path, O_RDONLY), POLLPRI, 0};
    last[i] = -1;
    if (files[i].fd < 0) {
      perror(path);
      return 2;
    }
  }
  const double end = now() + atof(argv[1]);
  for (;;) {
    for (int i = 0; i < count; ++i) {
      char text[256] = "";
      if (pread(files[i].fd, text, sizeof text - 1, 0) <= 0) continue;  // the pod is gone
      const char* at = strstr(text, "frozen ");
      const int frozen = at ? at[7] - '0' : -1;
      if (frozen != last[i]) printf("%.4f %d %d\n", now(), i, last[i] = frozen);
    }
    const double left = end - now();
    if (left <= 0) break;
    poll(files, (nfds_t)count, (int)(left * 1000) + 1);
  }
  printf("%.4f -1 0\n", now());
  return 0;
}
