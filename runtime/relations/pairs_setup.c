/* SPDX-License-Identifier: GPL-2.0-only */
/* What each class may do and tell. */
#include "relations/pairs_state.h"
#include <errno.h>
#include <stdlib.h>
#include "os/cpus.h"

int pairs_add_class(struct pairs *p, uint16_t class, uint32_t stage)
{
	uint32_t last = p->config.stages - 1;
	bool cycle = p->config.cycle;
	struct rule *rule;

	if (class == EVENT_LOST || class >= EVENT_CLASSES || stage > last)
		return -EINVAL;
	rule = &p->rules[class];
	rule->place = p->places[stage]++;
	rule->stage = stage;
	rule->previous = stage ? stage - 1 : last;
	rule->can = (stage > 0 || cycle ? EVENT_NO_SECOND : 0) |
		    (stage < last || cycle ? EVENT_NO_FIRST : 0);
	return 0;
}

static int set_integer(struct integer *integer, uint32_t offset, uint32_t size, bool is_signed)
{
	if (size != 1 && size != 2 && size != 4 && size != 8)
		return -EINVAL;
	*integer = (struct integer){offset, size, is_signed};
	return 0;
}

int pairs_set_key(struct pairs *p, uint16_t class, uint32_t offset, uint32_t size,
		  uint32_t is_signed)
{
	return class < EVENT_CLASSES ? set_integer(&p->rules[class].key, offset, size, is_signed)
				     : -EINVAL;
}

int pairs_set_value(struct pairs *p, uint16_t class, uint32_t offset, uint32_t size,
		    uint32_t is_signed)
{
	return class < EVENT_CLASSES ? set_integer(&p->rules[class].value, offset, size, is_signed)
				     : -EINVAL;
}

void pairs_set_end(struct pairs *p, uint16_t class, uint32_t key_offset, uint32_t bits_offset,
		   uint32_t bits_size, uint64_t mask)
{
	struct rule *rule = &p->rules[class & (EVENT_CLASSES - 1)];

	rule->end_key = key_offset;
	rule->end_bits = bits_offset;
	rule->end_is_long = bits_size == 8;
	rule->end_mask = mask;
	rule->tells |= SLEEP;
}

void pairs_set_awake(struct pairs *p, uint16_t class, uint16_t awake)
{
	p->rules[class & (EVENT_CLASSES - 1)].awake = awake & (EVENT_CLASSES - 1);
}

/* Makes an event tell which task a CPU of a machine runs. */
static int set_running(struct pairs *p, uint16_t class, uint32_t machine, struct rule how)
{
	struct rule *rule = &p->rules[class & (EVENT_CLASSES - 1)];

	if (machine >= MACHINES)
		return -EINVAL;
	if (!p->running[machine]) {
		int32_t *running = malloc(CPUS_MAX * sizeof(*running));

		if (!running)
			return -ENOMEM;
		for (int i = 0; i < CPUS_MAX; i++)
			running[i] = NOT_YET;
		p->running[machine] = running;
	}
	rule->machine = machine;
	rule->task = how.task;
	rule->before = how.before;
	rule->target = how.target;
	rule->waker = how.waker;
	rule->tells |= how.tells;
	return 0;
}

int pairs_set_wakeup(struct pairs *p, uint16_t class, uint32_t machine, uint32_t task_offset,
		     uint32_t cpu_offset, uint32_t waker_offset)
{
	return set_running(p, class, machine,
			   (struct rule){.tells = WAKEUP,
					 .task = task_offset,
					 .target = cpu_offset,
					 .waker = waker_offset});
}

int pairs_set_switch(struct pairs *p, uint16_t class, uint32_t machine, uint32_t task_offset,
		     uint32_t before_offset)
{
	return set_running(
		p, class, machine,
		(struct rule){.tells = SWITCH, .task = task_offset, .before = before_offset});
}

void pairs_set_exec(struct pairs *p, uint16_t class, uint32_t machine, bool has_machine,
		    uint32_t task_offset, uint32_t before_offset)
{
	struct rule *rule = &p->rules[class & (EVENT_CLASSES - 1)];

	rule->machine = machine & (MACHINES - 1);
	rule->has_machine = has_machine;
	rule->task = task_offset;
	rule->before = before_offset;
	rule->tells |= EXEC;
}

void pairs_share_keys(struct pairs *p, uint32_t machine)
{
	if (machine < MACHINES)
		p->shares_keys[machine] = true;
}
