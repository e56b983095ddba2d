# The exporter (default); with --target injector what brings the hook into a server's container; with
# --target demo a server on a simulated NPU. docs/kubernetes.md tells how the pins are renewed.
ARG PYTHON_IMAGE=docker.io/library/python:3.13.13-slim-bookworm@sha256:355bfa66770995d7e9a0da4b3473b44d0cb451f6b56f5615ad9c39e3c4eca03f
# Where pip finds CPU builds of PyTorch; it prefers them to those of the default index.
ARG PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu

# --- This package and what it needs, at fixed versions ---
FROM ${PYTHON_IMAGE} AS package
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
COPY deploy/image/requirements.txt deploy/image/requirements-build.txt deploy/image/
RUN python3 -m venv /build && \
    /build/bin/pip install --require-hashes -r deploy/image/requirements-build.txt && \
    python3 -m venv --without-pip /opt/npu-fallback-exporter && \
    /build/bin/pip --python /opt/npu-fallback-exporter/bin/python install \
        --require-hashes -r deploy/image/requirements.txt
COPY LICENSE README.md hatch_build.py npu_fallback_exporter.pth pyproject.toml ./
COPY npu_fallback_exporter npu_fallback_exporter
RUN /build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheel . && \
    /build/bin/pip --python /opt/npu-fallback-exporter/bin/python install --no-deps /wheel/*.whl

# --- Debian's compiler ---
FROM ${PYTHON_IMAGE} AS compiler
RUN apt-get update && \
    apt-get install -y --no-install-recommends g++=4:12.2.0-3 && \
    rm -rf /var/lib/apt/lists/*
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1

# --- The hooks, one for each version of PyTorch ---
FROM compiler AS hooks
ARG PIP_EXTRA_INDEX_URL
ARG TORCH_VERSIONS="2.9.0 2.10.0 2.11.0 2.12.0 2.13.0 2.14.0"
ARG PIP_FIND_LINKS
WORKDIR /src
COPY npu_fallback_exporter npu_fallback_exporter
RUN set -e; for version in ${TORCH_VERSIONS}; do \
        python3 -m venv --clear /torch; \
        /torch/bin/pip install "torch==${version}"; \
        /torch/bin/python -m npu_fallback_exporter build-hook --output /hooks; \
    done; \
    rm -rf /torch

# --- PyTorch and torch_npu on a simulated NPU, without this package ---
FROM compiler AS simulated-npu
ARG PIP_EXTRA_INDEX_URL
ARG PIP_FIND_LINKS
ENV PATH=/opt/torch/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    XDG_CACHE_HOME=/opt/cache
RUN python3 -m venv /opt/torch && \
    pip install torch==2.13.0 && \
    pip install numpy==2.4.6 pyyaml==6.0.4 && \
    pip install --no-deps torch-npu==2.13.0
WORKDIR /src
COPY tests/__init__.py tests/
COPY tests/cann_sim tests/cann_sim
RUN python3 -m tests.cann_sim build && \
    rm -r /opt/cache/npu-fallback-exporter/cann_sim/objects
USER 65532:65532

# --- The demo's workers under traffic ---
FROM simulated-npu AS demo
USER 0:0
COPY deploy/image/requirements.txt .
RUN pip install --require-hashes -r requirements.txt
COPY LICENSE README.md hatch_build.py npu_fallback_exporter.pth pyproject.toml ./
COPY npu_fallback_exporter npu_fallback_exporter
RUN pip install --no-deps --editable . && \
    python3 -m npu_fallback_exporter build-hook
ENV NPU_FALLBACK_DIR=/run/npu-fallback
USER 65532:65532
CMD ["python3", "-m", "npu_fallback_exporter.demo.endless"]

# --- The folder that a server's Python gets to see: package, hooks, and what starts them ---
FROM package AS hook-folder
RUN /build/bin/pip install --no-deps --no-compile --target /hook /wheel/*.whl && \
    rm -r /hook/bin
COPY deploy/image/sitecustomize.py /hook/
COPY --from=hooks /hooks /hook/npu_fallback_exporter/hooks

# --- Copies that folder to where a server's container mounts it ---
FROM ${PYTHON_IMAGE} AS injector
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="npu-fallback-hook" \
      org.opencontainers.image.description="Brings the hook that counts CPU fallbacks on Ascend NPUs into a server's container." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=hook-folder /hook /opt/npu-fallback-hook
USER 65532:65532
ENTRYPOINT ["cp", "-R", "/opt/npu-fallback-hook/."]

# --- The exporter ---
FROM ${PYTHON_IMAGE} AS exporter
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="npu-fallback-exporter" \
      org.opencontainers.image.description="Shows Prometheus which operators silently run on the host CPU instead of the Ascend NPU." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=package /opt/npu-fallback-exporter /opt/npu-fallback-exporter
# The folder is where the deployment mounts what exporter and server share.
ENV PATH=/opt/npu-fallback-exporter/bin:$PATH \
    NPU_FALLBACK_DIR=/run/npu-fallback \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 10837
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["python3", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:10837/healthz', timeout=4)"]
ENTRYPOINT ["npu-fallback-exporter"]
CMD ["serve"]
