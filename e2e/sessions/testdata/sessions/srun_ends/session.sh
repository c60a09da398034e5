# Ends of tasks: -K, without it, --wait, a signal, the code of the worst.
cat > job.sh <<'X'
#!/bin/bash
#SBATCH -N2 -n4 -o out
t() { local a=$SECONDS; "$@" 2> /dev/null; echo "rc $? $([ $((SECONDS - a)) -lt 6 ] && echo soon || echo late)"; }
t srun bash -c 'exit $SLURM_PROCID'; t srun -K bash -c '[ $SLURM_PROCID != 2 ] || exit 3; sleep 8'; t srun bash -c '[ $SLURM_PROCID != 2 ] || exit 3; sleep 7'
t srun -W 2 bash -c '[ $SLURM_PROCID != 2 ] || exit 0; sleep 12'; t srun -K0 bash -c '[ $SLURM_PROCID != 2 ] || exit 3; sleep 7'
t srun bash -c '[ $SLURM_PROCID != 1 ] || kill -SEGV $$; true'; t srun -n1 -N1 bash -c 'kill -USR1 $$'; t srun -n1 -N1 sh -c 'exit 255'; t srun nosuchcommand; t srun -n1 -N1 ./job.sh.missing; touch notexec; t srun -n1 -N1 ./notexec
SLURM_KILL_BAD_EXIT=1 t srun bash -c '[ $SLURM_PROCID != 2 ] || exit 3; sleep 8'; SLURM_WAIT=2 t srun bash -c '[ $SLURM_PROCID != 2 ] || exit 0; sleep 12'
t srun --kill-on-bad-exit=1 --wait=30 bash -c '[ $SLURM_PROCID = 0 ] && exit 5; sleep 10'
srun -n1 -N1 bash -c 'trap "exit 7" USR1; for i in $(seq 100); do sleep 0.1; done' 2>/dev/null & sleep 1; kill -USR1 $!; wait $!; echo "rc $?"
exit 9
X
sbatch job.sh; settle; cat out; squeue -h -t all -o '%i %T'
