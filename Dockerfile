# Verbatim over HTTP, without root: `docker compose up`, then open http://127.0.0.1:8377.
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends build-essential && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --release --locked --bin verbatim

FROM debian:bookworm-slim
RUN groupadd --gid 10001 verbatim && useradd --uid 10001 --gid 10001 --no-create-home verbatim \
    && install -d -o verbatim -g verbatim -m 0700 /data
COPY --from=build /src/target/release/verbatim /usr/local/bin/verbatim
USER 10001:10001
ENV VERBATIM_HOME=/data
VOLUME /data
EXPOSE 8377
ENTRYPOINT ["verbatim"]
CMD ["serve", "--http", "0.0.0.0:8377", "--page"]
