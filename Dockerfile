# One image for the API, the worker, the initialisation and Spark's own processes: they must agree on every version.
FROM python:3.11-slim-bookworm
LABEL org.opencontainers.image.title="headwater" \
      org.opencontainers.image.description="A multi-tenant lakehouse behind one REST API" \
      org.opencontainers.image.licenses="Apache-2.0"

RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless tini \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /srv/headwater
COPY requirements/build.txt requirements/runtime.txt requirements/
RUN python -m pip install --no-cache-dir --no-deps --require-hashes -r requirements/build.txt \
    && python -m pip install --no-cache-dir --no-deps --no-build-isolation --require-hashes -r requirements/runtime.txt

COPY pyproject.toml README.md LICENSE ./
COPY app app
COPY clients clients
COPY migrations migrations
COPY workers workers
# Editable, so that the migrations keep their place beside the code.
RUN python -m pip install --no-cache-dir --no-deps --no-build-isolation --editable clients/python --editable . \
    && useradd --system --create-home headwater \
    && install --directory --owner headwater /var/lib/headwater

USER headwater
ENV HEADWATER_DATA_DIR=/var/lib/headwater \
    PYTHONUNBUFFERED=1
ENTRYPOINT ["tini", "--"]
CMD ["python", "-m", "app.main"]
