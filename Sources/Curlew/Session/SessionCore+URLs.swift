// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

extension SessionCore {
    /// Returns the URL of a request with its route, prepared for the loop.
    ///
    /// - Throws: `NetworkError` of kind `invalidRequest`, and the errors of the policy for proxies.
    func plannedURL(of request: Request) throws(NetworkError) -> PlannedURL {
        guard routes.isFixed, !request.options.setsRoute else { return try routedURL(of: request) }
        let url = request.url
        let known = urls.withLock { $0.known(url) }
        if let known { return known }
        let made = try routes.planned(request, try request.target())
        urls.withLock { $0.keep(made, for: request.url) }
        return made
    }

    /// Returns the URL of a request whose route does not depend on the URL alone.
    private func routedURL(of request: Request) throws(NetworkError) -> PlannedURL {
        let made = try routes.planned(request, try request.target())
        return routedURLs.withLock { cache in
            // A URL that libcurl has parsed already is better than a new one.
            if let known = cache?.known(request.url), known.route === made.route,
                known.proxyChoice == made.proxyChoice
            {
                return known
            }
            if cache == nil { cache = PlannedURLCache() }
            cache?.keep(made, for: request.url)
            return made
        }
    }
}
