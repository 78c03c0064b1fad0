# The daemon and all commands. The first stage builds the wheel, the second installs it; the image has
# neither a compiler nor pip. It runs as an ordinary user on a read-only file system:
#
#   docker build -t streamlearn .
#   docker run --read-only -v "$PWD/config:/config:ro" -v state:/state streamlearn run /config/clicks.toml

FROM python:3.13-slim AS wheel
# any compiler will do, and it is not in the image
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim AS install
ARG EXTRAS=fast,registry,serve,store
COPY --from=wheel /wheels /wheels
# the wheel has its version in its name
# hadolint ignore=DL3013
RUN python -m venv --without-pip /opt/streamlearn \
    && wheel=$(ls /wheels/*.whl) \
    && pip --python /opt/streamlearn/bin/python install --no-cache-dir "${wheel}[${EXTRAS}]"

FROM python:3.13-slim
RUN useradd --uid 10001 --no-create-home --home-dir /state streamlearn \
    && install -d -o streamlearn -g streamlearn /state
COPY --from=install /opt/streamlearn /opt/streamlearn
ENV PATH=/opt/streamlearn/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    STREAMLEARN_STATE=/state
USER 10001
WORKDIR /state
VOLUME /state
EXPOSE 9464
# a standby and a daemon that is still loading are healthy too; see /readyz for readiness
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen('http://127.0.0.1:' + os.environ.get('STREAMLEARN_PORT', '9464') + '/healthz', timeout=4)"]
ENTRYPOINT ["streamlearn"]
CMD ["--help"]
