# A small run-time image: the Swift library is linked statically; only the C libraries are from the distribution.
#   docker build -t curlew . && docker run --rm curlew
#   docker run --rm curlew https://www.example.org/
ARG SWIFT_IMAGE=swift:6.3-bookworm

FROM ${SWIFT_IMAGE} AS build
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends libcurl4-openssl-dev libssl-dev libxml2-dev pkg-config \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /curlew
COPY . .
RUN swift build -c release --static-swift-stdlib --product Tour \
    && install -D "$(swift build -c release --static-swift-stdlib --show-bin-path)/Tour" /out/tour

FROM debian:bookworm-slim
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends libcurl4 libssl3 libxml2 ca-certificates \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/tour /usr/local/bin/tour
USER nobody
ENTRYPOINT ["/usr/local/bin/tour"]
