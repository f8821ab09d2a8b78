# The console as an image: one static binary, CA certificates and the license. It
# runs as a numeric user, so that runAsNonRoot can be checked, and needs no
# writable path: history goes to --history, on a volume or in PostgreSQL.
#
#   make image                              # with buildah or docker
#   docker build --platform linux/arm64 --build-arg VERSION=v1.2.3 --build-arg REVISION=$(git rev-parse HEAD) .
#
# The builder runs on the platform of this machine and cross-compiles. Its tag
# names one version of Go. To pin its content too, append the digest of the tag,
# as golang:1.26.8-bookworm@sha256:…; one of these prints it:
#
#   docker buildx imagetools inspect golang:1.26.8-bookworm --format '{{.Manifest.Digest}}'
#   skopeo inspect --format '{{.Digest}}' docker://docker.io/library/golang:1.26.8-bookworm
FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
# Every folder that cmd/kuota imports from; e2e/image checks the list.
COPY cli cli
COPY cmd/kuota cmd/kuota
COPY deploy/crds deploy/crds
COPY governance governance
COPY handlers handlers
COPY python python
COPY static static
COPY views views
COPY web web
ARG TARGETOS
ARG TARGETARCH
ARG VERSION
ARG REVISION
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X main.version=$VERSION -X main.revision=$REVISION" -o /kuota ./cmd/kuota

FROM scratch
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="Kuota" \
      org.opencontainers.image.description="Shares a GPU cluster between teams with Kueue" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://kuota.dev/kuota"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /kuota /kuota
COPY LICENSE /LICENSE
USER 65532:65532
ENTRYPOINT ["/kuota"]
