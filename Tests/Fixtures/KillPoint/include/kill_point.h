// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// A process that ends itself as kill -9 would: before the n-th step that changes files, in the middle of it, or after a
// while. A program that links this has it in place of the C library's own functions.

#ifndef KILL_POINT_H
#define KILL_POINT_H

/// How many steps that change files there were.
long kill_point_steps(void);

#endif
