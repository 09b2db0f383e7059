/* SPDX-License-Identifier: GPL-2.0-only */
/* runtime/wire/channel.c: addresses and their messages; who listens, connects and is refused. */
#include "wire/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct error err;
static char dir[] = "/tmp/channel_test.XXXXXX";

static struct channel *open_channel(const char *address)
{
	struct channel *c = channel_new(address, &err);

	if (!c)
		fail_msg("%s", err.text);
	return c;
}

static void kinds(void **state)
{
	static const struct {
		const char *address;
		enum channel_kind kind;
	} cases[] = {
		{"9900", CHANNEL_TCP},
		{"127.0.0.1:9900", CHANNEL_TCP},
		{"localhost:9900", CHANNEL_TCP},
		{"[::1]:9900", CHANNEL_TCP},
		{":9900", CHANNEL_TCP},
		{"unix:/tmp/x", CHANNEL_UNIX},
		{"unix:x:1", CHANNEL_UNIX},
		{"vsock:9900", CHANNEL_VSOCK},
		{"vsock:2:9900", CHANNEL_VSOCK},
		{"/dev/null", CHANNEL_DEVICE},
		{"/tmp/no/such:9900", CHANNEL_FILE},
		{"./localhost:x", CHANNEL_FILE},
		{"events.data", CHANNEL_FILE},
		{"-", CHANNEL_STDIO},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct channel *c = open_channel(cases[i].address);

		assert_int_equal(channel_kind(c), cases[i].kind);
		assert_string_equal(channel_address(c), cases[i].address);
		assert_int_equal(channel_is_socket(c), cases[i].kind <= CHANNEL_VSOCK);
		channel_free(c);
	}
}

static void bad_addresses(void **state)
{
	static const struct {
		const char *address, *message;
	} cases[] = {
		{"", "an empty address"},
		{"65536", "'65536' is not a port"},
		{"localhost:99999", "'99999' is not a port"},
		{"localhost:", "'' is not a port"},
		{"localhost:http", "'http' is not a port (if it is a file: ./localhost:http, in an "
				   "event with quotes: \"./localhost:http\")"},
		{"localhost", "the port is missing: localhost:PORT"},
		{"10.1.2.3", "the port is missing: 10.1.2.3:PORT"},
		{"web1", "the port is missing: web1:PORT (if it is a file: ./web1, in an event "
			 "with quotes: \"./web1\")"},
		{"web1.example.com", "the port is missing: web1.example.com:PORT"},
		{"::1:9900", "needs brackets: [::1]:9900"},
		{"[nonsense]:1", "host 'nonsense'"},
		{"unix:", "the path is missing"},
		{"vsock:x:1", "'x' is not a CID"},
		{"vsock:", "'' is not a port"},
		{"vsock:1:99999999999", "'99999999999' is not a port"},
		{"/tmp", "/tmp is a directory"},
	};
	char longer[200];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_null(channel_new(cases[i].address, &err));
		if (!strstr(err.text, cases[i].message))
			fail_msg("%s: %s", cases[i].address, err.text);
	}
	memset(longer, 'x', sizeof(longer));
	memcpy(longer, "unix:", 5);
	longer[sizeof(longer) - 1] = 0;
	assert_null(channel_new(longer, &err));
	assert_non_null(strstr(err.text, "at most 107 bytes"));
}

static void missing_files(void **state)
{
	struct channel *c = open_channel("unxi:/no/such");

	(void)state;
	assert_int_equal(channel_open(c, false, &err), -ENOENT);
	assert_non_null(strstr(err.text, "did you mean 'unix:/no/such'?"));
	channel_free(c);
	c = open_channel("./no-such-file");
	assert_int_equal(channel_open(c, false, &err), -ENOENT);
	assert_non_null(strstr(err.text, "HOST:PORT, PORT, unix:PATH, vsock:CID:PORT"));
	channel_free(c);
	c = open_channel(":9900");
	assert_int_equal(channel_open(c, false, &err), -EINVAL);
	assert_non_null(strstr(err.text, "the host is missing"));
	channel_free(c);
}

static void is_public(void **state)
{
	static const struct {
		const char *address;
		bool is_public;
	} cases[] = {{"9900", false},		{"127.1.2.3:9900", false}, {"[::1]:9900", false},
		     {"localhost:9900", false}, {"unix:x", false},	   {"vsock:1", true},
		     {":9900", true},		{"0.0.0.0:9900", true},	   {"8.8.8.8:1", true}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct channel *c = open_channel(cases[i].address);

		assert_int_equal(channel_is_public(c), cases[i].is_public);
		channel_free(c);
	}
}

/* Connects without waiting, as its users do. */
static int connect_to(const char *address)
{
	struct channel *c = open_channel(address);
	int fd;

	while ((fd = channel_open(c, false, &err)) == -EINPROGRESS) {
		struct pollfd poll_fd = {.fd = channel_connecting(c), .events = POLLOUT};

		assert_int_equal(poll(&poll_fd, 1, 5000), 1);
	}
	channel_free(c);
	return fd;
}

/* Connects to a listener and sends a byte. */
static void talk(struct channel *listener, const char *address)
{
	char name[CHANNEL_NAME], byte = 0;
	int fd = connect_to(address), peer;

	if (fd < 0)
		fail_msg("%s", err.text);
	peer = channel_accept(listener, 0, name);
	assert_true(peer >= 0);
	assert_true(channel_is_near(peer));
	assert_int_equal(read(peer, &byte, 1), -1); /* it does not wait */
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(write(fd, "x", 1), 1);
	usleep(1000);
	assert_int_equal(read(peer, &byte, 1), 1);
	assert_int_equal(byte, 'x');
	assert_int_equal(channel_accept(listener, 0, name), -EAGAIN);
	close(fd);
	close(peer);
}

static void tcp(void **state)
{
	struct channel *c = open_channel("127.0.0.1:0"), *other;
	char name[CHANNEL_NAME], port[16];

	(void)state;
	assert_int_equal(channel_listen(c, &err), 1);
	channel_listener(c, 0, name);
	assert_memory_equal(name, "127.0.0.1:", 10);
	talk(c, name);
	snprintf(port, sizeof(port), "%.5s", name + 10);
	talk(c, port); /* ::1 is tried first, where nobody listens */
	snprintf(name, sizeof(name), "localhost:%s", port);
	talk(c, name);
	other = open_channel(port);
	assert_int_equal(channel_listen(other, &err), -EADDRINUSE);
	channel_free(other);
	channel_free(c);
	assert_true(connect_to(port) < 0);
	assert_non_null(strstr(err.text, "Connection refused"));
}

static void unix_sockets(void **state)
{
	char path[64], address[80];
	struct channel *c, *other;
	struct stat st;
	int status;
	pid_t pid;

	(void)state;
	snprintf(path, sizeof(path), "%s/socket", dir);
	snprintf(address, sizeof(address), "unix:%s", path);
	assert_true(connect_to(address) < 0);
	assert_non_null(strstr(err.text, "No such file"));
	c = open_channel(address);
	assert_int_equal(channel_listen(c, &err), 1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	talk(c, address);
	other = open_channel(address);
	assert_int_equal(channel_listen(other, &err), -EADDRINUSE);
	assert_non_null(strstr(err.text, "the path is in use"));
	channel_free(other);
	assert_int_equal(access(path, F_OK), 0); /* not removed by one that could not listen */
	channel_free(c);
	assert_int_equal(access(path, F_OK), -1);

	pid = fork();
	if (!pid) { /* ends without channel_free(), so it leaves the file behind */
		c = channel_new(address, &err);
		_exit(!c || channel_listen(c, &err) != 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(connect_to(address) < 0);
	c = open_channel(address);
	assert_int_equal(channel_listen(c, &err), 1);
	talk(c, address);
	channel_free(c);

	c = open_channel(address);
	assert_int_equal(close(creat(path, 0600)), 0);
	assert_int_equal(channel_listen(c, &err), -EADDRINUSE); /* a file is not removed */
	channel_free(c);
	assert_int_equal(unlink(path), 0);
}

static void private_files(void **state)
{
	char path[64];
	struct channel *c;
	struct stat st;
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/events.data", dir);
	fd = creat(path, 0644);
	assert_return_code(fchmod(fd, 0644), errno); /* whatever the umask is */
	assert_int_equal(close(fd), 0);
	c = open_channel(path);
	fd = channel_open(c, true, &err);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(close(fd), 0);
	channel_free(c);
	assert_int_equal(unlink(path), 0);
}

static int make_dir(void **state)
{
	(void)state;
	return !mkdtemp(dir);
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds),	 cmocka_unit_test(bad_addresses),
		cmocka_unit_test(missing_files), cmocka_unit_test(is_public),
		cmocka_unit_test(tcp),		 cmocka_unit_test(unix_sockets),
		cmocka_unit_test(private_files),
	};

	return cmocka_run_group_tests_name("channel", tests, make_dir, remove_dir);
}
