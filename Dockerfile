# One image for the API, the worker, the initialisation and Spark's own processes: they must agree on every version.

# The environment is built in a stage of its own: pip's caches and tools stay there. It has neither the embedded servers
# nor a Java of its own, which are extras of the package.
FROM python:3.12.12-slim-bookworm AS build
WORKDIR /srv/headwater
RUN python -m venv /opt/headwater
ENV PATH=/opt/headwater/bin:$PATH
COPY requirements/build.txt requirements/runtime.txt requirements/
RUN python -m pip install --no-cache-dir --no-deps --require-hashes -r requirements/build.txt \
    && python -m pip install --no-cache-dir --no-deps --no-build-isolation --require-hashes -r requirements/runtime.txt
# Ours are the wheels that `make dist` builds. They are installed as the others are: with a digest of each, without an
# index. pip compiles them, since their user cannot write there.
COPY pyproject.toml README.md LICENSE ./
COPY app app
COPY clients clients
COPY migrations migrations
COPY workers workers
RUN python -m pip wheel --no-cache-dir --no-deps --no-index --no-build-isolation --wheel-dir /wheels clients/python . \
    && for wheel in /wheels/*.whl; do \
         echo "$wheel --hash=sha256:$(sha256sum "$wheel" | cut -d ' ' -f 1)"; \
       done > /wheels/requirements.txt \
    && python -m pip install --no-cache-dir --no-deps --no-index --require-hashes -r /wheels/requirements.txt

FROM python:3.12.12-slim-bookworm
LABEL org.opencontainers.image.title="headwater" \
      org.opencontainers.image.description="A multi-tenant lakehouse behind one REST API" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps tini \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/headwater /opt/headwater
# Volumes and folders of processes are below this folder, which their user can write.
# Its number is that of the manifests for Kubernetes, which check that it is not root.
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin headwater \
    && install --directory --owner headwater --group headwater /var/lib/headwater /var/lib/headwater/keys \
       /var/lib/headwater/master /var/lib/headwater/work /var/lib/headwater/local /var/lib/headwater/executor

USER headwater
WORKDIR /opt/headwater
ENV PATH=/opt/headwater/bin:$PATH \
    HEADWATER_DATA_DIR=/var/lib/headwater \
    PYTHONUNBUFFERED=1
ENTRYPOINT ["tini", "--"]
CMD ["python", "-m", "app.main"]
