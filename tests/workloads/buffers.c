/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * buffers: system calls whose buffers have something secret behind what the call is given. Nothing
 * else in this program makes these calls.
 */
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include "go.h"

static int pipe_fds[2], sockets[2];

static void writes(void)
{
	char buf[64] = "hello\nSECRET", big[300];

	memset(big, 'x', sizeof(big));
	syscall(SYS_pwrite64, -1, "pwriteSECRET", 6, 0);
	syscall(SYS_write, pipe_fds[1], buf, 6);
	syscall(SYS_write, pipe_fds[1], "a\0b\0SECRET", 4);
	syscall(SYS_write, pipe_fds[1], big, 256);
	syscall(SYS_write, pipe_fds[1], big, 257);
	syscall(SYS_write, pipe_fds[1], buf, 0);
	syscall(SYS_write, pipe_fds[1], NULL, 5);
	syscall(SYS_write, pipe_fds[1], (void *)16, 5);
}

static void reads(void)
{
	char buf[700];

	memset(buf, 'S', sizeof(buf));
	syscall(SYS_read, pipe_fds[0], buf, 6);
	syscall(SYS_read, pipe_fds[0], buf, 700);
	syscall(SYS_read, -1, buf, 700);
	memset(buf, 'S', sizeof(buf));
	syscall(SYS_readlink, "/proc/self/exe", buf, 1);
}

static void vectors(void)
{
	char text[] = "oneSECRET", into[64];
	struct iovec out[3] = {{text, 3}, {NULL, 0}, {"twoSECRET", 3}}, many[9];
	struct iovec in[2] = {{into, 2}, {into + 8, 40}};

	memset(into, 'S', sizeof(into));
	syscall(SYS_writev, pipe_fds[1], out, 3);
	syscall(SYS_readv, pipe_fds[0], in, 2);
	for (int i = 0; i < 9; i++)
		many[i] = (struct iovec){text, 1};
	syscall(SYS_writev, pipe_fds[1], many, 8);
	syscall(SYS_writev, pipe_fds[1], many, 9);
}

static void messages(void)
{
	char into[64];
	struct iovec out = {"messageSECRET", 7}, in = {into, 64};
	struct msghdr msg = {.msg_iov = &out, .msg_iovlen = 1};
	struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = "/absent"};

	memset(into, 'S', sizeof(into));
	strcpy(to.sun_path + 8, "SECRET");
	syscall(SYS_sendto, sockets[0], "sentSECRET", 4, 0, NULL, 0);
	syscall(SYS_recvfrom, sockets[1], into, 64, 0, NULL, NULL);
	syscall(SYS_sendmsg, sockets[0], &msg, 0);
	msg.msg_iov = &in;
	syscall(SYS_recvmsg, sockets[1], &msg, 0);
	syscall(SYS_connect, sockets[0], (struct sockaddr *)&to, 2 + 7);
}

/* The kernel says how long an address is, and a list of groups, also if less of it fits. */
static void addresses(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "xbuffers"};
	char into[64];
	socklen_t size = 2 + 8;
	int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
	int netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), group = 33;

	name.sun_path[0] = 0;
	bind(server, (struct sockaddr *)&name, 2 + 8);
	listen(server, 1);
	name.sun_path[1] = 'B';
	bind(client, (struct sockaddr *)&name, 2 + 8);
	name.sun_path[1] = 'b';
	connect(client, (struct sockaddr *)&name, 2 + 8);
	memset(into, 'S', sizeof(into));
	size = sizeof(into);
	syscall(SYS_accept, server, into, &size);
	memset(into, 'S', sizeof(into));
	size = 6;
	syscall(SYS_getsockname, server, into, &size);
	memset(into, 'S', sizeof(into));
	size = sizeof(into);
	syscall(SYS_getpeername, client, into, &size);
	memset(into, 'S', sizeof(into));
	size = sizeof(into);
	syscall(SYS_getpeername, server, into, &size);
	syscall(SYS_getsockopt, server, SOL_SOCKET, SO_TYPE, into, &size);
	memset(into, 'S', sizeof(into));
	setsockopt(netlink, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group));
	size = 4;
	syscall(SYS_getsockopt, netlink, SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS, into, &size);
}

static void datagrams(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "xdatagram"};
	char into[64], from[64];
	socklen_t size = sizeof(from);
	struct iovec in = {into, 64};
	struct msghdr msg = {.msg_iov = &in, .msg_iovlen = 1};
	int to = socket(AF_UNIX, SOCK_DGRAM, 0), by = socket(AF_UNIX, SOCK_DGRAM, 0);

	name.sun_path[0] = 0;
	bind(to, (struct sockaddr *)&name, 2 + 9);
	connect(by, (struct sockaddr *)&name, 2 + 9);
	name.sun_path[1] = 'D';
	bind(by, (struct sockaddr *)&name, 2 + 9);
	send(by, "datagram", 8, 0);
	send(by, "datagram", 8, 0);
	memset(into, 'S', sizeof(into));
	memset(from, 'S', sizeof(from));
	syscall(SYS_recvfrom, to, into, 4, 0, from, &size);
	memset(into, 'S', sizeof(into));
	syscall(SYS_recvmsg, to, &msg, MSG_TRUNC);
}

static void others(void)
{
	char text[] = "ownSECRET", into[64], set[64];
	struct iovec local = {into, 64}, remote = {text, 3}, from = {text, 3};

	memset(into, 'S', sizeof(into));
	memset(set, 'S', sizeof(set));
	syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0);
	remote.iov_base = into;
	syscall(SYS_process_vm_writev, getpid(), &from, 1, &remote, 1, 0);
	syscall(SYS_sched_getaffinity, 0, sizeof(set), set);
}

int main(void)
{
	if (pipe(pipe_fds) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		return 1;
	writes();
	reads();
	vectors();
	messages();
	addresses();
	datagrams();
	others();
	return 0;
}
