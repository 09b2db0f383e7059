/* SPDX-License-Identifier: GPL-2.0-only */
#include "wire/channel.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <linux/vm_sockets.h>
#include "nearest.h"

enum { ADDRESSES = 8, BACKLOG = 32, CID_LOCAL = 1 };

#define FORMS "HOST:PORT, PORT, unix:PATH, vsock:CID:PORT or a file"

union socket_address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
	struct sockaddr_vm vm;
};

struct channel {
	enum channel_kind kind;
	char *address;
	bool is_fifo;
	const char *path;		      /* of files, devices and unix sockets */
	union socket_address to[ADDRESSES];   /* to connect to; of TCP and vsock */
	union socket_address here[ADDRESSES]; /* to listen at */
	int nr_to, nr_here, next;	      /* next: the address in `to` that is tried next */
	int listening[ADDRESSES], nr_listening;
	int connecting;
	struct stat bound;  /* the unix socket's file that we made */
	struct error first; /* why the first address failed */
	char peer[CHANNEL_NAME];
};

static socklen_t size_of(const union socket_address *a)
{
	switch (a->any.sa_family) {
	case AF_INET:
		return sizeof(a->in);
	case AF_INET6:
		return sizeof(a->in6);
	case AF_VSOCK:
		return sizeof(a->vm);
	default:
		return sizeof(a->un);
	}
}

static void print_address(const union socket_address *a, char name[CHANNEL_NAME])
{
	char text[INET6_ADDRSTRLEN];

	switch (a->any.sa_family) {
	case AF_INET:
		inet_ntop(AF_INET, &a->in.sin_addr, text, sizeof(text));
		snprintf(name, CHANNEL_NAME, "%s:%u", text, ntohs(a->in.sin_port));
		break;
	case AF_INET6:
		if (IN6_IS_ADDR_V4MAPPED(&a->in6.sin6_addr)) {
			inet_ntop(AF_INET, &a->in6.sin6_addr.s6_addr[12], text, sizeof(text));
			snprintf(name, CHANNEL_NAME, "%s:%u", text, ntohs(a->in6.sin6_port));
			break;
		}
		inet_ntop(AF_INET6, &a->in6.sin6_addr, text, sizeof(text));
		snprintf(name, CHANNEL_NAME, "[%s]:%u", text, ntohs(a->in6.sin6_port));
		break;
	case AF_VSOCK:
		snprintf(name, CHANNEL_NAME, "vsock:%u:%u", a->vm.svm_cid, a->vm.svm_port);
		break;
	default:
		snprintf(name, CHANNEL_NAME, "unix:%s", a->un.sun_path);
	}
}

/* Parses a decimal number that is the whole text. */
static bool parse_number(const char *text, uint64_t max, uint32_t *out)
{
	char *end;
	unsigned long long n;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	n = strtoull(text, &end, 10);
	*out = n;
	return !*end && !errno && n <= max;
}

static int look_up(struct channel *c, const char *host, const char *port, bool listen,
		   struct error *err)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				       .ai_flags = AI_NUMERICSERV | (listen ? AI_PASSIVE : 0)};
	union socket_address *out = listen ? c->here : c->to;
	int *n = listen ? &c->nr_here : &c->nr_to;
	struct addrinfo *found = NULL;
	int ret = getaddrinfo(host, port, &hints, &found);

	if (ret)
		return error_set(err, -EINVAL, "%s: host '%s': %s", c->address, host ? host : "*",
				 ret == EAI_SYSTEM ? strerror(errno) : gai_strerror(ret));
	for (struct addrinfo *a = found; a && *n < ADDRESSES; a = a->ai_next)
		if (a->ai_addrlen <= sizeof(*out))
			memcpy(&out[(*n)++], a->ai_addr, a->ai_addrlen);
	freeaddrinfo(found);
	return *n ? 0 : error_set(err, -EINVAL, "%s: host '%s' has no address", c->address, host);
}

/* ":PORT": one socket for both families where the kernel has IPv6. */
static void any_address(struct channel *c, uint32_t port)
{
	c->here[0].in6 = (struct sockaddr_in6){
		.sin6_family = AF_INET6, .sin6_addr = in6addr_any, .sin6_port = htons(port)};
	c->here[1].in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
	c->nr_here = 2;
}

static int parse_tcp(struct channel *c, const char *colon, struct error *err)
{
	const char *port = colon ? colon + 1 : c->address;
	char host[256];
	size_t size = colon ? colon - c->address : 0;
	uint32_t n;
	int ret;

	c->kind = CHANNEL_TCP;
	if (!parse_number(port, UINT16_MAX, &n))
		return error_set(err, -EINVAL, "%s: '%s' is not a port (0 to 65535)", c->address,
				 port);
	if (!colon) {
		ret = look_up(c, "127.0.0.1", port, true, err);
		ret = ret ? ret : look_up(c, "::1", port, false, err);
		return ret ? ret : look_up(c, "127.0.0.1", port, false, err);
	}
	if (!size) {
		any_address(c, n);
		return 0;
	}
	if (size >= sizeof(host))
		return error_set(err, -EINVAL, "%s: the host name is too long", c->address);
	memcpy(host, c->address, size);
	host[size] = 0;
	if (host[0] == '[' && host[size - 1] == ']') {
		host[size - 1] = 0;
		memmove(host, host + 1, size - 1);
	} else if (strchr(host, ':')) {
		return error_set(err, -EINVAL, "%s: an IPv6 address needs brackets: [%s]:%s",
				 c->address, host, port);
	}
	ret = look_up(c, host, port, false, err);
	return ret ? ret : look_up(c, host, port, true, err);
}

static int parse_unix(struct channel *c, struct error *err)
{
	size_t size = strlen(c->path);

	c->kind = CHANNEL_UNIX;
	if (!size)
		return error_set(err, -EINVAL, "%s: the path is missing: unix:PATH", c->address);
	if (size >= sizeof(c->to[0].un.sun_path))
		return error_set(err, -EINVAL,
				 "%s: the path of a unix socket has at most %zu bytes", c->address,
				 sizeof(c->to[0].un.sun_path) - 1);
	c->to[0].un.sun_family = AF_UNIX;
	memcpy(c->to[0].un.sun_path, c->path, size + 1);
	c->here[0] = c->to[0];
	c->nr_to = c->nr_here = 1;
	return 0;
}

static int parse_vsock(struct channel *c, const char *text, struct error *err)
{
	const char *colon = strchr(text, ':');
	struct sockaddr_vm vm = {.svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_ANY};
	char cid[24];

	c->kind = CHANNEL_VSOCK;
	if (colon) {
		snprintf(cid, sizeof(cid), "%.*s", (int)(colon - text), text);
		if (!parse_number(cid, UINT32_MAX, &vm.svm_cid))
			return error_set(err, -EINVAL, "%s: '%s' is not a CID: vsock:CID:PORT",
					 c->address, cid);
		text = colon + 1;
	}
	if (!parse_number(text, UINT32_MAX, &vm.svm_port))
		return error_set(err, -EINVAL, "%s: '%s' is not a port: vsock:CID:PORT", c->address,
				 text);
	c->here[0].vm = vm;
	c->nr_here = 1;
	c->to[0].vm = vm;
	c->nr_to = !!colon;
	return 0;
}

/* Whether a text looks like an IPv4 address, whose port was forgotten. */
static bool is_bare_host(const char *text)
{
	struct in_addr addr;

	return inet_pton(AF_INET, text, &addr) == 1 || !strcmp(text, "localhost");
}

static int parse_path(struct channel *c, struct error *err)
{
	const char *colon = strrchr(c->address, ':');
	struct stat st;

	c->kind = CHANNEL_FILE;
	c->path = c->address;
	if (stat(c->path, &st)) {
		if (is_bare_host(c->address))
			return error_set(err, -EINVAL, "%s: the port is missing: %s:PORT",
					 c->address, c->address);
		if (colon && !strchr(c->address, '/'))
			return error_set(err, -EINVAL,
					 "%s: '%s' is not a port (if it is a file: ./%s)",
					 c->address, colon + 1, c->address);
		return 0;
	}
	c->is_fifo = S_ISFIFO(st.st_mode);
	if (S_ISCHR(st.st_mode) || c->is_fifo)
		c->kind = CHANNEL_DEVICE;
	else if (S_ISSOCK(st.st_mode))
		return error_set(err, -EINVAL, "%s is a socket: write unix:%s", c->path, c->path);
	else if (!S_ISREG(st.st_mode))
		return error_set(err, -EINVAL, "%s is a %s: an address is " FORMS, c->path,
				 S_ISDIR(st.st_mode) ? "directory" : "block device");
	return 0;
}

static int parse(struct channel *c, struct error *err)
{
	const char *text = c->address, *colon = strrchr(text, ':');

	if (!*text)
		return error_set(err, -EINVAL, "an empty address: an address is " FORMS);
	if (!strcmp(text, "-")) {
		c->kind = CHANNEL_STDIO;
		return 0;
	}
	if (!strncmp(text, "unix:", 5)) {
		c->path = text + 5;
		return parse_unix(c, err);
	}
	if (!strncmp(text, "vsock:", 6))
		return parse_vsock(c, text + 6, err);
	if (strspn(text, "0123456789") == strlen(text))
		return parse_tcp(c, NULL, err);
	if (colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1) &&
	    !strchr(text, '/'))
		return parse_tcp(c, colon, err);
	return parse_path(c, err);
}

struct channel *channel_new(const char *address, struct error *err)
{
	struct channel *c = calloc(1, sizeof(*c));

	if (c)
		c->address = strdup(address);
	if (!c || !c->address) {
		free(c);
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	c->connecting = -1;
	if (!parse(c, err))
		return c;
	channel_free(c);
	return NULL;
}

void channel_free(struct channel *c)
{
	struct stat st;

	if (!c)
		return;
	for (int i = 0; i < c->nr_listening; i++)
		close(c->listening[i]);
	/* Another process may have replaced the file. */
	if (c->kind == CHANNEL_UNIX && c->nr_listening && !lstat(c->path, &st) &&
	    st.st_ino == c->bound.st_ino && st.st_dev == c->bound.st_dev)
		unlink(c->path);
	if (c->connecting >= 0)
		close(c->connecting);
	free(c->address);
	free(c);
}

enum channel_kind channel_kind(const struct channel *c)
{
	return c->kind;
}

const char *channel_address(const struct channel *c)
{
	return c->address;
}

bool channel_is_fifo(const struct channel *c)
{
	return c->is_fifo;
}

bool channel_is_socket(const struct channel *c)
{
	return c->kind <= CHANNEL_VSOCK;
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
	refused = connect(fd, &a->any, size_of(a)) && errno == ECONNREFUSED;
	close(fd);
	return refused;
}

/* The socket's file is for this user only: events may tell secrets of other users. */
static int bind_unix(struct channel *c, int fd, const union socket_address *a)
{
	if (bind(fd, &a->any, size_of(a))) {
		if (errno != EADDRINUSE || !is_left_behind(a))
			return -errno;
		if (unlink(c->path) || bind(fd, &a->any, size_of(a)))
			return -errno;
	}
	return chmod(c->path, 0600) || lstat(c->path, &c->bound) ? -errno : 0;
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
		ret = bind(fd, &a->any, size_of(a)) ? -errno : 0;
	}
	if (!ret && listen(fd, BACKLOG)) {
		ret = -errno;
		if (c->bound.st_ino)
			unlink(c->path);
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
	bool is_any = c->kind == CHANNEL_TCP && c->address[0] == ':';
	int first = 0;

	for (int i = 0; i < c->nr_here; i++) {
		int ret = listen_at(c, &c->here[i]);

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
	if (first == -EADDRINUSE && c->kind == CHANNEL_UNIX)
		return error_set(err, first, "cannot listen at %s: %s", c->address,
				 is_left_behind(&c->here[0]) ? "it cannot be removed"
							     : "the path is in use");
	return error_set(err, first, "cannot listen at %s: %s", c->address, strerror(-first));
}

int channel_listener(const struct channel *c, int i, char name[CHANNEL_NAME])
{
	union socket_address a = {};
	socklen_t size = sizeof(a);

	getsockname(c->listening[i], &a.any, &size);
	if (c->kind == CHANNEL_VSOCK && a.vm.svm_cid == VMADDR_CID_ANY)
		snprintf(name, CHANNEL_NAME, "vsock:%u", a.vm.svm_port);
	else
		print_address(&a, name);
	return c->listening[i];
}

static bool is_loopback(const union socket_address *a)
{
	const uint8_t *in = a->any.sa_family == AF_INET ? (const uint8_t *)&a->in.sin_addr
			    : IN6_IS_ADDR_V4MAPPED(&a->in6.sin6_addr)
				    ? &a->in6.sin6_addr.s6_addr[12]
				    : NULL;

	return in ? in[0] == 127 : IN6_IS_ADDR_LOOPBACK(&a->in6.sin6_addr);
}

bool channel_is_public(const struct channel *c)
{
	for (int i = 0; c->kind == CHANNEL_TCP && i < c->nr_here; i++)
		if (!is_loopback(&c->here[i]))
			return true;
	return false;
}

/* Small answers, such as pongs, must not wait for more bytes. */
static void set_no_delay(const struct channel *c, int fd)
{
	int on = 1;

	if (c->kind == CHANNEL_TCP)
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
	if (c->kind != CHANNEL_UNIX)
		print_address(&a, name);
	else if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size))
		snprintf(name, CHANNEL_NAME, "%.90s pid %d", c->address, cred.pid);
	else
		snprintf(name, CHANNEL_NAME, "%.120s", c->address);
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
	if (!c->nr_to)
		return error_set(err, -EINVAL, "%s: %s", c->address,
				 c->kind == CHANNEL_VSOCK ? "the CID is missing: vsock:CID:PORT"
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
	while (c->next < c->nr_to) {
		const union socket_address *a = &c->to[c->next++];
		int fd = new_socket(a);

		print_address(a, c->peer);
		if (fd >= 0 && !connect(fd, &a->any, size_of(a)))
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
	const char *colon = strchr(c->path, ':');
	struct nearest n;

	if (code == -ENOENT && colon) {
		char word[16];

		snprintf(word, sizeof(word), "%.*s", (int)(colon - c->path), c->path);
		nearest_start(&n, word);
		nearest_try(&n, "unix", 4);
		nearest_try(&n, "vsock", 5);
		if (n.name[0])
			return error_set(err, code, "%s: no such file; did you mean '%s%s'?",
					 c->path, n.name, colon);
	}
	if (code == -ENOENT && !write)
		return error_set(err, code, "%s: no such file: an address is " FORMS, c->path);
	return error_set(err, code, "%s: %s", c->path, strerror(-code));
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
	snprintf(c->peer, sizeof(c->peer), "%.120s", c->address);
	if (c->kind == CHANNEL_STDIO)
		return open_stdio(write, err);
	if (c->kind == CHANNEL_FILE)
		flags |= write ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY;
	else if (c->is_fifo) /* opened for both, it would never hang up */
		flags |= write ? O_WRONLY : O_RDONLY;
	else
		flags |= O_RDWR;
	fd = open(c->path, flags, 0600);
	if (fd >= 0 && c->kind == CHANNEL_FILE && write && make_private(fd)) {
		int code = -errno;

		close(fd);
		return error_set(err, code, "%s: other users can read it, and it cannot be changed",
				 c->path);
	}
	if (fd < 0 && c->kind == CHANNEL_DEVICE && (errno == EACCES || errno == EPERM))
		fd = open(c->path, (flags & ~O_RDWR) | (write ? O_WRONLY : O_RDONLY));
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

static bool same_host(const union socket_address *a, const union socket_address *b)
{
	if (a->any.sa_family != b->any.sa_family)
		return false;
	return a->any.sa_family == AF_INET
		       ? a->in.sin_addr.s_addr == b->in.sin_addr.s_addr
		       : !memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, sizeof(a->in6.sin6_addr));
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
		return is_loopback(&peer) || same_host(&here, &peer);
	}
}

bool channel_hangs(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};

	return poll(&poll_fd, 1, 0) == 1 && poll_fd.revents & (POLLHUP | POLLERR);
}
