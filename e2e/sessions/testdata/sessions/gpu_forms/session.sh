# How GPUs that are not for each node are shared out and shown.
# cluster: {nodes: [{name: "n[1-2]", sockets: 1, cores: 4, threads: 1, memory: 4000, gres: "gpu:4"}], conf: {GresTypes: gpu}}
show() {
  sleep 4
  scontrol show job "$1" | grep -E 'NumNodes|TresP|PerTres|MinMemory|   TRES=|NtasksPerTRES' | sed 's/ ReqB.*//; s/ MinTmp.*//'
  squeue -h -j "$1" -O 'JobID:6,tres-per-job:16,tres-per-node:16,tres-per-task:16,cpus-per-tres:16,mem-per-tres:16,NumCPUs:5,NumNodes:4'
  squeue -h -j "$1" -o '%i %b %C %D'; scancel "$1"; settle
}
for options in --gpus=3 '-N2 --gpus=6' '-n3 --gpus-per-task=1' '--gpus=2 --cpus-per-gpu=2' '--gpus=2 --mem-per-gpu=200' '--gpus=4 --ntasks-per-gpu=1' --gres=gpu:2 '-N1 --gpus-per-node=2 -n2'; do
  show $(sbatch --parsable -o /dev/null $options --wrap 'sleep 60')
done
sbatch -N2 -n3 --gpus=5 -o f --wrap 'env | grep ^SLURM_GPUS | sort; srun bash -c "echo \$SLURM_PROCID \$SLURM_NODEID \$SLURM_GPUS \$SLURM_GPUS_ON_NODE" | sort'; settle
sbatch -n3 --gpus-per-task=1 --cpus-per-gpu=1 --mem-per-gpu=100 -o g --wrap 'env | grep -E "^SLURM_.*(GPU|MEM|CPUS)" | grep -v JOB_GPUS | sort'; settle
sbatch -N2 --gpus-per-node=2 -n4 -o h --wrap 'srun --gres=gpu:2 bash -c "echo \$SLURM_PROCID \$SLURM_GPUS_ON_NODE" | sort'; settle
cat f g h
for options in '-N3 --gpus=2' '--gpus=3 --gpus-per-node=2' --cpus-per-gpu=2 --gpus-per-task=1 '--gpus=9' '-n5 --gpus-per-task=2'; do
  sbatch $options -o /dev/null --wrap true > /dev/null 2>&1; echo "$options: $?"; done
settle
