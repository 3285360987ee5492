{{- define "crucible.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "crucible.labels" -}}
app.kubernetes.io/name: crucible
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "crucible.selector" -}}
app.kubernetes.io/name: crucible
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "crucible.serviceAccount" -}}
{{- default (include "crucible.name" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "crucible.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- /* The backends: all roles but the orchestrator. */ -}}
{{- define "crucible.backends" -}}
{{- $backends := list -}}
{{- if hasKey .Values.workers "local" -}}
{{- fail "workers.local: its jobs would run in the worker's pod and end with it; use the backend of a provider" -}}
{{- end -}}
{{- range $role, $worker := .Values.workers -}}
{{- if and $worker (ne $role "orchestrator") -}}{{- $backends = append $backends $role -}}{{- end -}}
{{- end -}}
{{- join "," $backends -}}
{{- end -}}
