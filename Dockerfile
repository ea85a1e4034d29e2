# The night and its UI. An agent needs no image: it installs the package.
FROM python:3.13-slim-bookworm AS build
WORKDIR /source
RUN python -m venv /opt/venv
COPY requirements.lock ./
RUN /opt/venv/bin/pip install --no-cache-dir --no-deps --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY sql sql
COPY nous_online nous_online
COPY nous_pipelines nous_pipelines
RUN /opt/venv/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.13-slim-bookworm
RUN useradd --system --uid 10001 --create-home nous \
    && install --directory --owner nous /opt/nous \
    && install --directory --owner nous --mode 0700 /opt/nous/storage /var/lib/nous
COPY --from=build /opt/venv /opt/venv
WORKDIR /opt/nous
COPY --chown=nous dagster.yaml workspace.yaml ./
# Dagster keeps its settings and the logs of runs in DAGSTER_HOME; snapshots and reports go to NOUS_HOME.
ENV PATH=/opt/venv/bin:$PATH DAGSTER_HOME=/opt/nous NOUS_HOME=/var/lib/nous PYTHONUNBUFFERED=1
USER nous
EXPOSE 3000
CMD ["dagster-webserver", "--host", "0.0.0.0", "--port", "3000", "--workspace", "workspace.yaml"]
