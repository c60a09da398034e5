# -m arbitrary: lists, files, and how many tasks there are.
cat > j.sh <<'X'
#!/bin/bash
#SBATCH -N3 -n6
show='echo "$SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURMD_NODENAME $SLURM_STEP_NODELIST $SLURM_STEP_TASKS_PER_NODE $SLURM_DISTRIBUTION $SLURM_GTIDS $SLURM_NNODES $SLURM_NTASKS"'
t() { echo "-- $*"; srun -Q "$@" bash -c "$show" | sort -n; echo "rc ${PIPESTATUS[0]}"; }
t -m arbitrary -n4 -w n1,n2,n2,n3
t -m arbitrary -n4 -w n3,n1,n1,n3
t -m arbitrary -n4 -w n1,n2
t -m arbitrary -n2 -w n1,n2,n3
t -m arbitrary -w n1,n2,n2
t -m arbitrary -n3 -w 'n[1-3]'
t -m arbitrary -n4
printf '# hosts\nn2 # two\nn1*2\n\nn3\n' > hosts
export SLURM_HOSTFILE=hosts
t -n4
t -m arbitrary
t -m arbitrary -n2
t -n3 -w n1,n2,n3
SLURM_HOSTFILE=missing t -n4
unset SLURM_HOSTFILE
t -m arbitrary -n4 -w ./hosts
X
sbatch -W -o o j.sh; grep -v '^srun' o
printf 'n2\nn2\nn4\n' > hf
k='echo "$SLURM_JOB_NODELIST $SLURM_NTASKS $SLURM_NNODES $SLURM_DISTRIBUTION ${SLURM_HOSTFILE:-none}"; srun bash -c "echo \$SLURM_PROCID \$SLURMD_NODENAME" | sort'
SLURM_HOSTFILE=hf sbatch -W -o o2 -m arbitrary -n3 --wrap="$k"; echo $?; cat o2
sbatch -m arbitrary --wrap="$k" > /dev/null; echo $?
sbatch -W -o o3 -m arbitrary -n2 -w n1,n3 --wrap='echo $SLURM_JOB_NODELIST $SLURM_NTASKS; srun -w n3,n1 bash -c "echo \$SLURM_PROCID \$SLURMD_NODENAME" | sort'; cat o3
