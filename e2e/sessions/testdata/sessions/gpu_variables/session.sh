# Options for GPUs from variables.
# cluster: {nodes: [{name: "n[1-2]", sockets: 1, cores: 4, threads: 1, memory: 4000, gres: "gpu:4"}], conf: {GresTypes: gpu}}
SBATCH_GPUS=2 sbatch -o a --wrap 'echo $SLURM_GPUS $SLURM_GPUS_ON_NODE'; SBATCH_GRES=gpu:3 sbatch -o b --wrap 'echo $SLURM_GPUS_ON_NODE'; SBATCH_GPUS_PER_NODE=1 sbatch -N2 -o c --wrap 'echo $SLURM_GPUS_PER_NODE $SLURM_GPUS_ON_NODE'
SBATCH_GPUS_PER_TASK=1 sbatch -n2 -o d --wrap 'echo $SLURM_GPUS_PER_TASK $SLURM_GPUS_ON_NODE'; SBATCH_GPUS=2 sbatch --gpus=1 -o e --wrap 'echo $SLURM_GPUS $SLURM_GPUS_ON_NODE'; settle; SBATCH_CPUS_PER_GPU=2 sbatch --gpus=1 -o f --wrap 'echo $SLURM_CPUS_ON_NODE $SLURM_CPUS_PER_GPU'
SBATCH_MEM_PER_GPU=150 sbatch --gpus=2 -o g --wrap 'echo $SLURM_MEM_PER_GPU'; settle
head a b c d e f g
SALLOC_GPUS=2 salloc bash -c 'srun bash -c "echo \$SLURM_GPUS \$SLURM_GPUS_ON_NODE"' 2> /dev/null; SALLOC_GRES=gpu:1 SALLOC_GPUS_PER_NODE=1 salloc -N2 bash -c 'srun bash -c "echo \$SLURM_GPUS_ON_NODE"' 2> /dev/null
