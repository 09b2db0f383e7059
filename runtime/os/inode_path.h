/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Paths of files by their inode, as events of file systems have it.
 */
#pragma once
#include <stdint.h>

/*
 * Stores the path of a file on the file system that is mounted at a path, without a null byte.
 * Returns its length, or a negative errno: -ENOENT if the kernel has no name of it at hand, -ESTALE
 * if there is no such file, and -EPERM without CAP_DAC_READ_SEARCH. File systems whose handles are
 * others than those of ext4 also return -ESTALE.
 */
int32_t inode_path(const char *mount, uint32_t inode, char *path, uint64_t size);
