/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tcp [-w] VERB N...: a process called tcpserver accepts connections of one called tcpclient, on
 * 127.0.0.1 or, after the verb v6, on ::1; after the verb netns in a network namespace of its
 * own. It ends with the last verb:
 *
 *   talk N     N connections. In each, the client sends 10 times 1000 bytes, the server
 *              receives them, sends 3000 bytes and closes, and the client receives these.
 *   handed N   the same, but the server asks who connects, and a child of it, called tcpworker,
 *              does the rest
 *   half N     the same as talk, but the client closes its half first, and does not receive before
 *              both halves are closed
 *   idle N     N connections without data, which the client closes first
 *   refused N  the client connects N times to a port at which nobody listens
 *   long N     one connection. The client prints a line and waits for one, and then N times
 *              sends 1000 bytes and receives the 3000 that the server sends then.
 *   udp N      N times, the client sends a datagram of 1000 bytes from a connected socket, and
 *              the server answers with one of 300
 *   full N     nobody accepts, and N connections find the queue full, until each has been asked
 *              for twice. Prints the port and how many segments the namespace has sent again.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "go.h"

enum { PARTS = 10, PART = 1000, REPLY = 3000 };
static int family = AF_INET;
static char data[PARTS * PART];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Returns a socket that is bound to the loopback address, and that address. */
static int bound(struct sockaddr_in6 *address, socklen_t *size)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)address;
	int fd = socket(family, SOCK_STREAM, 0);

	memset(address, 0, sizeof(*address));
	address->sin6_family = (sa_family_t)family;
	if (family == AF_INET)
		v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		address->sin6_addr = in6addr_loopback;
	*size = family == AF_INET ? sizeof(*v4) : sizeof(*address);
	if (bind(fd, (struct sockaddr *)address, *size) ||
	    getsockname(fd, (struct sockaddr *)address, size))
		die("bind");
	return fd;
}

static void read_all(int fd, size_t size)
{
	while (size > 0) {
		ssize_t n = recv(fd, data, size, 0);

		if (n <= 0)
			die("recv");
		size -= (size_t)n;
	}
}

static void write_all(int fd, size_t size)
{
	if (send(fd, data, size, 0) != (ssize_t)size)
		die("send");
}

static void serve(int listener, const char *verb, long n)
{
	prctl(PR_SET_NAME, "tcpserver");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (long i = 0; i < (*verb == 'l' ? 1 : n); i++) {
		struct sockaddr_in6 peer;
		socklen_t size = sizeof(peer);
		int asks = !strcmp(verb, "handed");
		int fd = accept(listener, asks ? (struct sockaddr *)&peer : NULL,
				asks ? &size : NULL);

		if (fd < 0)
			die("accept");
		if (asks && fork()) {
			close(fd);
			wait(NULL);
			continue;
		}
		if (asks)
			prctl(PR_SET_NAME, "tcpworker");
		for (long j = 0; *verb == 'l' && j < n; j++) {
			read_all(fd, PART);
			write_all(fd, REPLY);
		}
		if (*verb == 'i' || *verb == 'l') {
			if (read(fd, data, 1) != 0)
				die("read");
		} else {
			read_all(fd, PARTS * PART);
			write_all(fd, REPLY);
		}
		close(fd);
		if (asks)
			_exit(0);
	}
	_exit(0);
}

static void wait_until_closed(int fd)
{
	struct tcp_info info = {0};
	socklen_t size = sizeof(info);

	while (info.tcpi_state != TCP_CLOSE) {
		sched_yield();
		if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size))
			die("TCP_INFO");
	}
}

static void talk_long(int fd, long n)
{
	puts("open");
	fflush(stdout);
	getchar();
	for (long i = 0; i < n; i++) {
		write_all(fd, PART);
		read_all(fd, REPLY);
	}
}

static void talk(const struct sockaddr_in6 *address, socklen_t size, const char *verb, long n)
{
	int fd = socket(family, SOCK_STREAM, 0);

	if (connect(fd, (const struct sockaddr *)address, size))
		die("connect");
	if (*verb == 'l') {
		talk_long(fd, n);
	} else if (*verb != 'i') {
		for (int i = 0; i < PARTS; i++)
			write_all(fd, PART);
		if (*verb == 'h') {
			shutdown(fd, SHUT_WR);
			wait_until_closed(fd);
		}
		read_all(fd, REPLY);
	}
	close(fd);
}

static void own_netns(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};

	if (unshare(CLONE_NEWNET) || ioctl(socket(AF_INET, SOCK_DGRAM, 0), SIOCSIFFLAGS, &lo))
		die("netns");
}

/* Returns how many segments the namespace has sent again. */
static long retransmits(void)
{
	char line[512];
	long n = -1;
	FILE *file = fopen("/proc/net/snmp", "r");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Tcp: %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %ld", &n) == 1)
			break;
	return n;
}

static unsigned int retransmits_of(int fd)
{
	struct tcp_info info;
	socklen_t size = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size))
		die("TCP_INFO");
	return info.tcpi_total_retrans;
}

static void fill(int listener, const struct sockaddr_in6 *address, socklen_t size, long n)
{
	int fds[64];

	if (listen(listener, 0))
		die("listen");
	for (long i = 0; i <= n && i < 64; i++) {
		fds[i] = socket(family, SOCK_STREAM | (i ? SOCK_NONBLOCK : 0), 0);
		if (connect(fds[i], (const struct sockaddr *)address, size) && errno != EINPROGRESS)
			die("connect");
	}
	for (long i = 1; i <= n && i < 64; i++) {
		while (!retransmits_of(fds[i]))
			usleep(10000);
	}
	for (long i = 0; i <= n && i < 64; i++)
		close(fds[i]);
	close(listener);
	printf("port %d retransmits %ld\n", ntohs(address->sin6_port), retransmits());
}

static void send_datagrams(long n)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int server = socket(AF_INET, SOCK_DGRAM, 0), fd = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t size = sizeof(a);

	if (bind(server, (struct sockaddr *)&a, size) ||
	    getsockname(server, (struct sockaddr *)&a, &size) ||
	    connect(fd, (struct sockaddr *)&a, size))
		die("udp");
	if (!fork()) {
		prctl(PR_SET_NAME, "udpserver");
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (long i = 0; i < n; i++) {
			size = sizeof(a);
			if (recvfrom(server, data, PART, 0, (struct sockaddr *)&a, &size) != PART ||
			    sendto(server, data, 300, 0, (struct sockaddr *)&a, size) != 300)
				die("server");
		}
		_exit(0);
	}
	for (long i = 0; i < n; i++) {
		write_all(fd, PART);
		read_all(fd, 300);
	}
	wait(NULL);
}

static void run(const char *verb, long n)
{
	struct sockaddr_in6 address;
	socklen_t size;
	int listener = bound(&address, &size);

	if (*verb == 'f') {
		fill(listener, &address, size, n);
		return;
	}
	if (*verb == 'r') {
		for (long i = 0; i < n; i++) {
			int fd = socket(family, SOCK_STREAM, 0);

			if (!connect(fd, (struct sockaddr *)&address, size))
				die("not refused");
			close(fd);
		}
		close(listener);
		return;
	}
	if (listen(listener, 128))
		die("listen");
	if (!fork())
		serve(listener, verb, n);
	close(listener);
	for (long i = 0; i < (*verb == 'l' ? 1 : n); i++)
		talk(&address, size, verb, n);
	wait(NULL);
}

int main(int argc, char **argv)
{
	struct workload w = {.wait = argc > 1 && !strcmp(argv[1], "-w")};

	prctl(PR_SET_NAME, "tcpclient");
	signal(SIGPIPE, SIG_IGN);
	if (argc < 2 + w.wait) {
		fprintf(stderr, "usage: %s [-w] VERB N...\n", argv[0]);
		return 2;
	}
	workload_wait(&w);
	for (char **arg = argv + 1 + w.wait; *arg; arg++) {
		if (!strcmp(*arg, "v6")) {
			family = AF_INET6;
		} else if (!strcmp(*arg, "netns")) {
			own_netns();
		} else if (!strcmp(*arg, "udp") && arg[1]) {
			send_datagrams(atol(*++arg));
		} else if (arg[1]) {
			run(arg[0], atol(arg[1]));
			arg++;
		}
	}
	return 0;
}
