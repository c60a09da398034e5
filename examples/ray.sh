#!/bin/bash
# sbatch --image=rayproject/ray ray.sh
# A Ray cluster for one job: its head on the first node, a worker on each other one, the driver in the script. All of it
# ends with the script.
#SBATCH --job-name=ray
#SBATCH --nodes=3 --ntasks-per-node=1 --cpus-per-task=2 --time=60
#SBATCH --output=ray-%j.out

nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
head=$(echo "$nodes" | head -n1)
srun --nodes=1 --ntasks=1 -w "$head" ray start --head --node-ip-address="$head" --port=6379 \
  --num-cpus="$SLURM_CPUS_PER_TASK" --block &
sleep 5
for node in $(echo "$nodes" | tail -n +2); do
  srun --nodes=1 --ntasks=1 -w "$node" ray start --address="$head:6379" --num-cpus="$SLURM_CPUS_PER_TASK" --block &
done
RAY_ADDRESS="$head:6379" python3 -u train.py
