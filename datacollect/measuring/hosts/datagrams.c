/* Time of a processor that datagrams take which one thread sends itself, in bursts.
 *
 *     datagrams ADDRESS SECONDS [SENDER_NAMESPACE RECEIVER_NAMESPACE]
 *
 * One thread does both, so that nothing waits and nobody else is charged. Sizes take turns until the
 * time is over. Each burst is a line: size, nanoseconds for a packet sent, for one received.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BURST = 64, MOST = 65536 };

static const int sizes[] = {64, 256, 512, 1024, 1472, 2048, 4096, 8192};
static char buffer[MOST];

static double seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

static void must(int failed, const char *what) {
  if (failed) {
    perror(what);
    exit(1);
  }
}

static void enter(const char *path) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  must(file < 0 || setns(file, CLONE_NEWNET), path);
  close(file);
}

int main(int n_words, char **words) {
  if (n_words != 3 && n_words != 5) return 2;
  struct sockaddr_in address = {.sin_family = AF_INET};
  if (!inet_aton(words[1], &address.sin_addr)) return 2;
  int room = 4 << 20;
  socklen_t length = sizeof address;

  if (n_words == 5) enter(words[4]);
  int receiver = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  must(receiver < 0, "socket");
  setsockopt(receiver, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  /* A burst that does not fit is lost: then this says so, and does not wait for ever. */
  struct timeval patience = {.tv_sec = 1};
  setsockopt(receiver, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  must(bind(receiver, (void *)&address, sizeof address), "bind");
  must(getsockname(receiver, (void *)&address, &length), "getsockname");
  if (n_words == 5) enter(words[3]);
  int sender = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  must(sender < 0 || connect(sender, (void *)&address, sizeof address), "connect");

  double end = seconds(CLOCK_MONOTONIC) + atof(words[2]);
  do {
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      double begin = seconds(CLOCK_THREAD_CPUTIME_ID);
      for (int k = 0; k < BURST; k++) must(send(sender, buffer, sizes[i], 0) < 0, "send");
      double sent = seconds(CLOCK_THREAD_CPUTIME_ID);
      for (int k = 0; k < BURST; k++) must(recv(receiver, buffer, MOST, 0) < 0, "recv");
      double received = seconds(CLOCK_THREAD_CPUTIME_ID);
      printf("%d %.0f %.0f\n", sizes[i], (sent - begin) / BURST * 1e9,
             (received - sent) / BURST * 1e9);
    }
  } while (seconds(CLOCK_MONOTONIC) < end);
  return 0;
}
