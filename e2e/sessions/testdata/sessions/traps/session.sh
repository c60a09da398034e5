# Signals to the script: traps, scancel, the end by a signal.
cat > j.sh <<'X'
#!/bin/bash
trap 'echo term; exit 3' TERM
trap 'echo usr1' USR1
trap 'echo exit' EXIT
echo ready
for i in $(seq 100); do sleep 0.1; done
echo over
X
id=$(sbatch --parsable -o o1 j.sh); while ! grep -q ready o1 2>/dev/null; do sleep 0.2; done
scancel -b -s USR1 $id; sleep 1; scancel -b -s TERM $id; settle; cat o1; scontrol show job $id | grep -oE '(JobState|ExitCode)=[^ ]*'
cat > k.sh <<'X'
#!/bin/bash
trap 'echo parent' USR2
sleep 30 & child=$!
echo ready
wait; echo "waited $?"
kill $child; wait $child; echo "child $?"
exit 6
X
id=$(sbatch --parsable -o o2 k.sh); while ! grep -q ready o2 2>/dev/null; do sleep 0.2; done
scancel -b -s USR2 $id; settle; cat o2; scontrol show job $id | grep -oE '(JobState|ExitCode)=[^ ]*'
sbatch -W -o o3 --wrap='trap "" HUP; kill -HUP $$; echo alive; kill -INT $$; echo int; kill -KILL $$; echo dead' > /dev/null; echo $?; cat o3
