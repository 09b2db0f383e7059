/* SPDX-License-Identifier: GPL-2.0-only */
#include "process/line_editor.h"
#include <errno.h>
#include <histedit.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>
#include "error.h"
#include "process/quit.h"

enum { MAX_HISTORY = 1000, END_OF_INPUT = 'D' - '@' };

struct line_editor {
	EditLine *edit;
	History *history;
	FILE *out;
	char *prompt, *file, *line;
	struct termios saved;
	bool wants_completion;
};

static struct line_editor *editor_of(EditLine *edit)
{
	void *data = NULL;

	el_get(edit, EL_CLIENTDATA, &data);
	return data;
}

static char *prompt_of(EditLine *edit)
{
	return editor_of(edit)->prompt;
}

static unsigned char on_tab(EditLine *edit, wint_t key)
{
	(void)key;
	editor_of(edit)->wants_completion = true;
	return CC_NORM;
}

static int set_up(struct line_editor *e, const char *file)
{
	HistEvent event;

	el_set(e->edit, EL_CLIENTDATA, e);
	el_set(e->edit, EL_PROMPT, prompt_of);
	el_set(e->edit, EL_EDITOR, "emacs");
	el_set(e->edit, EL_SIGNAL, 0);
	/* el_set() would copy the strings, and never free them. */
	el_wset(e->edit, EL_ADDFN, L"profscript-complete", L"completes the word", on_tab);
	el_set(e->edit, EL_BIND, "^I", "profscript-complete", NULL);
	el_set(e->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
	e->history = history_init();
	if (!e->history)
		return -ENOMEM;
	history(e->history, &event, H_SETSIZE, MAX_HISTORY);
	history(e->history, &event, H_SETUNIQUE, 1);
	el_set(e->edit, EL_HIST, history, e->history);
	if (file) {
		e->file = strdup(file);
		if (!e->file)
			return -ENOMEM;
		history(e->history, &event, H_LOAD, file); /* it may not exist yet */
	}
	return 0;
}

struct line_editor *line_editor_new(const char *prompt, const char *file, struct error *err)
{
	struct line_editor *e = calloc(1, sizeof(*e));
	int fd = dup(STDOUT_FILENO);

	if (!e || tcgetattr(STDIN_FILENO, &e->saved)) {
		error_set(err, errno, "cannot use the terminal: %s", strerror(errno));
		goto fail;
	}
	e->prompt = strdup(prompt);
	e->out = fd < 0 ? NULL : fdopen(fd, "w");
	e->edit = e->prompt && e->out ? el_init("profscript", stdin, e->out, e->out) : NULL;
	if (!e->edit || set_up(e, file)) {
		error_set(err, ENOMEM, "out of memory for the line editor");
		goto fail;
	}
	quit_set_terminal(&e->saved, "\r\n");
	el_set(e->edit, EL_UNBUFFERED, 1);
	return e;
fail:
	if (fd >= 0 && !(e && e->out))
		close(fd);
	line_editor_free(e);
	return NULL;
}

void line_editor_free(struct line_editor *e)
{
	HistEvent event;

	if (!e)
		return;
	if (e->edit) {
		el_set(e->edit, EL_UNBUFFERED, 0);
		el_end(e->edit);
		quit_set_terminal(NULL, NULL);
		tcsetattr(STDIN_FILENO, TCSADRAIN, &e->saved);
	}
	if (e->history) {
		if (e->file)
			history(e->history, &event, H_SAVE, e->file);
		history_end(e->history);
	}
	if (e->out)
		fclose(e->out);
	free(e->prompt);
	free(e->file);
	free(e->line);
	free(e);
}

/* Takes a complete line, and begins the next one. */
static int take_line(struct line_editor *e, const char *line, int n)
{
	HistEvent event;

	free(e->line);
	e->line = strndup(line, n);
	if (e->line && strspn(e->line, " \t") < strlen(e->line))
		history(e->history, &event, H_ENTER, e->line);
	/* The terminal leaves its raw mode only for this moment: there, a Ctrl-D would be lost. */
	el_set(e->edit, EL_UNBUFFERED, 0);
	el_set(e->edit, EL_UNBUFFERED, 1);
	return LINE_COMPLETE;
}

int line_editor_read(struct line_editor *e)
{
	const char *line;
	int n = 0;

	free(e->line);
	e->line = NULL;
	e->wants_completion = false;
	line = el_gets(e->edit, &n);
	if (!line)
		return n ? LINE_NOTHING : LINE_END;
	if (n == 1 && line[0] == END_OF_INPUT)
		return LINE_END;
	if (e->wants_completion)
		return LINE_TAB;
	if (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
		return take_line(e, line, n - 1);
	return LINE_NOTHING;
}

const char *line_editor_text(struct line_editor *e)
{
	const LineInfo *info;

	if (!e->line) {
		info = el_line(e->edit);
		e->line = strndup(info->buffer, info->lastchar - info->buffer);
	}
	return e->line ? e->line : "";
}

int line_editor_cursor(struct line_editor *e)
{
	const LineInfo *info = el_line(e->edit);

	return info->cursor - info->buffer;
}

void line_editor_insert(struct line_editor *e, const char *text)
{
	el_insertstr(e->edit, text);
	line_editor_show(e);
}

void line_editor_hide(struct line_editor *e)
{
	fputs("\r\033[J", e->out);
	fflush(e->out);
}

void line_editor_show(struct line_editor *e)
{
	el_set(e->edit, EL_REFRESH);
	fflush(e->out);
}
