# The console as an image: one static binary, nothing else, not root.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd/kuota cmd/kuota
COPY governance governance
COPY handlers handlers
COPY static static
COPY views views
COPY web web
RUN CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o /kuota ./cmd/kuota

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /kuota /kuota
COPY LICENSE /LICENSE
USER 65532:65532
ENTRYPOINT ["/kuota"]
