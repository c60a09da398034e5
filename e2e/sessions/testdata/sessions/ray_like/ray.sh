#!/bin/bash
#SBATCH --job-name=ray
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=2
#SBATCH --output=ray.out
set -e
nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
head=${nodes[0]}
port=6379
echo "head $head, workers ${nodes[*]:1}"
srun --nodes=1 --ntasks=1 -w "$head" ray start --head --node-ip-address="$head" --port=$port --num-cpus "$SLURM_CPUS_PER_TASK" --block &
sleep 2
for ((i = 1; i < SLURM_JOB_NUM_NODES; i++)); do
  srun --nodes=1 --ntasks=1 -w "${nodes[i]}" ray start --address "$head:$port" --num-cpus "$SLURM_CPUS_PER_TASK" --block &
  sleep 1
done
python3 -u driver.py "$SLURM_JOB_NUM_NODES"
