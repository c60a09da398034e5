# Tasks of an array each have GPUs.
# cluster: {nodes: [{name: "n[1-2]", sockets: 1, cores: 4, threads: 1, memory: 4000, gres: "gpu:4"}], conf: {GresTypes: gpu}}
sbatch --array=1-6 --gres=gpu:2 -o 'out.%a' --wrap 'echo $SLURM_ARRAY_TASK_ID $SLURM_GPUS_ON_NODE; sleep 5'; sleep 4
squeue -h -r -o '%T %b' | sort | uniq -c | sed 's/^ *//'; settle; cat out.* | sort
sbatch --array=1-2%1 --gpus=5 -N2 -o 'two.%a' --wrap 'echo $SLURM_ARRAY_TASK_ID $SLURM_GPUS; sleep 2'; settle; cat two.* | sort
