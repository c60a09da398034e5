# What a step's tasks see, by option.
cat > job.sh <<'X'
#!/bin/bash
#SBATCH -N2 -n4 -J jobname -o out
vars='for v in SLURM_JOB_NAME SLURM_NTASKS SLURM_NPROCS SLURM_STEP_NUM_TASKS SLURM_STEP_NUM_NODES SLURM_NNODES SLURM_STEP_NODELIST SLURM_TASKS_PER_NODE SLURM_STEP_TASKS_PER_NODE SLURM_CPUS_PER_TASK SLURM_DISTRIBUTION SLURM_NODEID SLURM_LOCALID SLURM_PROCID SLURM_GTIDS SLURM_CPUS_ON_NODE SLURM_STEP_ID SLURM_JOB_NUM_NODES SLURM_SUBMIT_DIR SLURM_OVERCOMMIT SLURM_THREADS_PER_CORE SLURM_UMASK SLURM_TASK_PID_ SLURM_LAUNCH_NODE SLURM_STEP_RESV_PORTS; do [ -z "${!v+x}" ] || echo "$v=${!v}"; done'
show() { echo "== $*"; srun -Q "$@" bash -c "if [ \$SLURM_PROCID = \${R:-0} ]; then $vars; fi"; }
show; R=3 show; show -n1 -N1; show -n2; show -J other -n1 -N1; show -m cyclic; show -m plane=2; show --overcommit -n6; show --ntasks-per-node=1 -n2 -N2; show --threads-per-core=1 -n1 -N1
X
sbatch job.sh; settle; cat out
