# srun outside of a job: how many tasks on how many nodes, and what they are told.
# unordered: stdout
d() { echo "$* : $(srun -Q "$@" bash -c 'echo $SLURM_NODEID' 2>/dev/null | sort | uniq -c | tr -s ' \n' ' ')"; }
d; d -n3; d -N2; d -N2 -n5; d -n5; d -n9; d -N3 -n4; d -N2 --ntasks-per-node=2; d -c2 -n3; d -N2 -c2 -n4; d -N2 -n2 -m cyclic; d -N2 -n6 -m cyclic; d --exclusive -n2; d -w n3 -n1; d -x n1 -n1; d -O -n6 -N1; d -N1-2 -n3
srun -n2 bash -c 'echo $SLURM_NTASKS $SLURM_NPROCS $SLURM_JOB_NUM_NODES $SLURM_STEP_ID $SLURM_STEP_NUM_TASKS $SLURM_JOB_NAME $SLURM_JOB_PARTITION'
srun -n1 -p long -t5 -J nm bash -c 'echo $SLURM_JOB_PARTITION $SLURM_JOB_NAME'; srun -n1 -D /tmp pwd; mkdir -p sub; cd sub; srun -n1 pwd; cd ..; srun -n2 -o f_%t hostname; cat f_0 f_1 | wc -l; true
SLURM_NTASKS=3 srun bash -c 'echo $SLURM_NTASKS'; SLURM_PARTITION=long srun -n1 bash -c 'echo $SLURM_JOB_PARTITION'; SLURM_JOB_NAME=env srun -n1 bash -c 'echo $SLURM_JOB_NAME'; SLURM_TIMELIMIT=7 srun -n1 bash -c 'squeue -h -j $SLURM_JOB_ID -o %l'
