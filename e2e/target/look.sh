# Sourced by run-checks: asks the cluster and the guests, measures, and gives verdicts.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
gangs=(one two three)
slice=2               # seconds, values.yaml
frozen_max=6          # seconds that no pod may be frozen, whatever is killed (docs/design/freezer.md 5.4)
patience=300          # seconds; emulated nodes are slow
check_began=$SECONDS

# verdict NAME OK [WHAT-WAS-SEEN]   OK: 0 = it is as it should be. Kept in a file: checks of two nodes may be made beside
# each other, each node's in a shell of its own.
verdict() {
  local word=FAILED
  [[ $2 != 0 ]] || word=ok
  printf '%-8s %s (%d s) %s\n' $word "$1" $((SECONDS - check_began)) "${3:-}" | tee -a "$state/verdicts"
  check_began=$SECONDS
}
# Each FUNCTION in a shell of its own, whose last command is a check. One that ends early has not made its checks.
beside() {  # FUNCTION…
  local name pid pids=()
  for name in "$@"; do
    "$name" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do
    wait "$pid" || verdict "all checks of $* were made" 1
  done
}
is_equal() {  # NAME SEEN WANTED
  if [[ $2 == "$3" ]]; then verdict "$1" 0 "$2"; else verdict "$1" 1 "is [$2], wanted [$3]"; fi
}
comes_about() {  # NAME COMMAND…
  local name=$1 end=$((SECONDS + patience))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || { verdict "$name" 1 "not within $patience s"; return; }
    sleep 0.3
  done
  verdict "$name" 0
}

# --- the agent of a node
agent_pod() {  # NODE [JSONPATH]
  kubectl -n kubegang-system get pods -l app.kubernetes.io/component=agent --field-selector "spec.nodeName=n$1" \
    -o "jsonpath={.items[0]${2:-.metadata.name}}"
}
of_container() {  # NODE CONTAINER FIELD   of its status
  agent_pod "$1" ".status['containerStatuses','initContainerStatuses'][?(@.name=='$2')].$3"
}
restarts() { of_container "$1" "$2" restartCount; }
agent_ready() { [[ $(of_container "$1" agent ready) == true && $(of_container "$1" guard ready) == true ]]; }
restarted() { (($(restarts "$1" "$2") > $3)) && agent_ready "$1"; }  # NODE CONTAINER SINCE
in_agent() { kubectl -n kubegang-system exec "$(agent_pod "$1")" -c agent -- /kubegang-agent "${@:2}"; }
# The cgroup of a container of the agent's pod, as its node sees it.
scope_of() {  # NODE CONTAINER
  local uid id
  uid=$(agent_pod "$1" .metadata.uid)
  id=$(of_container "$1" "$2" containerID)
  echo "/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${uid//-/_}.slice/cri-containerd-${id##*/}.scope"
}
# What a shell on the node says before it acts: $scope is the container's cgroup, $first its process 1, $rest the others.
find_processes() {  # NODE CONTAINER
  echo "scope=$(scope_of "$1" "$2"); first= rest=
    for p in \$(cat \$scope/cgroup.procs); do
      if grep -q '^NSpid:.*[[:space:]]1\$' /proc/\$p/status; then first=\$p; else rest=\"\$rest \$p\"; fi
    done; test -n \"\$first\" || exit 1"
}

# --- gangs
pod_of() {  # GANG NODE [JSONPATH]
  kubectl get pods -l "kubegang.io/job=$1" --field-selector "spec.nodeName=n$2" -o "jsonpath={.items[0]${3:-.metadata.name}}"
}
cgroup_of() {  # GANG NODE
  local uid
  uid=$(pod_of "$1" "$2" .metadata.uid)
  echo "/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${uid//-/_}.slice"
}
in_cgroup() { on_node "$2" "cat $(cgroup_of "$1" "$2")/$3"; }  # GANG NODE FILE
cpu_sets() {  # NODE [FILE]   of all gangs
  local gang
  for gang in "${gangs[@]}"; do echo "$(in_cgroup "$gang" "$1" "${2:-cpuset.cpus}" | sort -u)"; done | paste -sd' '
}
all_ready() {
  local gang
  for gang in "${gangs[@]}"; do
    [[ $(kubectl get gjob "$gang" -o "jsonpath={.status.conditions[?(@.type=='Ready')].status}") == True ]] || return 1
  done
}
# The two gangs that share a core of the node: after a restart it may be others than before.
pair() {  # NODE
  local gang
  for gang in "${gangs[@]}"; do echo "$(in_cgroup "$gang" "$1" cpuset.cpus) $gang"; done | sort |
    awk 'NR > 1 && $1 == cpu {print gang, $2; exit} {cpu = $1; gang = $2}'
}
# Ends at a moment at which the pod of one of them has just been frozen; prints its gang.
until_frozen() {  # NODE
  local gang
  read -r gang _ <<<"$(pair "$1")"
  on_node "$1" "cd $(cgroup_of "$gang" "$1") && until grep -q 'frozen 0' cgroup.events; do sleep 0.02; done
    timeout 20 sh -c 'until grep -q \"frozen 1\" cgroup.events; do sleep 0.02; done'" && echo "$gang"
}

is_frozen() { in_cgroup "$1" "$2" cgroup.events | grep -q 'frozen 1'; }  # GANG NODE

# watch NODE SECONDS [COMMAND]   what two gangs of one core did on the node, by the kernel's own notifications, while
# COMMAND was done there. Prints: swaps, seconds in which both ran, seconds in which both stood still, the
# longest time that one of them was frozen at a stretch.
watch() {
  local a b
  read -r a b <<<"$(pair "$1")"
  [[ -n $b ]] || { echo "0 99 99 99"; return; }
  on_node "$1" "/host/bin/freeze-watch $2 $(cgroup_of "$a" "$1") $(cgroup_of "$b" "$1") & sleep 1; { ${3:-true}; } >/dev/null 2>&1; wait" |
    awk '{if (seen[0] && seen[1]) {if (f[0] == 0 && f[1] == 0) both += $1 - at; if (f[0] == 1 && f[1] == 1) none += $1 - at}
          at = $1
          for (i in f) if (f[i] && $1 - since[i] > longest) longest = $1 - since[i]
          if ($2 < 0) next
          if (seen[$2] && f[$2] != $3 && $2 == 0) swaps++
          if (f[$2] != $3) since[$2] = $1
          f[$2] = $3; seen[$2] = 1}
         END {if (!seen[0] || !seen[1]) both = none = longest = 99; printf "%d %.3f %.3f %.2f\n", swaps, both, none, longest}'
}
# They swap as the slice says (two swaps may be missing), and run together for less than a tenth of the time.
take_turns() {  # NAME NODE SECONDS [COMMAND]
  local seen
  seen=$(watch "$2" "$3" "${4:-}")
  awk -v s="$3" -v slice=$slice -v most=$frozen_max '{exit !($1 >= s / slice - 2 && $2 < s / 10 && $4 <= most)}' <<<"$seen"
  verdict "$1" $? "swaps, both ran, both stood, longest freeze: $seen"
}
# Whatever COMMAND kills: no pod is frozen for longer than frozen_max; and one was, or this saw nothing.
nobody_stays_frozen() {  # NAME NODE SECONDS COMMAND
  local seen
  seen=$(watch "$2" "$3" "$4")
  awk -v most=$frozen_max '{exit !($4 > 0 && $4 <= most)}' <<<"$seen"
  verdict "$1" $? "swaps, both ran, both stood, longest freeze: $seen"
}
