{{/* The name of all objects: that of the release. */}}
{{- define "streamlearn.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* The labels of a component, by which it is selected. */}}
{{- define "streamlearn.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "streamlearn.labels" -}}
{{ include "streamlearn.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "streamlearn.claim" -}}
{{ .Values.storage.existingClaim | default (include "streamlearn.name" .) }}
{{- end }}

{{/* What all pods share: an ordinary user, a read-only file system, the configuration, the volume. */}}
{{- define "streamlearn.pod" -}}
automountServiceAccountToken: false
securityContext: {runAsNonRoot: true, runAsUser: 10001, fsGroup: 10001, seccompProfile: {type: RuntimeDefault}}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
volumes:
  - {name: state, persistentVolumeClaim: {claimName: {{ include "streamlearn.claim" . }}}}
  - {name: config, configMap: {name: {{ include "streamlearn.name" . }}}}
{{- if .Values.fleet.enabled }}
  - {name: tmp, emptyDir: {}} # Ray's sockets and logs
  - {name: shared-mem, emptyDir: {medium: Memory}} # its object store
{{- else }}
  - {name: tmp, emptyDir: {medium: Memory, sizeLimit: 64Mi}}
{{- end }}
{{- end }}

{{- define "streamlearn.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
envFrom: [{secretRef: {name: {{ .Values.secret }}}}]
securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
env: # a list that the caller may continue
  - {name: STREAMLEARN_TOKEN, valueFrom: {secretKeyRef: {name: {{ .Values.secret }}, key: token}}}
{{- end }}

{{/* Pods of a component avoid each other's nodes. */}}
{{- define "streamlearn.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "streamlearn.selector" . | nindent 8 }}
{{- end }}

{{/* The container of the daemon. */}}
{{- define "streamlearn.daemon" -}}
name: daemon
{{ include "streamlearn.container" . }}
{{- if .Values.fleet.enabled }}
{{- include "streamlearn.ray-environment" . | nindent 2 }}
  - {name: RAY_AUTH_MODE, value: token}
  - {name: RAY_AUTH_TOKEN, valueFrom: {secretKeyRef: {name: {{ include "streamlearn.name" . }}, key: auth_token}}} # KubeRay's
{{- end }}
args: [run, /config/streamlearn.toml{{ if .Values.fleet.enabled }}, --ray, "127.0.0.1:6379"{{ end }}, --set, telemetry.host=0.0.0.0, --set, telemetry.port=9464]
ports: [{name: telemetry, containerPort: 9464}]
livenessProbe: {httpGet: {path: /healthz, port: telemetry}, timeoutSeconds: 5}
readinessProbe: {httpGet: {path: /readyz, port: telemetry}, timeoutSeconds: 5}
resources: {{- toYaml .Values.daemon.resources | nindent 2 }}
volumeMounts:
  - {name: state, mountPath: /state}
  - {name: config, mountPath: /config, readOnly: true}
  - {name: tmp, mountPath: /tmp}
{{- if .Values.fleet.enabled }}
  - {name: shared-mem, mountPath: /dev/shm}
{{- end }}
{{- end }}

{{- define "streamlearn.ray-environment" -}}
- {name: HOME, value: /tmp}
- {name: RAY_USAGE_STATS_ENABLED, value: "0"}
{{- end }}

{{/* Ray in a pod: probes without Ray's dashboard, which is not installed. */}}
{{- define "streamlearn.ray" -}}
{{ include "streamlearn.container" .root }}
{{- include "streamlearn.ray-environment" .root | nindent 2 }}
resources: {{- toYaml .resources | nindent 2 }}
livenessProbe: {tcpSocket: {port: {{ .port }}}, initialDelaySeconds: 30, timeoutSeconds: 5}
readinessProbe: {tcpSocket: {port: {{ .port }}}, timeoutSeconds: 5}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  - {name: shared-mem, mountPath: /dev/shm}
{{- end }}
