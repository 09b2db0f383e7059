/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * buffers: system calls whose buffers have something secret behind what the call is given. Nothing
 * else in this program makes these calls.
 */
#include <fcntl.h>
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

int main(void)
{
	if (pipe(pipe_fds) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		return 1;
	writes();
	reads();
	vectors();
	messages();
	return 0;
}
