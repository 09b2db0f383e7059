-- SPDX-License-Identifier: GPL-2.0-only
return '0.1'
