-- SPDX-License-Identifier: GPL-2.0-only
--- Test load for split locks (split-lock --test).
return { start = require('bindings.base.sys').split_locks }
