# Which GPUs each task of a step sees.
# cluster: {nodes: [{name: "n[1-2]", sockets: 1, cores: 4, threads: 1, memory: 4000, gres: "gpu:4"}], conf: {GresTypes: gpu}}
cat > job.sh <<'X'
#!/bin/bash
T='echo c $CUDA_VISIBLE_DEVICES s $SLURM_STEP_GPUS n $SLURM_GPUS_ON_NODE t $SLURM_GPUS_PER_TASK b $SLURM_GPU_BIND'; export T
for o in "" $OPTIONS; do echo "- step $o"; srun -l $o bash -c "$T" 2>/dev/null | sort; done
echo "- one"; srun -n1 bash -c "$T"; echo "- none"; srun -n1 --gres=none bash -c "$T"
X
i=0
show() { i=$((i + 1)); printf '%s\n' "== $*" > o$i; sbatch --open-mode=append -o o$i "$@" job.sh > /dev/null; settle; cat o$i; }
export OPTIONS="--gpus-per-task=1 --gpus=2 --gpu-bind=none --gpu-bind=closest --gpu-bind=single:1 --gpu-bind=single:2 --gpu-bind=per_task:1 --gpu-bind=per_task:2 --gpu-bind=map_gpu:1,0 --gpu-bind=mask_gpu:0x3,0x1 --ntasks-per-gpu=1"
show -N1 -n2 --gpus=2
export OPTIONS="--gpus-per-task=1 --gpus-per-task=2 --gpu-bind=none --gpu-bind=single:1 --gpu-bind=map_gpu:0*2,3"
show -N1 -n2 --gpus-per-task=2
show -N1 -n2 --gres=gpu:4
export OPTIONS="--gpu-bind=none --gpu-bind=single:1 --gpus-per-task=1"
show -N2 -n4 --gpus-per-task=1
export OPTIONS=""
for o in single:1 none verbose,single:1 map_gpu:1,0; do show -N1 -n2 --gpus=2 --gpu-bind=$o; done
show -n3 -N1 --gpus-per-task=1 --gpu-bind=single:2
SBATCH_GPU_BIND=single:1 show -n2 -N1 --gpus=2
