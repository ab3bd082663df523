// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The namespace of the stream serializers; calls name them by their leading-dot forms, such as `.lines` or
/// `.ndjson()`.
public enum Streams {}
