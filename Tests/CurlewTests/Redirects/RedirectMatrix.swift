// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

@testable import Curlew

/// The expected outcome of every redirect, written by hand.
///
/// A row is: section (of RFC 9110 unless another RFC is named) | status | method | URL | content | policy |
/// Location | next request: method, URL, content. Instead of the next request: "result" if the response is the
/// result, or "error" and the kind.
///
/// Content is a letter for each field (see ``fields``), or "-" if there are no fields, then "+b" if there is a body.
/// Policies are `follow`, `down` (follow, allowing a downgrade), `none`, `same` (same origin) and `keep` (follow,
/// withholding X-Tenant). A Location is the value after one space, or "(none)", "(empty)", "(long)" (8193 bytes),
/// "(full)" (8192 bytes), "(same) x" (the field x twice) or "(two) x y" (two fields). "␣" is a space, "␉" a tab,
/// "␀" a NUL.
enum RedirectMatrix {
    static let fields: [Character: HeaderName] = [
        "A": "Authorization", "K": "Cookie", "Y": "x-api-key", "Z": "X-Auth-Token",
        "S": "X-Amz-Security-Token", "V": "X-CSRF-Token", "T": "X-Tenant",
        "C": "Content-Type", "L": "content-language", "N": "Content-Encoding", "H": "Content-Digest",
        "B": "Content-Disposition", "F": "Content-Location", "J": "Content-Range",
        "D": "Digest", "R": "Repr-Digest", "W": "Want-Content-Digest", "M": "Last-Modified", "E": "expect",
        "Q": "Trailer",
        "G": "Accept", "U": "User-Agent", "I": "If-None-Match", "O": "Range", "X": "X-Content-Trace",
        "i": "Idempotency-Key",
    ]

    static let rows: [Substring] = [methods, results, origins, locations, refusals, policies]
        .flatMap { $0.split(separator: "\n") }.filter { !$0.hasPrefix("#") }

    private static let methods = """
        15.4.2 | 301 | GET | http://a/x | AKG | follow | /y | GET http://a/y AKG
        15.4.2 | 301 | HEAD | http://a/x | AKG | follow | /y | HEAD http://a/y AKG
        15.4.2 | 301 | POST | http://a/x | ACG+b | follow | /y | GET http://a/y AG
        15.4.2 | 301 | POST | http://a/x | CLG | follow | /y | GET http://a/y G
        15.4.2 | 301 | PUT | http://a/x | ACG+b | follow | /y | PUT http://a/y ACG+b
        15.4.2 | 301 | PATCH | http://a/x | CLG+b | follow | /y | PATCH http://a/y CLG+b
        15.4.2 | 301 | DELETE | http://a/x | IG | follow | /y | DELETE http://a/y IG
        15.4.2 | 301 | OPTIONS | http://a/x | G | follow | /y | OPTIONS http://a/y G
        15.4.2 | 301 | TRACE | http://a/x | G | follow | /y | TRACE http://a/y G
        15.4.2 | 301 | PURGE | http://a/x | CG+b | follow | /y | PURGE http://a/y CG+b
        9.1 | 301 | post | http://a/x | CG+b | follow | /y | post http://a/y CG+b
        15.4.2 | 301 | GET | http://a/x | CG+b | follow | /y | GET http://a/y CG+b
        15.4.3 | 302 | GET | http://a/x | AKG | follow | /y | GET http://a/y AKG
        15.4.3 | 302 | HEAD | http://a/x | AKG | follow | /y | HEAD http://a/y AKG
        15.4.3 | 302 | POST | http://a/x | ACG+b | follow | /y | GET http://a/y AG
        15.4.3 | 302 | POST | http://a/x | G | follow | /y | GET http://a/y G
        15.4.3 | 302 | PUT | http://a/x | ACG+b | follow | /y | PUT http://a/y ACG+b
        15.4.3 | 302 | PATCH | http://a/x | CLG+b | follow | /y | PATCH http://a/y CLG+b
        15.4.3 | 302 | DELETE | http://a/x | IG | follow | /y | DELETE http://a/y IG
        15.4.3 | 302 | DELETE | http://a/x | CG+b | follow | /y | DELETE http://a/y CG+b
        15.4.3 | 302 | OPTIONS | http://a/x | G | follow | /y | OPTIONS http://a/y G
        15.4.3 | 302 | TRACE | http://a/x | G | follow | /y | TRACE http://a/y G
        15.4.3 | 302 | PURGE | http://a/x | CG+b | follow | /y | PURGE http://a/y CG+b
        9.1 | 302 | Post | http://a/x | CG+b | follow | /y | Post http://a/y CG+b
        15.4.4 | 303 | GET | http://a/x | AKG | follow | /y | GET http://a/y AKG
        15.4.4 | 303 | HEAD | http://a/x | AKG | follow | /y | HEAD http://a/y AKG
        15.4.4 | 303 | POST | http://a/x | ACG+b | follow | /y | GET http://a/y AG
        15.4.4 | 303 | PUT | http://a/x | ACG+b | follow | /y | GET http://a/y AG
        15.4.4 | 303 | PATCH | http://a/x | CLG+b | follow | /y | GET http://a/y G
        15.4.4 | 303 | DELETE | http://a/x | IG | follow | /y | GET http://a/y IG
        15.4.4 | 303 | OPTIONS | http://a/x | CG+b | follow | /y | GET http://a/y G
        15.4.4 | 303 | TRACE | http://a/x | G | follow | /y | GET http://a/y G
        15.4.4 | 303 | PURGE | http://a/x | CG+b | follow | /y | GET http://a/y G
        15.4.4 | 303 | get | http://a/x | CG+b | follow | /y | GET http://a/y G
        15.4.4 | 303 | GET | http://a/x | CG+b | follow | /y | GET http://a/y CG+b
        15.4.8 | 307 | GET | http://a/x | AKG | follow | /y | GET http://a/y AKG
        15.4.8 | 307 | HEAD | http://a/x | AKG | follow | /y | HEAD http://a/y AKG
        15.4.8 | 307 | POST | http://a/x | ACG+b | follow | /y | POST http://a/y ACG+b
        15.4.8 | 307 | POST | http://a/x | CLNHBDREMQWGi+b | follow | /y | POST http://a/y CLNHBDREMQWGi+b
        15.4.8 | 307 | PUT | http://a/x | ACG+b | follow | /y | PUT http://a/y ACG+b
        15.4.8 | 307 | PATCH | http://a/x | CLG+b | follow | /y | PATCH http://a/y CLG+b
        15.4.8 | 307 | DELETE | http://a/x | IG | follow | /y | DELETE http://a/y IG
        15.4.8 | 307 | OPTIONS | http://a/x | G | follow | /y | OPTIONS http://a/y G
        15.4.8 | 307 | PURGE | http://a/x | CG+b | follow | /y | PURGE http://a/y CG+b
        15.4.9 | 308 | GET | http://a/x | AKG | follow | /y | GET http://a/y AKG
        15.4.9 | 308 | HEAD | http://a/x | AKG | follow | /y | HEAD http://a/y AKG
        15.4.9 | 308 | POST | http://a/x | ACG+b | follow | /y | POST http://a/y ACG+b
        15.4.9 | 308 | PUT | http://a/x | ACG+b | follow | /y | PUT http://a/y ACG+b
        15.4.9 | 308 | PATCH | http://a/x | CLG+b | follow | /y | PATCH http://a/y CLG+b
        15.4.9 | 308 | DELETE | http://a/x | CG+b | follow | /y | DELETE http://a/y CG+b
        15.4.9 | 308 | TRACE | http://a/x | G | follow | /y | TRACE http://a/y G
        15.4.9 | 308 | PURGE | http://a/x | CG+b | follow | /y | PURGE http://a/y CG+b
        # Fields of the body go with it, others stay (15.4, item 5).
        15.4 | 301 | POST | http://a/x | CLNHBFJG+b | follow | /y | GET http://a/y G
        15.4 | 302 | POST | http://a/x | DREMQG+b | follow | /y | GET http://a/y G
        15.4 | 303 | PUT | http://a/x | WUIOXiKA+b | follow | /y | GET http://a/y WUIOXiKA
        15.4 | 303 | PATCH | http://a/x | GCULIDX+b | follow | /y | GET http://a/y GUIX
        15.4 | 303 | HEAD | http://a/x | CDG | follow | /y | HEAD http://a/y CDG
        15.4 | 301 | PUT | http://a/x | CLNHBDREMQG+b | follow | /y | PUT http://a/y CLNHBDREMQG+b
        """

    private static let results = """
        10.2.2 | 200 | GET | http://a/x | G | follow | /y | result
        10.2.2 | 201 | POST | http://a/x | CG+b | follow | /y | result
        10.2.2 | 202 | POST | http://a/x | CG+b | follow | /y | result
        10.2.2 | 204 | PUT | http://a/x | CG+b | follow | /y | result
        10.2.2 | 206 | GET | http://a/x | OG | follow | /y | result
        15.4.1 | 300 | GET | http://a/x | G | follow | /y | result
        15.4.1 | 300 | POST | http://a/x | CG+b | follow | http://b/y | result
        15.4.5 | 304 | GET | http://a/x | IG | follow | /y | result
        15.4.6 | 305 | GET | http://a/x | G | follow | http://proxy:3128/ | result
        15.4.7 | 306 | GET | http://a/x | G | follow | /y | result
        15 | 309 | GET | http://a/x | G | follow | /y | result
        15 | 399 | POST | http://a/x | G+b | follow | /y | result
        15.5.1 | 400 | GET | http://a/x | G | follow | /y | result
        15.5.2 | 401 | GET | http://a/x | G | follow | /y | result
        15.5.5 | 404 | GET | http://a/x | G | follow | /y | result
        15.6.4 | 503 | GET | http://a/x | G | follow | /y | result
        10.2.2 | 404 | GET | http://a/x | G | follow | ftp://b/ | result
        15.4.2 | 301 | GET | http://a/x | G | follow | (none) | result
        15.4.3 | 302 | POST | http://a/x | CG+b | follow | (none) | result
        15.4.4 | 303 | PUT | http://a/x | CG+b | follow | (none) | result
        15.4.8 | 307 | POST | http://a/x | CG+b | follow | (none) | result
        15.4.9 | 308 | HEAD | http://a/x | G | follow | (none) | result
        """

    private static let origins = """
        15.4 | 301 | GET | http://a/x | AKYZSVTG | follow | http://b/y | GET http://b/y TG
        15.4 | 302 | GET | http://a/x | AKYZSVTG | keep | http://b/y | GET http://b/y G
        15.4 | 302 | GET | http://a/x | AKYZSVTG | keep | http://a/y | GET http://a/y AKYZSVTG
        15.4 | 302 | GET | http://a/x | AKTG | keep | /y | GET http://a/y AKTG
        15.4 | 303 | POST | http://a/x | ACTG+b | keep | http://b/y | GET http://b/y G
        15.4 | 307 | POST | http://a/x | ACTG+b | keep | http://b/y | POST http://b/y CG+b
        15.4 | 308 | PUT | http://a/x | KCIG+b | follow | http://b/y | PUT http://b/y CIG+b
        15.4 | 307 | DELETE | http://a/x | YG | follow | http://b/y | DELETE http://b/y G
        15.4 | 301 | HEAD | http://a/x | ZUG | follow | http://b/y | HEAD http://b/y UG
        RFC6454-4 | 302 | GET | http://a/x | AG | follow | http://a:81/y | GET http://a:81/y G
        RFC6454-4 | 302 | GET | http://a:81/x | AG | follow | http://a/y | GET http://a/y G
        RFC6454-4 | 302 | GET | http://a/x | AG | follow | https://a/y | GET https://a/y G
        RFC6454-4 | 302 | GET | https://a/x | AG | down | http://a/y | GET http://a/y G
        RFC6454-4 | 302 | GET | http://a:443/x | AG | follow | https://a/y | GET https://a/y G
        RFC6454-4 | 302 | GET | https://a:80/x | AG | down | http://a/y | GET http://a/y G
        RFC6454-4 | 302 | GET | http://a.test/x | AG | follow | http://www.a.test/y | GET http://www.a.test/y G
        RFC6454-4 | 302 | GET | http://www.a.test/x | AG | follow | http://a.test/y | GET http://a.test/y G
        RFC6454-4 | 302 | GET | http://a.test/x | AG | follow | http://a.test./y | GET http://a.test./y G
        RFC6454-4 | 302 | GET | http://a.test/x | AG | follow | http://xa.test/y | GET http://xa.test/y G
        RFC6454-4 | 302 | GET | http://127.0.0.1/x | AG | follow | http://localhost/y | GET http://localhost/y G
        4.2.3 | 302 | GET | http://a/x | AG | follow | http://a:80/y | GET http://a/y AG
        4.2.3 | 302 | GET | http://a:80/x | AG | follow | http://a/y | GET http://a/y AG
        4.2.3 | 302 | GET | https://a/x | AG | follow | https://a:443/y | GET https://a/y AG
        4.2.3 | 302 | GET | http://a/x | AG | follow | HTTP://A/y | GET http://a/y AG
        4.2.3 | 302 | GET | http://A:081/x | AG | follow | http://a:81/y | GET http://a:81/y AG
        RFC5890 | 302 | GET | http://é.test/ | AG | follow | http://xn--9ca.test/y | GET http://xn--9ca.test/y AG
        RFC5952-4 | 302 | GET | http://[::1]:81/ | AG | follow | //[0::0:1]:81/y | GET http://[::1]:81/y AG
        RFC5952-4 | 302 | GET | http://[::1]/ | AG | follow | http://[::2]/y | GET http://[::2]/y G
        RFC3986-4.2 | 302 | GET | http://a/x | AG | follow | //b/y | GET http://b/y G
        RFC3986-4.2 | 302 | GET | https://a/x | AG | follow | //b/y | GET https://b/y G
        RFC3986-4.2 | 302 | GET | https://a/x | AG | follow | //a/y | GET https://a/y AG
        4.2.4 | 302 | GET | http://u:p@a/x | G | follow | /y | GET http://u:p@a/y G
        4.2.4 | 302 | GET | http://u:p@a/x | G | follow | ?z | GET http://u:p@a/x?z G
        4.2.4 | 302 | GET | http://u:p@a/x | G | follow | http://a/y | GET http://u:p@a/y G
        4.2.4 | 302 | GET | https://u@a:8443/x | G | follow | HTTPS://A:8443 | GET https://u@a:8443/ G
        4.2.4 | 302 | GET | http://u:p@[::1]/x | G | follow | //[::1]/y | GET http://u:p@[::1]/y G
        4.2.4 | 307 | POST | http://u:p@a/x | CG+b | follow | http://b/y | POST http://b/y CG+b
        4.2.4 | 302 | GET | http://u:p@a/x | G | follow | https://a/y | GET https://a/y G
        4.2.4 | 302 | GET | https://u:p@a/x | AG | down | http://a/y | GET http://a/y G
        """

    private static let locations = """
        10.2.2 | 301 | GET | http://a/d/e/p?q | G | follow | y | GET http://a/d/e/y G
        10.2.2 | 301 | GET | http://a/d/e/p?q | G | follow | ./y | GET http://a/d/e/y G
        10.2.2 | 301 | GET | http://a/d/e/p?q | G | follow | ../y?r | GET http://a/d/y?r G
        10.2.2 | 301 | GET | http://a/d/e/p?q | G | follow | ../../../y | GET http://a/y G
        10.2.2 | 301 | GET | http://a/d/e/p?q | G | follow | /y/./z/../w | GET http://a/y/w G
        10.2.2 | 301 | GET | http://a/d/e/p?q | G | follow | ?r=1 | GET http://a/d/e/p?r=1 G
        10.2.2 | 301 | GET | http://a/d/e/p?q | G | follow | ? | GET http://a/d/e/p? G
        10.2.2 | 301 | GET | http://a/d/e/p?q | G | follow | . | GET http://a/d/e/ G
        10.2.2 | 301 | GET | http://a | G | follow | y | GET http://a/y G
        RFC3986-4.4 | 302 | POST | http://a/d/p?q | CG+b | follow | (empty) | GET http://a/d/p?q G
        RFC3986-4.4 | 307 | POST | http://a/d/p?q | CG+b | follow | #s | POST http://a/d/p?q#s CG+b
        10.2.2 | 302 | GET | http://a/x#top | G | follow | /y | GET http://a/y#top G
        10.2.2 | 302 | GET | http://a/x#top | G | follow | /y#s | GET http://a/y#s G
        10.2.2 | 302 | GET | http://a/x#top | G | follow | /y# | GET http://a/y# G
        10.2.2 | 302 | GET | http://a/x#top | AG | follow | http://b/y | GET http://b/y#top G
        10.2.2 | 302 | GET | http://a/x#a?b#c | G | follow | ?z | GET http://a/x?z#a?b#c G
        10.2.2 | 302 | GET | http://a/x# | G | follow | y | GET http://a/y# G
        10.2.2 | 302 | GET | http://a/x | G | follow | http://b | GET http://b/ G
        10.2.2 | 302 | GET | http://a/x | G | follow | http://b?z | GET http://b/?z G
        5.5 | 302 | GET | http://a/x | G | follow | ␣␉/y␣␉ | GET http://a/y G
        5.5 | 302 | GET | http://a/x | G | follow | ␣␉ | GET http://a/x G
        RFC3986-2.1 | 302 | GET | http://a/x | G | follow | /a␣b | GET http://a/a%20b G
        RFC3986-2.5 | 302 | GET | http://a/x | G | follow | /é?ü | GET http://a/%C3%A9?%C3%BC G
        RFC3986-2.4 | 302 | GET | http://a/x | G | follow | /%2e%2E/%zz | GET http://a/%2e%2E/%25zz G
        RFC3986-2.1 | 302 | GET | http://a/x | G | follow | /a"<>^`{}c | GET http://a/a%22%3C%3E%5E%60%7B%7Dc G
        RFC3986-3.3 | 302 | GET | http://a/x | AG | follow | \\\\b\\y | GET http://a/%5C%5Cb%5Cy AG
        RFC3986-3.3 | 302 | GET | http://a/x | AG | follow | /\\b/y | GET http://a/%5Cb/y AG
        RFC3986-3.3 | 302 | GET | http://a/d/x | AG | follow | /.//b/y | GET http://a//b/y AG
        RFC3986-3.3 | 302 | GET | http://a/x | AG | follow | u@b/y | GET http://a/u@b/y AG
        RFC3986-4.2 | 302 | GET | http://a/x | AG | follow | ./b:81/y | GET http://a/b:81/y AG
        RFC3986-3.1 | 302 | GET | http://a/x | AG | follow | 1http://b/y | GET http://a/1http://b/y AG
        RFC5890 | 302 | GET | http://a/x | AG | follow | http://bücher.test/y | GET http://xn--bcher-kva.test/y G
        10.2.2 | 302 | GET | http://a/x | G | follow | (same) /y | GET http://a/y G
        10.2.2 | 302 | GET | http://a/x | G | follow | /y,/z | GET http://a/y,/z G
        4.1 | 302 | GET | http://a/x | G | follow | (full) | GET (full) G
        """

    private static let refusals = """
        15.4 | 302 | GET | http://a/x | G | follow | ftp://b/y | error invalid_response
        15.4 | 301 | GET | http://a/x | G | follow | file:///etc/passwd | error invalid_response
        15.4 | 303 | POST | http://a/x | CG+b | follow | javascript:alert(1) | error invalid_response
        15.4 | 307 | POST | http://a/x | CG+b | follow | mailto:u@b | error invalid_response
        15.4 | 308 | GET | http://a/x | G | follow | b:81/y | error invalid_response
        RFC3986-5.2.2 | 302 | GET | http://a/x | G | follow | http:y | error invalid_response
        RFC3986-5.3 | 302 | GET | http://a/x | G | follow | http:/.//u@b/ | error invalid_response
        4.2.1 | 302 | GET | http://a/x | G | follow | http:///y | error invalid_response
        4.2.1 | 302 | GET | http://a/x | G | follow | // | error invalid_response
        4.2.1 | 302 | GET | http://a/x | G | follow | http:\\\\b\\y | error invalid_response
        4.2.1 | 302 | GET | http://a/x | G | follow | http://b\\c/ | error invalid_response
        RFC3986-3.2.3 | 302 | GET | http://a/x | G | follow | http://b:99999/ | error invalid_response
        RFC3986-3.2.2 | 302 | GET | http://a/x | G | follow | http://[::1/ | error invalid_response
        RFC3986-3.2.2 | 302 | GET | http://a/x | G | follow | http://127.1/ | error invalid_response
        5.5 | 302 | GET | http://a/x | G | follow | /y␀ | error invalid_response
        5.5 | 302 | GET | http://a/x | G | follow | /y#␉z | error invalid_response
        4.2.4 | 302 | GET | http://a/x | G | follow | http://u:p@b/ | error invalid_response
        4.2.4 | 302 | GET | http://a/x | G | follow | http://u@a/ | error invalid_response
        4.2.4 | 302 | GET | http://u:p@a/x | G | follow | http://u:p@a/ | error invalid_response
        4.2.4 | 302 | GET | http://a/x | G | follow | //u@b/ | error invalid_response
        4.2.4 | 302 | GET | http://a/x | G | follow | http://@b/ | error invalid_response
        10.2.2 | 302 | GET | http://a/x | G | follow | (two) /y /z | error invalid_response
        4.1 | 302 | GET | http://a/x | G | follow | (long) | error invalid_response
        """

    private static let policies = """
        15.4 | 301 | GET | http://a/x | AG | none | /y | result
        15.4 | 302 | POST | http://a/x | CG+b | none | http://b/y | result
        15.4 | 303 | PUT | http://a/x | CG+b | none | /y | result
        15.4 | 307 | POST | http://a/x | CG+b | none | /y | result
        15.4 | 308 | HEAD | http://a/x | G | none | /y | result
        15.4 | 302 | GET | http://a/x | G | none | ftp://b/y | result
        15.4 | 302 | GET | http://a/x | G | none | (two) /y /z | result
        15.4 | 301 | GET | http://a/x | AKG | same | /y | GET http://a/y AKG
        15.4 | 302 | POST | http://a/x | ACG+b | same | http://a:80/y | GET http://a/y AG
        15.4 | 303 | PUT | http://a/x | CG+b | same | //a/y | GET http://a/y G
        15.4 | 307 | POST | http://a/x | CG+b | same | ?z | POST http://a/x?z CG+b
        15.4 | 308 | PUT | http://u@a/x | CG+b | same | http://a/y | PUT http://u@a/y CG+b
        15.4 | 301 | GET | http://a/x | AKG | same | http://b/y | result
        15.4 | 302 | POST | http://a/x | CG+b | same | http://a:81/y | result
        15.4 | 303 | PUT | http://a/x | CG+b | same | https://a/y | result
        15.4 | 307 | POST | https://a/x | CG+b | same | http://a/y | result
        15.4 | 307 | POST | https://a/x | CG+b | follow | http://a/y | error redirect_refused
        15.4 | 308 | PUT | https://a/x | CG+b | keep | http://b/y | error redirect_refused
        15.4 | 303 | POST | https://a/x | CG+b | follow | http://a:443/y | error redirect_refused
        15.4 | 301 | GET | https://a/x | AG | follow | HTTP://b/y | error redirect_refused
        15.4 | 302 | GET | https://a/x | AG | none | http://a/y | result
        15.4 | 307 | POST | https://a/x | CTG+b | down | http://a/y | POST http://a/y CTG+b
        15.4 | 308 | GET | http://a/x | G | same | //b/y | result
        15.4 | 308 | GET | http://a/x | G | same | (none) | result
        """
}
