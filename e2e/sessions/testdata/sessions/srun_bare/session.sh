# A client takes the variables of Slurm away but the number of the job, and calls srun.
cat > job.sh <<'X'
#!/bin/bash
#SBATCH -N2 -n4 -c2 -J bare --mem-per-cpu=100
for name in ${!SLURM_*}; do
  case $name in
    SLURM_JOB_ID|SLURM_CONF) ;;
    *) unset $name ;;
  esac
done
unset SLURMD_NODENAME
srun bash -c 'echo "$SLURM_PROCID $SLURM_NTASKS $SLURM_NODEID $SLURM_STEP_NODELIST $SLURM_JOB_USER"' | sort
srun -n4 -l bash -c 'echo $SLURMD_NODENAME $SLURM_LOCALID' | sort
srun -N1 -n1 bash -c 'echo $SLURM_JOB_ID $SLURM_JOBID'
echo "rc $?"
X
sbatch job.sh; settle; cat slurm-*.out
