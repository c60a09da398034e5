# -K, and what the exit code of a step is.
cat > j.sh <<'X'
#!/bin/bash
#SBATCH -n4
t() { srun -Q "$@" 2> /dev/null; echo "rc $?"; }
t bash -c 'exit $SLURM_PROCID'
t bash -c '[ $SLURM_PROCID != 2 ]'
t bash -c '[ $SLURM_PROCID = 2 ] && kill -9 $$; exit 3'
t bash -c '[ $SLURM_PROCID = 2 ] && kill -TERM $$; exit 0'
t -K bash -c '[ $SLURM_PROCID = 1 ] && exit 5; sleep 20'
t --kill-on-bad-exit=0 bash -c '[ $SLURM_PROCID = 1 ] && exit 6; sleep 0.3; exit 0'
t bash -c 'exit 255'
t bash -c 'exit 256'
t -n1 missing_program
t -n1 /etc/passwd
X
sbatch -W -o o j.sh > /dev/null; cat o
