# What salloc sets by option for its command and for steps.
# cluster: {nodes: [{name: "n[1-2]", sockets: 1, cores: 4, threads: 1, memory: 4000, gres: "gpu:4"}], conf: {GresTypes: gpu}}
show() { printf '%s\n' "== $*"; salloc -n1 -N1 "$@" bash -c 'v() { env | grep -E "^(SLURM|CUDA)_[A-Z_]*(GPU|GRES|VISIBLE)[A-Z_]*=|^SLURM_NTASKS=" | sort; }; export -f v; v; echo - step; srun bash -c v' 2>/dev/null; }
show --gpus=2; show --gpus-per-node=2; show --gpus-per-task=2; show --gres=gpu:2; show --gpus-per-socket=1 --sockets-per-node=1
show --gpus=2 --cpus-per-gpu=2; show --gpus=2 --mem-per-gpu=200; show --gpus=1 --ntasks-per-gpu=1; show
