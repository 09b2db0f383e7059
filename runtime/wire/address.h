/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Address: what the user writes for a channel, see wire/channel.h, taken apart, with the socket
 * addresses that its host name stands for.
 */
#pragma once
#include <stdbool.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <linux/vm_sockets.h>
#include "error.h"
#include "wire/channel.h"

enum { ADDRESS_MAX = 8 /* socket addresses of a host */ };

#define ADDRESS_FORMS "HOST:PORT, PORT, unix:PATH, vsock:CID:PORT or a file"

union socket_address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
	struct sockaddr_vm vm;
};

struct address {
	enum channel_kind kind;
	const char *text;
	bool is_fifo;
	const char *path;			/* of files, devices and unix sockets */
	union socket_address to[ADDRESS_MAX];	/* to connect to; of sockets */
	union socket_address here[ADDRESS_MAX]; /* to listen at */
	int nr_to, nr_here;
};

/* Parses a text, which must live as long as the address. Looks up the host's name. Returns 0, or
 * -EINVAL with a message. */
int address_parse(struct address *to, const char *text, struct error *err);

/* Whether it is a port of this machine without a host. */
bool address_is_port(const struct address *a);
void address_print(const union socket_address *a, char name[CHANNEL_NAME]);
socklen_t address_size(const union socket_address *a);
bool address_is_loopback(const union socket_address *a);
bool address_same_host(const union socket_address *a, const union socket_address *b);
