# GPUs for each socket.
# cluster: {nodes: [{name: "n[1-2]", sockets: 1, cores: 4, threads: 1, memory: 4000, gres: "gpu:4"}], conf: {GresTypes: gpu}}
show() {
  sleep 4
  scontrol show job "$1" | grep -E 'NumNodes|TresP|PerTres|   TRES=|NtasksPerTRES' | sed 's/ ReqB.*//; s/ MinTmp.*//'
  squeue -h -j "$1" -o '%i %b %C %D %T'; scancel "$1"; settle
}
for options in '-N1 -n1 --sockets-per-node=1 --gpus-per-socket=2' '-N2 -n2 --sockets-per-node=1 --gpus-per-socket=1'; do
  job=$(sbatch --parsable -o /dev/null $options --wrap 'sleep 60'); sleep 4; squeue -h -j $job -O 'tres-per-socket:20,tres-per-node:16,NumNodes:4'; show $job
done
sbatch -N1 -n1 --sockets-per-node=1 --gpus-per-socket=2 -o f --wrap 'env | grep -E "^SLURM_.*GPU" | grep -v JOB_GPUS | sort'; settle; cat f
for options in --gpus-per-socket=1 '--gpus-per-socket=2 --sockets-per-node=2 --gpus-per-node=2' '--gpus-per-socket=2 --sockets-per-node=1 --gpus-per-node=3' '--gpus-per-socket=1 --sockets-per-node=3' '--gpus-per-socket=x --sockets-per-node=1' '--gpus-per-socket=0'; do
  sbatch $options -o /dev/null --wrap true > /dev/null 2>&1; echo "$options: $?"; settle; done
