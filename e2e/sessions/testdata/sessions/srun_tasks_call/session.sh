# srun called by tasks of a step, on the first node and on others.
cat > job.sh <<'X'
#!/bin/bash
#SBATCH -N3 -n3 -o out
export SLURM_MEM_PER_NODE=10
unset SLURM_MEM_PER_CPU
srun -N1 -n1 -w n2 bash -c 'echo "outer $SLURMD_NODENAME $SLURM_STEP_ID"; srun --overlap -N1 -n1 bash -c "echo inner \$SLURMD_NODENAME \$SLURM_STEP_ID"'
srun -N1 -n1 -w n3 bash -c 'srun --overlap -N3 -n3 bash -c "echo \$SLURM_PROCID \$SLURMD_NODENAME" | sort'
srun -N3 -n3 bash -c '[ $SLURM_PROCID = 2 ] || exit 0; srun --overlap -N1 -n1 -w n1 bash -c "exit 7"; echo "rc $?"' 2> /dev/null
srun -N1 -n1 -w n2 bash -c 'echo input | srun --overlap -N1 -n1 -w n2 cat; srun --overlap -N2 -n2 -w n1,n3 -o from_%t hostname > /dev/null'; ls from_* | wc -l
srun -N1 -n1 -w n2 bash -c 'srun --overlap -N1 -n1 nosuchcommand; echo "rc $?"' 2> /dev/null
srun -N1 -n1 -w n2 bash -c 'seq 20000 | srun --overlap -N1 -n1 -w n3 cat | tail -1; srun --overlap -N3 -n3 --multi-prog prog | sort; srun --overlap -K -N1 -n1 -w n3 bash -c "kill -9 \$\$"; echo "rc $?"' 2> /dev/null
X
echo '* echo %t' > prog; sbatch job.sh; settle; cat out; rm -f from_*
