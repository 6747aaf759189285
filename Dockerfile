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
COPY pyproject.toml README.md LICENSE ./
COPY app app
COPY clients clients
COPY migrations migrations
COPY workers workers
# Editable, so that the migrations keep their place beside the code; compiled, since its user cannot write there.
RUN python -m pip install --no-cache-dir --no-deps --no-build-isolation --editable clients/python --editable . \
    && python -m compileall -q app clients migrations workers

FROM python:3.12.12-slim-bookworm
LABEL org.opencontainers.image.title="headwater" \
      org.opencontainers.image.description="A multi-tenant lakehouse behind one REST API" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps tini \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/headwater /opt/headwater
COPY --from=build /srv/headwater /srv/headwater
# Volumes and folders of processes are below this folder, which their user can write.
# Its number is that of the manifests for Kubernetes, which check that it is not root.
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin headwater \
    && install --directory --owner headwater --group headwater /var/lib/headwater /var/lib/headwater/keys \
       /var/lib/headwater/master /var/lib/headwater/work /var/lib/headwater/local /var/lib/headwater/executor

USER headwater
WORKDIR /srv/headwater
ENV PATH=/opt/headwater/bin:$PATH \
    HEADWATER_DATA_DIR=/var/lib/headwater \
    PYTHONUNBUFFERED=1
ENTRYPOINT ["tini", "--"]
CMD ["python", "-m", "app.main"]
