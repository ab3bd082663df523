// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The table of retry decisions: in every row, all attempts have the same outcome.
///
/// Columns: the policy (`RetryDecisionTests.policies`); the method; the body (`once` can be read once and was read,
/// `unread` can be read once and was not read, `stream+` can be replayed); whether the request has an
/// `Idempotency-Key`; the outcome of each attempt (a status, an error and its phase, or an error with a response); the
/// wait that the server asks for, in seconds or as `RateLimit`; the waits in seconds between the attempts, `-` if there
/// is only one attempt.
///
/// The waits are a backoff of 1, 2, 4 s without jitter; 10, 20, 40 s for `due` and `total`. The wait that the server
/// asks for is added if there is time for both. The clock advances only by waits.
enum RetryDecisions {
    static let table = """
        # Failures before the server can act on the request: retried with every method.
        two     GET     none    -    cannotResolve@resolving      -          1 2
        two     POST    none    -    cannotResolve@resolving      -          1 2
        two     GET     none    -    cannotConnect@connecting     -          1 2
        two     POST    none    -    cannotConnect@connecting     -          1 2
        two     PURGE   none    -    cannotConnect@connecting     -          1 2
        two     GET     none    -    timedOut@queued              -          1 2
        two     POST    none    -    timedOut@queued              -          1 2
        two     GET     none    -    timedOut@connecting          -          1 2
        two     POST    none    -    timedOut@connecting          -          1 2
        two     GET     none    -    timedOut@securing            -          1 2
        two     POST    none    -    timedOut@securing            -          1 2
        two     GET     none    -    connectionLost@connecting    -          1 2
        two     POST    none    -    connectionLost@connecting    -          1 2
        two     GET     none    -    connectionLost@securing      -          1 2
        two     POST    none    -    connectionLost@securing      -          1 2
        two     GET     none    -    resourceExhausted@preparing  -          1 2
        two     POST    none    -    resourceExhausted@preparing  -          1 2
        two     GET     none    -    resourceExhausted@connecting -          1 2
        two     POST    none    -    resourceExhausted@connecting -          1 2
        two     GET     none    -    streamRefused@waiting        -          1 2
        two     POST    none    -    streamRefused@waiting        -          1 2
        # Failures after the server may have acted: retried with idempotent methods (RFC 9110 §9.2.2) or a key.
        two     GET     none    -    timedOut@sending             -          1 2
        two     POST    none    -    timedOut@sending             -          -
        two     POST    none    yes  timedOut@sending             -          1 2
        two     GET     none    -    timedOut@waiting             -          1 2
        two     POST    none    -    timedOut@waiting             -          -
        two     POST    none    yes  timedOut@waiting             -          1 2
        two     GET     none    -    timedOut@receiving           -          1 2
        two     POST    none    -    timedOut@receiving           -          -
        two     POST    none    yes  timedOut@receiving           -          1 2
        two     GET     none    -    connectionLost@sending       -          1 2
        two     POST    none    -    connectionLost@sending       -          -
        two     POST    none    yes  connectionLost@sending       -          1 2
        two     GET     none    -    connectionLost@waiting       -          1 2
        two     POST    none    -    connectionLost@waiting       -          -
        two     POST    none    yes  connectionLost@waiting       -          1 2
        two     GET     none    -    connectionLost@receiving     -          1 2
        two     POST    none    -    connectionLost@receiving     -          -
        two     POST    none    yes  connectionLost@receiving     -          1 2
        two     GET     none    -    resourceExhausted@receiving  -          1 2
        two     POST    none    -    resourceExhausted@receiving  -          -
        two     POST    none    yes  resourceExhausted@receiving  -          1 2
        two     GET     none    -    invalidResponse@waiting      -          1 2
        two     POST    none    -    invalidResponse@waiting      -          -
        two     POST    none    yes  invalidResponse@waiting      -          1 2
        two     GET     none    -    truncatedEncoding@decoding   -          1 2
        two     POST    none    -    truncatedEncoding@decoding   -          -
        two     POST    none    yes  truncatedEncoding@decoding   -          1 2
        two     GET     none    -    corruptEncoding@decoding     -          1 2
        two     POST    none    -    corruptEncoding@decoding     -          -
        two     POST    none    yes  corruptEncoding@decoding     -          1 2
        # Every method, with one failure after which the server may have acted and one before it can.
        two     HEAD    none    -    connectionLost@waiting       -          1 2
        two     HEAD    none    -    cannotConnect@connecting     -          1 2
        two     OPTIONS none    -    connectionLost@waiting       -          1 2
        two     OPTIONS none    -    cannotConnect@connecting     -          1 2
        two     TRACE   none    -    connectionLost@waiting       -          1 2
        two     TRACE   none    -    cannotConnect@connecting     -          1 2
        two     PUT     none    -    connectionLost@waiting       -          1 2
        two     PUT     none    -    cannotConnect@connecting     -          1 2
        two     DELETE  none    -    connectionLost@waiting       -          1 2
        two     DELETE  none    -    cannotConnect@connecting     -          1 2
        two     PATCH   none    -    connectionLost@waiting       -          -
        two     PATCH   none    -    cannotConnect@connecting     -          1 2
        two     PURGE   none    -    connectionLost@waiting       -          -
        # Failures that would happen again, or must not be retried.
        two     GET     none    -    invalidRequest@preparing     -          -
        two     GET     none    -    encodingFailed@preparing     -          -
        two     GET     none    -    tlsFailed@securing           -          -
        two     GET     none    -    untrusted@securing           -          -
        two     GET     none    -    tooManyRedirects@validating  -          -
        two     GET     none    -    redirectRefused@validating   -          -
        two     GET     none    -    unacceptableContentType@validating -          -
        two     GET     none    -    bodyTooLarge@receiving       -          -
        two     GET     none    -    decodingFailed@decoding      -          -
        two     GET     none    -    bodyNotReplayable@sending    -          -
        two     GET     none    -    bodyFailed@sending           -          -
        two     GET     none    -    unsupported@preparing        -          -
        two     GET     none    -    cancelled@waiting            -          -
        two     GET     none    -    sessionClosed@preparing      -          -
        two     GET     none    -    internal@waiting             -          -
        two     GET     none    -    ownError@preparing           -          -
        two     GET     none    -    madeUp@waiting               -          -
        two     GET     none    yes  untrusted@securing           -          -
        two     POST    none    yes  cancelled@waiting            -          -
        # Transient statuses: retried with idempotent methods or a key.
        two     GET     none    -    408                          -          1 2
        two     PUT     none    -    408                          -          1 2
        two     POST    none    -    408                          -          -
        two     POST    none    yes  408                          -          1 2
        two     GET     none    -    500                          -          1 2
        two     PUT     none    -    500                          -          1 2
        two     POST    none    -    500                          -          -
        two     POST    none    yes  500                          -          1 2
        two     GET     none    -    502                          -          1 2
        two     PUT     none    -    502                          -          1 2
        two     POST    none    -    502                          -          -
        two     POST    none    yes  502                          -          1 2
        two     GET     none    -    503                          -          1 2
        two     PUT     none    -    503                          -          1 2
        two     POST    none    -    503                          -          -
        two     POST    none    yes  503                          -          1 2
        two     GET     none    -    504                          -          1 2
        two     PUT     none    -    504                          -          1 2
        two     POST    none    -    504                          -          -
        two     POST    none    yes  504                          -          1 2
        two     GET     none    -    429                          -          1 2
        two     PUT     none    -    429                          -          1 2
        two     POST    none    -    429                          -          -
        two     PURGE   none    -    429                          -          -
        # All other statuses are the final response.
        two     GET     none    -    200                          -          -
        two     GET     none    -    204                          -          -
        two     GET     none    -    301                          -          -
        two     GET     none    -    304                          -          -
        two     GET     none    -    400                          -          -
        two     GET     none    -    401                          -          -
        two     GET     none    -    403                          -          -
        two     GET     none    -    404                          -          -
        two     GET     none    -    409                          -          -
        two     GET     none    -    418                          -          -
        two     GET     none    -    421                          -          -
        two     GET     none    -    425                          -          -
        two     GET     none    -    501                          -          -
        two     GET     none    -    505                          -          -
        two     GET     none    -    511                          -          -
        # The statuses of a policy replace those of the table; the method still counts.
        named   GET     none    -    404                          -          1 2
        named   POST    none    -    404                          -          -
        named   POST    none    yes  404                          -          1 2
        named   PUT     none    -    418                          -          1 2
        named   PATCH   none    -    418                          -          -
        named   POST    none    -    425                          -          1 2
        named   POST    none    -    421                          -          1 2
        named   GET     none    -    503                          -          -
        named   GET     none    -    429                          -          -
        # A policy that adds a method or a key.
        posts   POST    bytes   -    503                          -          1 2
        posts   POST    bytes   -    connectionLost@waiting       -          1 2
        posts   POST    bytes   -    404                          -          -
        posts   POST    bytes   -    untrusted@securing           -          -
        keys    POST    bytes   -    503                          -          1 2
        keys    POST    bytes   -    connectionLost@waiting       -          1 2
        keys    POST    bytes   -    404                          -          -
        keys    POST    bytes   -    untrusted@securing           -          -
        posts   PATCH   bytes   -    503                          -          -
        keys    PATCH   bytes   -    503                          -          1 2
        posts   GET     none    -    503                          -          1 2
        keys    GET     none    -    503                          -          1 2
        # Bodies: a body that can be read once is not resent after it was read.
        two     PUT     none    -    timedOut@waiting             -          1 2
        two     PUT     bytes   -    503                          -          1 2
        two     PUT     bytes   -    cannotConnect@connecting     -          1 2
        two     PUT     bytes   -    timedOut@waiting             -          1 2
        two     PUT     file    -    503                          -          1 2
        two     PUT     file    -    cannotConnect@connecting     -          1 2
        two     PUT     file    -    timedOut@waiting             -          1 2
        two     PUT     stream+ -    503                          -          1 2
        two     PUT     stream+ -    cannotConnect@connecting     -          1 2
        two     PUT     stream+ -    timedOut@waiting             -          1 2
        two     PUT     once    -    503                          -          -
        two     PUT     once    -    cannotConnect@connecting     -          -
        two     PUT     once    -    timedOut@waiting             -          -
        two     PUT     unread  -    503                          -          1 2
        two     PUT     unread  -    cannotConnect@connecting     -          1 2
        two     PUT     unread  -    timedOut@waiting             -          1 2
        two     POST    bytes   -    503                          -          -
        two     POST    once    -    503                          -          -
        two     POST    unread  -    503                          -          -
        two     POST    bytes   yes  429                          -          1 2
        two     POST    once    yes  429                          -          -
        two     POST    unread  yes  429                          -          1 2
        # The wait that the server asks for is added to the backoff, up to `longestWait`.
        two     GET     none    -    429                          0          1 2
        two     GET     none    -    429                          1          2 3
        two     GET     none    -    429                          2          3 4
        two     GET     none    -    429                          7          8 9
        two     GET     none    -    429                          60         61 62
        two     GET     none    -    429                          61         -
        two     GET     none    -    429                          date+7     8 9
        two     GET     none    -    429                          date+99    -
        two     GET     none    -    429                          date-7     1 2
        two     GET     none    -    429                          soon       1 2
        two     GET     none    -    503                          0          1 2
        two     GET     none    -    503                          1          2 3
        two     GET     none    -    503                          2          3 4
        two     GET     none    -    503                          7          8 9
        two     GET     none    -    503                          60         61 62
        two     GET     none    -    503                          61         -
        two     GET     none    -    503                          date+7     8 9
        two     GET     none    -    503                          date+99    -
        two     GET     none    -    503                          date-7     1 2
        two     GET     none    -    503                          soon       1 2
        two     POST    none    -    429                          0          -
        two     POST    none    -    429                          1          -
        two     POST    none    -    429                          2          -
        two     POST    none    -    429                          7          -
        two     POST    none    -    429                          60         -
        two     POST    none    -    429                          61         -
        two     POST    none    -    429                          date+7     -
        two     POST    none    -    429                          date+99    -
        two     POST    none    -    429                          date-7     -
        two     POST    none    -    429                          soon       -
        two     PUT     none    -    500                          0          1 2
        two     PUT     none    -    500                          1          2 3
        two     PUT     none    -    500                          2          3 4
        two     PUT     none    -    500                          7          8 9
        two     PUT     none    -    500                          60         61 62
        two     PUT     none    -    500                          61         -
        two     PUT     none    -    500                          date+7     8 9
        two     PUT     none    -    500                          date+99    -
        two     PUT     none    -    500                          date-7     1 2
        two     PUT     none    -    500                          soon       1 2
        two     GET     none    -    429                          r=0;t=9    10 11
        two     GET     none    -    429                          r=1;t=9    1 2
        two     GET     none    -    429                          r=0;t=99   -
        two     GET     none    -    429                          X:0;9      10 11
        two     GET     none    -    429                          X:3;9      1 2
        two     POST    none    -    503                          7          -
        brief   GET     none    -    503                          5          6 7
        brief   GET     none    -    503                          6          -
        # An error with a response: the wait of the response counts as well.
        two     GET     none    -    thrown503@validating         -          1 2
        two     GET     none    -    thrown503@validating         7          8 9
        two     GET     none    -    thrown503@validating         61         -
        two     GET     none    -    thrown404@validating         -          -
        two     POST    none    -    thrown429@validating         7          -
        two     POST    none    -    thrown503@validating         7          -
        # Limits: the number of retries, the wait of each, and the time in all.
        none    GET     none    -    503                          -          -
        none    GET     none    -    cannotConnect@connecting     -          -
        one     GET     none    -    503                          -          1
        four    GET     none    -    503                          -          1 2 4 5
        four    GET     none    -    cannotConnect@connecting     -          1 2 4 5
        now     GET     none    -    503                          -          0 0
        now     GET     none    -    cannotResolve@resolving      -          0 0
        due     GET     none    -    503                          -          10 20
        due     GET     none    -    cannotConnect@connecting     -          10 20
        total   GET     none    -    503                          -          10
        total   GET     none    -    timedOut@waiting             -          10
        due     GET     none    -    503                          36         -
        due     GET     none    -    503                          30         30
        due     GET     none    -    503                          15         25
        due     GET     none    -    503                          5          15
        total   GET     none    -    503                          15         -
        total   GET     none    -    503                          12         12
        now     GET     none    -    503                          3          3 3
        two     GET     none    -    circuitOpen@queued           -          -
        """
}
