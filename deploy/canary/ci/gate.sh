#!/bin/sh
# Compares two versions of a server in a CI job, without Prometheus:
#
#   BASELINE='python old.py' CANDIDATE='python new.py' \
#   READY='curl -fsS http://localhost:8000/health' LOAD='python send_requests.py' \
#   deploy/canary/ci/gate.sh --allow torchvision::nms
#
# Arguments go to gate, and its exit code is that of this script: 0 pass, 1 fail, 3 inconclusive.
# LOAD is sent twice to each version: to warm it up, and to be counted.
set -eu

: "${BASELINE:?the command that starts the old version}"
: "${CANDIDATE:?the command that starts the new version}"
: "${READY:?a command that succeeds once the server is ready}"
: "${LOAD:?a command that sends requests}"
exporter=${EXPORTER:-127.0.0.1:10837}
attempts=${READY_ATTEMPTS:-600} # one a second

server=
NPU_FALLBACK_DIR=
stop() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || :
        wait "$server" || :
    fi
    server=
    rm -rf "$NPU_FALLBACK_DIR"
}
trap stop EXIT
trap 'exit 143' INT TERM

wait_until_ready() {
    attempt=0
    until sh -c "$READY" >/dev/null 2>&1; do
        attempt=$((attempt + 1))
        if [ "$attempt" -ge "$attempts" ] || ! kill -0 "$server" 2>/dev/null; then
            echo "gate.sh: $1 is not ready: see its output above" >&2
            exit 3
        fi
        sleep 1
    done
}

scrape() {
    curl -fsS --retry 5 --retry-connrefused "http://$exporter/metrics" >"$1"
}

# A folder of its own, so that the second exporter does not count what the first version did.
measure() {
    NPU_FALLBACK_DIR=$(mktemp -d -p "${TMPFS:-/dev/shm}")
    export NPU_FALLBACK_DIR
    npu-fallback-exporter run --web.listen-address "$exporter" -- sh -c "exec $2" &
    server=$!
    wait_until_ready "$1"
    sh -c "$LOAD"
    scrape "$1-ready.prom"
    sh -c "$LOAD"
    scrape "$1-end.prom"
    stop
}

measure baseline "$BASELINE"
measure candidate "$CANDIDATE"
npu-fallback-exporter gate \
    --baseline-scrapes baseline-ready.prom baseline-end.prom \
    --candidate-scrapes candidate-ready.prom candidate-end.prom "$@"
