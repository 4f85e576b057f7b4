{{/* The name of everything that this release makes. */}}
{{- define "danube.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What finds the pod; never changes during the life of a release. */}}
{{- define "danube.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "danube.labels" -}}
{{ include "danube.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* What clients are told to connect to. */}}
{{- define "danube.advertised" -}}
{{- if .Values.advertisedAddr -}}
{{- .Values.advertisedAddr -}}
{{- else -}}
{{- printf "%s.%s.svc:%d" (include "danube.fullname" .) .Release.Namespace (int .Values.service.clientPort) -}}
{{- end -}}
{{- end -}}
