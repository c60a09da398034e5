# What sbatch sets by option in the script and in steps.
# cluster: {nodes: [{name: "n[1-2]", sockets: 1, cores: 4, threads: 1, memory: 4000, gres: "gpu:4"}], conf: {GresTypes: gpu}}
cat > job.sh <<'X'
#!/bin/bash
v() { env | grep -E "^(SLURM|CUDA)_[A-Z_]*(GPU|GRES|VISIBLE)[A-Z_]*=|^SLURM_NTASKS=" | sort; }; export -f v; v; echo - step; srun bash -c v
X
show() { local o=o${#1}${2:-}; printf '%s\n' "== $*" > $o; sbatch -n1 -N1 --open-mode=append -o $o "$@" job.sh > /dev/null; settle; cat $o; }
show --gpus=2; show --gpus-per-task=2; show --gres=gpu:2; show --gpus=2 --cpus-per-gpu=2; show --gpus=2 --mem-per-gpu=200; show --gpus=2 --gpu-bind=none; show
