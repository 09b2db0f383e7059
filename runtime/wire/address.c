/* SPDX-License-Identifier: GPL-2.0-only */
#include "wire/address.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

socklen_t address_size(const union socket_address *a)
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

void address_print(const union socket_address *a, char name[CHANNEL_NAME])
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

bool address_is_loopback(const union socket_address *a)
{
	const uint8_t *in = a->any.sa_family == AF_INET ? (const uint8_t *)&a->in.sin_addr
			    : IN6_IS_ADDR_V4MAPPED(&a->in6.sin6_addr)
				    ? &a->in6.sin6_addr.s6_addr[12]
				    : NULL;

	return in ? in[0] == 127 : IN6_IS_ADDR_LOOPBACK(&a->in6.sin6_addr);
}

bool address_same_host(const union socket_address *a, const union socket_address *b)
{
	if (a->any.sa_family != b->any.sa_family)
		return false;
	return a->any.sa_family == AF_INET
		       ? a->in.sin_addr.s_addr == b->in.sin_addr.s_addr
		       : !memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, sizeof(a->in6.sin6_addr));
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

static int look_up(struct address *to, const char *host, const char *port, bool listen,
		   struct error *err)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				       .ai_flags = AI_NUMERICSERV | (listen ? AI_PASSIVE : 0)};
	union socket_address *out = listen ? to->here : to->to;
	int *n = listen ? &to->nr_here : &to->nr_to;
	struct addrinfo *found = NULL;
	int ret = getaddrinfo(host, port, &hints, &found);

	if (ret)
		return error_set(err, -EINVAL, "%s: host '%s': %s", to->text, host ? host : "*",
				 ret == EAI_SYSTEM ? strerror(errno) : gai_strerror(ret));
	for (struct addrinfo *a = found; a && *n < ADDRESS_MAX; a = a->ai_next)
		if (a->ai_addrlen <= sizeof(*out))
			memcpy(&out[(*n)++], a->ai_addr, a->ai_addrlen);
	freeaddrinfo(found);
	return *n ? 0 : error_set(err, -EINVAL, "%s: host '%s' has no address", to->text, host);
}

/* ":PORT": one socket for both families where the kernel has IPv6. */
static void any_address(struct address *to, uint32_t port)
{
	to->here[0].in6 = (struct sockaddr_in6){
		.sin6_family = AF_INET6, .sin6_addr = in6addr_any, .sin6_port = htons(port)};
	to->here[1].in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
	to->nr_here = 2;
}

static int parse_tcp(struct address *to, const char *colon, struct error *err)
{
	const char *port = colon ? colon + 1 : to->text;
	char host[256];
	size_t size = colon ? colon - to->text : 0;
	uint32_t n;
	int ret;

	to->kind = CHANNEL_TCP;
	if (!parse_number(port, UINT16_MAX, &n))
		return error_set(err, -EINVAL, "%s: '%s' is not a port (0 to 65535)", to->text,
				 port);
	if (!colon) {
		ret = look_up(to, "127.0.0.1", port, true, err);
		ret = ret ? ret : look_up(to, "::1", port, false, err);
		return ret ? ret : look_up(to, "127.0.0.1", port, false, err);
	}
	if (!size) {
		any_address(to, n);
		return 0;
	}
	if (size >= sizeof(host))
		return error_set(err, -EINVAL, "%s: the host name is too long", to->text);
	memcpy(host, to->text, size);
	host[size] = 0;
	if (host[0] == '[' && host[size - 1] == ']') {
		host[size - 1] = 0;
		memmove(host, host + 1, size - 1);
	} else if (strchr(host, ':')) {
		return error_set(err, -EINVAL, "%s: an IPv6 address needs brackets: [%s]:%s",
				 to->text, host, port);
	}
	ret = look_up(to, host, port, false, err);
	return ret ? ret : look_up(to, host, port, true, err);
}

static int parse_unix(struct address *to, struct error *err)
{
	size_t size = strlen(to->path);

	to->kind = CHANNEL_UNIX;
	if (!size)
		return error_set(err, -EINVAL, "%s: the path is missing: unix:PATH", to->text);
	if (size >= sizeof(to->to[0].un.sun_path))
		return error_set(err, -EINVAL,
				 "%s: the path of a unix socket has at most %zu bytes", to->text,
				 sizeof(to->to[0].un.sun_path) - 1);
	to->to[0].un.sun_family = AF_UNIX;
	memcpy(to->to[0].un.sun_path, to->path, size + 1);
	to->here[0] = to->to[0];
	to->nr_to = to->nr_here = 1;
	return 0;
}

static int parse_vsock(struct address *to, const char *text, struct error *err)
{
	const char *colon = strchr(text, ':');
	struct sockaddr_vm vm = {.svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_ANY};
	char cid[24];

	to->kind = CHANNEL_VSOCK;
	if (colon) {
		snprintf(cid, sizeof(cid), "%.*s", (int)(colon - text), text);
		if (!parse_number(cid, UINT32_MAX, &vm.svm_cid))
			return error_set(err, -EINVAL, "%s: '%s' is not a CID: vsock:CID:PORT",
					 to->text, cid);
		text = colon + 1;
	}
	if (!parse_number(text, UINT32_MAX, &vm.svm_port))
		return error_set(err, -EINVAL, "%s: '%s' is not a port: vsock:CID:PORT", to->text,
				 text);
	to->here[0].vm = vm;
	to->nr_here = 1;
	to->to[0].vm = vm;
	to->nr_to = !!colon;
	return 0;
}

/* Whether a text without a slash is meant as a file: "web1" is more likely a host. */
static bool is_file_name(const char *text)
{
	const char *dot = strrchr(text, '.');

	return dot && (!strcmp(dot, ".data") || !strcmp(dot, ".perf"));
}

#define IF_FILE " (if it is a file: ./%s, in an event with quotes: \"./%s\")"

static int parse_path(struct address *to, struct error *err)
{
	const char *colon = strrchr(to->text, ':');
	struct stat st;

	to->kind = CHANNEL_FILE;
	to->path = to->text;
	if (stat(to->path, &st)) {
		if (!colon && !strchr(to->text, '/') && !is_file_name(to->text))
			return error_set(err, -EINVAL, "%s: the port is missing: %s:PORT" IF_FILE,
					 to->text, to->text, to->text, to->text);
		if (colon && !strchr(to->text, '/'))
			return error_set(err, -EINVAL, "%s: '%s' is not a port" IF_FILE, to->text,
					 colon + 1, to->text, to->text);
		return 0;
	}
	to->is_fifo = S_ISFIFO(st.st_mode);
	if (S_ISCHR(st.st_mode) || to->is_fifo)
		to->kind = CHANNEL_DEVICE;
	else if (S_ISSOCK(st.st_mode))
		return error_set(err, -EINVAL, "%s is a socket: write unix:%s", to->path, to->path);
	else if (!S_ISREG(st.st_mode))
		return error_set(err, -EINVAL, "%s is a %s: an address is " ADDRESS_FORMS, to->path,
				 S_ISDIR(st.st_mode) ? "directory" : "block device");
	return 0;
}

bool address_is_port(const struct address *a)
{
	return a->kind == CHANNEL_TCP && !strchr(a->text, ':');
}

int address_parse(struct address *to, const char *text, struct error *err)
{
	const char *colon = strrchr(text, ':');

	to->text = text;

	if (!*text)
		return error_set(err, -EINVAL, "an empty address: an address is " ADDRESS_FORMS);
	if (!strcmp(text, "-")) {
		to->kind = CHANNEL_STDIO;
		return 0;
	}
	if (!strncmp(text, "unix:", 5)) {
		to->path = text + 5;
		return parse_unix(to, err);
	}
	if (!strncmp(text, "vsock:", 6))
		return parse_vsock(to, text + 6, err);
	if (strspn(text, "0123456789") == strlen(text))
		return parse_tcp(to, NULL, err);
	if (colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1) &&
	    !strchr(text, '/'))
		return parse_tcp(to, colon, err);
	return parse_path(to, err);
}
