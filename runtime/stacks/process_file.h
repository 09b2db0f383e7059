/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files as other processes see them: below their root directory, or by what they have mapped.
 * Nothing that a path leads to makes an open hang, and only regular files are opened.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Opens the file at path for reading. root: NULL, or a directory that is the root for the path and
 * the symbolic links in it. A descriptor or a negative errno. */
int process_file_open(const char *root, const char *path);

/* Opens the file that process pid has mapped at start..end, wherever its path leads by now. inode:
 * what it must have, 0: any. -ESTALE: another is mapped there by now. */
int process_file_open_mapped(int32_t pid, uint64_t start, uint64_t end, uint64_t inode);

/* Opens the file that the kernel calls path (" (deleted)" at its end is left out), below the root
 * of process pid (0: none) or else below ours. inode: what it must have, 0: any. -ESTALE: it is
 * another file by now. */
int process_file_open_same(int32_t pid, const char *path, uint64_t inode);

/* Length of the path without the " (deleted)" that the kernel puts behind it. */
int process_file_path_len(const char *path);
