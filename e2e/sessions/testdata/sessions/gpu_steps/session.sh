# Steps of a job see its GPUs.
# cluster: {nodes: [{name: "n[1-2]", sockets: 1, cores: 4, threads: 1, memory: 4000, gres: "gpu:4"}], conf: {GresTypes: gpu}}
sbatch -N2 -n4 --gpus-per-task=1 -o f --wrap 'srun -N2 -n4 bash -c "echo \$SLURM_PROCID \$SLURM_GPUS_PER_TASK" | sort; srun -n1 -N1 --gpus-per-task=1 bash -c "echo one \$SLURM_GPUS_PER_TASK"'; settle; cat f
srun -N1 --gres=gpu:2 bash -c 'echo $SLURM_GPUS_ON_NODE'
salloc --gres=gpu:1 bash -c 'echo $SLURM_JOB_NUM_NODES; srun bash -c "echo \$SLURM_GPUS_ON_NODE"' 2> /dev/null
