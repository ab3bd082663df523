// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// From when to when a certificate is valid, counted from the moment it is made.
public struct CertificateValidity: Sendable, Hashable {
    /// When it begins; negative is in the past.
    ///
    /// Whole seconds.
    public let notBefore: Duration
    /// When it ends; negative is in the past.
    ///
    /// Whole seconds.
    public let notAfter: Duration

    /// A validity from two offsets from now.
    public init(notBefore: Duration, notAfter: Duration) {
        self.notBefore = notBefore
        self.notAfter = notAfter
    }

    /// From an hour ago to a day from now.
    public static let current = CertificateValidity(notBefore: .seconds(-3600), notAfter: .seconds(86_400))
    /// From two days ago to yesterday.
    public static let expired = CertificateValidity(notBefore: .seconds(-172_800), notAfter: .seconds(-86_400))
    /// From tomorrow to the day after.
    public static let notYetValid = CertificateValidity(notBefore: .seconds(86_400), notAfter: .seconds(172_800))
}
