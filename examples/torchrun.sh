#!/bin/bash
# sbatch --image=pytorch/pytorch torchrun.sh
# PyTorch on three nodes: one torchrun on each, which meet at the first. Its name is the address of the job's pod there,
# in every pod of the job. A gang stands still between its turns, so time-outs must be longer than the others' turns.
#SBATCH --job-name=torchrun
#SBATCH --nodes=3 --ntasks-per-node=1 --cpus-per-task=2 --time=60
#SBATCH --output=torchrun-%j.out

head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
srun torchrun --nnodes="$SLURM_JOB_NUM_NODES" --nproc-per-node=1 --rdzv-id="$SLURM_JOB_ID" \
  --rdzv-backend=c10d --rdzv-endpoint="$head:29500" train.py
