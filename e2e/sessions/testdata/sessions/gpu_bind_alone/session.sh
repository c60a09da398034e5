# Which GPUs each task of srun and of salloc sees.
# cluster: {nodes: [{name: "n[1-2]", sockets: 1, cores: 4, threads: 1, memory: 4000, gres: "gpu:4"}], conf: {GresTypes: gpu}}
T='echo $SLURM_NODEID: c $CUDA_VISIBLE_DEVICES s $SLURM_STEP_GPUS j $SLURM_JOB_GPUS n $SLURM_GPUS_ON_NODE t $SLURM_GPUS_PER_TASK'; export T
show() { printf '%s\n' "== $*"; srun -l "$@" bash -c "$T" 2>&1 | sort; }
show -n2 -N1 --gpus=2; show -n2 -N1 --gpus-per-task=1; show -n2 -N1 --gpus-per-task=2; show -n2 -N1 --gres=gpu:2; show -n2 -N2 --gres=gpu:2
show -n2 -N1 --gpus=2 --gpu-bind=single:1; show -n2 -N1 --gpus=2 --gpu-bind=none; show -n2 -N1 --gpus=2 --ntasks-per-gpu=1
salloc -N1 -n2 --gpus-per-task=1 bash -c 'srun -l bash -c "$T" | sort; srun -l --gpu-bind=none bash -c "$T" | sort' 2>/dev/null
