{{/* The release's name, which is also the site's: a label's value of at most 40 letters. */}}
{{- define "quelea.name" -}}
{{- if gt (len .Release.Name) 40 }}{{ fail "the release's name is the site's: it has at most 40 letters" }}{{ end -}}
{{- if contains "." .Release.Name }}{{ fail "the release's name is the site's: it has no dot" }}{{ end -}}
{{ .Release.Name }}
{{- end -}}

{{- define "quelea.selector" -}}
app.kubernetes.io/name: quelea
app.kubernetes.io/instance: {{ include "quelea.name" . }}
{{- end -}}

{{/* Of front-ends over Cassandra, which the broker's Service does not reach. */}}
{{- define "quelea.frontEndSelector" -}}
app.kubernetes.io/name: quelea-front-end
app.kubernetes.io/instance: {{ include "quelea.name" . }}
{{- end -}}

{{- define "quelea.labels" -}}
{{ include "quelea.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "quelea.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "quelea.keySecret" -}}
{{ .Values.key.existingSecret | default (printf "%s-key" (include "quelea.name" .)) }}
{{- end -}}

{{- define "quelea.adminSecret" -}}
{{ .Values.admin.existingSecret | default (printf "%s-admin" (include "quelea.name" .)) }}
{{- end -}}

{{/* A value of quelea.toml. */}}
{{- define "quelea.toml" -}}
{{- if kindIs "float64" . }}{{ if eq . (floor .) }}{{ int64 . }}{{ else }}{{ . }}{{ end }}{{ else }}{{ toJson . }}{{ end }}
{{- end -}}

{{/* The settings of the Cassandra that front-ends use, and directories that share it. */}}
{{- define "quelea.cassandra" -}}
{{- with .Values.frontEnds.cassandra -}}
cassandra.nodes = {{ .nodes | toJson }}
cassandra.keyspace = {{ .keyspace | toJson }}
cassandra.datacenter = {{ .datacenter | toJson }}
cassandra.replication = {{ int64 .replication }}
cassandra.consistency = {{ .consistency | toJson }}
{{- if .existingSecret }}
cassandra.password_file = "/etc/quelea/cassandra/password"
{{- end }}
{{- if .caSecret }}
cassandra.ca_file = "/etc/quelea/cassandra-ca/ca.crt"
{{- end }}
{{- end }}
{{- end }}
