/* SPDX-License-Identifier: GPL-2.0-only */
#include "serve/http_sender.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "os/library.h"

enum { MAX_QUEUED = 16, CONNECT_TIMEOUT = 5000, TIMEOUT = 10000, MAX_PAUSE = 30000 /* ms */ };

struct library {
	__typeof__(curl_global_init) *global_init;
	__typeof__(curl_easy_init) *init;
	__typeof__(curl_easy_setopt) *set;
	__typeof__(curl_easy_perform) *perform;
	__typeof__(curl_easy_getinfo) *info;
	__typeof__(curl_easy_cleanup) *cleanup;
	__typeof__(curl_easy_strerror) *text;
	__typeof__(curl_slist_append) *append;
	__typeof__(curl_slist_free_all) *free_list;
	__typeof__(curl_url) *url;
	__typeof__(curl_url_set) *url_set;
	__typeof__(curl_url_strerror) *url_text;
	__typeof__(curl_url_cleanup) *url_cleanup;
};

struct body {
	struct body *next;
	size_t size;
	char data[];
};

struct http_sender {
	struct library lib;
	CURL *curl; /* the thread's */
	struct curl_slist *headers;
	pthread_t thread;
	int has_thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	struct body *first, **last; /* the first one is being sent */
	uint32_t queued;
	int is_sending, must_end;
	struct http_sender_stats stats;
};

static int load(struct library *lib, struct error *err)
{
	const struct library_function functions[] = {
		{(void **)&lib->global_init, "curl_global_init"},
		{(void **)&lib->init, "curl_easy_init"},
		{(void **)&lib->set, "curl_easy_setopt"},
		{(void **)&lib->perform, "curl_easy_perform"},
		{(void **)&lib->info, "curl_easy_getinfo"},
		{(void **)&lib->cleanup, "curl_easy_cleanup"},
		{(void **)&lib->text, "curl_easy_strerror"},
		{(void **)&lib->append, "curl_slist_append"},
		{(void **)&lib->free_list, "curl_slist_free_all"},
		{(void **)&lib->url, "curl_url"},
		{(void **)&lib->url_set, "curl_url_set"},
		{(void **)&lib->url_text, "curl_url_strerror"},
		{(void **)&lib->url_cleanup, "curl_url_cleanup"},
	};

	/* Not the one with OpenSSL, whose license does not go with this program's. */
	return library_load("libcurl-gnutls.so.4", functions,
			    sizeof(functions) / sizeof(functions[0]),
			    "sending needs libcurl (Debian: libcurl3-gnutls)", err);
}

static size_t ignore(char *data, size_t size, size_t n, void *of)
{
	(void)data;
	(void)of;
	return size * n;
}

/* Called by curl while it works; anything but 0 ends the attempt. */
static int progress(void *of, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	struct http_sender *s = of;
	int must_end;

	(void)a;
	(void)b;
	(void)c;
	(void)d;
	pthread_mutex_lock(&s->lock);
	must_end = s->must_end;
	pthread_mutex_unlock(&s->lock);
	return must_end;
}

/* Tries once. Returns 0, -EAGAIN to try again, or -EIO, with a problem. */
static int post(struct http_sender *s, const struct body *body, char problem[256])
{
	char details[CURL_ERROR_SIZE] = "";
	long status = 0;
	CURLcode code;

	s->lib.set(s->curl, CURLOPT_ERRORBUFFER, details);
	s->lib.set(s->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->size);
	s->lib.set(s->curl, CURLOPT_POSTFIELDS, body->data);
	code = s->lib.perform(s->curl);
	s->lib.set(s->curl, CURLOPT_ERRORBUFFER, NULL);
	if (code) {
		snprintf(problem, 256, "%s", details[0] ? details : s->lib.text(code));
		return -EAGAIN;
	}
	s->lib.info(s->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status >= 200 && status < 300)
		return 0;
	snprintf(problem, 256, "the server answered %ld", status);
	return status == 429 || status == 502 || status == 503 || status == 504 ? -EAGAIN : -EIO;
}

/* Waits for a change; the caller holds the lock. */
static void wait_for(struct http_sender *s, uint32_t ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_cond_timedwait(&s->changed, &s->lock, &until);
}

static void drop_first(struct http_sender *s)
{
	struct body *body = s->first;

	s->first = body->next;
	if (!s->first)
		s->last = &s->first;
	s->queued--;
	free(body);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void *run(void *of)
{
	struct http_sender *s = of;
	uint32_t pause = 0;
	uint64_t until;

	pthread_mutex_lock(&s->lock);
	while (!s->must_end) {
		char problem[256] = "";
		int ret;

		if (!s->first) {
			pthread_cond_wait(&s->changed, &s->lock);
			continue;
		}
		s->is_sending = 1;
		pthread_mutex_unlock(&s->lock);
		ret = post(s, s->first, problem);
		pthread_mutex_lock(&s->lock);
		s->is_sending = 0;
		pause = ret == -EAGAIN ? (pause ? pause * 2 : 500) : 0;
		if (pause > MAX_PAUSE)
			pause = MAX_PAUSE;
		if (ret && !s->must_end) {
			s->stats.attempts_failed++;
			memcpy(s->stats.problem, problem, sizeof(problem));
		}
		s->stats.sent += !ret;
		s->stats.failed += ret == -EIO;
		if (ret != -EAGAIN)
			drop_first(s);
		pthread_cond_broadcast(&s->changed);
		until = now_ms() + pause;
		while (pause && !s->must_end && now_ms() < until)
			wait_for(s, (uint32_t)(until - now_ms()));
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* Checks the URL and sets up what all requests share. */
static int set_up(struct http_sender *s, const char *url, const char *content_type, int32_t *bad,
		  struct error *err)
{
	char type[128];
	CURLUcode code;
	CURLU *parsed;

	s->lib.global_init(CURL_GLOBAL_DEFAULT);
	parsed = s->lib.url();
	code = parsed ? s->lib.url_set(parsed, CURLUPART_URL, url, 0) : CURLUE_OUT_OF_MEMORY;
	if (parsed)
		s->lib.url_cleanup(parsed);
	if (code) {
		*bad = 1;
		return error_set(err, -EINVAL, "'%s' is not an URL: %s", url,
				 s->lib.url_text(code));
	}
	snprintf(type, sizeof(type), "Content-Type: %s", content_type);
	s->headers = s->lib.append(NULL, type);
	s->curl = s->lib.init();
	if (!s->curl || !s->headers)
		return error_set(err, -ENOMEM, "out of memory");
	s->lib.set(s->curl, CURLOPT_URL, url);
	s->lib.set(s->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	s->lib.set(s->curl, CURLOPT_HTTPHEADER, s->headers);
	s->lib.set(s->curl, CURLOPT_POST, 1L);
	s->lib.set(s->curl, CURLOPT_NOSIGNAL, 1L);
	s->lib.set(s->curl, CURLOPT_WRITEFUNCTION, ignore);
	s->lib.set(s->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT);
	s->lib.set(s->curl, CURLOPT_TIMEOUT_MS, (long)TIMEOUT);
	s->lib.set(s->curl, CURLOPT_NOPROGRESS, 0L);
	s->lib.set(s->curl, CURLOPT_XFERINFOFUNCTION, progress);
	s->lib.set(s->curl, CURLOPT_XFERINFODATA, s);
	return 0;
}

struct http_sender *http_sender_new(const char *url, const char *content_type, int32_t *bad,
				    struct error *err)
{
	struct http_sender *s = calloc(1, sizeof(*s));
	pthread_condattr_t monotonic;
	sigset_t all, before;

	*bad = 0;
	if (!s) {
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	s->last = &s->first;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (load(&s->lib, err) || set_up(s, url, content_type, bad, err)) {
		http_sender_free(s);
		return NULL;
	}
	sigfillset(&all); /* signals are the main thread's */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	s->has_thread = !pthread_create(&s->thread, NULL, run, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (s->has_thread)
		return s;
	error_set(err, -EAGAIN, "cannot start a thread");
	http_sender_free(s);
	return NULL;
}

int http_sender_put(struct http_sender *s, const void *data, size_t size)
{
	struct body *body = malloc(sizeof(*body) + size), *old;

	if (!body)
		return -ENOMEM;
	body->next = NULL;
	body->size = size;
	memcpy(body->data, data, size);
	pthread_mutex_lock(&s->lock);
	if (s->queued == MAX_QUEUED && s->is_sending) { /* the second one: the first is in use */
		old = s->first->next;
		s->first->next = old->next;
		free(old);
		s->queued--;
		s->stats.dropped++;
	} else if (s->queued == MAX_QUEUED) {
		drop_first(s);
		s->stats.dropped++;
	}
	*s->last = body;
	s->last = &body->next;
	s->queued++;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

void http_sender_read(struct http_sender *s, struct http_sender_stats *stats)
{
	pthread_mutex_lock(&s->lock);
	*stats = s->stats;
	pthread_mutex_unlock(&s->lock);
}

void http_sender_flush(struct http_sender *s, uint32_t ms)
{
	uint64_t until = now_ms() + ms;

	pthread_mutex_lock(&s->lock);
	while (s->first && now_ms() < until)
		wait_for(s, (uint32_t)(until - now_ms()));
	pthread_mutex_unlock(&s->lock);
}

void http_sender_free(struct http_sender *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->must_end = 1;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	if (s->has_thread)
		pthread_join(s->thread, NULL);
	while (s->first)
		drop_first(s);
	if (s->curl)
		s->lib.cleanup(s->curl);
	if (s->headers)
		s->lib.free_list(s->headers);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
