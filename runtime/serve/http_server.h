/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * HTTP server: shows browsers and scrapers what the owner last published. Requests are answered on
 * a thread of its own from copies, so a slow client delays nobody, and the owner never waits for
 * one.
 *
 * A document is replaced as a whole. A log is a list of JSON values, of which a client asks for
 * those after the last number that it has seen (?after=N); the oldest are forgotten when it exceeds
 * its size. A question is text that a client asks the owner (/ask?q=TEXT). The owner answers it
 * when it finds the time: until then the client is told to ask the same again (202), also when too
 * many questions wait (503). A request that names another host than this machine is refused, if
 * there is a token or only this machine can ask: a page of another site could make its own name
 * mean this address. libmicrohttpd does the work. It is loaded when a server is opened.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "error.h"

struct http_server;

enum { HTTP_ADDRESS_MAX = 128, HTTP_TOKEN = 33, HTTP_QUESTION = 512 /* bytes with the NUL */ };

/* Listens at [ADDR:]PORT, by default on 127.0.0.1; port 0 is any that is free. token: what
 * ?token= of each request must be, NULL: anyone may read. Returns NULL with a message; *code is 1
 * if the address is wrong, else 0. */
struct http_server *http_server_open(const char *address, const char *token, int32_t *code,
				     struct error *err);
/* Ends all connections. */
void http_server_close(struct http_server *s);

/* Returns ADDR:PORT as in an URL. */
const char *http_server_address(const struct http_server *s);

/* Sets what a path returns. type: its Content-Type. Returns 0 or -ENOMEM. */
int http_server_set(struct http_server *s, const char *path, const char *type, const void *data,
		    size_t size);
/* Appends a JSON value to the log at /log, which is {"next":N,"items":[...]}. Keeps the newest ones
 * that fit into limit bytes. Returns 0 or -ENOMEM. */
int http_server_log(struct http_server *s, const void *data, size_t size, size_t limit);
/* Returns a descriptor that is readable while a question waits. */
int http_server_question_fd(const struct http_server *s);
/* Takes the oldest question that waits. Returns its number, or 0 if there is none. */
uint64_t http_server_question(struct http_server *s, char text[HTTP_QUESTION]);
/* Answers a question that was taken with a JSON value. Returns 0 or -ENOMEM. */
int http_server_answer(struct http_server *s, uint64_t number, const void *data, size_t size);
/* Fills a token with random hexadecimal digits and a NUL. */
void http_token(char token[HTTP_TOKEN]);
