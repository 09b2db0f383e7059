/* SPDX-License-Identifier: GPL-2.0-only */
#include "wire/channel.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <linux/vm_sockets.h>
#include "nearest.h"
#include "os/own_file.h"
#include "wire/address.h"

enum { BACKLOG = 32, CID_LOCAL = 1 };

struct channel {
	struct address at;
	char *text; /* of the address */
	int next;   /* the address to connect to that is tried next */
	int listening[ADDRESS_MAX], nr_listening;
	int connecting;
	struct stat bound;  /* the unix socket's file that we made */
	struct error first; /* why the first address failed */
	char peer[CHANNEL_NAME];
};

struct channel *channel_new(const char *address, struct error *err)
{
	struct channel *c = calloc(1, sizeof(*c));

	if (c)
		c->text = strdup(address);
	if (!c || !c->text) {
		free(c);
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	c->connecting = -1;
	if (address_parse(&c->at, c->text, err)) {
		channel_free(c);
		return NULL;
	}
	snprintf(c->peer, sizeof(c->peer), "%s%.110s", address_is_port(&c->at) ? "localhost:" : "",
		 c->at.text);
	return c;
}

void channel_free(struct channel *c)
{
	struct stat st;

	if (!c)
		return;
	for (int i = 0; i < c->nr_listening; i++)
		close(c->listening[i]);
	/* Another process may have replaced the file. */
	if (c->at.kind == CHANNEL_UNIX && c->nr_listening && !lstat(c->at.path, &st) &&
	    st.st_ino == c->bound.st_ino && st.st_dev == c->bound.st_dev)
		unlink(c->at.path);
	if (c->connecting >= 0)
		close(c->connecting);
	free(c->text);
	free(c);
}

enum channel_kind channel_kind(const struct channel *c)
{
	return c->at.kind;
}

const char *channel_address(const struct channel *c)
{
	return c->at.text;
}

bool channel_is_fifo(const struct channel *c)
{
	return c->at.is_fifo;
}

bool channel_is_socket(const struct channel *c)
{
	return c->at.kind <= CHANNEL_VSOCK;
}

static int new_socket(const union socket_address *a)
{
	int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

/* Whether the file is a socket that nobody listens at, which a killed process left behind. */
static bool is_left_behind(const union socket_address *a)
{
	struct stat st;
	bool refused;
	int fd;

	if (lstat(a->un.sun_path, &st) || !S_ISSOCK(st.st_mode))
		return false;
	fd = new_socket(a);
	if (fd < 0)
		return false;
	refused = connect(fd, &a->any, address_size(a)) && errno == ECONNREFUSED;
	close(fd);
	return refused;
}

/* The socket's file is for this user only: events may tell secrets of other users. */
static int bind_unix(struct channel *c, int fd, const union socket_address *a)
{
	if (bind(fd, &a->any, address_size(a))) {
		if (errno != EADDRINUSE || !is_left_behind(a))
			return -errno;
		if (unlink(c->at.path) || bind(fd, &a->any, address_size(a)))
			return -errno;
	}
	return chmod(c->at.path, 0600) || lstat(c->at.path, &c->bound) ? -errno : 0;
}

/* Nobody can connect to a unix socket before listen(). */
static int listen_at(struct channel *c, const union socket_address *a)
{
	int fd = new_socket(a), on = 1, off = 0, ret;

	if (fd < 0)
		return fd;
	if (a->any.sa_family == AF_UNIX) {
		ret = bind_unix(c, fd, a);
	} else {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (a->any.sa_family == AF_INET6)
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY,
				   IN6_IS_ADDR_UNSPECIFIED(&a->in6.sin6_addr) ? &off : &on,
				   sizeof(on));
		ret = bind(fd, &a->any, address_size(a)) ? -errno : 0;
	}
	if (!ret && listen(fd, BACKLOG)) {
		ret = -errno;
		if (c->bound.st_ino)
			unlink(c->at.path);
	}
	if (!ret)
		c->listening[c->nr_listening++] = fd;
	else
		close(fd);
	return ret;
}

static bool is_absent(int code)
{
	return code == -EADDRNOTAVAIL || code == -EAFNOSUPPORT;
}

int channel_listen(struct channel *c, struct error *err)
{
	bool is_any = c->at.kind == CHANNEL_TCP && c->at.text[0] == ':';
	int first = 0;

	for (int i = 0; i < c->at.nr_here; i++) {
		int ret = listen_at(c, &c->at.here[i]);

		if (!ret && is_any)
			break; /* it has both families */
		first = first ? first : ret;
		if (ret && !is_absent(ret))
			break;
	}
	if (c->nr_listening && (!first || is_absent(first) || is_any))
		return c->nr_listening;
	while (c->nr_listening)
		close(c->listening[--c->nr_listening]);
	if (first == -EADDRINUSE && c->at.kind == CHANNEL_UNIX)
		return error_set(err, first, "cannot listen at %s: %s", c->at.text,
				 is_left_behind(&c->at.here[0]) ? "it cannot be removed"
								: "the path is in use");
	return error_set(err, first, "cannot listen at %s: %s", c->at.text, strerror(-first));
}

int channel_listener(const struct channel *c, int i, char name[CHANNEL_NAME])
{
	union socket_address a = {};
	socklen_t size = sizeof(a);

	getsockname(c->listening[i], &a.any, &size);
	if (c->at.kind == CHANNEL_VSOCK && a.vm.svm_cid == VMADDR_CID_ANY)
		snprintf(name, CHANNEL_NAME, "vsock:%u", a.vm.svm_port);
	else
		address_print(&a, name);
	return c->listening[i];
}

bool channel_is_here(const struct channel *c)
{
	if (c->at.kind != CHANNEL_TCP)
		return c->at.kind == CHANNEL_UNIX;
	for (int i = 0; i < c->at.nr_to; i++)
		if (!address_is_loopback(&c->at.to[i]))
			return false;
	return true;
}

bool channel_is_public(const struct channel *c)
{
	if (c->at.kind == CHANNEL_VSOCK)
		return true;
	for (int i = 0; c->at.kind == CHANNEL_TCP && i < c->at.nr_here; i++)
		if (!address_is_loopback(&c->at.here[i]))
			return true;
	return false;
}

/* Small answers, such as pongs, must not wait for more bytes. */
static void set_no_delay(const struct channel *c, int fd)
{
	int on = 1;

	if (c->at.kind == CHANNEL_TCP)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

int channel_accept(struct channel *c, int i, char name[CHANNEL_NAME])
{
	union socket_address a = {};
	socklen_t size = sizeof(a);
	struct ucred cred;
	int fd = accept4(c->listening[i], &a.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return -errno;
	set_no_delay(c, fd);
	size = sizeof(cred);
	if (c->at.kind != CHANNEL_UNIX)
		address_print(&a, name);
	else if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size))
		snprintf(name, CHANNEL_NAME, "%.90s pid %d", c->at.text, cred.pid);
	else
		snprintf(name, CHANNEL_NAME, "%.120s", c->at.text);
	return fd;
}

static int connected(struct channel *c, int fd)
{
	c->next = 0;
	c->first.text[0] = 0;
	set_no_delay(c, fd);
	return fd;
}

/* Notes why the address that was tried last failed. The first reason is that of the address that
 * the system prefers, so it is the one that is told. */
static void note_failure(struct channel *c, int code)
{
	if (!c->first.text[0])
		error_set(&c->first, 0, "%s: %s", c->peer, strerror(code));
}

static int connect_next(struct channel *c, struct error *err)
{
	if (!c->at.nr_to)
		return error_set(err, -EINVAL, "%s: %s", c->at.text,
				 c->at.kind == CHANNEL_VSOCK ? "the CID is missing: vsock:CID:PORT"
							     : "the host is missing: HOST:PORT");
	if (c->connecting >= 0) {
		int fd = c->connecting, code = 0;
		socklen_t size = sizeof(code);

		c->connecting = -1;
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size);
		if (!code)
			return connected(c, fd);
		note_failure(c, code);
		close(fd);
	}
	while (c->next < c->at.nr_to) {
		const union socket_address *a = &c->at.to[c->next++];
		int fd = new_socket(a);

		if (fd >= 0 && !connect(fd, &a->any, address_size(a)))
			return connected(c, fd);
		if (fd >= 0 && errno == EINPROGRESS) {
			c->connecting = fd;
			return -EINPROGRESS;
		}
		note_failure(c, fd < 0 ? -fd : errno);
		if (fd >= 0)
			close(fd);
	}
	c->next = 0;
	error_set(err, 0, "%s", c->first.text);
	c->first.text[0] = 0;
	return -ECONNREFUSED;
}

/* "unxi:/tmp/x" is a file that does not exist. */
static int cannot_open(struct channel *c, int code, bool write, struct error *err)
{
	const char *colon = strchr(c->at.path, ':');
	struct nearest n;

	if (code == -ENOENT && colon) {
		char word[16];

		snprintf(word, sizeof(word), "%.*s", (int)(colon - c->at.path), c->at.path);
		nearest_start(&n, word);
		nearest_try(&n, "unix", 4);
		nearest_try(&n, "vsock", 5);
		if (n.name[0])
			return error_set(err, code, "%s: no such file; did you mean '%s%s'?",
					 c->at.path, n.name, colon);
	}
	if (code == -ENOENT && !write)
		return error_set(err, code, "%s: no such file: an address is " ADDRESS_FORMS,
				 c->at.path);
	if (code == -ELOOP && write)
		return error_set(err, code, "%s: it is a symbolic link of another user",
				 c->at.path);
	return error_set(err, code, "%s: %s", c->at.path, strerror(-code));
}

/* Pipes are opened a second time, because O_NONBLOCK is shared with all processes that have them
 * open. */
static int open_stdio(bool write, struct error *err)
{
	struct stat st;
	int fd = -1;

	if (!write) {
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
		return fd < 0 ? error_set(err, -errno, "standard input: %s", strerror(errno)) : fd;
	}
	if (isatty(STDOUT_FILENO))
		return error_set(err, -EINVAL, "-: standard output is a terminal");
	if (!fstat(STDOUT_FILENO, &st) && S_ISFIFO(st.st_mode))
		fd = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? error_set(err, -errno, "standard output: %s", strerror(errno)) : fd;
}

/* A file that existed may have been readable by others. */
static int make_private(int fd)
{
	struct stat st;

	return fstat(fd, &st) || (st.st_mode & 077 && fchmod(fd, 0600)) ? -1 : 0;
}

int channel_open(struct channel *c, bool write, struct error *err)
{
	int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY, fd;

	if (channel_is_socket(c))
		return connect_next(c, err);
	if (c->at.kind == CHANNEL_STDIO)
		return open_stdio(write, err);
	if (c->at.kind == CHANNEL_FILE)
		flags |= write ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY;
	else if (c->at.is_fifo) /* opened for both, it would never hang up */
		flags |= write ? O_WRONLY : O_RDONLY;
	else
		flags |= O_RDWR;
	fd = write ? own_file_open(c->at.path, flags, 0600) : open(c->at.path, flags);
	if (write && fd < 0)
		errno = -fd;
	if (fd >= 0 && c->at.kind == CHANNEL_FILE && write && make_private(fd)) {
		int code = -errno;

		close(fd);
		return error_set(err, code, "%s: other users can read it, and it cannot be changed",
				 c->at.path);
	}
	if (fd < 0 && c->at.kind == CHANNEL_DEVICE && (errno == EACCES || errno == EPERM))
		fd = open(c->at.path, (flags & ~O_RDWR) | (write ? O_WRONLY : O_RDONLY));
	return fd < 0 ? cannot_open(c, -errno, write, err) : fd;
}

int channel_connecting(const struct channel *c)
{
	return c->connecting;
}

const char *channel_peer(const struct channel *c)
{
	return c->peer;
}

bool channel_is_near(int fd)
{
	union socket_address here = {}, peer = {};
	socklen_t here_size = sizeof(here), peer_size = sizeof(peer);

	if (getsockname(fd, &here.any, &here_size) || getpeername(fd, &peer.any, &peer_size))
		return false;
	switch (peer.any.sa_family) {
	case AF_UNIX:
		return true;
	case AF_VSOCK:
		return peer.vm.svm_cid == CID_LOCAL;
	default:
		return address_is_loopback(&peer) || address_same_host(&here, &peer);
	}
}

bool channel_hangs(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};

	return poll(&poll_fd, 1, 0) == 1 && poll_fd.revents & (POLLHUP | POLLERR);
}
