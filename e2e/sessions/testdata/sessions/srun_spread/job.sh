#!/bin/bash
#SBATCH -N2 -n4 --ntasks-per-node=2 -o out.txt -e err.txt
for i in 1 2; do srun -N1 -n1 bash -c "echo plain \$SLURMD_NODENAME; sleep 2" & sleep 1; done; wait
for i in 1 2 3 4; do srun -N1 -n1 --exact bash -c "echo exact $i \$SLURMD_NODENAME \$SLURM_NODEID; sleep 6" & sleep 1; done; wait
srun -N2 -n2 --overlap bash -c "sleep 3" & sleep 1; srun --overlap -N1 -n1 bash -c 'echo overlap $SLURMD_NODENAME'; wait
srun -N1 -n1 -r1 bash -c 'echo relative $SLURMD_NODENAME $SLURM_NODEID $SLURM_STEP_NODELIST'
srun -w n2 -n2 -N2 bash -c 'echo both $SLURMD_NODENAME $SLURM_PROCID'
srun -n2 --exact -N1 bash -c 'echo two $SLURMD_NODENAME $SLURM_PROCID; sleep 2' & sleep 0.5; srun -n2 --exact bash -c 'echo three $SLURMD_NODENAME $SLURM_PROCID' ; wait
srun -n3 bash -c 'echo n3 $SLURMD_NODENAME $SLURM_PROCID'
srun -n6 bash -c 'echo n6 $SLURMD_NODENAME $SLURM_PROCID'; echo n6 rc $?
srun -n6 -O bash -c 'echo O6 $SLURMD_NODENAME $SLURM_PROCID'
srun --ntasks-per-node=1 bash -c 'echo tpn1 $SLURMD_NODENAME $SLURM_PROCID'
srun -n2 -w n2 bash -c 'echo w2 $SLURMD_NODENAME $SLURM_PROCID'
srun -N1 -n1 -w n9 true; echo w9 rc $?
