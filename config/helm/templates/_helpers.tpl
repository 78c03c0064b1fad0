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
  - {name: tmp, emptyDir: {medium: Memory, sizeLimit: 64Mi}}
{{- end }}

{{- define "streamlearn.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
envFrom: [{secretRef: {name: {{ .Values.secret }}}}]
env: [{name: STREAMLEARN_TOKEN, valueFrom: {secretKeyRef: {name: {{ .Values.secret }}, key: token}}}]
securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
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
