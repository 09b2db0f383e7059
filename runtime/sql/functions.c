/* SPDX-License-Identifier: GPL-2.0-only */
#include "sql/functions.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "error.h"
#include "formats/formats.h"
#include "session/tasks.h"
#include "sql/percentiles.h"
#include "sql/variance.h"

struct name {
	int64_t value;
	char *text;
};

struct name_list {
	char *key;	 /* "table.field" */
	char *separator; /* NULL: the names are those of values */
	uint64_t mask;
	struct name *names;
	uint32_t n;
};

struct functions {
	struct formats *formats;
	struct tasks *tasks;
	struct name_list *lists;
	uint32_t nr_lists;
};

struct functions *functions_new(struct formats *formats, struct tasks *tasks)
{
	struct functions *f = calloc(1, sizeof(*f));

	if (f) {
		f->formats = formats;
		f->tasks = tasks;
	}
	return f;
}

void functions_free(struct functions *f)
{
	if (!f)
		return;
	for (struct name_list *list = f->lists; list < f->lists + f->nr_lists; list++) {
		for (uint32_t i = 0; i < list->n; i++)
			free(list->names[i].text);
		free(list->names);
		free(list->key);
		free(list->separator);
	}
	free(f->lists);
	free(f);
}

int functions_add_list(struct functions *f, const char *key, const char *separator, uint64_t mask)
{
	struct name_list *lists = reallocarray(f->lists, f->nr_lists + 1, sizeof(*lists));
	struct name_list *list;

	if (!lists)
		return -ENOMEM;
	f->lists = lists;
	list = &lists[f->nr_lists];
	*list = (struct name_list){.key = strdup(key), .mask = mask};
	f->nr_lists++;
	if (separator)
		list->separator = strdup(separator);
	if (!list->key || (separator && !list->separator))
		return -ENOMEM;
	return f->nr_lists - 1;
}

int functions_add_name(struct functions *f, uint32_t number, int64_t value, const char *name)
{
	struct name_list *list = &f->lists[number];
	struct name *names = reallocarray(list->names, list->n + 1, sizeof(*names));
	char *text = strdup(name);

	if (names)
		list->names = names;
	if (!names || !text) {
		free(text);
		return -ENOMEM;
	}
	names[list->n++] = (struct name){value, text};
	return 0;
}

static const char *name_of(const struct name_list *list, int64_t value)
{
	for (uint32_t i = 0; i < list->n; i++)
		if (list->names[i].value == value)
			return list->names[i].text;
	return NULL;
}

static void result_text(sqlite3_context *result, const char *text)
{
	sqlite3_result_text(result, text, -1, SQLITE_TRANSIENT);
}

/* The names of bits; those without one follow in hexadecimal. */
static void result_bits(sqlite3_context *result, const struct name_list *list, uint64_t value)
{
	sqlite3_str *text = sqlite3_str_new(NULL);
	const char *before = "";
	uint64_t rest = value;
	char *joined;

	for (uint32_t i = 0; i < list->n; i++) {
		uint64_t bits = list->names[i].value;

		if (!bits || (rest & bits) != bits)
			continue;
		rest &= ~bits;
		sqlite3_str_appendf(text, "%s%s", before, list->names[i].text);
		before = list->separator;
	}
	if (rest)
		sqlite3_str_appendf(text, "%s0x%llx", before, (unsigned long long)rest);
	joined = sqlite3_str_finish(text);
	if (joined)
		sqlite3_result_text(result, joined, -1, sqlite3_free);
	else
		sqlite3_result_text(result, "", 0, SQLITE_STATIC);
}

/* Finds the list of "field" or "table.field". */
static const struct name_list *find_list(const struct functions *f, const char *key)
{
	bool has_table = strchr(key, '.');

	for (uint32_t i = 0; i < f->nr_lists; i++) {
		const char *dot = strchr(f->lists[i].key, '.');

		if (dot && !strcasecmp(has_table ? f->lists[i].key : dot + 1, key))
			return &f->lists[i];
	}
	return NULL;
}

/* The only list besides that of the system calls. */
static const struct name_list *only_list(const struct functions *f)
{
	const struct name_list *only = NULL;

	for (uint32_t i = 0; i < f->nr_lists; i++) {
		if (!f->lists[i].key[0])
			continue;
		if (only)
			return NULL;
		only = &f->lists[i];
	}
	return only;
}

static void refuse_symbolic(sqlite3_context *result, const struct functions *f, const char *key)
{
	sqlite3_str *text = sqlite3_str_new(NULL);
	const char *before = "; there are ";
	char *message;

	if (key)
		sqlite3_str_appendf(text, "symbolic(): '%s' has no names", key);
	else
		sqlite3_str_appendall(text, "symbolic() needs the name of the field as well");
	for (uint32_t i = 0; i < f->nr_lists; i++) {
		if (!f->lists[i].key[0])
			continue;
		sqlite3_str_appendf(text, "%s%s", before, f->lists[i].key);
		before = ", ";
	}
	message = sqlite3_str_finish(text);
	if (message)
		sqlite3_result_error(result, message, -1);
	else
		sqlite3_result_error_nomem(result);
	sqlite3_free(message);
}

static void symbolic(sqlite3_context *result, int argc, sqlite3_value **argv)
{
	const struct functions *f = sqlite3_user_data(result);
	const char *key = argc > 1 ? (const char *)sqlite3_value_text(argv[0]) : NULL;
	const struct name_list *list = key ? find_list(f, key) : only_list(f);
	uint64_t value;
	const char *name;

	if (!list) {
		refuse_symbolic(result, f, key);
		return;
	}
	if (sqlite3_value_type(argv[argc - 1]) == SQLITE_NULL)
		return;
	value = (uint64_t)sqlite3_value_int64(argv[argc - 1]) & list->mask;
	if (list->separator) {
		result_bits(result, list, value);
		return;
	}
	name = name_of(list, (int64_t)value);
	result_text(result, name ? name : "UNKNOWN");
}

static void syscall_name(sqlite3_context *result, int argc, sqlite3_value **argv)
{
	const struct functions *f = sqlite3_user_data(result);
	const char *name = NULL;

	(void)argc;
	if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
		return;
	for (uint32_t i = 0; i < f->nr_lists && !name; i++)
		if (!f->lists[i].key[0])
			name = name_of(&f->lists[i], sqlite3_value_int64(argv[0]));
	result_text(result, name ? name : "??");
}

static void ksymbol(sqlite3_context *result, int argc, sqlite3_value **argv)
{
	const struct functions *f = sqlite3_user_data(result);
	uint64_t start;
	const char *name;

	(void)argc;
	if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
		return;
	name = formats_symbol(f->formats, (uint64_t)sqlite3_value_int64(argv[0]), &start);
	result_text(result, name ? name : "??");
}

static void comm_get(sqlite3_context *result, int argc, sqlite3_value **argv)
{
	const struct functions *f = sqlite3_user_data(result);

	(void)argc;
	if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
		return;
	result_text(result, tasks_name(f->tasks, sqlite3_value_int(argv[0]), INFINITY));
}

/* Returns the bytes of a blob of at least size bytes, or NULL. */
static const uint8_t *bytes_of(sqlite3_value *value, int size)
{
	const uint8_t *bytes = sqlite3_value_blob(value);

	return sqlite3_value_bytes(value) >= size ? bytes : NULL;
}

static void ip_address(sqlite3_context *result, int family, const uint8_t *bytes)
{
	char text[INET6_ADDRSTRLEN];

	result_text(result, bytes && inet_ntop(family, bytes, text, sizeof(text)) ? text : "??");
}

static void ipv4_str(sqlite3_context *result, int argc, sqlite3_value **argv)
{
	(void)argc;
	ip_address(result, AF_INET, bytes_of(argv[0], 4));
}

static void ipv4_hstr(sqlite3_context *result, int argc, sqlite3_value **argv)
{
	const uint8_t *bytes = bytes_of(argv[0], 4);
	uint8_t swapped[4];

	(void)argc;
	for (int i = 0; bytes && i < 4; i++)
		swapped[i] = bytes[3 - i];
	ip_address(result, AF_INET, bytes ? swapped : NULL);
}

static void ipv6_str(sqlite3_context *result, int argc, sqlite3_value **argv)
{
	(void)argc;
	ip_address(result, AF_INET6, bytes_of(argv[0], 16));
}

/* A struct sockaddr; is_host: address and port are in the order of the host. */
static void socket_address(sqlite3_context *result, sqlite3_value *value, bool is_host)
{
	const struct sockaddr_in *v4 = (const void *)bytes_of(value, 8);
	const struct sockaddr_in6 *v6 = (const void *)bytes_of(value, 24);
	char address[INET6_ADDRSTRLEN], text[INET6_ADDRSTRLEN + 16] = "??";
	sa_family_t family = AF_UNSPEC;
	uint16_t port;

	if (v4) {
		memcpy(&family, v4, sizeof(family));
		memcpy(&port, &v4->sin_port, sizeof(port));
		port = is_host ? port : ntohs(port);
	}
	if (family == AF_INET) {
		struct in_addr in;

		memcpy(&in, &v4->sin_addr, sizeof(in));
		in.s_addr = is_host ? htonl(in.s_addr) : in.s_addr;
		inet_ntop(AF_INET, &in, address, sizeof(address));
		snprintf(text, sizeof(text), "%s:%u", address, port);
	} else if (family == AF_INET6 && v6) {
		inet_ntop(AF_INET6, &v6->sin6_addr, address, sizeof(address));
		snprintf(text, sizeof(text), "[%s]:%u", address, port);
	}
	result_text(result, text);
}

static void ipsa_str(sqlite3_context *result, int argc, sqlite3_value **argv)
{
	(void)argc;
	socket_address(result, argv[0], false);
}

static void ipsa_hstr(sqlite3_context *result, int argc, sqlite3_value **argv)
{
	(void)argc;
	socket_address(result, argv[0], true);
}

/* 16 bytes in this order. */
static void uuid(sqlite3_context *result, sqlite3_value *value, const uint8_t *order)
{
	const uint8_t *bytes = bytes_of(value, 16);
	char text[40], *to = text;

	for (int i = 0; bytes && i < 16; i++)
		to += sprintf(to, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			      bytes[order[i]]);
	result_text(result, bytes ? text : "??");
}

static void uuid_str(sqlite3_context *result, int argc, sqlite3_value **argv)
{
	static const uint8_t order[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

	(void)argc;
	uuid(result, argv[0], order);
}

static void guid_str(sqlite3_context *result, int argc, sqlite3_value **argv)
{
	static const uint8_t order[] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};

	(void)argc;
	uuid(result, argv[0], order);
}

static void mac_str(sqlite3_context *result, int argc, sqlite3_value **argv)
{
	const uint8_t *b = bytes_of(argv[0], 6);
	char text[20] = "??";

	(void)argc;
	if (b)
		snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2],
			 b[3], b[4], b[5]);
	result_text(result, text);
}

/* element(array, index [, bytes]): an element of an array field, from 0; NULL beyond its end. */
static void element(sqlite3_context *result, int argc, sqlite3_value **argv)
{
	sqlite3_int64 index = sqlite3_value_int64(argv[1]);
	int size = argc > 2 ? sqlite3_value_int(argv[2]) : 8;
	const uint8_t *bytes = sqlite3_value_blob(argv[0]);
	uint64_t value = 0;

	if (size != 1 && size != 2 && size != 4 && size != 8) {
		sqlite3_result_error(result, "element(): the size is 1, 2, 4 or 8 bytes", -1);
		return;
	}
	if (!bytes || index < 0 || index >= sqlite3_value_bytes(argv[0]) / size)
		return;
	memcpy(&value, bytes + index * size, size);
	sqlite3_result_int64(result, (sqlite3_int64)le64toh(value));
}

static const struct {
	const char *name;
	int args;
	void (*call)(sqlite3_context *result, int argc, sqlite3_value **argv);
} FUNCTIONS[] = {
	{"symbolic", 1, symbolic},    {"symbolic", 2, symbolic},
	{"syscall", 1, syscall_name}, {"syscall_name", 1, syscall_name},
	{"ksymbol", 1, ksymbol},      {"comm_get", 1, comm_get},
	{"ipv4_str", 1, ipv4_str},    {"ipv4_hstr", 1, ipv4_hstr},
	{"ipv6_str", 1, ipv6_str},    {"ipsa_str", 1, ipsa_str},
	{"ipsa_hstr", 1, ipsa_hstr},  {"uuid_str", 1, uuid_str},
	{"guid_str", 1, guid_str},    {"mac_str", 1, mac_str},
	{"element", 2, element},      {"element", 3, element},
};

int functions_register(struct functions *f, sqlite3 *db, struct error *err)
{
	int status = SQLITE_OK;

	for (size_t i = 0; i < sizeof(FUNCTIONS) / sizeof(FUNCTIONS[0]) && !status; i++)
		status = sqlite3_create_function_v2(db, FUNCTIONS[i].name, FUNCTIONS[i].args,
						    SQLITE_UTF8 | SQLITE_DETERMINISTIC |
							    SQLITE_INNOCUOUS,
						    f, FUNCTIONS[i].call, NULL, NULL, NULL);
	if (!status)
		status = percentiles_register(db);
	if (!status)
		status = variance_register(db);
	return status ? error_set(err, -ENOMEM, "%s", sqlite3_errmsg(db)) : 0;
}
