#!/bin/bash
# sbatch steps.sh, or: kubectl gang submit steps.sh
# A batch script as Slurm has them: it runs once, and srun starts its tasks on the node.
#SBATCH --job-name=steps
#SBATCH --nodes=1 --ntasks=4 --time=10
#SBATCH --output=steps-%j.out

# One step of four tasks; -l puts the number of the task before each line.
srun -l bash -c 'echo "task $SLURM_PROCID of $SLURM_NTASKS on $SLURMD_NODENAME"'

# Two steps side by side, with two tasks each.
for part in a b; do
  srun --exact -n2 bash -c "echo part $part, step \$SLURM_STEP_ID, task \$SLURM_PROCID" &
done
wait
