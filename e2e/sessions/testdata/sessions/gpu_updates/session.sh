# GPUs of a job that waits are changed; those of one that runs are not.
# cluster: {nodes: [{name: "n[1-2]", sockets: 1, cores: 4, threads: 1, memory: 4000, gres: "gpu:4"}], conf: {GresTypes: gpu}}
a=$(sbatch --parsable -N2 --gres=gpu:4 -o /dev/null --wrap 'sleep 14'); sleep 3; b=$(sbatch --parsable --gres=gpu:2 -o b --wrap 'echo $SLURM_GPUS_ON_NODE'); sleep 3
squeue -h -o '%T %r %b' | sort
for g in gpu:1 gpu:3 nosuch:1 gpu:-1; do scontrol update jobid=$b gres=$g > /dev/null 2>&1; echo "waiting gres=$g: $?"; squeue -h -j $b -o %b; done
scontrol update jobid=$a gres=gpu:1 > /dev/null 2>&1; echo "running: $?"; squeue -h -j $a -o %b; settle; cat b
