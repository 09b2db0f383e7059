/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files as other processes see them: below their root directory, or by what they have mapped.
 * Opening never blocks, whatever a path leads to, and opens only regular files.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Opens the file at path for reading. root: NULL, or the directory that is the root for the path
 * and its symbolic links. Returns a descriptor or a negative errno. */
int process_file_open(const char *root, const char *path);

/* Opens the file that process pid has mapped at start..end, wherever its path leads now. inode: the
 * one it must have; 0: any. Returns -ESTALE if another file is mapped there now. */
int process_file_open_mapped(int32_t pid, uint64_t start, uint64_t end, uint64_t inode);

/* Opens the file that the kernel calls path (without " (deleted)" at its end), below the root of
 * process pid (0: none) or else below ours. inode: the one it must have; 0: any. Returns -ESTALE if
 * it is another file now. */
int process_file_open_same(int32_t pid, const char *path, uint64_t inode);

/* Returns the length of the path without the kernel's " (deleted)". */
int process_file_path_len(const char *path);
