# What a case is: allow and deny, and who acts. Sourced by test-policies.

cases=0
failures=0
fail() { log "FAILED: $*"; failures=$((failures + 1)); }
# allow WHAT COMMAND…   the command succeeds
allow() {
  local what=$1 out
  shift
  cases=$((cases + 1))
  out=$("$@" 2>&1) || fail "should be allowed: $what"$'\n'"$out"
}
# deny WHAT SENTENCE COMMAND…   the command fails, and the server's answer has the sentence
deny() {
  local what=$1 sentence=$2 out
  shift 2
  cases=$((cases + 1))
  if out=$("$@" 2>&1); then
    fail "should be denied: $what"$'\n'"$out"
  elif [[ $out != *"$sentence"* ]]; then
    fail "denied, but not by us: $what"$'\n'"  expected: $sentence"$'\n'"  got: $out"
  fi
}
# People are impersonated; the programs come with real tokens.
as() {  # USER COMMAND…
  local user=$1
  shift
  k --as="$user" --as-group=system:authenticated "$@"
}
with_token() {  # TOKEN COMMAND…
  local token=$1
  shift
  "$bin/kubectl" --request-timeout=20s --kubeconfig=/dev/null --server="$server" \
    --certificate-authority="$dir/ca.crt" --token="$token" "$@"
}
# role_of NAME VERBS RESOURCE…   a ClusterRole over kubegang's resources, VERBS with commas; $names limits it
role_of() {
  local name=$1 verbs=$2
  shift 2
  k create -f - >/dev/null <<YAML
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: $name},
 rules: [{apiGroups: [kubegang.io], resources: [$(IFS=,; echo "$*")], verbs: [$verbs], resourceNames: [${names:-}]}]}
YAML
}
