// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Ends the process like kill -9: before the n-th step that changes files, in the middle of that step, or after a while.
// In a program that links this library, it replaces functions of the C library.

#ifndef KILL_POINT_H
#define KILL_POINT_H

/// Returns the number of steps so far that change files.
long kill_point_steps(void);

#endif
