# Signals to srun and salloc outside of a job, and scancel of their jobs.
srun -n1 sleep 60 2> /dev/null & p=$!; sleep 3; kill -INT $p; sleep 0.3; kill -INT $p; wait $p; echo "rc $?"; settle
srun -n2 bash -c 'trap "echo usr1; exit 3" USR1; for i in $(seq 100); do sleep 0.1; done' 2> /dev/null & p=$!; sleep 3; kill -USR1 $p; wait $p; echo "rc $?"; settle
srun -n1 sleep 60 2> /dev/null & p=$!; sleep 3; scancel -n sleep; wait $p; echo "rc $?"; settle
salloc -Q sleep 60 2> /dev/null & p=$!; sleep 3; kill -TERM $p; wait $p; echo "rc $?"; settle
salloc -Q -n1 bash -c 'for i in $(seq 50); do sleep 0.1; done; echo end' 2> /dev/null & p=$!; sleep 3; scancel -u root; wait $p; echo "rc $?"; settle
squeue -h -t all -o '%i %T %j' | sort
