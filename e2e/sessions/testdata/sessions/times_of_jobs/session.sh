# Limits of time.
for t in 0 2- 1-2 2-0 1:30 90 1:2:3 1-1:1:1 UNLIMITED INFINITE -1 infinite 0:30 :30 1: 1:: - 1-: 3:61 abc 1d 0:0 0-0 1.5; do
  id=$(sbatch -H --parsable --time=$t --wrap=true 2> /dev/null); echo "$t: $? $([ -n "$id" ] && squeue -h -j $id -o '%l')"
  [ -z "$id" ] || { scontrol show job $id | grep -o 'TimeLimit=[^ ]*'; last=$id; }
done
for t in 2- INFINITE 5 +3; do scontrol update JobId=$last TimeLimit=$t; echo "$t: $? $(squeue -h -j $last -o '%l')"; done
scancel -u root
