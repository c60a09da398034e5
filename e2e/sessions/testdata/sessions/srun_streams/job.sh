#!/bin/bash
#SBATCH -N2 -n4 -o out.txt -e err.txt
echo in | srun -l cat | sort
seq 3 | srun -l -i2 cat | sort
head -c 3000000 /dev/zero | srun -n2 -N2 bash -c 'wc -c' | sort
srun -n4 bash -c 'head -c 1000000 /dev/zero' | wc -c
srun -W1 bash -c '[ $SLURM_PROCID = 1 ] && exit 0; sleep 60'; echo "wait rc $?"
srun --multi-prog prog.conf | sort
srun -l -u bash -c 'echo -n part$SLURM_PROCID; sleep 0.2; echo' | sort
srun -K0 -n4 bash -c 'exit $((SLURM_PROCID+1))'; echo "K0 rc $?"
srun -n2 -o 'f-%n-%t-%s-%J.txt' echo a; ls f-*
srun -D / bash -c 'pwd' | uniq -c
srun bash -c 'echo "$SLURM_STEP_NODELIST $SLURM_STEP_NUM_NODES $SLURM_STEP_NUM_TASKS $SLURM_STEP_TASKS_PER_NODE $SLURM_TASKS_PER_NODE $SLURM_NNODES $SLURM_JOB_NUM_NODES $SLURM_CPUS_ON_NODE $SLURM_GTIDS $SLURM_DISTRIBUTION $SLURM_LOCALID"' | sort
srun -N1 -n1 -r1 bash -c 'echo "$SLURM_STEP_NODELIST $SLURM_STEP_NUM_NODES $SLURM_STEP_NUM_TASKS $SLURM_NNODES $SLURM_NODEID $SLURM_CPUS_ON_NODE $SLURM_GTIDS $SLURM_DISTRIBUTION $SLURMD_NODENAME"'
