# sbatch --distribution: for the steps of the script, unless srun says another one.
for m in block cyclic plane=2 block:cyclic cyclic:block,nopack; do sbatch -W -N2 -n4 -m "$m" -o "d_%j" --wrap 'echo "[$SLURM_DISTRIBUTION] $SLURM_DIST_PLANESIZE"; srun bash -c "echo \$SLURM_PROCID \$SLURMD_NODENAME" | sort; srun -m block bash -c "echo \$SLURM_PROCID \$SLURMD_NODENAME" | sort'; echo "$m rc $?"; done
SBATCH_DISTRIBUTION=cyclic sbatch -W -N2 -n4 -o env --wrap 'echo "[$SLURM_DISTRIBUTION]"; srun bash -c "echo \$SLURM_PROCID \$SLURMD_NODENAME" | sort'; cat env
sbatch -N2 -m nonsense --wrap true; echo "rc $?"; sbatch -N2 -m block,nonsense --wrap true; echo "rc $?"
sbatch -W -a '[0-1],5' -o "a_%a" --wrap 'echo $SLURM_ARRAY_TASK_ID'; echo "rc $?"; cat a_0 a_1 a_5
