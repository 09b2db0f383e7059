/* SPDX-License-Identifier: GPL-2.0-only */
#include "serve/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "os/clock.h"
#include "os/library.h"
#include "wire/address.h"
#include "wire/secret.h"

enum {
	MAX_PATHS = 8,
	MAX_QUESTIONS = 64,    /* waiting or answered */
	MAX_CONNECTIONS = 256, /* browsers keep theirs open between two requests */
	TIMEOUT = 30,	       /* s, of a connection that does nothing */
	BACKLOG = 256,
	PATIENCE = 5 /* s, for which an answer that nobody has fetched keeps its place */
};

struct library {
	__typeof__(MHD_start_daemon) *start;
	__typeof__(MHD_stop_daemon) *stop;
	__typeof__(MHD_create_response_from_buffer) *response;
	__typeof__(MHD_destroy_response) *destroy;
	__typeof__(MHD_add_response_header) *header;
	__typeof__(MHD_queue_response) *queue;
	__typeof__(MHD_lookup_connection_value) *lookup;
};

struct document {
	char path[64];
	struct MHD_Response *response; /* counts who uses it */
};

struct item {
	struct item *next;
	size_t size;
	char text[];
};

struct question {
	char text[HTTP_QUESTION];
	uint64_t number;	       /* in the order in which they came; 0: unused */
	bool is_taken;		       /* by the owner */
	bool is_fetched;	       /* the answer, by the client */
	uint64_t answered;	       /* ns: when */
	struct MHD_Response *response; /* NULL: not answered yet */
};

struct http_server {
	struct library lib;
	struct MHD_Daemon *daemon;
	char address[HTTP_ADDRESS_MAX], token[HTTP_TOKEN];
	bool is_local;	      /* no other machine can ask */
	pthread_mutex_t lock; /* of what follows */
	struct document documents[MAX_PATHS];
	int nr_documents;
	struct item *first, **last; /* of the log */
	uint64_t first_number, next_number;
	size_t log_size;
	struct question questions[MAX_QUESTIONS];
	uint64_t last_question, last_taken;
	int question_fd;
};

static int load(struct library *lib, struct error *err)
{
	const struct library_function functions[] = {
		{(void **)&lib->start, "MHD_start_daemon"},
		{(void **)&lib->stop, "MHD_stop_daemon"},
		{(void **)&lib->response, "MHD_create_response_from_buffer"},
		{(void **)&lib->destroy, "MHD_destroy_response"},
		{(void **)&lib->header, "MHD_add_response_header"},
		{(void **)&lib->queue, "MHD_queue_response"},
		{(void **)&lib->lookup, "MHD_lookup_connection_value"},
	};

	return library_load("libmicrohttpd.so.12", functions,
			    sizeof(functions) / sizeof(functions[0]),
			    "serving needs libmicrohttpd (Debian: libmicrohttpd12)", err);
}

static struct MHD_Response *response_of(struct http_server *s, const char *type, const void *data,
					size_t size, enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *response = s->lib.response(size, (void *)data, mode);

	if (!response)
		return NULL;
	s->lib.header(response, "Content-Type", type);
	s->lib.header(response, "Cache-Control", "no-store");
	s->lib.header(response, "X-Content-Type-Options", "nosniff");
	s->lib.header(response, "Referrer-Policy", "no-referrer");
	return response;
}

static enum MHD_Result answer(struct http_server *s, struct MHD_Connection *c, unsigned int status,
			      struct MHD_Response *response)
{
	enum MHD_Result ret;

	if (!response)
		return MHD_NO;
	ret = s->lib.queue(c, status, response);
	s->lib.destroy(response);
	return ret;
}

static enum MHD_Result refuse(struct http_server *s, struct MHD_Connection *c, unsigned int status,
			      const char *text)
{
	return answer(s, c, status,
		      response_of(s, "text/plain; charset=utf-8", text, strlen(text),
				  MHD_RESPMEM_PERSISTENT));
}

/* The comparison takes the same time wherever they differ. */
static int is_token(const char *token, const char *given)
{
	unsigned int i, differ = 0;

	if (!given || strlen(given) != strlen(token))
		return 0;
	for (i = 0; token[i]; i++)
		differ |= (unsigned int)(token[i] ^ given[i]);
	return !differ;
}

/* Returns {"next":N,"items":[...]} with the items from number after on; the caller holds the lock.
 */
static struct MHD_Response *log_response(struct http_server *s, uint64_t after)
{
	char head[64];
	uint64_t number = s->first_number;
	struct item *first = s->first, *item;
	size_t size, at;
	char *text;

	for (; first && number < after; number++)
		first = first->next;
	at = (size_t)snprintf(head, sizeof(head), "{\"next\":%llu,\"items\":[",
			      (unsigned long long)s->next_number);
	size = at + 2;
	for (item = first; item; item = item->next)
		size += item->size + 1;
	text = malloc(size);
	if (!text)
		return NULL;
	memcpy(text, head, at);
	for (item = first; item; item = item->next) {
		memcpy(text + at, item->text, item->size);
		at += item->size;
		if (item->next)
			text[at++] = ',';
	}
	memcpy(text + at, "]}", 2);
	return response_of(s, "application/json", text, at + 2, MHD_RESPMEM_MUST_FREE);
}

/* Returns whether a new question may take the place of this one. Clients that still ask for their
 * answer must find it: else they would all ask anew, and none would get one. */
static bool can_go(const struct question *q, uint64_t now)
{
	return !q->number ||
	       (q->response && (q->is_fetched || now - q->answered > PATIENCE * 1000000000ull));
}

/* Returns a question with this text, a new one if there is none; NULL if too many wait. */
static struct question *find_question(struct http_server *s, const char *text)
{
	struct question *q, *oldest = NULL;
	uint64_t now = clock_monotonic();

	for (q = s->questions; q < s->questions + MAX_QUESTIONS; q++) {
		if (q->number && !strcmp(q->text, text))
			return q;
		if (can_go(q, now) && (!oldest || q->number < oldest->number))
			oldest = q;
	}
	if (!oldest)
		return NULL;
	if (oldest->response)
		s->lib.destroy(oldest->response);
	*oldest = (struct question){.number = ++s->last_question};
	strcpy(oldest->text, text);
	eventfd_write(s->question_fd, 1);
	return oldest;
}

static enum MHD_Result ask(struct http_server *s, struct MHD_Connection *c, const char *text)
{
	struct question *q;
	enum MHD_Result ret;

	if (!text || strlen(text) >= HTTP_QUESTION)
		return refuse(s, c, MHD_HTTP_BAD_REQUEST, "?q= is missing or too long\n");
	pthread_mutex_lock(&s->lock);
	q = find_question(s, text);
	if (q && q->response) {
		q->is_fetched = true;
		ret = s->lib.queue(c, MHD_HTTP_OK, q->response);
		pthread_mutex_unlock(&s->lock);
		return ret;
	}
	pthread_mutex_unlock(&s->lock);
	return q ? refuse(s, c, MHD_HTTP_ACCEPTED, "not answered yet: ask again\n")
		 : refuse(s, c, MHD_HTTP_SERVICE_UNAVAILABLE,
			  "too many questions wait: ask again\n");
}

static bool is_host_name(const char *name)
{
	char own[HOST_NAME_MAX + 1] = "";

	if (!strcasecmp(name, "localhost"))
		return true;
	gethostname(own, sizeof(own) - 1);
	if (own[0] && !strcasecmp(name, own))
		return true;
	own[strcspn(own, ".")] = 0;
	return own[0] && !strcasecmp(name, own);
}

/* Returns whether a request is for this server, by a Host header with an address or a name of this
 * machine. A page of another site may have made a name of its own mean this address, to read what a
 * browser here can read. */
static bool is_own_host(const char *given)
{
	const char *from;
	char name[HOST_NAME_MAX + 1];
	struct in6_addr address;
	size_t len;

	if (!given) /* HTTP/1.0; browsers always send it */
		return true;
	from = *given == '[' ? given + 1 : given;
	len = strcspn(from, from > given ? "]" : ":");
	if (len >= sizeof(name))
		return false;
	memcpy(name, from, len);
	name[len] = 0;
	return inet_pton(AF_INET, name, &address) || inet_pton(AF_INET6, name, &address) ||
	       is_host_name(name);
}

static enum MHD_Result serve(struct http_server *s, struct MHD_Connection *c, const char *path)
{
	struct MHD_Response *response = NULL;
	enum MHD_Result ret;
	const char *after;
	int i;

	if (s->token[0] && !strcmp(path, "/ask")) /* events are not for everybody */
		return ask(s, c, s->lib.lookup(c, MHD_GET_ARGUMENT_KIND, "q"));
	pthread_mutex_lock(&s->lock);
	if (!strcmp(path, "/log")) {
		after = s->lib.lookup(c, MHD_GET_ARGUMENT_KIND, "after");
		response = log_response(s, after ? strtoull(after, NULL, 10) : 0);
		pthread_mutex_unlock(&s->lock);
		return answer(s, c, MHD_HTTP_OK, response);
	}
	for (i = 0; i < s->nr_documents && !response; i++) {
		if (!strcmp(path, s->documents[i].path))
			response = s->documents[i].response;
	}
	ret = response ? s->lib.queue(c, MHD_HTTP_OK, response) : MHD_NO;
	pthread_mutex_unlock(&s->lock);
	return response ? ret : refuse(s, c, MHD_HTTP_NOT_FOUND, "not found\n");
}

static enum MHD_Result on_request(void *of, struct MHD_Connection *c, const char *path,
				  const char *method, const char *version, const char *body,
				  size_t *size, void **state)
{
	static int has_headers;
	struct http_server *s = of;

	(void)version;
	(void)body;
	if (!*state) { /* it is asked again when the request is complete */
		*state = &has_headers;
		return MHD_YES;
	}
	if (*size) { /* nothing here takes a body: it is dropped */
		*size = 0;
		return MHD_YES;
	}
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return refuse(s, c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
	if ((s->token[0] || s->is_local) &&
	    !is_own_host(s->lib.lookup(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST)))
		return refuse(s, c, MHD_HTTP_FORBIDDEN,
			      "the host in the address is not this machine: use its address or its "
			      "name\n");
	if (s->token[0] && !is_token(s->token, s->lib.lookup(c, MHD_GET_ARGUMENT_KIND, "token")))
		return refuse(s, c, MHD_HTTP_FORBIDDEN,
			      "the address needs the token that profscript has printed\n");
	return serve(s, c, path);
}

static void say_nothing(void *of, const char *format, va_list args)
{
	(void)of;
	(void)format;
	(void)args;
}

static int refuse_address(const char *text, int code, struct error *err)
{
	const char *hint = code == EACCES	? ": ports below 1024 need CAP_NET_BIND_SERVICE"
			   : code == EADDRINUSE ? ": another program listens there"
						: "";

	return error_set(err, -code, "cannot listen on %s: %s%s", text, strerror(code), hint);
}

/* Returns a listening socket, or a negative errno with a message; *bad: the address is wrong. */
static int listen_at(struct http_server *s, const char *text, int32_t *bad, struct error *err)
{
	union socket_address at;
	socklen_t size = sizeof(at);
	struct address address = {0};
	int fd, on = 1, ret;

	*bad = 1;
	if (!*text || strchr(text, '/') || (strchr("0123456789", text[strlen(text) - 1]) == NULL))
		return error_set(err, -EINVAL, "'%s' is not [ADDR:]PORT", text);
	ret = address_parse(&address, text, err);
	if (ret)
		return ret;
	if (address.kind != CHANNEL_TCP || !address.nr_here)
		return error_set(err, -EINVAL, "'%s' is not [ADDR:]PORT", text);
	*bad = 0;
	at = address.here[0];
	fd = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return refuse_address(text, errno, err);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, &at.any, address_size(&at)) || listen(fd, BACKLOG) ||
	    getsockname(fd, &at.any, &size)) {
		ret = refuse_address(text, errno, err);
		close(fd);
		return ret;
	}
	address_print(&at, s->address);
	s->is_local = address_is_loopback(&at);
	return fd;
}

struct http_server *http_server_open(const char *address, const char *token, int32_t *code,
				     struct error *err)
{
	struct http_server *s = calloc(1, sizeof(*s));
	sigset_t all, before;
	int fd;

	*code = 0;
	if (!s) {
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	s->last = &s->first;
	s->question_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&s->lock, NULL);
	snprintf(s->token, sizeof(s->token), "%s", token ? token : "");
	if (s->question_fd < 0) {
		error_set(err, -errno, "cannot serve %s: %s", address, strerror(errno));
		http_server_close(s);
		return NULL;
	}
	fd = listen_at(s, address, code, err);
	if (fd < 0 || load(&s->lib, err)) {
		if (fd >= 0)
			close(fd);
		http_server_close(s);
		return NULL;
	}
	sigfillset(&all); /* signals are the main thread's */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	s->daemon = s->lib.start(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_USE_ERROR_LOG, 0,
				 NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, say_nothing,
				 NULL, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
				 (unsigned int)MAX_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
				 (unsigned int)TIMEOUT, MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (s->daemon)
		return s;
	error_set(err, -EIO, "cannot serve %s: libmicrohttpd does not start", address);
	close(fd);
	http_server_close(s);
	return NULL;
}

void http_server_close(struct http_server *s)
{
	struct item *item;
	int i;

	if (!s)
		return;
	if (s->daemon)
		s->lib.stop(s->daemon);
	for (i = 0; i < s->nr_documents; i++)
		s->lib.destroy(s->documents[i].response);
	while ((item = s->first)) {
		s->first = item->next;
		free(item);
	}
	for (i = 0; i < MAX_QUESTIONS; i++) {
		if (s->questions[i].response)
			s->lib.destroy(s->questions[i].response);
	}
	if (s->question_fd >= 0)
		close(s->question_fd);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

const char *http_server_address(const struct http_server *s)
{
	return s->address;
}

int http_server_set(struct http_server *s, const char *path, const char *type, const void *data,
		    size_t size)
{
	struct MHD_Response *response = response_of(s, type, data, size, MHD_RESPMEM_MUST_COPY);
	struct MHD_Response *old = NULL;
	int i;

	if (!response)
		return -ENOMEM;
	pthread_mutex_lock(&s->lock);
	for (i = 0; i < s->nr_documents && strcmp(path, s->documents[i].path); i++)
		;
	if (i < s->nr_documents) {
		old = s->documents[i].response;
	} else if (i == MAX_PATHS) {
		pthread_mutex_unlock(&s->lock);
		s->lib.destroy(response);
		return -ENOMEM;
	} else {
		snprintf(s->documents[i].path, sizeof(s->documents[i].path), "%s", path);
		s->nr_documents++;
	}
	s->documents[i].response = response;
	pthread_mutex_unlock(&s->lock);
	if (old)
		s->lib.destroy(old);
	return 0;
}

int http_server_log(struct http_server *s, const void *data, size_t size, size_t limit)
{
	struct item *item = malloc(sizeof(*item) + size), *gone;

	if (!item)
		return -ENOMEM;
	item->next = NULL;
	item->size = size;
	memcpy(item->text, data, size);
	pthread_mutex_lock(&s->lock);
	*s->last = item;
	s->last = &item->next;
	s->next_number++;
	s->log_size += size;
	while (s->log_size > limit && s->first->next) {
		gone = s->first;
		s->first = gone->next;
		s->first_number++;
		s->log_size -= gone->size;
		free(gone);
	}
	pthread_mutex_unlock(&s->lock);
	return 0;
}

int http_server_question_fd(const struct http_server *s)
{
	return s->question_fd;
}

uint64_t http_server_question(struct http_server *s, char text[HTTP_QUESTION])
{
	struct question *q, *oldest = NULL;
	uint64_t number = 0;
	eventfd_t nothing;

	/* Without a system call where nobody has asked: this is called after each batch. */
	if (__atomic_load_n(&s->last_question, __ATOMIC_RELAXED) == s->last_taken)
		return 0;
	pthread_mutex_lock(&s->lock);
	for (q = s->questions; q < s->questions + MAX_QUESTIONS; q++) {
		if (q->number && !q->is_taken && (!oldest || q->number < oldest->number))
			oldest = q;
	}
	if (oldest) {
		oldest->is_taken = true;
		number = s->last_taken = oldest->number;
		strcpy(text, oldest->text);
	}
	if (s->last_taken == s->last_question)
		eventfd_read(s->question_fd, &nothing);
	pthread_mutex_unlock(&s->lock);
	return number;
}

int http_server_answer(struct http_server *s, uint64_t number, const void *data, size_t size)
{
	struct MHD_Response *response =
		response_of(s, "application/json", data, size, MHD_RESPMEM_MUST_COPY);
	struct question *q;

	if (!response)
		return -ENOMEM;
	pthread_mutex_lock(&s->lock);
	for (q = s->questions; q->number != number; q++) /* it is there until it was answered */
		;
	q->response = response;
	q->answered = clock_monotonic();
	pthread_mutex_unlock(&s->lock);
	return 0;
}

void http_token(char token[HTTP_TOKEN])
{
	_Static_assert((int)HTTP_TOKEN == (int)SECRET_NONCE, "a nonce of 128 bits is a token");
	secret_nonce(token);
}
