// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The period in which a certificate is valid, relative to its creation.
public struct CertificateValidity: Sendable, Hashable {
    /// The start of the period in whole seconds; a negative value is in the past.
    public let notBefore: Duration
    /// The end of the period in whole seconds; a negative value is in the past.
    public let notAfter: Duration

    /// Creates a validity from two offsets from now.
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
