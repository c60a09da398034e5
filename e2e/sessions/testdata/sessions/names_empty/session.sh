# A job's name that is empty.
cat > job.sh <<'X'
#!/bin/bash
echo "[$SLURM_JOB_NAME] ${SLURM_JOB_NAME+set}"; squeue -h -j $SLURM_JOB_ID -o '[%j]'; scontrol show job $SLURM_JOB_ID | grep -o 'JobName=.*'
srun bash -c 'echo "step [$SLURM_JOB_NAME] ${SLURM_JOB_NAME+set}"'
X
(echo '#!/bin/bash'; echo '#SBATCH --job-name='; tail -n +2 job.sh) > named.sh
(echo '#!/bin/bash'; echo '#SBATCH --job-name=first'; tail -n +2 job.sh) > first.sh
sbatch --job-name= -o a job.sh; settle; sbatch -J '' -o b job.sh; settle; sbatch -o c named.sh; settle; sbatch --job-name= -o d first.sh; settle
sbatch --job-name= -o e --wrap "$(tail -n +2 job.sh)"; settle; sbatch --job-name= -o f < job.sh; settle; sbatch -J '' -o 'g%x' job.sh; settle
SBATCH_JOB_NAME= sbatch -o h job.sh; settle; SBATCH_JOB_NAME=x sbatch --job-name= -o i job.sh; settle; sbatch --job-name=' ' -o j job.sh; settle
head a b c d e f g* h i j
srun -J '' bash -c 'echo "srun [$SLURM_JOB_NAME] ${SLURM_JOB_NAME+set}"'; srun --job-name= bash -c 'squeue -h -j $SLURM_JOB_ID -o "[%j]"'
salloc -J '' bash -c 'echo "salloc [$SLURM_JOB_NAME]"; squeue -h -j $SLURM_JOB_ID -o "[%j]"' 2>/dev/null
