# What jobs with GPUs get by default.
# cluster: {nodes: [{name: "n[1-2]", sockets: 1, cores: 4, threads: 1, memory: 4000, gres: "gpu:4"}], conf: {GresTypes: gpu, DefCpuPerGPU: 2, DefMemPerCPU: 0, DefMemPerGPU: 300}}
show() {
  sleep 4; scontrol show job "$1" | grep -E 'NumNodes|TresP|PerTres|MinMemory|   TRES=' | sed 's/ ReqB.*//; s/ MinTmp.*//'
  squeue -h -j "$1" -o '%i %b %C %D %m'; scancel "$1"; settle
}
for options in --gpus=2 '--gpus=2 --mem=100' '--gpus=2 --cpus-per-gpu=1 --mem-per-gpu=100' '-n2 --gpus-per-task=1'; do
  show $(sbatch --parsable -o /dev/null $options --wrap 'sleep 60')
done
sbatch -o a --gpus=2 --wrap 'env | grep -E "^SLURM_.*(GPU|MEM|CPUS)" | grep -v JOB_GPUS | sort; srun env | grep -E "^SLURM_.*MEM"'; settle; cat a; true
