{{- define "kuota.fullname" -}}
{{- if contains "kuota" .Release.Name -}}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{- else -}}{{ printf "%s-kuota" (.Release.Name | trunc 44 | trimSuffix "-") }}{{- end -}}
{{- end -}}

{{- define "kuota.serviceAccountName" -}}
{{ .Values.serviceAccount.name | default (include "kuota.fullname" .) }}
{{- end -}}

{{- define "kuota.selector" -}}
app.kubernetes.io/name: kuota
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "kuota.labels" -}}
{{ include "kuota.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "kuota.image" -}}
{{ .Values.image.repository }}{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end -}}

{{- define "kuota.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "kuota.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* The host of url, without a port. */}}
{{- define "kuota.host" -}}
{{ (urlParse .Values.url).hostname }}
{{- end -}}

{{/* The base path of url, / if it has none. */}}
{{- define "kuota.path" -}}
{{ (urlParse .Values.url).path | default "/" }}
{{- end -}}

{{- define "kuota.servicePort" -}}
{{ if .Values.tls.secretName }}443{{ else }}80{{ end }}
{{- end -}}

{{- define "kuota.kueueVerbs" -}}
{{ if eq .Values.kueue.configurationAccess "Update" }}get, update{{ else }}get{{ end }}
{{- end -}}

{{/* Whether Kubernetes is 1.36 or newer: constrained impersonation cannot be discovered. */}}
{{- define "kuota.is136" -}}
{{ if semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version }}true{{ end }}
{{- end -}}

{{/* Not empty if the API server serves MutatingAdmissionPolicy v1. helm template without a cluster knows no kinds, hence the version too. */}}
{{- define "kuota.hasMutatingPolicies" -}}
{{ if or (.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy") (include "kuota.is136" .) }}true{{ end }}
{{- end -}}

{{/* The flags of the console. The address of the database is in a variable, because it contains a password. */}}
{{- define "kuota.args" -}}
{{- $v := .Values -}}
- --helm-release={{ .Release.Name }}
- --listen={{ if $v.signIn.enabled }}:8080{{ else }}127.0.0.1:8080{{ end }}
- {{ printf "--cluster-name=%s" $v.clusterName | quote }}
- --log-level={{ $v.logLevel }}
- --metrics-address={{ if $v.metrics.enabled }}:{{ int $v.metrics.port }}{{ else }}0{{ end }}
{{- if $v.metrics.teams }}
- --team-metrics=true
{{- end }}
- {{ printf "--name-prefix=%s" $v.naming.prefix | quote }}
- {{ printf "--cohort=%s" $v.naming.cohort | quote }}
- {{ printf "--instance-type-label=%s" $v.naming.instanceTypeLabel | quote }}
- --manage-kueue={{ eq $v.kueue.configurationAccess "Update" }}
- --kueue-namespace={{ $v.kueue.namespace }}
- --kueue-configmap={{ $v.kueue.configMap }}
- --kueue-deployment={{ $v.kueue.deployment }}
- --take-over={{ $v.takeOver }}
- --history-keep={{ $v.history.keep }}
{{- if eq $v.history.type "sqlite" }}
- --history=/var/lib/kuota/history.db
{{- else if eq $v.history.type "none" }}
- --history=none
{{- else }}
- --activity-dir=/var/lib/kuota
{{- end }}
- --history-persons-keep={{ $v.history.personsKeep }}
- --history-manifests={{ $v.history.manifests }}
{{- with $v.jobControllers }}
- {{ printf "--job-controllers=%s" (join "," .) | quote }}
{{- end }}
{{- with $v.writingAccounts }}
- {{ printf "--writing-accounts=%s" (join "," .) | quote }}
{{- end }}
{{- if $v.signIn.enabled }}
- {{ printf "--url=%s" $v.url | quote }}
- {{ printf "--oidc-issuer=%s" $v.signIn.issuer | quote }}
- {{ printf "--oidc-client-id=%s" $v.signIn.clientID | quote }}
{{- with $v.signIn.commandLineClientID }}
- {{ printf "--oidc-command-line-client-id=%s" . | quote }}
{{- end }}
- {{ printf "--oidc-username-claim=%s" $v.signIn.usernameClaim | quote }}
- {{ printf "--oidc-username-prefix=%s" $v.signIn.usernamePrefix | quote }}
- {{ printf "--oidc-groups-claim=%s" $v.signIn.groupsClaim | quote }}
- {{ printf "--oidc-groups-prefix=%s" $v.signIn.groupsPrefix | quote }}
{{- if $v.signIn.clientSecret.name }}
- {{ printf "--oidc-client-secret-file=/etc/kuota/client-secret/%s" $v.signIn.clientSecret.key | quote }}
{{- end }}
{{- with $v.signIn.scopes }}
- {{ printf "--oidc-scopes=%s" (join "," .) | quote }}
{{- end }}
{{- $claims := list }}
{{- range $claim, $value := $v.signIn.requiredClaims }}{{ $claims = append $claims (printf "%s=%s" $claim $value) }}{{ end }}
{{- with $claims }}
- {{ printf "--oidc-required-claims=%s" (join "," .) | quote }}
{{- end }}
- {{ printf "--session-keys-file=/etc/kuota/session-keys/%s" $v.sessions.keys.key | quote }}
- --session-idle={{ $v.sessions.idle }}
- --session-max={{ $v.sessions.max }}
{{- end }}
{{- if $v.tls.secretName }}
- --tls-cert-file=/etc/kuota/tls/tls.crt
- --tls-key-file=/etc/kuota/tls/tls.key
{{- end }}
{{- with $v.auditWebhook }}
{{- if .enabled }}
- --audit-webhook-address=:{{ int .port }}
- {{ printf "--audit-webhook-token-file=/etc/kuota/audit-token/%s" .token.key | quote }}
{{- if .tls.secretName }}
- --audit-webhook-cert-file=/etc/kuota/audit-tls/tls.crt
- --audit-webhook-key-file=/etc/kuota/audit-tls/tls.key
{{- end }}
{{- end }}
{{- end }}
{{- with $v.trustedProxies }}
- {{ printf "--trusted-proxies=%s" (join "," .) | quote }}
{{- end }}
{{- with $v.dashboard.url }}
- {{ printf "--dashboard-url=%s" . | quote }}
{{- end }}
{{- with $v.logs.url }}
- {{ printf "--log-url=%s" . | quote }}
{{- end }}
- --idle-after={{ $v.hardware.idleAfter }}
- --idle-below={{ $v.hardware.idleBelow }}
{{- with $v.hardware.prometheus }}
{{- if .url }}
- {{ printf "--prometheus-url=%s" .url | quote }}
{{- if .token.name }}
- {{ printf "--prometheus-token-file=/etc/kuota/prometheus-token/%s" .token.key | quote }}
{{- end }}
{{- with .match }}
- {{ printf "--prometheus-match=%s" . | quote }}
{{- end }}
{{- with .nodeLabel }}
- {{ printf "--prometheus-node-label=%s" . | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- range $v.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{/* The names of mounted Secrets by their folder under /etc/kuota, as YAML. */}}
{{- define "kuota.secrets" -}}
{{- $secrets := dict -}}
{{- if .Values.signIn.enabled -}}
{{- $_ := set $secrets "session-keys" .Values.sessions.keys.name -}}
{{- with .Values.signIn.clientSecret.name }}{{ $_ := set $secrets "client-secret" . }}{{ end -}}
{{- end -}}
{{- with .Values.tls.secretName }}{{ $_ := set $secrets "tls" . }}{{ end -}}
{{- with .Values.hardware.prometheus }}{{ if and .url .token.name }}{{ $_ := set $secrets "prometheus-token" .token.name }}{{ end }}{{ end -}}
{{- with .Values.auditWebhook }}{{ if .enabled }}{{ $_ := set $secrets "audit-token" .token.name }}{{ with .tls.secretName }}{{ $_ := set $secrets "audit-tls" . }}{{ end }}{{ end }}{{ end -}}
{{ toYaml $secrets }}
{{- end -}}
