/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files that are written. As the kernel does with fs.protected_symlinks, the link of another user
 * in a folder like /tmp is not followed: it would make root overwrite what that user has chosen.
 */
#pragma once
#include <stdint.h>

/* As open(2). Returns a descriptor or a negative errno, which is -ELOOP for such a link. */
int32_t own_file_open(const char *path, int32_t flags, uint32_t mode);
/* Returns -ELOOP if the path is such a link, 0 otherwise. */
int32_t own_file_check(const char *path);
