# The daemon and all commands. One stage compiles them; the final image has no compiler.

FROM python:3.13-slim AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
RUN python -m venv /opt/streamlearn
WORKDIR /source
COPY . .
RUN /opt/streamlearn/bin/pip install --no-cache-dir '.[fast]'

FROM python:3.13-slim
RUN useradd --uid 10001 --no-create-home --home-dir /state streamlearn \
    && install -d -o streamlearn -g streamlearn /state
COPY --from=build /opt/streamlearn /opt/streamlearn
ENV PATH=/opt/streamlearn/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    STREAMLEARN_STATE=/state
USER streamlearn
WORKDIR /state
EXPOSE 9464
# a standby and a daemon that is still loading are healthy too; see /readyz for readiness
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen('http://127.0.0.1:' + os.environ.get('STREAMLEARN_PORT', '9464') + '/healthz', timeout=4)"]
ENTRYPOINT ["streamlearn"]
CMD ["--help"]
