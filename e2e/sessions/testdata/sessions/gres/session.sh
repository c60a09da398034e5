# GPUs: how many, per task and per node, and what squeue, sinfo and scontrol say of them.
# cluster: {nodes: [{name: "n[1-2]", sockets: 1, cores: 4, threads: 1, memory: 4000, gres: "gpu:4"}], conf: {GresTypes: gpu}}
sbatch --gres=gpu:1 -w n1 --wrap 'sleep 12'; sbatch --gres=gpu:3 -w n2 --wrap 'sleep 12'; sleep 4
sinfo -h -N -p main -o '%N %G' | sort; sinfo -h -N -p main -O 'nodelist:4,gres:10,gresused:10' | sort; scontrol show node n1 | grep ' Gres='
squeue -h -o '%i %b' | sort; squeue -h -O 'jobid:8,tres-per-node:16,tres-alloc:60' | sort; scontrol show job 1001 | grep TresPerNode
sbatch --gres=gpu:4 -w n1 -o late --wrap 'echo gpus $SLURM_GPUS_ON_NODE'; sleep 3; squeue -h -j 1003 -o '%i %T %r'; settle
sbatch --gpus=3 -o b --wrap 'echo "$SLURM_GPUS $SLURM_GPUS_ON_NODE"'
sbatch -N2 --gpus-per-node=2 --ntasks-per-node=2 -o c --wrap 'srun bash -c "echo rank \$SLURM_PROCID node \$SLURM_NODEID gpus \$SLURM_GPUS_ON_NODE \$SLURM_GPUS_PER_NODE" | sort'
sbatch -n2 --gpus-per-task=1 -o d --wrap 'srun bash -c "echo rank \$SLURM_PROCID gpus \$SLURM_GPUS_ON_NODE \$SLURM_GPUS_PER_TASK" | sort; echo $SLURM_GPUS_PER_TASK'; settle
sbatch -G 2 --cpus-per-gpu=1 --mem-per-gpu=10M -o e --wrap 'env | grep "^SLURM_.*GPU" | grep -v JOB_GPUS | sort'
sbatch --gres=none -o f --wrap 'echo "[$SLURM_GPUS_ON_NODE]"'; settle
sbatch --gres=nosuch:1 --wrap true; echo "rc $?"; sbatch --gpus=2 --cpus-per-gpu=0 --wrap true; echo "rc $?"
head late b c d e f
