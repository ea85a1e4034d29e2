# The night and its UI. An agent needs no image: it installs the package.
FROM python:3.13-slim-bookworm AS build
WORKDIR /source
RUN python -m venv /opt/venv
COPY requirements.lock ./
RUN /opt/venv/bin/pip install --no-cache-dir --no-deps --require-hashes -r requirements.lock
COPY pyproject.toml setup.py README.md LICENSE NOTICE ./
COPY sql sql
COPY nous_online nous_online
COPY nous_pipelines nous_pipelines
RUN /opt/venv/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.13-slim-bookworm
RUN useradd --system --uid 10001 --create-home nous \
    && install --directory --owner nous --mode 0700 /var/lib/nous
COPY --from=build /opt/venv /opt/venv
WORKDIR /var/lib/nous
# Everything that is written goes to NOUS_HOME; nothing is imported from the folder a program happens to work in.
ENV PATH=/opt/venv/bin:$PATH NOUS_HOME=/var/lib/nous DAGSTER_HOME=/var/lib/nous/dagster \
    PYTHONSAFEPATH=1 PYTHONUNBUFFERED=1
USER nous
EXPOSE 3000
CMD ["python", "-m", "nous_pipelines.orchestration.interface_server", "--host", "0.0.0.0"]
