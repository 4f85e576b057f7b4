# syntax=docker/dockerfile:1
# docker build -t danube .
# docker run -p 6650:6650 -p 50051:50051 -p 8080:8080 -v danube:/var/lib/danube danube

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
# `danube version --json` names it; the folder .git is not sent to the builder.
ARG DANUBE_COMMIT=""
ENV DANUBE_COMMIT=$DANUBE_COMMIT
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    RUSTUP_TOOLCHAIN=$RUST_VERSION cargo build --release --locked --package danube \
    && cp target/release/danube /usr/local/bin/danube

FROM debian:bookworm-slim
RUN useradd --system --user-group --uid 10001 --no-create-home --home-dir /var/lib/danube \
        --shell /usr/sbin/nologin danube \
    && install -d -o danube -g danube -m 0750 /var/lib/danube
COPY --from=build /usr/local/bin/danube /usr/bin/danube
COPY LICENSE /usr/share/doc/danube/copyright
# A container is reached from outside itself. Clients are told the address that they must use with
# DANUBE_ADVERTISED_ADDR.
ENV DANUBE_DATA_DIR=/var/lib/danube \
    DANUBE_BROKER_ADDR=0.0.0.0:6650 \
    DANUBE_ADMIN_ADDR=0.0.0.0:50051 \
    DANUBE_HTTP_ADDR=0.0.0.0:8080 \
    DANUBE_LOG_FORMAT=json
USER 10001
WORKDIR /var/lib/danube
VOLUME /var/lib/danube
EXPOSE 6650 50051 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 CMD ["danube", "health"]
ENTRYPOINT ["danube"]
CMD ["start"]
