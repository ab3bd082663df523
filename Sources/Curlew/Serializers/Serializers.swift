// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The namespace of the response serializers; calls name them by their leading-dot forms, such as `.bytes` or `.text`.
public enum Serializers {}
