# Steps are counted as they begin, also those that fail.
cat > j.sh <<'X'
#!/bin/bash
#SBATCH -n2
p='echo $SLURM_STEP_ID $SLURM_STEPID $SLURM_JOBID'
srun -n1 bash -c "$p" | sed "s/$SLURM_JOB_ID/J/"
srun -n9 true 2> /dev/null; srun --no-such true 2> /dev/null; srun -n1 missing 2> /dev/null
srun -n1 bash -c "$p" | sed "s/$SLURM_JOB_ID/J/"
srun -n1 -o s_%s_%J.txt true; ls s_* | sed "s/$SLURM_JOB_ID/J/"
srun -n1 false; srun -n1 bash -c "$p" | sed "s/$SLURM_JOB_ID/J/"
X
sbatch -W -o o j.sh; grep -v '^srun' o
