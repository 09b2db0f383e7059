/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * buffers: system calls whose buffers have something secret behind what the call is given. Nothing
 * else in this program makes these calls.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/msg.h>
#include <sys/select.h>
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

/* Arrays whose elements are counted, and structures with bytes before those that are counted. */
static void elements(void)
{
	struct pollfd polled[2] = {{-1, POLLIN, 0}, {0x53535353, 0, 0}};
	struct epoll_event events[2], wanted = {.events = EPOLLOUT, .data.u64 = 0x3837363534333231};
	int epoll = epoll_create1(0);
	unsigned long sets[2] = {1UL << pipe_fds[1], 0x5353535353535353};
	struct timeval now = {0, 0};
	gid_t groups[2] = {7, 0x53535353};

	syscall(SYS_poll, polled, 1, 0);
	syscall(SYS_select, pipe_fds[1] + 1, NULL, sets, NULL, &now);
	epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_fds[1], &wanted);
	memset(events, 'S', sizeof(events));
	syscall(SYS_epoll_wait, epoll, events, 2, 0);
	syscall(SYS_setgroups, 1, groups);
}

static void queues(void)
{
	struct {
		long type;
		char text[24];
	} message = {0x3837363534333231, "queuedSECRET"};
	int queue = msgget(IPC_PRIVATE, 0600);

	syscall(SYS_msgsnd, queue, &message, 6, 0);
	memset(&message, 'S', sizeof(message));
	syscall(SYS_msgrcv, queue, &message, 24, 0, 0);
	msgctl(queue, IPC_RMID, NULL);
}

static void many_messages(void)
{
	char into[2][16];
	struct iovec out[2] = {{"firstSECRET", 5}, {"secondSECRET", 6}};
	struct iovec in[2] = {{into[0], 16}, {into[1], 16}};
	struct {
		struct msghdr msg_hdr;
		unsigned int msg_len;
	} messages[3];

	memset(into, 'S', sizeof(into));
	memset(messages, 0, sizeof(messages));
	for (int i = 0; i < 2; i++)
		messages[i].msg_hdr = (struct msghdr){.msg_iov = out + i, .msg_iovlen = 1};
	messages[2].msg_hdr = (struct msghdr){.msg_iov = in, .msg_iovlen = 2};
	syscall(SYS_sendmmsg, sockets[0], messages, 2, 0);
	for (int i = 0; i < 2; i++)
		messages[i].msg_hdr.msg_iov = in + i;
	syscall(SYS_recvmmsg, sockets[1], messages, 3, MSG_DONTWAIT, NULL);
}

/* The number of a request, or the buffer itself, has the size. */
static void requests(void)
{
	char text[160] = "requestSECRET";
	struct perf_event_attr *attr = (struct perf_event_attr *)text;

	syscall(SYS_ioctl, pipe_fds[0], _IOW('S', 1, char[7]), text);
	syscall(SYS_ioctl, pipe_fds[0], _IOR('S', 1, char[7]), text);
	syscall(SYS_ioctl, pipe_fds[0], _IO('S', 1), text);
	syscall(SYS_ioctl, pipe_fds[0], FS_IOC_SETFLAGS, text + 3);
	syscall(SYS_syslog, 10, text, 160);
	memset(text, 'S', sizeof(text));
	memset(text, 0, 64);
	attr->type = 0x31313131;
	attr->size = 64;
	syscall(SYS_perf_event_open, attr, 0, -1, -1, 0);
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
	elements();
	queues();
	many_messages();
	requests();
	return 0;
}
