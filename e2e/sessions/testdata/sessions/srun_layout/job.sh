#!/bin/bash
#SBATCH -o out.txt
echo "$SLURM_JOB_CPUS_PER_NODE $SLURM_TASKS_PER_NODE"
for d in block cyclic plane=2 plane=3 plane=1 cyclic:block block:cyclic; do
  echo "$d: $(srun -Q -m $d bash -c 'echo "$SLURM_PROCID@$SLURM_NODEID.$SLURM_LOCALID"' 2>&1 | grep -v ^srun | sort -n | tr '\n' ' ')"
done
for n in 1 2 3 5 ; do echo "n$n: $(srun -Q -n$n bash -c 'echo "$SLURM_PROCID@$SLURM_NODEID.$SLURM_LOCALID"' 2>&1 | grep -v ^srun | sort -n | tr '\n' ' ')"; done
for n in 1 2 3; do echo "N$n: $(srun -Q -N$n bash -c 'echo "$SLURM_PROCID@$SLURM_NODEID.$SLURM_LOCALID"' 2>&1 | grep -v ^srun | sort -n | tr '\n' ' ')"; done
for n in 1 2; do echo "c$n: $(srun -Q -c$n bash -c 'echo "$SLURM_PROCID@$SLURM_NODEID.$SLURM_LOCALID"' 2>&1 | grep -v ^srun | sort -n | tr '\n' ' ')"; done
for n in 1 2; do echo "tpn$n: $(srun -Q --ntasks-per-node=$n bash -c 'echo "$SLURM_PROCID@$SLURM_NODEID.$SLURM_LOCALID"' 2>&1 | grep -v ^srun | sort -n | tr '\n' ' ')"; done
