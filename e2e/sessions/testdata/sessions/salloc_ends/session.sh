# An allocation that ends while its command runs, and signals to salloc.
(sleep 3; scancel 1001) & salloc -N1 bash -c 'trap "echo hup" HUP; trap "echo term" TERM; for i in $(seq 50); do sleep 0.1; done; echo end; exit 5' > o1 2> e1; echo "rc $?"; cat e1; settle
salloc -N1 bash -c 'trap "echo hup" HUP; trap "echo term; exit 4" TERM; for i in $(seq 50); do sleep 0.1; done; echo end' > o2 2> e2 & s=$!; sleep 3; kill -TERM $s; wait $s; echo "rc $?"; cat e2; settle
salloc -N1 sleep 6 > o3 2> e3 & s=$!; sleep 3; kill -HUP $s; wait $s; echo "rc $?"; settle
salloc -N1 -K sleep 30 > o4 2> e4 & s=$!; sleep 3; scancel 1004; wait $s; echo "rc $?"; cat e4; settle
salloc -N1 -KUSR1 bash -c 'trap "echo usr1; exit 7" USR1; for i in $(seq 300); do sleep 0.1; done' > o5 2> /dev/null & s=$!; sleep 3; scancel 1005; wait $s; echo "rc $?"; settle
SALLOC_KILL_CMD= salloc -N1 -KNOSUCH true; echo "rc $?"
squeue -h -t all -o '%i %T' | sort
