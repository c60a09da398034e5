# Tasks for each GPU, and GPUs that follow from tasks.
# cluster: {nodes: [{name: "n[1-2]", sockets: 1, cores: 4, threads: 1, memory: 4000, gres: "gpu:4"}], conf: {GresTypes: gpu}}
show() {
  sleep 4
  scontrol show job "$1" | grep -E 'NumNodes|TresP|PerTres|   TRES=|NtasksPerTRES' | sed 's/ ReqB.*//; s/ MinTmp.*//'
  squeue -h -j "$1" -o '%i %b %C %D %T'; scancel "$1"; settle
}
for options in '-n4 --ntasks-per-gpu=2' '-n2 --ntasks-per-gpu=1' '--gpus=2 --ntasks-per-gpu=2' '-N2 --gpus-per-node=2 --ntasks-per-gpu=1' '-n4 --gpus=2 --ntasks-per-gpu=2'; do
  show $(sbatch --parsable -o /dev/null $options --wrap 'sleep 60')
done
sbatch -n4 --ntasks-per-gpu=2 -o f --wrap 'env | grep -E "^SLURM_.*(GPU|NTASKS)" | grep -v JOB_GPUS | sort'; settle; cat f
for options in '-n3 --ntasks-per-gpu=2' '--ntasks-per-gpu=2' '--ntasks-per-gpu=0 -n2' '--ntasks-per-gpu=x -n2' '-n5 --gpus=2 --ntasks-per-gpu=2'; do
  sbatch $options -o /dev/null --wrap true > /dev/null 2>&1; echo "$options: $?"; settle; done
