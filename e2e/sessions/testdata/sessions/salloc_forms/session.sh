# salloc and srun outside a job: exit codes, signals of commands, options, input and output.
# unordered: stdout
srun -n2 -N2 -l hostname > /dev/null; echo "rc $?"; srun true; echo "rc $?"; srun false 2> /dev/null; echo "rc $?"; srun bash -c 'kill -9 $$' 2> /dev/null; echo "rc $?"; srun nosuchcommand 2> /dev/null; echo "rc $?"
seq 3 | srun -n1 cat; srun -n1 bash -c 'echo out; echo err >&2' 2> err; cat err; srun -o file -n1 echo in a file; cat file; srun -n1 -J nm bash -c 'echo $SLURM_JOB_NAME $SLURM_NTASKS $SLURM_JOB_NUM_NODES'
salloc -Q -n2 bash -c 'exit 4'; echo "rc $?"; salloc -Q -N2 -n2 bash -c 'for i in 1 2; do srun bash -c "echo step \$SLURM_STEP_ID rank \$SLURM_PROCID" | sort; done; srun -n1 -N1 bash -c "exit 3" 2> /dev/null; echo "rc $?"; scontrol show hostnames | wc -l; echo $SLURM_NTASKS $SLURM_JOB_NUM_NODES $SLURM_JOB_NODELIST $SLURM_JOB_CPUS_PER_NODE'
srun -p nosuch true 2> /dev/null; echo "rc $?"; A=env srun -n1 bash -c 'echo "A=$A"'; salloc -Q -J alloc bash -c 'echo $SLURM_JOB_NAME; A=2 srun bash -c "echo A=\$A"'; salloc -Q nosuchcommand > /dev/null 2>&1; echo "rc $?"
squeue -h -t all -o '%i %T %j' | sort
