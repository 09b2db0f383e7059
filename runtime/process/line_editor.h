/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Line editor: a prompt on the terminal with editing, history and completion (libedit), which never
 * waits: the caller polls standard input. Completion is the caller's, too: line_editor_read() says
 * that it is asked for.
 */
#pragma once

struct error;
struct line_editor;

/* What line_editor_read() has read. */
enum line_event {
	LINE_NOTHING,  /* keys that only changed the line */
	LINE_COMPLETE, /* the line in line_editor_text() is complete */
	LINE_TAB,      /* the text up to line_editor_cursor() is to be completed */
	LINE_END       /* Ctrl-D in an empty line: no more lines */
};

/* Shows the prompt. history: a file for the history, read and written; NULL: none. Returns NULL
 * with a message. */
struct line_editor *line_editor_new(const char *prompt, const char *history, struct error *err);
/* Restores the terminal and writes the history. NULL is allowed. */
void line_editor_free(struct line_editor *e);

/* Reads one key, which must be there. Returns an enum line_event. */
int line_editor_read(struct line_editor *e);
/* The line so far, without its newline; valid until the next call of a function with e. */
const char *line_editor_text(struct line_editor *e);
int line_editor_cursor(struct line_editor *e);
/* Inserts text at the cursor. */
void line_editor_insert(struct line_editor *e, const char *text);

/* Clears the line on the terminal, so that something else can be printed. */
void line_editor_hide(struct line_editor *e);
/* Shows the prompt and the line again. */
void line_editor_show(struct line_editor *e);
