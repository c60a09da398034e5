# A job that is suspended keeps its GPUs; a job that waits for them says why.
# cluster: {nodes: [{name: "n[1-2]", sockets: 1, cores: 4, threads: 1, memory: 4000, gres: "gpu:4"}], conf: {GresTypes: gpu}}
a=$(sbatch --parsable -w n1 --gres=gpu:3 -o /dev/null --wrap 'sleep 14'); sleep 3; scontrol suspend $a; sleep 2
b=$(sbatch --parsable -w n1 --gres=gpu:2 -o b --wrap 'echo $SLURM_GPUS_ON_NODE'); c=$(sbatch --parsable -w n1 --gres=gpu:1 -o c --wrap 'echo $SLURM_GPUS_ON_NODE; sleep 9'); sleep 4
squeue -h -o '%T %b' | sort; sinfo -h -N -p main -O 'nodelist:4,gresused:16' | sort; scontrol resume $a; settle; cat b c
