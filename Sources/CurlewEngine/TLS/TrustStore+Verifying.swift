// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

extension TrustStore {
    /// OpenSSL's verdict on a chain.
    package struct Verdict: Sendable {
        /// The chain from the server's own certificate to the root; empty when there is no valid chain.
        package var chain: [X509Certificate] = []
        /// Whether the server's own certificate is one of the roots.
        package var isAnchor = false
        /// The reason for rejecting the chain; nil for a valid chain.
        package var error: String?
        package var kind = Kind.other
        /// The index of the rejected certificate, 0 for the server's own.
        package var depth = 0
        /// The rejected certificate.
        package var rejectedCertificate: X509Certificate?

        package init(
            chain: [X509Certificate] = [], isAnchor: Bool = false, error: String? = nil, kind: Kind = .other,
            depth: Int = 0, rejectedCertificate: X509Certificate? = nil
        ) {
            self.chain = chain
            self.isAnchor = isAnchor
            self.error = error
            self.kind = kind
            self.depth = depth
            self.rejectedCertificate = rejectedCertificate
        }

        package enum Kind: Sendable { case unanchored, validity, noList, staleList, noRoots, authority, other }
    }

    /// The status of a certificate in an OCSP response, or the reason why the response is unusable (RFC 6960).
    package enum OCSPReading: Sendable {
        case good, revoked, unknown, unsuccessful, malformed, forged, stale, other, noIssuer
    }

    /// Verifies a chain for a TLS server (RFC 5280 §6).
    ///
    /// - Parameters:
    ///   - served: The certificates that the server sent, its own first.
    ///   - lists: Revocation lists; every checked certificate needs one. If empty, revocation is not checked.
    ///   - checksChain: Whether revocation is checked for the whole chain or only for the server's certificate.
    ///   - isStrict: Whether RFC 5280's requirements on conforming authorities are enforced too.
    ///   - now: The current time in seconds since 1970.
    package func verify(
        _ served: [X509Certificate], lists: [X509RevocationList] = [], checksChain: Bool = false,
        isStrict: Bool = false, now: Int64
    ) -> Verdict {
        let certificates: [OpaquePointer?] = served.map(\.pointer)
        let pointers: [OpaquePointer?] = lists.map(\.pointer)
        var verdict = curlew_verdict()
        certificates.withUnsafeBufferPointer { certificates in
            pointers.withUnsafeBufferPointer { lists in
                var question = curlew_verify_input(
                    served: certificates.baseAddress, served_count: CInt(certificates.count), lists: lists.baseAddress,
                    list_count: CInt(lists.count), checks_chain: checksChain, is_strict: isStrict, now: now)
                curlew_verify(pointer, &question, &verdict)
            }
        }
        withExtendedLifetime((served, lists)) {}
        defer { curlew_stack_free(verdict.chain) }
        guard verdict.code != X509_V_OK else {
            return Verdict(chain: X509Certificate.all(of: verdict.chain), isAnchor: verdict.is_anchor)
        }
        return Verdict(
            error: String(cString: X509_verify_cert_error_string(Int(verdict.code))), kind: .init(verdict.code),
            depth: Int(verdict.depth), rejectedCertificate: X509Certificate(verdict.rejectedCertificate))
    }

    /// Reads the status of the first certificate of a verified chain from an OCSP response.
    package func read(ocspResponse: [UInt8], chain: [X509Certificate], now: Int64) -> OCSPReading {
        let certificates: [OpaquePointer?] = chain.map(\.pointer)
        let result = certificates.withUnsafeBufferPointer { certificates in
            ocspResponse.withUnsafeBufferPointer { ocspResponse in
                curlew_ocsp_read(
                    pointer, ocspResponse.baseAddress, ocspResponse.count, certificates.baseAddress,
                    CInt(certificates.count), now)
            }
        }
        withExtendedLifetime(chain) {}
        return switch Int(result) {
        case Int(curlew_ocsp_good): .good
        case Int(curlew_ocsp_revoked): .revoked
        case Int(curlew_ocsp_unknown): .unknown
        case Int(curlew_ocsp_unsuccessful): .unsuccessful
        case Int(curlew_ocsp_no_issuer): .noIssuer
        case Int(curlew_ocsp_forged): .forged
        case Int(curlew_ocsp_stale): .stale
        case Int(curlew_ocsp_other): .other
        default: .malformed
        }
    }
}

extension TrustStore.Verdict.Kind {
    fileprivate init(_ code: CInt) {
        switch code {
        case X509_V_ERR_CERT_HAS_EXPIRED, X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_ERROR_IN_CERT_NOT_AFTER_FIELD,
            X509_V_ERR_ERROR_IN_CERT_NOT_BEFORE_FIELD:
            self = .validity
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
            X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_CERT_UNTRUSTED:
            self = .unanchored
        case X509_V_ERR_UNABLE_TO_GET_CRL, X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER, X509_V_ERR_DIFFERENT_CRL_SCOPE:
            self = .noList
        case X509_V_ERR_CRL_HAS_EXPIRED, X509_V_ERR_CRL_NOT_YET_VALID, X509_V_ERR_CRL_SIGNATURE_FAILURE,
            X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE, X509_V_ERR_KEYUSAGE_NO_CRL_SIGN,
            X509_V_ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD, X509_V_ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD,
            X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION, X509_V_ERR_CRL_PATH_VALIDATION_ERROR:
            self = .staleList
        default: self = .other
        }
    }
}
