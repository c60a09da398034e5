# Jobs that wait for others: what squeue and scontrol say of them, and what becomes of them.
# unordered: log
sbatch -J a -o /dev/null --wrap 'sleep 8; echo a >> log'
sbatch -J b -o /dev/null --wrap 'sleep 6; echo b >> log; exit 1'
sbatch -J c -o /dev/null -d afterok:1001 --wrap 'echo c-after-a >> log'
sbatch -J d -o /dev/null -d afternotok:1002 --wrap 'echo d-after-b-failed >> log'
sbatch -J e -o /dev/null -d afterok:1002 --wrap 'echo never >> log'
sbatch -J f -o /dev/null -d 'afterok:1002?afterany:1001' --wrap 'echo f-or >> log'
sbatch -J g -o /dev/null -d afterany:1001:1002 --wrap 'echo g-both >> log'
sbatch -J h -o /dev/null -d afterok:1002 --kill-on-invalid-dep=yes --wrap 'echo killed >> log'
sbatch -J i -o env.txt -d after:1001 --wrap 'echo "$SLURM_JOB_DEPENDENCY"'
sbatch -J s -o /dev/null --wrap 'sleep 8; echo s1 >> log'
sbatch -J s -o /dev/null -d singleton --wrap 'echo s2 >> log'
sleep 3; squeue -h -t PD -o '%i %T %r %E' | sort -n
scontrol show job 1007 | grep -o 'Dependency=.*'
sleep 12; squeue -h -t PD -o '%i %T %r %E' | sort -n
scontrol show job 1008 | grep -oE 'JobState=\S+|Reason=\S+|Dependency=.*'
scancel 1005; settle; sort log
sbatch -o /dev/null -d afterok:9999 --wrap 'echo unknown >> log'; echo "rc $?"; settle
sbatch -d after:xyz --wrap true; echo "rc $?"; sbatch -d nonsense:1001 --wrap true; echo "rc $?"
