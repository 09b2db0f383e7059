-- SPDX-License-Identifier: GPL-2.0-only
--- The bits of common_flags (enum trace_flag_type in the kernel).
return {
  IRQS_OFF = 0x01, NEED_RESCHED_LAZY = 0x02, NEED_RESCHED = 0x04, HARDIRQ = 0x08,
  SOFTIRQ = 0x10, PREEMPT_RESCHED = 0x20, NMI = 0x40, BH_OFF = 0x80,
}
